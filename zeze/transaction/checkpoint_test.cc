// Checkpoints that are held up, fail or do not know; durable tables; stops.

#include "zeze/transaction/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/watchdog.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using testing::BAccount;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Gate;
using ::testing::HasSubstr;

using CheckpointTest = testing::EngineTest;

// --- hole 20: bounded logs, no poison ---

class HeldUpTest : public testing::EngineTest, public ::testing::WithParamInterface<bool> {
 protected:
  // Outlive the engine.
  testing::ManualClock clock;
  bool first = true;
};

// A flush that does not end must not make memory grow with every commit.
TEST_P(HeldUpTest, Hole20ManyCommitsDuringABlockedFlushKeepNothing) {
  durable_ledger = GetParam();
  Open();
  for (std::int64_t i = 0; i < 10; ++i) ASSERT_EQ(0, Put(accounts, i, 0));
  faulty.BlockFlushes();
  std::thread checkpoint([&] { EXPECT_TRUE(engine->CheckpointNow().ok()); });
  faulty.AwaitBlockedFlushes(1);

  std::size_t logged = 0;
  std::size_t retired = 0;
  for (std::int64_t i = 0; i < 200'000; ++i) {
    ASSERT_EQ(0, Transfer(i % 10, (i + 1) % 10, 1));
    if (i % 1000 != 0) continue;
    logged = std::max(logged, LoggedWords());
    retired = std::max(retired, engine->statistics().retired_values);
  }
  EXPECT_LT(logged, 2 * internal::CommitLog::kCompactMin);
  // Without groups a record is logged once in an epoch.
  if (!GetParam()) {
    EXPECT_LT(logged, 100U);
  }
  EXPECT_LT(retired, 10'000U);

  faulty.UnblockFlushes();
  checkpoint.join();
  ASSERT_TRUE(engine->CheckpointNow().ok());
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(Read(accounts, i), Stored(accounts, i));
}

// What commits between the cut and its flush is kept apart from it (rule 28), and only once.
TEST_P(HeldUpTest, Hole20AFlushHasTheValuesOfItsCut) {
  durable_ledger = GetParam();
  options.clock = &clock;  // No drains in the background.
  options.on_checkpoint_step = [&](CheckpointStep step) {
    if (step != CheckpointStep::kLogsDrained || !std::exchange(first, false)) return;
    EXPECT_EQ(0, Transfer(1, 2, 100));
    EXPECT_EQ(0, Transfer(1, 2, 100));
  };
  Open();
  ASSERT_EQ(0, Transfer(1, 2, 5));

  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(-5, Stored(accounts, 1));
  EXPECT_EQ(5, Stored(accounts, 2));
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(-205, Stored(accounts, 1));
  EXPECT_EQ(205, Stored(accounts, 2));
}

INSTANTIATE_TEST_SUITE_P(Modes, HeldUpTest, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Groups" : "Whole"; });

// A compacted log still says who depends on whom.
TEST_F(CheckpointTest, Hole20ALogMadeShorterKeepsItsTies) {
  durable_ledger = true;
  Open();
  faulty.BlockFlushes();
  std::thread writer([&] { EXPECT_EQ(0, Put(ledger, 1, 1)); });
  faulty.AwaitBlockedFlushes(1);
  // Pairs 0-1, 2-3, ...: each a group of its own, written once, before the log is made shorter.
  const std::int64_t commits = static_cast<std::int64_t>(internal::CommitLog::kCompactMin) / 2;
  for (std::int64_t i = 0; i < commits; ++i) {
    const std::int64_t from = i < 50 ? i * 2 : 200;
    ASSERT_EQ(0, Transfer(from, from + 1, 1));
  }
  EXPECT_LT(LoggedWords(), internal::CommitLog::kCompactMin);

  std::thread buyer([&] {
    EXPECT_EQ(0, engine->Call("buy", [&](Transaction& tx) -> std::int64_t {
      accounts.Edit(tx, 40)->balance -= 1;
      ledger.Put(tx, 2, BAccount{.balance = 1, .owner = {}});
      return 0;
    }));
  });
  while (!ledger.ReadCached(2)) std::this_thread::yield();
  faulty.UnblockFlushes();
  writer.join();
  buyer.join();

  EXPECT_EQ(1, Stored(ledger, 2));
  EXPECT_EQ(Read(accounts, 40), Stored(accounts, 40));
  EXPECT_EQ(Read(accounts, 41), Stored(accounts, 41));
  EXPECT_EQ(std::nullopt, Stored(accounts, 50)) << "a group of its own, nobody waits for it";
}

// Nor does it forget whose promise waits for what.
TEST_F(CheckpointTest, Hole20ALogMadeShorterKeepsItsPromises) {
  durable_ledger = true;
  Open();
  faulty.BlockFlushes();
  std::thread writer([&] { EXPECT_EQ(0, Put(ledger, 1, 1)); });
  faulty.AwaitBlockedFlushes(1);
  std::atomic<int> ran = 0;
  EXPECT_EQ(0, engine->Call("promise", [&](Transaction& tx) -> std::int64_t {
    accounts.Put(tx, 200, BAccount{.balance = 5, .owner = {}});
    tx.AfterDurable([&] {
      EXPECT_EQ(5, Stored(accounts, 200));
      ++ran;
    });
    return 0;
  }));
  const std::int64_t commits = static_cast<std::int64_t>(internal::CommitLog::kCompactMin) / 2;
  for (std::int64_t i = 0; i < commits; ++i) EXPECT_EQ(0, Transfer(1, 2, 1));
  EXPECT_LT(LoggedWords(), internal::CommitLog::kCompactMin);
  faulty.UnblockFlushes();
  writer.join();

  EXPECT_EQ(0, Put(ledger, 2, 1));  // Saves its own group only.
  EXPECT_EQ(0, ran);
  EXPECT_TRUE(engine->CheckpointNow().ok());
  AwaitCount(ran, 1);
}

TEST_F(CheckpointTest, Hole20AValueThatTheStorageRefusesIsRefusedAtCommit) {
  if (testing::kFlatAccounts) GTEST_SKIP() << "a flat value is never long";
  StorageLimits limits = storage.limits();
  limits.value_bytes_max = 1000;
  storage.set_limits(limits);
  Open();
  testing::CapturedLog log;

  const auto code = engine->Call("large", [&](Transaction& tx) -> std::int64_t {
    accounts.Put(tx, 1, BAccount{.balance = 1, .owner = testing::LongName(2000)});
    accounts.Put(tx, 2, BAccount{.balance = 2, .owner = {}});
    return 0;
  });

  EXPECT_EQ(result_code::kException, code);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("the storage takes 1000")));
  EXPECT_EQ(std::nullopt, Read(accounts, 2));
  EXPECT_EQ(0, Put(accounts, 3, 3));
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(3, Stored(accounts, 3));
}

