#include "zeze/serialize/byte_reader.h"

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

using ::testing::HasSubstr;
using std::string_literals::operator""s;

// What `read` makes of the bytes, and whether it used all of them.
template <typename Read>
auto ReadAll(std::string_view bytes, Read read) {
  ByteReader in(bytes);
  auto value = read(in);
  EXPECT_TRUE(in.ok()) << in.error_message();
  EXPECT_EQ(in.remaining(), 0U);
  return value;
}

template <typename Read>
std::string ErrorOf(std::string_view bytes, Read read) {
  ByteReader in(bytes);
  read(in);
  EXPECT_FALSE(in.ok());
  return in.error_message();
}

std::string Written(const std::function<void(ByteWriter&)>& write) {
  ByteWriter out;
  write(out);
  return out.Release();
}

TEST(ByteReader, ReadsEveryNumberItsWriterWrites) {
  constexpr std::uint32_t kSeed = 20261115;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    // Every length is as likely as any other.
    const std::uint64_t value = random() >> (random() % 64);
    const auto number = static_cast<std::int64_t>(random() % 2 == 0 ? value : ~value);
    const std::string bytes = Written([&](ByteWriter& out) {
      out.WriteLong(number);
      out.WriteUlong(value);
      out.WriteUint(static_cast<std::uint32_t>(value));
    });
    // Alone in its bytes, and with others behind it: the two are read in different ways.
    ByteReader alone(std::string_view(bytes).substr(
        0, Written([&](ByteWriter& out) { out.WriteLong(number); }).size()));
    ASSERT_EQ(alone.ReadLong(), number);
    ASSERT_EQ(alone.remaining(), 0U);
    ByteReader in(bytes);
    ASSERT_EQ(in.ReadLong(), number);
    ASSERT_EQ(in.ReadUlong(), value);
    ASSERT_EQ(in.ReadUint(), static_cast<std::uint32_t>(value));
    ASSERT_EQ(in.remaining(), 0U);
  }
}

TEST(ByteReader, AcceptsOverlongNumbers) {
  const auto read_long = [](ByteReader& in) { return in.ReadLong(); };
  EXPECT_EQ(ReadAll("\x40\x05", read_long), 5);
  EXPECT_EQ(ReadAll("\xbf\xff", read_long), -1);
  EXPECT_EQ(ReadAll("\x7f\x00\x00\x00\x00\x00\x00\x05"s, read_long), 5);
  EXPECT_EQ(ReadAll("\x7f\x80\x00\x00\x00\x00\x00\x00\x05"s, read_long), 5);
  EXPECT_EQ(ReadAll("\x80\x7f\xff\xff\xff\xff\xff\xff\xff", read_long), -1);
  EXPECT_EQ(
      ReadAll("\xfe\x00\x00\x00\x00\x00\x00\x07"s, [](ByteReader& in) { return in.ReadUlong(); }),
      7U);
}

TEST(ByteReader, NamesWhatIsMissingAndWhere) {
  EXPECT_EQ(ErrorOf("\x01\x02\x03",
                    [](ByteReader& in) {
                      in.ReadByte();
                      in.ReadInt4();
                    }),
            "4 bytes are needed, 2 are left at offset 1 of 3");
}

TEST(ByteReader, KeepsItsFirstErrorAndReturnsNothingFromThenOn) {
  ByteReader in(
      "\x05"
      "ab"
      "\x07");
  EXPECT_EQ(in.ReadBytes(), "");
  in.Fail("a later one");

  EXPECT_FALSE(in.ok());
  EXPECT_THAT(in.error_message(), HasSubstr("5 bytes are needed, 3 are left"));
  EXPECT_EQ(in.position(), 1U);
  EXPECT_EQ(in.remaining(), 0U);
  int last_id = 0;
  EXPECT_TRUE(in.ReadTag(last_id).end);
  TypeCode type{};
  EXPECT_EQ(in.ReadListHeader(type), 0U);
  EXPECT_EQ(in.ReadLong() + in.ReadByte() + in.ReadInt4(), 0);
  EXPECT_EQ(in.ReadBytes(), "");
  EXPECT_EQ(in.ReadDouble(), 0);
  EXPECT_EQ(in.ReadRaw(0), "");
  EXPECT_EQ(in.Since(0), "");
}

