#include "zeze/bean/codec.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "zeze/bean/any_bean.h"
#include "zeze/bean/schema.h"
#include "zeze/bean/testing/container_access.h"
#include "zeze/bean/testing/random_role.h"
#include "zeze/bean/testing/test_beans.h"

namespace zeze {
namespace {

using testing::BDerived;
using testing::BEmpty;
using testing::BItem;
using testing::BKey;
using testing::BRole;
using testing::BRole_extra_Choices;
using testing::One;
using testing::RandomRole;

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

std::string Bytes(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// The value encodes to these bytes, and they decode to it.
template <typename B>
void ExpectBytes(const B& bean, std::string_view hex) {
  EXPECT_EQ(Hex(EncodeBean(bean)), hex) << bean.ToString();
  Result<B> decoded = DecodeBean<B>(Bytes(hex));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  EXPECT_TRUE(decoded.value() == bean) << decoded.value().ToString() << " for " << bean.ToString();
}

template <typename T>
void ExpectOne(const T& value, std::string_view hex) {
  ExpectBytes(One<T>{value}, hex);
}

template <typename K>
void ExpectKey(const K& key, std::string_view hex) {
  EXPECT_EQ(Hex(EncodeKey(key)), hex);
  Result<K> decoded = DecodeKey<K>(Bytes(hex));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  EXPECT_TRUE(decoded.value() == key);
}

template <typename B>
std::string DecodeFailure(std::string_view hex) {
  Result<B> decoded = DecodeBean<B>(Bytes(hex));
  return decoded.ok() ? "no failure: " + decoded.value().ToString() : decoded.error().message();
}

template <typename T>
T DecodeOne(std::string_view hex) {
  Result<One<T>> decoded = DecodeBean<One<T>>(Bytes(hex));
  if (!decoded.ok()) ADD_FAILURE() << decoded.error().message();
  return decoded.ok() ? decoded.value().value : T{};
}

// Bytes in this file without a comment beside them were printed by the Java implementation.

TEST(CodecTest, WritesScalars) {
  ExpectBytes(BEmpty{}, "00");
  ExpectOne<std::int32_t>(1, "100100");
  ExpectOne<std::int32_t>(0, "00");
  ExpectOne(true, "100100");
  ExpectOne(false, "00");
  ExpectOne<std::int8_t>(-1, "10ff00");
  ExpectOne<std::int16_t>(-32768, "109f800000");
  ExpectOne(std::numeric_limits<std::int64_t>::min(), "1080000000000000000000");
  ExpectOne(1.5F, "110000c03f00");
  ExpectOne(std::numeric_limits<float>::quiet_NaN(), "110000c07f00");
  ExpectOne(0.1, "129a9999999999b93f00");
  ExpectOne<std::string>("abc", "130361626300");
  ExpectOne<std::string>("\xe4\xb8\xad", "1303e4b8ad00");
  ExpectOne(Binary{"\x01\x02"}, "1302010200");
  ExpectOne(Decimal{"12.50"}, "130531322e353000");
  ExpectOne(Decimal{"0"}, "13013000");
  EXPECT_EQ(Hex(EncodeBean(One<float>{-0.0F})), "00");
}

TEST(CodecTest, WritesVectors) {
  ExpectOne(Vector2{1, 2}, "180000803f0000004000");  // Ours.
  ExpectOne(Vector3Int{1, 2, 3}, "1b01020300");      // Ours.
  ExpectOne(Vector3{}, "00");
  EXPECT_EQ(Hex(EncodeBean(One<Vector3>{{0, -0.0F, 0}})), "00");
  ExpectOne<List<Vector2>>({{0, 0}, {1, 2}}, "142800000000000000000000803f0000004000");
  ExpectOne<List<Vector3Int>>({{1, 2, 3}}, "141b01020300");
}

TEST(CodecTest, WritesCollections) {
  ExpectOne<List<std::int32_t>>({1, -1, 64}, "143001ff404000");
  ExpectOne<List<std::int32_t>>({}, "00");
  ExpectOne<List<std::int32_t>>({0, 0}, "1420000000");
  ExpectOne<List<bool>>({true, false}, "1420010000");
  ExpectOne<List<std::int32_t>>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14},
                                "14f000000102030405060708090a0b0c0d0e00");
  ExpectOne<List<std::string>>({"a", "", "bc"}, "143301610002626300");
  ExpectOne<List<float>>({0, 1}, "1421000000000000803f00");
  ExpectOne<List<double>>({1}, "1412000000000000f03f00");
  ExpectOne<List<Binary>>({Binary{std::string(1, '\0')}}, "1413010000");
  ExpectOne<List<BItem>>({{5, 0, ""}, {}}, "14261005000000");
  ExpectOne<Set<std::int64_t>>({10000000000}, "14107a540be40000");
  ExpectOne<SortedMap<std::int32_t, std::string>>({{1, "a"}, {2, "bb"}},
                                                  "15030201016102026262"
                                                  "00");  // Ours.
  ExpectOne<Map<std::string, std::int64_t>>({{"k", 0}}, "153001016b0000");
  ExpectOne<Map<std::int64_t, BKey>>({{7, {1, "x"}}}, "1506010710011301780000");
  ExpectOne<Map<float, Vector3>>({{0.5F, {1, 2, 3}}}, "151a010000003f0000803f000000400000404000");
  ExpectOne<Map<std::int32_t, GTableRow<std::string, std::int64_t>>>({{1, {{{"a", 2}}}}},
                                                                     "150601011530010161020000");
}

TEST(CodecTest, WritesNestedBeansAndLeavesOutEmptyOnes) {
  ExpectOne(One<BItem>{{0, 7, ""}},
            "1616300700"
            "00"
            "00");  // Ours.
  ExpectOne(One<One<BEmpty>>{}, "00");
  ExpectOne(BKey{9, ""}, "1610090000");  // Ours.
}

TEST(CodecTest, WritesDynamics) {
  using Extra = Dynamic<BRole_extra_Choices>;
  Extra item;
  item.Set(BItem{5, 0, ""});
  Extra empty_item;
  empty_item.Set(BItem{});
  Extra negative_id;
  negative_id.Set(BEmpty{});

  ExpectOne(item, "170110050000");
  ExpectOne(empty_item, "17010000");
  ExpectOne(negative_id, "17f90000");  // Ours.
  ExpectOne(Extra{}, "00");
  ExpectOne<List<Extra>>({item, Extra{}}, "142701100500000000");
  ExpectOne<Map<BKey, Extra>>({{BKey{9, ""}, empty_item}}, "156701100900010000");
}

TEST(CodecTest, WritesTheBaseBehindTheFields) {
  BDerived derived;
  derived.c = 5;
  derived.base = {6, "p"};
  ExpectBytes(derived, "100501100623017000");
  ExpectOne(BDerived{}, "16010000");  // Ours: never left out.
  // A reader without the base drops it; one with a base does without it.
  EXPECT_TRUE(DecodeBean<One<std::int32_t>>(Bytes("100501100623017000")).value().value == 5);
  EXPECT_TRUE(DecodeBean<BDerived>(Bytes("100500")).value().c == 5);
}

TEST(CodecTest, GapsOfIdsFollowTheFieldsThatAreWritten) {
  ExpectBytes(BItem{1, 3, ""}, "1001200300");       // Ours.
  ExpectBytes(BItem{0, 0, "x"}, "f302017800");      // Ours: delta 17.
  ExpectBytes(BItem{1, 0, "x"}, "1001f301017800");  // Ours: delta 16.
}

TEST(CodecTest, WritesKeys) {
  ExpectKey<std::string>("abc", "03616263");
  ExpectKey<std::string>("", "00");
  ExpectKey<std::int32_t>(-1, "ff");
  ExpectKey<std::int32_t>(100000, "6186a0");
  ExpectKey<std::int64_t>(1099511627776, "7d0000000000");
  ExpectKey(std::numeric_limits<std::int64_t>::max(), "7fffffffffffffffff");
  ExpectKey(BKey{}, "00");
  ExpectKey(BKey{5, "m"}, "100513016d00");  // Ours.
  ExpectKey(Id128{1, ~std::uint64_t{0}}, "142001ff00");
  ExpectKey(Id128{}, "1420000000");
  ExpectKey(true, "01");
  ExpectKey<std::int8_t>(-3, "fd");
  ExpectKey<std::int16_t>(300, "412c");
  ExpectKey(1.5F, "0000c03f");
  ExpectKey(1.5, "000000000000f83f");
  ExpectKey(Binary{std::string("\0\xff", 2)}, "0200ff");
  EXPECT_FALSE(DecodeKey<std::int32_t>(Bytes("0101")).ok());
  EXPECT_FALSE(DecodeKey<std::string>(Bytes("0561")).ok());
}

struct KeepsUnknown {
  static constexpr std::string_view kFullName = "test.KeepsUnknown";
  std::int64_t value = 0;
  std::int32_t second = 0;
  UnknownFields unknown_fields;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "value"}, &KeepsUnknown::value);
    visit(Field{5, "second"}, &KeepsUnknown::second);
  }
  ZEZE_TEST_BEAN_MEMBERS(KeepsUnknown)
};

