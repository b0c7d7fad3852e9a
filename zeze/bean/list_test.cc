#include "zeze/bean/list.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/usage_error.h"
#include "zeze/bean/testing/container_access.h"

namespace zeze {
namespace {

static_assert(sizeof(List<std::string>) == 8);

struct Tree {
  std::int32_t value = 0;
  List<Tree> children;
};

template <typename T>
class ListModelTest : public testing::Test {};
using ElementTypes = testing::Types<std::int32_t, std::string, FatValue>;
TYPED_TEST_SUITE(ListModelTest, ElementTypes);

template <typename T>
void ExpectSame(const List<T>& list, const std::vector<T>& model) {
  ASSERT_EQ(list.size(), model.size());
  ASSERT_TRUE(ContainerAccess::IsValid(list));
  std::size_t i = 0;
  for (const T& value : list) ASSERT_TRUE(value == model[i++]);
  ASSERT_EQ(i, model.size());
  if (i > 0) {
    ASSERT_TRUE(list[i / 2] == model[i / 2]);
  }
}

TYPED_TEST(ListModelTest, BehavesAsAVectorAndLeavesSnapshotsAlone) {
  using T = TypeParam;
  std::mt19937_64 random(TestSeed());
  List<T> list;
  std::vector<T> model;
  std::vector<std::pair<List<T>, std::vector<T>>> snapshots;
  for (int step = 0; step < 20000; ++step) {
    const T value = ValueOf<T>(random());
    // Long stretches of growth and of shrinking, so that nodes split and merge.
    const bool grows = step / 2500 % 2 == 0;
    const std::uint64_t choice = random() % 10;
    const std::size_t at = model.empty() ? 0 : random() % model.size();
    if (choice < 2 && !model.empty()) {
      list.Set(at, value);
      model[at] = value;
    } else if (choice < 3 && !model.empty()) {
      ASSERT_TRUE(list.Update(at, [&](T& element) { element = value; }));
      model[at] = value;
    } else if (choice < 5) {
      list.PushBack(value);
      model.push_back(value);
    } else if (choice < (grows ? 9U : 6U)) {
      list.Insert(at, value);
      model.insert(model.begin() + static_cast<std::ptrdiff_t>(at), value);
    } else if (!model.empty()) {
      list.Erase(at);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (random() % 500 == 0) {
      snapshots.emplace_back(list, model);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(list, model));
    }
    if (snapshots.size() > 8) snapshots.erase(snapshots.begin());
  }

  ExpectSame(list, model);
  for (const auto& [old_list, old_model] : snapshots) ExpectSame(old_list, old_model);
}

TYPED_TEST(ListModelTest, GrowsByAppendingAndShrinksToNothing) {
  using T = TypeParam;
  List<T> list;
  std::vector<T> model;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    list.PushBack(ValueOf<T>(i));
    model.push_back(ValueOf<T>(i));
  }
  ExpectSame(list, model);

  const List<T> full = list;
  while (!list.empty()) list.Erase(list.size() / 2);
  ExpectSame(full, model);
  ExpectSame(list, {});
}

TEST(ListTest, EmptyListIsANullPointerAndEqualToAClearedOne) {
  List<std::string> list = {"a", "b"};
  list.Clear();

  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list, List<std::string>());
  EXPECT_TRUE(list.IsSameAs(List<std::string>()));
}

