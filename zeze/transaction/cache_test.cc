// What the cache keeps and lets go, listeners, and handles.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/bean/difference.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/record_map.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using testing::BAccount;
using testing::BBag;
using ::testing::ElementsAre;
using testing::Gate;

using CacheTest = testing::EngineTest;

// --- eviction ---

TEST_F(CacheTest, AbsentRecordsAreRememberedWithinTheCapacity) {
  account_options.cache_capacity = 1000;
  Open();

  for (std::int64_t i = 0; i < 20'000; ++i) {
    ASSERT_EQ(std::nullopt, Read(accounts, i));
    ASSERT_LE(accounts.statistics().cached, 1100U);
  }

  const std::uint64_t loads = accounts.statistics().loads;
  EXPECT_EQ(std::nullopt, Read(accounts, 19'999));
  EXPECT_EQ(loads, accounts.statistics().loads) << "absence is cached";
  // Counted when the hand has passed, which may be a little later.
  while (accounts.statistics().evictions < 18'900U) std::this_thread::yield();
}

TEST_F(CacheTest, ReadsInTransactionsStayWithinTheCapacity) {
  account_options.cache_capacity = 1000;
  Open();

  for (std::int64_t i = 0; i < 20'000; ++i) {
    ASSERT_EQ(0, engine->Call("read", [&](Transaction& tx) -> std::int64_t {
      accounts.Get(tx, i);
      return 0;
    }));
    ASSERT_LE(accounts.statistics().cached, 1100U);
  }
}

// Whatever is read meanwhile, what the storage does not have stays.
TEST_F(CacheTest, UnsavedRecordsAreNeverEvicted) {
  account_options.cache_capacity = 100;
  Open();
  faulty.FailFlushes(1'000'000, ErrorCode::kUnavailable);
  for (std::int64_t i = 0; i < 50; ++i) ASSERT_EQ(0, Put(accounts, i, i));

  for (std::int64_t i = 1000; i < 3000; ++i) ASSERT_EQ(std::nullopt, Read(accounts, i));

  for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(i, Read(accounts, i));
  faulty.FailFlushes(0, ErrorCode::kUnavailable);
}

// A cache full of unsaved records makes a checkpoint come, without a period.
TEST_F(CacheTest, WritesToManyRecordsBringTheirOwnCheckpoints) {
  account_options.cache_capacity = 200;
  Open();

  for (std::int64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(0, Put(accounts, i, i));
    ASSERT_LE(accounts.statistics().cached, 220U);
  }

  for (std::int64_t i = 0; i < 5000; i += 111) EXPECT_EQ(i, Read(accounts, i));
}

// What could not be loaded does not stay in the way of others.
TEST_F(CacheTest, RecordsThatCouldNotBeLoadedAreEvicted) {
  account_options.cache_capacity = 100;
  Open();
  faulty.FailFinds(1000, ErrorCode::kUnavailable);

  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_FALSE(accounts.ReadCopy(i).ok());

  EXPECT_EQ(std::nullopt, Read(accounts, 5000));
  EXPECT_LE(accounts.statistics().cached, 110U);
}

TEST_F(CacheTest, RecordsWhoseRightOthersTookAreEvicted) {
  account_options.cache_capacity = 100;
  options.coherence = &coherence;
  Open();

  for (std::int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(std::nullopt, Read(accounts, i));
    ASSERT_TRUE(engine->Reduce(GlobalKey(accounts, i), Right::kInvalid).ok());
    ASSERT_LE(accounts.statistics().cached, 110U);
  }
}

TEST_F(CacheTest, RecordsWhoseRightCannotBeHadAreEvicted) {
  account_options.cache_capacity = 100;
  options.coherence = &coherence;
  coherence.grants = false;
  Open();

  for (std::int64_t i = 0; i < 1000; ++i) {
    ASSERT_NE(0, engine->Call("read", [&](Transaction& tx) -> std::int64_t {
      accounts.Get(tx, i);
      return 0;
    }));
    ASSERT_LE(accounts.statistics().cached, 110U);
  }
}

// A record that has just been saved may be evicted while its checkpoint is still at work.
TEST_F(CacheTest, RecordsMayBeEvictedBeforeTheirCheckpointHasEnded) {
  account_options.cache_capacity = 50;
  std::atomic<std::int64_t> filler = 100'000;
  options.on_checkpoint_step = [&](CheckpointStep step) {
    if (step != CheckpointStep::kMarkedClean) return;
    const std::uint64_t before = accounts.statistics().evictions;
    // Nothing is evicted any more during the last checkpoint of a stop.
    while (engine->running() && accounts.statistics().evictions < before + 100) {
      ASSERT_TRUE(accounts.ReadCopy(filler++).ok());
    }
  };
  Open();
  for (std::int64_t i = 0; i < 20; ++i) ASSERT_EQ(0, Put(accounts, i, i));

  EXPECT_TRUE(engine->CheckpointNow().ok());

  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(i, Read(accounts, i));
}

// A transaction reads a record that is being saved. The record is saved and evicted before the log
// of that transaction, which names it, is read: there is nothing left to save of it.
TEST_F(CacheTest, AnEvictedRecordThatALogStillNamesStaysStored) {
  durable_ledger = true;  // Groups: reads of unsaved records are logged.
  account_options.cache_capacity = 50;
  options.on_checkpoint_step = [this, read = false, evicted = false](CheckpointStep step) mutable {
    if (step == CheckpointStep::kEncoded && !std::exchange(read, true)) {
      EXPECT_EQ(0, engine->CallApart("read and write", [&](Transaction& tx) -> std::int64_t {
        accounts.Put(tx, 2, BAccount{.balance = accounts.Get(tx, 1)->balance + 1, .owner = {}});
        return 0;
      }));
    }
    if (step == CheckpointStep::kMarkedClean && !std::exchange(evicted, true)) Evict(1);
  };
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 10));

  ASSERT_TRUE(engine->CheckpointNow().ok());
  ASSERT_EQ(10, Stored(accounts, 1));
  ASSERT_FALSE(accounts.ReadCached(1)) << "it was to be evicted";
  ASSERT_TRUE(engine->CheckpointNow().ok());

  EXPECT_EQ(11, Stored(accounts, 2));
  EXPECT_EQ(10, Stored(accounts, 1));
  EXPECT_EQ(10, Read(accounts, 1));
}

// --- records in use ---

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kManyRecords = 50'000;
#else
constexpr std::int64_t kManyRecords = 1'000'000;
#endif

class LargeProcedureTest : public testing::EngineTest,
                           public ::testing::WithParamInterface<std::size_t> {};

TEST_P(LargeProcedureTest, UsesManyTimesMoreRecordsThanTheCacheHolds) {
  account_options.cache_capacity = GetParam();
  Open();

  int runs = 0;
  EXPECT_EQ(0, engine->Call("write many", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    for (std::int64_t i = 0; i < kManyRecords; ++i) {
      accounts.Put(tx, i, BAccount{.balance = i, .owner = {}});
    }
    return 0;
  }));
  EXPECT_EQ(1, runs);

  // The cache is back at its capacity soon, and is filled again with what is in the storage.
  while (accounts.statistics().cached > GetParam() * 11 / 10) std::this_thread::yield();
  std::int64_t sum = 0;
  EXPECT_EQ(0, engine->Call("read many", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    sum = 0;
    for (std::int64_t i = 0; i < kManyRecords; ++i) sum += accounts.Get(tx, i)->balance;
    return 0;
  }));
  EXPECT_EQ(2, runs);
  EXPECT_EQ(kManyRecords * (kManyRecords - 1) / 2, sum);
  while (accounts.statistics().cached > GetParam() * 11 / 10) std::this_thread::yield();
}

