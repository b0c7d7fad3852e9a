// Walks give each record once, saved or not, whatever is committed, flushed and evicted meanwhile.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using testing::BAccount;
using ::testing::ElementsAre;
using ::testing::Pair;

class WalkTest : public testing::EngineTest {
 protected:
  using Rows = std::vector<std::pair<std::int64_t, std::int64_t>>;

  Rows WalkAll(WalkOptions walk = {}) {
    Rows rows;
    EXPECT_TRUE(accounts
                    .Walk(
                        [&](std::int64_t key, const BAccount& account) {
                          rows.emplace_back(key, account.balance);
                          return true;
                        },
                        walk)
                    .ok());
    return rows;
  }

  std::int64_t Remove(std::int64_t key) {
    return engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
      return accounts.Remove(tx, key) ? 0 : 1;
    });
  }
};

TEST_F(WalkTest, Hole22SeesUnsavedInsertsAndEditsAndNoUnsavedRemoves) {
  Open();
  for (std::int64_t i = 1; i <= 5; ++i) ASSERT_EQ(0, Put(accounts, i, i));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  ASSERT_EQ(0, Put(accounts, 2, 20));
  ASSERT_EQ(0, Remove(3));
  ASSERT_EQ(0, Put(accounts, 9, 9));
  ASSERT_EQ(0, Put(accounts, 8, 8));
  ASSERT_EQ(0, Remove(8));

  const Rows expected = {{1, 1}, {2, 20}, {4, 4}, {5, 5}, {9, 9}};
  EXPECT_EQ(expected, WalkAll());
  EXPECT_EQ(expected, WalkAll({.descending = false, .page_size = 1}));
  EXPECT_EQ(expected, WalkAll({.descending = false, .page_size = 2}));
  const Rows reversed(expected.rbegin(), expected.rend());
  EXPECT_EQ(reversed, WalkAll({.descending = true, .page_size = 2}));
}

// Between the page and the look into the cache the record is saved and evicted.
TEST_F(WalkTest, Hole22AnInsertSavedAndEvictedBehindThePageIsNotMissed) {
  account_options.cache_capacity = 8;
  Open();
  Store(accounts, 1, 1);
  ASSERT_EQ(0, Put(accounts, 5, 5));
  storage.after_walk = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    ASSERT_TRUE(engine->CheckpointNow().ok());
    Evict(5);
  };

  EXPECT_THAT(WalkAll(), ElementsAre(Pair(1, 1), Pair(5, 5)));
}

TEST_F(WalkTest, Hole22AChangeSavedAndEvictedBehindThePageIsNotMissed) {
  account_options.cache_capacity = 8;
  Open();
  for (std::int64_t i = 1; i <= 3; ++i) Store(accounts, i, i);
  ASSERT_EQ(0, Put(accounts, 2, 20));
  storage.after_walk = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    ASSERT_TRUE(engine->CheckpointNow().ok());
    Evict(2);
  };

  EXPECT_THAT(WalkAll(), ElementsAre(Pair(1, 1), Pair(2, 20), Pair(3, 3)));
}

TEST_F(WalkTest, Hole22ARemoveSavedAndEvictedBehindThePageIsNotMissed) {
  account_options.cache_capacity = 8;
  Open();
  for (std::int64_t i = 1; i <= 3; ++i) Store(accounts, i, i);
  ASSERT_EQ(0, Remove(2));
  storage.after_walk = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    ASSERT_TRUE(engine->CheckpointNow().ok());
    // Absent records are not shown by ReadCached: wait until everything of before has gone.
    std::int64_t filler = 2'000'000;
    const std::uint64_t enough = accounts.statistics().evictions + 50;
    while (accounts.statistics().evictions < enough) {
      ASSERT_TRUE(accounts.ReadCopy(filler++).ok());
    }
  };

  EXPECT_THAT(WalkAll(), ElementsAre(Pair(1, 1), Pair(3, 3)));
}

// The page is read while a flush is under way, which ends and is evicted behind it.
TEST_F(WalkTest, Hole22AFlushUnderWayDuringThePageIsNotMissed) {
  account_options.cache_capacity = 8;
  Open();
  for (std::int64_t i = 1; i <= 3; ++i) Store(accounts, i, i);
  for (std::int64_t round = 1; round <= 3; ++round) {
    faulty.BlockFlushes();
    ASSERT_EQ(0, Put(accounts, 2, 20 * round));
    std::thread checkpoint([&] { EXPECT_TRUE(engine->CheckpointNow().ok()); });
    faulty.AwaitBlockedFlushes(1);
    storage.after_walk = [&, first = true]() mutable {
      if (!std::exchange(first, false)) return;
      faulty.UnblockFlushes();
      checkpoint.join();
      Evict(2);
    };

    EXPECT_THAT(WalkAll(), ElementsAre(Pair(1, 1), Pair(2, 20 * round), Pair(3, 3)));
    storage.after_walk = nullptr;
  }
}

TEST_F(WalkTest, Hole22AnInsertInFlightIsNotMissed) {
  Open();
  Store(accounts, 1, 1);
  ASSERT_EQ(0, Put(accounts, 5, 5));
  faulty.BlockFlushes();
  std::thread checkpoint([&] { EXPECT_TRUE(engine->CheckpointNow().ok()); });
  faulty.AwaitBlockedFlushes(1);

  EXPECT_THAT(WalkAll(), ElementsAre(Pair(1, 1), Pair(5, 5)));
  faulty.UnblockFlushes();
  checkpoint.join();
}

