// HashKey, SameKey, CompareKeys, KeyLess: how the containers see a key.
//
// Hashes depend on a seed of the process. It is fixed unless a program sets one, so iteration order
// is the same in every run (tests, simulation). A server that decodes maps and sets sent by
// strangers sets a random seed first thing in main(), so that nobody can send a million keys that
// fall into one place:
//
//   zeze::SetHashSeed(random_number);

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

#include "zeze/serialize/binary.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/vector.h"

namespace zeze {

// Call it before the first Map or Set of the process is filled: entries already in one could not be
// found any more.
void SetHashSeed(std::uint64_t seed);

namespace internal {

extern std::uint64_t hash_seed;  // Written by SetHashSeed only, before threads start.

constexpr std::uint64_t MixHash(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9FB21C651E98DF25U;
  value ^= value >> 29;
  value *= 0xD6E8FEB86659FD93U;
  value ^= value >> 32;
  return value;
}

// SipHash-1-3 keyed by the seed.
std::uint64_t HashBytes(std::string_view bytes);

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

constexpr std::uint64_t CombineHash(std::uint64_t hash, std::uint64_t next) {
  return MixHash(hash * 0x9E3779B97F4A7C15U + next);
}

}  // namespace internal

template <typename K>
std::uint64_t HashKey(const K& key) {
  if constexpr (std::is_integral_v<K> || std::is_enum_v<K>) {
    return internal::MixHash(static_cast<std::uint64_t>(key) ^ internal::hash_seed);
  } else if constexpr (std::convertible_to<const K&, std::string_view>) {
    return internal::HashBytes(key);
  } else if constexpr (std::same_as<K, Binary>) {
    return internal::HashBytes(key.bytes);
  } else if constexpr (std::same_as<K, Decimal>) {
    return internal::HashBytes(key.text);
  } else if constexpr (std::same_as<K, Id128>) {
    return internal::CombineHash(HashKey(key.high), HashKey(key.low));
  } else if constexpr (VectorValue<K>) {
    std::uint64_t hash = internal::hash_seed;
    for (std::size_t i = 0; i < K::kDimension; ++i) {
      const auto component = ComponentOf(key, i);
      // Equal vectors must hash alike: -0.0 counts as 0.0.
      const auto bits = component == 0 ? 0U : std::bit_cast<std::uint32_t>(component);
      hash = internal::CombineHash(hash, bits);
    }
    return hash;
  } else {
    return internal::MixHash(std::hash<K>{}(key) ^ internal::hash_seed);
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
