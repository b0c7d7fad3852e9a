// The second half of Analysis: from what was read of each key to the order of its appends.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/history/analysis.h"
#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/index_map.h"

namespace zeze::history::internal {

namespace {

// Sorts item numbers by key, keeping their order within a key. Returns where each key begins.
template <typename Items>
std::vector<std::uint32_t> CountingSort(const Items& items, std::size_t key_count,
                                        std::vector<std::uint32_t>& sorted) {
  std::vector<std::uint32_t> begin(key_count + 1, 0);
  for (const auto& item : items) ++begin[item.key + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  sorted.resize(items.size());
  for (std::uint32_t i = 0; i < items.size(); ++i) sorted[next[items[i].key]++] = i;
  return begin;
}

}  // namespace

void Analysis::GroupByKey() {
  append_begin_ = CountingSort(appends_, keys_.size(), appends_by_key_);
  read_begin_ = CountingSort(reads_, keys_.size(), reads_by_key_);
  order_.assign(appends_.size(), kNone);
  witness_.assign(appends_.size(), kNone);
  order_length_.assign(keys_.size(), 0);
  has_gaps_.assign(keys_.size(), 0);
}

// From the strongest evidence to the weakest, so that a contradiction is blamed on the weaker: what
// committed transactions read, what others read, what the state after a crash shows, and where a
// transaction that read the list must have appended.
void Analysis::OrderKey(std::uint32_t key) {
  const auto reads =
      std::span(reads_by_key_).subspan(read_begin_[key], read_begin_[key + 1] - read_begin_[key]);
  std::ranges::sort(reads, [&](std::uint32_t left, std::uint32_t right) {
    const std::uint32_t left_length = reads_[left].length;
    const std::uint32_t right_length = reads_[right].length;
    return left_length != right_length ? left_length < right_length : left < right;
  });
  PlaceReads(reads, [&](std::uint32_t i) { return !IsState(i) && roles_[i] == Role::kWriter; });
  PlaceReads(reads, [&](std::uint32_t i) { return !IsState(i) && roles_[i] == Role::kReader; });
  PlaceReads(reads, [&](std::uint32_t i) { return IsState(i); });
  std::vector<std::uint32_t> block;
  const auto place_block = [&] {
    if (!block.empty()) PlaceBlock(block);
    block.clear();
  };
  for (const std::uint32_t append : AppendsOf(key)) {
    if (!IsWriter(append)) continue;
    if (!block.empty() && appends_[block[0]].transaction != appends_[append].transaction) {
      place_block();
    }
    block.push_back(append);
  }
  place_block();
  FinishOrder(key);
  CheckHashes(key);
}

// The longest first, and from each back through what the writer of its last element had read: if
// the lists of a key contradict each other, because an update was lost, then the longest branch is
// the order and only reads of the others are at fault.
template <typename Chosen>
void Analysis::PlaceReads(std::span<const std::uint32_t> reads, const Chosen& chosen) {
  for (std::size_t end = reads.size(); end > 0;) {
    std::size_t begin = end;
    while (begin > 0 && reads_[reads[begin - 1]].length == reads_[reads[end - 1]].length) --begin;
    for (std::size_t i = begin; i < end; ++i) {
      std::uint32_t read = reads[i];
      while (read != kNone && !reads_[read].placed && chosen(reads_[read].transaction)) {
        reads_[read].placed = true;
        PlaceRead(read);
        const std::uint32_t last = reads_[read].broken ? kNone : reads_[read].last_append;
        read = last == kNone ? kNone : appends_[last].read;
      }
    }
    end = begin;
  }
}

void Analysis::PlaceRead(std::uint32_t read) {
  Read& placing = reads_[read];
  const std::size_t append_count = AppendsOf(placing.key).size();
  if (placing.length > append_count && !placing.broken) {
    placing.broken = true;
    anomalies.Add(AnomalyKind::kDuplicateElement, {Id(placing.transaction)}, [&] {
      return fmt::format("{} read a list of {} with {} elements, but only {} were ever appended",
                         Name(placing.transaction), KeyName(keys_[placing.key]), placing.length,
                         append_count);
    });
  }
  if (placing.broken) return;
  const Operation& seen = history_.operations()[placing.operation];
  if (seen.kind != OperationKind::kReadList) {
    if (placing.last_append != kNone) Place(read, placing.length - 1, placing.last_append);
    return;
  }
  const auto elements = history_.elements(seen).first(placing.length);
  for (std::uint32_t i = 0; i < elements.size() && !placing.broken; ++i) {
    Place(read, i, append_index_.Find(seen.key, elements[i]));
  }
}

void Analysis::Place(std::uint32_t read, std::uint32_t position, std::uint32_t append) {
  Read& placing = reads_[read];
  const std::size_t base = append_begin_[placing.key];
  const std::uint32_t there = order_[base + position];
  Append& placed = appends_[append];
  if (there == append) return;
  if (there == kNone && placed.position == kNone) {
    order_[base + position] = append;
    witness_[base + position] = read;
    placed.position = position;
    return;
  }
  placing.broken = true;
  const std::uint32_t at = there == kNone ? placed.position : position;
  const std::uint32_t other = reads_[witness_[base + at]].transaction;
  const std::string key = KeyName(keys_[placing.key]);
  if (other == placing.transaction) {
    anomalies.Add(AnomalyKind::kDuplicateElement, {Id(other)}, [&] {
      return fmt::format("{} read a list of {} that holds element {} twice, at index {} and {}",
                         Name(other), key, ElementOf(append), at, position);
    });
    return;
  }
  AddIncompatibleOrder(placing, {Id(placing.transaction), Id(other)}, [&] {
    return fmt::format(
        "{} read a list of {} with element {} at index {}, {} one with element {} "
        "at index {}",
        Name(placing.transaction), key, ElementOf(append), position, Name(other),
        ElementOf(order_[base + at]), at);
  });
}

// The appends of one transaction to one key are neighbours: one known place tells the others. If
// none is known, they follow what the transaction had read.
void Analysis::PlaceBlock(std::span<const std::uint32_t> block) {
  const std::size_t base = append_begin_[appends_[block[0]].key];
  const std::size_t room = AppendsOf(appends_[block[0]].key).size();
  const std::uint32_t read = appends_[block[0]].read;
  std::uint32_t start = kNone;
  for (std::uint32_t i = 0; i < block.size() && start == kNone; ++i) {
    const std::uint32_t position = appends_[block[i]].position;
    if (position != kNone && position >= i) start = position - i;
  }
  const bool seen = start != kNone;
  if (!seen && read != kNone && !reads_[read].broken) start = reads_[read].length;
  if (start == kNone || start + block.size() > room) return;
  if (!seen && order_[base + start] != kNone) {
    for (const std::uint32_t append : block) appends_[append].misplaced = true;
    return;
  }
  for (std::uint32_t i = 0; i < block.size(); ++i) {
    if (appends_[block[i]].position != kNone || order_[base + start + i] != kNone) continue;
    order_[base + start + i] = block[i];
    witness_[base + start + i] = read;
    appends_[block[i]].position = start + i;
  }
}

void Analysis::FinishOrder(std::uint32_t key) {
  std::uint32_t length = static_cast<std::uint32_t>(AppendsOf(key).size());
  while (length > 0 && order_[append_begin_[key] + length - 1] == kNone) --length;
  for (const std::uint32_t read : ReadsOf(key)) {
    if (!reads_[read].broken) length = std::max(length, reads_[read].length);
  }
  order_length_[key] = length;
  has_gaps_[key] = std::ranges::find(OrderOf(key), kNone) != OrderOf(key).end() ? 1 : 0;
}

// Equal length and equal last element do not make equal lists; the hash of every read must be that
// of the order up to there. Behind a gap the next read is taken at its word.
void Analysis::CheckHashes(std::uint32_t key) {
  const auto order = OrderOf(key);
  const auto reads = ReadsOf(key);
  ListState state;
  bool known = true;
  std::size_t next = 0;
  for (std::uint32_t length = 0; length <= order.size(); ++length) {
    if (length > 0) {
      known = known && order[length - 1] != kNone;
      const Element element = order[length - 1] == kNone ? 0 : ElementOf(order[length - 1]);
      state = known ? state.Extended(element) : ListState{length, element, 0};
    }
    for (; next < reads.size() && reads_[reads[next]].length <= length; ++next) {
      Read& read = reads_[reads[next]];
      if (read.broken || !read.has_hash) continue;
      if (!known) {
        state.hash = read.hash;
        known = true;
      }
      if (read.hash == state.hash) continue;
      read.broken = true;
      AddIncompatibleOrder(read, {Id(read.transaction)}, [&] {
        return fmt::format(
            "{} read a list of {} (length {}, last element {}) whose other elements "
            "are not those that the rest of the history shows",
            Name(read.transaction), KeyName(keys_[key]), length,
            history_.operations()[read.operation].element);
      });
    }
  }
}

// After one lost update every read of the branch that lost contradicts the order. One of them for
// each key tells enough.
void Analysis::AddIncompatibleOrder(const Read& read, std::vector<TransactionId> transactions,
                                    const std::function<std::string()>& text) {
  if (std::exchange(incompatible_key_, read.key) == read.key && !IsState(read.transaction)) {
    ++anomalies.count;
    return;
  }
  anomalies.Add(AnomalyKind::kIncompatibleOrder, std::move(transactions), text);
}

}  // namespace zeze::history::internal