TEST(ListTest, EditingACopyLeavesTheOriginal) {
  const List<std::string> original = {"a", "b", "c"};
  List<std::string> copy = original;
  copy.Set(1, "B");
  copy.Erase(0);
  copy.PushBack("d");

  EXPECT_TRUE(original == (List<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(copy == (List<std::string>{"B", "c", "d"}));
}

TEST(ListTest, LoopSeesTheOldContentsWhileItsBodyEditsTheList) {
  List<std::string> list = {"a", "b", "c"};
  std::string seen;
  for (const std::string& value : list) {
    list.Clear();
    list.PushBack(value + value);
    list.Insert(0, "x");
    seen += value;
  }

  EXPECT_EQ(seen, "abc");
  EXPECT_TRUE(list == (List<std::string>{"x", "cc"}));
}

TEST(ListTest, AnElementOfTheListMayBeAddedToIt) {
  List<std::string> list = {"a long text that does not fit into a small string"};
  for (int i = 0; i < 100; ++i) list.Insert(0, list[list.size() / 2]);

  for (const std::string& value : list) EXPECT_EQ(value, list[0]);
}

TEST(ListTest, UpdateOfAMissingIndexDoesNothing) {
  List<std::int32_t> list = {1};
  EXPECT_FALSE(list.Update(1, [](std::int32_t& value) { value = 9; }));
  EXPECT_TRUE(list == (List<std::int32_t>{1}));
  EXPECT_EQ(list.Find(1), nullptr);
}

TEST(ListTest, UpdateOfASharedBoxLeavesTheOriginal) {
  List<FatValue> list = {{"a", {1}}, {"b", {2}}};
  const List<FatValue> before = list;
  list.Update(0, [](FatValue& value) { value.numbers[0] = 7; });

  EXPECT_EQ(before[0].numbers[0], 1);
  EXPECT_EQ(list[0].numbers[0], 7);
  EXPECT_EQ(&before[1], &list[1]);  // The element beside it is still shared.
}

TEST(ListTest, HoldsItself) {
  Tree tree{1, {Tree{2, {}}, Tree{3, {Tree{4, {}}}}}};
  const Tree copy = tree;
  tree.children.Update(1, [](Tree& child) { child.children.Clear(); });

  EXPECT_EQ(copy.children[1].children[0].value, 4);
  EXPECT_TRUE(tree.children[1].children.empty());
}

TEST(ListTest, ThrowsOnAnIndexOutOfRange) {
  List<std::int32_t> list = {1};
  try {
    list[1];
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ("index 1 of a list with 1 elements", error.what());
  }
  EXPECT_THROW(list.Set(1, 0), UsageError);
  EXPECT_THROW(list.Insert(2, 0), UsageError);
  EXPECT_THROW(list.Erase(1), UsageError);
  EXPECT_THROW(*list.end(), UsageError);
  EXPECT_THROW(++list.end(), UsageError);
  list.PopBack();
  EXPECT_THROW(list.front(), UsageError);
  EXPECT_THROW(list.back(), UsageError);
  EXPECT_THROW(list.PopBack(), UsageError);
  EXPECT_TRUE(list.empty());
}

TEST(ListTest, ThrowsWhenAnUpdateEditsItsOwnList) {
  List<std::int32_t> list = {1, 2};
  EXPECT_THROW(list.Update(0, [&](std::int32_t&) { list.PushBack(3); }), UsageError);
}

TEST(ListTest, CopiesAreEditedInManyThreadsAtOnce) {
  List<std::string> shared;
  for (std::uint64_t i = 0; i < 2000; ++i) shared.PushBack(ValueOf<std::string>(i));
  std::vector<std::string> expected(shared.begin(), shared.end());

  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([copy = shared, t]() mutable {
      for (std::size_t round = 0; round < 20; ++round) {
        List<std::string> own = copy;
        for (std::size_t i = t; i < own.size(); i += 7) own.Set(i, "t" + std::to_string(t));
        for (std::size_t i = 0; i < 50; ++i) own.Erase(i * 3);
        if (round % 2 == 0) copy = own;
        while (copy.size() < 2000) copy.PushBack("p");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectSame(shared, expected);
}

TEST(ListTest, FindsThePlaceInASortedList) {
  EXPECT_EQ(List<int>().PartitionPoint([](int) { return true; }), 0U);
  List<int> list;
  for (int i = 0; i < 3000; ++i) list.PushBack(i);
  for (int border = 0; border <= 3000; ++border) {
    ASSERT_EQ(list.PartitionPoint([border](int i) { return i < border; }),
              static_cast<std::size_t>(border));
  }
}

}  // namespace
}  // namespace zeze
