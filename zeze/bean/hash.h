// HashKey, SameKey, CompareKeys, KeyLess: how the containers see a key.
//
// Hashes are seeded (zeze/base/hash.h): a Map or Set is iterated, and encoded, in another order in
// each run of a program, unless ZEZE_HASH_SEED or SetHashSeed fixes the seed.

#pragma once

#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

#include "zeze/base/hash.h"  // IWYU pragma: export
#include "zeze/serialize/binary.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/vector.h"

namespace zeze {

namespace internal {

template <typename T>
concept FloatingKey = std::is_floating_point_v<T> || VectorValue<T>;

// Equal bits are one key even when they are NaN: a NaN key can be found again, and input full of
// them does not grow a container without bound.
template <typename T>
constexpr bool SameNumber(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return a == b || std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
  } else {
    return a == b;
  }
}

}  // namespace internal

template <typename K>
std::uint64_t HashKey(const K& key) {
  if constexpr (std::same_as<K, Binary>) {
    return HashBytes(key.bytes);
  } else if constexpr (std::same_as<K, Decimal>) {
    return HashBytes(key.text);
  } else if constexpr (std::same_as<K, Id128> || VectorValue<K>) {
    return std::hash<K>{}(key);
  } else {
    return HashOf(key);
  }
}

template <typename A, typename B>
bool SameKey(const A& a, const B& b) {
  if constexpr (std::same_as<A, B> && std::is_floating_point_v<A>) {
    return internal::SameNumber(a, b);
  } else if constexpr (std::same_as<A, B> && VectorValue<A>) {
    for (std::size_t i = 0; i < A::kDimension; ++i) {
      if (!internal::SameNumber(ComponentOf(a, i), ComponentOf(b, i))) return false;
    }
    return true;
  } else {
    return a == b;
  }
}

// A total order of keys: -0.0 and 0.0 are one, every NaN comes behind (or before) all numbers, and
// decimals are ordered by their text.
template <typename A, typename B>
std::weak_ordering CompareKeys(const A& a, const B& b) {
  if constexpr (std::is_floating_point_v<A>) {
    return std::weak_order(a, b);
  } else if constexpr (VectorValue<A>) {
    for (std::size_t i = 0; i < A::kDimension; ++i) {
      const std::weak_ordering order = CompareKeys(ComponentOf(a, i), ComponentOf(b, i));
      if (order != 0) return order;
    }
    return std::weak_ordering::equivalent;
  } else if constexpr (std::same_as<A, Decimal>) {
    return a.text <=> b.text;
  } else {
    return a <=> b;
  }
}

template <typename A, typename B>
bool KeyLess(const A& a, const B& b) {
  if constexpr (internal::FloatingKey<A> || std::same_as<A, Decimal>) {
    return CompareKeys(a, b) < 0;
  } else {
    return a < b;
  }
}

// How a key is passed for a look-up: a string key also as literal or view, without a copy.
template <typename K>
using KeyView = std::conditional_t<std::same_as<K, std::string>, std::string_view, const K&>;

}  // namespace zeze
