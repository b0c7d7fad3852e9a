// Boards in an engine.

#include "zeze/components/rank/rank.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/codec.h"
#include "zeze/components/rank/testing/shown_entries.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/testing/fake_coherence.h"

namespace zeze {
namespace {

using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RolesOf;
using testing::ScoresOf;

const RankBoard kBoard = RankBoard::Total(1);

class RankTest : public ::testing::Test {
 protected:
  struct Server {
    explicit Server(RankTest& test, RankOptions options) : rank(options) {
      engine = std::make_unique<Engine>(EngineOptions{.storage = test.storage.get(),
                                                      .coherence = &test.coherence,
                                                      .checkpoint_period = seconds(0)});
      EXPECT_TRUE(engine->AddTable(rank.table()).ok());
      EXPECT_TRUE(engine->Start().ok());
    }
    ~Server() { EXPECT_TRUE(engine->Stop().ok()); }

    LongRank rank;
    std::unique_ptr<Engine> engine;
  };

  RankOptions Options(std::uint32_t level = 8) {
    return {.concurrent_level = level, .views = {.clock = &clock}};
  }

  void Open(RankOptions options) {
    server.reset();  // Saves everything.
    server = std::make_unique<Server>(*this, options);
    server->rank.Define(2, {.shown_count = 10, .computed_factor = 2});
    server->rank.Attach(*server->engine);
  }

  Result<RankChange> Update(std::int64_t role, std::int64_t score,
                            const RankBoard& board = kBoard) {
    Result<RankChange> result = RankChange::kNone;
    server->engine->Call("update", [&](Transaction& tx) -> std::int64_t {
      result = server->rank.Update(tx, board, role, RankLong(score));
      return result.ok() ? 0 : 1;
    });
    return result;
  }

  LongRank& rank() { return server->rank; }
  LongRank::ViewPointer Read(const RankBoard& board = kBoard) { return rank().Read(board).value(); }

  testing::ManualClock clock;
  std::unique_ptr<Storage> storage = OpenMemoryStorage();
  testing::FakeCoherence coherence;
  std::unique_ptr<Server> server;
};

TEST_F(RankTest, MergesItsGroups) {
  Open(Options());
  for (std::int64_t role = 1; role <= 50; ++role) ASSERT_TRUE(Update(role, role % 10).ok());

  const auto view = Read();

  const std::vector<std::int64_t> scores = ScoresOf(view);
  EXPECT_EQ(scores.size(), 50U);
  EXPECT_TRUE(std::is_sorted(scores.rbegin(), scores.rend()));
  EXPECT_EQ(view->PositionOf(view->Shown()[6].role), 7);
  EXPECT_EQ(view->PositionOf(99), std::nullopt);
}

TEST_F(RankTest, ShowsNoMoreThanTheShownCount) {
  Open(Options());
  for (std::int64_t role = 1; role <= 300; ++role) {
    ASSERT_TRUE(Update(role, role).ok());
    ASSERT_TRUE(Update(role, role, RankBoard::Total(2)).ok());
  }
  EXPECT_EQ(Read()->Shown().size(), 100U);
  EXPECT_THAT(RolesOf(Read(RankBoard::Total(2))),
              ElementsAre(300, 299, 298, 297, 296, 295, 294, 293, 292, 291));
}

TEST_F(RankTest, SurvivesARestart) {
  Open(Options());
  for (std::int64_t role = 1; role <= 30; ++role) ASSERT_TRUE(Update(role, role).ok());
  const std::vector<std::int64_t> before = RolesOf(Read());
  Open(Options());
  EXPECT_EQ(RolesOf(Read()), before);
  ASSERT_TRUE(Update(3, 1000).ok());
  EXPECT_EQ(RolesOf(Read()).front(), 3);
}

TEST_F(RankTest, BoardsOfDifferentTimesAreDifferent) {
  Open(Options());
  const auto monday = std::chrono::local_days(std::chrono::year(2026) / 3 / 2);
  ASSERT_TRUE(Update(1, 10, RankBoard::Day(1, monday)).ok());
  ASSERT_TRUE(Update(2, 20, RankBoard::Day(1, monday + std::chrono::days(1))).ok());
  ASSERT_TRUE(Update(3, 30, RankBoard::Week(1, monday)).ok());
  EXPECT_THAT(RolesOf(Read(RankBoard::Day(1, monday))), ElementsAre(1));
  EXPECT_THAT(RolesOf(Read(RankBoard::Day(1, monday + std::chrono::days(1)))), ElementsAre(2));
  EXPECT_THAT(RolesOf(Read(RankBoard::Week(1, monday))), ElementsAre(3));
}

// table.key = account.hash % 1024: each group has its own record, in which it is ordered.
TEST_F(RankTest, SeedHashGroupsAreStoredApartAndMergedByReaders) {
  Open(Options(1024));
  for (std::int64_t role = 1; role <= 3000; ++role) ASSERT_TRUE(Update(role, role).ok());

  std::size_t records = 0;
  std::size_t entries = 0;
  ASSERT_TRUE(rank()
                  .table()
                  .Walk([&](const RankKey& key, const LongRank::Group& group) {
                    ++records;
                    for (const auto& entry : group.entries.ToVector()) {
                      EXPECT_EQ(rank().GroupOf(RoutingHash(entry.role)),
                                static_cast<std::uint32_t>(key.ConcurrentId));
                      ++entries;
                    }
                    return true;
                  })
                  .ok());

  EXPECT_GT(records, 900U);
  EXPECT_EQ(entries, 3000U);
  EXPECT_EQ(RolesOf(Read()).front(), 3000);
}

TEST_F(RankTest, TheGroupMayBeThatOfTheAccount) {
  Open(Options());
  const std::uint32_t hash = RoutingHashOfText("ann");
  server->engine->Call("update", [&](Transaction& tx) -> std::int64_t {
    return rank().Update(tx, kBoard, 7, RankLong(1), hash).ok() ? 0 : 1;
  });
  const auto group = rank().table().ReadCopy(kBoard.Key(hash % 8));
  EXPECT_EQ(group.value()->entries.size(), 1U);
}

// --- the truth ---

struct Scores {
  std::map<std::int64_t, std::int64_t> of;

