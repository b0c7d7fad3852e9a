// The vectors of the framework's own beans and of table keys again, this time through beans and
// keys as applications use them.

#include <gtest/gtest.h>

#include "tests/compatibility/core_vectors.h"
#include "tests/compatibility/framework_beans.h"

namespace zeze::compatibility {
namespace {

template <typename B>
void ExpectBean(std::string_view name, const B& bean) {
  SCOPED_TRACE(name);
  const Vector& vector = CoreVectors::Load().Named(name);
  EXPECT_EQ(ToHex(EncodeBean(bean)), vector.hex);
  Result<B> decoded = DecodeBean<B>(vector.bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  EXPECT_EQ(decoded.value(), bean);
}

template <typename K>
void ExpectKey(std::string_view name, const K& key) {
  SCOPED_TRACE(name);
  const Vector& vector = CoreVectors::Load().Named(name);
  EXPECT_EQ(ToHex(EncodeKey(key)), vector.hex);
  Result<K> decoded = DecodeKey<K>(vector.bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  EXPECT_EQ(decoded.value(), key);
}

TEST(TypedVectors, BeansOfTheFramework) {
  BRocksValue value{.number = 12,
                    .flag = true,
                    .single = 12.34F,
                    .text = "test",
                    .binary = {"\x01\x02"},
                    .key = {.i = 456, .s = "\u5b57\u7b26\u4e32"}};
  value.numbers.Add(34);
  value.keys.Add({.i = 56, .s = "abc"});
  value.pairs.Put(78, 90);
  value.beans.Put(123, {.i = 1});
  ExpectBean("bean/gen/TestRocks.BValue", value);
  ExpectBean("bean/gen/TestRocks.BValue-default", BRocksValue());

  BTimer timer{.name = "t1", .handle = "H", .concurrent = 7};
  timer.timer.Set(BSimpleTimer{
      .period = 1000, .remain_times = -1, .start_time = 1700000000000, .one_by_one_key = "k"});
  ExpectBean("bean/gen/Timer.BTimer", timer);

  ExpectBean("bean/gen/Rank.BRankList-empty", BRankList());

  BBind bind;
  bind.modules.Put(100, {.choice_type = 6, .dynamic = true});
  bind.link_sids.Add(5);
  ExpectBean("bean/gen/Provider.BBind.Data", bind);
}

TEST(TypedVectors, AnOlderServerHandsOnFieldsItDoesNotKnow) {
  const Vector& vector = CoreVectors::Load().Named("bean/unknown-preserved");
  Result<BOld> old = DecodeBean<BOld>(vector.bytes());
  ASSERT_TRUE(old.ok()) << old.error().message();
  EXPECT_EQ(old.value().known, 5);
  EXPECT_EQ(ToHex(EncodeBean(old.value())), vector.hex);

  // Also when what it knows has changed.
  old.value().known = 0;
  EXPECT_EQ(ToHex(EncodeBean(old.value())), "2006" + vector.hex.substr(8));
}

TEST(TypedVectors, Keys) {
  ExpectKey("key/string/tLinkedMaps", std::string("abc"));
  ExpectKey("key/string/empty", std::string());
  ExpectKey("key/int/0", std::int32_t{0});
  ExpectKey("key/int/-1", std::int32_t{-1});
  ExpectKey("key/int/64", std::int32_t{64});
  ExpectKey("key/long/1099511627776", std::int64_t{1099511627776});
  ExpectKey("key/bool/true", true);
  ExpectKey("key/byte/-3", std::int8_t{-3});
  ExpectKey("key/short/300", std::int16_t{300});
  ExpectKey("key/float/1.5", 1.5F);
  ExpectKey("key/double/1.5", 1.5);
  ExpectKey("key/binary/00ff", Binary{std::string("\x00\xff", 2)});
  ExpectKey("key/Id128", Id128{.high = 1, .low = ~std::uint64_t{0}});
  ExpectKey("key/Id128-zero", Id128());
  ExpectKey("key/beankey/BLinkedMapNodeKey", BNodeKey{.name = "m", .node_id = 5});
  ExpectKey("key/beankey/BLinkedMapNodeKey-zero", BNodeKey());
  ExpectKey("key/beankey/BConcurrentKey",
            BConcurrentKey{.rank_type = 1, .time_type = 2, .year = 2024, .offset = -3});
}

}  // namespace
}  // namespace zeze::compatibility
