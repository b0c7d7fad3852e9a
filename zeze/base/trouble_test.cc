#include "zeze/base/trouble.h"

#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/captured_log.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(Trouble, GrowsToItsMaximumAndStartsAgainWhenItIsOver) {
  testing::CapturedLog log;
  Trouble trouble({.what = "it fails",
                   .over = "it works",
                   .first_delay = milliseconds(100),
                   .delay_max = milliseconds(300)});
  std::vector<std::chrono::nanoseconds> delays;
  for (int i = 0; i < 4; ++i) delays.push_back(trouble.Failed("why", seconds(10 + i)));
  EXPECT_THAT(delays, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(300),
                                  milliseconds(300)));
  EXPECT_TRUE(trouble.active());
  EXPECT_EQ(seconds(10), trouble.since());
  EXPECT_EQ(seconds(13) + milliseconds(300), trouble.next_try());
  trouble.Over(seconds(15));
  trouble.Over(seconds(16));

  EXPECT_FALSE(trouble.active());
  EXPECT_EQ(milliseconds(100), trouble.Failed("why", seconds(20)));
  EXPECT_THAT(log.lines(), ElementsAre("error: it fails: why. It is tried again until it works.",
                                       "warning: it works after 5.0 s, 4 tries that failed",
                                       "error: it fails: why. It is tried again until it works."));
}

TEST(Trouble, CountsTheTimeOfATryThatTookLong) {
  testing::CapturedLog log;
  Trouble trouble({.what = "it fails", .over = "it works"});
  trouble.Failed("no answer", seconds(20), seconds(10));
  EXPECT_EQ(seconds(10), trouble.since());
  trouble.Failed("no answer", seconds(31), seconds(21));
  trouble.Over(seconds(33));
  EXPECT_EQ("warning: it works after 23.0 s, 2 tries that failed", log.lines().back());
}

TEST(Trouble, SaysOnceAMinuteThatItLasts) {
  testing::CapturedLog log;
  Trouble trouble({.what = "it fails", .over = "it works"});
  for (int i = 0; i <= 150; ++i) trouble.Failed("why", seconds(i));
  EXPECT_EQ(3U, log.lines().size());
  EXPECT_EQ("error: it fails for 60 s now, 61 tries: why", log.lines()[1]);
}

}  // namespace
}  // namespace zeze
