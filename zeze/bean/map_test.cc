#include "zeze/bean/map.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/usage_error.h"
#include "zeze/bean/hash.h"
#include "zeze/bean/list.h"
#include "zeze/bean/set.h"
#include "zeze/bean/testing/container_access.h"
#include "zeze/serialize/vector.h"

namespace zeze {

// Keys of which many collide, in all bits of the hash or in the lower ones.
struct CollidingKey {
  std::int32_t number = 0;
  auto operator<=>(const CollidingKey&) const = default;
};

}  // namespace zeze

template <>
struct std::hash<zeze::CollidingKey> {
  std::size_t operator()(const zeze::CollidingKey& key) const noexcept {
    return static_cast<std::size_t>(key.number % 5);
  }
};

namespace zeze {

template <>
inline CollidingKey ValueOf<CollidingKey>(std::uint64_t number) {
  return {static_cast<std::int32_t>(number)};
}

namespace {

static_assert(sizeof(Map<std::int32_t, std::string>) == 8);
static_assert(sizeof(Set<std::string>) == 8);

struct Node {
  std::int32_t value = 0;
  Map<std::int32_t, Node> children;
};

template <typename K, typename V>
void ExpectSame(const Map<K, V>& map, const std::map<K, V>& model) {
  ASSERT_EQ(map.size(), model.size());
  ASSERT_TRUE(ContainerAccess::IsValid(map));
  std::size_t seen = 0;
  for (const auto& [key, value] : map) {
    const auto found = model.find(key);
    ASSERT_TRUE(found != model.end() && found->second == value);
    ++seen;
  }
  ASSERT_EQ(seen, model.size());
}

template <typename K, typename V>
void ExpectSameOrder(const Map<K, V>& a, const Map<K, V>& b) {
  ASSERT_TRUE(a == b);
  for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) ASSERT_TRUE(i->key == j->key);
}

// The changes from one map to another, applied to a model of the first, must give the second.
template <typename K, typename V>
void ExpectChangesLead(const Map<K, V>& from, const Map<K, V>& to, std::map<K, V> model,
                       const std::map<K, V>& target) {
  to.ForEachChangeSince(from, [&](const V* old_value, const V* new_value, const K& key) {
    ASSERT_TRUE(old_value == from.Find(key));
    ASSERT_TRUE(new_value == to.Find(key));
    if (new_value == nullptr) {
      model.erase(key);
    } else {
      model[key] = *new_value;
    }
  });
  ASSERT_TRUE(model == target);
}

template <typename KV>
class MapModelTest : public testing::Test {};
using MapTypes =
    testing::Types<std::pair<std::int32_t, std::int32_t>, std::pair<std::string, std::string>,
                   std::pair<std::int32_t, FatValue>, std::pair<CollidingKey, std::string>>;
TYPED_TEST_SUITE(MapModelTest, MapTypes);

TYPED_TEST(MapModelTest, BehavesAsAMapAndLeavesSnapshotsAlone) {
  using K = typename TypeParam::first_type;
  using V = typename TypeParam::second_type;
  const std::uint64_t keys = std::is_same_v<K, CollidingKey> ? 200 : 2000;
  std::mt19937_64 random(TestSeed());
  Map<K, V> map;
  std::map<K, V> model;
  std::vector<std::pair<Map<K, V>, std::map<K, V>>> snapshots;
  for (int step = 0; step < 20000; ++step) {
    const K key = ValueOf<K>(random() % keys);
    const V value = ValueOf<V>(random());
    const bool grows = step / 2500 % 2 == 0;
    const std::uint64_t choice = random() % 10;
    if (choice < 2) {
      const bool there = map.Update(key, [&](V& element) { element = value; });
      ASSERT_EQ(there, model.contains(key));
      if (there) model[key] = value;
    } else if (choice < 3) {
      ASSERT_TRUE(map.GetOrAdd(key, [&]() -> const V& { return value; }) ==
                  model.try_emplace(key, value).first->second);
    } else if (choice < (grows ? 8U : 4U)) {
      ASSERT_EQ(map.Put(key, value), model.insert_or_assign(key, value).second);
    } else {
      ASSERT_EQ(map.Erase(key), model.erase(key) == 1);
    }
    ASSERT_EQ(map.Contains(key), model.contains(key));
    if (random() % 500 == 0) {
      snapshots.emplace_back(map, model);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(map, model));
    }
    if (snapshots.size() > 8) snapshots.erase(snapshots.begin());
  }

