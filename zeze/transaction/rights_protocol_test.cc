// The holes of the commit protocol around rights, locks and leases that one process can meet, each
// with the situation in which it would open. The numbers are those of docs/architecture.md;
// docs/testing.md says how each test was seen to fail without its rule.

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "zeze/base/result_code.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/testing/engine_test.h"
#include "zeze/transaction/testing/protocol_fixture.h"

namespace zeze {
namespace {

using testing::BAccount;
using testing::Gate;
using testing::ProtocolTest;

// --- hole 4: where rights are checked ---

TEST_F(ProtocolTest, Hole04ARightLostAfterTheReadIsNoticed) {
  OpenShared();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  int runs = 0;

  const auto code = engine->Call("edit", [&](Transaction& tx) -> std::int64_t {
    accounts.Edit(tx, 1)->balance += 1;
    if (++runs == 1) {
      EXPECT_TRUE(engine->Reduce(GlobalKey(accounts, 1), Right::kShare).ok());
    }
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(11, Read(accounts, 1));
}

// The first record's right goes while the second one's is fetched: after the check of rule 8,
// before the locks.
TEST_F(ProtocolTest, Hole04ARightLostWhileOthersAreAcquiredIsNoticed) {
  bool armed = false;
  coherence.on_acquire = [&](std::string_view key, Right wanted) {
    if (!armed || wanted != Right::kModify || key != GlobalKey(accounts, 2)) return;
    armed = false;
    EXPECT_TRUE(engine->Reduce(GlobalKey(accounts, 1), Right::kInvalid).ok());
    Store(accounts, 1, 500);  // The server that has it now.
  };
  OpenShared();
  Store(accounts, 1, 100);
  Store(accounts, 2, 100);
  armed = true;
  int runs = 0;

  const auto code = engine->Call("transfer", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    accounts.Get(tx, 1);  // Share first, Modify only at the commit.
    accounts.Get(tx, 2);
    accounts.Edit(tx, 1)->balance += 1;
    accounts.Edit(tx, 2)->balance -= 1;
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(501, Read(accounts, 1));
  EXPECT_EQ(99, Read(accounts, 2));
}

// The record's own right goes, and comes back with another value, while it is raised to Modify.
TEST_F(ProtocolTest, Hole04ARecordThatChangesWhileItsRightIsRaisedIsNoticed) {
  bool armed = false;
  coherence.on_acquire = [&](std::string_view key, Right wanted) {
    if (!armed || wanted != Right::kModify || key != GlobalKey(accounts, 1)) return;
    armed = false;
    EXPECT_TRUE(engine->Reduce(GlobalKey(accounts, 1), Right::kInvalid).ok());
    Store(accounts, 1, 500);
  };
  OpenShared();
  Store(accounts, 1, 100);
  armed = true;
  int runs = 0;

  const auto code = engine->Call("add", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    accounts.Get(tx, 1);
    accounts.Edit(tx, 1)->balance += 1;
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(501, Read(accounts, 1));
}

// It was clean when somebody decided to ask for its right. When the right comes it is lowered and
// unsaved, and the storage has an old value. (Global's question has failed meanwhile, so its book
// still names this server.)
TEST_F(ProtocolTest, Hole03ARightThatComesWhileTheRecordIsUnsavedBringsNoOldValue) {
  std::atomic<bool> armed = false;
  std::atomic<bool> saved = false;
  coherence.on_acquire = [&](std::string_view key, Right /*wanted*/) {
    if (key != GlobalKey(accounts, 1) || !armed.exchange(false)) return;
    std::thread([&] { EXPECT_EQ(0, Put(accounts, 1, 20)); }).join();  // Gets it, and commits.
    faulty.BlockFlushes();
    engine->ReduceThen(key, Right::kInvalid, [&] { saved = true; });
  };
  OpenShared();
  Store(accounts, 1, 10);
  armed = true;
  std::optional<std::int64_t> seen;

  std::thread reader([&] { seen = Read(accounts, 1); });
  GiveChance([&] { return seen.has_value(); });
  EXPECT_FALSE(saved);
  faulty.UnblockFlushes();
  reader.join();

  EXPECT_EQ(20, seen);
  while (!saved) std::this_thread::yield();
  EXPECT_EQ(20, Stored(accounts, 1));
}

// A commit holds the lock bit; the Reduce must wait for it, and then save what it installed.
TEST_F(ProtocolTest, Hole04AReduceWaitsForTheLockBit) {
  Gate gate;
  std::atomic<bool> armed = false;
  coherence.on_lease = [&] {
    if (armed.exchange(false)) gate.Pass();
  };
  OpenShared();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  ASSERT_TRUE(engine->CheckpointNow().ok());

  armed = true;
  std::thread writer([&] { EXPECT_EQ(0, Put(accounts, 1, 20)); });
  gate.AwaitArrivals(1);
  std::atomic<bool> reduced = false;
  std::optional<std::int64_t> stored;
  std::thread reducer([&] {
    EXPECT_TRUE(engine->Reduce(GlobalKey(accounts, 1), Right::kInvalid).ok());
    stored = Stored(accounts, 1);
    reduced = true;
  });
  GiveChance([&] { return reduced.load(); });
  gate.Open();
  writer.join();
  reducer.join();

  EXPECT_EQ(20, stored);
}

// Another server wrote the record while this one did not have it.
TEST_F(ProtocolTest, Hole04ARightLostAndRegainedIsANewVersion) {
  OpenShared();
  Store(accounts, 1, 100);
  int runs = 0;

  const auto code = engine->Call("copy", [&](Transaction& tx) -> std::int64_t {
    const std::int64_t seen = accounts.Get(tx, 1)->balance;
    if (++runs == 1) {
      EXPECT_TRUE(engine->Reduce(GlobalKey(accounts, 1), Right::kInvalid).ok());
      Store(accounts, 1, 200);
      EXPECT_EQ(200, Read(accounts, 1));
    }
    accounts.GetOrAdd(tx, 2)->balance = seen;
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(200, Read(accounts, 2));
}

// A procedure and the ones it is overtaken by draw their versions from different contexts, at
// different speed: one would meet the other's number if they were not from one source.
TEST_F(ProtocolTest, Hole04NoVersionComesTwice) {
  Open();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(0, Put(accounts, 1, 0));
    int runs = 0;
    EXPECT_EQ(0, engine->Call("look", [&](Transaction& tx) -> std::int64_t {
      accounts.Get(tx, 1);
      if (++runs > 1) return 0;
      EXPECT_EQ(0, Put(accounts, 1, 1));
      EXPECT_EQ(0, Put(accounts, 1, 2));
      return 0;
    }));
    ASSERT_EQ(2, runs) << "round " << i;
  }
}

TEST_F(ProtocolTest, Hole04AnEvictedAndLoadedRecordIsANewVersion) {
  account_options.cache_capacity = 8;
  Open();
  Store(accounts, 1, 100);
  int runs = 0;

  const auto code = engine->Call("copy", [&](Transaction& tx) -> std::int64_t {
    const std::int64_t seen = accounts.Get(tx, 1)->balance;
    if (++runs == 1) {
      tx.context().pins.Clear();  // As if it was opened in the moment of its eviction.
      Evict(1);
      EXPECT_EQ(0, Put(accounts, 1, 200));
    }
    ledger.Put(tx, 2, BAccount{.balance = seen, .owner = {}});
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(200, Read(ledger, 2));
}

TEST_F(ProtocolTest, AnEvictedRecordGivesItsRightBack) {
  account_options.cache_capacity = 8;
  OpenShared();
  Store(accounts, 1, 100);
  ASSERT_EQ(100, Read(accounts, 1));

  Evict(1);

  EXPECT_GT(coherence.releases, 0U);
  EXPECT_EQ(100, Read(accounts, 1));
}

// Rule 3. Else the release would take the new right away.
TEST_F(ProtocolTest, NoRightIsAcquiredWhileItsReleaseIsUnderWay) {
  account_options.cache_capacity = 8;
  std::atomic<bool> armed = false;
  std::atomic<bool> releasing = false;
  std::atomic<int> overtaken = 0;
  std::thread reader;
  coherence.on_acquire = [&](std::string_view key, Right) {
    if (releasing && key == GlobalKey(accounts, 1)) ++overtaken;
  };
  coherence.on_release = [&](std::string_view key) {
    if (key != GlobalKey(accounts, 1) || !armed.exchange(false)) return;
    releasing = true;
    reader = std::thread([&] { EXPECT_EQ(100, Read(accounts, 1)); });
    GiveChance([&] { return overtaken != 0; });
    releasing = false;
  };
  OpenShared();
  Store(accounts, 1, 100);
  ASSERT_EQ(100, Read(accounts, 1));
  armed = true;

  Evict(1);
  while (armed || releasing) std::this_thread::yield();
  reader.join();

  EXPECT_EQ(0, overtaken);
}

TEST_F(ProtocolTest, ARecordThatWaitsForItsRightIsNotEvicted) {
  account_options.cache_capacity = 8;
  Gate gate;
  std::atomic<int> released = 0;
  coherence.on_acquire = [&](std::string_view key, Right) {
    if (key == GlobalKey(accounts, 1)) gate.Pass();
  };
  coherence.on_release = [&](std::string_view key) {
    if (key == GlobalKey(accounts, 1)) ++released;
  };
  OpenShared();
  std::thread reader([&] { EXPECT_EQ(std::nullopt, Read(accounts, 1)); });
  gate.AwaitArrivals(1);

  for (std::int64_t i = 100; accounts.statistics().evictions < 100; ++i) {
    EXPECT_EQ(std::nullopt, Read(accounts, i));
  }
  EXPECT_EQ(0, released);
  gate.Open();
  reader.join();
}

// Rule 6. A load that took long must not bring back what a commit has replaced.
TEST_F(ProtocolTest, ALoadDoesNotReplaceWhatWasCommittedMeanwhile) {
  Open();
  Store(accounts, 1, 100);
  storage.after_find = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    EXPECT_EQ(0, Put(accounts, 1, 500));
  };

  EXPECT_EQ(500, Read(accounts, 1));
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(500, Stored(accounts, 1));
}

// Each reads what the other writes, and both hold their locks: one has to give way.
TEST_F(ProtocolTest, CommitsThatReadWhatEachOtherWritesDoNotBothPass) {
  Gate gate;
  std::atomic<bool> armed = false;
  coherence.on_lease = [&] {
    if (armed.exchange(false)) gate.Pass();
  };
  OpenShared();
  ASSERT_EQ(0, Put(accounts, 1, 1));
  ASSERT_EQ(0, Put(accounts, 2, 1));
  // One of the two has to stay on duty.
  const auto leave = [&](std::int64_t self, std::int64_t other, Gate* read) {
    return engine->Call("leave", [&](Transaction& tx) -> std::int64_t {
      auto own = accounts.Edit(tx, self);
      const bool alone = accounts.Get(tx, other)->balance == 0;
      if (read != nullptr) read->Pass();
      if (alone) return 7;
      own->balance = 0;
      return 0;
    });
  };

  Gate read;
  std::atomic<bool> done = false;
  std::thread second([&] {
    EXPECT_EQ(7, leave(2, 1, &read));
    done = true;
  });
  read.AwaitArrivals(1);
  armed = true;
  std::thread first([&] { EXPECT_EQ(0, leave(1, 2, nullptr)); });
  gate.AwaitArrivals(1);
  read.Open();
  GiveChance([&] { return done.load(); });
  gate.Open();
  first.join();
  second.join();

  EXPECT_EQ(0, Read(accounts, 1));
  EXPECT_EQ(1, Read(accounts, 2));
}

// Two commits wait for a third one's record, with a lock each; then it lets go and changes nothing.
// In the order of access each would then wait for the other's lock, for ever.
TEST_F(ProtocolTest, CommitsTakeTheirLocksInOneOrder) {
  Gate gate;
  std::atomic<bool> armed = false;
  coherence.on_lease = [&] {
    const bool third = armed.exchange(false);
    if (third) gate.Pass();
    coherence.lease = !third;
  };
  OpenShared();
  for (std::int64_t i = 1; i <= 3; ++i) ASSERT_EQ(0, Put(accounts, i, 0));
  Gate read;
  const auto count = [&](std::initializer_list<std::int64_t> keys) {
    return engine->Call("count", [&](Transaction& tx) -> std::int64_t {
      for (const std::int64_t key : keys) accounts.Edit(tx, key)->balance += 1;
      read.Pass();
      return 0;
    });
  };

  std::thread first([&] { EXPECT_EQ(0, count({1, 3, 2})); });
  std::thread second([&] { EXPECT_EQ(0, count({2, 3, 1})); });
  read.AwaitArrivals(2);
  armed = true;
  std::thread third([&] { EXPECT_EQ(result_code::kAbortException, Put(accounts, 3, 100)); });
  gate.AwaitArrivals(1);
  read.Open();
  GiveChance([] { return false; });
  gate.Open();
  first.join();
  second.join();
  third.join();

  for (std::int64_t i = 1; i <= 3; ++i) EXPECT_EQ(2, Read(accounts, i));
}

TEST_F(ProtocolTest, NothingIsInstalledWithoutALease) {
  OpenShared();
  ASSERT_EQ(0, Put(accounts, 1, 10));

  coherence.lease = false;
  const auto written = Put(accounts, 1, 20);
  const auto read = engine->Call("read", [&](Transaction& tx) -> std::int64_t {
    accounts.Get(tx, 1);
    return 0;
  });
  const auto failed = engine->Call("fail", [&](Transaction& tx) -> std::int64_t {
    accounts.Get(tx, 1);
    return 7;
  });
  coherence.lease = true;

  EXPECT_EQ(result_code::kAbortException, written);
  EXPECT_EQ(result_code::kAbortException, read);
  EXPECT_EQ(result_code::kAbortException, failed);
  EXPECT_EQ(10, Read(accounts, 1));
}

// A read-only procedure waits, while its reads are checked, for the commit that has one of them
// locked; the lease ends meanwhile.
TEST_F(ProtocolTest, ALeaseThatEndsWhileAnAnswerIsCheckedIsNoticed) {
  Gate commit;
  Gate answer;
  std::atomic<bool> armed = false;
  std::atomic<int> asked = 0;
  coherence.on_lease = [&] {
    ++asked;
    if (armed.exchange(false)) commit.Pass();
  };
  OpenShared();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  std::thread reader([&] {
    EXPECT_EQ(result_code::kAbortException,
              engine->Call("read", [&](Transaction& tx) -> std::int64_t {
                accounts.Get(tx, 1);
                answer.Pass();
                return 0;
              }));
  });
  answer.AwaitArrivals(1);
  armed = true;
  asked = 0;
  std::thread writer([&] { EXPECT_EQ(result_code::kAbortException, Put(accounts, 1, 20)); });
  commit.AwaitArrivals(1);
  answer.Open();
  GiveChance([&] { return asked == 2; });
  coherence.lease = false;
  commit.Open();
  writer.join();
  reader.join();
  coherence.lease = true;

  EXPECT_EQ(10, Read(accounts, 1));
}

TEST_F(ProtocolTest, ARightThatCannotBeHadFailsTheProcedure) {
  OpenShared();

  coherence.grants = false;
  const auto code = Put(accounts, 1, 20);
  coherence.grants = true;

  EXPECT_EQ(result_code::kAbortException, code);
  EXPECT_EQ(std::nullopt, Read(accounts, 1));
}

}  // namespace
}  // namespace zeze
