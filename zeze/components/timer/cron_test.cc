// Tests of cron expressions one by one; cron_oracle_test.cc tries many at random.

#include "zeze/components/timer/cron.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/time/time.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"

namespace zeze {
namespace {

constexpr std::string_view kFormat = "%Y-%m-%d %H:%M:%S";

std::int64_t Moment(const std::string& text, const std::string& zone = "UTC") {
  absl::TimeZone found;
  EXPECT_TRUE(absl::LoadTimeZone(zone, &found));
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(std::string(kFormat), text, found, &time, &error)) << error;
  return absl::ToUnixMillis(time);
}

// "never", or the time in UTC.
std::string Next(std::string_view expression, const std::string& after) {
  Result<CronExpression> cron = CronExpression::Parse(expression, "UTC");
  if (!cron.ok()) return cron.error().message();
  const std::optional<std::int64_t> next = cron.value().NextAfter(Moment(after));
  if (!next.has_value()) return "never";
  return absl::FormatTime(std::string(kFormat), absl::FromUnixMillis(*next), absl::UTCTimeZone());
}

std::string ErrorOf(std::string_view expression) {
  Result<CronExpression> cron = CronExpression::Parse(expression, "UTC");
  return cron.ok() ? "" : cron.error().message();
}

TEST(Cron, FieldsOfEachKind) {
  const std::string at = "2026-11-15 10:20:30";  // A Sunday.
  EXPECT_EQ(Next("* * * * * ?", at), "2026-11-15 10:20:31");
  EXPECT_EQ(Next("0 * * * * ?", at), "2026-11-15 10:21:00");
  EXPECT_EQ(Next("30 20 10 * * ?", at), "2026-11-16 10:20:30") << "strictly after";
  EXPECT_EQ(Next("0 30 5 * * ?", at), "2026-11-16 05:30:00");
  EXPECT_EQ(Next("0 0 0 1 1 ?", at), "2027-01-01 00:00:00");
  EXPECT_EQ(Next("0 0 0 29 2 ?", at), "2028-02-29 00:00:00");
  EXPECT_EQ(Next("0/20 * * * * ?", at), "2026-11-15 10:20:40");
  EXPECT_EQ(Next("/20 * * * * ?", at), "2026-11-15 10:20:40");
  EXPECT_EQ(Next("*/20 * * * * ?", at), "2026-11-15 10:20:40");
  EXPECT_EQ(Next("5/90 * * * * ?", at), "2026-11-15 10:21:05") << "a step beyond the field";
  EXPECT_EQ(Next("0 0 8-12/2 * * ?", at), "2026-11-15 12:00:00");
  EXPECT_EQ(Next("0 0 22-2 * * ?", at), "2026-11-15 22:00:00") << "over the end";
  EXPECT_EQ(Next("0 0 22-2 * * ?", "2026-11-16 00:30:00"), "2026-11-16 01:00:00");
  EXPECT_EQ(Next("0 0 0 ? NOV-FEB 3", at), "2026-11-17 00:00:00");
  EXPECT_EQ(Next("0 0 0 ? * FRI-MON", "2026-11-16 00:00:00"), "2026-11-20 00:00:00");
  EXPECT_EQ(Next("0 0 0 ? * monday", at), "2026-11-16 00:00:00");
  EXPECT_EQ(Next("0 0 0 ? * 1", at), "2026-11-22 00:00:00") << "1 is Sunday";
  EXPECT_EQ(Next("0 0 0 1 1 ? 2099", at), "2099-01-01 00:00:00");
  EXPECT_EQ(Next("0 0 0 1 1 ? 2020", at), "never") << "a past year parses";
  EXPECT_EQ(Next("0 */60 * * * ?", at), "2026-11-15 11:00:00") << "as long as the field";
  EXPECT_EQ(Next("0\t0  0 1 jan ?", at), "2027-01-01 00:00:00");
}

TEST(Cron, SpecialDays) {
  const std::string at = "2026-11-15 10:20:30";
  EXPECT_EQ(Next("0 0 0 L * ?", at), "2026-11-30 00:00:00");
  EXPECT_EQ(Next("0 0 0 L-3 * ?", at), "2026-11-27 00:00:00");
  EXPECT_EQ(Next("0 0 0 L-30 * ?", at), "2026-12-01 00:00:00") << "November has no such day";
  EXPECT_EQ(Next("0 0 0 LW * ?", "2026-05-01 00:00:00"), "2026-05-29 00:00:00") << "31: a Sunday";
  EXPECT_EQ(Next("0 0 0 L-1W * ?", "2026-05-01 00:00:00"), "2026-05-29 00:00:00");
  EXPECT_EQ(Next("0 0 0 1W * ?", "2026-07-31 00:00:00"), "2026-08-03 00:00:00") << "a Saturday";
  EXPECT_EQ(Next("0 0 0 15W * ?", "2026-08-05 00:00:00"), "2026-08-14 00:00:00");
  EXPECT_EQ(Next("0 0 0 15W,20 * ?", "2026-08-14 00:00:00"), "2026-09-15 00:00:00");
  EXPECT_EQ(Next("0 0 0 31W * ?", at), "2026-12-31 00:00:00");
  EXPECT_EQ(Next("0 0 0 ? * 6L", at), "2026-11-27 00:00:00") << "the last Friday";
  EXPECT_EQ(Next("0 0 0 ? * L", at), "2026-11-21 00:00:00") << "Saturday";
  EXPECT_EQ(Next("0 0 0 ? * 2#1", at), "2026-12-07 00:00:00");
  EXPECT_EQ(Next("0 0 0 ? * THU#5", at), "2026-12-31 00:00:00") << "not every month has five";
  EXPECT_EQ(Next("0 0 0 5C * ?", at), "2026-12-05 00:00:00");
}

// Both kinds of day: Zeze 1.6 wants exactly one '?', and its own weekly helper has none.
TEST(PeerDefect27, EveryDayAndTheWeeklyFormAreNoErrors) {
  const std::string at = "2026-11-15 10:20:30";
  EXPECT_EQ(Next("* * * * * *", at), "2026-11-15 10:20:31");
  EXPECT_EQ(Next("0 30 5 * * 4", at), "2026-11-18 05:30:00");
  EXPECT_EQ(Next("0 30 5 20 * *", at), "2026-11-20 05:30:00");
}

TEST(Cron, ErrorsSayWhatWhereAndWhatWasExpected) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "0 fields"},
      {"* * * * *", "5 fields"},
      {"60 * * * * ?", "second '60': expected are 0 to 59"},
      {"* * 24 * * ?", "hour '24': expected are 0 to 23"},
      {"* * * 0 * ?", "day of month '0': expected are 1 to 31"},
      {"* * * * 13 ?", "month '13'"},
      {"* * * ? * 8", "day of week '8': expected are 1 to 7"},
      {"* * * ? * ?", "left open already"},
      {"? * * * * ?", "second '?'"},
      {"* * * 1 * 1", "give one of them"},
      {"* * * L,5 * ?", "'L' cannot stand beside other days"},
      {"* * * L-31 * ?", "n up to 30"},
      {"* * * ? * 3L,4", "day of week"},
      {"* * * ? * 3#6", "from 1 to 5"},
      {"*/0 * * * * ?", "the step behind '/'"},
      {"1,,2 * * * * ?", "nothing between two commas"},
      {"a * * * * ?", "second 'A'"},
      {"-5 * * * * ?", "second ''"},
      {"5- * * * * ?", "second ''"},
      {"* * * * * ? 1969", "year '1969'"},
      {"* * * * * ? 2030-2020", "the second year is earlier"},
      {"0 0 5 * * ? * Asia/Shanghai", "8 fields"},
      {"0 0 5 * * ? * Asia/Shanghai", "A time zone is not a part of the expression"},
      {"0 0 0 * * ? 2026 x", "8 fields"},
      {"0 0 0 1 1 ? 2027 and more", "9 fields"},
      {"*/61 * * * * ?", "second '*/61': the step after '*' is 60 at most"},
      {"0 */61 * * * ?", "minute '*/61': the step after '*' is 60 at most"},
      {"0 /61 * * * ?", "the step after '*' is 60 at most"},
      {"0 0 */25 * * ?", "the step after '*' is 24 at most"},
      {"0 0 0 */32 * ?", "the step after '*' is 31 at most"},
      {"0 0 0 1 */13 ?", "the step after '*' is 12 at most"},
      {"0 0 0 ? * */8", "the step after '*' is 7 at most"},
      {"0 0 0 1 1 ? */2000000000", "the step after '*' is 330 at most"},
  };
  for (const auto& [expression, expected] : cases) {
    EXPECT_NE(ErrorOf(expression).find(expected), std::string::npos)
        << expression << ": " << ErrorOf(expression);
  }
  Result<CronExpression> zone = CronExpression::Parse("0 0 0 * * ?", "Nowhere/City");
  ASSERT_FALSE(zone.ok());
  EXPECT_NE(zone.error().message().find("no time zone 'Nowhere/City'"), std::string::npos);
}