// Another one changes a record meanwhile: the second run finds its own intents without searching
// through all of them.
TEST_P(LargeProcedureTest, RunsAgainAfterALostRace) {
  account_options.cache_capacity = GetParam();
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 1));

  int runs = 0;
  EXPECT_EQ(0, engine->Call("write many", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    for (std::int64_t i = 0; i < kManyRecords / 10; ++i) accounts.GetOrAdd(tx, i)->balance += 1;
    if (runs == 1) {
      EXPECT_EQ(0, Put(accounts, 1, 5));  // In a context of its own.
    }
    return 0;
  }));

  EXPECT_EQ(2, runs);
  EXPECT_EQ(6, Read(accounts, 1));
}

INSTANTIATE_TEST_SUITE_P(Capacities, LargeProcedureTest, ::testing::Values(100, 100'000),
                         [](const auto& capacity) { return std::to_string(capacity.param); });

// Together they use more than the cache holds.
TEST_F(CacheTest, SmallProceduresUnderPressureLoseNoRaceAgainstTheCleaner) {
  account_options.cache_capacity = 50;
  Open();
  constexpr std::int64_t kKeys = 4000;
  constexpr std::int64_t kPerThread = kKeys / 4;  // Threads do not meet.
  for (std::int64_t i = 0; i < kKeys; ++i) Store(accounts, i, 1);
  std::atomic<int> runs = 0;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 1000; ++i) {
        EXPECT_EQ(0, engine->Call("pressed", [&](Transaction& tx) -> std::int64_t {
          ++runs;
          std::int64_t sum = 0;
          for (std::int64_t n = 0; n < 30; ++n) {
            sum += accounts.Get(tx, t * kPerThread + (i * 7 + n * 13) % kPerThread)->balance;
          }
          accounts.Edit(tx, t * kPerThread + i)->balance += 0;
          return sum == 30 ? 0 : 1;
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  // One that opens a record in the moment of its eviction may run again.
  EXPECT_LE(runs, 4000 + 40);
}

TEST_F(CacheTest, WhatAWaitingProcedureHasReadStaysHoweverManyOthersAreRead) {
  account_options.cache_capacity = 50;
  Open();
  for (std::int64_t i = 0; i < 20; ++i) Store(accounts, i, i);
  Gate gate;
  std::atomic<int> runs = 0;
  std::thread waiting([&] {
    EXPECT_EQ(0, engine->Call("waiting", [&](Transaction& tx) -> std::int64_t {
      ++runs;
      for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(i, accounts.Get(tx, i)->balance);
      gate.Pass();
      return 0;
    }));
  });
  gate.AwaitArrivals(1);
  for (std::int64_t i = 1000; i < 5000; ++i) {
    ASSERT_EQ(std::nullopt, Read(accounts, i));
    ASSERT_LE(accounts.statistics().cached, 80U) << "others are evicted as ever";
  }
  gate.Open();
  waiting.join();

  EXPECT_EQ(1, runs);
}

// --- tables without a storage ---

TEST_F(CacheTest, WithoutAStorageNothingIsEvicted) {
  options.storage = nullptr;
  account_options.cache_capacity = 100;
  Open();

  for (std::int64_t i = 0; i < 5000; ++i) ASSERT_EQ(0, Put(accounts, i, i));

  for (std::int64_t i = 0; i < 5000; ++i) ASSERT_EQ(i, Read(accounts, i));
  EXPECT_EQ(0U, accounts.statistics().evictions);
}

class AbsentRecordsTest : public testing::EngineTest, public ::testing::WithParamInterface<bool> {
 protected:
  // A few are kept until there are enough to be worth a sweep.
  static constexpr std::size_t kKeptMax = 5000;

  void AwaitFewRecords() {
    while (scratch.statistics().cached > kKeptMax) {
      EXPECT_TRUE(engine->CheckpointNow().ok());  // In groups they are ties until they are saved.
    }
  }
};

TEST_P(AbsentRecordsTest, AMemoryTableDoesNotKeepKeysThatItOnlyWasAskedFor) {
  durable_ledger = GetParam();
  Open();
  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(0, Put(scratch, i, i));

  for (std::int64_t i = 1000; i < 200'000; ++i) {
    ASSERT_EQ(0, engine->Call("look", [&](Transaction& tx) -> std::int64_t {
      return scratch.Contains(tx, i) ? 1 : 0;
    }));
  }
  AwaitFewRecords();

  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(i, Read(scratch, i));
}

TEST_P(AbsentRecordsTest, AMemoryTableDoesNotKeepKeysOfRemovedRecords) {
  durable_ledger = GetParam();
  Open();
  for (std::int64_t i = 0; i < 100'000; ++i) ASSERT_EQ(0, Put(scratch, i, i));
  ASSERT_EQ(100'000U, scratch.statistics().cached);

  for (std::int64_t i = 1000; i < 100'000; ++i) {
    ASSERT_EQ(0, engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
      return scratch.Remove(tx, i) ? 0 : 1;
    }));
  }
  AwaitFewRecords();

  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(i, Read(scratch, i));
  ASSERT_EQ(0, Put(scratch, 5000, 7));
  EXPECT_EQ(7, Read(scratch, 5000));
}

// A procedure that found nothing is believed although thousands of absent records go meanwhile.
TEST_P(AbsentRecordsTest, WhatAProcedureFoundAbsentStaysUntilItEnds) {
  durable_ledger = GetParam();
  Open();
  int runs = 0;

  EXPECT_EQ(0, engine->Call("waiting", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    for (std::int64_t i = 0; i < 100; ++i) EXPECT_FALSE(scratch.Contains(tx, i));
    if (runs > 1) return 0;
    for (std::int64_t i = 1000; i < 100'000; ++i) EXPECT_EQ(std::nullopt, Read(scratch, i));
    AwaitFewRecords();
    return 0;
  }));

  EXPECT_EQ(1, runs);
}

INSTANTIATE_TEST_SUITE_P(Modes, AbsentRecordsTest, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Groups" : "Whole"; });

// Two threads that miss the same key at once get one record between them: with two, each would
// validate its own.
TEST(RecordMapTest, AKeyHasOneRecord) {
  std::unique_ptr<internal::Participant> by;
  internal::Reclaimer reclaimer;
  by = std::make_unique<internal::Participant>(reclaimer);
  internal::RecordMap map(true);
  internal::Record first;
  internal::Record second;
  const auto equal = [](const internal::Record&) { return true; };
  by->Enter();

  EXPECT_EQ(&first, map.FindOrAdd(*by, 42, equal, [&] { return &first; }));
  EXPECT_EQ(&first, map.FindOrAdd(*by, 42, equal, [&] { return &second; }));

  EXPECT_EQ(1U, map.size());
  by->Leave();
}

// --- listeners ---

TEST_F(CacheTest, AListenerGetsWhatWasThereBeforeAndAfter) {
  Open();
  using Seen = std::tuple<std::int64_t, std::optional<std::int64_t>, std::optional<std::int64_t>>;
  std::vector<Seen> seen;
  const auto number = accounts.AddListener([&](const RecordChange<std::int64_t, BAccount>& change) {
    seen.emplace_back(change.key,
                      change.before ? std::optional(change.before->balance) : std::nullopt,
                      change.after ? std::optional(change.after->balance) : std::nullopt);
  });

  ASSERT_EQ(0, Put(accounts, 1, 1));
  ASSERT_EQ(0, engine->Call("change", [&](Transaction& tx) -> std::int64_t {
    accounts.Edit(tx, 1)->balance = 2;
    accounts.Put(tx, 2, {});
    accounts.Remove(tx, 2);  // Was never there.
    tx.AfterCommit([&] { EXPECT_EQ(2U, seen.size()) << "listeners come first"; });
    return 0;
  }));
  ASSERT_EQ(7, engine->Call("fail", [&](Transaction& tx) -> std::int64_t {
    accounts.Edit(tx, 1)->balance = 3;
    return 7;
  }));
  ASSERT_EQ(0, engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
    accounts.Remove(tx, 1);
    return 0;
  }));
  accounts.RemoveListener(number);
  ASSERT_EQ(0, Put(accounts, 1, 9));

  EXPECT_THAT(seen, ElementsAre(Seen{1, std::nullopt, 1}, Seen{1, 1, 2}, Seen{1, 2, std::nullopt}));
}

TEST_F(CacheTest, TheDifferenceOfAChangeIsPrecise) {
  Table<std::int64_t, BBag> bags{TableDescriptor{.id = 9, .name = "test_bags"}};
  Engine other({.storage = memory.get(), .checkpoint_period = std::chrono::seconds(0)});
  ASSERT_TRUE(other.AddTable(bags).ok());
  ASSERT_TRUE(other.Start().ok());
  const auto edit = [&](const auto& change) {
    return other.Call("edit", [&](Transaction& tx) -> std::int64_t {
      auto bag = bags.GetOrAdd(tx, 1);
      change(*bag);
      return 0;
    });
  };
  ASSERT_EQ(0, edit([](BBag& bag) {
              for (std::int64_t i = 0; i < 100; ++i) bag.items.PushBack(i);
              bag.names.Put(1, "one");
              bag.names.Put(2, "two");
            }));
  std::string text;
  bags.AddListener([&](const RecordChange<std::int64_t, BBag>& change) {
    const Difference<BBag> difference(*change.before, *change.after);
    EXPECT_TRUE(difference.Changed(&BBag::items));
    EXPECT_EQ(Apply(*change.before, difference), *change.after);
    text = difference.ToString();
  });

  ASSERT_EQ(0, edit([](BBag& bag) {
              bag.items.Erase(50);
              bag.names.Put(3, "three");
              bag.names.Erase(1);
            }));
  ASSERT_TRUE(other.Stop().ok());

  EXPECT_THAT(text, ::testing::HasSubstr("items[50]"));
  EXPECT_THAT(text, ::testing::HasSubstr("names[3]"));
  EXPECT_THAT(text, ::testing::HasSubstr("names[1]"));
}

// For each record the changes form a chain: each begins where the last one ended.
TEST_F(CacheTest, ListenersSeeTheChangesOfARecordInCommitOrder) {
  Open();
  std::map<std::int64_t, std::int64_t> last;
  std::atomic<int> broken = 0;
  std::atomic<int> count = 0;
  accounts.AddListener([&](const RecordChange<std::int64_t, BAccount>& change) {
    // Listeners of one table run one at a time, in whatever thread.
    if ((change.before ? change.before->balance : 0) != last[change.key]) ++broken;
    last[change.key] = change.after ? change.after->balance : 0;
    ++count;
  });
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        engine->Call("add", [&](Transaction& tx) -> std::int64_t {
          auto account = accounts.GetOrAdd(tx, (i + t) % 3);
          account->balance += 1;
          account->owner = testing::LongName(100);  // Freed memory would not go unnoticed.
          return 0;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(0, broken);
  EXPECT_EQ(kThreads * kEach, count);
}

// --- hole 24: handles and reclamation ---

TEST_F(CacheTest, Hole24AHandleSurvivesARemoveThatWasRolledBack) {
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 1));

  EXPECT_EQ(0, engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
    auto account = accounts.Edit(tx, 1);
    const BAccount* address = &*account;
    account->balance = 10;
    tx.Call("inner", [&](Transaction& inner) -> std::int64_t {
      accounts.Remove(inner, 1);
      accounts.GetOrAdd(inner, 1)->balance = 99;
      return 1;
    });
    EXPECT_EQ(10, account->balance);
    EXPECT_EQ(address, &*account);
    account->balance += 1;
    return 0;
  }));

  EXPECT_EQ(11, Read(accounts, 1));
}

// One transaction stays inside while others replace a million values: they are freed all the same.
TEST_F(CacheTest, Hole24ABlockedTransactionDoesNotKeepWhatOthersReplace) {
  Open();
  for (std::int64_t i = 0; i < 100; ++i) ASSERT_EQ(0, Put(accounts, i, i));
  Gate gate;
  std::thread blocked([&] {
    int runs = 0;
    EXPECT_EQ(0, engine->Call("blocked", [&](Transaction& tx) -> std::int64_t {
      const BAccount* seen = accounts.Get(tx, 1);
      const std::int64_t before = seen->balance;
      if (++runs == 1) gate.Pass();
      EXPECT_EQ(before, seen->balance) << "what was read stays readable";
      return 0;
    }));
  });
  gate.AwaitArrivals(1);
  std::size_t retired = 0;
  for (std::int64_t i = 0; i < 1'000'000; ++i) {
    engine->Call("replace", [&](Transaction& tx) -> std::int64_t {
      accounts.Edit(tx, i % 100)->balance += 1;
      return 0;
    });
    if (i % 10'000 == 0) retired = std::max(retired, engine->statistics().retired_values);
  }
  EXPECT_LT(retired, 5000U);
  gate.Open();
  blocked.join();
}

// What is read is kept also if it is younger than the procedure that reads it.
TEST_F(CacheTest, Hole24WhatWasReadLateStaysReadable) {
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 0));
  const auto replace_many_times = [&] {  // In a context of its own: this thread's is in use.
    for (std::int64_t i = 1; i <= 10'000; ++i) ASSERT_EQ(0, Put(accounts, 1, i));
  };
  int runs = 0;

  EXPECT_EQ(0, engine->Call("late", [&](Transaction& tx) -> std::int64_t {
    if (++runs == 1) replace_many_times();
    const BAccount* seen = accounts.Get(tx, 1);
    const std::int64_t before = seen->balance;
    if (runs == 1) replace_many_times();
    EXPECT_EQ(before, seen->balance);
    return 0;
  }));

  EXPECT_EQ(2, runs);
}

}  // namespace
}  // namespace zeze
