// Delayed removal: every sentence of the component's description, the peer's defects, crashes
// between batches, and several servers.

#include "zeze/components/delay_remove/delay_remove.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/components/collections/queue/testing/stored_home.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::BAccount;
using ::testing::HasSubstr;
using testing::StoredHome;
using Entry = Zeze::Builtin::DelayRemove::BTableKey;

constexpr hours kDay(24);

// A server in one object, over a home that it shares with others, one at a time.
class Server {
 public:
  Server(StoredHome& home, Clock& clock, std::int32_t id, DelayRemoveOptions options = {})
      : storage_(home.Open()),
        delay_remove(queues, options),
        engine({.storage = storage_.get(),
                .clock = &clock,
                .checkpoint_period = std::chrono::seconds(0)}) {
    delay_remove.Serve(accounts);
    delay_remove.Serve(nodes, Rewrites::kNever);
    delay_remove.OnJob("count down", [this](Transaction& tx, std::string& state) {
      accounts.GetOrAdd(tx, 500)->balance += 1;
      const int left = std::stoi(state) - 1;
      state = std::to_string(left);
      if (fail_at == left) throw std::runtime_error("not yet");
      return left > 0;
    });
    for (TableBase* table : queues.Tables()) EXPECT_TRUE(engine.AddTable(*table).ok());
    for (TableBase* table : delay_remove.Tables()) EXPECT_TRUE(engine.AddTable(*table).ok());
    for (TableBase* table : {static_cast<TableBase*>(&accounts), static_cast<TableBase*>(&nodes),
                             static_cast<TableBase*>(&unserved)}) {
      EXPECT_TRUE(engine.AddTable(*table).ok());
    }
    EXPECT_TRUE(engine.Start().ok());
    const Result<void> opened = delay_remove.Open(engine, id);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
  }
  ~Server() {
    if (!crashed_) {
      EXPECT_TRUE(engine.Stop().ok());
    }
  }
  void Crash() {
    crashed_ = true;
    engine.Abandon();
  }

  std::int64_t Do(const std::function<void(Transaction&)>& body) {
    return engine.Call("test", [&](Transaction& tx) {
      body(tx);
      return std::int64_t{0};
    });
  }
  void Put(std::int64_t key, std::int64_t balance) {
    ASSERT_EQ(0, Do([&](Transaction& tx) { accounts.Put(tx, key, BAccount{.balance = balance}); }));
  }
  void Remove(std::int64_t key, milliseconds delay = milliseconds(0)) {
    ASSERT_EQ(0, Do([&](Transaction& tx) {
                EXPECT_TRUE(DelayRemove::Remove(tx, accounts, key, delay));
              }));
  }
  bool Has(std::int64_t key) { return accounts.ReadCopy(key).value().has_value(); }
  std::int64_t Pending(std::int32_t id) {
    std::int64_t pending = -1;
    EXPECT_EQ(0, Do([&](Transaction& tx) { pending = delay_remove.Pending(tx, id); }));
    return pending;
  }
  std::size_t Marks() {
    std::size_t count = 0;
    EXPECT_TRUE(delay_remove.tRemovals
                    .Walk([&](const auto&, const auto&) {
                      ++count;
                      return true;
                    })
                    .ok());
    return count;
  }
  std::size_t Step() {
    const Result<std::size_t> done = delay_remove.Step(engine);
    EXPECT_TRUE(done.ok()) << done.error().message();
    return done.value();
  }

 private:
  std::unique_ptr<Storage> storage_;
  bool crashed_ = false;

 public:
  int fail_at = -1;
  Table<std::int64_t, BAccount> accounts{TableDescriptor{.id = 7, .name = "accounts"}};
  Table<std::int64_t, BAccount> nodes{TableDescriptor{.id = 8, .name = "nodes"}};
  Table<std::int64_t, BAccount> unserved{TableDescriptor{.id = 9, .name = "unserved"}};
  Queues queues;
  DelayRemove delay_remove;
  Engine engine;
};

class DelayRemoveTest : public ::testing::TestWithParam<StoredHome::Kind> {
 protected:
  void SetUp() override { Open(); }
  void Open(DelayRemoveOptions options = {}) {
    server.reset();
    server = std::make_unique<Server>(home, clock, 1, options);
  }
  void Crash() {
    ASSERT_TRUE(server->engine.CheckpointNow().ok());
    server->Crash();
    server.reset();
  }

  testing::ManualClock clock;
  StoredHome home{GetParam()};
  std::unique_ptr<Server> server;
};

