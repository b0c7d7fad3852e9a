// The rule of a group against the truth, and its bytes.

#include "zeze/components/rank/rank_group.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/hex.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/schema.h"
#include "zeze/components/rank/rank.h"

namespace zeze {
namespace {

using Group = RankGroup<BValueLong>;
using Value = Group::Value;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using zeze::testing::FromHex;

const RankOrder<Value> kLarger;

class RankGroupTest : public ::testing::Test {
 protected:
  RankGroupTest() { group.level = 1; }

  RankChange Update(std::int64_t role, std::int64_t score) {
    return group.Update(role, RankLong(score), Rule());
  }
  RankRule<Value> Rule() const { return {kLarger, computed_count, sample_count}; }

  std::vector<std::pair<std::int64_t, std::int64_t>> Entries() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> entries;
    for (const auto& entry : group.entries.ToVector()) {
      entries.emplace_back(entry.role, entry.value.As<BValueLong>()->Value);
    }
    return entries;
  }

  Group group;
  std::size_t computed_count = 3;
  std::size_t sample_count = 0;
};

TEST_F(RankGroupTest, GoesBeforeTheFirstThatIsWorse) {
  EXPECT_EQ(Update(1, 10), RankChange::kEntered);
  EXPECT_EQ(Update(2, 30), RankChange::kEntered);
  EXPECT_EQ(Update(3, 20), RankChange::kEntered);

  EXPECT_THAT(Entries(), ElementsAre(Pair(2, 30), Pair(3, 20), Pair(1, 10)));
  EXPECT_EQ(Update(1, 40), RankChange::kMoved);
  EXPECT_THAT(Entries(), ElementsAre(Pair(1, 40), Pair(2, 30), Pair(3, 20)));
}

TEST_F(RankGroupTest, WhoReachedAValueFirstStaysBeforeOthers) {
  Update(1, 10);
  Update(2, 10);
  EXPECT_EQ(Update(1, 10), RankChange::kNone);
  EXPECT_THAT(Entries(), ElementsAre(Pair(1, 10), Pair(2, 10)));

  Update(1, 9);
  Update(1, 10);
  EXPECT_THAT(Entries(), ElementsAre(Pair(2, 10), Pair(1, 10)));
}

TEST_F(RankGroupTest, KeepsNoMoreThanTheComputedCount) {
  for (std::int64_t role = 1; role <= 5; ++role) Update(role, role * 10);
  EXPECT_THAT(Entries(), ElementsAre(Pair(5, 50), Pair(4, 40), Pair(3, 30)));
  EXPECT_EQ(group.outside.As<BValueLong>()->Value, 20);
}

TEST_F(RankGroupTest, AValueThatCannotEnterWritesNothing) {
  for (std::int64_t role = 1; role <= 5; ++role) Update(role, role * 10);
  EXPECT_FALSE(group.Plan(9, RankLong(20), Rule()).edits);
  EXPECT_FALSE(group.Plan(9, RankLong(1), Rule()).edits);
  EXPECT_TRUE(group.Plan(9, RankLong(21), Rule()).edits);
}

// 排到当前排行榜数据的末尾时，可能是不正确的: who falls to the end is removed from the computed data,
// because somebody outside may be better.
TEST_F(RankGroupTest, Seed001FallingToTheEndLeavesTheComputedData) {
  for (std::int64_t role = 1; role <= 4; ++role) Update(role, role * 10);  // 1 is outside with 10.

  EXPECT_EQ(Update(4, 5), RankChange::kLeft);

  EXPECT_THAT(Entries(), ElementsAre(Pair(3, 30), Pair(2, 20)));
}

// 如果比100还少，那么就显示少一些的数据: fewer are shown, and nobody is missing who should be there.
TEST_F(RankGroupTest, SeedShowsFewerRatherThanWrongOnes) {
  for (std::int64_t role = 1; role <= 4; ++role) Update(role, role * 10);
  Update(4, 1);
  Update(3, 2);
  Update(2, 3);
  EXPECT_THAT(Entries(), IsEmpty());  // Role 1 has 10, but nobody remembers.

  EXPECT_EQ(Update(5, 7), RankChange::kNone);
  EXPECT_THAT(Entries(), IsEmpty());
  EXPECT_EQ(Update(1, 11), RankChange::kEntered);
  EXPECT_THAT(Entries(), ElementsAre(Pair(1, 11)));
}

// 对于只增长的数据，这种实现方式是完全正确的.
TEST_F(RankGroupTest, SeedGrowingScoresAreNeverShort) {
  computed_count = 10;
  std::mt19937_64 random(1);
  std::map<std::int64_t, std::int64_t> scores;
  for (int i = 0; i < 5000; ++i) {
    const auto role = static_cast<std::int64_t>(random() % 100);
    scores[role] += static_cast<std::int64_t>(random() % 10);
    Update(role, scores[role]);
    ASSERT_EQ(group.entries.size(), std::min<std::size_t>(10, scores.size()));
  }
}

TEST_F(RankGroupTest, WhoFallsButIsBetterThanAllOutsideStays) {
  for (std::int64_t role = 1; role <= 4; ++role) Update(role, role * 10);  // 1 is outside with 10.
  EXPECT_EQ(Update(4, 11), RankChange::kMoved);
  EXPECT_THAT(Entries(), ElementsAre(Pair(3, 30), Pair(2, 20), Pair(4, 11)));
}

TEST_F(RankGroupTest, WithNobodyOutsideEverybodyIsListed) {
  Update(1, 10);
  Update(2, 20);
  EXPECT_EQ(Update(2, 1), RankChange::kMoved);
  EXPECT_EQ(Update(3, 0), RankChange::kEntered);
  EXPECT_THAT(Entries(), ElementsAre(Pair(1, 10), Pair(2, 1), Pair(3, 0)));
}

TEST_F(RankGroupTest, RemovedRolesLeaveNothingBehind) {
  sample_count = 8;
  for (std::int64_t role = 1; role <= 3; ++role) Update(role, role * 10);
  EXPECT_TRUE(group.Remove(2));
  EXPECT_FALSE(group.Remove(2));
  EXPECT_THAT(Entries(), ElementsAre(Pair(3, 30), Pair(1, 10)));
  EXPECT_TRUE(group.outside.empty());
  EXPECT_EQ(group.sample.size(), 2U);
}

// What is true: every role's score and when it reached it.
class Truth {
 public:
  void Update(std::int64_t role, std::int64_t score) {
    const auto [at, added] = roles_.try_emplace(role, score, ++now_);
    if (!added && at->second.first != score) at->second = {score, ++now_};
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> Best() const {
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> order;
    for (const auto& [role, reached] : roles_) {
      order.emplace_back(-reached.first, reached.second, role);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::pair<std::int64_t, std::int64_t>> best;
    for (const auto& [negative, when, role] : order) best.emplace_back(role, -negative);
    return best;
  }
  const std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>>& roles() const {
    return roles_;
  }

 private:
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> roles_;
  std::int64_t now_ = 0;
};

template <typename List>
bool IsBeginningOf(const List& list, const List& whole) {
  return list.size() <= whole.size() && std::equal(list.begin(), list.end(), whole.begin());
}

// Scores that rise, fall, are equal; few and many roles; records that are loaded anew meanwhile.
TEST_F(RankGroupTest, IsAlwaysTheTrueBeginningOfItsGroup) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::size_t shortened = 0;
  for (int round = 0; round < 200; ++round) {
    group = Group();
    group.level = 1;
    computed_count = 1 + random() % 40;
    sample_count = random() % 3 * 8;
    const std::uint64_t roles = 1 + random() % 80;
    const std::uint64_t scores = 1 + random() % 100;
    Truth truth;
    for (unsigned i = 0; i < 400; ++i) {
      const auto role = static_cast<std::int64_t>(random() % roles);
      // In some rounds scores fall on the whole.
      const std::uint64_t most = round % 2 == 0 ? scores : 1 + scores * (400U - i) / 400;
      const auto score = static_cast<std::int64_t>(random() % most);
      truth.Update(role, score);
      Update(role, score);
      if (random() % 16 == 0) group = DecodeBean<Group>(EncodeBean(group)).value();
      const auto best = truth.Best();
      ASSERT_TRUE(IsBeginningOf(Entries(), best)) << "computed " << computed_count;
      ASSERT_LE(group.entries.size(), computed_count);
      ASSERT_TRUE(!group.outside.empty() || group.entries.size() == best.size());
      if (group.entries.size() < std::min(computed_count, best.size())) ++shortened;
    }
  }
  EXPECT_GT(shortened, 0U);  // Otherwise the test did not try what it is for.
}

// Zeze 1.6: who would be last is appended while the group has fewer than the rank size, or is below
// its limit and the role was not there before.
std::vector<std::pair<std::int64_t, std::int64_t>> UpdateAsThePeer(
    std::vector<std::pair<std::int64_t, std::int64_t>> list, std::int64_t role, std::int64_t score,
    std::size_t shown_count, std::size_t computed_count) {
  const std::size_t before = list.size();
  std::erase_if(list, [role](const auto& entry) { return entry.first == role; });
  const bool was_there = list.size() != before;
  const auto worse = std::find_if(list.begin(), list.end(),
                                  [score](const auto& entry) { return entry.second < score; });
  const bool last = worse == list.end();
  const bool room = list.size() < shown_count || (list.size() < computed_count && !was_there);
  if (last && !room) return list;
  list.emplace(worse, role, score);
  if (list.size() > computed_count) list.pop_back();
  return list;
}

// Why the rule is not the peer's: below the rank size it appends whoever falls, although somebody
// outside is better.
TEST_F(RankGroupTest, ThePeersRuleShowsWrongEntries) {
  computed_count = 4;
  std::vector<std::pair<std::int64_t, std::int64_t>> peer;
  const auto update = [&](std::int64_t role, std::int64_t score) {
    peer = UpdateAsThePeer(peer, role, score, 2, computed_count);
    Update(role, score);
  };
  for (std::int64_t role = 1; role <= 6; ++role) update(role, role * 10);
  update(6, 1);
  update(5, 1);
  update(4, 2);

  EXPECT_THAT(peer, ElementsAre(Pair(3, 30), Pair(4, 2)));  // Role 2 has 20.
  EXPECT_THAT(Entries(), ElementsAre(Pair(3, 30)));
}

TEST_F(RankGroupTest, TheSampleIsOfAllRolesWithTheirLastValues) {
  sample_count = 50;
  Truth truth;
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto role = static_cast<std::int64_t>(random() % 3000);
    const auto score = static_cast<std::int64_t>(random() % 1000);
    truth.Update(role, score);
    Update(role, score);
  }
  std::vector<std::pair<std::uint64_t, std::int64_t>> places;
  for (const auto& [role, reached] : truth.roles()) {
    places.emplace_back(RankSamplePlace(role), role);
  }
  std::sort(places.begin(), places.end());
  ASSERT_EQ(group.sample.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(group.sample[i].role, places[i].second);
    EXPECT_EQ(group.sample[i].value.As<BValueLong>()->Value,
              truth.roles().at(places[i].second).first);
  }
  EXPECT_EQ(static_cast<std::uint64_t>(group.sample_limit), places[50].first);
}

TEST_F(RankGroupTest, MergedGroupsAreTheBeginningOfBoth) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    computed_count = 1 + random() % 20;
    std::map<std::int64_t, std::int64_t> best_of;
    Group groups[2];
    for (Group& one : groups) {
      one.level = 1;
      std::map<std::int64_t, std::int64_t> scores;
      for (int i = 0; i < 60; ++i) {
        const auto role = static_cast<std::int64_t>(random() % 40);
        scores[role] = static_cast<std::int64_t>(random() % 1000);
        one.Update(role, RankLong(scores[role]), Rule());
      }
      for (const auto& [role, score] : scores) {
        const auto at = best_of.try_emplace(role, score).first;
        at->second = std::max(at->second, score);
      }
    }
    groups[0].Merge(groups[1], Rule(), 100);
    std::vector<std::int64_t> right;
    for (const auto& [role, score] : best_of) right.push_back(score);
    std::sort(right.rbegin(), right.rend());
    ASSERT_LE(groups[0].entries.size(), computed_count);
    std::set<std::int64_t> seen;
    std::size_t i = 0;
    for (const auto& entry : groups[0].entries.ToVector()) {
      ASSERT_EQ(entry.value.As<BValueLong>()->Value, right[i++]);
      ASSERT_EQ(best_of[entry.role], right[i - 1]);
      ASSERT_TRUE(seen.insert(entry.role).second);
      ASSERT_TRUE(groups[0].Contains(entry.role));
    }
  }
}