  ExpectSame(map, model);
  for (const auto& [old_map, old_model] : snapshots) {
    ExpectSame(old_map, old_model);
    ExpectChangesLead(old_map, map, old_model, model);
    ExpectChangesLead(map, old_map, model, old_model);
    EXPECT_EQ(old_map == map, old_model == model);
  }
  Map<K, V> rebuilt;
  for (const auto& [key, value] : model) rebuilt.Put(key, value);
  ExpectSameOrder(map, rebuilt);
}

TYPED_TEST(MapModelTest, ShrinksToNothing) {
  using K = typename TypeParam::first_type;
  using V = typename TypeParam::second_type;
  Map<K, V> map;
  std::map<K, V> model;
  for (std::uint64_t i = 0; i < 300; ++i) {
    map.Put(ValueOf<K>(i), ValueOf<V>(i));
    model.emplace(ValueOf<K>(i), ValueOf<V>(i));
  }
  const Map<K, V> full = map;
  for (std::uint64_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(map.Erase(ValueOf<K>(i)));
    ASSERT_TRUE(ContainerAccess::IsValid(map));
  }

  EXPECT_TRUE(map.IsSameAs(Map<K, V>()));
  ExpectSame(full, model);
}

TEST(MapTest, LoopSeesTheOldContentsWhileItsBodyEditsTheMap) {
  Map<std::int32_t, std::string> map;
  for (std::int32_t i = 0; i < 1000; ++i) map.Put(i, std::to_string(i));
  std::size_t seen = 0;
  for (const auto& [key, value] : map) {
    if (key % 2 == 0) map.Erase(key);
    map.Put(key + 10000, value);
    EXPECT_EQ(value, std::to_string(key));
    ++seen;
  }

  EXPECT_EQ(seen, 1000U);
  EXPECT_EQ(map.size(), 1500U);
}

TEST(MapTest, StringKeysAreFoundByLiteralAndView) {
  Map<std::string, std::int32_t> map = {{"ann", 1}, {"bob", 2}};

  EXPECT_EQ(*map.Find("ann"), 1);
  EXPECT_TRUE(map.Erase(std::string_view("bob")));
  EXPECT_FALSE(map.Contains("bob"));
}

TEST(MapTest, UpdateOrAddStartsFromTheDefault) {
  Map<std::string, std::int32_t> map;
  for (int i = 0; i < 3; ++i) map.UpdateOrAdd("hits", [](std::int32_t& count) { ++count; });
  EXPECT_EQ(map.Get("hits"), 3);
}

TEST(MapTest, HoldsItself) {
  Node node;
  node.children.Put(1, Node{2, {}});
  const Node copy = node;
  node.children.Update(1, [](Node& child) { child.children.Put(5, Node{6, {}}); });

  EXPECT_TRUE(copy.children.Get(1).children.empty());
  EXPECT_EQ(node.children.Get(1).children.Get(5).value, 6);
}

TEST(MapTest, ANanKeyIsFoundAgain) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Map<float, std::int32_t> map;
  for (std::int32_t i = 0; i < 10; ++i) map.Put(nan, i);
  map.Put(0.0F, 1);
  map.Put(-0.0F, 2);

  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(map.Get(nan), 9);
  EXPECT_EQ(map.Get(0.0F), 2);
}

