#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/rocksdb/small_disk_for_test.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

constexpr std::size_t kRowsPerTable = 20;

// Flushes numbered batches: each writes its number into all rows of two tables, with enough random
// bytes to fill a disk, so that a half batch would show.
class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!disk_.mounted()) {
      GTEST_SKIP() << "needs a small file system of its own, and mounting a tmpfs failed: "
                   << disk_.why_not() << " (run as root to include this test)";
    }
    Open();
  }

  void Open() {
    Result<std::unique_ptr<Storage>> opened = TryOpen(disk_.File("data"));
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    Use(std::move(opened).value());
  }

  static Result<std::unique_ptr<Storage>> TryOpen(const std::string& directory) {
    return OpenRocksDbStorage({.directory = directory, .memtable_bytes = std::size_t{2} << 20});
  }

  void Use(std::unique_ptr<Storage> storage) {
    storage_ = std::move(storage);
    tables_[0] = storage_->OpenTable("a").value();
    tables_[1] = storage_->OpenTable("b").value();
  }

  void Close() {
    Result<void> closed = storage_->Close();
    storage_.reset();
  }

  Result<void> FlushBatch(int number, std::size_t value_bytes) {
    std::string value = std::to_string(number) + " ";
    while (value.size() < value_bytes) value += static_cast<char>(random_());
    std::vector<std::string> keys;
    for (std::size_t row = 0; row < kRowsPerTable; ++row) keys.push_back(std::to_string(100 + row));
    std::vector<StorageWrite> writes;
    for (StorageTable* table : tables_) {
      for (const std::string& key : keys) {
        writes.push_back({.table = table, .key = key, .value = value});
      }
    }
    return storage_->Flush(writes, /*sync=*/true);
  }

  // Every row must show the number of the same batch.
  void ExpectBatch(int number) {
    for (StorageTable* table : tables_) {
      std::size_t rows = 0;
      Result<std::size_t> walked = table->Walk({}, [&](std::string_view, std::string_view value) {
        EXPECT_EQ(std::stoi(std::string(value.substr(0, value.find(' ')))), number);
        ++rows;
        return true;
      });
      EXPECT_TRUE(walked.ok()) << walked.error().message();
      EXPECT_EQ(rows, kRowsPerTable);
    }
  }

  // The number of the first batch that found no room.
  int FlushUntilFull(int number, std::size_t value_bytes) {
    for (;; ++number) {
      Result<void> flushed = FlushBatch(number, value_bytes);
      if (flushed.ok()) continue;
      EXPECT_EQ(flushed.error().code(), ErrorCode::kUnavailable) << flushed.error().message();
      EXPECT_NE(flushed.error().message().find("Make room"), std::string::npos)
          << flushed.error().message();
      return number;
    }
  }

  SmallDisk disk_{"size=48m"};
  std::mt19937_64 random_{1};
  std::unique_ptr<Storage> storage_;
  StorageTable* tables_[2] = {};
};

TEST_F(FullDiskTest, RefusesFlushesWhileFullAndGoesOnByItselfWhenRoomIsBack) {
  disk_.Fill(std::size_t{6} << 20);
  const int refused = FlushUntilFull(1, 4000);
  ASSERT_GT(refused, 1);
  ExpectBatch(refused - 1);
  EXPECT_EQ(FlushBatch(refused, 4000).error().code(), ErrorCode::kUnavailable);
  ExpectBatch(refused - 1);

  disk_.GiveBack();

  Result<void> resumed = FlushBatch(refused, 4000);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message();
  ExpectBatch(refused);
  for (int number = refused + 1; number < refused + 50; ++number) {
    Result<void> flushed = FlushBatch(number, 4000);
    ASSERT_TRUE(flushed.ok()) << flushed.error().message();
  }
  Close();
  Open();
  ExpectBatch(refused + 49);
}

TEST_F(FullDiskTest, LosesNothingWhenTheServerEndsWhileTheDiskIsFull) {
  disk_.Fill(std::size_t{6} << 20);
  const int refused = FlushUntilFull(1, 4000);
  // A copy of the files is what a process that is killed now leaves behind.
  const TempDirectory elsewhere;
  std::filesystem::copy(disk_.File("data"), elsewhere.File("data"),
                        std::filesystem::copy_options::recursive);
  Close();

  Use(TryOpen(elsewhere.File("data")).value());
  ExpectBatch(refused - 1);
  Close();

  // On the full disk it opens, or says what to do; never does it lose anything.
  Result<std::unique_ptr<Storage>> reopened = TryOpen(disk_.File("data"));
  if (!reopened.ok()) {
    EXPECT_EQ(reopened.error().code(), ErrorCode::kUnavailable) << reopened.error().message();
    EXPECT_NE(reopened.error().message().find("Make room"), std::string::npos);
    disk_.GiveBack();
    reopened = TryOpen(disk_.File("data"));
  }
  ASSERT_TRUE(reopened.ok()) << reopened.error().message();
  Use(std::move(reopened).value());
  ExpectBatch(refused - 1);
}

TEST_F(FullDiskTest, RefusesALargeFlushAndStillTakesASmallOne) {
  ASSERT_TRUE(FlushBatch(1, 100).ok());
  disk_.Fill(std::size_t{4} << 20);

  EXPECT_EQ(FlushBatch(2, 400'000).error().code(), ErrorCode::kUnavailable);

  ExpectBatch(1);
  EXPECT_TRUE(FlushBatch(3, 100).ok());
  ExpectBatch(3);
}

// Room comes and goes at random, also while files are written and merged in the background.
TEST_F(FullDiskTest, SurvivesADiskThatFillsUpAgainAndAgain) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int written = 0;
  for (int round = 0; round < 4; ++round) {
    disk_.GiveBack();
    Result<void> resumed = FlushBatch(++written, 1000);
    ASSERT_TRUE(resumed.ok()) << "round " << round << ": " << resumed.error().message();
    for (std::uint64_t i = random() % 10; i > 0; --i) {
      resumed = FlushBatch(++written, random() % 8000);
      ASSERT_TRUE(resumed.ok()) << "round " << round << ": " << resumed.error().message();
    }
    disk_.Fill(random() % (std::size_t{6} << 20));
    written = FlushUntilFull(written + 1, 1000 + random() % 20000) - 1;
    ExpectBatch(written);
    if (random() % 8 == 0) {
      disk_.GiveBack();
      Close();
      Open();
      ExpectBatch(written);
    }
  }
}

TEST_F(FullDiskTest, SaysThatThereIsNoRoomForANewTable) {
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
  ASSERT_TRUE(FlushBatch(1, 100).ok());
  Close();
  ASSERT_TRUE(disk_.MakeReadOnly());

  Result<std::unique_ptr<Storage>> opened = TryOpen(disk_.File("data"));

  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(opened.error().message().find("Read-only file system"), std::string::npos)
      << opened.error().message();
  EXPECT_NE(opened.error().message().find(disk_.File("data")), std::string::npos);
}

}  // namespace
}  // namespace zeze