// --- what Zeze 1.6 writes and reads ---

// {1: list of {1: role, 2: dynamic}}; a BValueLong has type id 0x37f31644da60a2c5 and one variable.
TEST_F(RankGroupTest, AListHasThePeersBytes) {
  Group plain;
  plain.entries = Group::Entries({{.role = 7, .value = RankLong(30)}});
  EXPECT_EQ(EncodeBean(plain), FromHex("1416"  // Variable 1, a list of one bean:
                                       "1007"  // role 7,
                                       "17 7fb7f31644da60a2c5 101e 00"  // a dynamic with value 30,
                                       "00"                             // the end of the bean
                                       "00"));
}

TEST_F(RankGroupTest, ListsAreEncodedAsThePeersAre) {
  Zeze::Builtin::Game::Rank::BRankList generated;
  Group::Stored plain;
  for (const auto& [role, score] : {std::pair{7, 30}, std::pair{-1, 0}, std::pair{1 << 20, -5}}) {
    Zeze::Builtin::Game::Rank::BRankValue value;
    value.RoleId = role;
    value.Dynamic.Set(RankLong(score));
    generated.RankList.PushBack(value);
    plain.entries.PushBack({.role = role, .value = RankLong(score)});
  }
  EXPECT_EQ(EncodeBean(plain), EncodeBean(generated));
  EXPECT_EQ(DecodeBean<Group>(EncodeBean(generated)).value().ToStored(), plain);
}

