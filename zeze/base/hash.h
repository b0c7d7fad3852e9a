// Seeded hashes: how keys find their place in hash tables and lanes of this process.
//
//   std::uint64_t hash = zeze::HashOf(std::string_view("some key"));
//   boost::unordered_flat_map<std::string, Session, zeze::SeededHash> sessions;
//
// Strangers may choose keys. The seed is therefore random in every process, so that they cannot
// send keys that all fall into one place. No hash from here may be stored or sent: for ids and for
// spreading keys over servers see name_hash.h.
//
// For a simulation, or to repeat a failed test, the seed can be fixed: by the environment variable
// ZEZE_HASH_SEED (any text), or by SetHashSeed.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <type_traits>

namespace zeze {

// Call it before the first hash is taken: entries already in a table could not be found any more.
void SetHashSeed(std::uint64_t seed);

namespace internal {

// Derived from the seed; written before main and by SetHashSeed only.
struct alignas(32) HashSecret {
  std::uint64_t start;
  std::uint64_t first;   // Odd.
  std::uint64_t second;  // Odd.
  std::uint64_t chain;   // Odd.
};
extern HashSecret hash_secret;

// Both halves of the product, folded.
constexpr std::uint64_t FoldedProduct(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace internal

inline std::uint64_t HashInteger(std::uint64_t value) {
  const internal::HashSecret& secret = internal::hash_secret;
  return internal::FoldedProduct(
      internal::FoldedProduct(value ^ secret.start, secret.first) ^ secret.chain, secret.second);
}

// SipHash-1-3.
std::uint64_t HashBytes(std::string_view bytes);

// The hash of several parts: start with CombinedHashStart() and add the hash of each part.
inline std::uint64_t CombinedHashStart() {
  return internal::hash_secret.start;
}
inline std::uint64_t CombineHash(std::uint64_t hash, std::uint64_t part) {
  return internal::FoldedProduct(hash ^ part, internal::hash_secret.chain);
}

// Integers, enums, texts, and every type with a std::hash.
template <typename K>
std::uint64_t HashOf(const K& key) {
  if constexpr (std::is_integral_v<K> || std::is_enum_v<K>) {
    return HashInteger(static_cast<std::uint64_t>(key));
  } else if constexpr (std::convertible_to<const K&, std::string_view>) {
    return HashBytes(key);
  } else {
    return HashInteger(std::hash<K>{}(key));
  }
}

// For containers of the standard library and of Boost.
struct SeededHash {
  using is_transparent = void;
  using is_avalanching = void;

  template <typename K>
  std::size_t operator()(const K& key) const {
    return static_cast<std::size_t>(HashOf(key));
  }
};

}  // namespace zeze
