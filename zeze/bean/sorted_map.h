// SortedMap: a persistent map ordered by key. Copying it costs one increment, editing a copy leaves
// the original as it is, and both go on sharing what they have in common.
//
//   zeze::SortedMap<std::int64_t, std::string> ranking;
//   ranking.Put(1200, "ann");
//   ranking.Put(900, "bob");
//   const auto* best = ranking.Last();                     // best->key is 1200, best->value "ann".
//   for (const auto& [score, name] : ranking.Range(0, 1000)) Print(score, name);
//   ranking.RankOf(1200);                                  // 1: one key is smaller.
//
// One pointer, null when empty. Keys are ordered by KeyLess (hash.h). Iteration is ascending and
// goes over the contents at its start, whatever happens to the map meanwhile. Every look-up and
// edit costs O(log n), also by rank. Otherwise as map.h.

#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "zeze/base/usage_error.h"
#include "zeze/bean/hash.h"
#include "zeze/bean/internal/sequence.h"
#include "zeze/bean/internal/slip.h"
#include "zeze/bean/internal/slot.h"
#include "zeze/bean/internal/stable_iterator.h"
#include "zeze/bean/map.h"

namespace zeze {

template <typename K, typename V>
class SortedMap {
 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = MapEntry<K, V>;

 private:
  using Traits = internal::SequenceTraits<value_type>;
  using Slot = internal::Slot<value_type>;

 public:
  using const_iterator = internal::StableIterator<value_type, Traits>;
  using iterator = const_iterator;

  // What a range-for walks.
  class View {
   public:
    explicit View(const_iterator begin) : begin_(std::move(begin)) {}
    const_iterator begin() const { return begin_; }
    const_iterator end() const { return {}; }

   private:
    const_iterator begin_;
  };

  SortedMap() noexcept = default;
  SortedMap(std::initializer_list<value_type> entries) {
    for (const value_type& entry : entries) Put(entry.key, entry.value);
  }
  SortedMap(const SortedMap& other) noexcept : root_(other.root_) { Traits::Share(root_); }
  SortedMap(SortedMap&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
  SortedMap& operator=(SortedMap other) noexcept {
    std::swap(root_, other.root_);
    return *this;
  }
  ~SortedMap() { Traits::Release(root_); }

  std::size_t size() const { return root_ == nullptr ? 0 : root_->size; }
  bool empty() const { return root_ == nullptr; }
  const_iterator begin() const { return IterateRanks(0, size()); }
  const_iterator end() const { return {}; }

  // Null when the key is not there.
  const V* Find(KeyView<K> key) const {
    const value_type* entry = EntryOf(key, RankOf(key));
    return entry == nullptr ? nullptr : &entry->value;
  }
  bool Contains(KeyView<K> key) const { return EntryOf(key, RankOf(key)) != nullptr; }

  // The value of a key that must be there; throws UsageError when it is not.
  const V& Get(KeyView<K> key) const {
    const V* value = Find(key);
    if (value == nullptr) [[unlikely]]
      internal::ThrowNoKey(key);
    return *value;
  }

  // The entry with the smallest and the largest key; null when empty.
  const value_type* First() const { return AtRank(0); }
  const value_type* Last() const { return AtRank(size() - 1); }

  // The nearest entry with a key <= key, < key, >= key, > key; null when there is none.
  const value_type* Floor(KeyView<K> key) const { return AtRank(RankBehind(key) - 1); }
  const value_type* Lower(KeyView<K> key) const { return AtRank(RankOf(key) - 1); }
  const value_type* Ceiling(KeyView<K> key) const { return AtRank(RankOf(key)); }
  const value_type* Higher(KeyView<K> key) const { return AtRank(RankBehind(key)); }

  // How many keys are smaller than this one, which need not be there itself.
  std::size_t RankOf(KeyView<K> key) const {
    return internal::SequenceLowerBound(root_, SlotBytes(), &key, &LessThan);
  }

  // The entry that has this many smaller keys; null when there is none.
  const value_type* AtRank(std::size_t rank) const {
    if (rank >= size()) return nullptr;
    return &Slot::Read(internal::SequenceAt(root_, rank, SlotBytes()));
  }

  // The entries with from <= key < to; with from <= key; with key < to.
  View Range(KeyView<K> from, KeyView<K> to) const {
    return View(IterateRanks(RankOf(from), RankOf(to)));
  }
  View From(KeyView<K> from) const { return View(IterateRanks(RankOf(from), size())); }
  View Until(KeyView<K> to) const { return View(IterateRanks(0, RankOf(to))); }

  // Adds or replaces. True when the key is new.
  bool Put(K key, V value) {
    const std::size_t rank = RankOf(key);
    if (EntryOf(key, rank) != nullptr) {
      EditAt(rank).value = std::move(value);
      return false;
    }
    Slot::Construct(internal::SequenceInsert(root_, rank, Traits::Ops()),
                    value_type{std::move(key), std::move(value)});
    return true;
  }

  // True when the key was there.
  bool Erase(KeyView<K> key) {
    const std::size_t rank = RankOf(key);
    if (EntryOf(key, rank) == nullptr) return false;
    internal::SequenceErase(root_, rank, Traits::Ops());
    return true;
  }

  // Calls edit(V&); false when the key is not there. The callback may read this map but must
  // neither edit nor copy it.
  template <typename Edit>
  bool Update(KeyView<K> key, Edit&& edit) {
    const std::size_t rank = RankOf(key);
    if (EntryOf(key, rank) == nullptr) return false;
    value_type& entry = EditAt(rank);
    const internal::RootRef<Traits> guard(root_);  // An edit inside the callback cannot free it.
    std::forward<Edit>(edit)(entry.value);
    ZEZE_REQUIRE(guard.get() == root_, internal::kEditedInUpdate);
    return true;
  }

  // The same, with a default value added first when the key is not there.
  template <typename Edit>
  void UpdateOrAdd(K key, Edit&& edit) {
    if (!Contains(key)) Put(key, V{});
    Update(key, std::forward<Edit>(edit));
  }

  // The value of the key, which is make() if it was not there.
  template <typename Make>
  const V& GetOrAdd(K key, Make&& make) {
    if (const V* value = Find(key)) return *value;
    V made = std::forward<Make>(make)();
    Put(key, std::move(made));
    return *Find(key);
  }
  const V& GetOrAdd(K key) {
    return GetOrAdd(std::move(key), [] { return V{}; });
  }

  void Clear() { Traits::Release(std::exchange(root_, nullptr)); }

  // Whether both share the same contents in memory: then they are equal, at no cost.
  bool IsSameAs(const SortedMap& other) const { return root_ == other.root_; }

  friend bool operator==(const SortedMap& a, const SortedMap& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size() && a.root_ != b.root_;) {
      const internal::SequenceRun x = internal::SequenceRunAt(a.root_, i, SlotBytes());
      const internal::SequenceRun y = internal::SequenceRunAt(b.root_, i, SlotBytes());
      const std::size_t count = std::min(x.count, y.count);
      for (std::size_t j = 0; x.slots != y.slots && j < count; ++j) {
        const value_type& left = Slot::Read(x.slots + j * SlotBytes());
        const value_type& right = Slot::Read(y.slots + j * SlotBytes());
        if (&left != &right && !(left == right)) return false;
      }
      i += count;
    }
    return true;
  }

