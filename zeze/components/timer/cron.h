// CronExpression: moments by their calendar fields, in a time zone.
//
//   Result<CronExpression> reset = CronExpression::Parse("0 30 5 * * ?", "Asia/Shanghai");
//   std::optional<std::int64_t> next = reset.value().NextAfter(now_ms);    // Unix milliseconds.
//
// Six fields: second minute hour day-of-month month day-of-week, and optionally a year. Of the two
// kinds of day one is `?` or `*`. Fields have `*`, `a`, `a,b`, `a-b` (also over the end: 22-2),
// `a/n`, `*/n`, `a-b/n`; names of months and days; days of the month `L`, `L-n`, `LW`, `nW` and
// `L-nW`; days of the week (1 is Sunday) `nL` and `n#k`. All of Zeze 1.6, and `*` for both kinds of
// day. A step after `*` is no longer than its field: 60 for minutes, 24 for hours.
//
// When clocks change: an expression that says hours happens once for each time of day that it
// names, at the first of two, and at the end of the gap if the gap swallows it. One for every hour
// (`*`) follows the hours that there are.

#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

#include "zeze/base/result.h"

namespace zeze {

class CronExpression {
 public:
  // An empty zone is the one of the process. Zones have the names of the system's database.
  static Result<CronExpression> Parse(std::string_view text, std::string_view zone = {});
  // Of a timer that is there already, planned by Zeze 1.6 or by an older version: what Parse
  // refuses because it means nothing (what stands after the year, a step longer than its field) is
  // left out, as it was then.
  static Result<CronExpression> ParseStored(std::string_view text, std::string_view zone = {});

  // Strictly after. None: never again.
  std::optional<std::int64_t> NextAfter(std::int64_t unix_ms) const;

  const std::string& text() const { return text_; }
  // It names no hours.
  bool every_hour() const { return hours_.all(); }

  // Years that an expression may name, and the last in which one without a year happens.
  static constexpr int kFirstYear = 1970;
  static constexpr int kLastYear = 2299;

 private:
  // Which days of a month, if that is more than a set of numbers.
  struct SpecialDay {
    enum class Kind : std::uint8_t {
      kNone,
      kLastDay,        // L, L-n, LW, L-nW of the month.
      kNearWeekday,    // nW
      kLastDayOfWeek,  // nL
      kNthDayOfWeek,   // n#k
    };
    Kind kind = Kind::kNone;
    int number = 0;        // n
    int nth = 0;           // k
    bool weekday = false;  // W behind L.
  };

  CronExpression() = default;

  static Result<CronExpression> In(std::string_view zone, Result<CronExpression> parsed);

  friend class CronParser;

  std::optional<absl::CivilSecond> NextMatch(absl::CivilSecond from) const;
  std::uint32_t DaysOfMonth(const absl::CivilMonth& month) const;

  std::string text_;
  absl::TimeZone zone_;
  std::bitset<60> seconds_;
  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<8> days_of_week_;
  std::bitset<kLastYear - kFirstYear + 1> years_;
  bool by_day_of_week_ = false;
  SpecialDay special_;
};

}  // namespace zeze
