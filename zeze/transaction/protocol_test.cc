// The holes of the commit and flush protocol that one process can meet, each with the situation in
// which it would open. The numbers are those of docs/architecture.md; docs/testing.md says how each
// test was seen to fail without its rule.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/result_code.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/engine_test.h"
#include "zeze/transaction/testing/single_step.h"

namespace zeze {
namespace {

using testing::BAccount;
using testing::Gate;

class ProtocolTest : public testing::EngineTest {
 protected:
  void OpenShared() {
    options.coherence = &coherence;
    Open();
  }

  // Of a commit or Reduce under way, 0 if there is none.
  std::uint64_t AnnouncedEpoch() {
    std::uint64_t announced = 0;
    engine->contexts()->ForEach([&announced](internal::Context& context) {
      announced = std::max(announced, context.epoch.load());
    });
    return announced;
  }

  // For tests in which nothing may happen in the background.
  testing::ManualClock clock;
  // For hooks that the engine calls to its end.
  std::atomic<std::size_t> drains = 0;
  std::atomic<int> wrong = 0;
};

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

// --- hole 5: the clean flag ---

TEST_F(ProtocolTest, Hole05CleanOnlyAfterTheStorageHasIt) {
  account_options.cache_capacity = 50;
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  faulty.BlockFlushes();
  faulty.FailFlushes(1, ErrorCode::kUnavailable);
  std::thread checkpoint([&] { EXPECT_FALSE(engine->CheckpointNow().ok()); });
  faulty.AwaitBlockedFlushes(1);

  // In flight is not clean: it must not be evicted, and not be forgotten by the next flush.
  while (accounts.statistics().evictions < 100) {
    static std::int64_t filler = 1000;
    ASSERT_TRUE(accounts.ReadCopy(filler++).ok());
  }
  EXPECT_TRUE(accounts.ReadCached(1));
  faulty.UnblockFlushes();
  checkpoint.join();

  EXPECT_EQ(10, Read(accounts, 1));
  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(10, Stored(accounts, 1));
}

// A second flush would carry a record that the first one carries, and could be overtaken by it.
TEST_F(ProtocolTest, Hole05ARecordIsInOneFlushAtATime) {
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  faulty.BlockFlushes();
  std::thread first([&] { EXPECT_TRUE(engine->CheckpointNow().ok()); });
  faulty.AwaitBlockedFlushes(1);
  ASSERT_EQ(0, Put(accounts, 1, 20));
  std::thread second([&] { EXPECT_TRUE(engine->CheckpointNow().ok()); });
  GiveChance([&] { return faulty.flush_count() != 1; });
  EXPECT_EQ(1U, faulty.flush_count());
  faulty.UnblockFlushes();
  first.join();
  second.join();

  EXPECT_EQ(20, Stored(accounts, 1));
}

// The durable record must not be saved without the unsaved one that decided it.
TEST_F(ProtocolTest, Hole05UnsavedReadsAreSavedWithWhatWasDecidedOnThem) {
  durable_ledger = true;
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  ASSERT_EQ(std::nullopt, Stored(accounts, 1));

  EXPECT_EQ(0, engine->Call("note", [&](Transaction& tx) -> std::int64_t {
    ledger.Put(tx, 1, *accounts.Get(tx, 1));
    return 0;
  }));

  EXPECT_EQ(10, Stored(ledger, 1));
  EXPECT_EQ(10, Stored(accounts, 1));
}

// The absence of a record is read as well, also by who inserts and removes it again.
TEST_F(ProtocolTest, Hole05UnsavedRemovesAreSavedWithWhatWasDecidedOnThem) {
  durable_ledger = true;
  Open();
  Store(accounts, 1, 10);
  Store(accounts, 2, 10);
  ASSERT_EQ(0, engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
    return accounts.Remove(tx, 1) && accounts.Remove(tx, 2) ? 0 : 1;
  }));

  EXPECT_EQ(0, engine->Call("note", [&](Transaction& tx) -> std::int64_t {
    if (!accounts.TryAdd(tx, 2, {}) || !accounts.Remove(tx, 2)) return 1;
    ledger.Put(tx, 1, {});
    return 0;
  }));