  std::vector<std::int64_t> Best() const {
    std::vector<std::int64_t> best;
    for (const auto& [role, score] : of) best.push_back(score);
    std::sort(best.rbegin(), best.rend());
    return best;
  }
};

// What is shown are the best scores that there are, each of the role that has it; perhaps fewer.
template <typename View>
void ExpectTrueBeginning(const View& view, const Scores& truth) {
  const std::vector<std::int64_t> best = truth.Best();
  std::size_t i = 0;
  for (const auto& entry : view->Certain()) {
    ASSERT_LT(i, best.size());
    ASSERT_EQ(entry.value.template As<BValueLong>()->Value, best[i]) << "at position " << i + 1;
    ASSERT_EQ(truth.of.at(entry.role), best[i]);
    ++i;
  }
}

TEST_F(RankTest, WhateverRisesAndFallsTheMergedBoardIsTheTrueBeginning) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Open(Options(4));
  std::size_t fewer = 0;
  for (std::int32_t round = 0; round < 10; ++round) {
    const RankBoard board = RankBoard::Custom(2, round);
    const std::uint64_t roles = 20 + random() % 300;
    Scores truth;
    for (unsigned i = 0; i < 1500; ++i) {
      const auto role = static_cast<std::int64_t>(random() % roles);
      // In some rounds scores fall on the whole.
      const auto score = static_cast<std::int64_t>(random() % (round % 2 == 0 ? 1000 : 1600 - i));
      truth.of[role] = score;
      ASSERT_TRUE(Update(role, score, board).ok());
      if (i % 10 != 0) continue;
      const auto view = Read(board);
      ExpectTrueBeginning(view, truth);
      if (view->Shown().size() < std::min<std::size_t>(10, truth.of.size())) ++fewer;
    }
  }
  EXPECT_GT(fewer, 0U);
}

// One group has lost its list to falls; entries of others that somebody outside of it may beat are
// not shown.
TEST_F(RankTest, AShortGroupHidesWorseEntriesOfOthers) {
  Open(Options(2));
  const RankBoard board = RankBoard::Custom(2, 1);
  std::vector<std::int64_t> of_group[2];
  for (std::int64_t role = 1; of_group[0].size() < 21 || of_group[1].empty(); ++role) {
    of_group[rank().GroupOf(RoutingHash(role))].push_back(role);
  }
  ASSERT_TRUE(Update(of_group[1][0], 40, board).ok());
  for (std::size_t i = 0; i < 21; ++i) {
    ASSERT_TRUE(Update(of_group[0][i], 100 - static_cast<std::int64_t>(i), board).ok());
  }  // 20 are computed: the last is outside, with 80.
  for (std::size_t i = 3; i < 20; ++i) ASSERT_TRUE(Update(of_group[0][i], 1, board).ok());

  EXPECT_THAT(ScoresOf(Read(board)), ElementsAre(100, 99, 98));
}

TEST_F(RankTest, PositionsAreExactAboveThoseOutsideAndEstimatedBelow) {
  Open(Options(16));
  std::mt19937_64 random(5);
  Scores truth;
  for (std::int64_t role = 0; role < 20'000; ++role) {
    truth.of[role] = static_cast<std::int64_t>(random() % 1'000'000);
    ASSERT_TRUE(Update(role, truth.of[role], RankBoard::Total(2)).ok());
  }
  const auto view = Read(RankBoard::Total(2));
  const std::vector<std::int64_t> best = truth.Best();

  EXPECT_NEAR(static_cast<double>(view->EstimateRoleCount()), 20'000, 20'000 * 0.15);
  const auto position = view->EstimatePosition(RankLong(best[50]));
  EXPECT_TRUE(position.exact);
  EXPECT_EQ(position.position, std::find(best.begin(), best.end(), best[50]) - best.begin() + 1);
  for (const std::size_t place : {1000U, 5000U, 15'000U}) {
    const auto estimate = view->EstimatePosition(RankLong(best[place]));
    EXPECT_FALSE(estimate.exact);
    // One role in 20 is sampled: five standard errors.
    const double error = std::sqrt(static_cast<double>(place) * 19);
    EXPECT_NEAR(static_cast<double>(estimate.position), static_cast<double>(place), 5 * error);
  }
}

// --- reading ---

// Defect 32 of the peer: a query created every group that was not there.
TEST_F(RankTest, ReadingAnEmptyBoardWritesNothingAndAsksForNoModifyRight) {
  std::atomic<std::size_t> modify = 0;
  std::atomic<std::size_t> asked = 0;
  coherence.on_acquire = [&](std::string_view, Right wanted) {
    ++asked;
    if (wanted == Right::kModify) ++modify;
  };
  Open(Options(128));

  EXPECT_THAT(RolesOf(Read()), IsEmpty());
  EXPECT_TRUE(rank().Top(kBoard).ok());

  EXPECT_EQ(modify, 0U);
  EXPECT_EQ(asked, 128U);
  EXPECT_EQ(server->engine->statistics().commits, 0U);
  ASSERT_TRUE(server->engine->CheckpointNow().ok());
  EXPECT_EQ(rank().table().WalkStorage([](const RankKey&, const auto&) { return true; }).value(),
            0U);
}

TEST_F(RankTest, AnUpdateThatCannotEnterAsksForNoModifyRight) {
  Open({.concurrent_level = 1, .sample_count = 0, .views = {}});
  for (std::int64_t role = 1; role <= 25; ++role) {
    ASSERT_TRUE(Update(role, role, RankBoard::Total(2)).ok());
  }
  std::atomic<std::size_t> modify = 0;
  server.reset();
  coherence.on_acquire = [&](std::string_view, Right wanted) {
    modify += wanted == Right::kModify;
  };
  Open({.concurrent_level = 1, .sample_count = 0, .views = {}});
  ASSERT_TRUE(Update(99, 1, RankBoard::Total(2)).ok());
  EXPECT_EQ(modify, 0U);
}

TEST_F(RankTest, TopIsReadAgainAfterItsLifetime) {
  Open(Options());
  ASSERT_TRUE(Update(1, 10).ok());
  EXPECT_THAT(RolesOf(rank().Top(kBoard).value()), ElementsAre(1));
  ASSERT_TRUE(Update(2, 20).ok());
  clock.Advance(minutes(5) - nanoseconds(1));
  EXPECT_THAT(RolesOf(rank().Top(kBoard).value()), ElementsAre(1));
  clock.Advance(nanoseconds(1));
  EXPECT_THAT(RolesOf(rank().Top(kBoard).value()), ElementsAre(2, 1));
}

TEST_F(RankTest, ABoardThatCannotBeReadIsAnError) {
  Open(Options());
  coherence.grants = false;
  const auto view = rank().Top(kBoard);
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.error().code(), ErrorCode::kUnavailable);
  coherence.grants = true;
  EXPECT_TRUE(rank().Top(kBoard).ok());
}

// --- the level ---

TEST_F(RankTest, ABoardOfAnotherLevelIsRefused) {
  Open(Options(8));
  ASSERT_TRUE(Update(1, 10).ok());
  for (const std::uint32_t level : {4U, 16U}) {
    Open(Options(level));
    for (std::int64_t role = 1; role <= 20; ++role) {
      const auto updated = Update(role, 5);
      ASSERT_FALSE(updated.ok());
      EXPECT_EQ(updated.error().code(), ErrorCode::kIncompatible);
      EXPECT_THAT(updated.error().message(), HasSubstr("was made with ConcurrentLevel 8"));
    }
    const auto read = rank().Top(kBoard);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code(), ErrorCode::kIncompatible);
  }
  Open(Options(8));
  EXPECT_THAT(RolesOf(Read()), ElementsAre(1));
}

