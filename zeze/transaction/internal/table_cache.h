// TableCache: the records of one table that are in memory, and what the cache notes about them.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "zeze/transaction/internal/record_map.h"

namespace zeze::internal {

struct TableCache {
  explicit TableCache(bool hints) : records(hints) {}

  RecordMap records;
  std::atomic<std::uint64_t> loads = 0;
  std::atomic<std::uint64_t> evictions = 0;
  // Of a table without a storage: records that became absent, or began so, since the last sweep.
  std::atomic<std::size_t> absences = 0;

  // Of the cleaner's thread.
  std::chrono::nanoseconds rest_until{0};
  std::size_t hand_shard = 0;
  std::size_t hand_slot = 0;
};

}  // namespace zeze::internal
