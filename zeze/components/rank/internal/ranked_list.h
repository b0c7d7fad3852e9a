// RankedList: the entries of a group, best first, made for one thing: replacing one of a thousand
// in a transaction, which copies the list first.
//
// An unchanging block with all entries, shared by the copies, and the few edits since it was made,
// inside the list. A copy costs one increment and the bytes of the edits; every 32nd edit makes a
// new block. A tree costs more: each of its nodes that an edit copies has sixteen neighbours whose
// reference counts lie in sixteen cache lines.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "zeze/bean/dynamic.h"
#include "zeze/bean/encoded_size.h"
#include "zeze/components/rank/internal/inline_vector.h"
#include "zeze/components/rank/internal/ranked_block.h"
#include "zeze/components/rank/internal/role_marks.h"

namespace zeze::internal {

// Entry: with `role` and `value`. Thread-safety: as a plain value.
template <typename Entry>
class RankedList {
 public:
  using StoredAsListOf = Entry;  // For the schema.
  using Value = decltype(Entry::value);

  // Where a role is. Good until the list is next edited.
  struct Place {
    static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
    std::uint32_t at = kNowhere;  // In the edits or in the block.
    bool added = false;

    explicit operator bool() const { return at != kNowhere; }
  };

  RankedList() = default;
  // In the order of the entries; no role twice.
  explicit RankedList(const std::vector<Entry>& entries)
      : end_(static_cast<std::uint32_t>(entries.size())) {
    if (entries.empty()) return;
    RankedBlockPointer<Entry> block(Block::New(entries.size()));
    block->Append(entries.data(), entries.size());
    Take(std::move(block));
  }

  std::size_t size() const { return end_ - holes_.size() + added_.size(); }
  bool empty() const { return size() == 0; }

  Place Find(std::int64_t role) const {
    for (std::size_t i = 0; i < added_.size(); ++i) {
      if (added_[i].entry.role == role) return {static_cast<std::uint32_t>(i), true};
    }
    if (end_ == 0) return {};
    const std::size_t found = FindMarked(block_->marks(), end_, RoleMarkOf(role),
                                         [&](std::size_t i) { return entries_[i].role == role; });
    if (found == kNoPlace || IsHole(found)) return {};
    return {static_cast<std::uint32_t>(found), false};
  }

  const Entry& At(Place place) const {
    return place.added ? added_[place.at].entry : entries_[place.at];
  }

  // The list must not be empty.
  const Entry& Last() const {
    const std::size_t live = LastInBlock();
    if (live == kNoPlace || (!added_.empty() && added_.back().before > live)) {
      return added_.back().entry;
    }
    return entries_[live];
  }

  // Where Insert will look. Good until the list is next edited.
  struct Neighbourhood {
    std::uint32_t first = 0;  // In the block.
  };

  // Calls for the memory that Find, Erase and Insert of such a value will look at.
  template <typename Better>
  Neighbourhood Fetch(const Value& value, const Better& better) const {
    if (end_ == 0) return {};
    FetchLines(block_.get(), sizeof(Block) + end_ * sizeof(RoleMark));
    const Neighbourhood near = Near(value, better);
    const std::uint32_t last = std::min(near.first + Block::kRun, end_);
    FetchLines(entries_ + near.first, (last - near.first) * sizeof(Entry));
    return near;
  }

  // Before the first entry that is worse; the role must not be in the list.
  template <typename Better>
  void Insert(Entry entry, const Better& better) {
    if (added_.full()) Compact();
    const Neighbourhood near = Near(entry.value, better);
    Insert(std::move(entry), better, near);
  }

  // Another value of the same rank: the place stays.
  void Replace(Place place, Value value) {
    if (!place.added) {
      const Entry old = entries_[place.at];
      if (holes_.full() || added_.full()) {
        Compact();
        place = Find(old.role);
      }
      MakeHole(place.at);
      // Behind those that were put before the old entry, before those put behind it.
      Added* at = std::partition_point(added_.begin(), added_.end(), [&](const Added& other) {
        return other.before <= place.at;
      });
      added_.insert(at, Added{Entry{old.role, std::move(value)}, place.at});
      return;
    }
    added_[place.at].entry.value = std::move(value);
  }