TEST(ByteReader, TurnsItsErrorIntoOneThatCallersReturn) {
  ByteReader in("");
  in.ReadByte();
  const Error error = in.ToError("reading a role");

  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error.message(), "reading a role: 1 bytes are needed, 0 are left at offset 0 of 0");
}

TEST(ByteReader, RefusesBytesThatAreNoTag) {
  const auto read_tag = [](ByteReader& in) {
    int last_id = 0;
    EXPECT_TRUE(in.ReadTag(last_id).end);
  };
  for (char byte = 2; byte < 0x10; ++byte) {
    EXPECT_THAT(ErrorOf(std::string(1, byte), read_tag), HasSubstr("is no tag"));
  }
  for (const char* tag : {"\x1d", "\x2e", "\xef"}) {
    EXPECT_THAT(ErrorOf(tag, read_tag), HasSubstr("is no type code"));
  }
}

TEST(ByteReader, RefusesFieldIdsThatNoSchemaHas) {
  // 4095 is the last one, in one step or in several.
  int last_id = 0;
  ByteReader last("\xf0\x8f\xf0");
  EXPECT_EQ(last.ReadTag(last_id).id, kFieldIdMax);

  last_id = 0;
  ByteReader next("\xf0\x8f\xf1");
  EXPECT_TRUE(next.ReadTag(last_id).end);
  EXPECT_THAT(next.error_message(), HasSubstr("field id 4096 is above 4095"));

  last_id = kFieldIdMax;
  ByteReader after("\x10");
  EXPECT_TRUE(after.ReadTag(last_id).end);
  EXPECT_FALSE(after.ok());

  last_id = 0;
  ByteReader wrapping("\xf0\xf0\xff\xff\xff\xff");
  EXPECT_TRUE(wrapping.ReadTag(last_id).end);
  EXPECT_FALSE(wrapping.ok());
}

TEST(ByteReader, RestartsIdsAtTheFieldsOfABase) {
  const std::string bytes = "\x30\x05\x01\x20\x06\x00"s;
  ByteReader in(bytes);
  int last_id = 0;
  EXPECT_EQ(in.ReadTag(last_id).id, 3);
  EXPECT_EQ(in.ReadLong(), 5);
  EXPECT_TRUE(in.ReadTag(last_id).base);
  EXPECT_EQ(last_id, 0);
  EXPECT_EQ(in.ReadTag(last_id).id, 2);
  EXPECT_EQ(in.ReadLong(), 6);
  EXPECT_TRUE(in.ReadTag(last_id).end);
  EXPECT_TRUE(in.ok());
}

TEST(ByteReader, BelievesNoCountThatTheBytesCannotHold) {
  const auto list = [](ByteReader& in) {
    TypeCode type{};
    EXPECT_EQ(in.ReadListHeader(type), 0U);
  };
  // 2 billion integers in 3 bytes; 4 doubles in 31 bytes.
  EXPECT_THAT(ErrorOf("\xf0\xf0\x7f\xff\xff\xff"
                      "abc",
                      list),
              HasSubstr("are claimed"));
  EXPECT_THAT(ErrorOf("\x42" + std::string(31, 'x'), list), HasSubstr("4 elements of at least 8"));
  const auto map = [](ByteReader& in) {
    TypeCode key{};
    TypeCode value{};
    EXPECT_EQ(in.ReadMapHeader(key, value), 0U);
  };
  EXPECT_THAT(ErrorOf("\x30\xf0\xff\xff\xff\xff"
                      "abc",
                      map),
              HasSubstr("are claimed"));
  EXPECT_THAT(ErrorOf("\x3c\x02" + std::string(33, 'x'), map), HasSubstr("2 elements"));
  const auto count = [](ByteReader& in) { in.ReadCount(3); };
  EXPECT_THAT(ErrorOf("\x02"
                      "abcde",
                      count),
              HasSubstr("2 elements of at least 3 bytes"));
}