// Commits wait while too much is unsaved, and go on as soon as it is saved, however small the
// bound is.
TEST_F(CheckpointTest, TooManyUnsavedRecordsMakeCommitsWaitForAFlush) {
  options.dirty_records_max = 100;
  Open();
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 500; ++i) EXPECT_EQ(0, Put(accounts, t * 1000 + i, i));
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_GT(engine->statistics().checkpoint.flushes, 2U);
  EXPECT_LT(engine->statistics().checkpoint.dirty_records, 100U + 6 * 64);
}

// --- a storage that fails ---

TEST_F(CheckpointTest, AFullDiskLosesNothingAndStopsNobody) {
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 1));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  faulty.FailFlushes(3, ErrorCode::kUnavailable);

  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(0, Put(accounts, 1, 10 + i));
    EXPECT_EQ(0, Put(accounts, 100 + i, i));
    EXPECT_EQ(ErrorCode::kUnavailable, engine->CheckpointNow().error().code());
    EXPECT_EQ(1, Stored(accounts, 1)) << "the previous cut";
    EXPECT_EQ(10 + i, Read(accounts, 1));
  }
  EXPECT_TRUE(engine->CheckpointNow().ok());

  EXPECT_EQ(12, Stored(accounts, 1));
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(i, Stored(accounts, 100 + i));
  EXPECT_EQ(3U, engine->statistics().checkpoint.failed_flushes);
}

