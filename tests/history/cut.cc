#include "tests/history/cut.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/history/analysis.h"
#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/index_map.h"
#include "zeze/base/check.h"

namespace zeze::history {

namespace {

using internal::Analysis;
using internal::kNone;

// The state takes part in the analysis as the last transaction, which read everything: so it also
// tells which transactions of unknown outcome are in it.
History WithState(const History& history, const FinalState& state) {
  History with_state = history;
  with_state.Begin(internal::kStateId, 0, "the recovered state", 0);
  for (const auto& [key, list_state] : state.states()) with_state.Read(key, list_state);
  for (const auto& [key, elements] : state.lists()) with_state.Read(key, elements);
  with_state.End(Outcome::kCommitted, 0);
  return with_state;
}

class CutChecker {
 public:
  CutChecker(const History& history, const Analysis& analysis,
             std::span<const TransactionId> durable)
      : history_(history),
        analysis_(analysis),
        state_(static_cast<std::uint32_t>(analysis.roles().size() - 1)),
        present_length_(analysis.key_count(), 0),
        present_(analysis.roles().size(), kNone),
        absent_(analysis.roles().size(), kNone),
        read_beyond_(analysis.roles().size(), kNone) {
    MarkDurable(durable);
  }

  CutReport Run() {
    TakeAnomaliesOfState();
    for (const auto& read : analysis_.reads()) {
      if (read.transaction == state_) present_length_[read.key] = read.length;
    }
    SortAppends();
    SortReads();
    for (std::uint32_t i = 0; i < state_; ++i) Judge(i);
    return std::move(report_);
  }

 private:
  void MarkDurable(std::span<const TransactionId> durable) {
    std::vector<TransactionId> sorted(durable.begin(), durable.end());
    std::ranges::sort(sorted);
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::size_t found = 0;
    for (std::uint32_t i = 0; i < state_; ++i) {
      durable_.push_back(std::binary_search(sorted.begin(), sorted.end(), analysis_.Id(i)) ? 1 : 0);
      found += durable_.back();
    }
    ZEZE_CHECK(found == sorted.size());
  }

  void TakeAnomaliesOfState() {
    bool blamed = false;
    for (const Anomaly& anomaly : analysis_.anomalies.anomalies) {
      const auto& ids = anomaly.transactions;
      if (std::ranges::find(ids, internal::kStateId) == ids.end()) continue;
      blamed = true;
      const bool is_first = ids[0] == internal::kStateId;
      Add(CutProblemKind::kBadState, is_first ? (ids.size() > 1 ? ids[1] : 0) : ids[0], 0,
          [&] { return anomaly.text; });
    }
    // A contradiction may also be told of the other side only.
    if (blamed || analysis_.anomalies.count == 0) return;
    const Analysis without_state(history_, analysis_.options());
    if (analysis_.anomalies.count <= without_state.anomalies.count) return;
    for (const Anomaly& anomaly : analysis_.anomalies.anomalies) {
      Add(CutProblemKind::kBadState, anomaly.transactions[0], 0,
          [&] { return fmt::format("beside the recovered state, {}", anomaly.text); });
    }
  }

  bool IsPresent(std::uint32_t append) const {
    const auto& checked = analysis_.appends()[append];
    return checked.position != kNone && checked.position < present_length_[checked.key];
  }

  // For each transaction one append that is there and one that is not.
  void SortAppends() {
    for (std::uint32_t i = 0; i < analysis_.appends().size(); ++i) {
      const auto& append = analysis_.appends()[i];
      const Outcome outcome = analysis_.history().transactions()[append.transaction].outcome;
      if (append.undone || (outcome != Outcome::kCommitted && outcome != Outcome::kUnknown)) {
        continue;
      }
      if (IsPresent(i)) {
        if (present_[append.transaction] == kNone) present_[append.transaction] = i;
      } else if (append.position != kNone || !analysis_.HasGaps(append.key)) {
        // Otherwise it may stand at one of the places that are not known.
        if (absent_[append.transaction] == kNone) absent_[append.transaction] = i;
      }
    }
  }

  // For each transaction one read of a list of which the end is not there any more.
  void SortReads() {
    for (std::uint32_t i = 0; i < analysis_.reads().size(); ++i) {
      const auto& read = analysis_.reads()[i];
      if (read.broken || read.length <= present_length_[read.key]) continue;
      if (read_beyond_[read.transaction] == kNone) read_beyond_[read.transaction] = i;
    }
  }

  void Judge(std::uint32_t transaction) {
    const Outcome outcome = analysis_.history().transactions()[transaction].outcome;
    if (outcome == Outcome::kLost) return;
    const bool present = present_[transaction] != kNone;
    const bool absent = absent_[transaction] != kNone;
    const bool beyond = read_beyond_[transaction] != kNone;
    const bool durable = durable_[transaction] != 0;
    report_.survivor_count += present ? 1 : 0;
    if (present && absent) AddHalf(transaction);
    if ((present || durable) && beyond) AddWithoutCause(transaction);
    if (durable && absent && !present) AddDurableLost(transaction);
    if (!present && (absent || beyond)) report_.lost.push_back(analysis_.Id(transaction));
  }