// 修改这个参数，对导致分组数据全部失效（作废掉重来）.
TEST_F(RankTest, SeedAfterTheBoardIsDeletedTheLevelMayChange) {
  Open(Options(8));
  for (std::int64_t role = 1; role <= 20; ++role) ASSERT_TRUE(Update(role, 10).ok());
  Open(Options(4));
  ASSERT_TRUE(rank().Delete(kBoard).ok());
  ASSERT_TRUE(Update(1, 10).ok());
  EXPECT_THAT(RolesOf(Read()), ElementsAre(1));
  std::size_t records = 0;
  ASSERT_TRUE(rank()
                  .table()
                  .WalkKeys([&](const RankKey& key) {
                    EXPECT_LT(key.ConcurrentId, 4);
                    ++records;
                    return true;
                  })
                  .ok());
  EXPECT_LE(records, 2U);
}

TEST_F(RankTest, APeersRecordIsTakenOver) {
  Zeze::Builtin::Game::Rank::BRankList written;
  Zeze::Builtin::Game::Rank::BRankValue value;
  value.RoleId = 77;
  value.Dynamic.Set(RankLong(5));
  written.RankList.PushBack(value);
  const std::uint32_t group = RoutingHash(77) % 8;
  const std::string key = EncodeKey(kBoard.Key(group));
  const std::string bytes = EncodeBean(written);
  const StorageWrite write{.table = storage->OpenTable("Zeze_Builtin_Game_Rank_trank").value(),
                           .key = key,
                           .value = bytes};
  ASSERT_TRUE(storage->Flush({&write, 1}, true).ok());

  Open(Options(8));
  EXPECT_THAT(RolesOf(Read()), ElementsAre(77));
  ASSERT_TRUE(Update(77, 6).ok());
  EXPECT_THAT(ScoresOf(Read()), ElementsAre(6));
}

