#include "zeze/base/shell_command.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"

namespace zeze {
namespace {

TEST(ShellCommand, ReturnsTheExitStatus) {
  EXPECT_EQ(0, RunShellCommand({.command = "true"}).value());
  EXPECT_EQ(3, RunShellCommand({.command = "exit 3"}).value());
  EXPECT_EQ(128 + 15, RunShellCommand({.command = "kill -TERM $$"}).value());
  EXPECT_EQ(127, RunShellCommand({.command = "/no/such/program 2>/dev/null"}).value());
}

TEST(ShellCommand, PassesTextThatIsNotLookedAtByTheShell) {
  const char* text = "a \"quoted\" $(false) `text` \\ ; exit 9";
  const Result<int> status =
      RunShellCommand({.command = R"([ "$TEXT" = 'a "quoted" $(false) `text` \ ; exit 9' ])",
                       .environment = {{"TEXT", text}}});
  EXPECT_EQ(0, status.value());
}

TEST(ShellCommand, KillsWhatTakesTooLongWithItsChildren) {
  const Result<int> status =
      RunShellCommand({.command = "sleep 1000 & wait", .timeout = std::chrono::milliseconds(50)});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(ErrorCode::kUnknownOutcome, status.error().code());
  EXPECT_THAT(status.error().message(), ::testing::HasSubstr("longer than 50ms"));
}

}  // namespace
}  // namespace zeze
