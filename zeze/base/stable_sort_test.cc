#include "zeze/base/stable_sort.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace zeze {
namespace {

using Pair = std::pair<int, int>;

bool FirstIsLess(const Pair& left, const Pair& right) {
  return left.first < right.first;
}

TEST(StableSort, KeepsTheOrderOfEqualElements) {
  std::vector<Pair> values;
  for (int i = 0; i < 1000; ++i) values.emplace_back((i * 7919) % 13, i);
  StableSort(values, FirstIsLess);
  // The second numbers rise, so the order of whole pairs is that of a stable sort.
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  EXPECT_EQ(values.size(), 1000U);
}

TEST(StableSort, MovesWhatCannotBeCopied) {
  std::vector<std::unique_ptr<int>> values;
  for (const int value : {3, 1, 2}) values.push_back(std::make_unique<int>(value));
  StableSort(values, [](const auto& left, const auto& right) { return *left < *right; });
  EXPECT_EQ(*values[0], 1);
  EXPECT_EQ(*values[1], 2);
  EXPECT_EQ(*values[2], 3);
}

TEST(StableSort, TakesNothingToo) {
  std::vector<std::string> values;
  StableSort(values, std::less<>());
  EXPECT_TRUE(values.empty());
}

}  // namespace
}  // namespace zeze
