#include "zeze/storage/testing/faulty_storage.h"

#include <thread>

#include <gtest/gtest.h>

#include "zeze/storage/memory/memory_storage.h"

namespace zeze {
namespace {

class FaultyStorageTest : public testing::Test {
 protected:
  Result<void> Put(std::string_view key, std::string_view value) {
    const StorageWrite write = {.table = table_, .key = key, .value = value};
    return storage_.Flush({&write, 1}, true);
  }

  bool Has(std::string_view key) {
    std::string value;
    return table_->Find(key, value).value();
  }

  const std::unique_ptr<Storage> memory_ = OpenMemoryStorage();
  FaultyStorage storage_{*memory_};
  StorageTable* const table_ = storage_.OpenTable("t").value();
};

TEST_F(FaultyStorageTest, FailsTheAskedNumberOfFlushesAndIsWellAgain) {
  storage_.FailFlushes(2, ErrorCode::kUnavailable);

  EXPECT_EQ(Put("a", "1").error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(Put("a", "1").error().code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(Has("a"));
  EXPECT_TRUE(Put("a", "1").ok());
  EXPECT_TRUE(Has("a"));
  EXPECT_EQ(storage_.flush_count(), 3U);
}

TEST_F(FaultyStorageTest, CanWriteAndStillSayUnknown) {
  storage_.FailFlushes(1, ErrorCode::kUnknownOutcome, FaultyStorage::Effect::kWritten);

  EXPECT_EQ(Put("a", "1").error().code(), ErrorCode::kUnknownOutcome);
  EXPECT_TRUE(Has("a"));
}

TEST_F(FaultyStorageTest, FailsFindsAndWalks) {
  storage_.FailFinds(1, ErrorCode::kCorrupt);
  storage_.FailWalks(1, ErrorCode::kUnavailable);

  std::string value;
  EXPECT_EQ(table_->Find("a", value).error().code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(table_->Find("a", value).ok());
  auto ignore = [](std::string_view, std::string_view) { return true; };
  EXPECT_EQ(table_->Walk({}, ignore).error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(table_->Walk({}, ignore).ok());
}

TEST_F(FaultyStorageTest, HoldsAFlushUntilItIsLetGo) {
  storage_.BlockFlushes();
  std::thread flusher([&] { EXPECT_TRUE(Put("a", "1").ok()); });
  storage_.AwaitBlockedFlushes(1);

  EXPECT_FALSE(Has("a"));

  storage_.UnblockFlushes();
  flusher.join();
  EXPECT_TRUE(Has("a"));
}

TEST_F(FaultyStorageTest, CallsTheHookAroundEachFlush) {
  std::vector<FaultyStorage::FlushStep> steps;
  storage_.SetFlushHook([&](FaultyStorage::FlushStep step) { steps.push_back(step); });

  EXPECT_TRUE(Put("a", "1").ok());

  EXPECT_EQ(steps,
            (std::vector{FaultyStorage::FlushStep::kBefore, FaultyStorage::FlushStep::kAfter}));
}

}  // namespace
}  // namespace zeze