  EXPECT_EQ(0, Stored(ledger, 1));
  EXPECT_EQ(std::nullopt, Stored(accounts, 2));
  EXPECT_EQ(std::nullopt, Stored(accounts, 1));
}

// What a failing flush carries is unsaved for those who read it meanwhile.
TEST_F(ProtocolTest, Hole05AReadOfAFlushInFlightIsARead) {
  durable_ledger = true;
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  faulty.BlockFlushes();
  faulty.FailFlushes(1, ErrorCode::kUnavailable);
  std::thread checkpoint([&] { EXPECT_FALSE(engine->CheckpointNow().ok()); });
  faulty.AwaitBlockedFlushes(1);
  Gate read;
  std::thread reader([&] {
    EXPECT_EQ(0, engine->Call("note", [&](Transaction& tx) -> std::int64_t {
      ledger.Put(tx, 1, *accounts.Get(tx, 1));
      tx.AfterCommit([this] { EXPECT_EQ(10, Stored(accounts, 1)); });
      read.Open();
      return 0;
    }));
  });
  read.Pass();
  faulty.UnblockFlushes();
  checkpoint.join();
  reader.join();

  EXPECT_EQ(10, Stored(ledger, 1));
}

TEST_F(ProtocolTest, Hole05AReduceOfAFlushInFlightWaitsForItsOutcome) {
  OpenShared();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  faulty.BlockFlushes();
  faulty.FailFlushes(1, ErrorCode::kUnavailable);
  std::thread checkpoint([&] { EXPECT_FALSE(engine->CheckpointNow().ok()); });
  faulty.AwaitBlockedFlushes(1);
  std::array<std::thread, 2> reducers;  // The second one is a repetition: it waits as well.
  std::atomic<int> reduced = 0;
  for (std::thread& reducer : reducers) {
    reducer = std::thread([&] {
      EXPECT_TRUE(engine->Reduce(GlobalKey(accounts, 1), Right::kShare).ok());
      EXPECT_EQ(10, Stored(accounts, 1));
      ++reduced;
    });
  }
  GiveChance([&] { return reduced != 0; });
  faulty.UnblockFlushes();
  checkpoint.join();
  for (std::thread& reducer : reducers) reducer.join();
}

// A right that comes back too early must not bring the old value from the storage with it.
TEST_F(ProtocolTest, Hole05ALoadDoesNotReplaceWhatIsUnsaved) {
  OpenShared();
  ASSERT_EQ(0, Put(accounts, 1, 10));
  faulty.BlockFlushes();
  std::thread reducer(
      [&] { EXPECT_TRUE(engine->Reduce(GlobalKey(accounts, 1), Right::kInvalid).ok()); });
  faulty.AwaitBlockedFlushes(1);
  std::atomic<bool> done = false;
  std::thread reader([&] {
    EXPECT_EQ(10, Read(accounts, 1));
    done = true;
  });
  GiveChance([&] { return done.load(); });
  faulty.UnblockFlushes();
  reducer.join();
  reader.join();

  EXPECT_EQ(10, Stored(accounts, 1));
}

// --- hole 12: memory tables hide dependencies ---

TEST_F(ProtocolTest, Hole12AMemoryTableTiesItsReaderToItsWriter) {
  durable_ledger = true;
  Open();
  ASSERT_EQ(0, engine->Call("cause", [&](Transaction& tx) -> std::int64_t {
    accounts.Put(tx, 1, BAccount{.balance = 10, .owner = {}});
    scratch.Put(tx, 1, BAccount{.balance = 10, .owner = {}});
    return 0;
  }));

  EXPECT_EQ(0, engine->Call("effect", [&](Transaction& tx) -> std::int64_t {
    ledger.Put(tx, 1, *scratch.Get(tx, 1));
    return 0;
  }));

  EXPECT_EQ(10, Stored(ledger, 1));
  EXPECT_EQ(10, Stored(accounts, 1));
}

// --- hole 13: readers of durable data ---

class DurableReaderTest : public ProtocolTest,
                          public ::testing::WithParamInterface<std::int64_t> {};

