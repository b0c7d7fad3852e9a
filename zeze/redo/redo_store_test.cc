#include "zeze/redo/redo_store.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/manual_clock.h"
#include "zeze/redo/run_task.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/testing/faulty_storage.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

using ::testing::HasSubstr;

class RedoStoreTest : public ::testing::Test {
 protected:
  void Open() {
    store.reset();
    auto opened = RedoStore::Open({.directory = directory.File("store"), .clock = &clock});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    store = opened.value();
    queue = store->OpenQueue("q").value();
  }
  void Add(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(queue->Add(1, std::to_string(i)).ok());
  }

  TempDirectory directory;
  testing::ManualClock clock;
  std::shared_ptr<RedoStore> store;
  RedoJournal* queue = nullptr;
};

TEST_F(RedoStoreTest, KeepsTasksInOrderFromRunToRun) {
  Open();
  EXPECT_EQ(queue->Add(7, "a").value(), 1);
  EXPECT_EQ(queue->Add(8, "b").value(), 2);
  const std::int64_t id = store->id();

  Open();

  EXPECT_EQ(store->id(), id);
  EXPECT_EQ(queue->added_id(), 2);
  const std::vector<RedoTask> tasks = queue->Read(0, 10, 1000).value();
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[1].id, 2);
  EXPECT_EQ(tasks[1].record.type, 8);
  EXPECT_EQ(tasks[1].record.param.bytes, "b");
  EXPECT_EQ(queue->Add(9, "c").value(), 3);
}

TEST_F(RedoStoreTest, TasksOfOneCallHaveConsecutiveIds) {
  Open();
  const std::vector<NewRedoTask> tasks = {{1, "a"}, {2, "b"}, {3, "c"}};

  EXPECT_EQ(queue->AddMany(tasks).value(), 3);
  EXPECT_EQ(queue->Read(0, 10, 1000).value().size(), 3U);
}