INSTANTIATE_TEST_SUITE_P(Homes, DelayRemoveTest,
                         ::testing::Values(StoredHome::Kind::kMemory, StoredHome::Kind::kRocksDb),
                         testing::KindName);

// --- the description (seed 002), sentence by sentence ---

TEST_P(DelayRemoveTest, Seed002RemoveIsAStaticMethodAndAMethodOfTheTable) {
  server->Put(1, 10);
  server->Put(2, 20);
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    EXPECT_TRUE(DelayRemove::Remove(tx, server->accounts, 1));
    EXPECT_TRUE(server->accounts.DelayRemove(tx, 2));
    EXPECT_FALSE(server->accounts.DelayRemove(tx, 3));  // There is none.
  }));
  EXPECT_EQ(2, server->Pending(1));
}

TEST_P(DelayRemoveTest, Seed002ARemovedRecordIsOnlyQueuedAndReallyRemovedAfterAWhile) {
  server->Put(1, 10);
  server->Remove(1);

  clock.Advance(kDay * 7 - seconds(1));
  EXPECT_EQ(0u, server->Step());
  EXPECT_EQ(10, server->accounts.ReadCopy(1).value()->balance);
  ASSERT_EQ(
      0, server->Do([&](Transaction& tx) { EXPECT_EQ(10, server->accounts.Get(tx, 1)->balance); }));
  clock.Advance(seconds(1));
  EXPECT_EQ(1u, server->Step());
  EXPECT_FALSE(server->Has(1));
  EXPECT_EQ(0, server->Pending(1));
  EXPECT_EQ(0u, server->Marks());
  EXPECT_EQ(1u, server->delay_remove.statistics().removed);
}

// Delays that are computed differ almost always.
TEST_P(DelayRemoveTest, AThousandDifferentDelaysAreKept) {
  constexpr std::int64_t kDelays = 1000;
  const auto delay = [](std::int64_t key) { return milliseconds(60'000 + 977 * key); };
  for (std::int64_t key = 1; key <= kDelays; ++key) {
    server->Put(key, key);
    server->Remove(key, delay(key));
  }
  EXPECT_EQ(kDelays, server->Pending(1));
  const milliseconds begin = std::chrono::duration_cast<milliseconds>(clock.Now());
  while (server->Pending(1) > 0) {
    clock.Advance(seconds(10));
    server->Step();
    const milliseconds passed = std::chrono::duration_cast<milliseconds>(clock.Now()) - begin;
    for (std::int64_t key = 1; key <= kDelays; ++key) {
      if (server->Has(key)) {
        ASSERT_LT(passed, delay(key) * 9 / 8 + seconds(10)) << key << " stays";
      } else {
        ASSERT_GE(passed, delay(key)) << key << " went early";
      }
    }
  }
  EXPECT_EQ(kDelays, static_cast<std::int64_t>(server->delay_remove.statistics().removed));
}

// A node that is taken out of a chain still leads on for whoever stands before it.
TEST_P(DelayRemoveTest, Seed002AWalkAcrossARemovedRecordGoesOn) {
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {  // 1 -> 2 -> 3; the balance is the next node.
    server->nodes.Put(tx, 1, BAccount{.balance = 2});
    server->nodes.Put(tx, 2, BAccount{.balance = 3});
    server->nodes.Put(tx, 3, BAccount{.balance = 0});
  }));
  std::int64_t at = server->nodes.ReadCopy(1).value()->balance;
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    server->nodes.Edit(tx, 1)->balance = 3;
    server->nodes.DelayRemove(tx, 2);
  }));

  at = server->nodes.ReadCopy(at).value()->balance;  // A walk of before.
  EXPECT_EQ(3, at);
  EXPECT_EQ(3, server->nodes.ReadCopy(1).value()->balance);  // A walk of after.
  clock.Advance(kDay * 7);
  EXPECT_EQ(1u, server->Step());
  EXPECT_FALSE(server->nodes.ReadCopy(2).value().has_value());
}

