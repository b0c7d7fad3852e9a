#include "zeze/bean/difference.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/bean/internal/list_script.h"
#include "zeze/bean/testing/container_access.h"
#include "zeze/bean/testing/random_role.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/serialize/type_code.h"

namespace zeze {
namespace {

using testing::BDerived;
using testing::BEmpty;
using testing::BItem;
using testing::BRole;
using testing::RandomRole;

std::string TextOf(const BRole& from, const BRole& to) {
  return Difference<BRole>(from, to).ToString();
}

TEST(DifferenceTest, EqualBeansHaveNone) {
  const BRole role = RandomRole(TestSeed()).Make(100);
  const BRole copy = role;  // NOLINT(performance-unnecessary-copy-initialization): compared.
  EXPECT_TRUE(Difference<BRole>(role, copy).empty());
  EXPECT_TRUE(Difference<BRole>(role, role).empty());
  EXPECT_EQ(TextOf(role, copy), "");
}

TEST(DifferenceTest, NamesTheVariablesThatChanged) {
  BRole role;
  const BRole before = role;
  role.level = 11;
  role.name = "ann";
  const Difference<BRole> difference(before, role);

  EXPECT_TRUE(difference.Changed(&BRole::level));
  EXPECT_FALSE(difference.Changed(&BRole::cached));
  const Change* name = difference.Find(&BRole::name);
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(name->field_id, 8);
  EXPECT_EQ(*name->new_value.As<std::string>(), "ann");
  EXPECT_EQ(name->new_value.As<std::int32_t>(), nullptr);
  EXPECT_EQ(difference.ToString(), "level: 10 -> 11\nname: \"\" -> \"ann\"\n");
}

TEST(DifferenceTest, DescendsIntoBeans) {
  BRole role;
  role.children.Put(3, BRole{});
  const BRole before = role;
  role.hand.count = 5;
  role.children.Update(3, [](BRole& child) { child.bag.Put(7, BItem{7, 1, ""}); });

  EXPECT_EQ(TextOf(before, role),
            "hand.count: 0 -> 5\n"
            "children[3].bag[7]: added {\"id\":7,\"count\":1,\"note\":\"\"}\n");
}

TEST(DifferenceTest, TellsWhatHappenedToMapsAndSets) {
  BRole role;
  role.bag = {{1, {1, 1, ""}}, {2, {2, 2, ""}}};
  role.friends = {5};
  const BRole before = role;
  role.bag.Erase(1);
  role.bag.Update(2, [](BItem& item) { item.count = 9; });
  role.bag.Put(3, BItem{});
  role.friends.Add(6);
  role.friends.Erase(5);
  const Difference<BRole> difference(before, role);

  int seen = 0;
  difference.ForEachEntry(&BRole::bag, [&](std::int32_t key, const BItem* was, const BItem* is) {
    ++seen;
    if (key == 1) {
      EXPECT_EQ(is, nullptr);
    } else if (key == 2) {
      EXPECT_EQ(was->count, 2);
      EXPECT_EQ(is->count, 9);
    } else {
      EXPECT_EQ(was, nullptr);
    }
  });
  EXPECT_EQ(seen, 3);
  difference.ForEachElement(
      &BRole::friends, [](std::int64_t element, bool added) { EXPECT_EQ(element, added ? 6 : 5); });
  EXPECT_TRUE(Apply(before, difference) == role);
}

TEST(DifferenceTest, AClearedMapListsWhatWasInIt) {
  BRole role;
  role.bag = {{1, {}}};
  role.scores = {1, 2};
  const BRole before = role;
  role.bag.Clear();
  role.scores.Clear();
  const Difference<BRole> difference(before, role);

  EXPECT_EQ(difference.Find(&BRole::bag)->action, Change::Action::kCleared);
  EXPECT_EQ(difference.Find(&BRole::bag)->children.size(), 1U);
  EXPECT_EQ(difference.Find(&BRole::scores)->action, Change::Action::kCleared);
  EXPECT_TRUE(Apply(before, difference) == role);
}

TEST(DifferenceTest, FindsSingleOperationsOnLists) {
  BRole role;
  for (std::int32_t i = 0; i < 1000; ++i) role.items.PushBack(BItem{i, i, ""});
  const BRole before = role;
  role.items.Insert(500, BItem{-1, 0, ""});
  EXPECT_EQ(TextOf(before, role), "items[500]: added {\"id\":-1,\"count\":0,\"note\":\"\"}\n");

  role = before;
  role.items.Erase(10);
  role.items.Update(700, [](BItem& item) { item.note = "x"; });
  role.items.PushBack(BItem{});
  EXPECT_EQ(TextOf(before, role),
            "items[10]: removed {\"id\":10,\"count\":10,\"note\":\"\"}\n"
            "items[700].note: \"\" -> \"x\"\n"
            "items[999]: added {\"id\":0,\"count\":0,\"note\":\"\"}\n");
}

TEST(DifferenceTest, TellsDynamicsApart) {
  BRole role;
  const BRole empty = role;
  role.extra.Set(BItem{1, 1, ""});
  const BRole item = role;
  role.extra.Update<BItem>([](BItem& bean) { bean.count = 2; });
  const BRole edited = role;
  role.extra.Set(BEmpty{});

  EXPECT_EQ(Difference<BRole>(empty, item).Find(&BRole::extra)->action, Change::Action::kReplaced);
  EXPECT_EQ(TextOf(item, edited), "extra.count: 1 -> 2\n");
  EXPECT_EQ(Difference<BRole>(edited, role).Find(&BRole::extra)->action, Change::Action::kReplaced);
  EXPECT_EQ(TextOf(role, empty), "extra: cleared\n");
}

TEST(DifferenceTest, SeesBaseAndUnknownFields) {
  BDerived derived;
  const BDerived before = derived;
  derived.base.a = 4;
  const Difference<BDerived> difference(before, derived);
  EXPECT_EQ(difference.ToString(), "base.a: 0 -> 4\n");
  EXPECT_TRUE(Apply(before, difference) == derived);

  BRole role;
  BRole unknown = role;
  unknown.unknown_fields.Append(99, TypeCode::kInteger, "\x01");
  EXPECT_EQ(TextOf(role, unknown), "unknown fields: 0 unknown fields -> 1 unknown fields\n");
  EXPECT_TRUE(Apply(role, Difference<BRole>(role, unknown)) == unknown);
}

TEST(DifferenceTest, AppliedToTheOldValueGivesTheNewOne) {
  RandomRole random(TestSeed());
  BRole role = random.Make(100, 2);
  for (int i = 0; i < 2000; ++i) {
    const BRole before = role;
    for (std::uint64_t edits = random.Below(8); edits > 0; --edits) random.Edit(role, 2);
    const Difference<BRole> difference(before, role);
    ASSERT_EQ(difference.empty(), before == role);
    ASSERT_TRUE(Apply(before, difference) == role) << difference.ToString();
    const Difference<BRole> back(role, before);
    ASSERT_TRUE(Apply(role, back) == before) << back.ToString();
  }
}

TEST(DifferenceTest, UnrelatedBeansAreComparedAsWell) {
  RandomRole random(TestSeed());
  for (int i = 0; i < 100; ++i) {
    const BRole a = random.Make(80, 2);
    const BRole b = random.Make(80, 2);
    ASSERT_TRUE(Apply(a, Difference<BRole>(a, b)) == b);
  }
}

TEST(DifferenceTest, VisitorGetsThePath) {
  BRole role;
  const BRole before = role;
  role.bag.Put(7, BItem{});
  std::size_t visited = 0;
  VisitChanges(Difference<BRole>(before, role).root(), [&](std::span<const Change* const> path) {
    ++visited;
    ASSERT_EQ(path.size(), 3U);
    EXPECT_EQ(path[1]->field_name, std::string("bag"));
    EXPECT_EQ(*path[2]->key.As<std::int32_t>(), 7);
  });
  EXPECT_EQ(visited, 1U);
}

std::vector<int> Follow(std::vector<int> list, const std::vector<int>& target,
                        const internal::ListScript& script) {
  for (const internal::ListStep& step : script.steps()) {
    const auto at = list.begin() + static_cast<std::ptrdiff_t>(step.position);
    switch (step.kind) {
      case internal::ListStep::Kind::kModify:
        *at = target[step.new_index];
        break;
      case internal::ListStep::Kind::kInsert:
        list.insert(at, target[step.new_index]);
        break;
      case internal::ListStep::Kind::kRemove:
        list.erase(at);
        break;
    }
  }
  return list;
}

TEST(ListScriptTest, LeadsFromOneListToTheOther) {
  RandomRole random(TestSeed());
  for (int i = 0; i < 3000; ++i) {
    std::vector<int> a(random.Below(30));
    std::vector<int> b(random.Below(30));
    for (int& value : a) value = static_cast<int>(random.Below(6));
    for (int& value : b) value = static_cast<int>(random.Below(6));
    const internal::ListScript script(a.size(), b.size(),
                                      [&](std::size_t x, std::size_t y) { return a[x] == b[y]; });
    ASSERT_EQ(Follow(a, b, script), b);
  }
}

TEST(ListScriptTest, MovedElementCostsTwoSteps) {
  std::vector<int> a;
  for (int i = 0; i < 200; ++i) a.push_back(i);
  std::vector<int> b(a.begin() + 1, a.end());
  b.push_back(0);
  const internal::ListScript script(a.size(), b.size(),
                                    [&](std::size_t x, std::size_t y) { return a[x] == b[y]; });
  EXPECT_EQ(script.steps().size(), 2U);
}

}  // namespace
}  // namespace zeze
