// Clock: the one door to time, so that a test can move time by hand.
//
//   const auto deadline = clock.Now() + std::chrono::seconds(8);
//   MutexLock lock(mutex);
//   while (!ready) {
//     if (!clock.WaitUntil(changed, mutex, deadline)) return Error(...);   // Deadline passed.
//   }

#pragma once

#include <chrono>

#include "zeze/base/mutex.h"

namespace zeze {

// Thread-safe. A clock outlives everything that was given it.
class Clock {
 public:
  virtual ~Clock() = default;

  // Time since some fixed moment. Never goes backwards, and goes on while the machine is suspended
  // (CLOCK_BOOTTIME): a lease must not seem younger because the laptop lid was closed.
  virtual std::chrono::nanoseconds Now() const = 0;

  // Wall-clock time, for people and for times of day. Jumps when somebody sets it: measure nothing
  // with it.
  virtual std::chrono::system_clock::time_point SystemNow() const = 0;

  // Waits for a notification like CondVar::Wait, at most until Now() >= deadline; false if the
  // deadline has passed. Wakes up spuriously: wait in a loop that tests the condition.
  virtual bool WaitUntil(CondVar& condition, Mutex& mutex, std::chrono::nanoseconds deadline)
      ZEZE_REQUIRES(mutex) = 0;

  // Blocks the calling thread. Durations of zero or less return at once.
  virtual void SleepFor(std::chrono::nanoseconds duration) = 0;
};

// The clock of the operating system. Lives as long as the process.
Clock& SystemClock();

}  // namespace zeze
