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
#include <utility>
#include <vector>

#include "Zeze/Builtin/Game/Rank.h"
#include "zeze/base/hash.h"
#include "zeze/base/stable_sort.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/inline_dynamic.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/components/rank/internal/ranked_list.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

using BValueLong = Zeze::Builtin::Game::Rank::BValueLong;

template <typename... Beans>
struct RankChoices {
  using List = TypeList<Choice<Beans, Beans::kTypeId>...>;
};

// What a role is ranked by: one of the beans.
template <typename... Beans>
using RankValue = InlineDynamic<RankChoices<Beans...>>;

// Whether a comes before b: the larger BValueLong, unless a function says otherwise. A number that
// is not there is the least.
template <typename Value>
class RankOrder {
 public:
  using Function = std::function<bool(const Value& a, const Value& b)>;

  RankOrder() = default;
  explicit RankOrder(Function better) : better_(std::move(better)), own_(better_ != nullptr) {}

  bool operator()(const Value& a, const Value& b) const {
    if (own_) return better_(a, b);
    if constexpr (internal::ChoiceIdOf<BValueLong, typename Value::Choices::List>::kValue != 0) {
      const BValueLong* x = a.template As<BValueLong>();
      const BValueLong* y = b.template As<BValueLong>();
      return x != nullptr && (y == nullptr || x->Value > y->Value);
    } else {
      return false;
    }
  }

 private:
  Function better_;
  bool own_ = false;  // Not by the number: that needs no call.
};

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
  kNone,     // The role is ranked as it was, or was and is outside.
  kEntered,  // The role is new in the list.
  kMoved,    // The role is in the list with another rank.
  kLeft,     // The role is no longer in the list.
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

// A BRankList of any beans, as it is stored. The variables from 101 on are ours: Zeze 1.6 skips
// them, and drops them when it writes the record.
template <typename... Beans>
struct StoredRankGroup {
  static constexpr std::int64_t kTypeId = Zeze::Builtin::Game::Rank::BRankList::kTypeId;
  static constexpr std::string_view kFullName = Zeze::Builtin::Game::Rank::BRankList::kFullName;

  List<RankEntry<Beans...>> entries = {};
  RankValue<Beans...> outside = {};
  std::int32_t level = 0;
  List<RankEntry<Beans...>> sample = {};
  std::int64_t sample_limit = 0;
  std::int64_t generation = 0;
  Map<std::int64_t, std::int64_t> senders = {};

  // Of this struct or of one with the same variables.
  template <typename Self = StoredRankGroup, typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "RankList"}, &Self::entries);
    visit(Field{101, "Outside"}, &Self::outside);
    visit(Field{102, "ConcurrentLevel"}, &Self::level);
    visit(Field{103, "Sample"}, &Self::sample);
    visit(Field{104, "SampleLimit"}, &Self::sample_limit);
    visit(Field{105, "Generation"}, &Self::generation);
    visit(Field{106, "Senders"}, &Self::senders);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const StoredRankGroup& other) const { return EqualFields(*this, other); }
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }
};

// The same as transactions see it.
template <typename... Beans>
struct RankGroup {
  using Stored = StoredRankGroup<Beans...>;
  using Value = RankValue<Beans...>;
  using Entry = RankEntry<Beans...>;
  using Rule = RankRule<Value>;
  using Entries = internal::RankedList<Entry>;
  static constexpr std::int64_t kTypeId = Stored::kTypeId;
  static constexpr std::string_view kFullName = Stored::kFullName;

  Entries entries = {};    // The best first.
  Value outside = {};      // Nobody outside is better. Empty: nobody is outside.
  std::int32_t level = 0;  // Into how many groups the board is cut. 0: Zeze 1.6 wrote this.
  // The roles, in the list or not, that come first in the order of RankSamplePlace, with their
  // values: a fair sample of all that were ever updated.
  List<Entry> sample = {};
  // Roles whose place (unsigned) is at or behind this one are not in the sample. 0: all are in it.
  std::int64_t sample_limit = 0;
  // Deliveries of updates must name it (RankOutbox); a new one refuses all that are on their way.
  // 0: none has come yet.
  std::int64_t generation = 0;
  // The last delivery of each process, since the generation began.
  Map<std::int64_t, std::int64_t> senders = {};

