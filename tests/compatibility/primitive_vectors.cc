// Checks of the vectors of single values: numbers, strings, vectors, tags and headers.

#include <gtest/gtest.h>

#include "tests/compatibility/core_vectors.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/utf8.h"

namespace zeze::compatibility {
namespace {

// Written by us it has the vector's bytes; read by us they are that value, to the last byte.
template <typename T, typename Write, typename Read>
void CheckBothWays(const Vector& vector, const T& value, Write write, Read read) {
  ByteWriter out;
  write(out, value);
  EXPECT_EQ(ToHex(out.view()), vector.hex);

  const std::string bytes = vector.bytes();
  ByteReader in(bytes);
  EXPECT_EQ(read(in), value);
  EXPECT_TRUE(in.ok()) << in.error_message();
  EXPECT_EQ(in.remaining(), 0U);
}

// Of a value whose text `parse` understands.
template <typename T, typename Parse, typename Write, typename Read>
Checker Simple(Parse parse, Write write, Read read) {
  return [=](const Vector& vector) {
    CheckBothWays(vector, static_cast<T>(parse(vector.text())), write, read);
  };
}

std::uint64_t ToUnsigned(std::string_view text) {
  std::uint64_t value = 0;
  for (const char digit : text) value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  return value;
}

void CheckFloat(const Vector& vector) {
  CheckBothWays(
      vector, std::bit_cast<std::uint32_t>(ToFloat(vector.text())),
      [](ByteWriter& out, std::uint32_t bits) { out.WriteFloat(std::bit_cast<float>(bits)); },
      [](ByteReader& in) { return std::bit_cast<std::uint32_t>(in.ReadFloat()); });
}

void CheckDouble(const Vector& vector) {
  CheckBothWays(
      vector, std::bit_cast<std::uint64_t>(ToDouble(vector.text())),
      [](ByteWriter& out, std::uint64_t bits) { out.WriteDouble(std::bit_cast<double>(bits)); },
      [](ByteReader& in) { return std::bit_cast<std::uint64_t>(in.ReadDouble()); });
}

void CheckBytes(const Vector& vector, const std::string& bytes) {
  CheckBothWays(
      vector, bytes, [](ByteWriter& out, const std::string& value) { out.WriteBytes(value); },
      [](ByteReader& in) { return std::string(in.ReadBytes()); });
}

// Surrogates without a partner: Java writes them as three bytes each and loses them on reading. For
// us a string is its bytes, so that they survive.
void CheckUtf16Units(const Vector& vector) {
  std::string bytes;
  for (const std::string& text : Split(vector.text(), ' ')) {
    const auto unit = std::stoul(text, nullptr, 16);
    if (unit < 0x80) {
      bytes.push_back(static_cast<char>(unit));
    } else {
      bytes.push_back(static_cast<char>(0xE0 | (unit >> 12)));
      bytes.push_back(static_cast<char>(0x80 | ((unit >> 6) & 0x3F)));
      bytes.push_back(static_cast<char>(0x80 | (unit & 0x3F)));
    }
  }
  EXPECT_FALSE(IsUtf8(bytes));
  CheckBytes(vector, bytes);
}

void CheckStringPrefix(const Vector& vector) {
  ByteWriter out;
  out.WriteBytes(std::string(static_cast<std::size_t>(NumberAfter(vector.text(), "")), 'x'));
  EXPECT_EQ(ToHex(out.view().substr(0, vector.hex.size() / 2)), vector.hex);
}

void CheckSize4(const Vector& vector) {
  ByteWriter out;
  const std::size_t begin = out.BeginSize4();
  out.WriteInt4(static_cast<std::int32_t>(NumberAfter(vector.text(), "int4 ")));
  out.EndSize4(begin);
  EXPECT_EQ(ToHex(out.view()), vector.hex);

  const std::string bytes = vector.bytes();
  ByteReader in(bytes);
  ByteReader block(in.ReadSize4());
  EXPECT_EQ(block.ReadInt4(), 7);
  EXPECT_EQ(block.remaining() + in.remaining(), 0U);
}

template <typename V>
void CheckVector(const Vector& vector) {
  V value;
  const std::vector<std::string> parts = Split(vector.text(), ',');
  ASSERT_EQ(parts.size(), V::kDimension);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ComponentOf(value, i) = static_cast<typename V::Component>(ToDouble(parts[i]));
  }
  CheckBothWays(
      vector, value, [](ByteWriter& out, const V& v) { out.WriteVector(v); },
      [](ByteReader& in) { return in.ReadVector<V>(); });
}

void CheckTag(const Vector& vector) {
  const int last_id = static_cast<int>(NumberAfter(vector.text(), "lastId="));
  const int id = static_cast<int>(NumberAfter(vector.text(), " id="));
  const auto type = static_cast<TypeCode>(NumberAfter(vector.text(), "type="));

  ByteWriter out;
  int writer_id = last_id;
  out.WriteTag(writer_id, id, type);
  EXPECT_EQ(writer_id, id);
  EXPECT_EQ(ToHex(out.view()), vector.hex);

  const std::string bytes = vector.bytes();
  ByteReader in(bytes);
  int reader_id = last_id;
  const Tag tag = in.ReadTag(reader_id);
  EXPECT_EQ(reader_id, id);
  EXPECT_EQ(tag.id, id);
  EXPECT_EQ(tag.type, type);
  EXPECT_FALSE(tag.end || tag.base);
}

void CheckListHeader(const Vector& vector) {
  const auto count = static_cast<std::size_t>(NumberAfter(vector.text(), "size="));
  const auto type = static_cast<TypeCode>(NumberAfter(vector.text(), "elem="));

  ByteWriter out;
  out.WriteListHeader(count, type);
  EXPECT_EQ(ToHex(out.view()), vector.hex);

  // The reader insists that the elements are there.
  const std::string bytes = vector.bytes() + std::string(count * MinEncodedBytes(type), '\0');
  ByteReader in(bytes);
  TypeCode found{};
  EXPECT_EQ(in.ReadListHeader(found), count);
  EXPECT_EQ(found, type);
}

void CheckMapHeader(const Vector& vector) {
  const auto count = static_cast<std::size_t>(NumberAfter(vector.text(), "size="));
  const auto key = static_cast<TypeCode>(NumberAfter(vector.text(), "key="));
  const auto value = static_cast<TypeCode>(NumberAfter(vector.text(), "value="));

  ByteWriter out;
  out.WriteMapHeader(count, key, value);
  EXPECT_EQ(ToHex(out.view()), vector.hex);

  const std::size_t pair_bytes = MinEncodedBytes(key) + MinEncodedBytes(value);
  const std::string bytes = vector.bytes() + std::string(count * pair_bytes, '\0');
  ByteReader in(bytes);
  TypeCode found_key{};
  TypeCode found_value{};
  EXPECT_EQ(in.ReadMapHeader(found_key, found_value), count);
  EXPECT_EQ(found_key, key);
  EXPECT_EQ(found_value, value);
}

}  // namespace