// The period is off: whoever is held up by the failure must be let go all the same.
TEST_F(CheckpointTest, CommitsThatWaitForRoomGoOnWhenTheDiskHasRoomAgain) {
  options.dirty_records_max = 100;
  Open();
  faulty.FailFlushes(2, ErrorCode::kUnavailable);

  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(0, Put(accounts, i, i));

  EXPECT_GE(engine->statistics().checkpoint.failed_flushes, 1U);
}

TEST_F(CheckpointTest, ADurableTransactionWaitsWhileTheDiskIsFull) {
  durable_ledger = true;
  Open();
  faulty.FailFlushes(2, ErrorCode::kUnavailable);

  EXPECT_EQ(0, Put(ledger, 1, 5));

  EXPECT_EQ(5, Stored(ledger, 1));
}

// Written or not: the same bytes again before anything else, although the record has changed since.
TEST_F(CheckpointTest, AnUnknownOutcomeIsRepeatedIdentically) {
  std::vector<std::string> flushes;
  storage.on_flush = [&](std::span<const StorageWrite> writes) {
    std::string text;
    for (const StorageWrite& write : writes) {
      text += std::string(write.key) + "=" + std::string(write.value) + ";";
    }
    flushes.push_back(text);
  };
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 1));
  ASSERT_EQ(0, Put(accounts, 2, 1));
  faulty.SetFlushHook([&, first = true](FaultyStorage::FlushStep step) mutable {
    if (step != FaultyStorage::FlushStep::kBefore || !std::exchange(first, false)) return;
    EXPECT_EQ(0, Put(accounts, 1, 100));
    EXPECT_EQ(0, Put(accounts, 3, 100));
  });
  faulty.FailFlushes(2, ErrorCode::kUnknownOutcome, FaultyStorage::Effect::kWritten);

  EXPECT_TRUE(engine->CheckpointNow().ok());

  ASSERT_EQ(3U, flushes.size());
  EXPECT_EQ(flushes[0], flushes[1]);
  EXPECT_EQ(flushes[0], flushes[2]);
  EXPECT_EQ(1, Stored(accounts, 1));
  EXPECT_EQ(std::nullopt, Stored(accounts, 3));
  faulty.SetFlushHook(nullptr);
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(100, Stored(accounts, 1));
  EXPECT_EQ(100, Stored(accounts, 3));
}

TEST_F(CheckpointTest, AFailedReadFailsTheProcedureAndSaysWhy) {
  Open();
  Store(accounts, 1, 5);
  testing::CapturedLog log;
  faulty.FailFinds(1, ErrorCode::kUnavailable);

  const auto code = engine->Call("read", [&](Transaction& tx) -> std::int64_t {
    accounts.Get(tx, 1);
    return 0;
  });

  EXPECT_EQ(result_code::kAbortException, code);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("cannot load record 1 of table test_accounts")));
  EXPECT_EQ(5, Read(accounts, 1));
}

// --- durable at commit ---

