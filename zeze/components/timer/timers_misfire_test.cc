// What was there when a server ended, and what it missed.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/components/timer/testing/timers_fixture.h"
#include "zeze/components/timer/timers.h"

namespace zeze {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

class MisfireTest : public TimersTest {
 protected:
  // Every 10 s, first in 10 s; the server is away from then on, for 95 s.
  std::string Miss(MisfirePolicy policy, std::int32_t most = 100) {
    TimerSpec spec = TimerSpec::Every("count", 10s, 10s);
    spec.misfire = policy;
    spec.misfire_max = most;
    Open();
    const std::string id = server->Schedule(spec);
    begin = Now();
    server->Stop();
    clock.Advance(95s);
    Open();
    return id;
  }

  // The same, but the server was there: its process was paused, or had too much to do.
  std::string MissAlive(TimerSpec spec, MisfirePolicy policy, std::int32_t most = 100) {
    spec.misfire = policy;
    spec.misfire_max = most;
    Open();
    const std::string id = server->Schedule(spec);
    begin = Now();
    clock.Advance(95s);
    return id;
  }
  // Nobody is told of what is left out.
  std::int64_t AwaitNextTimeAfter(const std::string& id, std::int64_t time) {
    while (server->Find(id)->next_time_ms <= time) std::this_thread::yield();
    return server->Find(id)->next_time_ms;
  }

