// Random cron expressions beside an oracle that shares nothing with them: it goes through the
// seconds of the C library's calendar and compares fields.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/components/timer/cron.h"

namespace zeze {
namespace {

using Random = std::mt19937_64;

int Below(Random& random, int count) {
  return static_cast<int>(random() % static_cast<unsigned>(count));
}

// A field with its meaning: the text is made from the set, not the set from the text.
struct Field {
  std::string text = "*";
  std::set<int> values = {};  // Empty: all.

  bool Has(int value) const { return values.empty() || values.contains(value); }
};

Field RandomField(Random& random, int first, int last) {
  Field field;
  const int count = last - first + 1;
  switch (Below(random, 5)) {
    case 0:
      return field;
    case 1: {
      const int value = first + Below(random, count);
      field.text = std::to_string(value);
      field.values = {value};
      return field;
    }
    case 2: {  // Over the end, too.
      const int from = first + Below(random, count);
      const int length = 1 + Below(random, std::min(count, 12));
      for (int i = 0; i < length; ++i) field.values.insert((from - first + i) % count + first);
      field.text = fmt::format("{}-{}", from, (from - first + length - 1) % count + first);
      return field;
    }
    case 3: {
      const int from = first + Below(random, count);
      const int step = 1 + Below(random, count);
      for (int i = from; i <= last; i += step) field.values.insert(i);
      field.text = fmt::format("{}/{}", from, step);
      return field;
    }
    default: {
      const int length = 1 + Below(random, 4);
      field.text.clear();
      for (int i = 0; i < length; ++i) {
        const int value = first + Below(random, count);
        field.values.insert(value);
        field.text += (i == 0 ? "" : ",") + std::to_string(value);
      }
      return field;
    }
  }
}

int DaysOfMonth(int year, int month) {
  constexpr std::array<int, 13> kDays = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays.at(static_cast<std::size_t>(month));
}

// Fields of a moment, however it came by them.
struct Fields {
  int year, month, day, hour, minute, second, day_of_week;
};

enum class DayRule { kNumbers, kWeekdays, kLast, kLastWeekday, kNear, kLastOfWeek, kNth };

struct Expression {
  Field second, minute, hour, month, day, day_of_week;
  DayRule rule = DayRule::kNumbers;
  int number = 0;
  int nth = 0;
  std::string text;

  // By trying the neighbours of the day that is named.
  static bool IsNearestWeekday(const Fields& at, int target) {
    const int days = DaysOfMonth(at.year, at.month);
    if (target < 1 || target > days) return false;
    const auto weekday = [&at](int day) {
      const int of_week = ((at.day_of_week - 1 + day - at.day) % 7 + 35) % 7;
      return of_week != 0 && of_week != 6;
    };
    for (const int distance : {0, -1, 1, -2, 2}) {
      const int day = target + distance;
      if (day >= 1 && day <= days && weekday(day)) return day == at.day;
    }
    return false;
  }

  bool MatchesDay(const Fields& at) const {
    const int last = DaysOfMonth(at.year, at.month);
    switch (rule) {
      case DayRule::kNumbers:
        return day.Has(at.day);
      case DayRule::kWeekdays:
        return day_of_week.Has(at.day_of_week);
      case DayRule::kLast:
        return at.day == last - number;
      case DayRule::kLastWeekday:
        return IsNearestWeekday(at, last - number);
      case DayRule::kNear:
        return IsNearestWeekday(at, number);
      case DayRule::kLastOfWeek:
        return at.day_of_week == number && at.day + 7 > last;
      case DayRule::kNth:
        return at.day_of_week == number && (at.day - 1) / 7 + 1 == nth;
    }
    return false;
  }