void AddPrimitiveCheckers(Checkers& checkers) {
  using W = ByteWriter;
  using R = ByteReader;
  const auto is_true = [](const std::string& text) { return text == "true"; };
  checkers["uint"] = Simple<std::uint32_t>(
      ToUnsigned, [](W& out, std::uint32_t value) { out.WriteUint(value); },
      [](R& in) { return in.ReadUint(); });
  checkers["ulong"] = Simple<std::uint64_t>(
      ToUnsigned, [](W& out, std::uint64_t value) { out.WriteUlong(value); },
      [](R& in) { return in.ReadUlong(); });
  checkers["long"] = Simple<std::int64_t>(
      ToInt, [](W& out, std::int64_t value) { out.WriteLong(value); },
      [](R& in) { return in.ReadLong(); });
  checkers["rawbyte"] = Simple<std::uint8_t>(
      ToInt, [](W& out, std::uint8_t value) { out.WriteByte(value); },
      [](R& in) { return in.ReadByte(); });
  checkers["int4"] = Simple<std::int32_t>(
      ToInt, [](W& out, std::int32_t value) { out.WriteInt4(value); },
      [](R& in) { return in.ReadInt4(); });
  checkers["int4be"] = Simple<std::int32_t>(
      ToInt, [](W& out, std::int32_t value) { out.WriteInt4BigEndian(value); },
      [](R& in) { return in.ReadInt4BigEndian(); });
  checkers["long8"] = Simple<std::int64_t>(
      ToInt, [](W& out, std::int64_t value) { out.WriteLong8(value); },
      [](R& in) { return in.ReadLong8(); });
  checkers["long8be"] = Simple<std::int64_t>(
      ToInt, [](W& out, std::int64_t value) { out.WriteLong8BigEndian(value); },
      [](R& in) { return in.ReadLong8BigEndian(); });
  checkers["bool"] = Simple<bool>(
      is_true, [](W& out, bool value) { out.WriteBool(value); },
      [](R& in) { return in.ReadBool(); });
  checkers["float"] = CheckFloat;
  checkers["double"] = CheckDouble;
  checkers["string"] = [](const Vector& vector) { CheckBytes(vector, vector.text()); };
  checkers["bytes"] = [](const Vector& vector) {
    const bool zeros = vector.text() == "128 zero bytes";
    CheckBytes(vector, zeros ? std::string(128, '\0') : FromHex(vector.text()));
  };
  checkers["string-utf16-units"] = CheckUtf16Units;
  checkers["string-prefix"] = CheckStringPrefix;
  checkers["size4"] = CheckSize4;
  checkers["vector2"] = CheckVector<Vector2>;
  checkers["vector3"] = CheckVector<Vector3>;
  checkers["vector4"] = CheckVector<Vector4>;
  checkers["quaternion"] = CheckVector<Quaternion>;
  checkers["vector2int"] = CheckVector<Vector2Int>;
  checkers["vector3int"] = CheckVector<Vector3Int>;
  checkers["tag"] = CheckTag;
  checkers["listtype"] = CheckListHeader;
  checkers["maptype"] = CheckMapHeader;
}

}  // namespace zeze::compatibility