TEST(CodecTest, KeepsUnknownFieldsInOrderOfIds) {
  const std::string bytes = Bytes("1005100623036e657724200102e10000c03f00");
  KeepsUnknown bean = DecodeBean<KeepsUnknown>(bytes).value();
  EXPECT_EQ(bean.value, 5);
  EXPECT_EQ(bean.unknown_fields.count(), 4U);
  EXPECT_EQ(Hex(EncodeBean(bean)), Hex(bytes));

  bean.second = 9;
  bean.value = 0;
  // Ours: 2:int 4:bytes, then 5, then 6:list and 20:float.
  EXPECT_EQ(Hex(EncodeBean(bean)), "200623036e6577100914200102e10000c03f00");
  KeepsUnknown again = DecodeBean<KeepsUnknown>(EncodeBean(bean)).value();
  EXPECT_TRUE(again == bean);
  again.unknown_fields.Clear();
  EXPECT_FALSE(again == bean);
}

TEST(CodecTest, DropsUnknownFieldsOfBeansThatDoNotAskForThem) {
  EXPECT_EQ(DecodeOne<std::int64_t>("1005100623036e657724200102e10000c03f00"), 5);
}

TEST(CodecTest, ConvertsBetweenCompatibleTypes) {
  EXPECT_EQ(DecodeOne<std::int32_t>("110000c03f00"), 1);
  EXPECT_EQ(DecodeOne<double>("10ff00"), -1.0);
  EXPECT_EQ(DecodeOne<bool>("110000003f00"), true);
  EXPECT_EQ(DecodeOne<std::int8_t>("10412c00"), 44);
  EXPECT_EQ(DecodeOne<Binary>("1302616200").bytes, "ab");
  EXPECT_TRUE(DecodeOne<Vector2>("100500") == (Vector2{5, 0}));
  // Lists and maps element by element: floats become ints, strings binaries.
  EXPECT_TRUE(DecodeOne<List<std::int32_t>>("1421000000000000803f00") ==
              (List<std::int32_t>{0, 1}));
  EXPECT_TRUE(DecodeOne<Set<std::int64_t>>("1420010100") == (Set<std::int64_t>{1}));
  EXPECT_TRUE((DecodeOne<Map<double, Binary>>("150301010161"
                                              "00") == Map<double, Binary>{{1.0, Binary{"a"}}}));
  // A bean from a dynamic, whatever its id; a dynamic from a bean is empty.
  EXPECT_EQ(DecodeOne<BItem>("17412c10050000").id, 5);
  EXPECT_TRUE(DecodeOne<Dynamic<BRole_extra_Choices>>("1610050000").empty());
}