TEST_F(RedoStoreTest, ManyThreadsShareSyncsAndLoseNothing) {
  Open();
  RedoJournal* other = store->OpenQueue("other").value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE((t % 2 == 0 ? queue : other)->Add(t, std::to_string(i)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (RedoJournal* journal : {queue, other}) {
    EXPECT_EQ(journal->added_id(), 200);
    const std::vector<RedoTask> tasks = journal->Read(0, 1000, 1 << 20).value();
    ASSERT_EQ(tasks.size(), 200U);
    std::int64_t chain = redo::FirstChain(store->id(), journal->name());
    std::map<std::int32_t, int> next;
    for (const RedoTask& task : tasks) {
      chain = redo::NextChain(chain, task.id, task.record.type, task.record.added_ms,
                              task.record.param.bytes);
      EXPECT_EQ(task.record.chain, chain);
      EXPECT_EQ(task.record.param.bytes, std::to_string(next[task.record.type]++));
    }
  }
}

TEST_F(RedoStoreTest, AFailedWriteAddsNothingAndLeavesNoGap) {
  const std::unique_ptr<Storage> memory = OpenMemoryStorage();
  auto faulty = std::make_unique<FaultyStorage>(*memory);
  FaultyStorage& storage = *faulty;
  store = RedoStore::Open(std::move(faulty), clock).value();
  queue = store->OpenQueue("q").value();
  ASSERT_TRUE(queue->Add(1, "a").ok());
  storage.FailFlushes(1, ErrorCode::kUnavailable);

  EXPECT_EQ(queue->Add(1, "b").error().code(), ErrorCode::kUnavailable);

  EXPECT_EQ(queue->added_id(), 1);
  EXPECT_EQ(queue->Add(1, "c").value(), 2);
  store.reset();
}

TEST_F(RedoStoreTest, AnUnknownOutcomeEndsAllAddsUntilTheStoreIsOpenedAgain) {
  const std::unique_ptr<Storage> memory = OpenMemoryStorage();
  auto faulty = std::make_unique<FaultyStorage>(*memory);
  FaultyStorage& storage = *faulty;
  store = RedoStore::Open(std::move(faulty), clock).value();
  queue = store->OpenQueue("q").value();
  storage.FailFlushes(1, ErrorCode::kUnknownOutcome);

  EXPECT_EQ(queue->Add(1, "a").error().code(), ErrorCode::kUnknownOutcome);
  EXPECT_EQ(queue->Add(1, "b").error().code(), ErrorCode::kUnknownOutcome);
  store.reset();
}

TEST_F(RedoStoreTest, RefusesWhatCannotBeSent) {
  Open();
  const std::string large(kRedoParamBytesMax + 1, 'x');

  EXPECT_THAT(queue->Add(1, large).error().message(), HasSubstr("at most"));
  EXPECT_EQ(store->OpenQueue(std::string(300, 'x')).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(RedoStoreTest, DeletesWhatIsConfirmedForLongAndSaved) {
  Open();
  Add(10);
  const RedoKeepOptions keep{.keep_for = std::chrono::hours(1)};
  ASSERT_TRUE(queue->Confirm(6, 4).ok());
  EXPECT_FALSE(queue->Compact(keep).value());

  clock.Advance(std::chrono::minutes(61));

  EXPECT_TRUE(queue->Compact(keep).value());
  EXPECT_EQ(queue->position().floor_id, 4);  // The server has not saved more.
  EXPECT_FALSE(queue->Compact(keep).value());
  ASSERT_TRUE(queue->Confirm(6, 6).ok());
  EXPECT_TRUE(queue->Compact(keep).value());
  EXPECT_EQ(queue->position().floor_id, 6);
  EXPECT_FALSE(queue->ChainAt(5).value().has_value());
  const auto chain = queue->ChainAt(6).value();
  Open();
  EXPECT_EQ(queue->ChainAt(6).value(), chain);
  EXPECT_EQ(queue->added_id(), 10);
}

TEST_F(RedoStoreTest, KeepsAtMostSoManyConfirmedTasks) {
  Open();
  Add(10);
  ASSERT_TRUE(queue->Confirm(10, 10).ok());

  EXPECT_TRUE(queue->Compact({.keep_max = 3}).value());

  EXPECT_EQ(queue->position().floor_id, 7);
}

// Longer than there has been time.
TEST_F(RedoStoreTest, KeepsForEver) {
  Open();
  Add(10);
  ASSERT_TRUE(queue->Confirm(10, 10).ok());
  clock.Advance(std::chrono::hours(24 * 365));

  EXPECT_FALSE(queue->Compact({.keep_for = std::chrono::nanoseconds::max()}).value());
  EXPECT_FALSE(queue->Compact({.keep_for = std::chrono::hours(24 * 365 * 100)}).value());

  EXPECT_EQ(queue->position().floor_id, 0);
}

TEST_F(RedoStoreTest, OnlyAgeCountsIfTheServerDoesNotSayWhatItHasSaved) {
  Open();
  Add(10);
  ASSERT_TRUE(queue->Confirm(10, std::nullopt).ok());

  EXPECT_FALSE(queue->Compact({.keep_max = 3}).value());
  clock.Advance(std::chrono::hours(24 * 8));
  EXPECT_TRUE(queue->Compact({.keep_max = 3}).value());
  EXPECT_EQ(queue->position().floor_id, 10);
}

TEST_F(RedoStoreTest, GoesOnCountingWhenEverythingIsDeleted) {
  Open();
  Add(10);
  ASSERT_TRUE(queue->Confirm(10, 10).ok());
  ASSERT_TRUE(queue->Compact({.keep_max = 0}).value());

  Open();

  EXPECT_EQ(queue->Add(1, "next").value(), 11);
}

TEST_F(RedoStoreTest, AdoptingGivesNewIdsBehindTheServersLast) {
  Open();
  Add(3);

  ASSERT_TRUE(queue->Adopt(2, 77).ok());

  EXPECT_EQ(queue->added_id(), 5);
  EXPECT_EQ(queue->ChainAt(2).value(), 77);
  const std::vector<RedoTask> tasks = queue->Read(2, 10, 1000).value();
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].record.param.bytes, "0");
  EXPECT_EQ(tasks[2].id, 5);
  Open();
  EXPECT_EQ(queue->added_id(), 5);
  EXPECT_EQ(queue->position().adopted_id, 2);
  EXPECT_FALSE(queue->Adopt(9, 1).ok());
}

TEST_F(RedoStoreTest, SkipsOnlyWhatIsNotDone) {
  Open();
  Add(3);
  ASSERT_TRUE(queue->Confirm(1, 1).ok());

  EXPECT_FALSE(queue->Skip(1).ok());
  EXPECT_FALSE(queue->Skip(4).ok());
  ASSERT_TRUE(queue->Skip(2).ok());

  EXPECT_TRUE(queue->Read(1, 1, 1).value().front().record.skip);
}

TEST_F(RedoStoreTest, TellsHistoriesApart) {
  const std::int64_t first = redo::FirstChain(1, "q");

  EXPECT_NE(first, redo::FirstChain(2, "q"));
  EXPECT_NE(first, redo::FirstChain(1, "r"));
  const std::int64_t next = redo::NextChain(first, 1, 1, 1000, "a");
  EXPECT_NE(next, redo::NextChain(first, 1, 1, 1000, "b"));
  EXPECT_NE(next, redo::NextChain(first, 1, 2, 1000, "a"));
  EXPECT_NE(next, redo::NextChain(first, 1, 1, 1001, "a"));
  EXPECT_NE(next, redo::NextChain(first, 1, 1, 1000, std::string("a\0", 2)));
  // Stored and sent: never another value.
  EXPECT_EQ(redo::NextChain(redo::FirstChain(1, "q"), 1, 1, 1000, "recharge 100"),
            -5317823029213002098);
}

}  // namespace
}  // namespace zeze
