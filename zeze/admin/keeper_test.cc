#include "zeze/admin/keeper.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeze::admin {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Wish = Keeper::Wish;

class KeeperTest : public ::testing::Test {
 protected:
  // Starts what waits, whenever that is.
  void StartWhenDue() {
    now_ = std::max(now_, keeper_.NextDeadline());
    ASSERT_EQ(Wish::kStart, keeper_.Next(now_));
    keeper_.OnStarted(now_);
  }
  // The time from the crash to the next start.
  Keeper::Time CrashAfter(Keeper::Time life) {
    now_ += life;
    keeper_.OnEnded(now_, {.signal = 11});
    const Keeper::Time delay = keeper_.NextDeadline() - now_;
    EXPECT_EQ(Wish::kNothing, keeper_.Next(now_ + delay - milliseconds(1)));
    StartWhenDue();
    return delay;
  }

  std::uint64_t random_ = 500;  // The middle: no jitter.
  Keeper keeper_{
      {.liveness_timeout = seconds(30), .start_timeout = minutes(5), .stop_timeout = seconds(20)},
      [this] { return random_; }};
  Keeper::Time now_ = seconds(100);
};

TEST_F(KeeperTest, StartsAtOnce) {
  EXPECT_EQ(Wish::kStart, keeper_.Next(now_));
  keeper_.OnStarted(now_);
  EXPECT_EQ(Wish::kNothing, keeper_.Next(now_));
}

TEST_F(KeeperTest, WaitsLongerAfterEachCrash) {
  StartWhenDue();
  for (const int expected : {1, 2, 4, 8, 16, 32, 60, 60, 60}) {
    EXPECT_EQ(seconds(expected), CrashAfter(seconds(1)));
  }
}

TEST_F(KeeperTest, ForgetsCrashesAfterAGoodMinute) {
  StartWhenDue();
  EXPECT_EQ(seconds(1), CrashAfter(seconds(1)));
  EXPECT_EQ(seconds(2), CrashAfter(seconds(59)));
  keeper_.OnBeat(now_ + seconds(40));
  EXPECT_EQ(seconds(1), CrashAfter(seconds(60)));
}

TEST_F(KeeperTest, JitterSpreadsTheDelays) {
  StartWhenDue();
  random_ = 0;
  EXPECT_EQ(milliseconds(800), CrashAfter(seconds(1)));
  random_ = 1000;
  EXPECT_EQ(milliseconds(2400), CrashAfter(seconds(1)));
}

TEST_F(KeeperTest, StatusZeroIsTheEnd) {
  StartWhenDue();
  keeper_.OnEnded(now_, {.status = 0});
  EXPECT_EQ(Wish::kFinish, keeper_.Next(now_));
  EXPECT_EQ(0, keeper_.exit_code());
}

TEST_F(KeeperTest, EveryOtherStatusIsACrashAndTheFencedOneToo) {
  for (const int status : {1, 86, 255}) {
    StartWhenDue();
    keeper_.OnEnded(now_, {.status = status});
    EXPECT_THAT(keeper_.story(), HasSubstr("ended with status " + std::to_string(status)));
  }
  EXPECT_EQ(3, keeper_.crashes());
}

TEST_F(KeeperTest, SaysWhatHappened) {
  StartWhenDue();
  keeper_.OnEnded(now_, {.signal = 11});
  EXPECT_EQ("was killed by signal 11 (Segmentation fault); it is started again in 1s",
            keeper_.story());
}

TEST_F(KeeperTest, KillsWhatDoesNotSayThatItLives) {
  StartWhenDue();
  keeper_.OnBeat(now_ += seconds(200));
  keeper_.OnBeat(now_ += seconds(29));
  EXPECT_EQ(now_ + seconds(30), keeper_.NextDeadline());
  EXPECT_EQ(Wish::kNothing, keeper_.Next(now_ + seconds(29)));
  EXPECT_EQ(Wish::kKill, keeper_.Next(now_ += seconds(30)));
  EXPECT_EQ(Wish::kNothing, keeper_.Next(now_)) << "once";
  keeper_.OnEnded(now_, {.signal = 9});
  EXPECT_THAT(keeper_.story(), HasSubstr("did not say for 30s that it lives"));
  StartWhenDue();
}

TEST_F(KeeperTest, AStartMayTakeLonger) {
  StartWhenDue();
  EXPECT_EQ(Wish::kNothing, keeper_.Next(now_ + minutes(4)));
  EXPECT_EQ(Wish::kKill, keeper_.Next(now_ + minutes(5)));
}

TEST_F(KeeperTest, WhoWasPausedItselfGivesAnotherChance) {
  StartWhenDue();
  keeper_.OnBeat(now_);
  now_ += minutes(60);
  EXPECT_EQ(Wish::kNothing, keeper_.Next(now_));
  EXPECT_EQ(Wish::kKill, keeper_.Next(now_ + seconds(30)));
}

TEST_F(KeeperTest, PassesOnTheWishToEndAndWaits) {
  StartWhenDue();
  keeper_.OnStopRequested(now_);
  EXPECT_EQ(Wish::kTerminate, keeper_.Next(now_));
  EXPECT_EQ(Wish::kNothing, keeper_.Next(now_ + seconds(19)));
  keeper_.OnEnded(now_ + seconds(19), {.status = 3});
  EXPECT_EQ(Wish::kFinish, keeper_.Next(now_));
  EXPECT_EQ(3, keeper_.exit_code());
}

TEST_F(KeeperTest, KillsWhatDoesNotEndInTime) {
  StartWhenDue();
  keeper_.OnStopRequested(now_);
  EXPECT_EQ(Wish::kTerminate, keeper_.Next(now_));
  EXPECT_EQ(Wish::kKill, keeper_.Next(now_ + seconds(20)));
  keeper_.OnEnded(now_ + seconds(20), {.signal = 9});
  EXPECT_EQ(128 + 9, keeper_.exit_code());
}

TEST_F(KeeperTest, EndsAtOnceBetweenTwoRuns) {
  StartWhenDue();
  keeper_.OnEnded(now_, {.status = 1});
  keeper_.OnStopRequested(now_);
  EXPECT_EQ(Wish::kFinish, keeper_.Next(now_));
}

TEST_F(KeeperTest, AFailedStartIsACrash) {
  ASSERT_EQ(Wish::kStart, keeper_.Next(now_));
  keeper_.OnStartFailed(now_, "no such file");
  EXPECT_THAT(keeper_.story(), HasSubstr("could not be started: no such file"));
  EXPECT_EQ(now_ + seconds(1), keeper_.NextDeadline());
}

}  // namespace
}  // namespace zeze::admin