  bool MatchesDate(const Fields& at) const { return month.Has(at.month) && MatchesDay(at); }
  bool Matches(const Fields& at) const {
    return second.Has(at.second) && minute.Has(at.minute) && hour.Has(at.hour) && MatchesDate(at);
  }
  bool every_hour() const { return hour.values.empty() || hour.values.size() == 24; }
};

Expression RandomExpression(Random& random) {
  Expression made;
  made.second = RandomField(random, 0, 59);
  made.minute = RandomField(random, 0, 59);
  made.hour = RandomField(random, 0, 23);
  made.month = RandomField(random, 1, 12);
  std::string day = "?";
  std::string of_week = "?";
  made.rule = static_cast<DayRule>(Below(random, 7));
  switch (made.rule) {
    case DayRule::kNumbers:
      made.day = RandomField(random, 1, 31);
      day = made.day.text;
      if (Below(random, 2) == 0) of_week = "*";
      break;
    case DayRule::kWeekdays:
      made.day_of_week = RandomField(random, 1, 7);
      of_week = made.day_of_week.text;
      if (Below(random, 2) == 0) day = "*";
      break;
    case DayRule::kLast:
    case DayRule::kLastWeekday:
      made.number = Below(random, 2) == 0 ? 0 : Below(random, 31);
      day = made.number == 0 ? "L" : fmt::format("L-{}", made.number);
      if (made.rule == DayRule::kLastWeekday) day += "W";
      break;
    case DayRule::kNear:
      made.number = 1 + Below(random, 31);
      day = fmt::format("{}W", made.number);
      break;
    case DayRule::kLastOfWeek:
      made.number = 1 + Below(random, 7);
      of_week = fmt::format("{}L", made.number);
      break;
    case DayRule::kNth:
      made.number = 1 + Below(random, 7);
      made.nth = 1 + Below(random, 5);
      of_week = fmt::format("{}#{}", made.number, made.nth);
      break;
  }
  made.text = fmt::format("{} {} {} {} {} {}", made.second.text, made.minute.text, made.hour.text,
                          day, made.month.text, of_week);
  return made;
}

// --- the C library's calendar -------------------------------------------------------------------

void UseZone(const char* zone) {
  ::setenv("TZ", zone, 1);  // NOLINT(concurrency-mt-unsafe)
  ::tzset();
}

std::tm Local(std::time_t moment) {
  std::tm result = {};
  ::localtime_r(&moment, &result);
  return result;
}

// Seconds of the clock on the wall.
std::int64_t Wall(std::time_t moment) {
  return moment + Local(moment).tm_gmtoff;
}

// The time of day that a clock on the wall shows, whether it ever does or not.
Fields FieldsOfWall(std::int64_t wall) {
  const auto as_utc = static_cast<std::time_t>(wall);
  std::tm tm = {};
  ::gmtime_r(&as_utc, &tm);
  return {tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,    tm.tm_hour,
          tm.tm_min,         tm.tm_sec,     tm.tm_wday + 1};
}

constexpr std::time_t kDay = 86'400;

// Clocks have shown this time of day before.
bool IsRepeated(std::time_t moment) {
  const std::time_t earlier =
      moment - (Local(moment - kDay / 8).tm_gmtoff - Local(moment).tm_gmtoff);
  return earlier < moment && Wall(earlier) == Wall(moment);
}

bool Happens(const Expression& expression, std::time_t moment) {
  const std::int64_t wall = Wall(moment);
  if (expression.Matches(FieldsOfWall(wall)) && (expression.every_hour() || !IsRepeated(moment))) {
    return true;
  }
  if (expression.every_hour()) return false;
  for (std::int64_t skipped = Wall(moment - 1) + 1; skipped < wall; ++skipped) {
    if (expression.Matches(FieldsOfWall(skipped))) return true;
  }
  return false;
}

// None within the horizon.
std::optional<std::time_t> NextByBruteForce(const Expression& expression, std::time_t after,
                                            std::time_t horizon) {
  std::time_t moment = after + 1;
  while (moment < after + horizon) {
    // Whole days and hours in which nothing happens, if clocks do not change in them.
    const Fields at = FieldsOfWall(Wall(moment));
    const auto skip = [&](std::time_t seconds) {
      if (Local(moment - 1).tm_gmtoff != Local(moment + seconds).tm_gmtoff) return false;
      moment += seconds;
      return true;
    };
    const std::time_t to_hour = 3600 - at.minute * 60 - at.second;
    const std::time_t to_day = (23 - at.hour) * 3600 + to_hour;
    if (!expression.MatchesDate(at) && skip(to_day)) continue;
    if (!expression.hour.Has(at.hour) && skip(to_hour)) continue;
    if (!expression.minute.Has(at.minute) && skip(60 - at.second)) continue;
    if (Happens(expression, moment)) return moment;
    ++moment;
  }
  return std::nullopt;
}

// A moment at which clocks change, within a year or so after this one; or this one.
std::time_t NearChange(std::time_t moment) {
  for (int hour = 0; hour < 24 * 366; ++hour) {
    const std::time_t at = moment + hour * 3600;
    if (Local(at).tm_gmtoff != Local(at + 3600).tm_gmtoff) return at;
  }
  return moment;
}

TEST(CronOracle, TenThousandExpressionsHappenWhenTheCalendarSays) {
  const char* kept = std::getenv("TZ");  // NOLINT(concurrency-mt-unsafe)
  const std::string before = kept == nullptr ? "" : kept;
  constexpr std::array<const char*, 8> kZones = {
      "UTC",          "America/New_York",  "Europe/Berlin", "Australia/Lord_Howe",
      "Asia/Kolkata", "America/Sao_Paulo", "Asia/Shanghai", "Pacific/Apia"};
  constexpr int kExpressions = 10'000;
  constexpr std::time_t kHorizon = 400 * kDay;
  Random random(20261115);
  int found = 0;
  int never = 0;
  for (int i = 0; i < kExpressions; ++i) {
    const char* zone = kZones.at(static_cast<std::size_t>(i) % kZones.size());
    UseZone(zone);
    const Expression expression = RandomExpression(random);
    // 2005 to 2035.
    std::time_t after = 1'104'537'600 + static_cast<std::time_t>(random() % 946'000'000);
    if (Below(random, 2) == 0) after = NearChange(after) - 7200 + Below(random, 4 * 3600);
    const Result<CronExpression> cron = CronExpression::Parse(expression.text, zone);
    ASSERT_TRUE(cron.ok()) << cron.error().message();
    const std::optional<std::int64_t> next =
        cron.value().NextAfter(after * 1000 + Below(random, 1000));
    const std::optional<std::time_t> expected = NextByBruteForce(expression, after, kHorizon);
    if (expected.has_value()) {
      ++found;
      ASSERT_EQ(next, *expected * 1000) << expression.text << " in " << zone << " after " << after;
    } else {
      ++never;
      ASSERT_TRUE(!next.has_value() || *next / 1000 >= after + kHorizon)
          << expression.text << " in " << zone << " after " << after;
    }
  }
  if (before.empty()) {
    ::unsetenv("TZ");  // NOLINT(concurrency-mt-unsafe)
  } else {
    ::setenv("TZ", before.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ::tzset();
  EXPECT_GT(found, 5 * never) << "most of them should say something";
}

}  // namespace
}  // namespace zeze