  // Calls change(const V* old_value, const V* new_value, const K& key), keys ascending, for each
  // key whose entries may differ from `older` to this map; null where the key is missing. Skips the
  // leaves that both share.
  template <typename Change>
  void ForEachChangeSince(const SortedMap& older, Change&& change) const {
    if (root_ == older.root_) return;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < older.size() && j < size()) {
      const internal::SequenceRun x = internal::SequenceRunAt(older.root_, i, SlotBytes());
      const internal::SequenceRun y = internal::SequenceRunAt(root_, j, SlotBytes());
      if (x.slots == y.slots) {
        // A leaf that both share, from the same element on.
        i += x.count;
        j += y.count;
        continue;
      }
      const std::byte* x_end = x.slots + x.count * SlotBytes();
      const std::byte* y_end = y.slots + y.count * SlotBytes();
      for (const std::byte *a = x.slots, *b = y.slots; a != x_end && b != y_end;) {
        const value_type& left = Slot::Read(a);
        const value_type& right = Slot::Read(b);
        const bool takes_left = !KeyLess(right.key, left.key);
        const bool takes_right = !KeyLess(left.key, right.key);
        if (&left != &right) {
          change(takes_left ? &left.value : nullptr, takes_right ? &right.value : nullptr,
                 takes_left ? left.key : right.key);
        }
        if (takes_left) a += SlotBytes(), ++i;
        if (takes_right) b += SlotBytes(), ++j;
      }
    }
    const V* const none = nullptr;
    for (; i < older.size(); ++i) change(&older.AtRank(i)->value, none, older.AtRank(i)->key);
    for (; j < size(); ++j) change(none, &AtRank(j)->value, AtRank(j)->key);
  }

 private:
  friend struct ContainerAccess;

  static constexpr std::size_t SlotBytes() { return sizeof(typename Slot::Stored); }

  static bool LessThan(const void* slot, const void* key) {
    return KeyLess(Slot::Read(slot).key,
                   *static_cast<const std::remove_reference_t<KeyView<K>>*>(key));
  }

  // How many keys are smaller than or equal to this one.
  std::size_t RankBehind(KeyView<K> key) const {
    const std::size_t rank = RankOf(key);
    return EntryOf(key, rank) == nullptr ? rank : rank + 1;
  }

  // The entry at the rank of the key, if it has that key.
  const value_type* EntryOf(KeyView<K> key, std::size_t rank) const {
    const value_type* entry = AtRank(rank);
    return entry != nullptr && !KeyLess(key, entry->key) ? entry : nullptr;
  }

  value_type& EditAt(std::size_t rank) {
    return Slot::Write(internal::SequenceMutable(root_, rank, Traits::Ops()));
  }

  const_iterator IterateRanks(std::size_t first, std::size_t last) const {
    return {root_, {root_, first, last, SlotBytes()}};
  }

  internal::SequenceNode* root_ = nullptr;
};

}  // namespace zeze
