// Vector2, Vector3, Vector4, Quaternion, Vector2Int, Vector3Int: small value types of the schema.
//
//   Vector3 position{1, 0, -2.5f};
//   position.y = 4;

#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "zeze/base/hash.h"
#include "zeze/serialize/type_code.h"

namespace zeze {

// Every vector type names its component type, their number and its code in encodings. Equality is
// that of the components: -0.0 equals 0.0, and a NaN makes a vector different from itself.

struct Vector2 {
  using Component = float;
  static constexpr std::size_t kDimension = 2;
  static constexpr TypeCode kTypeCode = TypeCode::kVector2;

  float x = 0;
  float y = 0;

  auto operator<=>(const Vector2&) const = default;
};

struct Vector3 {
  using Component = float;
  static constexpr std::size_t kDimension = 3;
  static constexpr TypeCode kTypeCode = TypeCode::kVector3;

  float x = 0;
  float y = 0;
  float z = 0;

  auto operator<=>(const Vector3&) const = default;
};

struct Vector4 {
  using Component = float;
  static constexpr std::size_t kDimension = 4;
  static constexpr TypeCode kTypeCode = TypeCode::kVector4;

  float x = 0;
  float y = 0;
  float z = 0;
  float w = 0;

  auto operator<=>(const Vector4&) const = default;
};

// Encoded exactly as a Vector4. The default is all zero, not the identity rotation, because an
// absent field means zero.
struct Quaternion {
  using Component = float;
  static constexpr std::size_t kDimension = 4;
  static constexpr TypeCode kTypeCode = TypeCode::kVector4;

  float x = 0;
  float y = 0;
  float z = 0;
  float w = 0;

  auto operator<=>(const Quaternion&) const = default;
};

struct Vector2Int {
  using Component = std::int32_t;
  static constexpr std::size_t kDimension = 2;
  static constexpr TypeCode kTypeCode = TypeCode::kVector2Int;

  std::int32_t x = 0;
  std::int32_t y = 0;

  auto operator<=>(const Vector2Int&) const = default;
};

struct Vector3Int {
  using Component = std::int32_t;
  static constexpr std::size_t kDimension = 3;
  static constexpr TypeCode kTypeCode = TypeCode::kVector3Int;

  std::int32_t x = 0;
  std::int32_t y = 0;
  std::int32_t z = 0;

  auto operator<=>(const Vector3Int&) const = default;
};

// Any of the six types above.
template <typename V>
concept VectorValue = requires {
  typename V::Component;
  V::kDimension;
  V::kTypeCode;
};

// The component with this index, 0 for x; the index must be below V::kDimension.
template <VectorValue V>
constexpr typename V::Component& ComponentOf(V& vector, std::size_t index) {
  if (index == 0) return vector.x;
  if (index == 1) return vector.y;
  if constexpr (V::kDimension >= 3) {
    if (index == 2) return vector.z;
  }
  if constexpr (V::kDimension >= 4) {
    if (index == 3) return vector.w;
  }
  return vector.x;
}

template <VectorValue V>
constexpr typename V::Component ComponentOf(const V& vector, std::size_t index) {
  V copy = vector;
  return ComponentOf(copy, index);
}

template <VectorValue V>
std::size_t HashVector(const V& vector) {
  std::uint64_t hash = CombinedHashStart();
  for (std::size_t i = 0; i < V::kDimension; ++i) {
    const auto component = ComponentOf(vector, i);
    // Equal vectors must hash alike: -0.0 counts as 0.0.
    hash = CombineHash(hash, component == 0 ? 0U : std::bit_cast<std::uint32_t>(component));
  }
  return static_cast<std::size_t>(hash);
}

}  // namespace zeze

template <zeze::VectorValue V>
struct std::hash<V> {
  std::size_t operator()(const V& vector) const noexcept { return zeze::HashVector(vector); }
};
