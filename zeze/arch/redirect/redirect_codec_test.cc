#include "zeze/arch/redirect/redirect_codec.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/testing/hex.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/bean/testing/random_role.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {
namespace {

using zeze::testing::BItem;
using zeze::testing::BRole;
using zeze::testing::BRole_extra_Choices;
using zeze::testing::FromHex;
using zeze::testing::RandomRole;
using Extra = Dynamic<BRole_extra_Choices>;

template <typename... P>
std::string Encode(const P&... parameters) {
  ByteWriter out;
  WriteRedirectParameters(out, std::tuple<P...>(parameters...));
  return out.Release();
}

// An empty text if all is well.
template <typename... P>
std::string Decode(std::string_view bytes, std::tuple<P...>& values) {
  ByteReader in(bytes);
  ReadRedirectParameters(in, values);
  return in.ok() ? "" : in.error_message();
}

template <typename R>
std::string EncodeResult(const R& result) {
  ByteWriter out;
  WriteRedirectResult(out, result);
  return out.Release();
}

struct Two {
  std::int32_t number = 0;
  std::string text = {};

  static constexpr auto RedirectFields() { return std::tuple(&Two::number, &Two::text); }
  bool operator==(const Two&) const = default;
};

// As 1.6.3 writes them (spec of the services, 3.6): one behind the other, without tags and masks.
TEST(RedirectCodec, ParametersAreThoseOfThePeer) {
  EXPECT_EQ(FromHex("01 00"), Encode(true, false));
  EXPECT_EQ(FromHex("05 4064 602b05 ff"),
            Encode(std::int8_t{5}, std::int16_t{100}, std::int32_t{11013}, std::int64_t{-1}));
  EXPECT_EQ(FromHex("0000803f 000000000000f83f"), Encode(1.0F, 1.5));
  EXPECT_EQ(FromHex("03 616263 02 00ff"),
            Encode(std::string("abc"), Binary(std::string("\x00\xff", 2))));
  EXPECT_EQ(FromHex("10 07 20 4064 00"), Encode(BItem{7, 100, ""})) << "with tags";
  EXPECT_EQ(FromHex("03 01 02 03"), Encode(std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(FromHex("02 01 01 61 02 01 62"),
            Encode(std::map<std::int32_t, std::string>{{1, "a"}, {2, "b"}}));
  EXPECT_EQ(FromHex("00 00"), Encode(Extra())) << "the empty bean";
}

TEST(RedirectCodec, ResultsAreThoseOfThePeer) {
  EXPECT_EQ(FromHex("4064"), EncodeResult(std::int64_t{100}));
  EXPECT_EQ("hello", EncodeResult(std::string("hello"))) << "without its length";
  EXPECT_EQ(FromHex("00ff"), EncodeResult(Binary(std::string("\x00\xff", 2))));
  EXPECT_EQ(FromHex("10 07 00"), EncodeResult(BItem{7, 0, ""}));
  EXPECT_EQ(FromHex("05 02 6869"), EncodeResult(Two{5, "hi"})) << "fields in their order";
  EXPECT_EQ("", EncodeResult(RedirectNothing{}));
}

// What can be declared, and what cannot.
static_assert(RedirectValue<bool> && RedirectValue<std::int8_t> && RedirectValue<std::int64_t>);
static_assert(RedirectValue<std::vector<std::vector<BRole>>> && RedirectValue<Extra>);
static_assert(RedirectValue<Map<std::string, List<std::int32_t>>>);
static_assert(!RedirectValue<std::uint32_t>, "the peer has no unsigned numbers");
static_assert(!RedirectValue<int*> && !RedirectValue<std::string_view>);
static_assert(!RedirectValue<std::vector<std::uint64_t>> && !RedirectValue<Two>);
static_assert(RedirectResult<Two> && RedirectResult<BRole> && RedirectResult<std::int32_t>);
static_assert(!RedirectResult<double>, "the peer sends numbers as integers");

using AllKinds =
    std::tuple<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, float, double,
               std::string, Binary, BRole, Extra, std::vector<std::string>, std::set<std::int64_t>,
               std::map<std::int32_t, BItem>, List<BRole>, Set<std::int32_t>,
               Map<std::string, std::vector<std::int32_t>>, SortedMap<std::int64_t, std::string>>;

AllKinds RandomValues(std::mt19937_64& random) {
  RandomRole roles(random());
  const auto number = [&random] { return static_cast<std::int64_t>(random() >> (random() % 64)); };
  const auto text = [&random] { return std::string(random() % 20, static_cast<char>(random())); };
  AllKinds all;
  std::get<0>(all) = random() % 2 == 0;
  std::get<1>(all) = static_cast<std::int8_t>(random());
  std::get<2>(all) = static_cast<std::int16_t>(random());
  std::get<3>(all) = static_cast<std::int32_t>(random());
  std::get<4>(all) = -number();
  std::get<5>(all) = static_cast<float>(number());
  std::get<6>(all) = static_cast<double>(number()) / 3;
  std::get<7>(all) = text();
  std::get<8>(all) = Binary(text());
  std::get<9>(all) = roles.Make(static_cast<int>(random() % 30));
  if (random() % 2 == 0) std::get<10>(all) = roles.Item();
  for (std::uint64_t n = random() % 4; n > 0; --n) {
    std::get<11>(all).push_back(text());
    std::get<12>(all).insert(number());
    std::get<13>(all)[static_cast<std::int32_t>(number())] = roles.Item();
    std::get<14>(all).PushBack(roles.Make(static_cast<int>(random() % 5)));
    std::get<15>(all).Add(static_cast<std::int32_t>(number()));
    std::get<16>(all).Put(text(), {1, 2, static_cast<std::int32_t>(number())});
    std::get<17>(all).Put(number(), text());
  }
  return all;
}

std::string EncodeAll(const AllKinds& values) {
  ByteWriter out;
  WriteRedirectParameters(out, values);
  return out.Release();
}

TEST(RedirectCodec, ValuesOfAllKindsComeBack) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const AllKinds values = RandomValues(random);
    AllKinds decoded;
    ASSERT_EQ("", Decode(EncodeAll(values), decoded));
    EXPECT_TRUE(values == decoded);
  }
}

TEST(RedirectCodec, CutBytesFailAndBytesTooManyFail) {
  std::mt19937_64 random(5);
  const std::string bytes = EncodeAll(RandomValues(random));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    AllKinds decoded;
    EXPECT_NE("", Decode(std::string_view(bytes).substr(0, length), decoded)) << length;
  }
  AllKinds decoded;
  EXPECT_NE("", Decode(bytes + "x", decoded));
}

