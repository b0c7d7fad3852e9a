#include <random>
#include <string>

#include <gtest/gtest.h>

#include "zeze/base/testing/child_process.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/rocksdb/testing/batches.h"
#include "zeze/storage/rocksdb/testing/small_disk.h"

namespace zeze {
namespace {

class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!disk_.mounted()) {
      GTEST_SKIP() << "needs a small file system of its own, and mounting a tmpfs failed: "
                   << disk_.why_not() << " (run as root to include this test)";
    }
    Open();
  }

  Result<std::unique_ptr<Storage>> TryOpen() {
    return OpenRocksDbStorage(
        {.directory = disk_.File("data"), .memtable_bytes = std::size_t{2} << 20});
  }

  void Open() {
    Result<std::unique_ptr<Storage>> opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    storage_ = std::move(opened).value();
    batches_.emplace(*storage_);
  }

  void Close() {
    batches_.reset();
    storage_.reset();
  }

  Result<void> Flush(int number, std::size_t value_bytes) {
    return batches_->Flush(number, value_bytes, /*sync=*/true);
  }

  void MustFlush(int number, std::size_t value_bytes) {
    Result<void> flushed = Flush(number, value_bytes);
    ASSERT_TRUE(flushed.ok()) << "batch " << number << ": " << flushed.error().message();
  }

  void ExpectBatch(int number) {
    EXPECT_EQ(batches_->Read(), (TestBatches::State{.first = number, .last = number}));
  }

  // The number of the first batch that found no room.
  int FlushUntilFull(int number, std::size_t value_bytes) {
    for (;; ++number) {
      Result<void> flushed = Flush(number, value_bytes);
      if (flushed.ok()) continue;
      EXPECT_EQ(flushed.error().code(), ErrorCode::kUnavailable) << flushed.error().message();
      EXPECT_NE(flushed.error().message().find("Make room"), std::string::npos)
          << flushed.error().message();
      return number;
    }
  }

  SmallDisk disk_{"size=48m"};
  std::unique_ptr<Storage> storage_;
  std::optional<TestBatches> batches_;
};

TEST_F(FullDiskTest, RefusesFlushesWhileFullAndGoesOnByItselfWhenRoomIsBack) {
  disk_.Fill(std::size_t{6} << 20);
  int refused = FlushUntilFull(1, 4000);
  ASSERT_GT(refused, 1);
  ExpectBatch(refused - 1);
  // Again: merging files in the background may have made a little room.
  refused = FlushUntilFull(refused, 4000);
  ExpectBatch(refused - 1);

  disk_.GiveBack();

  MustFlush(refused, 4000);
  ExpectBatch(refused);
  for (int number = refused + 1; number < refused + 50; ++number) MustFlush(number, 4000);
  Close();
  Open();
  ExpectBatch(refused + 49);
}

TEST_F(FullDiskTest, LosesNothingWhenTheServerEndsWhileTheDiskIsFull) {
  Close();
  disk_.Fill(std::size_t{10} << 20);
  ChildProcess writer({ZEZE_BATCH_WRITER, "write", disk_.File("data"), "4000"});
  writer.ListenToTheEnd();
  ASSERT_TRUE(writer.said().ends_with("refused\n")) << writer.said();
  const std::string numbers = writer.said().substr(0, writer.said().size() - 9);
  const int acknowledged = std::stoi(numbers.substr(numbers.rfind('\n') + 1));

  // On the full disk it opens, or says what to do; never does it lose anything.
  disk_.Fill(0);
  Result<std::unique_ptr<Storage>> reopened = TryOpen();
  if (!reopened.ok()) {
    EXPECT_EQ(reopened.error().code(), ErrorCode::kUnavailable) << reopened.error().message();
    EXPECT_NE(reopened.error().message().find("Make room"), std::string::npos)
        << reopened.error().message();
  } else {
    reopened.value().reset();
  }
  disk_.GiveBack();
  Open();
  ExpectBatch(acknowledged);
}

TEST_F(FullDiskTest, RefusesALargeFlushAndStillTakesASmallOne) {
  MustFlush(1, 100);
  disk_.Fill(std::size_t{4} << 20);

  Result<void> large = Flush(2, 400'000);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code(), ErrorCode::kUnavailable);

  ExpectBatch(1);
  MustFlush(3, 100);
  ExpectBatch(3);
}

// Room comes and goes at random, also while files are written and merged in the background. Slow,
// because RocksDB rests for a second after each failure there.
TEST_F(FullDiskTest, SurvivesADiskThatFillsUpAgainAndAgain) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int written = 0;
  for (int round = 0; round < 3; ++round) {
    disk_.GiveBack();
    MustFlush(++written, 1000);
    for (std::uint64_t i = random() % 10; i > 0; --i) MustFlush(++written, random() % 8000);
    disk_.Fill(random() % (std::size_t{6} << 20));
    written = FlushUntilFull(written + 1, 1000 + random() % 20000) - 1;
    ExpectBatch(written);
    if (random() % 3 == 0) {
      disk_.GiveBack();
      Close();
      Open();
      ExpectBatch(written);
    }
  }
}

TEST_F(FullDiskTest, CreatesATableWhenRoomIsBack) {
  disk_.Fill(0);
  Result<StorageTable*> table = storage_->OpenTable("new");
  if (!table.ok()) {
    EXPECT_EQ(table.error().code(), ErrorCode::kUnavailable) << table.error().message();
  }

  disk_.GiveBack();

  Result<StorageTable*> again = storage_->OpenTable("new");
  EXPECT_TRUE(again.ok()) << again.error().message();
}

TEST_F(FullDiskTest, OpensOnlyWhereItCanWrite) {
  MustFlush(1, 100);
  Close();
  ASSERT_TRUE(disk_.MakeReadOnly());

  Result<std::unique_ptr<Storage>> opened = TryOpen();

  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(opened.error().message().find("Read-only file system"), std::string::npos)
      << opened.error().message();
  EXPECT_NE(opened.error().message().find(disk_.File("data")), std::string::npos);
}

}  // namespace
}  // namespace zeze
