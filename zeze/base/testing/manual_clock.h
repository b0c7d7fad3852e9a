// ManualClock: time that stands still until the test moves it.
//
//   ManualClock clock;
//   clock.Advance(std::chrono::minutes(1));   // Wakes whoever waits for a moment now passed.

#pragma once

#include <atomic>
#include <chrono>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"

namespace zeze::testing {

// Thread-safe. Starts at one hour, so that "an hour ago" exists, with the wall clock at
// 2024-01-01 00:00:00 UTC.
class ManualClock final : public Clock {
 public:
  std::chrono::nanoseconds Now() const override { return Elapsed() + std::chrono::hours(1); }

  std::chrono::system_clock::time_point SystemNow() const override {
    constexpr std::chrono::sys_days kStart =
        std::chrono::year(2024) / std::chrono::January / std::chrono::day(1);
    return kStart + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                        Elapsed() + std::chrono::nanoseconds(system_shift_.load()));
  }

  bool WaitUntil(CondVar& condition, Mutex& mutex, std::chrono::nanoseconds deadline)
      ZEZE_REQUIRES(mutex) override {
    if (Now() >= deadline) return false;
    // Looks again every millisecond instead of being told by Advance, which would have to take the
    // mutexes of all waiters and know that they still exist.
    condition.WaitFor(mutex, std::chrono::milliseconds(1));
    return Now() < deadline;
  }

  void SleepFor(std::chrono::nanoseconds duration) override {
    const std::chrono::nanoseconds until = Now() + duration;
    Mutex mutex;
    CondVar never;
    MutexLock lock(mutex);
    while (WaitUntil(never, mutex, until)) {
    }
  }

  void Advance(std::chrono::nanoseconds duration) { elapsed_ += duration.count(); }

  // Somebody sets the wall clock; the monotonic time does not notice.
  void ShiftSystemTime(std::chrono::nanoseconds by) { system_shift_ += by.count(); }

 private:
  std::chrono::nanoseconds Elapsed() const { return std::chrono::nanoseconds(elapsed_.load()); }

  std::atomic<std::chrono::nanoseconds::rep> elapsed_ = 0;
  std::atomic<std::chrono::nanoseconds::rep> system_shift_ = 0;
};

}  // namespace zeze::testing
