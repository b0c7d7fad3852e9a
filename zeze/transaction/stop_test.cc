// What reads tables outside transactions while the engine stops, and afterwards.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"
#include "zeze/transaction/testing/engine_test.h"
#include "zeze/transaction/testing/gate.h"

namespace zeze {
namespace {

using testing::BAccount;
using testing::EngineTest;
using testing::Gate;
using ::testing::HasSubstr;

class EngineStopTest : public EngineTest {
 protected:
  static constexpr std::int64_t kCount = 30;
  static constexpr std::size_t kPage = 10;

  void SetUp() override {
    account_options.cache_capacity = 5;
    Open();
    for (std::int64_t key = 1; key <= kCount; ++key) ASSERT_EQ(0, Put(accounts, key, key));
    ASSERT_EQ(0, Put(scratch, 1, 1));
    ASSERT_TRUE(engine->CheckpointNow().ok());
  }

  template <typename T>
  static void ExpectRefused(const Result<T>& result) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(ErrorCode::kShuttingDown, result.error().code());
    EXPECT_THAT(result.error().message(), HasSubstr("its engine stops or has stopped"));
  }

  void AwaitStopping() {
    while (engine->running()) std::this_thread::yield();
  }
};

TEST_F(EngineStopTest, WaitsForThePageThatIsBeingReadAndRefusesTheNext) {
  Gate gate;
  storage.after_walk = [&] { gate.Pass(); };
  std::size_t seen = 0;
  std::optional<Result<std::size_t>> walked;
  std::thread walker([&] {
    walked = accounts.Walk([&](std::int64_t, const BAccount&) { return ++seen > 0; },
                           {.page_size = kPage});
  });
  gate.AwaitArrivals(1);
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    EXPECT_TRUE(engine->Stop().ok());
    stopped = true;
  });
  AwaitStopping();
  GiveChance([&] { return stopped.load(); });
  EXPECT_FALSE(stopped) << "the storage would go away under the page";

  gate.Open();
  stopper.join();
  walker.join();

  ExpectRefused(*walked);
  EXPECT_EQ(kPage, seen);
}

TEST_F(EngineStopTest, WaitsForARecordThatIsBeingLoaded) {
  Gate gate;
  storage.after_find = [&] { gate.Pass(); };
  std::optional<Result<std::optional<BAccount>>> read;
  std::thread reader([&] { read = accounts.ReadCopy(1000); });
  gate.AwaitArrivals(1);
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    EXPECT_TRUE(engine->Stop().ok());
    stopped = true;
  });
  AwaitStopping();
  GiveChance([&] { return stopped.load(); });
  EXPECT_FALSE(stopped);

  gate.Open();
  stopper.join();
  reader.join();

  EXPECT_TRUE(read->ok());
}

TEST_F(EngineStopTest, DoesNotWaitForTheVisitorOfAWalk) {
  for (const bool of_storage : {false, true}) {
    SCOPED_TRACE(of_storage);
    if (of_storage) {
      engine.reset();
      Open();
    }
    Gate gate;
    std::size_t seen = 0;
    std::optional<Result<std::size_t>> walked;
    const auto visit = [&](std::int64_t, const BAccount&) {
      gate.Pass();
      return ++seen > 0;
    };
    std::thread walker([&] {
      walked = of_storage ? accounts.WalkStorage(visit, {.page_size = kPage})
                          : accounts.Walk(visit, {.page_size = kPage});
    });
    gate.AwaitArrivals(1);
    EXPECT_TRUE(engine->Stop().ok());
    gate.Open();
    walker.join();

    ExpectRefused(*walked);
    EXPECT_EQ(kPage, seen) << "the page was read already";
  }
}

TEST_F(EngineStopTest, AfterwardsEveryReadOfTablesIsRefusedWithASentence) {
  ASSERT_TRUE(engine->Stop().ok());
  const auto record = [](std::int64_t, const BAccount&) { return true; };
  const auto key = [](std::int64_t) { return true; };

  ExpectRefused(accounts.Walk(record));
  ExpectRefused(accounts.Walk(KeyRange<std::int64_t>::Between(1, 9), record));
  ExpectRefused(accounts.WalkKeys(key));
  ExpectRefused(accounts.WalkPage(std::nullopt, 10, record));
  ExpectRefused(accounts.WalkStorage(record));
  ExpectRefused(accounts.ReadCopy(1));
  ExpectRefused(accounts.ReadCopy(1000));
  ExpectRefused(scratch.Walk(record));
  ExpectRefused(scratch.WalkKeys(key));
  ExpectRefused(scratch.ReadCopy(1));
  EXPECT_TRUE(engine->CheckpointNow().ok()) << "everything is saved";
  EXPECT_EQ(1, scratch.ReadCached(1)->balance) << "needs neither storage nor rights";
  EXPECT_EQ(1U, scratch.WalkCache(record));
}

TEST_F(EngineStopTest, AnEngineWithoutAStorageRefusesTheSame) {
  engine.reset();
  options.storage = nullptr;
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 1));
  const auto record = [](std::int64_t, const BAccount&) { return true; };
  EXPECT_EQ(1U, accounts.Walk(record).value());
  EXPECT_EQ(0U, accounts.WalkStorage(record).value());
  EXPECT_THROW(static_cast<void>(accounts.WalkPage(std::nullopt, 10, record).ok()), UsageError);
  ASSERT_TRUE(engine->Stop().ok());

  ExpectRefused(accounts.Walk(record));
  ExpectRefused(accounts.WalkStorage(record));
  ExpectRefused(accounts.ReadCopy(1));
}

TEST_F(EngineStopTest, WhatItWaitsForMayGoOnReading) {
  Gate gate;
  bool body_read = false;
  bool action_read = false;
  std::thread caller([&] {
    EXPECT_EQ(0, engine->Call("reads while the engine stops", [&](Transaction& tx) -> std::int64_t {
      accounts.Put(tx, 1, {.balance = 7, .owner = {}});
      tx.AfterDurable([&] { action_read = accounts.ReadCopy(3000).ok(); });
      gate.Pass();
      body_read = accounts.ReadCopy(2000).ok() &&
                  accounts.Walk([](std::int64_t, const BAccount&) { return true; }).ok();
      return result_code::kSuccess;
    }));
  });
  gate.AwaitArrivals(1);
  std::thread stopper([&] { EXPECT_TRUE(engine->Stop().ok()); });
  AwaitStopping();
  gate.Open();
  caller.join();
  stopper.join();

  EXPECT_TRUE(body_read);
  EXPECT_TRUE(action_read);
  EXPECT_EQ(7, Stored(accounts, 1));
}

TEST(EngineBeforeStart, CheckpointNowIsRefusedWithASentence) {
  Engine engine({});
  const Result<void> saved = engine.CheckpointNow();
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message(), HasSubstr("call Start first"));
}

}  // namespace
}  // namespace zeze
