#include "zeze/components/timer/alarm_clock.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/components/timer/errands.h"
#include "zeze/components/timer/fire_pace.h"
#include "zeze/components/timer/fire_rest.h"

namespace zeze {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::ElementsAre;

class AlarmClockTest : public ::testing::Test {
 protected:
  std::vector<std::int64_t> Await(std::size_t count) {
    const MutexLock lock(mutex);
    while (due.size() < count && changed.WaitFor(mutex, 20s)) {
    }
    return due;
  }
  std::int64_t In(std::int64_t ms) { return alarms.UnixNow() + ms; }

  Mutex mutex;
  CondVar changed;
  std::vector<std::int64_t> due;
  testing::ManualClock clock;
  AlarmClock alarms{{.clock = &clock}, [this](std::vector<Alarm>&& all) {
                      const MutexLock lock(mutex);
                      for (const Alarm& alarm : all) due.push_back(alarm.key);
                      changed.NotifyAll();
                    }};
};

TEST_F(AlarmClockTest, InTheOrderOfTheirTimes) {
  alarms.Set({.key = 1}, In(3000));
  alarms.Set({.key = 2}, In(1000));
  alarms.Set({.key = 3}, In(-5));
  EXPECT_THAT(Await(1), ElementsAre(3));  // At once.
  clock.Advance(5s);
  EXPECT_THAT(Await(3), ElementsAre(3, 2, 1));
}

TEST_F(AlarmClockTest, OfAKeyTheHighestSerialCounts) {
  alarms.Set({.key = 1, .serial = 2}, In(5000));
  alarms.Set({.key = 1, .serial = 1}, In(1000));  // Late news.
  alarms.Set({.key = 2, .serial = 1}, In(1000));
  alarms.Set({.key = 2, .serial = 1}, In(3000));
  alarms.Set({.key = 3}, In(2000));
  clock.Advance(2500ms);
  EXPECT_THAT(Await(1), ElementsAre(3));
  EXPECT_EQ(alarms.size(), 2U);
  clock.Advance(1s);
  EXPECT_THAT(Await(2), ElementsAre(3, 2));
}

TEST_F(AlarmClockTest, ClearedOnesAreNotDue) {
  for (std::int64_t key = 1; key <= 20'000; ++key) alarms.Set({.key = key}, In(1000));
  for (std::int64_t key = 1; key < 20'000; ++key) EXPECT_TRUE(alarms.Clear(key));
  EXPECT_FALSE(alarms.Clear(1));
  clock.Advance(2s);
  EXPECT_THAT(Await(1), ElementsAre(20'000));
}

TEST(FirePace, HalfOfTheCoresComputeAndMoreMayWait) {
  FirePace pace(4, 32);
  EXPECT_EQ(pace.limit(), 2U);
  for (int i = 0; i < 50; ++i) pace.Note(10ms, 10ms, false);
  EXPECT_EQ(pace.limit(), 2U);
  for (int i = 0; i < 50; ++i) pace.Note(1ms, 10ms, false);  // Its core was taken away.
  EXPECT_EQ(pace.limit(), 2U);
  for (int i = 0; i < 50; ++i) pace.Note(1ms, 10ms, true);
  EXPECT_GE(pace.limit(), 18U);
  for (int i = 0; i < 50; ++i) pace.Note(0ms, 10ms, true);
  EXPECT_EQ(pace.limit(), 32U);
  for (int i = 0; i < 50; ++i) pace.Note(10ms, 10ms, true);
  EXPECT_EQ(pace.limit(), 2U);
}

TEST(FireRest, TimersRestWhileTheyDisturbOthersAndLessIfMoreWait) {
  FireRest rest;
  std::chrono::nanoseconds now = std::chrono::hours(1);
  const auto run = [&](bool disturbed, bool more_wait, std::chrono::nanoseconds duration) {
    for (const auto end = now + duration; now < end; now += 1ms) {
      rest.Note(now, disturbed, more_wait);
    }
    return rest.Share(now);
  };
  EXPECT_EQ(run(false, true, 1s), 1) << "nobody is disturbed";
  EXPECT_LT(run(true, false, 60s), FireRest::kShareMin * 1.01);
  const double after_a_second = run(true, true, 1s);
  EXPECT_GT(after_a_second, FireRest::kShareMin * 1.5);
  EXPECT_LT(after_a_second, FireRest::kShareMin * 2.1);
  EXPECT_GT(run(true, true, 20s), 0.99) << "timers do not wait for ever";
  EXPECT_LT(run(true, false, 60s), FireRest::kShareMin * 1.01);
  EXPECT_LT(run(false, false, FireRest::kMemory / 2), FireRest::kShareMin * 1.01);
  EXPECT_EQ(run(false, false, FireRest::kMemory), 1) << "the disturbed ones did not come back";
}

TEST(Errands, UnhurriedOnesRestAndHoldNobodyUp) {
  Errands errands(SystemClock());
  const auto begin = SystemClock().Now();
  std::atomic<int> done = 0;
  std::atomic<int> seen_by_hurried = 0;
  std::atomic<int> tries = 0;
  for (int i = 0; i < 4; ++i) {
    errands.AddUnhurried([&] {
      SystemClock().SleepFor(std::chrono::milliseconds(1));
      if (++done == 1) errands.Add([&] { return (seen_by_hurried = done.load()) > 0; });
      return true;
    });
  }
  errands.AddUnhurried([&] { return ++tries > 2; });
  EXPECT_TRUE(errands.AwaitIdle(std::chrono::seconds(60)));
  EXPECT_EQ(4, done);
  EXPECT_EQ(3, tries);
  EXPECT_EQ(1, seen_by_hurried) << "it did not wait for the others";
  EXPECT_GE(SystemClock().Now() - begin, 4 * std::chrono::milliseconds(20)) << "they rested";
}

TEST(Errands, AreTriedUntilTheyAreDone) {
  Errands errands(SystemClock());
  int tries = 0;
  int others = 0;
  errands.Add([&] { return ++tries == 4; });
  errands.Add([&] { return ++others == 1; });
  EXPECT_TRUE(errands.AwaitIdle(20s));
  EXPECT_EQ(tries, 4);
  EXPECT_EQ(others, 1);
  errands.Add([] { return false; });
  errands.Stop();
}

}  // namespace
}  // namespace zeze
