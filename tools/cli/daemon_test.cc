// `zeze daemon` with real processes.

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kPatience = std::chrono::seconds(60);

ServerProcessOptions Daemon(std::vector<std::string> options, std::vector<std::string> command) {
  std::vector<std::string> all{ZEZE_BINARY, "daemon"};
  all.insert(all.end(), options.begin(), options.end());
  all.emplace_back("--");
  all.insert(all.end(), command.begin(), command.end());
  return {.command = std::move(all)};
}

std::vector<std::string> Shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

// A script that knows which run it is: $n.
std::string Counting(const TempDirectory& directory, const std::string& script) {
  const std::string file = directory.File("runs");
  return "n=$(( $(cat " + file + " 2>/dev/null || echo 0) + 1 )); echo $n > " + file +
         "; echo run $n.; " + script;
}

TEST(Daemon, StartsACrashedServerAgainAfterLongerAndLongerTimes) {
  const TempDirectory directory;
  ServerProcess daemon(Daemon({"--first-delay", "10ms", "--delay-max", "40ms", "--alert-command",
                               "echo \"ALERT $ZEZE_ALERT_KIND: $ZEZE_ALERT_TEXT\""},
                              Shell(Counting(directory, "[ $n = 1 ] && exit 86; kill -SEGV $$"))));
  ASSERT_TRUE(daemon.AwaitLine("run 6.", kPatience)) << daemon.said();
  EXPECT_THAT(daemon.said(), AllOf(HasSubstr("ended with status 86"),
                                   HasSubstr("was killed by signal 11 (Segmentation fault)"),
                                   HasSubstr("ALERT restart: /bin/sh -c")));
  daemon.Signal(SIGTERM);
  daemon.AwaitEnd();
}

TEST(Daemon, EndsWithAServerThatHasEnded) {
  const ProgramResult ended = RunProgram(Daemon({}, Shell("echo done; exit 0")));
  EXPECT_EQ(0, ended.exit_code);
  EXPECT_THAT(ended.said, HasSubstr("ended with status 0"));
}

TEST(Daemon, PassesSignalsOnAndReturnsTheStatus) {
  for (const auto& [signal, name] : {std::pair{SIGTERM, "TERM"}, std::pair{SIGINT, "INT"}}) {
    ServerProcess daemon(Daemon({}, Shell("trap 'echo got " + std::string(name) + "; exit 5' " +
                                          name + "; echo ready; while :; do sleep 0.05; done")));
    ASSERT_TRUE(daemon.AwaitLine("ready", kPatience)) << daemon.said();
    daemon.Signal(signal);
    EXPECT_EQ(5, daemon.AwaitEnd()) << daemon.said();
    EXPECT_TRUE(daemon.AwaitLine("got " + std::string(name), kPatience)) << daemon.said();
  }
}

TEST(Daemon, KillsAServerThatDoesNotEndInTime) {
  ServerProcess daemon(Daemon({"--stop-timeout", "50ms"},
                              Shell("trap '' TERM; echo ready; while :; do sleep 0.05; done")));
  ASSERT_TRUE(daemon.AwaitLine("ready", kPatience)) << daemon.said();
  daemon.Signal(SIGTERM);
  EXPECT_EQ(128 + SIGKILL, daemon.AwaitEnd());
}

TEST(Daemon, KillsAndRestartsAServerThatHangs) {
  const TempDirectory directory;
  ServerProcess daemon(
      Daemon({"--liveness-timeout", "300ms", "--first-delay", "10ms"},
             Shell(Counting(directory, "printf b >&$ZEZE_LIVENESS_FD; sleep 1000"))));
  ASSERT_TRUE(daemon.AwaitLine("run 2.", kPatience)) << daemon.said();
  EXPECT_THAT(daemon.said(), HasSubstr("did not say for 300ms that it lives and was killed"));
}

TEST(Daemon, KillsAServerThatNeverComesToLife) {
  ServerProcess daemon(
      Daemon({"--liveness-timeout", "10s", "--start-timeout", "50ms", "--first-delay", "10ms"},
             Shell("sleep 1000")));
  EXPECT_TRUE(daemon.AwaitLine("did not say for 50ms", kPatience)) << daemon.said();
}

// An Application whose probe beats; then all its workers hang.
TEST(Daemon, AnApplicationLivesUntilItsWorkersHang) {
  const TempDirectory directory;
  const std::string file = directory.File("zeze.xml");
  std::ofstream(file) << R"(<zeze WorkerThreads="1" LivenessPeriod="50ms"/>)";
  ServerProcess daemon(
      Daemon({"--liveness-timeout", "3s", "--first-delay", "10ms"}, {ZEZE_DAEMON_CHILD, file}));
  ASSERT_TRUE(daemon.AwaitLine("probed 5 times", kPatience)) << daemon.said();
  EXPECT_THAT(daemon.said(), Not(HasSubstr("killed")));
  // The application hangs by itself after that.
  ASSERT_TRUE(daemon.AwaitLine("did not say for 3s that it lives and was killed", kPatience))
      << daemon.said();
}

TEST(Daemon, WhatTheServerLeftRunningEndsWithIt) {
  ServerProcess daemon(Daemon({}, Shell("sleep 1000 & echo left; exit 0")));
  // The sleeping process holds the output open: it ends before the last time somebody says "never".
  EXPECT_EQ(0, daemon.AwaitEnd());
  EXPECT_FALSE(daemon.AwaitLine("never", std::chrono::seconds(900))) << "ends with the output";
}

TEST(Daemon, SaysWhatCannotBeStarted) {
  const ProgramResult missing = RunProgram(Daemon({}, {"/no/such/server"}));
  EXPECT_EQ(1, missing.exit_code);
  EXPECT_THAT(missing.said, HasSubstr("/no/such/server cannot be started: No such file"));
  EXPECT_EQ(2, RunProgram({.command = {ZEZE_BINARY, "daemon"}}).exit_code);
  const ProgramResult duration = RunProgram(Daemon({"--steady", "soon"}, {"/bin/true"}));
  EXPECT_EQ(2, duration.exit_code);
  EXPECT_THAT(duration.said, HasSubstr("--steady"));
  const ProgramResult webhook =
      RunProgram(Daemon({"--alert-webhook", "example.com"}, {"/bin/true"}));
  EXPECT_EQ(1, webhook.exit_code);
  EXPECT_THAT(webhook.said, HasSubstr("expected http://"));
}

}  // namespace
}  // namespace zeze