TEST(RedirectCodec, MutatedBytesDecodeOrFail) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    std::string bytes = EncodeAll(RandomValues(random));
    for (std::uint64_t n = 1 + random() % 5; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    AllKinds decoded;
    if (!Decode(bytes, decoded).empty()) continue;
    AllKinds again;
    EXPECT_EQ("", Decode(EncodeAll(decoded), again)) << seed;
  }
}

TEST(RedirectCodec, ANumberThatItsTypeCannotHoldFails) {
  std::tuple<std::int8_t> small;
  EXPECT_NE("", Decode(Encode(std::int64_t{128}), small));
  EXPECT_EQ("", Decode(Encode(std::int64_t{-128}), small));
  std::tuple<std::int32_t> number;
  EXPECT_NE("", Decode(Encode(std::int64_t{1} << 31), number));
}

TEST(RedirectCodec, ACountBeyondItsBytesFailsBeforeMemoryGrows) {
  std::tuple<std::vector<double>> doubles;
  EXPECT_NE("", Decode(FromHex("f0 7fffffff 00"), doubles));
  std::tuple<std::map<std::string, Extra>> map;
  EXPECT_NE("", Decode(FromHex("f0 7fffffff 00"), map));
}

// Zeze 1.7 puts a mask of nulls before its parameters.
TEST(RedirectCodec, Defect24ParametersOfALaterPeerAreRefusedNotMisread) {
  std::tuple<std::int32_t, std::string> values;
  EXPECT_NE("", Decode(FromHex("00 05 02 6869"), values));
}

TEST(RedirectCodec, BytesBehindAResultFail) {
  const auto read = [](std::string_view bytes, auto result) {
    ByteReader in(bytes);
    ReadRedirectResult(in, result);
    return in.ok();
  };
  EXPECT_TRUE(read(FromHex("05 02 6869"), Two{}));
  EXPECT_FALSE(read(FromHex("05 02 6869 00"), Two{}));
  EXPECT_FALSE(read(FromHex("05 05"), std::int64_t{}));
  EXPECT_FALSE(read("", std::int64_t{}));
  EXPECT_TRUE(read("whatever", RedirectNothing{}));
}

}  // namespace
}  // namespace zeze::arch
