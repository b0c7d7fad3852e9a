#include <chrono>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "zeze/base/testing/child_process.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/rocksdb/testing/batches.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

TEST(RocksDbCrashTest, KeepsWholeAcknowledgedFlushesWhenKilledAtAnyMoment) {
  constexpr int kKills = 50;
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const TempDirectory directory;
  int acknowledged = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    ChildProcess writer(
        {ZEZE_BATCH_WRITER, "write", directory.File("data"), std::to_string(random() % 3000)});
    // Half of the kills come while it flushes, the others possibly while it opens and recovers.
    if (kill % 2 == 0) {
      writer.Listen(std::chrono::minutes(1), [](const std::string& said) { return !said.empty(); });
    }
    writer.Listen(std::chrono::microseconds(random() % 40'000),
                  [](const std::string&) { return false; });
    writer.Kill();
    writer.ListenToTheEnd();
    if (!writer.LastLine().empty()) acknowledged = std::stoi(writer.LastLine());

    Result<std::unique_ptr<Storage>> opened =
        OpenRocksDbStorage({.directory = directory.File("data")});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    const TestBatches::State state = TestBatches(*opened.value()).Read();
    ASSERT_TRUE(state.whole) << "kill " << kill;
    ASSERT_EQ(state.first, state.last) << "kill " << kill;
    ASSERT_GE(state.last, acknowledged) << "kill " << kill;
    ASSERT_LE(state.last, acknowledged + 1) << "kill " << kill;
    acknowledged = state.last;
  }
  EXPECT_GT(acknowledged, kKills);
}

}  // namespace
}  // namespace zeze
