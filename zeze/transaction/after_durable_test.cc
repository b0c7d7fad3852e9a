// AfterDurable actions: when, in which order and how often they run, and what they may do.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using testing::BAccount;
using ::testing::Contains;
using testing::Gate;
using ::testing::HasSubstr;

class AfterDurableTest : public testing::EngineTest, public ::testing::WithParamInterface<bool> {};

TEST_P(AfterDurableTest, RunsOnceTheStorageHasIt) {
  durable_ledger = GetParam();
  Open();
  std::atomic<int> ran = 0;
  const auto put = [&](std::int64_t key, std::int64_t code) {
    return engine->Call("put", [&, key, code](Transaction& tx) -> std::int64_t {
      accounts.Put(tx, key, BAccount{.balance = 5, .owner = {}});
      tx.AfterDurable([&, key] {
        EXPECT_EQ(5, Stored(accounts, key));
        ++ran;
        if (key == 2) throw std::runtime_error("must not stop the checkpoint");
      });
      return code;
    });
  };

  EXPECT_EQ(0, put(1, 0));
  EXPECT_EQ(0, put(2, 0));
  EXPECT_EQ(9, put(3, 9));
  EXPECT_EQ(0, ran);
  EXPECT_TRUE(engine->CheckpointNow().ok());

  AwaitCount(ran, 2);
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_TRUE(engine->Stop().ok());
  EXPECT_EQ(2, ran);
}

// Also of what it only read, and at any level.
TEST_P(AfterDurableTest, AReaderIsToldWhenWhatItReadIsSaved) {
  durable_ledger = GetParam();
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 5));
  std::atomic<int> ran = 0;
  for (const auto level :
       {TransactionLevel::kSerializable, TransactionLevel::kAllowDirtyWhenAllRead}) {
    EXPECT_EQ(0, engine->Call(
                     "read",
                     [&](Transaction& tx) -> std::int64_t {
                       accounts.Get(tx, 1);
                       tx.AfterDurable([&] {
                         EXPECT_EQ(5, Stored(accounts, 1));
                         ++ran;
                       });
                       return 0;
                     },
                     level));
  }

  EXPECT_TRUE(engine->CheckpointNow().ok());

  AwaitCount(ran, 2);
}

