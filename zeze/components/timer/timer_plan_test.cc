#include "zeze/components/timer/timer_plan.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"

namespace zeze {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

constexpr std::int64_t kNow = 1'704'067'200'000;  // 2024-01-01 00:00:00 UTC.
constexpr std::int64_t kGrace = 1000;

TimerBean Every(std::chrono::milliseconds period, MisfirePolicy policy, std::int32_t most = 100) {
  TimerSpec spec = TimerSpec::Every("h", period, period);
  spec.misfire = policy;
  spec.misfire_max = most;
  return PlanTimer(spec, kNow).value();
}

TEST(TimerPlan, ALittleLateKeepsEveryOccurrence) {
  TimerBean timer = Every(10s, MisfirePolicy::kSkip);
  ASSERT_TRUE(AdvanceTimer(timer, kNow + 10'900, kGrace));
  EXPECT_EQ(PlannedTime(timer), kNow + 20'000);
  ASSERT_TRUE(AdvanceTimer(timer, kNow + 25'000, kGrace));
  EXPECT_EQ(PlannedTime(timer), kNow + 30'000);
}

TEST(TimerPlan, MuchTooLateGoesOnWithWhatIsToCome) {
  for (const auto policy :
       {MisfirePolicy::kSkip, MisfirePolicy::kOnce, MisfirePolicy::kOnceKeepPhase}) {
    TimerBean timer = Every(10s, policy);
    ASSERT_TRUE(AdvanceTimer(timer, kNow + 45'000, kGrace));
    EXPECT_EQ(PlannedTime(timer), kNow + 50'000);
  }
}

TEST(TimerPlan, ShortPeriodsDoNotPileUp) {
  TimerBean timer = Every(10ms, MisfirePolicy::kSkip);
  ASSERT_TRUE(AdvanceTimer(timer, kNow + 500, kGrace));
  EXPECT_EQ(PlannedTime(timer), kNow + 500);  // One at once, not fifty.
}

TEST(TimerPlan, KeepingPhaseLosesNothingThatIsLateByLessThanTheGrace) {
  TimerBean timer = Every(100ms, MisfirePolicy::kOnceKeepPhase);
  for (std::int64_t planned = kNow + 200; planned <= kNow + 1000; planned += 100) {
    ASSERT_TRUE(AdvanceTimer(timer, kNow + 1050, kGrace));
    EXPECT_EQ(PlannedTime(timer), planned);
  }
  ASSERT_TRUE(AdvanceTimer(timer, kNow + 2010, kGrace));  // That one was missed.
  EXPECT_EQ(PlannedTime(timer), kNow + 2100);
}

TEST(TimerPlan, CronLosesNothingThatIsLateByLessThanTheGrace) {
  TimerBean timer = PlanTimer(TimerSpec::Cron("h", "* * * * * ?", "UTC"), kNow).value();
  ASSERT_TRUE(AdvanceTimer(timer, kNow + 2900, 2000));
  EXPECT_EQ(PlannedTime(timer), kNow + 2000);
}

TEST(TimerPlan, AllOfManyAreTheLast) {
  TimerBean timer = Every(10s, MisfirePolicy::kAll, 3);
  ASSERT_TRUE(ApplyMisfire(timer, kNow + 95'000, kGrace));
  EXPECT_EQ(PlannedTime(timer), kNow + 70'000);
  ASSERT_TRUE(AdvanceTimer(timer, kNow + 95'000, kGrace));
  EXPECT_EQ(PlannedTime(timer), kNow + 80'000);
}

TEST(TimerPlan, AllOfManyCronOccurrencesAreTheLast) {
  TimerSpec spec = TimerSpec::Cron("h", "0 * * * * ?", "UTC");
  spec.misfire = MisfirePolicy::kAll;
  spec.misfire_max = 3;
  TimerBean timer = PlanTimer(spec, kNow).value();
  const std::int64_t year = std::int64_t{365} * 86'400'000;
  ASSERT_TRUE(ApplyMisfire(timer, kNow + year + 30'000, kGrace));
  EXPECT_EQ(PlannedTime(timer), kNow + year - 120'000);
}

TEST(TimerPlan, CronPolicies) {
  TimerSpec spec = TimerSpec::Cron("h", "0 0 5 * * ?", "UTC");
  const std::int64_t day = 86'400'000;
  const std::int64_t late = kNow + 3 * day + 6 * 3'600'000;
  for (const auto& [policy, planned, next] :
       std::vector<std::tuple<MisfirePolicy, std::int64_t, std::int64_t>>{
           {MisfirePolicy::kSkip, kNow + 4 * day + 18'000'000, kNow + 5 * day + 18'000'000},
           {MisfirePolicy::kOnce, late, kNow + 4 * day + 18'000'000},
           {MisfirePolicy::kOnceKeepPhase, kNow + 18'000'000, kNow + 4 * day + 18'000'000},
           {MisfirePolicy::kAll, kNow + 18'000'000, kNow + day + 18'000'000}}) {
    spec.misfire = policy;
    TimerBean timer = PlanTimer(spec, kNow).value();
    ASSERT_TRUE(ApplyMisfire(timer, late, kGrace));
    EXPECT_EQ(PlannedTime(timer), planned);
    ASSERT_TRUE(AdvanceTimer(timer, std::max(late, planned), kGrace));
    EXPECT_EQ(PlannedTime(timer), next);
  }
}

// A clock that was a year ahead for a while.
TEST(TimerPlan, WhatWasPlannedByAWrongClockIsPlannedAnew) {
  const std::int64_t year = std::int64_t{365} * 86'400'000;
  TimerBean timer = Every(10s, MisfirePolicy::kOnceKeepPhase);
  ASSERT_TRUE(AdvanceTimer(timer, kNow + year, kGrace));
  EXPECT_FALSE(HealPlan(timer, kNow + year));
  EXPECT_FALSE(HealPlan(timer, kNow + year - 3'600'000));
  ASSERT_TRUE(HealPlan(timer, kNow + 15'000));
  EXPECT_EQ(PlannedTime(timer), kNow + 20'000);
  EXPECT_FALSE(HealPlan(timer, kNow + 15'000));

  timer = PlanTimer(TimerSpec::After("h", 30s), kNow + year).value();
  ASSERT_TRUE(HealPlan(timer, kNow));
  EXPECT_EQ(PlannedTime(timer), kNow + 30'000);

  for (const bool ran : {false, true}) {
    timer = PlanTimer(TimerSpec::Cron("h", "0 0 5 * * ?", "UTC"), kNow + year).value();
    if (ran) {
      ASSERT_TRUE(AdvanceTimer(timer, PlannedTime(timer), kGrace));
    }
    ASSERT_TRUE(HealPlan(timer, kNow));
    EXPECT_EQ(PlannedTime(timer), kNow + 5 * 3'600'000);
    EXPECT_FALSE(HealPlan(timer, kNow));
  }
}

TEST(TimerPlan, WhatIsPlannedForLongIsNotTakenForAWrongClock) {
  TimerBean timer = PlanTimer(TimerSpec::Every("h", 24h * 365, 24h * 365), kNow).value();
  EXPECT_FALSE(HealPlan(timer, kNow));
  timer = PlanTimer(TimerSpec::Cron("h", "0 0 5 1 1 ? 2030", "UTC"), kNow).value();
  EXPECT_FALSE(HealPlan(timer, kNow));
  ASSERT_TRUE(AdvanceTimer(timer = Every(10s, MisfirePolicy::kAll), kNow + 10'000, kGrace));
  SetPlannedTime(timer, kNow + 100 * 86'400'000LL);  // By its handler.
  EXPECT_FALSE(HealPlan(timer, kNow + 11'000));
}

// Its clock was set back by so much, right after it ran at kNow.
TimerBean Ran(const TimerSpec& spec, std::int64_t at = kNow) {
  TimerBean timer = PlanTimer(spec, at - 1000).value();
  SetPlannedTime(timer, at);
  EXPECT_TRUE(AdvanceTimer(timer, at, kGrace));
  return timer;
}

TEST(TimerPlan, APeriodGoesOnWhenTheClockIsSetBack) {
  constexpr std::int64_t kHalfHour = 1'800'000;
  for (const std::int64_t back :
       {std::int64_t{1000}, std::int64_t{7300}, kHalfHour, 48 * kHalfHour}) {
    TimerBean timer = Ran(TimerSpec::Every("h", 1s, 1s));
    const std::int64_t now = kNow + 300 - back;
    ASSERT_TRUE(HealPlan(timer, now, PlannedBy::kThisServer)) << back;
    EXPECT_GE(PlannedTime(timer), now + 500);
    EXPECT_LE(PlannedTime(timer), now + 1500);
    EXPECT_EQ(PlannedTime(timer) % 1000, kNow % 1000) << "its phase";
    EXPECT_FALSE(HealPlan(timer, now, PlannedBy::kThisServer));
  }
  // By much less than a period: it keeps its moment.
  TimerBean timer = Ran(TimerSpec::Every("h", 24h, 24h));
  EXPECT_FALSE(HealPlan(timer, kNow - kHalfHour, PlannedBy::kThisServer));
  EXPECT_EQ(PlannedTime(timer), kNow + 48 * kHalfHour);
  // As its handler has said.
  timer = Ran(TimerSpec::Every("h", 1s, 1s));
  SetPlannedTime(timer, kNow + kHalfHour);
  ASSERT_TRUE(HealPlan(timer, kNow - kHalfHour, PlannedBy::kThisServer));
  EXPECT_EQ(PlannedTime(timer), kNow);
  // Clocks of other servers may differ.
  timer = Ran(TimerSpec::Every("h", 1s, 1s));
  EXPECT_FALSE(HealPlan(timer, kNow - kHalfHour, PlannedBy::kAnotherServer));
}

TEST(TimerPlan, ACronTimerForEveryHourGoesOnWhenTheClockIsSetBack) {
  constexpr std::int64_t kMinute = 60'000;
  TimerBean timer = Ran(TimerSpec::Cron("h", "* * * * * ?", "UTC"));
  ASSERT_TRUE(HealPlan(timer, kNow - 30 * kMinute, PlannedBy::kThisServer));
  EXPECT_EQ(PlannedTime(timer), kNow - 30 * kMinute + 1000);
  EXPECT_FALSE(HealPlan(timer, kNow - 30 * kMinute, PlannedBy::kThisServer));

  timer = Ran(TimerSpec::Cron("h", "0 */10 * * * ?", "UTC"));
  ASSERT_TRUE(HealPlan(timer, kNow - 29 * kMinute, PlannedBy::kThisServer));
  EXPECT_EQ(PlannedTime(timer), kNow - 20 * kMinute);

  // One moment that comes again is not repeated.
  timer = Ran(TimerSpec::Cron("h", "0 0 * * * ?", "UTC"));
  EXPECT_FALSE(HealPlan(timer, kNow - 5 * kMinute, PlannedBy::kThisServer));
  EXPECT_EQ(PlannedTime(timer), kNow + 60 * kMinute);

  // As its handler has said.
  timer = Ran(TimerSpec::Cron("h", "* * * * * ?", "UTC"));
  SetPlannedTime(timer, kNow + 60 * kMinute);
  EXPECT_FALSE(HealPlan(timer, kNow - 30 * kMinute, PlannedBy::kThisServer));

  timer = Ran(TimerSpec::Cron("h", "* * * * * ?", "UTC"));
  EXPECT_FALSE(HealPlan(timer, kNow - 30 * kMinute, PlannedBy::kAnotherServer));
}

TEST(TimerPlan, ATimeOfDayIsNotRepeatedWhenTheClockIsSetBack) {
  constexpr std::int64_t kMinute = 60'000;
  const std::int64_t five = kNow + 300 * kMinute;
  TimerBean timer = Ran(TimerSpec::Cron("h", "0 0 5 * * ?", "UTC"), five);
  EXPECT_FALSE(HealPlan(timer, five - 10 * kMinute, PlannedBy::kThisServer));
  EXPECT_EQ(PlannedTime(timer), five + 24 * 60 * kMinute);
  timer = Ran(TimerSpec::Cron("h", "0 */10 4,5 * * ?", "UTC"), five);
  EXPECT_FALSE(HealPlan(timer, five - 55 * kMinute, PlannedBy::kThisServer));

  // It has not had any: the next one is to come.
  timer = PlanTimer(TimerSpec::Cron("h", "0 0 5 * * ?", "UTC"), five + kMinute).value();
  ASSERT_TRUE(HealPlan(timer, five - 10 * kMinute, PlannedBy::kThisServer));
  EXPECT_EQ(PlannedTime(timer), five);
}

TEST(TimerPlan, CountsTimes) {
  TimerSpec spec = TimerSpec::Every("h", 1s, 1s);
  spec.times = 2;
  TimerBean timer = PlanTimer(spec, kNow).value();
  EXPECT_TRUE(AdvanceTimer(timer, kNow + 1000, kGrace));
  EXPECT_EQ(HappenTimes(timer), 1);
  EXPECT_EQ(RemainTimes(timer), 1);
  EXPECT_FALSE(AdvanceTimer(timer, kNow + 2000, kGrace));
  EXPECT_EQ(HappenTimes(timer), 2);  // The last of a cron timer, too, which the peer forgets.
  spec = TimerSpec::Cron("h", "* * * * * ?", "UTC");
  spec.times = 1;
  timer = PlanTimer(spec, kNow).value();
  EXPECT_FALSE(AdvanceTimer(timer, kNow + 1000, kGrace));
  EXPECT_EQ(HappenTimes(timer), 1);
}

TEST(TimerPlan, NothingIsLeftWhenTheEndPassedMeanwhile) {
  TimerSpec spec = TimerSpec::Every("h", 1s, 1s);
  spec.end_time_ms = kNow + 60'000;
  spec.misfire = MisfirePolicy::kSkip;
  TimerBean timer = PlanTimer(spec, kNow).value();
  EXPECT_FALSE(ApplyMisfire(timer, kNow + 100'000, kGrace));
  spec.misfire = MisfirePolicy::kOnce;
  timer = PlanTimer(spec, kNow).value();
  EXPECT_TRUE(ApplyMisfire(timer, kNow + 100'000, kGrace));
  EXPECT_FALSE(AdvanceTimer(timer, kNow + 100'000, kGrace));
}

TEST(TimerPlan, WhatCannotBeMeantIsRefused) {
  const auto error = [](const auto& change) -> std::string {
    TimerSpec spec = TimerSpec::Every("h", 1s, 1s);
    change(spec);
    const Result<TimerBean> planned = PlanTimer(spec, kNow);
    if (planned.ok()) return "accepted";
    EXPECT_EQ(planned.error().code(), ErrorCode::kInvalidArgument);
    return planned.error().message();
  };
  EXPECT_EQ(error([](TimerSpec& spec) { spec.end_time_ms = -5; }),
            "timer: it ends at -5: say a time in Unix milliseconds, or 0 for no end");
  EXPECT_EQ(error([](TimerSpec& spec) { spec.misfire = static_cast<MisfirePolicy>(99); }),
            "timer: a misfire policy of 99: MisfirePolicy has no such value");
  EXPECT_EQ(error([](TimerSpec& spec) { spec.time_zone = "Europe/Berlin"; }),
            "timer: a time zone 'Europe/Berlin' without a cron expression");
  EXPECT_EQ(error([](TimerSpec& spec) {
              spec = TimerSpec::Cron("h", "0 0 5 * * ?", "UTC");
              spec.repeats = true;
            }),
            "timer: it has a cron expression and a delay or period: only one of the two can be");
}

// What a handler may say at will.
TEST(TimerPlan, NextTimesStayNumbers) {
  for (const std::int64_t time : {INT64_MIN, std::int64_t{-5}, INT64_MAX}) {
    for (const auto policy : {MisfirePolicy::kSkip, MisfirePolicy::kOnce,
                              MisfirePolicy::kOnceKeepPhase, MisfirePolicy::kAll}) {
      TimerBean timer = Every(10s, policy);
      SetPlannedTime(timer, time);
      EXPECT_GE(PlannedTime(timer), 0);
      EXPECT_EQ(PlannedTime(timer) > kNow, time > 0);
      EXPECT_TRUE(ApplyMisfire(timer, kNow, kGrace));
      EXPECT_TRUE(AdvanceTimer(timer, kNow, kGrace));
      EXPECT_GT(PlannedTime(timer), kNow - 100 * 10'000);
    }
  }
}

}  // namespace
}  // namespace zeze