TEST_P(DelayRemoveTest, Seed002NeedsNoInitialisationBeyondTheModule) {
  Result<std::unique_ptr<Application>> opened = Application::Open(
      "test", {.server_id = 4, .storage = {.url = "memory:"}, .worker_threads = 2});
  Queues queues;
  DelayRemove delay_remove(queues, {.delay = milliseconds(1), .step_period = milliseconds(5)});
  Table<std::int64_t, BAccount> accounts{TableDescriptor{.id = 7, .name = "accounts"}};
  delay_remove.Serve(accounts);
  Application& application = *opened.value();
  application.AddModule(queues);
  application.AddModule(delay_remove);
  application.AddTable(accounts);
  ASSERT_TRUE(application.Start().ok());
  ASSERT_EQ(0, application.Call("remove", [&](Transaction& tx) {
    accounts.Put(tx, 1, BAccount());
    accounts.DelayRemove(tx, 1);
    return 0;
  }));
  while (accounts.ReadCopy(1).value().has_value()) std::this_thread::yield();
  ASSERT_TRUE(application.Stop().ok());
  opened.value().reset();
}

// --- delays ---

TEST_P(DelayRemoveTest, DelaysFromSecondsToMonthsBesideEachOther) {
  for (std::int64_t key = 1; key <= 3; ++key) server->Put(key, key);
  server->Remove(1, kDay * 180);
  server->Remove(2);
  server->Remove(3, seconds(5));
  EXPECT_EQ(3, server->Pending(1));

  clock.Advance(seconds(5));
  server->Step();
  EXPECT_TRUE(server->Has(1));
  EXPECT_TRUE(server->Has(2));
  EXPECT_FALSE(server->Has(3));
  clock.Advance(kDay * 7);
  server->Step();
  EXPECT_TRUE(server->Has(1));
  EXPECT_FALSE(server->Has(2));
  clock.Advance(kDay * 173 - seconds(6));
  server->Step();
  EXPECT_TRUE(server->Has(1));
  clock.Advance(seconds(1));
  server->Step();
  EXPECT_FALSE(server->Has(1));
}

TEST_P(DelayRemoveTest, PeerDefect28DelaysOfMoreThan24DaysDoNotOverflow) {
  for (const int days : {25, 50, 365, 36500}) {
    Open({.delay = kDay * days});
    server->Put(1, 1);
    server->Remove(1);
    server->Step();
    EXPECT_TRUE(server->Has(1)) << days;
    clock.Advance(kDay * days - seconds(1));
    server->Step();
    EXPECT_TRUE(server->Has(1)) << days;
    clock.Advance(seconds(1));
    server->Step();
    EXPECT_FALSE(server->Has(1)) << days;
  }
}

// The peer takes a node out of the queue of which only the first entry is due.
TEST_P(DelayRemoveTest, PeerDefect28NothingLeavesTheQueueBeforeItsTimeOrWithoutItsRecord) {
  for (std::int64_t key = 0; key < 100; ++key) {
    server->Put(key, key);
    server->Remove(key);
    clock.Advance(hours(1));
  }
  std::int64_t removed = 0;
  while (removed < 100) {
    clock.Advance(hours(1));
    server->Step();
    std::int64_t left = 0;
    for (std::int64_t key = 0; key < 100; ++key) left += server->Has(key) ? 1 : 0;
    EXPECT_EQ(left, server->Pending(1));
    EXPECT_LE(100 - left - removed, 1);
    removed = 100 - left;
    ASSERT_LT(clock.Now(), kDay * 20);
  }
  EXPECT_EQ(100u, server->delay_remove.statistics().removed);
}

TEST_P(DelayRemoveTest, BadDelaysAreClearErrors) {
  server->Put(1, 1);
  for (const milliseconds delay : {milliseconds(-1), milliseconds(kDay * 40000)}) {
    std::string message;
    EXPECT_NE(0, server->Do([&](Transaction& tx) {
      try {
        server->accounts.DelayRemove(tx, 1, delay);
      } catch (const std::invalid_argument& e) {
        message = e.what();
        throw;
      }
    }));
    EXPECT_THAT(message, HasSubstr("expected 1 ms to 100 years"));
  }
  DelayRemove zero(server->queues, {.delay = milliseconds(0)});
  EXPECT_FALSE(zero.Open(server->engine, 1).ok());
}

TEST_P(DelayRemoveTest, ATableThatIsNotServedIsAClearError) {
  std::string message;
  EXPECT_NE(0, server->Do([&](Transaction& tx) {
    server->unserved.Put(tx, 1, BAccount());
    try {
      server->unserved.DelayRemove(tx, 1);
    } catch (const std::logic_error& e) {
      message = e.what();
      throw;
    }
  }));
  EXPECT_THAT(message, HasSubstr("table unserved has no later removal: call DelayRemove::Serve"));
}