// An answer, be it a success or a failure, must not tell of what a crash could still take away.
TEST_P(DurableReaderTest, Hole13WaitsForWhatItRead) {
  durable_ledger = true;
  Open();
  faulty.BlockFlushes();
  std::thread writer([&] { EXPECT_EQ(0, Put(ledger, 1, 10)); });
  faulty.AwaitBlockedFlushes(1);
  std::atomic<bool> answered = false;
  std::thread reader([&] {
    EXPECT_EQ(GetParam(), engine->Call("read", [&](Transaction& tx) -> std::int64_t {
      EXPECT_EQ(10, ledger.Get(tx, 1)->balance);
      return GetParam();
    }));
    EXPECT_EQ(10, Stored(ledger, 1));
    answered = true;
  });
  GiveChance([&] { return answered.load(); });
  faulty.UnblockFlushes();
  writer.join();
  reader.join();
}

INSTANTIATE_TEST_SUITE_P(Answers, DurableReaderTest, ::testing::Values(0, 7));

// --- hole 15: the order of epoch, slot and log ---

// A commit that has announced its epoch is waited for: what it logs belongs to that cut.
TEST_F(ProtocolTest, Hole15ACutWaitsForCommitsOfItsEpoch) {
  Gate gate;
  std::atomic<bool> armed = false;
  coherence.on_lease = [&] {
    if (armed.exchange(false)) gate.Pass();
  };
  OpenShared();
  armed = true;
  std::thread writer([&] { EXPECT_EQ(0, Transfer(1, 2, 5)); });
  gate.AwaitArrivals(1);
  const std::uint64_t epoch = engine->checkpoint().epoch();
  std::atomic<bool> done = false;
  std::thread checkpoint([&] {
    EXPECT_TRUE(engine->CheckpointNow().ok());
    done = true;
  });
  while (engine->checkpoint().epoch() == epoch) std::this_thread::yield();
  GiveChance([&] { return done.load(); });
  gate.Open();
  writer.join();
  checkpoint.join();

  EXPECT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(-5, Stored(accounts, 1));
  EXPECT_EQ(5, Stored(accounts, 2));
}

// Lets a cut happen behind each single instruction of a commit, up to where it has left its slot.
// Behind an announced epoch all instructions are alike, the cut waits: a few of them will do.
TEST_F(ProtocolTest, Hole15ACutAtAnyInstructionOfACommitLosesNothing) {
  if (ZEZE_SINGLE_STEP == 0) GTEST_SKIP() << "no single steps here";
  options.clock = &clock;
  Open();
  ASSERT_EQ(0, Transfer(1, 2, 1));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  bool left = false;
  std::uint64_t announced = 0;
  for (std::size_t n = 1; !left && !HasFailure(); n += announced != 0 ? 5 : 1) {
    testing::SingleStep step(n);
    std::thread writer([&] {
      engine->Call("transfer", [&](Transaction& tx) -> std::int64_t {
        accounts.Edit(tx, 1)->balance -= 1;
        accounts.Edit(tx, 2)->balance += 1;
        step.Begin();
        return 0;
      });
      step.End();
    });
    ASSERT_TRUE(step.AwaitStop());
    announced = AnnouncedEpoch();
    left = announced == 0 && LoggedWords() != 0;
    std::atomic<bool> done = false;
    std::thread checkpoint([&] {
      EXPECT_TRUE(engine->CheckpointNow().ok());
      done = true;
    });
    while (announced != 0 ? engine->checkpoint().epoch() == announced : !done) {
      std::this_thread::yield();
    }
    step.GoOn();
    writer.join();
    checkpoint.join();

    EXPECT_TRUE(engine->CheckpointNow().ok());
    EXPECT_EQ(Read(accounts, 1), Stored(accounts, 1)) << "cut behind instruction " << n;
    EXPECT_EQ(Read(accounts, 2), Stored(accounts, 2)) << "cut behind instruction " << n;
  }
}

