// The list of a group against a plain vector, and that copies are values.

#include "zeze/components/rank/internal/ranked_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace zeze::internal {
namespace {

// A value that is no plain bytes; only the number is its rank.
struct Named {
  std::int64_t number = 0;
  std::string name = {};
  bool operator==(const Named&) const = default;
};

template <typename V>
struct EntryOf {
  std::int64_t role = 0;
  V value = {};
  bool operator==(const EntryOf&) const = default;
};

std::int64_t RankOf(std::int64_t value) {
  return value;
}
std::int64_t RankOf(const Named& value) {
  return value.number;
}
void Make(std::int64_t& value, std::int64_t number, std::uint64_t /*seed*/) {
  value = number;
}
void Make(Named& value, std::int64_t number, std::uint64_t seed) {
  value = {number, std::string(seed % 40, 'x')};
}

template <typename V>
class RankedListTest : public ::testing::Test {};
using Values = ::testing::Types<std::int64_t, Named>;
TYPED_TEST_SUITE(RankedListTest, Values);

TYPED_TEST(RankedListTest, IsWhatAVectorWouldBe) {
  using Entry = EntryOf<TypeParam>;
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto better = [](const TypeParam& a, const TypeParam& b) { return RankOf(a) > RankOf(b); };

  for (int round = 0; round < 40; ++round) {
    const std::uint64_t roles = 1 + random() % 300;
    const std::uint64_t numbers = 1 + random() % 200;
    RankedList<Entry> list;
    std::vector<Entry> model;
    std::vector<std::pair<RankedList<Entry>, std::vector<Entry>>> kept;
    for (int i = 0; i < 1500; ++i) {
      const auto role = static_cast<std::int64_t>(random() % roles);
      const auto old = std::find_if(model.begin(), model.end(),
                                    [role](const Entry& entry) { return entry.role == role; });
      const auto place = list.Find(role);
      ASSERT_EQ(static_cast<bool>(place), old != model.end());
      Entry entry{.role = role};
      Make(entry.value, static_cast<std::int64_t>(random() % numbers), random());
      const std::uint64_t what = random() % 10;
      if (place && what == 0) {
        Make(entry.value, RankOf(old->value), random());
        list.Replace(place, entry.value);
        *old = entry;
      } else if (!list.empty() && what == 1) {
        ASSERT_EQ(list.Last(), model.back());
        list.PopLast();
        model.pop_back();
      } else {
        if (place) {
          ASSERT_EQ(list.At(place), *old);
          list.Erase(place);
          model.erase(old);
        }
        if (what != 2) {
          list.Insert(entry, better);
          model.insert(
              std::find_if(model.begin(), model.end(),
                           [&](const Entry& other) { return better(entry.value, other.value); }),
              entry);
        }
      }
      ASSERT_EQ(list.size(), model.size());
      ASSERT_EQ(list.ToVector(), model);
      if (random() % 100 == 0) kept.emplace_back(list, model);
      if (random() % 200 == 0) list = RankedList<Entry>(list.ToVector());
    }
    for (const auto& [copy, contents] : kept) ASSERT_EQ(copy.ToVector(), contents);
  }
}

}  // namespace
}  // namespace zeze::internal
