#include "zeze/bean/dynamic.h"

#include <cstdint>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "zeze/base/usage_error.h"
#include "zeze/bean/list.h"

namespace zeze {
namespace {

struct PartChoices;

struct Sword {
  std::int32_t edge = 0;
  bool operator==(const Sword&) const = default;
};

// Holds itself through a variable whose choices are not known yet.
struct Chest {
  List<Dynamic<PartChoices>> parts;
  bool operator==(const Chest& other) const;
};

struct PartChoices {
  using List = TypeList<Choice<Sword, 1>, Choice<Chest, 2>>;
};

bool Chest::operator==(const Chest& other) const {
  return parts == other.parts;
}

using Part = Dynamic<PartChoices>;
static_assert(sizeof(Part) == 8);

TEST(DynamicTest, HoldsOneOfItsChoices) {
  Part part;
  EXPECT_TRUE(part.empty());
  EXPECT_EQ(part.type_id(), 0);
  EXPECT_EQ(part.As<Sword>(), nullptr);

  part.Set(Sword{7});
  EXPECT_EQ(part.type_id(), 1);
  EXPECT_EQ(part.As<Sword>()->edge, 7);
  EXPECT_EQ(part.As<Chest>(), nullptr);
  EXPECT_EQ(part.Get<Sword>().edge, 7);
  EXPECT_THROW((void)part.Get<Chest>(), UsageError);

  part = Chest{};
  EXPECT_TRUE(part.Is<Chest>());
  part.Clear();
  EXPECT_TRUE(part.empty());
  EXPECT_THROW((void)part.Get<Chest>(), UsageError);
}

TEST(DynamicTest, ThrowsWhenAnUpdateAssignsItsOwnVariable) {
  Part part;
  part.Set(Sword{1});
  EXPECT_THROW(part.Update<Sword>([&](Sword&) { part = Chest{}; }), UsageError);
}

TEST(DynamicTest, EditingACopyLeavesTheOriginal) {
  Part part;
  part.Set(Sword{1});
  const Part before = part;
  EXPECT_TRUE(part.Update<Sword>([](Sword& sword) { sword.edge = 2; }));
  EXPECT_FALSE(part.Update<Chest>([](Chest&) {}));

  EXPECT_EQ(before.As<Sword>()->edge, 1);
  EXPECT_EQ(part.As<Sword>()->edge, 2);
  EXPECT_FALSE(before == part);
}

TEST(DynamicTest, ComparesTypeAndValue) {
  Part a;
  Part b;
  EXPECT_TRUE(a == b);
  a.Set(Sword{1});
  EXPECT_FALSE(a == b);
  b.Set(Sword{1});
  EXPECT_TRUE(a == b);
  b.Set(Chest{});
  EXPECT_FALSE(a == b);
}

TEST(DynamicTest, VisitsWhatItHolds) {
  Part part;
  EXPECT_FALSE(part.Visit([](const auto&) {}));
  part.Set(Chest{{part, part}});
  std::size_t parts = 0;
  EXPECT_TRUE(part.Visit([&](const auto& bean) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(bean)>, Chest>) {
      parts = bean.parts.size();
    }
  }));
  EXPECT_EQ(parts, 2U);
}

TEST(DynamicTest, UnknownIdIsRefused) {
  Part part;
  EXPECT_TRUE(part.SetById(1, [](auto&) {}));
  EXPECT_FALSE(part.SetById(9, [](auto&) {}));
  EXPECT_TRUE(part.Is<Sword>());
}

}  // namespace
}  // namespace zeze
