// Tests of dynamic variables that hold beans of any type.

#include "zeze/bean/any_bean.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "zeze/bean/difference.h"
#include "zeze/bean/difference_inl.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/list.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

using testing::BKey;
using testing::One;

using Text = One<std::string>;

struct TextChoices {
  using List = TypeList<Choice<Text, Text::kTypeId>>;
};

using Holder = One<AnyBean>;
using Typed = One<Dynamic<TextChoices>>;

template <typename Bean>
std::string Encoded(const Bean& bean) {
  ByteWriter out;
  bean.Encode(out);
  return out.Release();
}

template <typename Bean>
Bean Decoded(std::string_view bytes) {
  ByteReader in(bytes);
  Bean bean;
  bean.Decode(in);
  EXPECT_TRUE(in.ok()) << in.error_message();
  EXPECT_EQ(in.remaining(), 0u);
  return bean;
}

TEST(AnyBean, GivesBackWhatItHolds) {
  AnyBean any;
  EXPECT_TRUE(any.empty());
  EXPECT_FALSE(any.As<Text>().has_value());
  any.Set(Text{.value = "hello"});
  EXPECT_TRUE(any.Is<Text>());
  EXPECT_EQ(any.As<Text>()->value, "hello");
  EXPECT_FALSE(any.As<BKey>().has_value()) << "another type";
  const AnyBean copy = any;
  any.Clear();
  EXPECT_EQ(copy.As<Text>()->value, "hello");
  EXPECT_EQ(copy, AnyBean::Of(Text{.value = "hello"}));
  EXPECT_NE(copy, any);
}

TEST(AnyBean, IsStoredLikeADynamicThatNamesItsBeans) {
  Typed typed;
  typed.value.Set(Text{.value = "hello"});
  const Holder holder = Decoded<Holder>(Encoded(typed));
  EXPECT_EQ(holder.value.As<Text>()->value, "hello");
  EXPECT_EQ(Encoded(holder), Encoded(typed));
  EXPECT_EQ(Decoded<Typed>(Encoded(holder)).value.As<Text>()->value, "hello");
}

TEST(AnyBean, HandsOnWhatThisProgramDoesNotKnow) {
  ByteWriter out;
  int last_id = 0;
  out.WriteTag(last_id, 1, TypeCode::kDynamic);
  out.WriteLong(123456789);
  int inner = 0;
  out.WriteTag(inner, 5, TypeCode::kBytes);
  out.WriteBytes("of a newer server");
  out.WriteEnd();
  out.WriteEnd();
  const Holder holder = Decoded<Holder>(out.view());
  EXPECT_EQ(holder.value.type_id(), 123456789);
  EXPECT_EQ(Encoded(holder), out.view());
}

TEST(AnyBean, IsLeftOutWhenEmptyAndEmptyWhenLeftOut) {
  EXPECT_EQ(Encoded(Holder()), std::string_view("\0", 1));
  EXPECT_TRUE(Decoded<Holder>(std::string_view("\0", 1)).value.empty());
  // In a list nothing can be left out.
  One<List<AnyBean>> several;
  several.value.PushBack(AnyBean());
  several.value.PushBack(AnyBean::Of(Text{.value = "x"}));
  const auto back = Decoded<One<List<AnyBean>>>(Encoded(several));
  ASSERT_EQ(back.value.size(), 2u);
  EXPECT_TRUE(back.value[0].empty());
  EXPECT_TRUE(back.value[1].Is<Text>());
}

TEST(AnyBean, BytesThatAreNoSuchBeanAreNotTaken) {
  AnyBean any;
  any.SetEncoded(Text::kTypeId, "\x13\x7f");
  EXPECT_FALSE(any.As<Text>().has_value());
}

TEST(AnyBean, ChangesAsAWhole) {
  const Holder before{.value = AnyBean::Of(Text{.value = "a"})};
  const Holder after{.value = AnyBean::Of(Text{.value = "b"})};
  const Difference<Holder> difference(before, after);
  EXPECT_FALSE(difference.empty());
  EXPECT_EQ(Apply(before, difference), after);
  EXPECT_TRUE(Difference<Holder>(before, Holder(before)).empty());
  EXPECT_EQ(before.ToString(), R"({"value":{"type":1,"value":"13016100"}})");
}

}  // namespace
}  // namespace zeze
