#include "zeze/admin/alert_sender.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zeze/base/testing/captured_log.h"

namespace zeze::admin {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class AlertSenderTest : public ::testing::Test {
 protected:
  AlertSenderTest()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("zeze_alert_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove(path_);
  }
  ~AlertSenderTest() override { std::filesystem::remove(path_); }
  std::string Text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::string path_;
};

TEST_F(AlertSenderTest, RunsTheCommandWithTheTextInItsEnvironment) {
  {
    AlertSender alerts({.command = "echo \"$ZEZE_ALERT_KIND|$ZEZE_ALERT_TEXT|$ZEZE_ALERT_SOURCE|"
                                   "$ZEZE_ALERT_SERVER_ID\" >> " +
                                   path_,
                        .source = "global 0"});
    alerts.Send({.kind = "lost", .text = "first $(id)", .details = {{"server_id", "7"}}});
    alerts.Send({.kind = "evicted", .text = "second"});
  }  // Sends what waits.
  EXPECT_EQ("lost|first $(id)|global 0|7\nevicted|second|global 0|\n", Text());
}

TEST_F(AlertSenderTest, TriesAgainAndSaysThatItFailed) {
  zeze::testing::CapturedLog log;
  {
    AlertSender alerts({.command = "echo try >> " + path_ + "; exit 4",
                        .attempts = 2,
                        .retry_delay = std::chrono::nanoseconds(1)});
    alerts.Send({.kind = "lost", .text = "server 7 is silent"});
    while (alerts.statistics().failed == 0) std::this_thread::yield();
  }
  EXPECT_EQ("try\ntry\n", Text());
  EXPECT_THAT(log.lines(), Contains(HasSubstr("the alert command failed: status 4")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("not sent by command: server 7 is silent")));
}

TEST_F(AlertSenderTest, NeverWaitsAndDropsTheOldest) {
  ASSERT_EQ(0, mkfifo(path_.c_str(), 0600));
  zeze::testing::CapturedLog log;
  {
    // Each command waits until somebody reads the fifo.
    AlertSender alerts({.command = "echo \"$ZEZE_ALERT_TEXT\" > " + path_, .queue_max = 2});
    for (int i = 0; i < 10; ++i) alerts.Send({.kind = "k", .text = std::to_string(i)});
    EXPECT_GE(alerts.statistics().dropped, 7U);
    std::string last;
    while (last.find('9') == std::string::npos) last = Text();
  }
  EXPECT_THAT(log.lines(), Contains(HasSubstr("too many alerts wait")));
}

TEST(AlertMessage, IsWrittenAsJson) {
  EXPECT_EQ(
      "{\"kind\":\"lost\",\"text\":\"a \\\"b\\\" \\\\ \\u000a \xc3\xa4 \xef\xbf\xbd\",\"source\":"
      "\"s\",\"server_id\":\"7\"}",
      ToJson(
          {.kind = "lost", .text = "a \"b\" \\ \n \xc3\xa4 \xff", .details = {{"server_id", "7"}}},
          "s"));
}

}  // namespace
}  // namespace zeze::admin
