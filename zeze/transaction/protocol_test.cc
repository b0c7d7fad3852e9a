// The holes of the flush protocol, and of what is read, that one process can meet, each with the
// situation in which it would open (rights_protocol_test.cc: those of the rights). The numbers are
// those of docs/architecture.md; docs/testing.md says how each test was seen to fail without its
// rule.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/testing/engine_test.h"
#include "zeze/transaction/testing/protocol_fixture.h"
#include "zeze/transaction/testing/single_step.h"

namespace zeze {
namespace {

using testing::BAccount;
using testing::Gate;
using testing::ProtocolTest;

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

// A record that is clean, though a log still names it, loses its right while that log is read.
// Another server saves it then: it must not be written again, whatever it looked like in between.
TEST_F(ProtocolTest, ACleanRecordThatIsGivenUpIsNotWrittenAgain) {
  if (ZEZE_SINGLE_STEP == 0) GTEST_SKIP() << "no single steps here";
  options.clock = &clock;
  auto dirty_read_due = std::make_shared<std::atomic<bool>>(false);
  options.on_checkpoint_step = [this, dirty_read_due](CheckpointStep step) {
    if (step != CheckpointStep::kEncoded || !dirty_read_due->exchange(false)) return;
    EXPECT_EQ(0, engine->CallApart("read unsaved", [&](Transaction& tx) -> std::int64_t {
      accounts.Put(tx, 2, BAccount{.balance = accounts.Get(tx, 1)->balance, .owner = {}});
      return 0;
    }));
  };
  OpenShared();
  const std::string key = GlobalKey(accounts, 1);
  bool stopped = true;
  for (std::size_t n = 1; stopped && !HasFailure(); ++n) {
    const auto value = static_cast<std::int64_t>(n);
    ASSERT_EQ(0, Put(accounts, 1, value));
    *dirty_read_due = true;
    ASSERT_TRUE(engine->CheckpointNow().ok());
    ASSERT_EQ(value, Stored(accounts, 1));

    testing::SingleStep step(n);
    std::thread reducer([&] {
      static_cast<void>(accounts.ReadCached(1));  // Takes a context, which needs a lock.
      step.Begin();
      const auto reduced = engine->Reduce(key, Right::kInvalid);
      step.End();
      EXPECT_TRUE(reduced.ok());
    });
    stopped = step.AwaitStop();
    Store(accounts, 1, -value);  // The next owner.
    std::atomic<bool> done = false;
    std::thread checkpoint([&] {
      EXPECT_TRUE(engine->CheckpointNow().ok());
      done = true;
    });
    GiveChance([&] { return done.load(); });  // It may have to wait for the lock.
    step.GoOn();
    reducer.join();
    checkpoint.join();
    EXPECT_TRUE(engine->CheckpointNow().ok());
    EXPECT_EQ(-value, Stored(accounts, 1)) << "given up behind instruction " << n;
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