TEST_F(CheckpointTest, DurableCommitsOfManyThreadsShareFlushes) {
  durable_ledger = true;
  Open();
  faulty.SetFlushHook([](FaultyStorage::FlushStep step) {  // A disk.
    if (step == FaultyStorage::FlushStep::kBefore) {
      SystemClock().SleepFor(std::chrono::milliseconds(1));
    }
  });
  constexpr std::int64_t kThreads = 8;
  constexpr std::int64_t kEach = 40;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < kEach; ++i) {
        EXPECT_EQ(0, Put(ledger, t * 1000 + i, i));
        EXPECT_EQ(i, Stored(ledger, t * 1000 + i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_LT(faulty.flush_count(), static_cast<std::size_t>(kThreads * kEach / 2));
}

class SyncTest : public testing::EngineTest, public ::testing::WithParamInterface<bool> {};

TEST_P(SyncTest, FlushesWaitForTheDiskAsConfigured) {
  options.sync = GetParam();
  durable_ledger = true;
  Open();

  EXPECT_EQ(0, Put(ledger, 1, 1));
  EXPECT_EQ(0, Put(accounts, 1, 1));
  EXPECT_TRUE(engine->CheckpointNow().ok());

  EXPECT_EQ(2U, faulty.flush_count());
  EXPECT_EQ(GetParam() ? 0U : 2U, storage.unsynced_flushes);
}

INSTANTIATE_TEST_SUITE_P(Modes, SyncTest, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Sync" : "NoSync"; });

// A durable commit saves its own group, not what others left unsaved.
TEST_F(CheckpointTest, ADurableCommitSavesItsGroupOnly) {
  durable_ledger = true;
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 1));
  ASSERT_EQ(0, Put(accounts, 2, 2));

  EXPECT_EQ(0, engine->Call("buy", [&](Transaction& tx) -> std::int64_t {
    accounts.Edit(tx, 1)->balance = 0;
    ledger.Put(tx, 1, BAccount{.balance = 1, .owner = {}});
    return 0;
  }));

  EXPECT_EQ(1, Stored(ledger, 1));
  EXPECT_EQ(0, Stored(accounts, 1));
  EXPECT_EQ(std::nullopt, Stored(accounts, 2));
}

// Its group is joined to a larger one while the storage fails.
TEST_F(CheckpointTest, ADurableCommitStaysUrgentWhenItsGroupGrows) {
  durable_ledger = true;
  Open();
  ASSERT_EQ(0, engine->Call("many", [&](Transaction& tx) -> std::int64_t {
    for (std::int64_t i = 0; i < 10; ++i) accounts.Put(tx, i, {});
    return 0;
  }));
  faulty.FailFlushes(1'000'000, ErrorCode::kUnavailable);
  std::atomic<bool> done = false;
  std::thread buyer([&] {
    EXPECT_EQ(0, engine->Call("buy", [&](Transaction& tx) -> std::int64_t {
      accounts.Put(tx, 50, {});
      ledger.Put(tx, 1, BAccount{.balance = 1, .owner = {}});
      return 0;
    }));
    done = true;
  });
  while (faulty.flush_count() == 0) std::this_thread::yield();
  EXPECT_EQ(0, Transfer(50, 1, 5));
  faulty.FailFlushes(0, ErrorCode::kUnavailable);

  const auto end = SystemClock().Now() + std::chrono::seconds(10);
  while (!done && SystemClock().Now() < end) std::this_thread::yield();
  EXPECT_TRUE(done);
  EXPECT_EQ(5, Stored(accounts, 1));
  EXPECT_TRUE(engine->CheckpointNow().ok());
  buyer.join();
}

// --- the end ---

TEST_F(CheckpointTest, AStopWaitsForRunningProceduresAndSavesThem) {
  Open();
  Gate gate;
  std::thread running([&] {
    EXPECT_EQ(0, engine->Call("slow", [&](Transaction& tx) -> std::int64_t {
      accounts.Put(tx, 1, BAccount{.balance = 5, .owner = {}});
      gate.Pass();
      return 0;
    }));
  });
  gate.AwaitArrivals(1);
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    EXPECT_TRUE(engine->Stop().ok());
    stopped = true;
  });
  while (engine->running()) std::this_thread::yield();

  EXPECT_EQ(result_code::kClosed, Put(accounts, 2, 2));
  EXPECT_FALSE(stopped);
  gate.Open();
  running.join();
  stopper.join();

  EXPECT_EQ(5, Stored(accounts, 1));
  EXPECT_EQ(std::nullopt, Stored(accounts, 2));
  EXPECT_EQ(result_code::kClosed, Put(accounts, 2, 2));
}