TEST(CodecTest, RepeatedKeysOverwriteAndRepeatedElementsAreDropped) {
  EXPECT_TRUE((DecodeOne<Map<std::int32_t, std::int32_t>>("15000201020103"
                                                          "00") ==
               Map<std::int32_t, std::int32_t>{{1, 3}}));
  EXPECT_EQ(DecodeOne<Set<std::int32_t>>("143001010100").size(), 1U);
}

TEST(CodecTest, RefusesWhatDoesNotFit) {
  EXPECT_NE(DecodeFailure<One<std::string>>("100500").find("test.One"), std::string::npos);
  EXPECT_NE(DecodeFailure<One<List<std::int32_t>>>("100500").find("list"), std::string::npos);
  EXPECT_NE(DecodeFailure<One<BItem>>("100500").find("bean"), std::string::npos);
  EXPECT_NE((DecodeFailure<One<Map<std::int32_t, std::int32_t>>>("100500").find("map")),
            std::string::npos);
  EXPECT_NE(DecodeFailure<One<List<std::int32_t>>>("1413016100").find("BYTES"), std::string::npos);
  EXPECT_NE(DecodeFailure<One<Dynamic<BRole_extra_Choices>>>("17090000").find("type id 9"),
            std::string::npos);
  EXPECT_NE(DecodeFailure<One<Decimal>>("1301"
                                        "61"
                                        "00")
                .find("number"),
            std::string::npos);
  EXPECT_NE(DecodeFailure<One<std::int32_t>>("10050000").find("behind its end"), std::string::npos);
  EXPECT_NE(DecodeFailure<One<std::int32_t>>("1005"), "");
}