TEST_P(DelayRemoveTest, AClockThatWasWrongHoldsNothingUp) {
  server->Put(1, 1);
  server->Put(2, 2);
  clock.ShiftSystemTime(kDay * 365);
  server->Remove(1);
  clock.ShiftSystemTime(-kDay * 365);
  server->Remove(2);

  clock.Advance(kDay * 7);
  server->Step();
  EXPECT_FALSE(server->Has(2));
  EXPECT_TRUE(server->Has(1));
  clock.Advance(kDay * 7);
  server->Step();
  EXPECT_FALSE(server->Has(1));
}

// --- cancelled by writing ---

TEST_P(DelayRemoveTest, ARecordThatIsWrittenAgainStays) {
  for (std::int64_t key = 1; key <= 6; ++key) {
    server->Put(key, key);
    server->Remove(key);
  }
  server->Put(1, 100);  // Changed.
  server->Put(2, 2);    // The same content: it was written all the same.
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    server->accounts.Edit(tx, 3)->balance += 1;
    server->accounts.Remove(tx, 4);  // Gone,
  }));
  server->Put(4, 4);  // and made again as it was.
  // Looked at only, and a write that was rolled back.
  ASSERT_EQ(0, server->Do([&](Transaction& tx) { server->accounts.Get(tx, 5); }));
  EXPECT_EQ(7, server->engine.Call("roll back", [&](Transaction& tx) {
    server->accounts.Put(tx, 6, BAccount());
    return 7;
  }));

  clock.Advance(kDay * 7);
  EXPECT_EQ(6u, server->Step());

  for (std::int64_t key = 1; key <= 4; ++key) EXPECT_TRUE(server->Has(key)) << key;
  EXPECT_FALSE(server->Has(5));
  EXPECT_FALSE(server->Has(6));
  EXPECT_EQ(4u, server->delay_remove.statistics().cancelled);
  EXPECT_EQ(0u, server->Marks());
}

TEST_P(DelayRemoveTest, InOneTransactionWhatComesLastCounts) {
  for (std::int64_t key = 1; key <= 5; ++key) server->Put(key, key);
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    auto& accounts = server->accounts;
    accounts.Edit(tx, 1)->balance = 7;  // Written, then removed.
    accounts.DelayRemove(tx, 1);
    accounts.DelayRemove(tx, 2);  // Removed, then written.
    accounts.Put(tx, 2, BAccount{.balance = 2});
    auto early = accounts.Edit(tx, 3);  // By a handle of before.
    accounts.DelayRemove(tx, 3);
    early->balance = 9;
    // What a nested procedure did and undid does not count, neither way.
    accounts.Edit(tx, 4)->balance = 8;
    accounts.DelayRemove(tx, 4);
    tx.Call("undone", [&](Transaction& nested) {
      accounts.Edit(nested, 4)->balance = 1;
      return 1;
    });
    accounts.Edit(tx, 5)->balance = 8;
    tx.Call("undone", [&](Transaction& nested) {
      accounts.DelayRemove(nested, 5);
      return 1;
    });
  }));
  clock.Advance(kDay * 7);
  server->Step();
  EXPECT_FALSE(server->Has(1));
  EXPECT_TRUE(server->Has(2));
  EXPECT_TRUE(server->Has(3));
  EXPECT_FALSE(server->Has(4));
  EXPECT_TRUE(server->Has(5));
}

TEST_P(DelayRemoveTest, TheLastRemovalCounts) {
  server->Put(1, 1);
  server->Remove(1);
  clock.Advance(kDay * 5);
  server->Put(1, 1);
  clock.Advance(kDay * 1);
  server->Remove(1);
  clock.Advance(kDay * 1);  // The first would be due.
  server->Step();
  EXPECT_TRUE(server->Has(1));
  clock.Advance(kDay * 6);
  server->Step();
  EXPECT_FALSE(server->Has(1));

  // Removed, made again and removed with a longer delay, while an older entry still waits.
  server->Put(1, 1);
  server->Remove(1, kDay * 7 + seconds(1));
  server->Remove(1, seconds(5));
  clock.Advance(seconds(5));
  server->Step();
  EXPECT_FALSE(server->Has(1));
  server->Put(1, 1);
  clock.Advance(kDay * 1);
  server->Remove(1);
  clock.Advance(kDay * 6 + seconds(10));
  server->Step();
  EXPECT_TRUE(server->Has(1));
}