  // What an update will do; see Plan.
  struct Step {
    enum class Kind : std::uint8_t { kStay, kReplace, kEnter, kMove, kLeave, kStayOutside };
    Kind kind = Kind::kStay;
    bool edits = false;  // False: nothing is to be written.
    bool sample_has_role = false;
    typename Entries::Place place = {};  // Of the role before.
    typename Entries::Neighbourhood near = {};
    std::size_t sample_at = kNoSample;

    RankChange change() const;
  };

  void BeginGeneration(std::int64_t stamp) {
    generation = stamp;
    senders.Clear();
  }

  bool Contains(std::int64_t role) const { return static_cast<bool>(entries.Find(role)); }

  Step Plan(std::int64_t role, const Value& value, const Rule& rule) const;
  // On a copy of the group for which the step was planned.
  void Apply(const Step& step, std::int64_t role, const Value& value, const Rule& rule);

  RankChange Update(std::int64_t role, const Value& value, const Rule& rule) {
    const Step step = Plan(role, value, rule);
    if (step.edits) Apply(step, role, value, rule);
    return step.change();
  }

  // The role is gone, in the list and out of it. False if the group knew nothing of it.
  bool Remove(std::int64_t role);

  // Takes over what Zeze 1.6 wrote: `shown_count` is its rank size.
  void Adopt(std::int32_t new_level, std::size_t shown_count);

  // `outside`, also of a group that Zeze 1.6 wrote. It never lets anybody go below its rank size:
  // a shorter list has everybody. Of a longer one all that is known is that the last is the worst.
  Value OutsideFor(std::size_t shown_count) const {
    if (level != 0 || entries.empty() || entries.size() < shown_count) return outside;
    return entries.Last().value;
  }

  // Adds what another group knows. Of a role in both the better value counts.
  void Merge(const RankGroup& other, const Rule& rule, std::size_t shown_count);

  Stored ToStored() const;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    Stored::template ForEachField<RankGroup>(visit);
  }
  void Encode(ByteWriter& out) const { ToStored().Encode(out); }
  void Decode(ByteReader& in);
  bool operator==(const RankGroup& other) const { return ToStored() == other.ToStored(); }
  std::string ToString() const { return ToStored().ToString(); }
  bool HasNegative() const { return ToStored().HasNegative(); }

 private:
  static constexpr std::size_t kNoSample = ~std::size_t{0};

  bool BeatsAllOutside(const Value& value, const Rule& rule) const {
    return outside.empty() || rule.better(value, outside);
  }
  std::size_t SamplePlace(std::uint64_t place) const {
    return sample.PartitionPoint(
        [place](const Entry& entry) { return RankSamplePlace(entry.role) < place; });
  }

  void PlanSample(std::int64_t role, const Value& value, const Rule& rule, Step& step) const;
  void ApplySample(const Step& step, std::int64_t role, const Value& value, const Rule& rule);
  void TrimSample(const Rule& rule);
  void MergeSample(const RankGroup& other, const Rule& rule);
  void Trim(const Rule& rule);
};

template <typename... Beans>
RankChange RankGroup<Beans...>::Step::change() const {
  switch (kind) {
    case Kind::kEnter:
      return RankChange::kEntered;
    case Kind::kMove:
      return RankChange::kMoved;
    case Kind::kLeave:
      return RankChange::kLeft;
    default:
      return RankChange::kNone;
  }
}

