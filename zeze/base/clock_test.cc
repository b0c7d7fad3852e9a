#include "zeze/base/clock.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/mutex.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/wait_group.h"

namespace zeze {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::ManualClock;

TEST(SystemClock, MovesForward) {
  const nanoseconds start = SystemClock().Now();

  SystemClock().SleepFor(milliseconds(2));

  EXPECT_GE(SystemClock().Now() - start, milliseconds(2));
}

TEST(SystemClock, WaitEndsAtTheDeadline) {
  Mutex mutex;
  CondVar never;
  const nanoseconds deadline = SystemClock().Now() + milliseconds(2);

  MutexLock lock(mutex);
  while (SystemClock().WaitUntil(never, mutex, deadline)) {
  }

  EXPECT_GE(SystemClock().Now(), deadline);
}

TEST(SystemClock, WaitWithoutEndIsWokenByANotification) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread other([&] {
    MutexLock lock(mutex);
    ready = true;
    changed.NotifyOne();
  });

  {
    MutexLock lock(mutex);
    while (!ready) EXPECT_TRUE(SystemClock().WaitUntil(changed, mutex, nanoseconds::max()));
  }

  other.join();
}

TEST(ManualClock, StandsStillUntilItIsMoved) {
  ManualClock clock;
  const nanoseconds start = clock.Now();
  const auto system_start = clock.SystemNow();

  EXPECT_EQ(clock.Now(), start);
  clock.Advance(hours(2));

  EXPECT_EQ(clock.Now(), start + hours(2));
  EXPECT_EQ(clock.SystemNow(), system_start + hours(2));
}

TEST(ManualClock, AdvanceWakesSleepers) {
  ManualClock clock;
  std::atomic<bool> awake = false;
  std::thread sleeper([&] {
    clock.SleepFor(hours(1));
    awake = true;
  });

  // The sleeper may begin after any of these.
  while (!awake) clock.Advance(hours(1));

  sleeper.join();
}

TEST(Mutex, TryLockFailsWhileAnotherHoldsIt) {
  Mutex mutex;
  bool taken = false;
  {
    MutexLock lock(mutex);
    std::thread other([&] {
      if (!mutex.TryLock()) return;
      taken = true;
      mutex.Unlock();
    });
    other.join();
  }

  EXPECT_FALSE(taken);
  if (!mutex.TryLock()) GTEST_FAIL() << "nobody holds it";
  mutex.Unlock();
}

TEST(WaitGroup, WaitsForAll) {
  WaitGroup group;
  int sum = 0;  // Plain: the group must order the threads' writes before the read.
  Mutex mutex;
  std::vector<std::thread> threads;
  group.Add(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      {
        MutexLock lock(mutex);
        ++sum;
      }
      group.Done();
    });
  }

  group.Wait();

  EXPECT_EQ(sum, 8);
  for (std::thread& thread : threads) thread.join();
}

TEST(WaitGroup, MayBeDestroyedAsSoonAsWaitReturns) {
  for (int i = 0; i < 200; ++i) {
    std::thread other;
    {
      WaitGroup group(1);
      other = std::thread([&group] { group.Done(); });
      group.Wait();
    }
    other.join();
  }
}

TEST(WaitGroup, WaitUntilGivesUpAtTheDeadline) {
  ManualClock clock;
  WaitGroup group(1);

  EXPECT_FALSE(group.WaitUntil(clock, clock.Now()));
  group.Done();

  EXPECT_TRUE(group.WaitUntil(clock, clock.Now()));
}

}  // namespace
}  // namespace zeze