  void Erase(Place place) {
    if (place.added) {
      added_.erase(added_.begin() + place.at);
      return;
    }
    if (holes_.full()) {
      const std::int64_t role = entries_[place.at].role;
      Compact();
      place = Find(role);
    }
    MakeHole(place.at);
  }

  // Erases and inserts; `near` is what Fetch said.
  template <typename Better>
  void Move(Place place, Entry entry, const Better& better, Neighbourhood near) {
    if (holes_.full() || added_.full()) {
      Compact();
      place = Find(entry.role);
      near = Near(entry.value, better);
    }
    Erase(place);
    Insert(std::move(entry), better, near);
  }

  void PopLast() {
    const std::size_t live = LastInBlock();
    if (live == kNoPlace || (!added_.empty() && added_.back().before > live)) {
      added_.pop_back();
      return;
    }
    end_ = static_cast<std::uint32_t>(live);
    while (!holes_.empty() && holes_.back() >= end_) holes_.pop_back();
  }

  // visit(entry), the best first, until it returns false.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    std::size_t i = 0;
    std::size_t hole = 0;
    const auto visit_block = [&](std::size_t to) {
      for (; i < to; ++i) {
        if (hole < holes_.size() && holes_[hole] == i) {
          ++hole;
        } else if (!visit(entries_[i])) {
          return false;
        }
      }
      return true;
    };
    for (const Added& added : added_) {
      if (!visit_block(added.before) || !visit(added.entry)) return;
    }
    visit_block(end_);
  }

  std::vector<Entry> ToVector() const {
    std::vector<Entry> all;
    all.reserve(size());
    ForEach([&all](const Entry& entry) {
      all.push_back(entry);
      return true;
    });
    return all;
  }

 private:
  // One entry takes 1/32 of the time of a new block, and adds 1/64 of the edits to what is copied.
  static constexpr std::size_t kEditsMax = std::clamp<std::size_t>(1024 / sizeof(Entry), 8, 32);

  using Block = RankedBlock<Entry>;
  struct Added {
    Entry entry;
    std::uint32_t before;  // The entry of the block, perhaps a hole, or its end.
  };

