// RoleMarks: where a role may stand in a list, by sixteen bits of the hash of each role.
//
// A look-up compares all marks, a vector register at a time: tens of nanoseconds for a thousand
// roles, less than following the pointers of a tree or missing the cache in a hash table.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zeze::internal {

using RoleMark = std::uint16_t;

constexpr RoleMark RoleMarkOf(std::int64_t role) {
  return static_cast<RoleMark>((static_cast<std::uint64_t>(role) * 0x9E3779B97F4A7C15U) >> 48);
}

inline constexpr std::size_t kNoPlace = ~std::size_t{0};

// The first place from `from` on, and before `end`, that has the mark.
inline std::size_t FindMark(const RoleMark* marks, std::size_t from, std::size_t end,
                            RoleMark wanted) {
  constexpr std::size_t kRun = 32;
  for (; from + kRun <= end; from += kRun) {
    const RoleMark* run = marks + from;
    RoleMark equal = 0;
    for (std::size_t i = 0; i < kRun; ++i) {
      equal = static_cast<RoleMark>(equal | (run[i] == wanted ? 1 : 0));
    }
    if (equal != 0) break;
  }
  const RoleMark* found = std::find(marks + from, marks + end, wanted);
  return found == marks + end ? kNoPlace : static_cast<std::size_t>(found - marks);
}

}  // namespace zeze::internal