// The same with a Reduce.
TEST_F(ProtocolTest, Hole15ACutAtAnyInstructionOfAReduceLosesNothing) {
  if (ZEZE_SINGLE_STEP == 0) GTEST_SKIP() << "no single steps here";
  options.clock = &clock;
  options.on_checkpoint_step = [&](CheckpointStep step) {
    if (step == CheckpointStep::kLogsDrained) ++drains;
  };
  OpenShared();
  bool left = false;
  std::uint64_t announced = 0;
  for (std::size_t n = 1; !left && !HasFailure(); n += announced != 0 ? 5 : 1) {
    const auto value = static_cast<std::int64_t>(n);
    ASSERT_EQ(0, Put(accounts, 1, value));
    engine->checkpoint().Drain();
    const std::size_t drained = drains;
    testing::SingleStep step(n);
    std::thread reducer([&] {
      const std::string key = GlobalKey(accounts, 1);
      static_cast<void>(accounts.ReadCached(1));  // Takes a context, which needs a lock.
      step.Begin();
      const auto reduced = engine->Reduce(key, Right::kShare);
      step.End();
      EXPECT_TRUE(reduced.ok());
    });
    ASSERT_TRUE(step.AwaitStop());
    announced = AnnouncedEpoch();
    left = announced == 0 && LoggedWords() != 0;
    std::thread checkpoint([&] { EXPECT_TRUE(engine->CheckpointNow().ok()); });
    while (announced != 0 ? engine->checkpoint().epoch() == announced : drains == drained) {
      std::this_thread::yield();
    }
    step.GoOn();
    reducer.join();
    checkpoint.join();

    EXPECT_EQ(value, Stored(accounts, 1)) << "cut behind instruction " << n;
    // Either the cut takes the Reduce along, or the Reduce's own one does.
    EXPECT_LE(drains, drained + 2) << "cut behind instruction " << n;
  }
}

class CutTest : public ProtocolTest, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr std::int64_t kCount = 24;

  std::int64_t StoredSum() {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < kCount; ++i) sum += Stored(accounts, i).value_or(0);
    return sum;
  }
};

// Threads that commit without a pause meet cuts without a pause: every flush has whole transfers.
TEST_P(CutTest, Hole15EveryFlushIsAConsistentCut) {
  durable_ledger = GetParam();
  options.on_checkpoint_step = [&](CheckpointStep step) {
    if (step == CheckpointStep::kAfterFlush && StoredSum() != 0) ++wrong;
  };
  Open();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; !stop; ++i) {
        Transfer((i * 7 + t) % kCount, (i * 11 + t * 5 + 1) % kCount, 1 + i % 3);
      }
    });
  }
  const auto end = SystemClock().Now() + std::chrono::seconds(3);
  int cuts = 0;
  while (SystemClock().Now() < end && wrong == 0) {
    ASSERT_TRUE(engine->CheckpointNow().ok());
    ++cuts;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(engine->CheckpointNow().ok());

  EXPECT_EQ(0, wrong) << "in one of " << cuts << " cuts";
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(Read(accounts, i), Stored(accounts, i));
    sum += Read(accounts, i).value_or(0);
  }
  EXPECT_EQ(0, sum);
}

INSTANTIATE_TEST_SUITE_P(Modes, CutTest, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Groups" : "Whole"; });

// --- hole 21: opacity ---

TEST_F(ProtocolTest, Hole21RunningProceduresNeverSeeAMixedState) {
  Open();
  ASSERT_EQ(0, Transfer(1, 2, 0));
  std::atomic<bool> stop = false;
  std::atomic<int> mixed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) Transfer(1, 2, 1);
    });
    threads.emplace_back([&] {
      while (!stop) {
        engine->Call("look", [&](Transaction& tx) -> std::int64_t {
          const std::int64_t x = accounts.Get(tx, 1)->balance;
          std::this_thread::yield();
          const std::int64_t y = accounts.Get(tx, 2)->balance;
          if (x + y != 0) ++mixed;  // Counted even if this run is repeated.
          return 0;
        });
      }
    });
  }
  SystemClock().SleepFor(std::chrono::seconds(1));
  stop = true;
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(0, mixed);
  EXPECT_GT(engine->statistics().conflicts, 0U);
}

}  // namespace
}  // namespace zeze