TEST_F(CheckpointTest, AStopThatCannotSaveSaysSoAndMayBeRepeated) {
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 5));
  faulty.FailFlushes(1, ErrorCode::kUnavailable);

  EXPECT_EQ(ErrorCode::kUnavailable, engine->Stop().error().code());
  EXPECT_EQ(result_code::kClosed, Put(accounts, 2, 2));
  EXPECT_TRUE(engine->Stop().ok());

  EXPECT_EQ(5, Stored(accounts, 1));
}

// The fate of what waits is unknown to the one who waits; nothing is written any more.
TEST_F(CheckpointTest, AbandonLetsDurableTransactionsGo) {
  durable_ledger = true;
  Open();
  faulty.FailFlushes(1'000'000, ErrorCode::kUnavailable);
  std::atomic<int> actions = 0;
  std::thread writer([&] {
    EXPECT_EQ(result_code::kUnknown, engine->Call("put", [&](Transaction& tx) -> std::int64_t {
      ledger.Put(tx, 1, BAccount{.balance = 5, .owner = {}});
      tx.AfterDurable([&] { ++actions; });
      tx.AfterCommit([&] { ++actions; });
      return 0;
    }));
  });
  while (faulty.flush_count() == 0) std::this_thread::yield();

  engine->Abandon();
  writer.join();

  EXPECT_EQ(0, actions);
  EXPECT_EQ(result_code::kClosed, Put(accounts, 2, 2));
  EXPECT_FALSE(engine->CheckpointNow().ok());
  EXPECT_EQ(std::nullopt, Stored(ledger, 1));
}

TEST_F(CheckpointTest, SavesPeriodically) {
  options.checkpoint_period = std::chrono::milliseconds(5);
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 5));

  while (!Stored(accounts, 1)) std::this_thread::yield();

  EXPECT_EQ(5, Stored(accounts, 1));
}

// --- several engines, long procedures ---

TEST_F(CheckpointTest, TwoEnginesInOneProcessDoNotMix) {
  Open();
  const std::unique_ptr<Storage> other_memory = OpenMemoryStorage();
  Accounts other_accounts{TableDescriptor{.id = 1, .name = "test_accounts"}};
  Engine other({.storage = other_memory.get(), .checkpoint_period = std::chrono::seconds(0)});
  ASSERT_TRUE(other.AddTable(other_accounts).ok());
  ASSERT_TRUE(other.Start().ok());

  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        EXPECT_EQ(0, engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
          accounts.GetOrAdd(tx, 1)->balance += 1;
          tx.AfterCommit([&] {
            EXPECT_EQ(0, other.Call("follow", [&](Transaction& theirs) -> std::int64_t {
              other_accounts.GetOrAdd(theirs, 1)->balance += 2;
              return 0;
            }));
          });
          return 0;
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(other.Stop().ok());

  EXPECT_EQ(1500, Read(accounts, 1));
  StorageTable* rows = other_memory->OpenTable("test_accounts").value();
  std::string bytes;
  ASSERT_TRUE(rows->Find(EncodeKey(std::int64_t{1}), bytes).value());
  BAccount account;
  ByteReader in(bytes);
  account.Decode(in);
  EXPECT_EQ(3000, account.balance);
}

TEST_F(CheckpointTest, TheWatchdogNamesAProcedureThatNeverEnds) {
  Open();
  testing::ManualClock clock;
  std::vector<std::string> named;
  Watchdog watchdog({.limit = std::chrono::seconds(10),
                     .on_long_running = [&](const LongRunning& r) { named.push_back(r.activity); },
                     .clock = &clock,
                     .start_thread = false});
  Gate gate;
  std::thread stuck([&] {
    engine->Call("stuck for ever", [&](Transaction& tx) -> std::int64_t {
      accounts.Get(tx, 1);
      gate.Pass();
      return 0;
    });
  });
  gate.AwaitArrivals(1);

  watchdog.Look();
  clock.Advance(std::chrono::seconds(11));
  watchdog.Look();
  gate.Open();
  stuck.join();

  EXPECT_THAT(named, ElementsAre(HasSubstr("stuck for ever")));
}

}  // namespace
}  // namespace zeze