// --- maintenance ---

TEST_F(RankTest, ADeletedBoardIsGoneAndOthersAreNot) {
  Open(Options());
  for (std::int64_t role = 1; role <= 20; ++role) {
    ASSERT_TRUE(Update(role, role).ok());
    ASSERT_TRUE(Update(role, role, RankBoard::Total(2)).ok());
  }
  EXPECT_EQ(rank().Top(kBoard).value()->Shown().size(), 20U);

  ASSERT_TRUE(rank().Delete(kBoard).ok());

  EXPECT_THAT(RolesOf(rank().Top(kBoard).value()), IsEmpty());
  EXPECT_EQ(Read(RankBoard::Total(2))->Certain().size(), 20U);
}

TEST_F(RankTest, BoardsAreMergedGroupByGroup) {
  Open(Options());
  const RankBoard other = RankBoard::Custom(1, 5);
  for (std::int64_t role = 1; role <= 20; ++role) ASSERT_TRUE(Update(role, role).ok());
  for (std::int64_t role = 15; role <= 40; ++role) ASSERT_TRUE(Update(role, 30, other).ok());
  ASSERT_TRUE(Update(20, 1, other).ok());  // 20 on the first.

  ASSERT_TRUE(rank().Merge(other, kBoard).ok());

  const auto view = Read();
  EXPECT_EQ(view->Shown().size(), 40U);
  EXPECT_EQ(
      std::count_if(view->Shown().begin(), view->Shown().end(),
                    [](const auto& e) { return e.value.template As<BValueLong>()->Value == 30; }),
      25);
  EXPECT_EQ(view->EstimatePosition(RankLong(20)).position, 26);
  EXPECT_THAT(RolesOf(Read(other)), IsEmpty());
  ASSERT_TRUE(rank().Merge(other, kBoard).ok());  // Nothing is left to merge.
  EXPECT_EQ(Read()->Shown().size(), 40U);
}