TEST(ByteReader, RefusesCountsAndLengthsThatAreNegativeInJava) {
  const auto bytes = [](ByteReader& in) { in.ReadBytes(); };
  EXPECT_THAT(ErrorOf("\xf0\xff\xff\xff\xff", bytes), HasSubstr("4294967295 bytes are needed"));
  const auto block = [](ByteReader& in) { in.ReadSize4(); };
  EXPECT_THAT(ErrorOf("\xff\xff\xff\xff"
                      "a",
                      block),
              HasSubstr("bytes are needed"));
}

TEST(ByteReader, RefusesUnassignedTypesInHeaders) {
  const auto list = [](ByteReader& in) {
    TypeCode type{};
    in.ReadListHeader(type);
    EXPECT_EQ(type, TypeCode::kInteger);
  };
  EXPECT_THAT(ErrorOf("\x0d", list), HasSubstr("13 is no type code"));
  const auto map = [](ByteReader& in) {
    TypeCode key{};
    TypeCode value{};
    in.ReadMapHeader(key, value);
  };
  EXPECT_THAT(ErrorOf("\xe0\x00"s, map), HasSubstr("14 is no type code"));
  EXPECT_THAT(ErrorOf("\x0f\x00"s, map), HasSubstr("15 is no type code"));
}

TEST(ByteReader, SkipsValuesOfEveryType) {
  const std::pair<TypeCode, std::string> values[] = {
      {TypeCode::kInteger, "\x7f\x80\x00\x00\x00\x00\x00\x00\x05"s},
      {TypeCode::kFloat, "abcd"},
      {TypeCode::kDouble, "abcdefgh"},
      {TypeCode::kBytes,
       "\x03"
       "abc"},
      {TypeCode::kList,
       "\x23\x01"
       "a"
       "\x00"s},
      {TypeCode::kMap,
       "\x36\x01\x01"
       "k"
       "\x10\x05\x00"s},
      {TypeCode::kBean, "\x10\x05\x01\x10\x06\x00"s},
      {TypeCode::kDynamic, "\x41\x2c\x10\x05\x00"s},
      {TypeCode::kVector2, "abcdefgh"},
      {TypeCode::kVector2Int, "\x01\x40\x80"},
      {TypeCode::kVector3, "abcdefghijkl"},
      {TypeCode::kVector3Int, "\x01\x02\x03"},
      {TypeCode::kVector4, "abcdefghijklmnop"},
  };
  for (const auto& [type, bytes] : values) {
    SCOPED_TRACE(ToString(type));
    ReadAll(bytes, [code = type](ByteReader& in) {
      in.Skip(code);
      return 0;
    });
    // One byte less is not enough.
    ByteReader shorter(std::string_view(bytes).substr(0, bytes.size() - 1));
    shorter.Skip(type);
    EXPECT_FALSE(shorter.ok());
  }
}

TEST(ByteReader, StopsBeforeNestingExhaustsTheStack) {
  for (const char tag : {'\x16', '\x14', '\x17'}) {
    // A bean, list or dynamic in the first field of each other: a megabyte of them.
    std::string bytes;
    for (int i = 0; i < 1 << 18; ++i) {
      bytes.push_back(tag);
      if (tag == '\x14') bytes.push_back('\x16');
      if (tag == '\x17') bytes.push_back('\x01');
    }
    EXPECT_THAT(ErrorOf(bytes, [](ByteReader& in) { in.Skip(TypeCode::kBean); }),
                HasSubstr("nested deeper than 128"));
  }
}

TEST(ByteReader, ReadsBeansNestedToTheLimit) {
  std::string bytes;
  for (int i = 1; i < ByteReader::kDepthMax; ++i) bytes.push_back('\x16');
  bytes.append(ByteReader::kDepthMax, '\x00');
  ReadAll(bytes, [](ByteReader& in) {
    in.Skip(TypeCode::kBean);
    return 0;
  });
}

