// Checks of the vectors that say what a reader makes of bytes: over-long forms, values stored under
// another type, skipped fields.

#include <gtest/gtest.h>

#include "tests/compatibility/core_vectors.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/utf8.h"

namespace zeze::compatibility {
namespace {

constexpr std::string_view kError = "ERROR";

// What a checker read, as text, unless the reader failed.
std::string Outcome(const ByteReader& in, const std::string& read) {
  return in.ok() ? read : std::string(kError);
}

// "-1.1" as the float of it, so that texts of equal floats agree.
std::string Canonical(std::string_view text, bool is_float) {
  if (text == kError) return std::string(text);
  std::string canonical;
  for (const std::string& part : Split(text, ',')) {
    canonical += is_float ? std::to_string(std::bit_cast<std::int32_t>(ToFloat(part))) : part;
    canonical += ' ';
  }
  return canonical;
}

template <typename V>
std::string Print(const V& vector) {
  std::string text;
  for (std::size_t i = 0; i < V::kDimension; ++i) {
    const auto component = ComponentOf(vector, i);
    text += std::to_string(std::bit_cast<std::int32_t>(component)) + ' ';
  }
  return text;
}

// What the reader of the declared type makes of the value.
std::string ReadDeclared(std::string_view declared, TypeCode type, ByteReader& in) {
  if (declared == "bool") return in.ReadBoolAs(type) ? "true" : "false";
  if (declared == "byte") return std::to_string(in.ReadIntegerAs<std::int8_t>(type));
  if (declared == "short") return std::to_string(in.ReadIntegerAs<std::int16_t>(type));
  if (declared == "int") return std::to_string(in.ReadIntegerAs<std::int32_t>(type));
  if (declared == "long") return std::to_string(in.ReadIntegerAs<std::int64_t>(type));
  if (declared == "binary" || declared == "string") return ToHex(in.ReadBytesAs(type));
  if (declared == "float") {
    return std::to_string(std::bit_cast<std::int32_t>(in.ReadFloatAs(type))) + ' ';
  }
  if (declared == "double") {
    return std::to_string(std::bit_cast<std::uint64_t>(in.ReadDoubleAs(type)));
  }
  if (declared == "vector2") return Print(in.ReadVectorAs<Vector2>(type));
  if (declared == "vector3") return Print(in.ReadVectorAs<Vector3>(type));
  if (declared == "vector4") return Print(in.ReadVectorAs<Vector4>(type));
  if (declared == "quaternion") return Print(in.ReadVectorAs<Quaternion>(type));
  if (declared == "vector2int") return Print(in.ReadVectorAs<Vector2Int>(type));
  if (declared == "vector3int") return Print(in.ReadVectorAs<Vector3Int>(type));
  ADD_FAILURE() << "no reader for the declared type " << declared;
  return "";
}

std::string Expected(std::string_view declared, const std::string& value) {
  if (value == kError) return value;
  if (declared == "double") {
    return std::to_string(std::bit_cast<std::uint64_t>(ToDouble(value)));
  }
  const bool is_int_vector = declared.ends_with("int") && declared.starts_with("vector");
  const bool is_float = declared == "float" || declared == "quaternion" ||
                        (declared.starts_with("vector") && !is_int_vector);
  return is_float || is_int_vector ? Canonical(value, is_float) : value;
}

// "decode:byte tag 0x11": a byte is declared, the tag says FLOAT.
void CheckDeclared(const Vector& vector) {
  const std::string declared = Split(Split(vector.type, ':')[1], ' ')[0];
  const auto type = static_cast<TypeCode>(std::stoul(Split(vector.type, ' ')[2], nullptr, 16) & 15);
  const std::string bytes = vector.bytes();
  ByteReader in(bytes);
  if (declared == "skip") {
    in.Skip(type);
    const std::string consumed = "consumed " + std::to_string(in.position());
    EXPECT_EQ(Outcome(in, consumed), vector.text());
    return;
  }
  const std::string read = ReadDeclared(declared, type, in);
  EXPECT_EQ(Outcome(in, read), Expected(declared, vector.text()));
  if (in.ok()) {
    EXPECT_EQ(in.remaining(), 0U);
  }
}

// A value without a tag.
template <typename Read>
Checker Plain(Read read) {
  return [read](const Vector& vector) {
    const std::string bytes = vector.bytes();
    ByteReader in(bytes);
    const std::string text = read(in);
    if (in.ok()) {
      EXPECT_EQ(in.remaining(), 0U);
    }
    EXPECT_EQ(Outcome(in, text), vector.text());
  };
}

// "U+FFFD U+0041": the code points of well-formed text.
std::string CodePoints(std::string_view utf8) {
  std::string text;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto first = static_cast<unsigned char>(utf8[i]);
    const std::size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    unsigned point = bytes == 1 ? first : first & (0x7FU >> bytes);
    for (std::size_t k = 1; k < bytes; ++k) {
      point = (point << 6) | (static_cast<unsigned char>(utf8[i + k]) & 0x3FU);
    }
    i += bytes;
    char buffer[16];
    std::snprintf(buffer, sizeof(buffer), "%sU+%04X", text.empty() ? "" : " ", point);
    text += buffer;
  }
  return text;
}

}  // namespace

void AddConversionCheckers(Checkers& checkers) {
  checkers["decode:uint"] = Plain([](ByteReader& in) { return std::to_string(in.ReadUint()); });
  checkers["decode:long"] = Plain([](ByteReader& in) { return std::to_string(in.ReadLong()); });
  checkers["decode:int"] = Plain([](ByteReader& in) {
    return std::to_string(in.ReadIntegerAs<std::int32_t>(TypeCode::kInteger));
  });
  checkers["decode:bool"] = Plain([](ByteReader& in) { return in.ReadBool() ? "true" : "false"; });
  checkers["decode:string"] =
      Plain([](ByteReader& in) { return CodePoints(RepairUtf8(in.ReadBytes())); });
  checkers["decode:bytes"] = Plain([](ByteReader& in) { return ToHex(in.ReadBytes()); });
  checkers["decode:*"] = CheckDeclared;
}

}  // namespace zeze::compatibility