TEST_F(RankTest, ABoardIsNotMergedIntoItself) {
  Open(Options());
  EXPECT_EQ(rank().Merge(kBoard, kBoard).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(RankTest, ARemovedRoleIsGone) {
  Open(Options());
  ASSERT_TRUE(Update(1, 10).ok());
  ASSERT_TRUE(Update(2, 20).ok());
  server->engine->Call("ban", [&](Transaction& tx) -> std::int64_t {
    EXPECT_TRUE(rank().Remove(tx, kBoard, 2).value());
    EXPECT_FALSE(rank().Remove(tx, kBoard, 3).value());
    return 0;
  });
  EXPECT_THAT(RolesOf(Read()), ElementsAre(1));
}

// --- threads ---

TEST_F(RankTest, ThreadsThatUpdateOneGroupAndManyLeaveTheTruth) {
  for (const std::uint32_t level : {1U, 16U}) {
    const RankBoard board = RankBoard::Custom(1, level);
    Open(Options(level));
    constexpr int kThreads = 4;
    constexpr std::int64_t kRoles = 60;
    std::atomic<bool> stop = false;
    std::vector<Scores> truths(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {  // Each has roles of its own, so that there is one truth.
        std::mt19937_64 random(static_cast<std::uint64_t>(t));
        for (int i = 0; i < 3000; ++i) {
          const auto role = static_cast<std::int64_t>(random() % kRoles) * kThreads + t;
          const auto score = static_cast<std::int64_t>(random() % 500);
          truths[static_cast<std::size_t>(t)].of[role] = score;
          server->engine->Call("update", [&](Transaction& tx) -> std::int64_t {
            return rank().Update(tx, board, role, RankLong(score)).ok() ? 0 : 1;
          });
        }
      });
    }
    std::thread reader([&] {
      while (!stop) {
        const auto scores = ScoresOf(Read(board));
        EXPECT_TRUE(std::is_sorted(scores.rbegin(), scores.rend()));
      }
    });
    for (std::thread& thread : threads) thread.join();
    stop = true;
    reader.join();
    Scores truth;
    for (Scores& part : truths) truth.of.merge(part.of);
    const auto view = Read(board);
    ExpectTrueBeginning(view, truth);
    EXPECT_EQ(view->Certain().size(), truth.of.size());  // 250 are computed: nobody is outside.
  }
}

TEST(RankOptions, WhatNoRankCanBeIsRefusedWithASentence) {
  EXPECT_THROW(LongRank({.concurrent_level = 0}), UsageError);
  LongRank rank;
  EXPECT_THROW(rank.Define(1, {.shown_count = 0}), UsageError);
  try {
    rank.Define(1, {.computed_factor = 1.5});
    FAIL() << "a factor below two";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("computed_factor of a rank is 1.5: set at"));
  }
}

TEST_F(RankTest, IsDefinedBeforeTheStart) {
  Open(Options());
  EXPECT_THROW(rank().Define(77, {}), UsageError);
}

}  // namespace
}  // namespace zeze