  void AddHalf(std::uint32_t transaction) {
    Add(CutProblemKind::kHalfTransaction, analysis_.Id(transaction), 0, [&] {
      return fmt::format("{}: {} is there, {} is not", analysis_.Name(transaction),
                         Describe(present_[transaction]), Describe(absent_[transaction]));
    });
  }

  void AddWithoutCause(std::uint32_t transaction) {
    const auto& read = analysis_.reads()[read_beyond_[transaction]];
    const auto order = analysis_.OrderOf(read.key);
    std::size_t position = present_length_[read.key];
    while (position + 1 < read.length && order[position] == kNone) ++position;
    const std::uint32_t cause = order[position];
    const std::uint32_t causer = cause == kNone ? state_ : analysis_.appends()[cause].transaction;
    const bool present = present_[transaction] != kNone;
    Add(CutProblemKind::kEffectWithoutCause, analysis_.Id(transaction), analysis_.Id(causer), [&] {
      const std::string seen =
          fmt::format("{} {}; it had read the list of {} (length {})", analysis_.Name(transaction),
                      present ? "is there" : "was acknowledged as durable",
                      analysis_.KeyName(analysis_.key(read.key)), read.length);
      if (cause == kNone) {
        return fmt::format("{}, of which only {} elements are left", seen,
                           present_length_[read.key]);
      }
      return fmt::format("{} with element {}, but {}, which appended that, is not", seen,
                         analysis_.ElementOf(cause), analysis_.Name(causer));
    });
  }

  void AddDurableLost(std::uint32_t transaction) {
    Add(CutProblemKind::kDurableLost, analysis_.Id(transaction), 0, [&] {
      return fmt::format("{} was acknowledged as durable, but {} is not there",
                         analysis_.Name(transaction), Describe(absent_[transaction]));
    });
  }

  std::string Describe(std::uint32_t append) const {
    return fmt::format("element {} of {}", analysis_.ElementOf(append),
                       analysis_.KeyName(analysis_.key(analysis_.appends()[append].key)));
  }

  void Add(CutProblemKind kind, TransactionId first, TransactionId second,
           const std::function<std::string()>& text) {
    ++report_.problem_count;
    std::size_t& count = count_of_kind_[static_cast<std::size_t>(kind)];
    if (++count > analysis_.options().anomalies_max) return;
    report_.problems.push_back({.kind = kind, .first = first, .second = second, .text = text()});
  }

  const History& history_;                     // Without the state.
  const Analysis& analysis_;                   // With the state.
  const std::uint32_t state_;                  // The transaction that stands for the state.
  std::vector<std::uint32_t> present_length_;  // Of each key.
  // Of each transaction, or kNone: see SortAppends and SortReads.
  std::vector<std::uint32_t> present_;
  std::vector<std::uint32_t> absent_;
  std::vector<std::uint32_t> read_beyond_;
  std::vector<std::uint8_t> durable_;
  std::array<std::size_t, 4> count_of_kind_ = {};
  CutReport report_;
};

}  // namespace

std::string_view ToString(CutProblemKind kind) {
  switch (kind) {
    case CutProblemKind::kBadState:
      return "impossible state";
    case CutProblemKind::kHalfTransaction:
      return "half a transaction";
    case CutProblemKind::kEffectWithoutCause:
      return "effect without its cause";
    case CutProblemKind::kDurableLost:
      return "durable transaction lost";
  }
  return "?";
}

std::string CutReport::ToString() const {
  std::string text =
      fmt::format("{} transactions survived the crash, {} did not: ", survivor_count, lost.size());
  auto out = std::back_inserter(text);
  if (ok()) {
    text += "a consistent cut\n";
    return text;
  }
  fmt::format_to(out, "NOT a consistent cut, {} {}\n", problem_count,
                 problem_count == 1 ? "problem" : "problems");
  for (std::size_t i = 0; i < problems.size(); ++i) {
    fmt::format_to(out, "{}. {}: {}\n", i + 1, history::ToString(problems[i].kind),
                   problems[i].text);
  }
  if (problem_count > problems.size()) {
    fmt::format_to(out, "... and {} more\n", problem_count - problems.size());
  }
  return text;
}

CutReport CheckCut(const History& history, const FinalState& state,
                   std::span<const TransactionId> durable, const Options& options) {
  Options all = options;
  all.readers = Options::Readers::kAll;
  const History with_state = WithState(history, state);
  const Analysis analysis(with_state, all);
  return CutChecker(history, analysis, durable).Run();
}

}  // namespace zeze::history