TEST_P(DelayRemoveTest, CancellationOutlivesCrashes) {
  for (std::int64_t key = 1; key <= 2; ++key) {
    server->Put(key, key);
    server->Remove(key);
  }
  Crash();
  Open();
  server->Put(1, 1);
  Crash();
  Open();
  clock.Advance(kDay * 7);
  server->Step();
  EXPECT_TRUE(server->Has(1));
  EXPECT_FALSE(server->Has(2));
}

// --- collection ---

TEST_P(DelayRemoveTest, CollectsInBoundedBatchesAndGoesOnAfterACrashBetweenThem) {
  Open({.batch = 7, .batches_in_step = 1});
  for (std::int64_t key = 0; key < 50; ++key) {
    server->Put(key, key);
    server->Remove(key);
  }
  clock.Advance(kDay * 7);
  std::size_t steps = 0;
  while (server->Pending(1) > 0) {
    EXPECT_LE(server->Step(), 7u);
    ++steps;
    std::int64_t left = 0;
    for (std::int64_t key = 0; key < 50; ++key) left += server->Has(key) ? 1 : 0;
    EXPECT_EQ(left, server->Pending(1));  // Never one without the other.
    if (steps % 2 == 0) {
      // Half of the time the last batch is lost with the process: it is done again.
      if (steps % 4 == 0) {
        ASSERT_TRUE(server->engine.CheckpointNow().ok());
      }
      server->Crash();
      server.reset();
      server = std::make_unique<Server>(home, clock, 1,
                                        DelayRemoveOptions{.batch = 7, .batches_in_step = 1});
    }
    ASSERT_LT(steps, 100u);
  }
  for (std::int64_t key = 0; key < 50; ++key) EXPECT_FALSE(server->Has(key));
}

TEST_P(DelayRemoveTest, ADeadServersQueueIsTakenOver) {
  server->Put(1, 1);
  server->Remove(1);
  server->Put(2, 2);
  server->Remove(2, seconds(1));
  Crash();
  Server other(home, clock, 2);
  clock.Advance(kDay * 7 + minutes(9));
  EXPECT_EQ(1u, other.delay_remove.StepForOthers(other.engine).value());  // Only the short one.
  EXPECT_TRUE(other.Has(1));
  clock.Advance(minutes(1));
  EXPECT_EQ(1u, other.delay_remove.StepForOthers(other.engine).value());
  EXPECT_FALSE(other.Has(1));
  EXPECT_FALSE(other.Has(2));
  EXPECT_EQ(0, other.Pending(1));
}

// What was promised counts, not what whoever collects would have promised.
TEST_P(DelayRemoveTest, RecordsStayForTheDelayOfWhoRemovedThem) {
  server->Put(1, 1);
  server->Remove(1);
  Crash();
  {
    Server hasty(home, clock, 2, {.delay = seconds(1)});
    clock.Advance(hours(1));
    EXPECT_EQ(0u, hasty.delay_remove.StepForOthers(hasty.engine).value());
    EXPECT_TRUE(hasty.Has(1));
  }
  Open({.delay = seconds(1)});  // Configured anew: the next ones go sooner.
  EXPECT_EQ(0u, server->Step());
  EXPECT_TRUE(server->Has(1));
  clock.Advance(kDay * 7);
  EXPECT_EQ(1u, server->Step());
  EXPECT_FALSE(server->Has(1));
}

TEST_P(DelayRemoveTest, WhatBelongsToAnotherProgramIsPutOffNotDropped) {
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    AnyQueue queue(server->queues, "__GCTableQueue#1");
    queue.Add(tx, AnyBean::Of(Entry{.TableName = "elsewhere", .EncodedKey = {"\x01"}}));
  }));
  server->Put(1, 1);
  server->Remove(1);
  clock.Advance(kDay * 7);
  server->Step();
  EXPECT_FALSE(server->Has(1));
  EXPECT_EQ(1, server->Pending(1));
  EXPECT_EQ(1u, server->delay_remove.statistics().parked);
}

// Entries that Zeze 1.6 left have no serial.
TEST_P(DelayRemoveTest, EntriesOfThePeerAreCollected) {
  server->Put(5, 5);
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    AnyQueue queue(server->queues, "__GCTableQueue#1");
    queue.Add(tx, AnyBean::Of(Entry{.TableName = "accounts",
                                    .EncodedKey = {EncodeKey(std::int64_t{5})},
                                    .EnqueueTime = 1}));
  }));
  server->Step();
  EXPECT_FALSE(server->Has(5));
}

// --- jobs ---