TEST(CodecTest, RefusesBeansThatAreNestedTooDeep) {
  // children (id 27): one entry, key 1, which holds children again, and so on.
  std::string hex;
  for (int i = 0; i < 1000; ++i) hex += "f50c060101";
  EXPECT_NE(DecodeFailure<BRole>(hex).find("deep"), std::string::npos);
}

TEST(CodecTest, AnAbsentFieldWithADefaultBecomesZero) {
  BRole role;
  EXPECT_EQ(role.level, 10);
  role = DecodeBean<BRole>(Bytes("00")).value();
  EXPECT_EQ(role.level, 0);
}

TEST(CodecTest, TransientFieldsAreNeitherWrittenNorRead) {
  BRole role;
  role.level = 0;
  const std::string bytes = EncodeBean(role);
  role.cached = 7;
  EXPECT_EQ(Hex(EncodeBean(role)), Hex(bytes));
}

TEST(CodecTest, RandomBeansComeBackAsTheyWere) {
  RandomRole random(TestSeed());
  for (int i = 0; i < 300; ++i) {
    const BRole role = random.Make(60, 2);
    const std::string bytes = EncodeBean(role);
    Result<BRole> decoded = DecodeBean<BRole>(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message();
    ASSERT_TRUE(decoded.value() == role) << decoded.value().ToString() << "\n" << role.ToString();
    // Equal contents are encoded alike, whatever edits made them.
    ASSERT_EQ(Hex(EncodeBean(decoded.value())), Hex(bytes));
  }
}

TEST(CodecTest, EveryTruncationFails) {
  RandomRole random(TestSeed());
  const std::string bytes = EncodeBean(random.Make(80, 2));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(DecodeBean<BRole>(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
}

TEST(CodecTest, MutatedBytesDecodeOrFail) {
  const std::uint64_t seed = TestSeed();
  RandomRole random(seed);
  std::mt19937_64 noise(seed);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kBeans = 300;
#else
  constexpr int kBeans = 10'000;
#endif
  int decoded = 0;
  for (int i = 0; i < kBeans; ++i) {
    const std::string bytes = EncodeBean(random.Make(12, 1));
    for (int j = 0; j < 100; ++j) {
      std::string mutated = bytes;
      for (std::uint64_t n = 1 + noise() % 4; n > 0; --n) {
        mutated[noise() % mutated.size()] = static_cast<char>(noise());
      }
      Result<BRole> role = DecodeBean<BRole>(mutated);
      if (!role.ok()) continue;
      ++decoded;
      // What was understood survives another round.
      const std::string again = EncodeBean(role.value());
      ASSERT_TRUE(DecodeBean<BRole>(again).value() == role.value());
    }
  }
  EXPECT_GT(decoded, 0);
}

TEST(FormatTest, WritesJson) {
  BItem item{1, -2, "a\"b\n\x01"};
  EXPECT_EQ(item.ToString(), "{\"id\":1,\"count\":-2,\"note\":\"a\\\"b\\n\\u0001\"}");
  One<Map<BKey, Dynamic<BRole_extra_Choices>>> bean;
  Dynamic<BRole_extra_Choices> extra;
  bean.value.Put(BKey{1, "x"}, extra);
  EXPECT_EQ(bean.ToString(), "{\"value\":{\"{\\\"id\\\":1,\\\"name\\\":\\\"x\\\"}\":null}}");
  extra.Set(BEmpty{});
  EXPECT_EQ(FormatValue(extra), "{\"type\":\"test.BEmpty\",\"value\":{}}");
  EXPECT_EQ(FormatValue(List<Vector2Int>{{1, 2}, {3, 4}}), "[[1,2],[3,4]]");
  EXPECT_EQ(FormatValue(Map<std::int32_t, List<double>>{{7, {0.5, -1}}}), "{\"7\":[0.5,-1]}");
  EXPECT_EQ(FormatValue(Binary{"\x01\xff"}), "\"01ff\"");
  EXPECT_EQ(FormatValue(std::numeric_limits<double>::infinity()), "\"Infinity\"");
  EXPECT_EQ(FormatValue(Id128{1, 2}), "\"00000000000000010000000000000002\"");
  BDerived derived;
  EXPECT_EQ(derived.ToString(), "{\"c\":0,\"base\":{\"a\":0,\"b\":\"\"}}");
}

TEST(CompareTest, FindsNegativeNumbersWhereverTheyAre) {
  BRole role;
  EXPECT_FALSE(role.HasNegative());
  role.money = -1;  // Allowed there.
  role.rank = -1;   // A byte does not count.
  role.speed = -1;  // Nor does a float.
  EXPECT_FALSE(role.HasNegative());
  role.balance.text = "-0.00";
  EXPECT_FALSE(role.HasNegative());

  BRole decimal = role;
  decimal.balance.text = "-0.01";
  EXPECT_TRUE(decimal.HasNegative());
  BRole element = role;
  element.scores.PushBack(-1);
  EXPECT_TRUE(element.HasNegative());
  BRole nested = role;
  nested.bag.Put(1, BItem{1, -1, ""});
  EXPECT_TRUE(nested.HasNegative());
  BRole dynamic = role;
  Dynamic<BRole_extra_Choices> slot;
  slot.Set(BItem{-1, 0, ""});
  dynamic.slots.PushBack(slot);
  EXPECT_TRUE(dynamic.HasNegative());
  EXPECT_TRUE((BDerived{.base = {-1, ""}, .c = 0}.HasNegative()));
}

TEST(CompareTest, KeysAreOrderedFieldByField) {
  EXPECT_TRUE((BKey{1, "b"} < BKey{2, "a"}));
  EXPECT_TRUE((BKey{1, "a"} < BKey{1, "b"}));
  EXPECT_FALSE((BKey{1, "a"} < BKey{1, "a"}));
  EXPECT_EQ(std::hash<BKey>{}(BKey{1, "a"}), std::hash<BKey>{}(BKey{1, "a"}));
  EXPECT_NE(std::hash<BKey>{}(BKey{1, "a"}), std::hash<BKey>{}(BKey{2, "a"}));
}

TEST(CompareTest, ANanEqualsItself) {
  One<double> bean{std::numeric_limits<double>::quiet_NaN()};
  EXPECT_TRUE(bean == One<double>(bean));
}

// What can be written can be read: each limit of decoding is one of encoding.

constexpr int kRoleLevelsMax = kBeanDepthMax - 1;  // The innermost one has beans, too.

BRole Nested(int levels) {
  BRole role;
  for (int i = 1; i < levels; ++i) {
    BRole outer;
    outer.children.Put(1, role);
    role = outer;
  }
  return role;
}

TEST(CodecLimitsTest, ABeanNestedTooDeepIsNotWritten) {
  const BRole deepest = Nested(kRoleLevelsMax);
  Result<BRole> read = DecodeBean<BRole>(EncodeBean(deepest));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_TRUE(read.value() == deepest);
  try {
    EncodeBean(Nested(kRoleLevelsMax + 1));
    FAIL() << "it was written";
  } catch (const EncodeError& error) {
    EXPECT_STREQ(error.what(),
                 "beans are nested deeper than 128 and could not be read again: keep the inner "
                 "ones in records of their own, or in a list with indexes");
  }
  EXPECT_THROW(EncodeBean(Nested(1000)), EncodeError);
}

TEST(CodecLimitsTest, AProgramWithoutTheVariableReadsWhatIsNestedInIt) {
  // It skips the variable, whose maps are levels of their own.
  const Result<BEmpty> read = DecodeBean<BEmpty>(EncodeBean(Nested(kRoleLevelsMax)));
  EXPECT_TRUE(read.ok()) << read.error().message();
}

TEST(CodecLimitsTest, ADynamicCountsWithTheBeansAroundIt) {
  BRole role = Nested(kRoleLevelsMax - 1);
  for (int i = 0; i < 3; ++i) {
    BRole outer;
    outer.extra.Set(role);
    role = outer;
  }
  EXPECT_THROW(EncodeBean(role), EncodeError);
  EXPECT_NO_THROW(AnyBean::Of(Nested(AnyBean::kDepthMax - 1)));
  EXPECT_THROW(AnyBean::Of(Nested(AnyBean::kDepthMax)), EncodeError);

  const AnyBean any = AnyBean::Of(Nested(AnyBean::kDepthMax - 1));
  EXPECT_TRUE(DecodeBean<testing::One<AnyBean>>(EncodeBean(testing::One<AnyBean>{any})).ok());
}

TEST(CodecLimitsTest, ADecimalThatIsNotANumberIsNotWritten) {
  EXPECT_THROW(EncodeBean(testing::One<Decimal>{{.text = "12,50"}}), EncodeError);
  EXPECT_THROW(EncodeBean(testing::One<List<Decimal>>{{Decimal{""}}}), EncodeError);
  EXPECT_TRUE(DecodeBean<testing::One<Decimal>>(EncodeBean(testing::One<Decimal>{{"1E5"}})).ok());
}

TEST(CodecLimitsTest, OnlyTablesWhoseValuesCanBeUnreadableAreLookedAt) {
  const auto can = []<typename V>(std::type_identity<V>) {
    return CanBeUnreadable(DescribeTable<std::int64_t, V>({.name = "t"}));
  };
  EXPECT_TRUE(can(std::type_identity<BRole>{}));  // It holds itself.
  EXPECT_FALSE(can(std::type_identity<testing::BItem>{}));
  EXPECT_FALSE(can(std::type_identity<testing::One<List<testing::BItem>>>{}));
  EXPECT_FALSE(can(std::type_identity<testing::One<AnyBean>>{}));
  EXPECT_TRUE(can(std::type_identity<testing::One<Map<std::int32_t, Decimal>>>{}));
  EXPECT_TRUE(can(std::type_identity<testing::One<List<testing::One<Decimal>>>>{}));
}

}  // namespace
}  // namespace zeze