TEST_F(RankGroupTest, ThePeerReadsOurRecords) {
  computed_count = 2;
  sample_count = 4;
  for (std::int64_t role = 1; role <= 4; ++role) Update(role, role * 10);
  const auto read = DecodeBean<Zeze::Builtin::Game::Rank::BRankList>(EncodeBean(group));
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().RankList.size(), 2U);
  EXPECT_EQ(read.value().RankList[0].RoleId, 4);
}

TEST_F(RankGroupTest, OfAPeersLongListTheLastBoundsThoseOutside) {
  Group::Stored stored;
  for (std::int64_t role = 1; role <= 5; ++role) {
    stored.entries.PushBack({.role = role, .value = RankLong(100 - role)});
  }
  stored.entries.PushBack({.role = 5, .value = RankLong(1)});  // Nobody is there twice.
  Group written = DecodeBean<Group>(EncodeBean(stored)).value();

  Group short_one = written;
  short_one.Adopt(1, 100);
  EXPECT_TRUE(short_one.outside.empty());
  EXPECT_EQ(short_one.entries.size(), 5U);

  written.Adopt(1, 5);
  EXPECT_EQ(written.outside.As<BValueLong>()->Value, 1);
}

TEST_F(RankGroupTest, TheStoredSchemaIsThatOfTheGeneratedTable) {
  const Schema ours = DescribeBean<Group>();
  const Schema generated = DescribeBean<Zeze::Builtin::Game::Rank::BRankList>();
  EXPECT_EQ(ours.type, generated.type);
  const auto& list = ours.beans.Get("Zeze.Builtin.Game.Rank.BRankList").fields.Get(1);
  EXPECT_EQ(list, generated.beans.Get("Zeze.Builtin.Game.Rank.BRankList").fields.Get(1));
  EXPECT_EQ(ours.beans.Get("Zeze.Builtin.Game.Rank.BRankValue"),
            generated.beans.Get("Zeze.Builtin.Game.Rank.BRankValue"));
}

}  // namespace
}  // namespace zeze