template <typename... Beans>
typename RankGroup<Beans...>::Step RankGroup<Beans...>::Plan(std::int64_t role, const Value& value,
                                                             const Rule& rule) const {
  using Kind = typename Step::Kind;
  Step step;
  const bool beats_all_outside = BeatsAllOutside(value, rule);
  if (beats_all_outside) step.near = entries.Fetch(value, rule.better);
  PlanSample(role, value, rule, step);
  step.place = entries.Find(role);
  if (step.place) {
    const Value& old = entries.At(step.place).value;
    if (rule.better(value, old) || rule.better(old, value)) {
      step.kind = beats_all_outside ? Kind::kMove : Kind::kLeave;
    } else if (!(value == old)) {  // The beans differ in what is no rank.
      step.kind = Kind::kReplace;
    }
  } else if (beats_all_outside) {
    const bool room = entries.size() < rule.computed_count;
    const bool enters = room || rule.better(value, entries.Last().value);
    step.kind = enters ? Kind::kEnter : Kind::kStayOutside;
  }
  step.edits = step.edits || step.kind != Kind::kStay;
  return step;
}

template <typename... Beans>
void RankGroup<Beans...>::Apply(const Step& step, std::int64_t role, const Value& value,
                                const Rule& rule) {
  using Kind = typename Step::Kind;
  ApplySample(step, role, value, rule);
  switch (step.kind) {
    case Kind::kStay:
      break;
    case Kind::kReplace:
      entries.Replace(step.place, value);
      break;
    case Kind::kMove:
      entries.Move(step.place, {role, value}, rule.better, step.near);
      break;
    case Kind::kLeave:
      entries.Erase(step.place);
      break;
    case Kind::kEnter:
      entries.Insert({role, value}, rule.better);
      Trim(rule);
      break;
    case Kind::kStayOutside:  // The best of those outside.
      outside = value;
      break;
  }
}

// The last that is dropped is the best of those dropped.
template <typename... Beans>
void RankGroup<Beans...>::Trim(const Rule& rule) {
  while (entries.size() > rule.computed_count) {
    outside = entries.Last().value;
    entries.PopLast();
  }
}

template <typename... Beans>
bool RankGroup<Beans...>::Remove(std::int64_t role) {
  const typename Entries::Place place = entries.Find(role);
  if (place) entries.Erase(place);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (sample[i].role != role) continue;
    sample.Erase(i);
    return true;
  }
  return static_cast<bool>(place);
}

template <typename... Beans>
StoredRankGroup<Beans...> RankGroup<Beans...>::ToStored() const {
  Stored stored{.outside = outside,
                .level = level,
                .sample = sample,
                .sample_limit = sample_limit,
                .generation = generation,
                .senders = senders};
  entries.ForEach([&stored](const Entry& entry) {
    stored.entries.PushBack(entry);
    return true;
  });
  return stored;
}

template <typename... Beans>
void RankGroup<Beans...>::Decode(ByteReader& in) {
  Stored stored;
  stored.Decode(in);
  entries = Entries(std::vector<Entry>(stored.entries.begin(), stored.entries.end()));
  outside = std::move(stored.outside);
  level = stored.level;
  sample = std::move(stored.sample);
  sample_limit = stored.sample_limit;
  generation = stored.generation;
  senders = std::move(stored.senders);
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
  if (step.sample_at == kNoSample) return;
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
  std::vector<Entry> all;
  std::unordered_set<std::int64_t, SeededHash> seen;
  entries.ForEach([&](const Entry& entry) {  // What comes from elsewhere may have a role twice.
    if (seen.insert(entry.role).second) all.push_back(entry);
    return true;
  });
  entries = Entries(std::move(all));
}

template <typename... Beans>
void RankGroup<Beans...>::Merge(const RankGroup& other, const Rule& rule, std::size_t shown_count) {
  const Value theirs = other.OutsideFor(shown_count);
  if (outside.empty() || (!theirs.empty() && rule.better(theirs, outside))) outside = theirs;

  std::vector<Entry> all = entries.ToVector();
  const std::vector<Entry> more = other.entries.ToVector();
  all.insert(all.end(), more.begin(), more.end());
  StableSort(all, [&](const Entry& a, const Entry& b) { return rule.better(a.value, b.value); });
  std::vector<Entry> merged;
  std::unordered_set<std::int64_t, SeededHash> seen;
  for (Entry& entry : all) {
    if (!outside.empty() && rule.better(outside, entry.value)) break;
    if (seen.insert(entry.role).second) merged.push_back(std::move(entry));
  }
  entries = Entries(std::move(merged));
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