  std::int64_t begin = 0;
};

TEST_F(TimersTest, Seed002SurvivesARestart) {
  Open();
  const std::string id = server->Schedule(TimerSpec::Every("count", 10s, 10s));
  server->Stop();
  clock.Advance(5s);
  Open();
  EXPECT_EQ(server->timers.statistics().armed, 1U);
  clock.Advance(5010ms);
  server->told.Await(1);
  EXPECT_EQ(server->Effects(id), 1);
}

TEST_F(TimersTest, ManyNodesSurviveARestart) {
  Open();
  for (int i = 0; i < 1000; ++i) server->Schedule(TimerSpec::After("count", 100s));
  server->Stop();
  Open();
  EXPECT_EQ(server->timers.statistics().armed, 1000U);
  clock.Advance(101s);
  server->told.Await(1000);
}

// Effects and times are one transaction: a crash loses both or none.
TEST_F(TimersTest, ACrashLosesTheRunTogetherWithItsEffect) {
  Open();
  const std::string id = server->Schedule(TimerSpec::Every("count", 10s, 10s));
  ASSERT_TRUE(server->application->engine().CheckpointNow().ok());
  clock.Advance(10010ms);
  server->told.Await(1);
  EXPECT_EQ(server->Effects(id), 1);
  server->Crash();
  Open();
  server->told.Await(1);
  EXPECT_EQ(server->Effects(id), 1);
  EXPECT_EQ(server->Find(id)->happened_times, 1);
}

TEST_F(TimersTest, WhatHappensOnlyOnceIsNotSkipped) {
  Open();
  TimerSpec spec = TimerSpec::After("count", 10s);
  spec.misfire = MisfirePolicy::kSkip;
  const std::string id = server->Schedule(spec);
  server->Stop();
  clock.Advance(1h);
  Open();
  server->told.Await(1);
  EXPECT_EQ(server->Effects(id), 1);
}

TEST_F(MisfireTest, SkipLeavesOut) {
  const std::string id = Miss(MisfirePolicy::kSkip);
  EXPECT_EQ(server->Find(id)->next_time_ms, Now() + 10'000);
  EXPECT_EQ(server->Effects(id), 0);
}

TEST_F(MisfireTest, OnceRunsOnceAndBeginsAnew) {
  const std::string id = Miss(MisfirePolicy::kOnce);
  server->told.Await(1);
  EXPECT_EQ(server->Find(id)->next_time_ms, Now() + 10'000);
  EXPECT_EQ(server->Effects(id), 1);
}

// The peer runs it again and again until it has caught up.
TEST_F(MisfireTest, PeerDefect27OnceKeepingPhaseDoesNotBurst) {
  const std::string id = Miss(MisfirePolicy::kOnceKeepPhase);
  server->told.Await(1);
  EXPECT_EQ(server->Find(id)->next_time_ms, begin + 100'000);
  EXPECT_EQ(server->Effects(id), 1);
}

TEST_F(MisfireTest, AllRunsEach) {
  const std::string id = Miss(MisfirePolicy::kAll);
  server->told.Await(9);
  EXPECT_EQ(server->Find(id)->next_time_ms, begin + 100'000);
  EXPECT_EQ(server->Effects(id), 9);
}

TEST_F(MisfireTest, AllHasACap) {
  const std::string id = Miss(MisfirePolicy::kAll, 3);
  server->told.Await(3);
  EXPECT_EQ(server->Find(id)->next_time_ms, begin + 100'000);
  EXPECT_EQ(server->Effects(id), 3);
}

TEST_F(MisfireTest, SkipLeavesOutWhatALiveServerWasTooSlowFor) {
  const std::string id = MissAlive(TimerSpec::Every("count", 10s, 10s), MisfirePolicy::kSkip);
  EXPECT_EQ(AwaitNextTimeAfter(id, Now()), Now() + 10'000);
  EXPECT_EQ(server->Effects(id), 0);
  clock.Advance(10010ms);
  server->told.Await(1);
  EXPECT_EQ(server->Effects(id), 1);
}

TEST_F(MisfireTest, SkipEndsWhatHasNothingLeft) {
  TimerSpec spec = TimerSpec::Every("count", 10s, 10s);
  spec.end_time_ms = Now() + 60'000;
  const std::string id = MissAlive(spec, MisfirePolicy::kSkip);
  while (server->Find(id)) std::this_thread::yield();
  EXPECT_EQ(server->Effects(id), 0);
}

TEST_F(MisfireTest, OnceBeginsAnewOnALiveServer) {
  const std::string id = MissAlive(TimerSpec::Every("count", 10s, 10s), MisfirePolicy::kOnce);
  server->told.Await(1);
  EXPECT_EQ(server->Find(id)->next_time_ms, Now() + 10'000);
  EXPECT_EQ(server->Effects(id), 1);
}

TEST_F(MisfireTest, OnceKeepsPhaseOnALiveServer) {
  const std::string id =
      MissAlive(TimerSpec::Every("count", 10s, 10s), MisfirePolicy::kOnceKeepPhase);
  server->told.Await(1);
  EXPECT_EQ(server->Find(id)->next_time_ms, begin + 100'000);
  EXPECT_EQ(server->Effects(id), 1);
}

TEST_F(MisfireTest, AllHasACapOnALiveServer) {
  for (const TimerSpec& spec :
       {TimerSpec::Every("count", 10s, 10s), TimerSpec::Cron("count", "*/10 * * * * ?", "UTC")}) {
    const std::string id = MissAlive(spec, MisfirePolicy::kAll, 3);
    EXPECT_EQ(AwaitNextTimeAfter(id, Now()), begin / 10'000 * 10'000 + 100'000);
    EXPECT_EQ(server->Effects(id), 3);
    server->Stop();
    clock.Advance(5s);  // Back on the grid.
  }
}

// What fails is not missed: that goes on.
TEST_F(MisfireTest, SkipDoesNotLeaveOutWhatIsTriedAgain) {
  std::atomic<int> runs = 0;
  Open({.extra = [&](Transaction&, TimerContext&) -> std::int64_t {
    return runs++ < 2 ? result_code::kLogicError : result_code::kSuccess;
  }});
  TimerSpec spec = TimerSpec::Every("count", 10s, 1h);
  spec.misfire = MisfirePolicy::kSkip;
  const std::string id = server->Schedule(spec);
  clock.Advance(10010ms);
  for (const auto delay : {1010ms, 2010ms}) {
    const std::uint64_t failed = delay == 1010ms ? 1 : 2;
    while (server->timers.statistics().failed < failed) std::this_thread::yield();
    clock.Advance(delay);
  }
  server->told.Await(1);
  EXPECT_EQ(server->Effects(id), 1);
}

TEST_F(TimersTest, TimersOfANewerProgramAreLeftAlone) {
  Open({.timers = {.version = 2}});
  const std::string id = server->Schedule(TimerSpec::After("count", 10s));
  server->Stop();
  Open({.timers = {.version = 1}});
  EXPECT_EQ(server->timers.statistics().armed, 0U);
  EXPECT_TRUE(server->Find(id));
  server->Stop();
  Open({.timers = {.version = 3}});
  EXPECT_EQ(server->timers.statistics().armed, 1U);
}

TEST_F(TimersTest, ParkedTimersStayParked) {
  Open({.timers = {.retries = 0},
        .extra = [](Transaction&, TimerContext&) { return result_code::kLogicError; }});
  const std::string id = server->Schedule(TimerSpec::After("count", 1s));
  clock.Advance(1010ms);
  while (!server->Find(id)->parked) {
  }
  server->Stop();
  Open();
  EXPECT_EQ(server->timers.statistics().armed, 0U);
  EXPECT_TRUE(server->Find(id)->parked);
}

// It begins with the occurrence that failed, also if its server ends before.
TEST_F(MisfireTest, SkipDoesNotLeaveOutWhatAnOperatorResumes) {
  TimerSpec spec = TimerSpec::Every("count", 10s, 1h);
  spec.misfire = MisfirePolicy::kSkip;
  std::string id;
  for (const bool restart : {false, true}) {
    Open({.timers = {.retries = 0},
          .extra = [](Transaction&, TimerContext&) { return result_code::kLogicError; }});
    id = server->Schedule(spec);
    const std::int64_t planned = server->Find(id)->next_time_ms;
    clock.Advance(10010ms);
    while (!server->Find(id)->parked) std::this_thread::yield();
    server->Stop();
    clock.Advance(30min);
    Open();
    server->Call([&](Transaction& tx) { EXPECT_TRUE(server->timers.Resume(tx, id)); });
    if (restart) {
      server->Stop();
      clock.Advance(1min);
      Open();
    }
    while (server->Find(id)->next_time_ms == planned) std::this_thread::yield();
    EXPECT_EQ(server->Find(id)->next_time_ms, planned + 3'600'000);
    EXPECT_EQ(server->Effects(id), 1);
    server->Stop();
  }
}

TEST_F(TimersTest, TheWallClockIsFollowed) {
  Open();
  server->Schedule(TimerSpec::After("count", 3600s));
  clock.ShiftSystemTime(2h);
  clock.Advance(1001ms);  // It is looked at once a second.
  server->told.Await(1);
  const std::string late = server->Schedule(TimerSpec::After("count", 10s));
  clock.ShiftSystemTime(-1h);
  clock.Advance(20s);
  EXPECT_TRUE(server->Find(late));
  clock.Advance(1h);
  server->told.Await(2);
}

// The clock was a year ahead for a while. Timers that ran or were scheduled meanwhile go on when it
// is right again.
TEST_F(TimersTest, AWallClockThatWasWrongForAWhileLeavesNoTimerBehind) {
  Open();
  const std::string daily = server->Schedule(TimerSpec::Cron("count", "0 0 5 * * ?", "UTC"));
  const std::string often = server->Schedule(TimerSpec::Every("count", 10s, 10s));
  clock.ShiftSystemTime(24h * 365);
  clock.Advance(1001ms);
  server->told.Await(2);
  const std::string once = server->Schedule(TimerSpec::After("count", 30s));
  Told local;
  server->timers.ScheduleLocal(30s, Task("local", [&] { local.Add("local"); }));
  clock.ShiftSystemTime(-24h * 365);
  clock.Advance(1001ms);
  while (server->Find(once)->next_time_ms > Now() + 30'000) std::this_thread::yield();
  EXPECT_LE(server->Find(often)->next_time_ms, Now() + 10'000);
  EXPECT_EQ(server->Find(daily)->next_time_ms / 1000, Now() / 86'400'000 * 86'400 + 5 * 3600);
  ASSERT_TRUE(server->timers.AwaitLoaded(20s));
  clock.Advance(30010ms);
  server->told.Await(4);
  local.Await(1);
  EXPECT_EQ(server->Effects(once), 1);
  EXPECT_EQ(server->Effects(often), 2);
}

// By less than an hour.
TEST_F(TimersTest, TimersGoOnWhenTheWallClockIsSetBack) {
  for (const bool restarts : {false, true}) {
    Open();
    const std::string often = server->Schedule(TimerSpec::Every("count", 1s, 1s));
    const std::string cron = server->Schedule(TimerSpec::Cron("count", "* * * * * ?", "UTC"));
    clock.Advance(1010ms);
    server->told.Await(2);
    while (server->timers.statistics().armed < 2) std::this_thread::yield();
    if (restarts) server->Stop();
    clock.ShiftSystemTime(-30min);
    if (restarts) {
      Open();
    } else {
      clock.Advance(1010ms);  // It is looked at once a second.
    }
    const std::int64_t soon = Now() + 2000;
    const auto until = SystemClock().Now() + 20s;
    while (server->Find(often)->next_time_ms > soon || server->Find(cron)->next_time_ms > soon) {
      ASSERT_LT(SystemClock().Now(), until)
          << "they wait for " << server->Find(often)->next_time_ms - Now() << " and "
          << server->Find(cron)->next_time_ms - Now() << " ms";
      std::this_thread::yield();
    }
    for (const std::string& id : {often, cron}) {
      const std::int64_t before = server->Effects(id);
      for (int seconds = 0; server->Effects(id) < before + 3; ++seconds) {
        ASSERT_LT(seconds, 60) << id;
        const std::size_t told = server->told.count();
        clock.Advance(1010ms);
        server->told.Await(told + 1);
      }
    }
    server->Stop();
    EXPECT_EQ(0, server->timers.statistics().failed);
  }
}

}  // namespace
}  // namespace zeze
