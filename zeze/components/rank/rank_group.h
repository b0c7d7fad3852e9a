// RankGroup: the best of one hash group of a leaderboard, as it is stored, and the rule by which it
// changes.
//
// A group keeps its entries best first, up to a computed count that is greater than the count that
// is ever shown, and besides them one value: the best that anybody who is not in the list may have.
// That makes falling scores exact. With `outside` as that value (none: everybody is in the list),
// an update of a role to v is:
//
//   1. The same rank as before: the place stays. Who reached a value first stays before others.
//   2. v better than outside: the role goes before the first entry that is worse than v. Entries
//      beyond the computed count leave, and outside becomes the value of the best who left.
//   3. Otherwise the role leaves the list, or stays out of it: somebody outside may be better.
//
// Invariant: everybody in the list comes before everybody outside of it. So the list is always the
// true beginning of the group, perhaps a short one, and never has a wrong entry. Where this differs
// from Zeze 1.6 and why: docs/rank.md.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "Zeze/Builtin/Game/Rank.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/inline_dynamic.h"
#include "zeze/bean/list.h"
#include "zeze/components/rank/internal/role_index.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

template <typename... Beans>
struct RankChoices {
  using List = TypeList<Choice<Beans, Beans::kTypeId>...>;
};

// What a role is ranked by: one of the beans.
template <typename... Beans>
using RankValue = InlineDynamic<RankChoices<Beans...>>;

// Strict: whether a comes before b.
template <typename Value>
using RankOrder = std::function<bool(const Value& a, const Value& b)>;

// A BRankValue of any beans.
template <typename... Beans>
struct RankEntry {
  static constexpr std::int64_t kTypeId = Zeze::Builtin::Game::Rank::BRankValue::kTypeId;
  static constexpr std::string_view kFullName = Zeze::Builtin::Game::Rank::BRankValue::kFullName;

  std::int64_t role = 0;
  RankValue<Beans...> value = {};

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "RoleId"}, &RankEntry::role);
    visit(Field{2, "Dynamic"}, &RankEntry::value);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const RankEntry& other) const { return EqualFields(*this, other); }
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }
};

// What an update did to the list.
enum class RankChange : std::uint8_t {
  kNone,     // The role stands where it stood, in the list or outside.
  kEntered,  // The role is new in the list.
  kMoved,
  kLeft,  // The role is no longer in the list.
};

