// What is unsaved always fits into one flush: commits that would make it too much wait, or are
// refused before they are acknowledged. And what becomes of them when the storage takes nothing.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using testing::BAccount;
using testing::BBag;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

class RoomTest : public testing::EngineTest {
 protected:
  using Bags = Table<std::int64_t, BBag>;

  void OpenWithBags(std::size_t flush_bytes_max = 4 * kMegabyte) {
    StorageLimits limits = storage.limits();
    limits.value_bytes_max = flush_bytes_max / 2;
    limits.flush_bytes_max = flush_bytes_max;
    storage.set_limits(limits);
    storage.on_flush = [this](std::span<const StorageWrite> writes) {
      std::size_t bytes = 0;
      for (const StorageWrite& write : writes) bytes += write.key.size() + write.value.size();
      largest_flush = std::max<std::size_t>(largest_flush, bytes);
    };
    engine = std::make_unique<Engine>(options);
    ASSERT_TRUE(engine->AddTable(accounts).ok());
    ASSERT_TRUE(engine->AddTable(ledger, {.durable_at_commit = durable_ledger}).ok());
    ASSERT_TRUE(engine->AddTable(bags).ok());
    ASSERT_TRUE(engine->Start().ok());
  }

  std::int64_t PutBag(std::int64_t key, std::size_t bytes, int parts = 1) {
    return engine->Call("put bag", [&](Transaction& tx) -> std::int64_t {
      BBag bag;
      for (int i = 0; i < parts; ++i) {
        bag.names.Put(i, std::string(bytes / static_cast<std::size_t>(parts), 'x'));
      }
      bags.Put(tx, key, std::move(bag));
      return 0;
    });
  }

  std::size_t StoredBags() {
    std::size_t count = 0;
    EXPECT_TRUE(memory->OpenTable("test_bags")
                    .value()
                    ->Walk({}, [&](std::string_view, std::string_view) { return ++count > 0; })
                    .ok());
    return count;
  }

  Bags bags{TableDescriptor{.id = 4, .name = "test_bags"}};
  std::atomic<std::size_t> largest_flush = 0;
  testing::ManualClock clock;
};