  static void FetchLines(const void* from, std::size_t bytes) {
    const char* at = static_cast<const char*>(from);
    for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i);
    __builtin_prefetch(at + bytes - 1);
  }

  // How many of the fences are not worse, in runs. Looks at seven at a time, which come from memory
  // together, and does not guess what they say: a search by halves waits for each of them, and half
  // of its guesses are wrong.
  template <typename Better>
  Neighbourhood Near(const Value& value, const Better& better) const {
    constexpr std::uint32_t kParts = 8;
    std::uint32_t count = end_ / Block::kRun;
    const Value* at = fences_;
    while (count >= kParts) {
      const std::uint32_t part = count / kParts;
      std::uint32_t passed = 0;
      for (std::uint32_t i = 1; i < kParts; ++i) {
        passed += better(value, at[i * part - 1]) ? 0U : 1U;
      }
      at += passed * part;
      count = passed == kParts - 1 ? count - passed * part : part - 1;
    }
    std::uint32_t passed = 0;
    for (std::uint32_t i = 0; i < count; ++i) passed += better(value, at[i]) ? 0U : 1U;
    return {(static_cast<std::uint32_t>(at - fences_) + passed) * Block::kRun};
  }

  // How many entries of the block, holes included, are not worse.
  template <typename Better>
  std::uint32_t PlaceInBlock(const Value& value, const Better& better, Neighbourhood near) const {
    const std::uint32_t last = std::min(near.first + Block::kRun, end_);
    std::uint32_t passed = 0;
    for (std::uint32_t i = near.first; i < last; ++i) {
      passed += better(value, entries_[i].value) ? 0U : 1U;
    }
    return near.first + passed;
  }

  // There must be room.
  template <typename Better>
  void Insert(Entry entry, const Better& better, Neighbourhood near) {
    const std::uint32_t before = PlaceInBlock(entry.value, better, near);
    Added* at = std::partition_point(added_.begin(), added_.end(), [&](const Added& other) {
      if (other.before != before) return other.before < before;
      return !better(entry.value, other.entry.value);
    });
    added_.insert(at, Added{std::move(entry), before});
  }

  bool IsHole(std::size_t i) const {
    return std::find(holes_.begin(), holes_.end(), i) != holes_.end();
  }
  void MakeHole(std::uint32_t i) {
    holes_.insert(std::lower_bound(holes_.begin(), holes_.end(), i), i);
  }

  // The last of the block that is no hole.
  std::size_t LastInBlock() const {
    std::size_t live = end_;
    std::size_t hole = holes_.size();
    while (hole > 0 && live > 0 && holes_[hole - 1] == live - 1) {
      --hole;
      --live;
    }
    return live == 0 ? kNoPlace : live - 1;
  }

  // A new block with all edits, run by run.
  void Compact() {
    RankedBlockPointer<Entry> block(Block::New(size()));
    std::size_t i = 0;
    std::size_t hole = 0;
    const auto copy_up_to = [&](std::size_t to) {
      for (; hole < holes_.size() && holes_[hole] < to; ++hole) {
        if (i < holes_[hole]) block->Append(*block_, i, holes_[hole] - i);
        i = holes_[hole] + 1;
      }
      if (i < to) block->Append(*block_, i, to - i);
      i = std::max(i, to);
    };
    for (const Added& added : added_) {
      copy_up_to(added.before);
      block->Append(&added.entry, 1);
    }
    copy_up_to(end_);
    end_ = static_cast<std::uint32_t>(size());
    Take(std::move(block));
    holes_.clear();
    added_.clear();
  }

  void Take(RankedBlockPointer<Entry> block) {
    block->Finish();
    entries_ = block->entries();
    fences_ = block->fences();
    block_ = std::move(block);
  }

  RankedBlockPointer<Entry> block_;
  // Of the block: a look-up need not wait for the block itself to come from memory.
  const Entry* entries_ = nullptr;
  const Value* fences_ = nullptr;
  std::uint32_t end_ = 0;                         // Entries of the block from here on have left.
  InlineVector<std::uint32_t, kEditsMax> holes_;  // Those before that have left, ascending.
  InlineVector<Added, kEditsMax> added_;          // In the order of the list.
};

// What any of the beans takes at most; 0 if one of them has no bound.
template <typename... Choices>
constexpr std::size_t ChoiceBytesMax(TypeList<Choices...>* /*choices*/) {
  if ((... || (EncodedSize<typename Choices::Bean>::kFixed == 0))) return 0;
  return std::max({EncodedSize<typename Choices::Bean>::kFixed...});
}

}  // namespace zeze::internal

namespace zeze {

// Encoded as a list of its entries, of which most have a bound: then one that came or went is all
// that a commit has to look at.
template <typename Entry>
struct EncodedSize<internal::RankedList<Entry>> {
  using Ranked = internal::RankedList<Entry>;
  static constexpr std::size_t kFixed = 0;
  static constexpr std::size_t kValueBytesMax =
      internal::ChoiceBytesMax(static_cast<typename Ranked::Value::Choices::List*>(nullptr));

  static std::size_t Of(const Ranked& ranked) {
    if constexpr (kValueBytesMax != 0) {
      return internal::kContainerBytesMax +
             ranked.size() * (EncodedSize<Entry>::Of(Entry{}) + kValueBytesMax);
    } else {
      std::size_t sum = internal::kContainerBytesMax;
      ranked.ForEach([&sum](const Entry& entry) {
        sum += EncodedSize<Entry>::Of(entry);
        return true;
      });
      return sum;
    }
  }
  static std::ptrdiff_t Change(const Ranked& ranked, const Ranked& older) {
    return internal::Signed(Of(ranked)) - internal::Signed(Of(older));
  }
};

}  // namespace zeze
