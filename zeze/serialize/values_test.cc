// Tests of the value types: vectors, Binary, Decimal, Id128.

#include <limits>
#include <unordered_set>

#include <gtest/gtest.h>

#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/vector.h"

namespace zeze {
namespace {

TEST(Vectors, CompareComponentByComponent) {
  EXPECT_EQ((Vector3{1, 2, 3}), (Vector3{1, 2, 3}));
  EXPECT_LT((Vector2Int{1, 2}), (Vector2Int{1, 3}));
  EXPECT_LT((Vector2{-1, 9}), (Vector2{0, 0}));
  EXPECT_NE((Quaternion{0, 0, 0, 1}), Quaternion());
}

TEST(Vectors, HashEqualValuesAlike) {
  const std::hash<Vector3> hash;
  EXPECT_EQ((Vector3{0.0F, 1, 2}), (Vector3{-0.0F, 1, 2}));
  EXPECT_EQ(hash({0.0F, 1, 2}), hash({-0.0F, 1, 2}));
  EXPECT_NE(hash({0, 1, 2}), hash({0, 2, 1}));
}

TEST(Vectors, HashNeighboursApart) {
  std::unordered_set<std::size_t> hashes;
  for (int x = -50; x < 50; ++x) {
    for (int y = -50; y < 50; ++y) hashes.insert(std::hash<Vector2Int>()({x, y}));
  }
  EXPECT_EQ(hashes.size(), 10000U);
}

TEST(Binary, OrdersUnsignedBytes) {
  EXPECT_LT(Binary{"\x7f"}, Binary{"\x80"});
  EXPECT_LT(Binary{"a"}, (Binary{std::string("a\0", 2)}));
  EXPECT_EQ(std::hash<Binary>()({"ab"}), std::hash<Binary>()({"ab"}));
}

TEST(Decimal, AcceptsWhatJavaPrints) {
  for (const char* text :
       {"0", "-1", "+1", "12.50", ".5", "5.", "1E+3", "1e-10", "0E-2147483647"}) {
    EXPECT_TRUE(Decimal::IsValid(text)) << text;
  }
}

TEST(Decimal, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", ".", "1.2.3", "1,5", "0x10", "NaN", " 1", "1 ", "1E", "1E+",
                           "E5", "1e12345678901", "--1", "1.e"}) {
    EXPECT_FALSE(Decimal::IsValid(text)) << text;
  }
}

TEST(Decimal, SaysWhatIsWrong) {
  Result<Decimal> parsed = Decimal::Parse("1,5");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(parsed.error().message(), "\"1,5\" is no decimal number; write it like -12.50 or 1E+3");
  EXPECT_EQ(Decimal::Parse("1.50").value(), (Decimal{"1.50"}));
  EXPECT_EQ(Decimal().text, "0");
}

TEST(Id128, OrdersAsOneNumber) {
  EXPECT_LT((Id128{0, ~std::uint64_t{0}}), (Id128{1, 0}));
  EXPECT_LT((Id128{1, 0}), (Id128{std::uint64_t{1} << 63, 0}));
  EXPECT_NE(std::hash<Id128>()({1, 2}), std::hash<Id128>()({2, 1}));
}

TEST(Id128, SurvivesEncoding) {
  for (const Id128 id : {Id128{}, Id128{1, 2}, Id128{~std::uint64_t{0}, std::uint64_t{1} << 63}}) {
    ByteWriter out;
    id.Encode(out);
    ByteReader in(out.view());
    Id128 read{5, 5};
    read.Decode(in);
    EXPECT_EQ(read, id);
    EXPECT_EQ(in.remaining(), 0U);
  }
}

TEST(Id128, RefusesWhatIsNotTwoIntegers) {
  for (const std::string_view bytes :
       {std::string_view("\x14\x10\x01\x00", 4), std::string_view("\x14\x30\x01\x02\x03\x00", 6),
        std::string_view("\x10\x05\x00", 3), std::string_view("\x14\x23\x00\x00\x00", 5)}) {
    ByteReader in(bytes);
    Id128 id;
    id.Decode(in);
    EXPECT_FALSE(in.ok());
  }
}

}  // namespace
}  // namespace zeze
