#include "zeze/arch/provider/internal/load_level.h"

#include <chrono>

#include <gtest/gtest.h>

#include "zeze/app/protocol.h"

namespace zeze::arch::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum LoadLevel;

TEST(LoadLevelTest, ShedsTheLeastImportantFirst) {
  EXPECT_FALSE(IsShed(CriticalLevel::kSheddable, kFine));
  EXPECT_TRUE(IsShed(CriticalLevel::kSheddable, kThreshold));
  EXPECT_FALSE(IsShed(CriticalLevel::kNormal, kThreshold));
  EXPECT_TRUE(IsShed(CriticalLevel::kNormal, kOverload));
  EXPECT_TRUE(IsShed(CriticalLevel::kCritical, kOverload));
  EXPECT_FALSE(IsShed(CriticalLevel::kCriticalPlus, kOverload));
}

TEST(OverloadMeterTest, GoesByHowLongProbesWait) {
  OverloadMeter meter(seconds(2), seconds(4));
  EXPECT_EQ(meter.Level(seconds(100)), kFine);

  EXPECT_TRUE(meter.TryBegin(seconds(100)));
  EXPECT_FALSE(meter.TryBegin(seconds(101)));
  meter.End(milliseconds(101'999));
  EXPECT_EQ(meter.Level(seconds(110)), kFine);

  EXPECT_TRUE(meter.TryBegin(seconds(110)));
  meter.End(seconds(112));
  EXPECT_EQ(meter.Level(seconds(113)), kThreshold);

  EXPECT_TRUE(meter.TryBegin(seconds(120)));
  meter.End(seconds(124));
  EXPECT_EQ(meter.Level(seconds(125)), kOverload);
}

TEST(OverloadMeterTest, AProbeThatWaitsCountsByItsAge) {
  OverloadMeter meter(seconds(2), seconds(4));
  meter.TryBegin(seconds(10));

  EXPECT_EQ(meter.Level(seconds(11)), kFine);
  EXPECT_EQ(meter.Level(seconds(12)), kThreshold);
  EXPECT_EQ(meter.Level(seconds(14)), kOverload);
}

TEST(OverloadMeterTest, AFullQueueIsOverload) {
  OverloadMeter meter(seconds(2), seconds(4));
  meter.TryBegin(seconds(10));
  meter.Refused();

  EXPECT_EQ(meter.Level(seconds(10)), kOverload);
  EXPECT_TRUE(meter.TryBegin(seconds(11)));
}

TEST(LoadScheduleTest, ReportsEveryPeriodWhenThereIsNothingSpecial) {
  LoadSchedule schedule(seconds(2), 1000, 100);
  EXPECT_TRUE(schedule.Due(seconds(10), kFine, 5, 0));
  EXPECT_FALSE(schedule.Due(seconds(11), kFine, 5, 0));
  EXPECT_TRUE(schedule.Due(seconds(12), kFine, 5, 0));
}

TEST(LoadScheduleTest, ReportsAChangeAtOnce) {
  LoadSchedule schedule(seconds(2), 1000, 100);
  EXPECT_TRUE(schedule.Due(seconds(10), kFine, 5, 0));
  EXPECT_TRUE(schedule.Due(milliseconds(10'100), kOverload, 5, 0));
  EXPECT_FALSE(schedule.Due(milliseconds(10'200), kOverload, 5, 0));
  EXPECT_TRUE(schedule.Due(milliseconds(11'100), kOverload, 5, 0));
  EXPECT_TRUE(schedule.Due(milliseconds(11'200), kFine, 5, 0));
}

TEST(LoadScheduleTest, ReportsEverySecondAboveTheProposedNumberOfUsers) {
  LoadSchedule schedule(seconds(2), 1000, 100);
  EXPECT_TRUE(schedule.Due(seconds(10), kFine, 1001, 0));
  EXPECT_TRUE(schedule.Due(seconds(11), kFine, 1001, 0));
}

TEST(LoadScheduleTest, AfterARushItPausesUntilItIsDigested) {
  LoadSchedule schedule(seconds(2), 1000, 100);
  EXPECT_TRUE(schedule.Due(seconds(10), kFine, 500, 350));
  EXPECT_FALSE(schedule.Due(seconds(13), kFine, 500, 0));
  EXPECT_TRUE(schedule.Due(seconds(14), kFine, 500, 0));
}

}  // namespace
}  // namespace zeze::arch::internal
