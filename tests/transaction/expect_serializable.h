// ExpectSerializable: runs the workload and checks everything it wrote down.

#pragma once

#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/history/checker.h"
#include "tests/history/cut.h"
#include "tests/history/history.h"
#include "tests/transaction/history_workload.h"
#include "zeze/base/log.h"

namespace zeze {

// Procedures that throw on purpose would fill the output.
class QuietLog {
 public:
  QuietLog() { SetLogLevel(LogLevel::kOff); }
  ~QuietLog() { SetLogLevel(level_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  const LogLevel level_ = GetLogLevel();
};

inline std::uint64_t NewSeed() {
  const std::uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << '\n';
  return seed;
}

inline void ExpectSerializable(const HistoryWorkloadOptions& options) {
  const QuietLog quiet;
  const HistoryWorkloadResult result = RunHistoryWorkload(options);
  std::cout << result.Summary() << '\n';

  const history::Report report = history::Check(
      result.history,
      {.order = history::Options::Order::kRealTime, .readers = history::Options::Readers::kAll});
  EXPECT_TRUE(report.ok()) << report.ToString();
  EXPECT_GT(report.committed_count, options.transaction_count / 2);
  EXPECT_GT(result.evictions, 0U);
  EXPECT_GT(result.statistics.conflicts, 0U);
  EXPECT_GT(result.statistics.checkpoint.flushes, 1U);

  // The stop saved everything: nothing may be missing.
  std::vector<history::TransactionId> committed;
  for (const history::Transaction& transaction : result.history.transactions()) {
    if (transaction.outcome == history::Outcome::kCommitted) committed.push_back(transaction.id);
  }
  const history::CutReport cut = CheckCut(result.history, result.final_state, committed);
  EXPECT_TRUE(cut.ok()) << cut.ToString();
}

}  // namespace zeze
