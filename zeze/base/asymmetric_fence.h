// LightFence, HeavyFence: a fence between two parties of which one passes millions of times a
// second and the other once in a while. The rare one pays for both: its fence makes every other
// thread of the process pass one.
//
//   mine.store(1, release); LightFence(); if (theirs.load(acquire) == 0) ...    // Often.
//   theirs.store(1, release); HeavyFence(); if (mine.load(acquire) == 0) ...    // Rarely.
//
// At least one of the two sees the other's store. Two light fences promise nothing.

#pragma once

#include <atomic>

namespace zeze {

namespace internal {

// Whether the kernel does the light fences' part (membarrier). Set once, before main.
extern const bool heavy_fence_reaches_all;

inline void FullFence() {
  // Not atomic_thread_fence, which ThreadSanitizer does not know.
  std::atomic<int> nothing = 0;
  nothing.exchange(1, std::memory_order_seq_cst);
}

}  // namespace internal

inline void LightFence() {
  if (!internal::heavy_fence_reaches_all) [[unlikely]]
    internal::FullFence();
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void HeavyFence();

}  // namespace zeze