// 60,000 commits of 20 KB were acknowledged in 1.4 s, and then no flush went through ever again.
TEST_F(RoomTest, LargeCommitsComeAsFastAsTheStorageTakesThemAndAllAreSaved) {
  OpenWithBags();
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 500; ++i) EXPECT_EQ(0, PutBag(t * 1000 + i, 20'000));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(engine->CheckpointNow().ok());

  EXPECT_EQ(0U, engine->statistics().checkpoint.failed_flushes);
  EXPECT_EQ(2000U, StoredBags());
  EXPECT_GT(largest_flush, 100'000U);
  EXPECT_LE(largest_flush, 4 * kMegabyte);
}

// The list of three times 100 MB was counted as three times 64 bytes; an innocent record was lost
// with it.
TEST_F(RoomTest, AValueOfLongElementsIsRefusedAtCommitByItsTrueSize) {
  OpenWithBags();
  testing::CapturedLog log;
  ASSERT_EQ(0, Put(accounts, 1, 5));

  EXPECT_EQ(result_code::kException, PutBag(7, 3 * kMegabyte, 3));
  EXPECT_EQ(0, PutBag(8, kMegabyte, 3));

  EXPECT_THAT(log.lines(), Contains(HasSubstr("record 7 of table test_bags would be 31457")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("the storage takes 2097152")));
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(5, Stored(accounts, 1));
  EXPECT_EQ(1U, StoredBags());
}

// Element by element, each a commit of its own that shares the rest.
TEST_F(RoomTest, AValueThatGrowsIsRefusedWhenItIsTooLong) {
  OpenWithBags();
  std::int64_t code = 0;
  std::int32_t parts = 0;
  for (; code == 0 && parts < 100; ++parts) {
    code = engine->Call("grow", [&](Transaction& tx) -> std::int64_t {
      bags.GetOrAdd(tx, 1)->names.Put(parts, std::string(100'000, 'x'));
      return 0;
    });
  }

  EXPECT_EQ(result_code::kException, code);
  EXPECT_EQ(21, parts) << "2 MB";
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(1U, StoredBags());
}

TEST_F(RoomTest, AProcedureThatWritesMoreThanAFlushTakesIsRefused) {
  OpenWithBags();
  testing::CapturedLog log;
  const auto put = [&](std::int64_t count) {
    return engine->Call("put many", [&](Transaction& tx) -> std::int64_t {
      for (std::int64_t i = 0; i < count; ++i) {
        BBag bag;
        bag.names.Put(1, std::string(kMegabyte, 'x'));
        bags.Put(tx, i, std::move(bag));
      }
      return 0;
    });
  };

  EXPECT_EQ(result_code::kException, put(5));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("its 5 records take up to")));
  // Others are unsaved: it waits until they are not.
  for (std::int64_t i = 0; i < 10; ++i) ASSERT_EQ(0, PutBag(100 + i, 100'000));
  EXPECT_EQ(0, put(3));

  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(13U, StoredBags());
  EXPECT_EQ(0U, engine->statistics().checkpoint.failed_flushes);
}

// A record that is written again and again is unsaved once.
TEST_F(RoomTest, OverwritingDoesNotFillUp) {
  OpenWithBags();
  faulty.BlockFlushes();
  std::thread flush([&] { EXPECT_TRUE(engine->CheckpointNow().ok()); });
  ASSERT_EQ(0, PutBag(1, 1000));
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(0, PutBag(1, 10'000));
  faulty.UnblockFlushes();
  flush.join();

  EXPECT_LT(engine->statistics().checkpoint.dirty_bytes, 100'000U);
}

// Whatever is written, replaced, removed and saved: when everything is saved, nothing is counted.
TEST_F(RoomTest, WhatIsSavedIsNotCountedAnyMore) {
  OpenWithBags();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 2000; ++i) {
        const auto key = static_cast<std::int64_t>(random() % 50);
        EXPECT_EQ(0, engine->Call("edit", [&](Transaction& tx) -> std::int64_t {
          switch (random() % 4) {
            case 0:
              bags.Remove(tx, key);
              break;
            case 1:
              bags.Put(tx, key, BBag{.version = 0, .items = {1, 2, 3}, .names = {}});
              break;
            case 2:
              accounts.GetOrAdd(tx, key)->balance += 1;
              break;
            default:
              bags.GetOrAdd(tx, key)->names.Put(static_cast<std::int32_t>(random() % 5),
                                                std::string(random() % 5000, 'x'));
          }
          return 0;
        }));
        if (random() % 100 == 0) {
          EXPECT_TRUE(engine->CheckpointNow().ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(engine->CheckpointNow().ok());

  // What idle contexts keep.
  EXPECT_LE(engine->statistics().checkpoint.dirty_bytes,
            8 * static_cast<std::uint64_t>(engine->checkpoint().room_kept()));
  EXPECT_EQ(0U, engine->statistics().checkpoint.failed_flushes);
}

// --- a storage that takes nothing ---

TEST_F(RoomTest, WhenNothingIsSavedForLongCommitsAreRefusedAndReadsGoOn) {
  options.room_wait_max = milliseconds(200);
  OpenWithBags();
  testing::CapturedLog log;
  faulty.FailFlushes(1'000'000, ErrorCode::kUnavailable);
  std::int64_t key = 0;
  std::int64_t code = 0;
  while (code == 0 && key < 1000) code = PutBag(++key, 20'000);

  EXPECT_EQ(result_code::kBusy, code);
  EXPECT_LT(key, 4 * static_cast<std::int64_t>(kMegabyte) / 20'000) << "before memory is gone";
  EXPECT_THAT(log.lines(), Contains(HasSubstr("commits are refused with kBusy from now on")));
  EXPECT_EQ(0, engine->Call("read", [&](Transaction& tx) -> std::int64_t {
    return bags.Get(tx, 1) != nullptr ? 0 : 1;
  }));
  // Those after it are not held up as long once more.
  const auto begin = SystemClock().Now();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(result_code::kBusy, PutBag(5000, 20'000));
  EXPECT_LT(SystemClock().Now() - begin, std::chrono::seconds(10));

  faulty.FailFlushes(0, ErrorCode::kUnavailable);
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(static_cast<std::size_t>(key - 1), StoredBags());
  EXPECT_EQ(0, PutBag(5000, 20'000));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("commits are taken again")));
}

// A disk that hangs says nothing at all.
TEST_F(RoomTest, AFlushThatHangsMakesCommitsBusyToo) {
  options.room_wait_max = milliseconds(200);
  OpenWithBags();
  faulty.BlockFlushes();
  std::int64_t key = 0;
  std::int64_t code = 0;
  while (code == 0 && key < 1000) code = PutBag(++key, 20'000);
  EXPECT_EQ(result_code::kBusy, code);

  faulty.UnblockFlushes();
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(0, PutBag(5000, 20'000));
}

// Two durable waiters once made 49,560 flushes in 11 s, because each failure woke the other.
TEST_F(RoomTest, ASickDatabaseIsAskedSeldomHoweverManyWait) {
  durable_ledger = true;
  options.clock = &clock;
  OpenWithBags();
  testing::CapturedLog log;
  faulty.FailFlushes(1'000'000, ErrorCode::kUnavailable);
  std::vector<std::thread> writers;
  for (std::int64_t t = 0; t < 8; ++t) {
    writers.emplace_back([&, t] { EXPECT_EQ(0, Put(ledger, t, 5)); });
  }
  while (faulty.flush_count() == 0) std::this_thread::yield();
  // 0.1, 0.2, 0.4, 0.8, 1.6, 3.2 and then each 5 s.
  for (int i = 0; i < 300; ++i) {
    clock.Advance(milliseconds(100));
    SystemClock().SleepFor(milliseconds(3));  // For those who want to try now.
  }

  EXPECT_LE(faulty.flush_count(), 14U);
  EXPECT_GE(faulty.flush_count(), 5U);
  faulty.FailFlushes(0, ErrorCode::kUnavailable);
  for (std::size_t seen = faulty.flush_count(); faulty.flush_count() == seen;) {
    clock.Advance(milliseconds(100));
    SystemClock().SleepFor(milliseconds(3));
  }
  for (std::thread& writer : writers) writer.join();
  std::size_t lines = 0;
  for (const std::string& line : log.lines()) {
    lines += line.find("does not take checkpoints") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(1U, lines);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("the database is back")));
  for (std::int64_t t = 0; t < 8; ++t) EXPECT_EQ(5, Stored(ledger, t));
}

// It may be saved later: then everything that was to follow it follows.
TEST_F(RoomTest, ADurableProcedureThatCannotBeSavedReturnsUnknownAndIsSavedLater) {
  durable_ledger = true;
  options.durable_wait_max = milliseconds(200);
  OpenWithBags();
  faulty.FailFlushes(1'000'000, ErrorCode::kUnavailable);
  std::atomic<int> committed = 0;
  std::atomic<int> durable = 0;

  EXPECT_EQ(result_code::kUnknown, engine->Call("put", [&](Transaction& tx) -> std::int64_t {
    ledger.Put(tx, 1, BAccount{.balance = 5, .owner = {}});
    tx.AfterCommit([&] { ++committed; });
    tx.AfterDurable([&] { ++durable; });
    return 0;
  }));

  EXPECT_EQ(5, Read(ledger, 1)) << "everybody sees it";
  EXPECT_EQ(0, committed + durable);
  faulty.FailFlushes(0, ErrorCode::kUnavailable);
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(5, Stored(ledger, 1));
  while (committed + durable < 2) std::this_thread::yield();
  EXPECT_EQ(1, committed);
  EXPECT_EQ(1, durable);
}

TEST_F(RoomTest, ADurableProcedureDoesNotWaitForAStorageThatHangs) {
  durable_ledger = true;
  options.durable_wait_max = milliseconds(200);
  OpenWithBags();
  faulty.BlockFlushes();

  EXPECT_EQ(result_code::kUnknown, Put(ledger, 1, 5));

  faulty.AwaitBlockedFlushes(1);
  faulty.UnblockFlushes();
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(5, Stored(ledger, 1));
}

// Cannot happen, because commits are checked. If it does, nobody is told that all is well.
TEST_F(RoomTest, AStorageThatTakesLessThanItSaidIsReportedAsWhatItIs) {
  durable_ledger = true;
  options.durable_wait_max = milliseconds(200);
  OpenWithBags();
  testing::CapturedLog log;
  faulty.FailFlushes(1'000'000, ErrorCode::kInvalidArgument);

  EXPECT_EQ(result_code::kUnknown, Put(ledger, 1, 5));

  EXPECT_THAT(log.lines(), Contains(HasSubstr("refuses what was committed")));
  faulty.FailFlushes(0, ErrorCode::kUnavailable);
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(5, Stored(ledger, 1));
}

}  // namespace
}  // namespace zeze