// The place of a role in the fixed pseudo-random order by which samples are drawn. Stored samples
// are in this order: it must never change.
constexpr std::uint64_t RankSamplePlace(std::int64_t role) {
  std::uint64_t x = static_cast<std::uint64_t>(role) + 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

template <typename Value>
struct RankRule {
  const RankOrder<Value>& better;
  std::size_t computed_count;
  std::size_t sample_count;
};

// A BRankList of any beans. The variables from 101 on are ours: Zeze 1.6 skips them, and drops them
// when it writes the record.
template <typename... Beans>
struct RankGroup {
  using Value = RankValue<Beans...>;
  using Entry = RankEntry<Beans...>;
  using Rule = RankRule<Value>;
  static constexpr std::int64_t kTypeId = Zeze::Builtin::Game::Rank::BRankList::kTypeId;
  static constexpr std::string_view kFullName = Zeze::Builtin::Game::Rank::BRankList::kFullName;
  static constexpr std::size_t kNone = internal::RoleIndex::kNone;

  List<Entry> entries = {};  // The best first.
  Value outside = {};        // Nobody outside is better. Empty: nobody is outside.
  std::int32_t level = 0;    // Into how many groups the board is cut. 0: Zeze 1.6 wrote this.
  // The roles, in the list or not, that come first in the order of RankSamplePlace, with their
  // values: a fair sample of all that were ever updated.
  List<Entry> sample = {};
  // Roles whose place (unsigned) is at or behind this one are not in the sample. 0: all are in it.
  std::int64_t sample_limit = 0;

  // What an update will do; see Plan.
  struct Step {
    RankChange change = RankChange::kNone;
    bool edits = false;  // False: nothing is to be written.
    std::size_t from = kNone;
    std::size_t to = kNone;        // In the list without the role. kNone: not in the list.
    bool becomes_outside = false;  // The value is the best of those outside.
    std::size_t sample_at = kNone;
    bool sample_has_role = false;
  };

  // Where the role stands in the list, counted from 0; kNone: it does not.
  std::size_t Find(std::int64_t role) const {
    if (index.size() != entries.size()) return Scan(role);
    for (std::size_t i = index.Find(role, 0); i != kNone; i = index.Find(role, i + 1)) {
      if (entries[i].role == role) return i;
    }
    return kNone;
  }

  Step Plan(std::int64_t role, const Value& value, const Rule& rule) const;
  // The step must have been planned on equal contents.
  void Apply(const Step& step, std::int64_t role, const Value& value, const Rule& rule);

  RankChange Update(std::int64_t role, const Value& value, const Rule& rule) {
    const Step step = Plan(role, value, rule);
    if (step.edits) Apply(step, role, value, rule);
    return step.change;
  }

  // The role is gone, in the list and out of it. False if the group knew nothing of it.
  bool Remove(std::int64_t role);

  // Takes over what Zeze 1.6 wrote: `shown_count` is its rank size.
  void Adopt(std::int32_t new_level, std::size_t shown_count);

  // `outside`, also of a group that Zeze 1.6 wrote. It never lets anybody go below its rank size:
  // a shorter list has everybody. Of a longer one all that is known is that the last is the worst.
  Value OutsideFor(std::size_t shown_count) const {
    if (level != 0 || entries.empty() || entries.size() < shown_count) return outside;
    return entries.back().value;
  }

  // Adds what another group knows. Of a role in both the better value counts.
  void Merge(const RankGroup& other, const Rule& rule, std::size_t shown_count);

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "RankList"}, &RankGroup::entries);
    visit(Field{101, "Outside"}, &RankGroup::outside);
    visit(Field{102, "ConcurrentLevel"}, &RankGroup::level);
    visit(Field{103, "Sample"}, &RankGroup::sample);
    visit(Field{104, "SampleLimit"}, &RankGroup::sample_limit);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const RankGroup& other) const { return EqualFields(*this, other); }
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }

  // Derived from the list, kept by edits and not stored: of another size than the list, it has to
  // be made.
  internal::RoleIndex index = {};

 private:
  std::size_t Scan(std::int64_t role) const {
    std::size_t i = 0;
    for (const Entry& entry : entries) {
      if (entry.role == role) return i;
      ++i;
    }
    return kNone;
  }

  // How many entries come before somebody who reaches this value now.
  std::size_t PlaceOf(const Value& value, const Rule& rule) const {
    return entries.PartitionPoint(
        [&](const Entry& entry) { return !rule.better(value, entry.value); });
  }

  std::size_t SamplePlace(std::uint64_t place) const {
    return sample.PartitionPoint(
        [place](const Entry& entry) { return RankSamplePlace(entry.role) < place; });
  }

  void PlanSample(std::int64_t role, const Value& value, const Rule& rule, Step& step) const;
  void ApplySample(const Step& step, std::int64_t role, const Value& value, const Rule& rule);
  void TrimSample(const Rule& rule);
  void MergeSample(const RankGroup& other, const Rule& rule);
  void MakeIndex();
  void Trim(const Rule& rule);
};

template <typename... Beans>
typename RankGroup<Beans...>::Step RankGroup<Beans...>::Plan(std::int64_t role, const Value& value,
                                                             const Rule& rule) const {
  Step step;
  step.from = Find(role);
  PlanSample(role, value, rule, step);
  if (step.from != kNone) {
    const Value& old = entries[step.from].value;
    const bool rises = rule.better(value, old);
    if (!rises && !rule.better(old, value)) {  // Rule 1; the beans may differ in what is no rank.
      step.to = step.from;
      step.edits = step.edits || !(value == old);
      return step;
    }
    if (outside.empty() || rule.better(value, outside)) {
      const std::size_t place = PlaceOf(value, rule);
      step.to = rises ? place : place - 1;  // A falling role was counted itself.
      step.change = step.to == step.from ? RankChange::kNone : RankChange::kMoved;
    } else {
      step.change = RankChange::kLeft;
    }
    step.edits = true;
    return step;
  }
  if (!outside.empty() && !rule.better(value, outside)) return step;
  const std::size_t place = PlaceOf(value, rule);
  if (place < rule.computed_count) {
    step.to = place;
    step.change = RankChange::kEntered;
  } else {
    step.becomes_outside = true;
  }
  step.edits = true;
  return step;
}

template <typename... Beans>
void RankGroup<Beans...>::Apply(const Step& step, std::int64_t role, const Value& value,
                                const Rule& rule) {
  ApplySample(step, role, value, rule);
  if (step.becomes_outside) outside = value;
  if (step.from == kNone && step.to == kNone) return;
  if (step.from == step.to) {
    entries.Set(step.to, Entry{role, value});
    return;
  }
  if (index.size() != entries.size()) MakeIndex();
  if (step.from != kNone) entries.Erase(step.from);
  if (step.to != kNone) entries.Insert(step.to, Entry{role, value});
  if (step.to == kNone) {
    index.Erase(step.from);
  } else if (step.from == kNone) {
    index.Insert(step.to, role);
  } else {
    index.Move(step.from, step.to);
  }
  Trim(rule);
}

