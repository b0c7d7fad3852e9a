// HashName64, HashName32: the ids of beans, protocols and tables, derived from their full names.
//
//   constexpr std::int64_t kTypeId = HashName64("demo.Module1.BValue");
//   constexpr std::int32_t kTableId = HashName32("demo.Module1.tRoles");
//
// These numbers are in stored data and on the wire: the functions never change.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zeze {

namespace internal {

constexpr std::size_t kNoUtf8Start = 4;

// How many bytes follow the first one of a UTF-8 sequence, or kNoUtf8Start.
constexpr std::size_t Utf8BytesAfter(unsigned char first) {
  if (first < 0x80) return 0;
  if (first < 0xC2 || first > 0xF4) return kNoUtf8Start;
  return first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
}

// Calls use(unit) with each UTF-16 code unit of a UTF-8 text; a malformed byte counts as U+FFFD.
template <typename Use>
constexpr void ForEachUtf16Unit(std::string_view utf8, Use use) {
  std::size_t i = 0;
  while (i < utf8.size()) {
    const auto first = static_cast<unsigned char>(utf8[i]);
    const std::size_t more = Utf8BytesAfter(first);
    std::uint32_t point = more == 0 ? first : first & (0x3FU >> (more & 3));
    bool valid = more != kNoUtf8Start && i + more < utf8.size();
    for (std::size_t k = 1; valid && k <= more; ++k) {
      const auto byte = static_cast<unsigned char>(utf8[i + k]);
      valid = (byte & 0xC0) == 0x80;
      point = (point << 6) | (byte & 0x3FU);
    }
    if (!valid) {
      use(char16_t{0xFFFD});
      ++i;
      continue;
    }
    i += more + 1;
    if (point < 0x10000) {
      use(static_cast<char16_t>(point));
    } else {
      use(static_cast<char16_t>(0xD7C0 + (point >> 10)));
      use(static_cast<char16_t>(0xDC00 + (point & 0x3FF)));
    }
  }
}

constexpr std::uint64_t kNameHashStart = 3074457345618258791U;
constexpr std::uint64_t kNameHashFactor = 3074457345618258799U;

constexpr std::int32_t FoldNameHash(std::int64_t hash) {
  const auto bits = static_cast<std::uint64_t>(hash);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits ^ (bits >> 32)));
}

}  // namespace internal

// Type id of a bean or beankey whose schema gives none.
constexpr std::int64_t HashName64(std::u16string_view name) {
  std::uint64_t hash = internal::kNameHashStart;
  for (const char16_t unit : name) hash = (hash + unit) * internal::kNameHashFactor;
  return static_cast<std::int64_t>(hash);
}

// The same of the name's UTF-16 form.
constexpr std::int64_t HashName64(std::string_view utf8_name) {
  std::uint64_t hash = internal::kNameHashStart;
  internal::ForEachUtf16Unit(
      utf8_name, [&hash](char16_t unit) { hash = (hash + unit) * internal::kNameHashFactor; });
  return static_cast<std::int64_t>(hash);
}

// Id of a protocol, rpc or table.
constexpr std::int32_t HashName32(std::u16string_view name) {
  return internal::FoldNameHash(HashName64(name));
}
constexpr std::int32_t HashName32(std::string_view utf8_name) {
  return internal::FoldNameHash(HashName64(utf8_name));
}

// Hashes that spread keys over servers. Every server of a cluster must agree on them.
constexpr std::uint32_t RoutingHash(std::int64_t key) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15U) >> 32);
}
constexpr std::uint32_t RoutingHashOfText(std::string_view utf8_text) {
  std::uint32_t hash = 0;
  internal::ForEachUtf16Unit(utf8_text, [&hash](char16_t unit) { hash = hash * 16777619U ^ unit; });
  return hash;
}
constexpr std::uint32_t RoutingHashOfBytes(std::string_view bytes) {
  std::uint32_t hash = 0;
  for (const char byte : bytes) {
    hash = hash * 16777619U ^ static_cast<std::uint32_t>(static_cast<signed char>(byte));
  }
  return hash;
}

}  // namespace zeze
