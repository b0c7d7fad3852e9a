#include "zeze/base/log.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "zeze/base/result.h"
#include "zeze/base/testing/captured_log.h"

namespace zeze {
namespace {

using testing::CapturedLog;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

TEST(Log, FormatsItsArguments) {
  CapturedLog log;

  ZEZE_LOG_INFO("opened {} tables of {}", 3, "demo");
  ZEZE_LOG_ERROR("plain");

  EXPECT_THAT(log.lines(), ElementsAre("info: opened 3 tables of demo", "error: plain"));
}

TEST(Log, DoesNotEvaluateArgumentsBelowTheLevel) {
  CapturedLog log;
  int evaluated = 0;

  SetLogLevel(LogLevel::kWarning);
  ZEZE_LOG_INFO("{}", ++evaluated);
  ZEZE_LOG_WARNING("{}", ++evaluated);

  EXPECT_EQ(evaluated, 1);
  EXPECT_THAT(log.lines(), ElementsAre("warning: 1"));
}

TEST(Log, WritesNothingWhenOff) {
  CapturedLog log;

  SetLogLevel(LogLevel::kOff);
  ZEZE_LOG_CRITICAL("unheard");

  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(Log, LimitedLineSaysHowManyWereSuppressed) {
  CapturedLog log;

  while (log.lines().size() < 2) ZEZE_LOG_WARNING_EVERY(std::chrono::milliseconds(5), "full");

  EXPECT_THAT(log.lines()[1],
              MatchesRegex("warning: full \\(and [0-9]+ like it since the last such line\\)"));
}

TEST(Log, LimiterCountsWhatItSuppressed) {
  internal::LogLimiter limiter;
  std::uint64_t suppressed = 99;

  ASSERT_TRUE(limiter.Allow(std::chrono::milliseconds(20), suppressed));
  EXPECT_EQ(suppressed, 0u);
  std::uint64_t refused = 0;
  while (!limiter.Allow(std::chrono::milliseconds(20), suppressed)) ++refused;

  EXPECT_EQ(suppressed, refused);
}

TEST(Log, PlacesWithALimitDoNotSilenceEachOther) {
  CapturedLog log;

  while (log.lines().empty()) ZEZE_LOG_WARNING_EVERY(std::chrono::milliseconds(5), "one");
  while (log.lines().size() < 2) ZEZE_LOG_WARNING_EVERY(std::chrono::hours(0), "two");

  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("one"), HasSubstr("two")));
}

TEST(Log, LevelsHaveNames) {
  EXPECT_EQ(ParseLogLevel("WARN").value(), LogLevel::kWarning);
  for (LogLevel level : {LogLevel::kTrace, LogLevel::kInfo, LogLevel::kOff}) {
    EXPECT_EQ(ParseLogLevel(ToString(level)).value(), level);
  }
  EXPECT_THAT(ParseLogLevel("loud").error().message(), HasSubstr("use one of trace, debug"));
}

TEST(Log, WritesToAFileAndStartsAnotherWhenItIsLarge) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / ("zeze_log_" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  const std::filesystem::path path = directory / "server.log";
  auto file = OpenLogFile(path.string(), {.file_bytes_max = 1000, .old_files_max = 1});
  ASSERT_TRUE(file.ok()) << file.error().message();
  const auto previous = SetLogSink(std::move(file).value());

  for (int i = 0; i < 20; ++i) ZEZE_LOG_INFO("line number {} of the test", i);
  FlushLog();
  SetLogSink(previous);

  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr("line number 19 of the test"));
  EXPECT_THAT(text.substr(0, text.find('\n')),
              MatchesRegex("[-0-9]+ [0-9:.]+ info [0-9]+ log_test.cc:[0-9]+ line number .*"));
  EXPECT_TRUE(std::filesystem::exists(directory / "server.1.log"));
  std::filesystem::remove_all(directory);
}

TEST(Log, FileThatCannotBeOpenedIsAnError) {
  const auto file = OpenLogFile("/proc/no/such/directory/server.log");

  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(file.error().message(), HasSubstr("/proc/no/such/directory/server.log"));
}

}  // namespace
}  // namespace zeze
