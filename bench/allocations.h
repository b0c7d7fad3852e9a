// Counts the calls of operator new, which this program replaces.

#pragma once

#include <cstdint>

namespace zeze::bench {

// By the calling thread, since it started.
std::uint64_t ThreadAllocations();

}  // namespace zeze::bench
