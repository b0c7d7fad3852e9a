// WaitGroup: waits until a group of tasks has finished.
//
//   WaitGroup group;
//   for (Player& player : players) {
//     group.Add();
//     executor.Post([&] { Save(player); group.Done(); });
//   }
//   group.Wait();

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"

namespace zeze {

// Thread-safe. May be used again after Wait has returned, and destroyed as soon as it has. What a
// thread wrote before Done is visible after Wait.
class WaitGroup {
 public:
  WaitGroup() = default;
  explicit WaitGroup(std::size_t count) : count_(count) {}

  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  // Before the task that will call Done can run.
  void Add(std::size_t count = 1) { count_.fetch_add(count, std::memory_order_relaxed); }

  void Done() {
    // Only the last one takes the mutex, and reaches zero while holding it: a waiter that sees zero
    // may destroy the group at once, so nobody may touch it afterwards.
    std::size_t count = count_.load(std::memory_order_relaxed);
    while (count > 1) {
      if (count_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
        return;
      }
    }
    MutexLock lock(mutex_);
    const std::size_t before = count_.fetch_sub(1, std::memory_order_acq_rel);
    ZEZE_CHECK(before > 0);
    if (before == 1) finished_.NotifyAll();
  }

  // Tasks that have not finished, at some moment.
  std::size_t CountApprox() const { return count_.load(std::memory_order_relaxed); }

  void Wait() {
    MutexLock lock(mutex_);
    while (count_.load(std::memory_order_acquire) != 0) finished_.Wait(mutex_);
  }

  // False if the group was not finished at the deadline.
  bool WaitUntil(Clock& clock, std::chrono::nanoseconds deadline) {
    MutexLock lock(mutex_);
    while (count_.load(std::memory_order_acquire) != 0) {
      if (!clock.WaitUntil(finished_, mutex_, deadline)) {
        return count_.load(std::memory_order_acquire) == 0;
      }
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar finished_;
  std::atomic<std::size_t> count_ = 0;
};

}  // namespace zeze
