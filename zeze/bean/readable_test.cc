#include "zeze/bean/readable.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "zeze/bean/codec.h"
#include "zeze/bean/testing/random_role.h"
#include "zeze/bean/testing/test_beans.h"

namespace zeze {
namespace {

using testing::BItem;
using testing::BRole;
using testing::RandomRole;

bool IsReadable(const BRole& role) {
  try {
    return DecodeBean<BRole>(EncodeBean(role)).ok();
  } catch (const EncodeError&) {
    return false;
  }
}

BRole Nested(int levels) {
  BRole role;
  for (int i = 1; i < levels; ++i) {
    BRole outer;
    outer.children.Put(1, role);
    role = outer;
  }
  return role;
}

// Edits the role that is `levels` below the outermost.
template <typename Edit>
void EditBelow(BRole& role, int levels, const Edit& edit) {
  if (levels == 0) return edit(role);
  role.children.Update(1, [&](BRole& child) { EditBelow(child, levels - 1, edit); });
}

TEST(Readable, IsNeverSureOfWhatNoReaderAccepts) {
  int sure = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    RandomRole random(seed);
    BRole role = random.Make(20);
    BRole before = role;
    for (int i = 0; i < 300; ++i) {
      random.Edit(role);
      if (random.Below(20) == 0) role.balance.text = "many";
      if (random.Below(20) == 0)
        role.children.Put(1, Nested(120 + static_cast<int>(random.Below(16))));
      if (random.Below(3) == 0) continue;
      const bool readable = IsReadable(role);
      if (Readable<BRole>::Since(role, before)) {
        ++sure;
        ASSERT_TRUE(readable) << seed;
      }
      if (!readable) role = before;
      before = role;
    }
  }
  EXPECT_LT(1000, sure);
}

TEST(Readable, IsSureOfPlainChanges) {
  BRole before = Nested(10);
  before.bag.Put(1, BItem{});
  before.extra.Set(BItem{});
  BRole role = before;
  EXPECT_TRUE(Readable<BRole>::Since(role, before));
  role.money = 7;
  role.name = "eve";
  role.balance.text = "12.50";
  role.hand.count = 3;
  role.scores.PushBack(4);
  role.friends.Add(5);
  role.ranking.Put("first", 1);
  role.bag.Update(1, [](BItem& item) { item.count = 9; });
  role.extra.Update<BItem>([](BItem& item) { item.count = 9; });
  EditBelow(role, 5, [](BRole& child) { child.level = 3; });
  EXPECT_TRUE(Readable<BRole>::Since(role, before));
  role.children.Erase(1);
  role.extra.Clear();
  EXPECT_TRUE(Readable<BRole>::Since(role, before));
}

TEST(Readable, IsNotSureOfDecimalsAndNesting) {
  const BRole before = Nested(10);
  BRole role = before;
  role.balance.text = "many";
  EXPECT_FALSE(Readable<BRole>::Since(role, before));
  role = before;
  EditBelow(role, 5, [](BRole& child) { child.balance.text = ""; });
  EXPECT_FALSE(Readable<BRole>::Since(role, before));
  role = before;
  EditBelow(role, 9, [](BRole& child) { child.children.Put(1, Nested(120)); });
  EXPECT_FALSE(Readable<BRole>::Since(role, before));
}

// A bean that the older value had left out may be one level too many.
TEST(Readable, IsNotSureNearTheLimitOfLevels) {
  const BRole before = Nested(128);
  BRole role = before;
  EditBelow(role, 127, [](BRole& child) { child.hand.count = 1; });
  EXPECT_FALSE(IsReadable(role));
  EXPECT_FALSE(Readable<BRole>::Since(role, before));
}

}  // namespace
}  // namespace zeze