// Timers that are there already must not end because their expression is refused today.
TEST(Cron, WhatIsStoredIsReadAsItWas) {
  const auto next = [](const char* expression) {
    return CronExpression::ParseStored(expression, "UTC").value().NextAfter(0).value();
  };
  EXPECT_EQ(next("0 0 5 * * ? * Asia/Shanghai"), 5 * 3'600'000);
  EXPECT_EQ(next("0 0 0 1 1 ? 1971 and more"), 365 * 24 * 3'600'000LL);
  EXPECT_EQ(next("0 */61 * * * ?"), 3'600'000);
  EXPECT_EQ(next("0 3/2147483647 * * * ?"), 3 * 60'000);
  EXPECT_FALSE(CronExpression::ParseStored("0 0 25 * * ?", "UTC").ok());
}

std::vector<std::string> Several(const std::string& expression, const std::string& zone,
                                 const std::string& after, int count) {
  const CronExpression cron = CronExpression::Parse(expression, zone).value();
  std::vector<std::string> result;
  std::int64_t at = Moment(after);
  for (int i = 0; i < count; ++i) {
    at = cron.NextAfter(at).value();
    result.push_back(
        absl::FormatTime(std::string(kFormat), absl::FromUnixMillis(at), absl::UTCTimeZone()));
  }
  return result;
}

// New York: on March 8 2026 2:00 becomes 3:00 (7:00 UTC), on November 1 2:00 becomes 1:00 (6:00).
TEST(Cron, WhatTheGapSwallowsHappensAtItsEnd) {
  EXPECT_EQ(Several("0 30 2 * * ?", "America/New_York", "2026-03-07 12:00:00", 2),
            (std::vector<std::string>{"2026-03-08 07:00:00", "2026-03-09 06:30:00"}));
  EXPECT_EQ(Several("0 0,30 * * * ?", "America/New_York", "2026-03-08 06:00:00", 3),
            (std::vector<std::string>{"2026-03-08 06:30:00", "2026-03-08 07:00:00",
                                      "2026-03-08 07:30:00"}));
}

TEST(Cron, WhatComesTwiceHappensOnceUnlessItIsForEveryHour) {
  EXPECT_EQ(Several("0 30 1 * * ?", "America/New_York", "2026-11-01 00:00:00", 2),
            (std::vector<std::string>{"2026-11-01 05:30:00", "2026-11-02 06:30:00"}));
  EXPECT_EQ(Several("0 30 * * * ?", "America/New_York", "2026-11-01 05:00:00", 3),
            (std::vector<std::string>{"2026-11-01 05:30:00", "2026-11-01 06:30:00",
                                      "2026-11-01 07:30:00"}));
  EXPECT_EQ(Several("0 30 1 * * ?", "America/New_York", "2026-11-01 06:10:00", 1),
            (std::vector<std::string>{"2026-11-02 06:30:00"}))
      << "asked in the second of the two hours";
}

}  // namespace
}  // namespace zeze
