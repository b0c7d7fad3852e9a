#include "zeze/serialize/byte_writer.h"

#include <cmath>
#include <limits>
#include <span>

#include <gtest/gtest.h>

namespace zeze {
namespace {

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(byte) >> 4]);
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(byte) & 15]);
  }
  return hex;
}

std::string HexOfLong(std::int64_t value) {
  ByteWriter out;
  out.WriteLong(value);
  return Hex(out.view());
}

std::string HexOfUlong(std::uint64_t value) {
  ByteWriter out;
  out.WriteUlong(value);
  return Hex(out.view());
}

TEST(ByteWriter, WritesTheBeanOfItsExample) {
  ByteWriter out;
  int last_id = 0;
  out.WriteTag(last_id, 1, TypeCode::kInteger);
  out.WriteLong(42);
  out.WriteTag(last_id, 3, TypeCode::kBytes);
  out.WriteBytes("sword");
  out.WriteEnd();

  EXPECT_EQ(Hex(out.view()),
            "102a2305"
            "73776f7264"
            "00");
}

TEST(ByteWriter, TakesTheShortestFormOfSignedNumbers) {
  // The last of each length, and the first of the next.
  for (unsigned bytes = 1; bytes <= 8; ++bytes) {
    const std::int64_t limit = std::int64_t{1} << (7 * bytes - 1);
    EXPECT_EQ(HexOfLong(limit - 1).size(), 2 * bytes);
    EXPECT_EQ(HexOfLong(-limit).size(), 2 * bytes);
    EXPECT_EQ(HexOfLong(limit).size(), 2 * bytes + 2);
    EXPECT_EQ(HexOfLong(-limit - 1).size(), 2 * bytes + 2);
  }
  EXPECT_EQ(HexOfLong(std::numeric_limits<std::int64_t>::max()), "7fffffffffffffffff");
  EXPECT_EQ(HexOfLong(std::numeric_limits<std::int64_t>::min()), "800000000000000000");
}

TEST(ByteWriter, TakesTheShortestFormOfUnsignedNumbers) {
  for (unsigned bytes = 1; bytes <= 8; ++bytes) {
    const std::uint64_t limit = std::uint64_t{1} << (7 * bytes);
    EXPECT_EQ(HexOfUlong(limit - 1).size(), 2 * bytes);
    EXPECT_EQ(HexOfUlong(limit).size(), 2 * bytes + 2);
  }
  EXPECT_EQ(HexOfUlong(~std::uint64_t{0}), "ffffffffffffffffff");
}

TEST(ByteWriter, OrdersNonNegativeNumbersByTheirBytes) {
  // Databases sort keys by their bytes.
  std::string previous;
  for (std::int64_t value = 1; value > 0; value = value < (std::int64_t{1} << 61) ? value * 3 : 0) {
    ByteWriter out;
    out.WriteLong(value);
    EXPECT_LT(previous, std::string(out.view())) << value;
    previous = out.Release();
  }
}

TEST(ByteWriter, GrowsPastItsInlineRoom) {
  ByteWriter out;
  std::string expected;
  for (int i = 0; i < 10000; ++i) {
    out.WriteByte(static_cast<std::uint8_t>(i));
    expected.push_back(static_cast<char>(i));
  }
  out.WriteRaw(std::string(100000, 'x'));
  expected.append(100000, 'x');

  EXPECT_EQ(out.view(), expected);
}

TEST(ByteWriter, CanBeUsedAgainAfterRelease) {
  ByteWriter out;
  out.WriteRaw(std::string(1000, 'x'));
  const std::string released = out.Release();

  EXPECT_EQ(released, std::string(1000, 'x'));
  EXPECT_EQ(out.size(), 0U);
  out.WriteBytes("ab");
  EXPECT_EQ(Hex(out.view()), "026162");
}