// Entries are ordered, so the last that is dropped is the best of those dropped.
template <typename... Beans>
void RankGroup<Beans...>::Trim(const Rule& rule) {
  while (entries.size() > rule.computed_count) {
    outside = entries.back().value;
    entries.PopBack();
    index.Erase(entries.size());
  }
}

template <typename... Beans>
bool RankGroup<Beans...>::Remove(std::int64_t role) {
  bool known = false;
  if (const std::size_t place = Find(role); place != kNone) {
    if (index.size() != entries.size()) MakeIndex();
    entries.Erase(place);
    index.Erase(place);
    known = true;
  }
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (sample[i].role != role) continue;
    sample.Erase(i);
    return true;
  }
  return known;
}

template <typename... Beans>
void RankGroup<Beans...>::MakeIndex() {
  index.Clear();
  for (const Entry& entry : entries) index.Insert(index.size(), entry.role);
}

template <typename... Beans>
void RankGroup<Beans...>::PlanSample(std::int64_t role, const Value& value, const Rule& rule,
                                     Step& step) const {
  if (rule.sample_count == 0) return;
  const std::uint64_t place = RankSamplePlace(role);
  if (sample_limit != 0 && place >= static_cast<std::uint64_t>(sample_limit)) return;
  const std::size_t at = SamplePlace(place);
  step.sample_has_role = at < sample.size() && sample[at].role == role;
  if (step.sample_has_role && sample[at].value == value) return;
  step.sample_at = at;
  step.edits = true;
}

template <typename... Beans>
void RankGroup<Beans...>::ApplySample(const Step& step, std::int64_t role, const Value& value,
                                      const Rule& rule) {
  if (step.sample_at == kNone) return;
  if (step.sample_has_role) {
    sample.Set(step.sample_at, Entry{role, value});
    return;
  }
  sample.Insert(step.sample_at, Entry{role, value});
  TrimSample(rule);
}

template <typename... Beans>
void RankGroup<Beans...>::TrimSample(const Rule& rule) {
  while (sample.size() > rule.sample_count) {
    sample_limit = static_cast<std::int64_t>(RankSamplePlace(sample.back().role));
    sample.PopBack();
  }
}

template <typename... Beans>
void RankGroup<Beans...>::Adopt(std::int32_t new_level, std::size_t shown_count) {
  outside = OutsideFor(shown_count);
  level = new_level;
  std::unordered_set<std::int64_t> seen;
  for (std::size_t i = 0; i < entries.size();) {  // What comes from elsewhere is not trusted.
    if (seen.insert(entries[i].role).second) {
      ++i;
    } else {
      entries.Erase(i);
    }
  }
}

template <typename... Beans>
void RankGroup<Beans...>::Merge(const RankGroup& other, const Rule& rule, std::size_t shown_count) {
  const Value theirs = other.OutsideFor(shown_count);
  if (outside.empty() || (!theirs.empty() && rule.better(theirs, outside))) outside = theirs;

  std::vector<Entry> all(entries.begin(), entries.end());
  all.insert(all.end(), other.entries.begin(), other.entries.end());
  std::stable_sort(all.begin(), all.end(),
                   [&](const Entry& a, const Entry& b) { return rule.better(a.value, b.value); });
  entries.Clear();
  std::unordered_set<std::int64_t> seen;
  for (const Entry& entry : all) {
    if (!outside.empty() && rule.better(outside, entry.value)) break;
    if (seen.insert(entry.role).second) entries.PushBack(entry);
  }
  MakeIndex();
  Trim(rule);
  MergeSample(other, rule);
}

template <typename... Beans>
void RankGroup<Beans...>::MergeSample(const RankGroup& other, const Rule& rule) {
  if (sample_limit == 0 ||
      (other.sample_limit != 0 &&
       static_cast<std::uint64_t>(other.sample_limit) < static_cast<std::uint64_t>(sample_limit))) {
    sample_limit = other.sample_limit;
  }
  for (const Entry& entry : other.sample) {
    const std::size_t at = SamplePlace(RankSamplePlace(entry.role));
    if (at == sample.size() || sample[at].role != entry.role) {
      sample.Insert(at, entry);
    } else if (rule.better(entry.value, sample[at].value)) {
      sample.Set(at, entry);
    }
  }
  const auto limit = static_cast<std::uint64_t>(sample_limit);
  while (limit != 0 && !sample.empty() && RankSamplePlace(sample.back().role) >= limit) {
    sample.PopBack();
  }
  TrimSample(rule);
}

}  // namespace zeze
