// TypeCode: what kind of value follows a tag in an encoded bean.
//
//   0x13 = field delta 1, TypeCode::kBytes: a length and that many bytes follow.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zeze {

// Sent and stored as the low nibble of a tag byte: the numbers never change; 13 to 15 are free and
// refused by every decoder.
enum class TypeCode : std::uint8_t {
  kInteger = 0,      // bool, byte, short, int, long: a signed varint.
  kFloat = 1,        // 4 bytes, little-endian.
  kDouble = 2,       // 8 bytes, little-endian.
  kBytes = 3,        // string, binary, decimal: length and bytes.
  kList = 4,         // list, array, set: header and elements.
  kMap = 5,          // map, sortedmap, gtable: header and pairs.
  kBean = 6,         // bean, beankey: tagged fields and an end marker.
  kDynamic = 7,      // type id and bean.
  kVector2 = 8,      // 2 floats.
  kVector2Int = 9,   // 2 signed varints.
  kVector3 = 10,     // 3 floats.
  kVector3Int = 11,  // 3 signed varints.
  kVector4 = 12,     // vector4, quaternion: 4 floats.
};

inline constexpr std::uint8_t kTypeCodeMax = 12;

// The largest field id that a schema may use.
inline constexpr int kFieldIdMax = 4095;

// How deep beans may be nested; deeper ones are refused by writers and readers alike. No schema
// comes near it, except by a bean that holds itself, and no stack overflows.
inline constexpr int kBeanDepthMax = 128;

// No encoding is larger; longer ones are refused by writers and readers alike.
inline constexpr std::size_t kEncodedBytesMax = std::size_t{1} << 30;

// The fewest bytes that a value of this type takes when it is a list element. Claimed element
// counts are checked against it before anything is allocated.
constexpr std::size_t MinEncodedBytes(TypeCode code) {
  constexpr std::uint8_t kBytes[kTypeCodeMax + 1] = {1, 4, 8, 1, 1, 2, 1, 2, 8, 2, 12, 3, 16};
  return kBytes[static_cast<std::uint8_t>(code)];
}

// "INTEGER", "FLOAT", ... for messages; "unassigned" for a number that is no code.
std::string_view ToString(TypeCode code);

}  // namespace zeze