TEST(MapTest, AVectorKeyWithANanIsFoundAgainWhateverTheSignOfItsZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Map<Vector2, std::int32_t> map;
  map.Put({nan, 0.0F}, 1);
  map.Put({nan, -0.0F}, 2);

  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.Get({nan, 0.0F}), 2);
}

TEST(MapTest, WorksWithRangesAndAlgorithms) {
  static_assert(std::forward_iterator<Map<std::int32_t, std::string>::iterator>);
  static_assert(std::ranges::forward_range<const List<std::string>>);
  static_assert(std::ranges::forward_range<const Set<std::string>>);
  const List<std::int32_t> list = {3, 1, 2};
  EXPECT_EQ(*std::ranges::max_element(list), 3);
  EXPECT_EQ(std::ranges::distance(list), 3);
}

TEST(MapTest, ThrowsWhenAnUpdateEditsItsOwnMap) {
  Map<std::int32_t, std::int32_t> map = {{1, 1}};
  EXPECT_THROW(map.Update(1, [&](std::int32_t&) { map.Put(2, 2); }), UsageError);
}

TEST(MapTest, GetThrowsAndNamesTheMissingKey) {
  const auto message = [](const auto& get) -> std::string {
    try {
      get();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const Map<std::int32_t, std::int32_t> numbers = {{1, 1}};
  const Map<std::string, std::int32_t> names;

  EXPECT_EQ(message([&] { (void)numbers.Get(7); }),
            "the map does not have the key 7: use Find to ask for it");
  EXPECT_EQ(message([&] { (void)names.Get("ann"); }),
            "the map does not have the key \"ann\": use Find to ask for it");
  EXPECT_THROW(*names.begin(), UsageError);
}

TEST(MapTest, CopiesAreEditedInManyThreadsAtOnce) {
  Map<std::int32_t, std::string> shared;
  std::map<std::int32_t, std::string> expected;
  for (std::int32_t i = 0; i < 2000; ++i) {
    shared.Put(i, std::to_string(i));
    expected.emplace(i, std::to_string(i));
  }

  std::vector<std::thread> threads;
  for (std::int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([copy = shared, t]() mutable {
      for (std::int32_t round = 0; round < 20; ++round) {
        Map<std::int32_t, std::string> own = copy;
        for (std::int32_t i = t; i < 2000; i += 7) own.Put(i, "t");
        for (std::int32_t i = 0; i < 200; ++i) own.Erase(i * 3 + round);
        if (round % 2 == 0) copy = own;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectSame(shared, expected);
}

TEST(SetTest, BehavesAsASetAndLeavesSnapshotsAlone) {
  std::mt19937_64 random(TestSeed());
  Set<std::string> set;
  std::set<std::string> model;
  std::vector<std::pair<Set<std::string>, std::set<std::string>>> snapshots;
  for (int step = 0; step < 20000; ++step) {
    const std::string value = ValueOf<std::string>(random() % 1000);
    if (random() % 2 == 0) {
      ASSERT_EQ(set.Add(value), model.insert(value).second);
    } else {
      ASSERT_EQ(set.Erase(value), model.erase(value) == 1);
    }
    if (random() % 2000 == 0) snapshots.emplace_back(set, model);
  }

  snapshots.emplace_back(set, model);
  ASSERT_TRUE(ContainerAccess::IsValid(set));
  for (const auto& [old_set, old_model] : snapshots) {
    EXPECT_EQ(std::set<std::string>(old_set.begin(), old_set.end()), old_model);
    std::set<std::string> changed = old_model;
    set.ForEachChangeSince(old_set, [&](const std::string& value, bool added) {
      EXPECT_EQ(added ? changed.insert(value).second : changed.erase(value) == 1, true);
    });
    EXPECT_EQ(changed, model);
    EXPECT_EQ(old_set == set, old_model == model);
  }
}

}  // namespace
}  // namespace zeze