// What the flush of a remove finds inserted again is still unsaved.
TEST_F(WalkTest, Hole22AnInsertDuringTheFlushOfARemoveIsNotMissed) {
  Open();
  for (std::int64_t i = 1; i <= 3; ++i) Store(accounts, i, i);
  ASSERT_EQ(0, Remove(2));
  faulty.BlockFlushes();
  std::thread checkpoint([&] { EXPECT_TRUE(engine->CheckpointNow().ok()); });
  faulty.AwaitBlockedFlushes(1);
  EXPECT_EQ(0, Put(accounts, 2, 20));
  faulty.UnblockFlushes();
  checkpoint.join();

  EXPECT_EQ(std::nullopt, Stored(accounts, 2));
  EXPECT_THAT(WalkAll(), ElementsAre(Pair(1, 1), Pair(2, 20), Pair(3, 3)));
}

TEST_F(WalkTest, AWalkReportsAStorageThatCannotBeRead) {
  Open();
  ASSERT_EQ(0, Put(accounts, 1, 1));
  faulty.FailWalks(1, ErrorCode::kUnavailable);

  const auto walked = accounts.Walk([](std::int64_t, const BAccount&) { return true; });

  ASSERT_FALSE(walked.ok());
  EXPECT_EQ(ErrorCode::kUnavailable, walked.error().code());
}

TEST_F(WalkTest, AWalkStopsWhenTheVisitorSaysSoAndMayRunProcedures) {
  Open();
  for (std::int64_t i = 0; i < 10; ++i) ASSERT_EQ(0, Put(accounts, i, i));
  std::vector<std::int64_t> seen;

  const auto walked = accounts.Walk([&](std::int64_t key, const BAccount&) {
    seen.push_back(key);
    EXPECT_EQ(0, Put(accounts, key, 100));
    return seen.size() < 4;
  });

  EXPECT_EQ(4U, walked.value());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(100, Read(accounts, 3));
}

// The table grows in the middle of the walk, and again and again.
TEST_F(WalkTest, AWalkOfAGrowingMemoryTableGivesEachRecordOnce) {
  Open();
  constexpr std::int64_t kBefore = 50'000;
  for (std::int64_t i = 0; i < kBefore; ++i) ASSERT_EQ(0, Put(scratch, i, i));
  std::vector<int> given(2 * kBefore + 400'000);
  std::int64_t next = kBefore;

  const auto walked = scratch.Walk([&](std::int64_t key, const BAccount&) {
    ++given[static_cast<std::size_t>(key)];
    for (int n = 0; n < 4 && next < kBefore + 200'000; ++n, ++next) {
      EXPECT_EQ(0, Put(scratch, next, next));
    }
    return true;
  });

  ASSERT_TRUE(walked.ok());
  for (std::size_t i = 0; i < given.size(); ++i) {
    ASSERT_LE(given[i], 1) << "record " << i;
    ASSERT_TRUE(given[i] == 1 || i >= static_cast<std::size_t>(kBefore)) << "record " << i;
  }
}

// Even keys exist all the time, odd ones come and go, everything is saved and evicted meanwhile.
TEST_F(WalkTest, Hole22GivesWhatIsThereAllTheTimeExactlyOnce) {
  account_options.cache_capacity = 60;
  options.checkpoint_period = std::chrono::milliseconds(2);
  constexpr std::int64_t kKeys = 200;
  Open();
  for (std::int64_t i = 0; i < kKeys; i += 2) ASSERT_EQ(0, Put(accounts, i, 1));
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (std::int64_t t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      for (std::int64_t i = 0; !stop; ++i) {
        const std::int64_t key = (i * 7 + t * 31) % kKeys;
        engine->Call("change", [&](Transaction& tx) -> std::int64_t {
          if (key % 2 == 0) {
            accounts.Edit(tx, key)->balance += 1;
          } else if (!accounts.Remove(tx, key)) {
            accounts.Insert(tx, key, BAccount{.balance = 1, .owner = {}});
          }
          return 0;
        });
      }
    });
  }
  std::vector<std::int64_t> even;
  for (std::int64_t i = 0; i < kKeys; i += 2) even.push_back(i);
  for (int round = 0; round < 100 && !HasFailure(); ++round) {
    const bool descending = round % 2 != 0;
    std::vector<std::int64_t> seen;
    std::optional<std::int64_t> after;
    do {
      const auto next = accounts.WalkPage(
          after, 1 + static_cast<std::size_t>(round) % 13,
          [&](std::int64_t key, const BAccount&) {
            seen.push_back(key);
            return true;
          },
          descending);
      EXPECT_TRUE(next.ok());
      after = next.ok() ? next.value() : std::nullopt;
    } while (after);
    if (descending) std::reverse(seen.begin(), seen.end());
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(seen.end(), std::adjacent_find(seen.begin(), seen.end())) << "given twice";
    std::erase_if(seen, [](std::int64_t key) { return key % 2 != 0; });
    EXPECT_EQ(even, seen) << "round " << round;
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

}  // namespace
}  // namespace zeze
