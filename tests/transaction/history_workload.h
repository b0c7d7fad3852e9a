// HistoryWorkload: many threads run procedures on an engine and write down what they saw.
//
//   HistoryWorkload workload({.transaction_count = 1'000'000, .storage = storage.get()});
//   const Report report = Check(workload.Run(), {});
//
// Every key is a list, kept as its ListState in one of two tables: "live" while the record exists,
// "graveyard" after it was removed, so that removes and inserts are seen by the checker as appends.
// A few keys are hot and change over time; the others are cold and do not fit into the cache.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/history/cut.h"
#include "tests/history/history.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"

namespace zeze {

struct HistoryWorkloadOptions {
  std::size_t transaction_count = 100'000;
  std::size_t thread_count = 8;
  std::uint64_t seed = 1;
  Storage* storage = nullptr;

  std::size_t hot_keys = 8;
  std::size_t cold_keys = 20'000;
  // Other keys become hot after so many transactions.
  std::size_t hot_turn = 50'000;
  // Of 100 accesses, how many give the processor to another thread: procedures are so short that
  // on few cores they would hardly ever overlap.
  std::uint64_t yields = 5;
  // Records in each table's cache.
  std::size_t cache_capacity = 4'000;
  std::chrono::nanoseconds checkpoint_period = std::chrono::milliseconds(20);
  // The graveyard is durable at commit: checkpoints by groups, and every remove waits for one.
  bool durable = false;
  bool unsafe_skip_validation = false;
};

struct HistoryWorkloadResult {
  history::History history;
  history::FinalState final_state;  // Of the storage, after the engine stopped.
  EngineStatistics statistics;
  std::uint64_t evictions = 0;

  // One line for the test's output.
  std::string Summary() const;
};

HistoryWorkloadResult RunHistoryWorkload(const HistoryWorkloadOptions& options);

}  // namespace zeze
