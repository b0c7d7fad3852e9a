// RoleMarks: where a role may stand in a list, by sixteen bits of the hash of each role.
//
// A look-up compares all marks, a vector register at a time: tens of nanoseconds for a thousand
// roles, less than following the pointers of a tree or missing the cache in a hash table.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace zeze::internal {

using RoleMark = std::uint16_t;

constexpr RoleMark RoleMarkOf(std::int64_t role) {
  return static_cast<RoleMark>((static_cast<std::uint64_t>(role) * 0x9E3779B97F4A7C15U) >> 48);
}

inline constexpr std::size_t kNoPlace = ~std::size_t{0};

// Marks are compared so many at a time.
inline constexpr std::size_t kMarkRun = 32;

// A bit for each mark of the run that is the wanted one.
inline std::uint32_t EqualMarks(const RoleMark* run, RoleMark wanted) {
#if defined(__SSE2__)
  const __m128i pattern = _mm_set1_epi16(static_cast<std::int16_t>(wanted));
  const auto equal = [&](int i) {
    return _mm_cmpeq_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(run) + i), pattern);
  };
  const int low = _mm_movemask_epi8(_mm_packs_epi16(equal(0), equal(1)));
  const int high = _mm_movemask_epi8(_mm_packs_epi16(equal(2), equal(3)));
  return static_cast<std::uint32_t>(low) | static_cast<std::uint32_t>(high) << 16;
#else
  std::uint32_t equal = 0;
  for (std::size_t i = 0; i < kMarkRun; ++i) {
    equal |= static_cast<std::uint32_t>(run[i] == wanted ? 1 : 0) << i;
  }
  return equal;
#endif
}

// The first of `count` places that has the mark and that is_it(place), or kNoPlace. There must be
// whole runs of marks.
template <typename IsIt>
std::size_t FindMarked(const RoleMark* marks, std::size_t count, RoleMark wanted,
                       const IsIt& is_it) {
  for (std::size_t first = 0; first < count; first += kMarkRun) {
    for (std::uint32_t left = EqualMarks(marks + first, wanted); left != 0; left &= left - 1) {
      const std::size_t place = first + static_cast<std::size_t>(std::countr_zero(left));
      if (place < count && is_it(place)) return place;
    }
  }
  return kNoPlace;
}

}  // namespace zeze::internal
