// Incarnation: what `zeze daemon` tells a process about itself and about those before it, so that
// nobody waits for the lease of one that has ended (rule 62 of docs/architecture.md).
//
//   const Incarnation incarnation = IncarnationFromEnvironment();

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zeze {

// The daemon chooses ZEZE_INCARNATION, 16 characters, anew for each process that it starts, and
// gives it those of earlier ones in ZEZE_ENDED, with commas between, if nothing is left of them.
inline constexpr std::string_view kIncarnationVariable = "ZEZE_INCARNATION";
inline constexpr std::string_view kEndedVariable = "ZEZE_ENDED";
inline constexpr std::size_t kIncarnationSize = 16;

struct Incarnation {
  std::string own;                 // Empty: no daemon has started this process.
  std::vector<std::string> ended;  // Whatever has another size is left out.
};

Incarnation IncarnationFromEnvironment();

}  // namespace zeze