TEST_P(DelayRemoveTest, AJobGoesOnAfterARestartFromItsLastStep) {
  Open({.job_steps = 3});
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    server->delay_remove.StartJob(tx, "count down", "10");
  }));
  server->Step();
  EXPECT_EQ(3, server->accounts.ReadCopy(500).value()->balance);
  Crash();
  Open({.job_steps = 3});
  for (int i = 0; i < 5; ++i) server->Step();
  // Each step took effect once.
  EXPECT_EQ(10, server->accounts.ReadCopy(500).value()->balance);
  EXPECT_TRUE(server->delay_remove.tJobs.ReadCopy(1).value()->Jobs.empty());
}

TEST_P(DelayRemoveTest, AStepThatFailsIsTriedAgain) {
  ASSERT_EQ(0, server->Do(
                   [&](Transaction& tx) { server->delay_remove.StartJob(tx, "count down", "3"); }));
  server->fail_at = 1;
  server->Step();
  EXPECT_EQ(1, server->accounts.ReadCopy(500).value()->balance);
  server->fail_at = -1;
  server->Step();
  EXPECT_EQ(3, server->accounts.ReadCopy(500).value()->balance);
}

TEST_P(DelayRemoveTest, ADeadServersJobsAreTakenOver) {
  ASSERT_EQ(0, server->Do(
                   [&](Transaction& tx) { server->delay_remove.StartJob(tx, "count down", "5"); }));
  Crash();
  Server other(home, clock, 2);
  ASSERT_TRUE(other.delay_remove.StepForOthers(other.engine).ok());
  EXPECT_FALSE(other.Has(500));  // It may be alive.
  clock.Advance(minutes(10));
  EXPECT_EQ(5u, other.delay_remove.StepForOthers(other.engine).value());
  EXPECT_EQ(5, other.accounts.ReadCopy(500).value()->balance);
}

TEST_P(DelayRemoveTest, AJobOfATransactionThatRollsBackNeverWas) {
  EXPECT_EQ(7, server->engine.Call("roll back", [&](Transaction& tx) {
    server->delay_remove.StartJob(tx, "count down", "5");
    return 7;
  }));
  EXPECT_EQ(0u, server->Step());
  EXPECT_NE(0,
            server->Do([&](Transaction& tx) { server->delay_remove.StartJob(tx, "nobody", ""); }));
}

// Removals, writes and collections from several threads, beside a model of who wrote last.
TEST_P(DelayRemoveTest, ThreadsRemoveWriteAndCollect) {
  Open({.delay = seconds(2), .batch = 5});
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  constexpr std::int64_t kKeys = 40;
  // Key k belongs to thread k % 3: it knows what it did with it last, and when.
  struct Known {
    bool exists = false;
    std::optional<std::chrono::nanoseconds> removed;
  };
  std::map<std::int64_t, Known> known;
  for (std::int64_t key = 0; key < kKeys; ++key) known[key];
  std::atomic<int> running = 3;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(t));
      for (int n = 0; n < 1500; ++n) {
        const std::int64_t key = static_cast<std::int64_t>(random() % (kKeys / 3)) * 3 + t;
        Known& mine = known[key];
        const auto before = clock.Now();
        bool exists = false;
        const std::uint64_t what = random() % 3;
        EXPECT_EQ(0, server->Do([&](Transaction& tx) {
          exists = server->accounts.Contains(tx, key);
          if (what == 0) server->accounts.Put(tx, key, BAccount{.balance = 1});
          if (what == 1) server->accounts.DelayRemove(tx, key);
          if (what == 2) clock.Advance(milliseconds(3));
        }));
        if (mine.exists && !mine.removed) {
          EXPECT_TRUE(exists) << "was written and not removed";
        }
        if (!mine.exists) {
          EXPECT_FALSE(exists);
        }
        if (mine.exists && mine.removed && !exists) {
          EXPECT_GE(clock.Now() - *mine.removed, seconds(2));
        }
        mine.exists = exists || what == 0;
        if (what == 0 || !exists) mine.removed.reset();
        if (what == 1 && exists) mine.removed = before;
      }
      --running;
    });
  }
  threads.emplace_back([&] {
    while (running > 0) server->Step();
  });
  for (std::thread& thread : threads) thread.join();
  clock.Advance(seconds(2));
  while (server->Step() > 0) {
  }
  for (const auto& [key, mine] : known) {
    EXPECT_EQ(mine.exists && !mine.removed, server->Has(key)) << key;
  }
  EXPECT_EQ(0, server->Pending(1));
  EXPECT_EQ(0u, server->Marks());
}

}  // namespace
}  // namespace zeze
