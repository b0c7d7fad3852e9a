#include "zeze/admin/audit_log.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): of POSIX.
#include <sys/resource.h>
#include <unistd.h>

#include "zeze/base/result.h"
#include "zeze/base/testing/manual_clock.h"

namespace zeze::admin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() {
    path_ = std::filesystem::path(::testing::TempDir()) /
            ("zeze_audit_" + std::to_string(getpid()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove(path_);
  }
  ~AuditLogTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<AuditLog> Open() {
    Result<std::unique_ptr<AuditLog>> log = AuditLog::Open({.path = path_, .clock = &clock_});
    EXPECT_TRUE(log.ok()) << log.error().message();
    return std::move(log).value();
  }
  std::string Text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  void ThreeLines() {
    const auto log = Open();
    ASSERT_TRUE(log->Append("alice", "propose", "request 1").ok());
    ASSERT_TRUE(log->Append("bob", "approve", "request 1").ok());
    ASSERT_TRUE(log->Append("-", "run", "request 1").ok());
  }

  std::string path_;
  zeze::testing::ManualClock clock_;
};

TEST_F(AuditLogTest, GoesOnWhereItEnded) {
  ThreeLines();
  {
    const auto log = Open();
    EXPECT_EQ(3U, log->summary().lines);
    ASSERT_TRUE(log->Append("-", "done", "request 1").ok());
  }
  const Result<AuditLogSummary> verified = VerifyAuditLog(path_);
  ASSERT_TRUE(verified.ok()) << verified.error().message();
  EXPECT_EQ(4U, verified.value().lines);
  EXPECT_EQ(0U, verified.value().torn_bytes);
  EXPECT_THAT(Text(), StartsWith("1\t2024-01-01T00:00:00.000Z\talice\tpropose\trequest 1\t"));
  EXPECT_THAT(Text(), HasSubstr(verified.value().hash + "\n"));
}

TEST_F(AuditLogTest, EveryChangedByteIsFound) {
  ThreeLines();
  const std::string good = Text();
  for (std::size_t i = 0; i + 1 < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    Write(bad);
    EXPECT_FALSE(VerifyAuditLog(path_).ok()) << "byte " << i;
  }
}

TEST_F(AuditLogTest, LinesThatAreMissingMovedOrAddedAreFound) {
  ThreeLines();
  const std::string good = Text();
  const std::size_t first = good.find('\n') + 1;
  const std::size_t second = good.find('\n', first) + 1;
  const std::string a = good.substr(0, first);
  const std::string b = good.substr(first, second - first);
  const std::string c = good.substr(second);
  for (const std::string& bad :
       {fmt::format("{}{}", b, c), fmt::format("{}{}", a, c), fmt::format("{}{}{}", a, c, b),
        fmt::format("{}{}{}{}", a, b, b, c), fmt::format("{}{}{}{}", a, b, c, c)}) {
    Write(bad);
    const Result<AuditLogSummary> verified = VerifyAuditLog(path_);
    ASSERT_FALSE(verified.ok());
    EXPECT_EQ(ErrorCode::kCorrupt, verified.error().code());
    EXPECT_FALSE(AuditLog::Open({.path = path_, .clock = &clock_}).ok());
  }
  Write(a + c);
  EXPECT_THAT(VerifyAuditLog(path_).error().message(), StartsWith(path_ + ":2: "));
}

// Whoever changes a line can make its hash anew, but not without the next one noticing.
TEST_F(AuditLogTest, ALineOfAnotherLogDoesNotFit) {
  const auto second_line = [this](const char* first_details) {
    std::filesystem::remove(path_);
    const auto log = Open();
    EXPECT_TRUE(log->Append("alice", "propose", first_details).ok());
    EXPECT_TRUE(log->Append("bob", "approve", "request").ok());
    return Text();
  };
  const std::string one = second_line("request 1");
  const std::string two = second_line("request 2");
  Write(one.substr(0, one.find('\n') + 1) + two.substr(two.find('\n') + 1));

  EXPECT_THAT(VerifyAuditLog(path_).error().message(), StartsWith(path_ + ":2: "));
}

TEST_F(AuditLogTest, ATornLastLineIsCutOffAndThatIsNoted) {
  ThreeLines();
  const std::string good = Text();
  const std::size_t last = good.rfind('\n', good.size() - 2) + 1;
  for (std::size_t size = last + 1; size < good.size(); ++size) {
    Write(good.substr(0, size));
    EXPECT_EQ(size - last, VerifyAuditLog(path_).value().torn_bytes);
    {
      Open();
    }
    EXPECT_THAT(Text(), AllOf(StartsWith(good.substr(0, last)),
                              HasSubstr("\t-\tcut\t" + std::to_string(size - last) + " bytes")));
    EXPECT_EQ(3U, VerifyAuditLog(path_).value().lines);
  }
}

TEST_F(AuditLogTest, TextOfOthersStaysInItsField) {
  {
    const auto log = Open();
    ASSERT_TRUE(log->Append("alice", "propose", "a\nb\tc\\d\x01").ok());
  }
  EXPECT_THAT(Text(), HasSubstr("\tpropose\ta\\nb\\x09c\\\\d\\x01\t"));
  EXPECT_EQ(1U, VerifyAuditLog(path_).value().lines);
}

TEST_F(AuditLogTest, HasOneWriter) {
  const auto log = Open();
  const Result<std::unique_ptr<AuditLog>> second =
      AuditLog::Open({.path = path_, .clock = &clock_});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ErrorCode::kInUse, second.error().code());
}

TEST_F(AuditLogTest, WhatCannotBeWrittenLeavesNothingBehind) {
  const auto log = Open();
  ASSERT_TRUE(log->Append("alice", "propose", "request 1").ok());
  const std::string before = Text();
  signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
  rlimit small = old;
  small.rlim_cur = before.size() + 20;
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &small));

  const Result<void> appended = log->Append("bob", "approve", "request 1");
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &old));

  ASSERT_FALSE(appended.ok());
  EXPECT_THAT(appended.error().message(), HasSubstr(path_));
  EXPECT_EQ(before, Text());
  EXPECT_TRUE(log->Append("bob", "approve", "request 1").ok()) << "there is room again";
  EXPECT_EQ(2U, VerifyAuditLog(path_).value().lines);
}

TEST_F(AuditLogTest, OnlyAnOrdinaryFileWillDo) {
  EXPECT_THAT(AuditLog::Open({.path = "/dev/full"}).error().message(),
              HasSubstr("not an ordinary file"));
  EXPECT_FALSE(AuditLog::Open({.path = "/no/such/directory/log"}).ok());
  EXPECT_EQ(ErrorCode::kNotFound, VerifyAuditLog(path_).error().code());
}

}  // namespace
}  // namespace zeze::admin
