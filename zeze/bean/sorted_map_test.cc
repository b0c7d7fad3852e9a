#include "zeze/bean/sorted_map.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/bean/testing/container_access.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/vector.h"

namespace zeze {
namespace {

static_assert(sizeof(SortedMap<std::int32_t, std::string>) == 8);

template <typename K, typename V>
void ExpectSame(const SortedMap<K, V>& map, const std::map<K, V>& model) {
  ASSERT_EQ(map.size(), model.size());
  ASSERT_TRUE(ContainerAccess::IsValid(map));
  auto expected = model.begin();
  for (const auto& [key, value] : map) {
    ASSERT_TRUE(key == expected->first && value == expected->second);
    ++expected;
  }
  ASSERT_TRUE(expected == model.end());
}

template <typename K, typename V>
void ExpectNeighbours(const SortedMap<K, V>& map, const std::map<K, V>& model, const K& key) {
  const auto from = model.lower_bound(key);
  const auto behind = model.upper_bound(key);
  const auto* ceiling = map.Ceiling(key);
  const auto* higher = map.Higher(key);
  const auto* floor = map.Floor(key);
  const auto* lower = map.Lower(key);
  ASSERT_TRUE(from == model.end() ? ceiling == nullptr : ceiling->key == from->first);
  ASSERT_TRUE(behind == model.end() ? higher == nullptr : higher->key == behind->first);
  ASSERT_TRUE(behind == model.begin() ? floor == nullptr : floor->key == std::prev(behind)->first);
  ASSERT_TRUE(from == model.begin() ? lower == nullptr : lower->key == std::prev(from)->first);
  ASSERT_EQ(map.RankOf(key), static_cast<std::size_t>(std::distance(model.begin(), from)));
}

template <typename KV>
class SortedMapModelTest : public testing::Test {};
using MapTypes =
    testing::Types<std::pair<std::int32_t, std::int32_t>, std::pair<std::string, std::string>,
                   std::pair<std::int32_t, FatValue>>;
TYPED_TEST_SUITE(SortedMapModelTest, MapTypes);

TYPED_TEST(SortedMapModelTest, BehavesAsAMapAndLeavesSnapshotsAlone) {
  using K = typename TypeParam::first_type;
  using V = typename TypeParam::second_type;
  std::mt19937_64 random(TestSeed());
  SortedMap<K, V> map;
  std::map<K, V> model;
  std::vector<std::pair<SortedMap<K, V>, std::map<K, V>>> snapshots;
  for (int step = 0; step < 20000; ++step) {
    const K key = ValueOf<K>(random() % 2000);
    const V value = ValueOf<V>(random());
    const bool grows = step / 2500 % 2 == 0;
    const std::uint64_t choice = random() % 10;
    if (choice < 3) {
      const bool there = map.Update(key, [&](V& element) { element = value; });
      ASSERT_EQ(there, model.contains(key));
      if (there) model[key] = value;
    } else if (choice < (grows ? 8U : 4U)) {
      ASSERT_EQ(map.Put(key, value), model.insert_or_assign(key, value).second);
    } else {
      ASSERT_EQ(map.Erase(key), model.erase(key) == 1);
    }
    if (random() % 500 == 0) {
      snapshots.emplace_back(map, model);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(map, model));
      ASSERT_NO_FATAL_FAILURE(ExpectNeighbours(map, model, key));
    }
    if (snapshots.size() > 8) snapshots.erase(snapshots.begin());
  }

