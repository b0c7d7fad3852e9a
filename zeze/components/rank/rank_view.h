// RankView: a leaderboard at one moment, merged from its groups.
//
//   for (const auto& entry : view->Shown()) Show(entry.role, entry.value);
//   if (auto position = view->PositionOf(role)) Show(*position);
//   const zeze::RankPosition mine = view->EstimatePosition(my_value);     // Also below the board.

#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeze/base/hash.h"
#include "zeze/base/stable_sort.h"
#include "zeze/components/rank/rank_group.h"

namespace zeze {

// Counted from 1.
struct RankPosition {
  std::int64_t position = 0;
  bool exact = false;
};

// Immutable, so threads share it. Spans are good while somebody holds the view: in a loop, keep its
// pointer in a variable first.
template <typename... Beans>
class RankView {
 public:
  using Group = RankGroup<Beans...>;
  using Value = typename Group::Value;
  using Entry = typename Group::Entry;
  using Order = RankOrder<Value>;

  // Of the groups that there are.
  RankView(const std::vector<Group>& groups, Order better, std::size_t shown_count,
           std::chrono::nanoseconds taken_at)
      : better_(std::move(better)), taken_at_(taken_at) {
    MergeEntries(groups);
    CountCertain(groups, shown_count);
    shown_count_ = std::min(shown_count, certain_count_);
    CollectOutside(groups);
  }

  // What players see, the best first: the true beginning of the board. Fewer than the shown count
  // if there are no more, or if somebody whose value is not known might be better than the next.
  // Among equal values of different groups the order has no meaning.
  std::span<const Entry> Shown() const { return {entries_.data(), shown_count_}; }

  // The same down to where it is certain: all that the groups have computed, or less.
  std::span<const Entry> Certain() const { return {entries_.data(), certain_count_}; }

  // The exact position of a role; none if it is not in the certain part.
  std::optional<std::int64_t> PositionOf(std::int64_t role) const {
    const auto found = places_.find(role);
    if (found == places_.end()) return std::nullopt;
    return static_cast<std::int64_t>(found->second) + 1;
  }

  // One more than how many are better than this value: exact while the value is no worse than
  // everybody outside of the computed lists, an estimate from the samples of the groups below.
  // Standard error, with M better roles outside of the lists and one role in w sampled:
  // sqrt(M * (w - 1)).
  RankPosition EstimatePosition(const Value& value) const {
    const auto listed =
        std::partition_point(entries_.begin(), entries_.end(),
                             [&](const Entry& entry) { return better_(entry.value, value); });
    const auto sampled =
        std::partition_point(outside_.begin(), outside_.end(),
                             [&](const Weighted& one) { return better_(one.value, value); });
    const double behind_lists = sampled == outside_.begin() ? 0 : std::prev(sampled)->sum;
    return {.position = listed - entries_.begin() + std::llround(behind_lists) + 1,
            .exact = best_outside_.empty() || !better_(best_outside_, value)};
  }

  // How many roles were ever updated, with a standard error of one part in the root of how many
  // are sampled.
  std::int64_t EstimateRoleCount() const { return std::llround(role_count_); }

  // By the clock of the board.
  std::chrono::nanoseconds taken_at() const { return taken_at_; }

 private:
  // A sampled role outside of the lists stands for so many like it; the sum is of all up to it.
  struct Weighted {
    Value value;
    double sum;
  };

  void MergeEntries(const std::vector<Group>& groups) {
    struct Source {
      std::vector<Entry> entries;
      std::size_t next;
      std::size_t group;

      const Value& value() const { return entries[next].value; }
    };
    std::size_t count = 0;
    std::vector<Source> sources;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      count += groups[i].entries.size();
      if (!groups[i].entries.empty()) sources.push_back({groups[i].entries.ToVector(), 0, i});
    }
    entries_.reserve(count);
    const auto worse = [this](const Source& a, const Source& b) {
      if (better_(b.value(), a.value())) return true;
      return b.group < a.group && !better_(a.value(), b.value());
    };
    std::make_heap(sources.begin(), sources.end(), worse);
    while (!sources.empty()) {
      std::pop_heap(sources.begin(), sources.end(), worse);
      Source& source = sources.back();
      entries_.push_back(std::move(source.entries[source.next]));
      if (++source.next == source.entries.size()) {
        sources.pop_back();
      } else {
        std::push_heap(sources.begin(), sources.end(), worse);
      }
    }
  }

  void CountCertain(const std::vector<Group>& groups, std::size_t shown_count) {
    for (const Group& group : groups) {
      const Value outside = group.OutsideFor(shown_count);
      if (outside.empty()) continue;
      if (best_outside_.empty() || better_(outside, best_outside_)) best_outside_ = outside;
    }
    const auto end =
        std::partition_point(entries_.begin(), entries_.end(), [this](const Entry& entry) {
          return best_outside_.empty() || !better_(best_outside_, entry.value);
        });
    certain_count_ = static_cast<std::size_t>(end - entries_.begin());
    places_.reserve(certain_count_);
    for (std::size_t i = 0; i < certain_count_; ++i) places_.emplace(entries_[i].role, i);
  }

  void CollectOutside(const std::vector<Group>& groups) {
    role_count_ = static_cast<double>(entries_.size());
    for (const Group& group : groups) {
      // One role in so many is in the sample.
      const double weight =
          group.sample_limit == 0
              ? 1
              : std::ldexp(1, 64) /
                    static_cast<double>(static_cast<std::uint64_t>(group.sample_limit));
      for (const Entry& entry : group.sample) {
        if (!group.Contains(entry.role)) outside_.push_back({entry.value, weight});
      }
    }
    StableSort(outside_,
               [this](const Weighted& a, const Weighted& b) { return better_(a.value, b.value); });
    double sum = 0;
    for (Weighted& one : outside_) one.sum = sum += one.sum;
    role_count_ += sum;
  }

  const Order better_;
  const std::chrono::nanoseconds taken_at_;
  std::vector<Entry> entries_;
  std::size_t certain_count_ = 0;  // Entries that are no worse than anybody outside.
  std::size_t shown_count_ = 0;
  std::unordered_map<std::int64_t, std::size_t, SeededHash> places_;  // Of the certain ones.
  Value best_outside_;
  std::vector<Weighted> outside_;  // The best first.
  double role_count_ = 0;
};

}  // namespace zeze