// Many flushes and many actions at once: tickets change hands without a leak or a double free.
TEST_P(AfterDurableTest, EveryActionOfManyThreadsRunsOnce) {
  durable_ledger = GetParam();
  Open();
  std::atomic<int> ran = 0;
  std::atomic<bool> stop = false;
  std::thread checkpoints([&] {
    while (!stop) EXPECT_TRUE(engine->CheckpointNow().ok());
  });
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 2000; ++i) {
        engine->Call("count", [&](Transaction& tx) -> std::int64_t {
          accounts.GetOrAdd(tx, t)->balance = i;
          tx.AfterDurable([&] { ++ran; });
          return 0;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  checkpoints.join();
  EXPECT_TRUE(engine->Stop().ok());

  EXPECT_EQ(4 * 2000, ran);
}

// The storage is behind, so the procedure waits for a flush: the thread that flushes must be free.
TEST_P(AfterDurableTest, AnActionMayRunProceduresWhileCommitsWaitForTheStorage) {
  durable_ledger = GetParam();
  options.dirty_records_max = 100;
  Open();
  Gate gate;
  std::atomic<int> ran = 0;
  ASSERT_EQ(0, engine->Call("first", [&](Transaction& tx) -> std::int64_t {
    accounts.Put(tx, 1, BAccount{.balance = 1, .owner = {}});
    tx.AfterDurable([&] {
      gate.Pass();
      EXPECT_EQ(0, Put(accounts, 2, 2));
      ++ran;
    });
    return 0;
  }));
  engine->WantFlush();  // On the checkpoint's thread.
  gate.AwaitArrivals(1);
  faulty.BlockFlushes();
  for (std::int64_t i = 1000; !engine->checkpoint().overloaded(); ++i) {
    ASSERT_EQ(0, Put(accounts, i, i));
  }

  gate.Open();
  engine->WantFlush();
  faulty.AwaitBlockedFlushes(1);
  faulty.UnblockFlushes();

  AwaitCount(ran, 1);
  EXPECT_EQ(2, Read(accounts, 2));
}

// The flush that a durable commit waits for takes along what others promised.
TEST_P(AfterDurableTest, ADurableProcedureIsNotHeldUpByTheActionsOfOthers) {
  durable_ledger = GetParam();
  Open();
  Gate gate;
  ASSERT_EQ(0, engine->Call("slow", [&](Transaction& tx) -> std::int64_t {
    accounts.Put(tx, 1, BAccount{.balance = 1, .owner = {}});
    tx.AfterDurable([&] { gate.Pass(); });
    return 0;
  }));

  EXPECT_EQ(0, engine->Call("durable", [&](Transaction& tx) -> std::int64_t {
    accounts.Edit(tx, 1)->balance = 2;
    tx.RequireDurable();
    return 0;
  }));

  EXPECT_EQ(2, Stored(accounts, 1));
  gate.AwaitArrivals(1);
  gate.Open();
}

TEST_P(AfterDurableTest, ActionsOfDependentCommitsRunInTheOrderOfTheCommits) {
  durable_ledger = GetParam();
  Open();
  std::vector<std::int64_t> order;  // One action at a time.
  std::atomic<bool> stop = false;
  std::thread checkpoints([&] {
    while (!stop) EXPECT_TRUE(engine->CheckpointNow().ok());
  });
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::int64_t i = 0; i < 1000; ++i) {
        engine->Call("count", [&](Transaction& tx) -> std::int64_t {
          const std::int64_t turn = ++accounts.GetOrAdd(tx, 1)->balance;
          tx.AfterDurable([&, turn] { order.push_back(turn * 2); });
          tx.AfterDurable([&, turn] { order.push_back(turn * 2 + 1); });
          return 0;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  checkpoints.join();
  EXPECT_TRUE(engine->Stop().ok());

  EXPECT_EQ(2 * 4000U, order.size());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(AfterDurableTest, AnActionThatThrowsDoesNotTakeTheNextOnesWithIt) {
  durable_ledger = GetParam();
  Open();
  testing::CapturedLog log;
  std::atomic<int> ran = 0;
  ASSERT_EQ(0, engine->Call("put", [&](Transaction& tx) -> std::int64_t {
    accounts.Put(tx, 1, BAccount{.balance = 1, .owner = {}});
    tx.AfterDurable([] { throw std::runtime_error("no such luck"); });
    tx.AfterDurable([&] { ++ran; });
    return 0;
  }));

  EXPECT_TRUE(engine->Stop().ok());

  EXPECT_EQ(1, ran);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("no such luck")));
}

TEST_P(AfterDurableTest, AProcedureIsRefusedWhileTooManyActionsWait) {
  durable_ledger = GetParam();
  options.after_durable_max = 3;
  Open();
  const auto put = [&](std::int64_t key) {
    return engine->Call("put", [&](Transaction& tx) -> std::int64_t {
      accounts.Put(tx, key, BAccount{.balance = 1, .owner = {}});
      tx.AfterDurable([] {});
      return 0;
    });
  };
  for (std::int64_t key = 0; key < 3; ++key) EXPECT_EQ(0, put(key));

  EXPECT_EQ(result_code::kBusy, put(3));
  EXPECT_EQ(0, Put(accounts, 4, 4));
  EXPECT_TRUE(engine->CheckpointNow().ok());

  while (put(5) == result_code::kBusy) std::this_thread::yield();
  EXPECT_EQ(std::nullopt, Read(accounts, 3));
}

TEST_P(AfterDurableTest, AStopInsideAnActionIsRefused) {
  durable_ledger = GetParam();
  Open();
  std::atomic<int> refused = 0;
  ASSERT_EQ(0, engine->Call("put", [&](Transaction& tx) -> std::int64_t {
    accounts.Put(tx, 1, BAccount{.balance = 1, .owner = {}});
    tx.AfterDurable([&] {
      if (!engine->Stop().ok()) ++refused;
    });
    return 0;
  }));

  EXPECT_TRUE(engine->CheckpointNow().ok());

  AwaitCount(refused, 1);
  EXPECT_EQ(0, Put(accounts, 2, 2));
}

TEST_P(AfterDurableTest, AProcedureThatRequiresItReturnsWhenItIsSaved) {
  durable_ledger = GetParam();
  Open();
  ASSERT_EQ(0, Put(accounts, 2, 7));

  EXPECT_EQ(0, engine->Call("put", [&](Transaction& tx) -> std::int64_t {
    accounts.Put(tx, 1, BAccount{.balance = accounts.Get(tx, 2)->balance, .owner = {}});
    tx.RequireDurable();
    return 0;
  }));

  EXPECT_EQ(7, Stored(accounts, 1));
  EXPECT_EQ(7, Stored(accounts, 2));
}

INSTANTIATE_TEST_SUITE_P(Modes, AfterDurableTest, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Groups" : "Whole"; });

}  // namespace
}  // namespace zeze
