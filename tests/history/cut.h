// CheckCut: whether the state found after a crash is a consistent cut of the history.
//
//   FinalState state;
//   for (const auto& [key, list] : ReadEverything(database)) state.Add(key, list);
//   const CutReport report = CheckCut(history, state, acknowledged_as_durable);
//   EXPECT_TRUE(report.ok()) << report.ToString();
//
// prints, for example:
//
//   effect without its cause: T13 `buy` is there; it had read the list of key 7 (length 3) with
//   element 45, but T12 `sell`, which appended that, is not
//
// To go on with the history after the restart, take away what the crash was allowed to take:
//
//   history.MarkLost(report.lost);
//   history.Concatenate(what_happened_later);

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/history/checker.h"
#include "tests/history/history.h"

namespace zeze::history {

// What each key held after the crash. A key that is not mentioned held an empty list.
class FinalState {
 public:
  void Add(Key key, const ListState& state) { states_.emplace_back(key, state); }
  void Add(Key key, std::span<const Element> elements) {
    lists_.emplace_back(key, std::vector<Element>(elements.begin(), elements.end()));
  }

  std::span<const std::pair<Key, ListState>> states() const { return states_; }
  std::span<const std::pair<Key, std::vector<Element>>> lists() const { return lists_; }

 private:
  std::vector<std::pair<Key, ListState>> states_;
  std::vector<std::pair<Key, std::vector<Element>>> lists_;
};

enum class CutProblemKind : std::uint8_t {
  kBadState,            // A list that the history cannot have produced.
  kHalfTransaction,     // A part of a transaction is there, a part is not.
  kEffectWithoutCause,  // A transaction is there, one whose element it had read is not.
  kDurableLost,         // A transaction is not there that was acknowledged as durable.
};

std::string_view ToString(CutProblemKind kind);

struct CutProblem {
  CutProblemKind kind = CutProblemKind::kBadState;
  TransactionId first = 0;   // The transaction at fault; 0 if there is none.
  TransactionId second = 0;  // The missing cause, or 0.
  std::string text;
};

struct CutReport {
  bool ok() const { return problem_count == 0; }
  std::string ToString() const;

  std::vector<CutProblem> problems;  // At most Options::anomalies_max of each kind.
  std::size_t problem_count = 0;

  std::size_t survivor_count = 0;  // Transactions whose appends are there.
  // Transactions that the crash undid: those whose appends are not there, and those that had read
  // such appends.
  std::vector<TransactionId> lost;
};

// The state must be the effect of a set of transactions that is closed under reads-from and
// overwrites: none of them in part, none without all whose elements it had read, and in every list
// none without the elements before it. Each transaction acknowledged as durable must be in the set,
// and what it had read must be there (also if it wrote nothing). Durable ids must be in the
// history.
//
// Of the options only anomalies_max and key_name are used.
CutReport CheckCut(const History& history, const FinalState& state,
                   std::span<const TransactionId> durable, const Options& options = {});

}  // namespace zeze::history
