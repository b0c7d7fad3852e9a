// What 8 threads see of an engine is serializable, also to procedures that fail and to runs that
// are repeated, while records are inserted, removed, evicted and saved.

#include "tests/history/history.h"

#include <iostream>
#include <memory>

#include <gtest/gtest.h>

#include "tests/history/checker.h"
#include "tests/transaction/expect_serializable.h"
#include "tests/transaction/history_workload.h"
#include "zeze/storage/memory/memory_storage.h"

namespace zeze {
namespace {

using history::Check;
using history::Report;

class HistoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Storage> memory = OpenMemoryStorage();
};

TEST_F(HistoryTest, ManyThreadsAreSerializable) {
  ExpectSerializable({.transaction_count = 30'000,
                      .seed = NewSeed(),
                      .storage = memory.get(),
                      .cold_keys = 4'000,
                      .hot_turn = 5'000,
                      .cache_capacity = 1'000});
}

TEST_F(HistoryTest, ManyThreadsAreSerializableWithADurableTable) {
  ExpectSerializable({.transaction_count = 15'000,
                      .seed = NewSeed(),
                      .storage = memory.get(),
                      .cold_keys = 4'000,
                      .hot_turn = 5'000,
                      .cache_capacity = 1'000,
                      .durable = true});
}

// The checker is worth nothing if it finds nothing: commits without validation lose updates.
TEST_F(HistoryTest, FindsTheAnomalyWhenValidationIsSwitchedOff) {
  const QuietLog quiet;
  const HistoryWorkloadResult result = RunHistoryWorkload({.transaction_count = 30'000,
                                                           .seed = NewSeed(),
                                                           .storage = memory.get(),
                                                           .cold_keys = 100,
                                                           .unsafe_skip_validation = true});
  std::cout << result.Summary() << '\n';

  const Report report = Check(result.history, {});

  EXPECT_FALSE(report.ok());
  std::cout << report.ToString().substr(0, 2000) << '\n';
}

}  // namespace
}  // namespace zeze