  ExpectSame(map, model);
  for (const auto& [old_map, old_model] : snapshots) {
    ExpectSame(old_map, old_model);
    std::map<K, V> changed = old_model;
    map.ForEachChangeSince(old_map, [&](const V* old_value, const V* new_value, const K& key) {
      ASSERT_TRUE(old_value == old_map.Find(key));
      ASSERT_TRUE(new_value == map.Find(key));
      if (new_value == nullptr) {
        changed.erase(key);
      } else {
        changed[key] = *new_value;
      }
    });
    EXPECT_TRUE(changed == model);
    EXPECT_EQ(old_map == map, old_model == model);
  }
}

TEST(SortedMapTest, ChangesOfALargeMapSkipWhatIsShared) {
  SortedMap<std::int32_t, std::int32_t> map;
  for (std::int32_t i = 0; i < 100000; ++i) map.Put(i, i);
  const SortedMap<std::int32_t, std::int32_t> before = map;
  map.Put(50000, -1);
  map.Erase(70000);

  int reported = 0;
  map.ForEachChangeSince(
      before, [&](const std::int32_t* old_value, const std::int32_t* new_value, std::int32_t) {
        if (old_value == nullptr || new_value == nullptr || *old_value != *new_value) ++reported;
      });
  EXPECT_EQ(reported, 2);
}

TEST(SortedMapTest, WalksRanges) {
  SortedMap<std::string, std::int32_t> map = {{"c", 3}, {"a", 1}, {"b", 2}, {"d", 4}};
  std::string seen;
  for (const auto& [key, value] : map.Range("b", "d")) seen += key;
  for (const auto& [key, value] : map.From("c")) seen += key;
  for (const auto& [key, value] : map.Until("b")) seen += key;

  EXPECT_EQ(seen, "bccda");
  EXPECT_TRUE(map.Range("x", "b").begin() == map.end());
  EXPECT_EQ(map.First()->value, 1);
  EXPECT_EQ(map.Last()->value, 4);
  EXPECT_EQ(map.AtRank(1)->key, "b");
}

TEST(SortedMapTest, EmptyMapHasNoNeighbours) {
  const SortedMap<std::int32_t, std::int32_t> map;
  EXPECT_EQ(map.First(), nullptr);
  EXPECT_EQ(map.Last(), nullptr);
  EXPECT_EQ(map.Floor(1), nullptr);
  EXPECT_EQ(map.Ceiling(1), nullptr);
}

TEST(SortedMapTest, OrdersKeysThatHaveNoOrderOfTheirOwn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  SortedMap<Vector2, std::int32_t> points = {
      {{nan, 1}, 1}, {{2, 0}, 2}, {{1, nan}, 3}, {{1, 0}, 4}};
  points.Put({nan, 1}, 5);
  EXPECT_EQ(points.size(), 4U);
  EXPECT_EQ(points.Get({nan, 1}), 5);
  EXPECT_EQ(points.Get({1, 0}), 4);
  SortedMap<Decimal, std::int32_t> prices = {{Decimal{"2"}, 2}, {Decimal{"1.5"}, 1}};
  EXPECT_EQ(prices.First()->value, 1);
}

TEST(SortedMapTest, LoopSeesTheOldContentsWhileItsBodyEditsTheMap) {
  SortedMap<std::int32_t, std::int32_t> map;
  for (std::int32_t i = 0; i < 500; ++i) map.Put(i, i);
  std::int32_t next = 0;
  for (const auto& [key, value] : map) {
    map.Erase(key);
    map.Put(key + 1000, value);
    EXPECT_EQ(key, next++);
  }

  EXPECT_EQ(next, 500);
  EXPECT_EQ(map.First()->key, 1000);
}

TEST(SortedMapTest, CopiesAreEditedInManyThreadsAtOnce) {
  SortedMap<std::int32_t, std::string> shared;
  for (std::int32_t i = 0; i < 2000; ++i) shared.Put(i, std::to_string(i));

  std::vector<std::thread> threads;
  for (std::int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([copy = shared, t]() mutable {
      for (std::int32_t round = 0; round < 20; ++round) {
        SortedMap<std::int32_t, std::string> own = copy;
        for (std::int32_t i = t; i < 2000; i += 7) own.Put(i, "t");
        for (std::int32_t i = 0; i < 200; ++i) own.Erase(i * 3 + round);
        if (round % 2 == 0) copy = own;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::int32_t i = 0; i < 2000; ++i) EXPECT_EQ(shared.Get(i), std::to_string(i));
}

}  // namespace
}  // namespace zeze
