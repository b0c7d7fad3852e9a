// Check: finds what no serial execution of the recorded transactions could have shown.
//
//   const Report report = Check(history, {});
//   EXPECT_TRUE(report.ok()) << report.ToString();
//
// prints, for example:
//
//   1. lost update, a cycle of 2 transactions:
//        T12 `transfer` read the list of key 7 (length 3) without element 45, which T13 `transfer`
//          appended
//        T13 `transfer` read the list of key 7 (length 3) without element 44, which T12 `transfer`
//          appended
//
// How it works. Appends to a key are ordered by what was read: a list shows all appends before it,
// a ListState shows which element stands at one position, and a transaction that read a list and
// then appended must follow directly. From that order come the dependencies: who overwrote whom
// (ww), who read whose element (wr), who read a list before somebody appended to it (rw). A serial
// order exists exactly if they have no cycle. With Order::kRealTime the serial order must also put
// a transaction after all that had ended before it began (strict serializability).
//
// 1,000,000 transactions of four operations take a few seconds and less than 1 GB.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/history/history.h"

namespace zeze::history {

struct Options {
  // What the serial order must respect besides the data: nothing, the order in each thread, or the
  // order in time of transactions that did not overlap (which includes that in each thread).
  enum class Order { kNone, kSession, kRealTime };
  Order order = Order::kRealTime;

  // Whose reads must be consistent with the committed transactions: those of committed ones only,
  // also those of procedures that failed by their own decision, or of every attempt (opacity: no
  // code ever saw a mixed state, not even when it was going to be repeated).
  enum class Readers { kCommitted, kFailed, kAll };
  Readers readers = Readers::kFailed;

  // Of each kind, reported with their text; the others are only counted.
  std::size_t anomalies_max = 5;

  // Edges to follow in search of the shortest cycle in each tangle of transactions. Beyond that a
  // cycle is still reported, but may not be the shortest (Anomaly::shortest).
  std::uint64_t search_steps_max = 100'000'000;

  // How reports call a key. Empty: "key 7".
  std::function<std::string(Key)> key_name = nullptr;
};

enum class AnomalyKind : std::uint8_t {
  // Of single reads and transactions.
  kDuplicateAppend,    // Two transactions appended the same element: the workload is wrong.
  kUnknownElement,     // An element was read that nobody appended.
  kAbortedRead,        // G1a: read from a transaction that was rolled back, or lost in a crash.
  kIntermediateRead,   // G1b: read between two appends of one transaction.
  kInternal,           // A transaction does not see its own appends, or a list changes under it.
  kDuplicateElement,   // An element is in a list twice, or a list is longer than all its appends.
  kIncompatibleOrder,  // Two lists of one key, neither a prefix of the other.
  // Cycles.
  kDirtyWrite,    // G0: only ww.
  kCircularRead,  // G1c: ww and wr.
  kLostUpdate,    // Two transactions read the same list and both appended to it.
  kReadSkew,      // G-single: one rw.
  kWriteSkew,     // G2-item: several rw.
  kSessionOrder,  // A cycle with an order in a thread.
  kRealTime,      // A cycle with an order in time: a stale read, or an element that was lost.
};

// "write skew (G2-item)"
std::string_view ToString(AnomalyKind kind);

enum class DependencyKind : std::uint8_t {
  kWriteWrite,
  kWriteRead,
  kReadWrite,
  kSession,
  kRealTime,
};

// "ww", "wr", "rw", "session", "real time"
std::string_view ToString(DependencyKind kind);

// Why `from` must come before `to` in every serial order.
struct Dependency {
  TransactionId from = 0;
  TransactionId to = 0;
  DependencyKind kind = DependencyKind::kWriteWrite;
  Key key = 0;          // Of ww, wr, rw.
  Element element = 0;  // The one that `to` appended (ww, rw) or read (wr).
  std::string text;
};

struct Anomaly {
  AnomalyKind kind = AnomalyKind::kInternal;
  std::vector<TransactionId> transactions;  // Those at fault; in the order of the cycle.
  std::vector<Dependency> cycle;            // Empty if it is none. The last leads to the first.
  bool shortest = true;                     // False if the search for a shorter cycle was given up.
  std::string text;                         // One line, or one for each dependency.
};

struct Report {
  bool ok() const { return anomaly_count == 0; }

  // The whole story, for a person.
  std::string ToString() const;

  // Cycles first, the shortest at the top: they mostly tell why the others came about.
  std::vector<Anomaly> anomalies;
  std::size_t anomaly_count = 0;

  // What was checked, so that a test can see that it tested something.
  std::size_t transaction_count = 0;     // That took part.
  std::size_t committed_count = 0;       // Of these, committed or found to be.
  std::size_t read_count = 0;            // Keys read, at most once per transaction.
  std::size_t append_count = 0;          // Committed appends.
  std::size_t ordered_append_count = 0;  // Of these, with a known place in their list.
  std::size_t key_count = 0;
  std::size_t dependency_count = 0;
  std::size_t tangle_count = 0;  // Strongly connected sets of transactions.
  std::size_t tangle_size_max = 0;
};

Report Check(const History& history, const Options& options);

}  // namespace zeze::history