TEST(ByteReader, CountsBasesWithoutNesting) {
  // A long chain of bases is linear work and no recursion.
  const std::string bytes = std::string(100000, '\x01') + '\x00';
  ReadAll(bytes, [](ByteReader& in) {
    in.Skip(TypeCode::kBean);
    return 0;
  });
}

TEST(ByteReader, NarrowsFloatingPointNumbersAsJavaDoes) {
  const auto from_double = [](double value, auto read) {
    return ReadAll(Written([value](ByteWriter& out) { out.WriteDouble(value); }), read);
  };
  const auto to_int = [](ByteReader& in) {
    return in.ReadIntegerAs<std::int32_t>(TypeCode::kDouble);
  };
  const auto to_short = [](ByteReader& in) {
    return in.ReadIntegerAs<std::int16_t>(TypeCode::kDouble);
  };
  const auto to_long = [](ByteReader& in) {
    return in.ReadIntegerAs<std::int64_t>(TypeCode::kDouble);
  };
  EXPECT_EQ(from_double(2147483647.9, to_int), 2147483647);
  EXPECT_EQ(from_double(2147483648.0, to_int), 2147483647);
  EXPECT_EQ(from_double(-2147483648.9, to_int), -2147483648);
  EXPECT_EQ(from_double(-1e300, to_int), -2147483648);
  EXPECT_EQ(from_double(40000.0, to_short), -25536);
  EXPECT_EQ(from_double(1e10, to_short), -1);
  EXPECT_EQ(from_double(9223372036854775807.0, to_long), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(from_double(-9223372036854775808.0, to_long), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(from_double(9007199254740993.0, to_long), 9007199254740992);
  EXPECT_EQ(from_double(std::numeric_limits<double>::quiet_NaN(), to_long), 0);
  EXPECT_EQ(from_double(-std::numeric_limits<double>::infinity(), to_long),
            std::numeric_limits<std::int64_t>::min());
}

TEST(ByteReader, RefusesConversionsThatLoseTheMeaning) {
  const auto error = [](auto read) {
    return ErrorOf(
        "\x01"
        "a",
        read);
  };
  EXPECT_EQ(error([](ByteReader& in) { in.ReadIntegerAs<std::int32_t>(TypeCode::kBytes); }),
            "a value of type BYTES was found where an integer is declared at offset 0 of 2");
  error([](ByteReader& in) { in.ReadIntegerAs<std::int64_t>(TypeCode::kList); });
  error([](ByteReader& in) { in.ReadBoolAs(TypeCode::kBytes); });
  error([](ByteReader& in) { in.ReadFloatAs(TypeCode::kVector2); });
  error([](ByteReader& in) { in.ReadDoubleAs(TypeCode::kBean); });
  error([](ByteReader& in) { in.ReadBytesAs(TypeCode::kInteger); });
  error([](ByteReader& in) { in.ReadVectorAs<Vector3>(TypeCode::kMap); });
  error([](ByteReader& in) { in.ReadVectorAs<Vector2Int>(TypeCode::kDynamic); });
}

TEST(ByteReader, GivesBackTheBytesOfWhatWasRead) {
  ByteReader in(
      "\x05\x03"
      "abc"
      "\x07");
  in.ReadLong();
  const std::size_t begin = in.position();
  in.Skip(TypeCode::kBytes);

  EXPECT_EQ(in.Since(begin),
            "\x03"
            "abc");
}

TEST(ByteReader, ReadsBigEndianNumbersAndBlocks) {
  EXPECT_EQ(ReadAll("\x12\x34\x56\x78", [](ByteReader& in) { return in.ReadInt4BigEndian(); }),
            0x12345678);
  EXPECT_EQ(ReadAll("\x02\x00\x00\x00"
                    "ab"s,
                    [](ByteReader& in) { return std::string(in.ReadSize4()); }),
            "ab");
}

}  // namespace
}  // namespace zeze
