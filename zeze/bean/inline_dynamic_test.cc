#include "zeze/bean/inline_dynamic.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>

#include "zeze/bean/codec.h"
#include "zeze/bean/difference.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/schema.h"

namespace zeze {
namespace {

struct Coin {
  static constexpr std::string_view kFullName = "test.Coin";
  std::int64_t value = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "value"}, &Coin::value);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const Coin& other) const = default;
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }
};

struct Letter {
  static constexpr std::string_view kFullName = "test.Letter";
  std::string text = {};

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "text"}, &Letter::text);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const Letter& other) const = default;
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }
};

struct CoinChoice {
  using List = TypeList<Choice<Coin, 1>>;
};
struct BothChoices {
  using List = TypeList<Choice<Coin, 1>, Choice<Letter, 2>>;
};

static_assert(std::is_trivially_copyable_v<InlineDynamic<CoinChoice>>);
static_assert(sizeof(InlineDynamic<CoinChoice>) == 16);

// A bean with a variable that may hold either; the same bytes for both kinds of dynamic.
template <typename D>
struct Holder {
  static constexpr std::string_view kFullName = "test.Holder";
  D one = {};
  List<D> many = {};

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "one"}, &Holder::one);
    visit(Field{2, "many"}, &Holder::many);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const Holder& other) const { return EqualFields(*this, other); }
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }
};

using Shared = Holder<Dynamic<BothChoices>>;
using Inside = Holder<InlineDynamic<BothChoices>>;

template <typename H>
H Filled() {
  H holder;
  holder.one.Set(Letter{"x"});
  decltype(holder.one) element;
  holder.many.PushBack(element);
  element.Set(Coin{-7});
  holder.many.PushBack(element);
  return holder;
}

TEST(InlineDynamicTest, HoldsOneOfItsChoices) {
  InlineDynamic<BothChoices> held;
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(held.type_id(), 0);
  EXPECT_EQ(held.As<Coin>(), nullptr);
  EXPECT_FALSE(held.Visit([](const auto&) {}));

  held = Coin{7};
  EXPECT_EQ(held.type_id(), 1);
  EXPECT_EQ(held.As<Coin>()->value, 7);
  EXPECT_TRUE(held.Update<Coin>([](Coin& coin) { coin.value = 8; }));
  EXPECT_FALSE(held.Update<Letter>([](Letter&) {}));
  EXPECT_EQ(held, InlineDynamic<BothChoices>(Coin{8}));
  EXPECT_NE(held, InlineDynamic<BothChoices>(Letter{}));
  held.Clear();
  EXPECT_TRUE(held.empty());
}

TEST(InlineDynamicTest, IsStoredAndShownLikeADynamic) {
  const auto inside = Filled<Inside>();
  const auto shared = Filled<Shared>();
  EXPECT_EQ(EncodeBean(inside), EncodeBean(shared));
  EXPECT_EQ(DecodeBean<Inside>(EncodeBean(shared)).value(), inside);
  EXPECT_EQ(inside.ToString(), shared.ToString());
  EXPECT_TRUE(inside.HasNegative());
  EXPECT_EQ(DescribeBean<Inside>(), DescribeBean<Shared>());
}

TEST(InlineDynamicTest, RefusesATypeThatIsNoChoice) {
  EXPECT_FALSE(DecodeBean<Inside>(std::string("\x17\x09\x00\x00", 4)).ok());
}

TEST(InlineDynamicTest, DifferencesAreTold) {
  const auto before = Filled<Inside>();
  Inside after = before;
  after.one = Coin{1};
  const Difference<Inside> difference(before, after);
  EXPECT_TRUE(difference.Changed(&Inside::one));
  EXPECT_FALSE(difference.Changed(&Inside::many));
}

}  // namespace
}  // namespace zeze
