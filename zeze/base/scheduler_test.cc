// With a manual clock and executor, where the test says what happens when; the thread of the
// scheduler appears only in the last tests.

#include "zeze/base/scheduler.h"

#include <atomic>
#include <chrono>
#include <ctime>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/executor.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/testing/manual_executor.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/usage_error.h"
#include "zeze/base/wait_group.h"

namespace zeze {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::CapturedLog;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::ManualClock;
using testing::ManualExecutor;

class SchedulerTest : public ::testing::Test {
 protected:
  // Moves time in steps of a second and runs what becomes due.
  void Pass(nanoseconds time) {
    for (nanoseconds passed{}; passed < time; passed += seconds(1)) {
      clock_.Advance(seconds(1));
      scheduler_.RunDue();
      executor_.RunAll();
    }
  }

  Task Log(const char* name) {
    return Task(name, [this, name] { ran_.emplace_back(name); });
  }

  ManualClock clock_;
  ManualExecutor executor_;
  std::vector<std::string> discarded_;
  Scheduler scheduler_{
      executor_, {.clock = &clock_, .start_thread = false, .on_discard = [this](const char* name) {
                    discarded_.emplace_back(name);
                  }}};
  std::vector<std::string> ran_;
};

TEST_F(SchedulerTest, RunsOnceAfterTheDelayInTheOrderOfTheirTime) {
  scheduler_.After(seconds(3), Log("three"));
  scheduler_.After(seconds(1), Log("one"));
  scheduler_.After(seconds(0), Log("now"));

  scheduler_.RunDue();
  executor_.RunAll();
  EXPECT_THAT(ran_, ElementsAre("now"));
  Pass(seconds(2));
  EXPECT_THAT(ran_, ElementsAre("now", "one"));
  Pass(hours(1));

  EXPECT_THAT(ran_, ElementsAre("now", "one", "three"));
  EXPECT_EQ(scheduler_.PendingCount(), 0u);
}

TEST_F(SchedulerTest, RepeatsWithoutDrift) {
  int runs = 0;
  scheduler_.Every(seconds(1), seconds(10), [&] { ++runs; });

  Pass(seconds(60));

  EXPECT_EQ(runs, 6);  // At 1, 11, ... 51.
}

TEST_F(SchedulerTest, MomentsThatPassWhileATaskRunsAreLeftOut) {
  int runs = 0;
  scheduler_.Every(seconds(10), [&] {
    ++runs;
    if (runs == 1) clock_.Advance(seconds(35));  // A slow run, from 10 to 45.
  });

  Pass(seconds(10));
  Pass(seconds(4));
  EXPECT_EQ(runs, 1);
  Pass(seconds(1));  // 50.

  EXPECT_EQ(runs, 2);
}

TEST_F(SchedulerTest, TaskThatIsStillQueuedIsNotQueuedAgain) {
  scheduler_.Every(seconds(1), Log("tick"));

  for (int i = 0; i < 5; ++i) {
    clock_.Advance(seconds(1));
    scheduler_.RunDue();
  }

  EXPECT_EQ(executor_.size(), 1u);
}

TEST_F(SchedulerTest, CanceledTaskDoesNotRunAndLetsGoOfWhatItOwns) {
  const auto witness = std::make_shared<int>(1);
  ScheduledTask task = scheduler_.After(seconds(1), [witness] { FAIL() << "it ran"; });
  EXPECT_TRUE(task.IsPending());

  EXPECT_TRUE(task.Cancel());
  EXPECT_FALSE(task.Cancel());
  Pass(seconds(2));

  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_FALSE(task.IsPending());
}

TEST_F(SchedulerTest, CancelReachesATaskThatWaitsInTheExecutor) {
  ScheduledTask task = scheduler_.After(seconds(1), [] { FAIL() << "it ran"; });
  clock_.Advance(seconds(1));
  scheduler_.RunDue();

  EXPECT_TRUE(task.Cancel());
  executor_.RunAll();
}

TEST_F(SchedulerTest, CancelComesTooLateAfterTheRun) {
  ScheduledTask task = scheduler_.After(seconds(1), Log("ran"));
  Pass(seconds(1));

  EXPECT_FALSE(task.Cancel());
  EXPECT_THAT(ran_, ElementsAre("ran"));
}

TEST_F(SchedulerTest, RepeatedTaskMayCancelItself) {
  int runs = 0;
  ScheduledTask task;
  task = scheduler_.Every(seconds(1), [&] {
    if (++runs == 3) task.Cancel();
  });

  Pass(seconds(10));

  EXPECT_EQ(runs, 3);
  EXPECT_EQ(scheduler_.PendingCount(), 0u);
}

TEST_F(SchedulerTest, ThrowingTaskIsLoggedAndRepeatedAllTheSame) {
  CapturedLog log;
  int runs = 0;
  scheduler_.Every(seconds(1), Task("tick", [&] {
                     ++runs;
                     throw std::runtime_error("boom");
                   }));

  Pass(seconds(2));

  EXPECT_EQ(runs, 2);
  EXPECT_THAT(log.lines(), Contains("error: scheduled task \"tick\" threw: boom"));
}

TEST_F(SchedulerTest, DailyTaskRunsAtItsTimeOfDay) {
  std::vector<std::string> times;
  const auto local_time = [this] {
    const std::time_t now = std::chrono::system_clock::to_time_t(clock_.SystemNow());
    std::tm local{};
    localtime_r(&now, &local);
    char text[16] = "";
    std::strftime(text, sizeof text, "%H:%M:%S", &local);
    return std::string(text);
  };
  scheduler_.Daily({.hour = 3, .minute = 30}, [&] { times.push_back(local_time()); });

  Pass(hours(72));

  EXPECT_THAT(times, ElementsAre("03:30:00", "03:30:00", "03:30:00"));
}

TEST_F(SchedulerTest, DailyTaskFollowsAWallClockThatIsSet) {
  int runs = 0;
  scheduler_.Daily({.hour = 3, .minute = 30}, [&] { ++runs; });

  Pass(hours(25));
  EXPECT_EQ(runs, 1);
  clock_.ShiftSystemTime(hours(24));  // It passes the time of day once more.
  Pass(minutes(2));
  EXPECT_EQ(runs, 2);
  clock_.ShiftSystemTime(-hours(48));
  Pass(hours(24));

  EXPECT_EQ(runs, 3);
}

TEST_F(SchedulerTest, ShutdownReportsWhatWillNotRun) {
  CapturedLog log;
  scheduler_.After(seconds(1), Log("queued"));
  clock_.Advance(seconds(1));
  scheduler_.RunDue();
  scheduler_.After(hours(1), Log("far"));
  scheduler_.Every(hours(1), Log("repeated"));

  scheduler_.Shutdown();
  executor_.RunAll();
  scheduler_.After(seconds(1), Log("late"));

  EXPECT_THAT(ran_, ElementsAre());
  EXPECT_THAT(discarded_, ElementsAre("far", "queued", "late"));
  EXPECT_THAT(log.lines(),
              Contains("warning: scheduler was shut down before 1 scheduled tasks were due"));
}

TEST(Scheduler, RefusesAnEmptyTask) {
  ManualExecutor executor;
  Scheduler scheduler(executor, {.start_thread = false});
  EXPECT_THROW(scheduler.After(seconds(1), {}), UsageError);
  EXPECT_THROW(scheduler.Every(seconds(1), {}), UsageError);
  EXPECT_THROW(scheduler.Daily({.hour = 1}, {}), UsageError);
  EXPECT_EQ(scheduler.PendingCount(), 0U);
}

TEST(Scheduler, ThreadRunsWhatIsDue) {
  ThreadPool pool({.thread_count = 2});
  Scheduler scheduler(pool, {});
  WaitGroup group(4);
  std::atomic<int> left = 3;

  scheduler.After(milliseconds(1), [&] { group.Done(); });
  ScheduledTask ticks = scheduler.Every(milliseconds(1), [&] {
    if (left-- > 0) group.Done();
  });
  scheduler.After(hours(1), [] { FAIL() << "it ran"; });
  group.Wait();

  EXPECT_TRUE(ticks.Cancel());
}

TEST(Scheduler, ThreadFollowsAManualClock) {
  ManualClock clock;
  ThreadPool pool({.thread_count = 1});
  Scheduler scheduler(pool, {.clock = &clock});
  WaitGroup group(1);

  scheduler.After(hours(24), [&] { group.Done(); });
  clock.Advance(hours(24));

  group.Wait();
}

TEST(Scheduler, ShutdownWaitsForTheTaskThatRuns) {
  ThreadPool pool({.thread_count = 1});
  auto scheduler = std::make_unique<Scheduler>(pool, Scheduler::Options{});
  std::latch running(1);
  std::atomic<bool> finished = false;
  scheduler->After(nanoseconds(0), [&] {
    running.count_down();
    // Shutdown has begun as soon as nothing can be scheduled any more.
    while (scheduler->After(hours(1), [] {}).IsPending()) {
    }
    finished = true;
  });
  running.wait();

  scheduler->Shutdown();

  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace zeze