TEST(ByteWriter, KeepsItsMemoryWhenCleared) {
  ByteWriter out;
  out.WriteRaw(std::string(1000, 'x'));
  const char* data = out.data();
  out.Clear();
  out.WriteRaw(std::string(1000, 'y'));

  EXPECT_EQ(out.data(), data);
  EXPECT_EQ(out.view(), std::string(1000, 'y'));
}

TEST(ByteWriter, ForgetsWhatIsTruncated) {
  ByteWriter out;
  out.WriteBytes("keep");
  const std::size_t mark = out.size();
  out.WriteBytes(std::string(500, 'x'));
  out.Truncate(mark);

  EXPECT_EQ(Hex(out.view()), "046b656570");
}

TEST(ByteWriter, FillsInTheSizeOfABlock) {
  ByteWriter out;
  out.WriteByte(9);
  const std::size_t outer = out.BeginSize4();
  const std::size_t inner = out.BeginSize4();
  out.WriteRaw(std::string(300, 'x'));
  out.EndSize4(inner);
  out.EndSize4(outer);

  EXPECT_EQ(Hex(out.view().substr(0, 9)), "09300100002c010000");
}

TEST(ByteWriter, LetsAHeaderBeWrittenBehindWhatFollowsIt) {
  ByteWriter out;
  out.WriteRaw("before");
  const std::size_t begin = out.size();
  out.Extend(2);
  const std::string body(1000, 'b');  // More than the inline room: what was there moves.
  out.WriteRaw(body);

  const std::span<char> tail = out.Tail(begin);
  ASSERT_EQ(tail.size(), 2 + body.size());
  tail[0] = 'h';
  tail[1] = ':';

  EXPECT_EQ(out.view(), "beforeh:" + body);
  EXPECT_TRUE(out.Tail(out.size()).empty());
}

TEST(ByteWriter, KeepsTheSignOfZeroAndThePayloadOfNaN) {
  ByteWriter out;
  out.WriteFloat(-0.0F);
  out.WriteDouble(std::bit_cast<double>(std::uint64_t{0xFFF8000000000123}));

  EXPECT_EQ(Hex(out.view()),
            "00000080"
            "230100000000f8ff");
}

TEST(ByteWriterDeath, RefusesFieldsOutOfOrder) {
  ByteWriter out;
  int last_id = 5;
  EXPECT_DEATH(out.WriteTag(last_id, 5, TypeCode::kInteger), "id > last_id");
  EXPECT_DEATH(out.WriteTag(last_id, 4096, TypeCode::kInteger), "kFieldIdMax");
}

TEST(ByteWriter, RefusesMoreThanAnyPeerReads) {
  ByteWriter out;
  EXPECT_THROW(out.Reserve(kEncodedBytesMax + 1), EncodeError);
  EXPECT_THROW(out.WriteListHeader(kEncodedBytesMax + 1, TypeCode::kBean), EncodeError);
  EXPECT_THROW(out.WriteMapHeader(kEncodedBytesMax + 1, TypeCode::kBean, TypeCode::kBean),
               EncodeError);
}

// As deep as readers go (ByteReader, ReadsBeansNestedToTheLimit), and not one level deeper.
void WriteNested(ByteWriter& out, int levels) {
  const ByteWriter::BeanScope scope(out);
  if (levels > 1) WriteNested(out, levels - 1);
  out.WriteEnd();
}

TEST(ByteWriter, RefusesBeansNestedDeeperThanReadersAccept) {
  ByteWriter out;
  WriteNested(out, kBeanDepthMax);
  EXPECT_EQ(out.deepest(), kBeanDepthMax);
  EXPECT_THROW(WriteNested(out, kBeanDepthMax + 1), EncodeError);
  out.Clear();
  WriteNested(out, kBeanDepthMax);  // Usable again.
  EXPECT_EQ(out.size(), static_cast<std::size_t>(kBeanDepthMax));
}

}  // namespace
}  // namespace zeze
