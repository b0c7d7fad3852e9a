#include "zeze/components/timer/cron.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <absl/time/civil_time.h>
#include <absl/time/time.h>
#include <fmt/format.h>

#include "zeze/base/result.h"

namespace zeze {

namespace {

constexpr std::array<std::string_view, 12> kMonthNames = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                          "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> kDayNames = {"SUN", "MON", "TUE", "WED",
                                                       "THU", "FRI", "SAT"};

struct Field {
  std::string_view name;
  int first;
  int last;
};

constexpr Field kSecond{"second", 0, 59};
constexpr Field kMinute{"minute", 0, 59};
constexpr Field kHour{"hour", 0, 23};
constexpr Field kDayOfMonth{"day of month", 1, 31};
constexpr Field kMonth{"month", 1, 12};
constexpr Field kDayOfWeek{"day of week", 1, 7};
constexpr Field kYear{"year", CronExpression::kFirstYear, CronExpression::kLastYear};

int DaysIn(const absl::CivilMonth& month) {
  return static_cast<int>(absl::CivilDay(month + 1) - absl::CivilDay(month));
}

// 1 is Sunday, as in expressions.
int DayOfWeek(const absl::CivilDay& day) {
  return (static_cast<int>(absl::GetWeekday(day)) + 1) % 7 + 1;
}

// The weekday of the same month that is nearest.
int NearestWeekday(const absl::CivilMonth& month, int day) {
  const int days = DaysIn(month);
  const int day_of_week = DayOfWeek(absl::CivilDay(month) + (day - 1));
  if (day_of_week == 7) return day == 1 ? 3 : day - 1;
  if (day_of_week == 1) return day == days ? day - 2 : day + 1;
  return day;
}

std::vector<std::string> SplitFields(std::string_view text) {
  std::vector<std::string> fields;
  std::string field;
  for (const char c : text) {
    if (c == ' ' || c == '\t') {
      if (!field.empty()) fields.push_back(std::exchange(field, {}));
    } else {
      field.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    }
  }
  if (!field.empty()) fields.push_back(field);
  return fields;
}

std::optional<int> ParseNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0 ||
      text[0] == '-') {
    return std::nullopt;
  }
  return number;
}

// The first bit from `from` on.
template <std::size_t kSize>
std::optional<int> NextBit(const std::bitset<kSize>& bits, int from) {
  for (auto i = static_cast<std::size_t>(from); i < kSize; ++i) {
    if (bits.test(i)) return static_cast<int>(i);
  }
  return std::nullopt;
}

}  // namespace

// Of one expression. Errors are remembered, the first of them counts.
class CronParser {
 public:
  CronParser(std::string_view text, bool stored) : text_(text), stored_(stored) {}

  Result<CronExpression> Parse() {
    const std::vector<std::string> fields = SplitFields(text_);
    if (fields.size() < 6 || (fields.size() > 7 && !stored_)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("cron '{}': {} fields; expected are second minute hour "
                               "day-of-month month day-of-week, and a year if you like. A time "
                               "zone is not a part of the expression",
                               text_, fields.size()));
    }
    expression_.text_ = text_;
    ParseSet(kSecond, fields[0], expression_.seconds_, 0);
    ParseSet(kMinute, fields[1], expression_.minutes_, 0);
    ParseSet(kHour, fields[2], expression_.hours_, 0);
    ParseDays(fields[3], fields[5]);
    ParseSet(kMonth, fields[4], expression_.months_, 0);
    ParseSet(kYear, fields.size() > 6 ? fields[6] : "*", expression_.years_, kYear.first);
    if (!error_.empty()) {
      return Error(ErrorCode::kInvalidArgument, fmt::format("cron '{}': {}", text_, error_));
    }
    return expression_;
  }

 private:
  void Fail(const Field& field, std::string_view part, std::string_view why) {
    if (error_.empty()) error_ = fmt::format("{} '{}': {}", field.name, part, why);
  }

  void FailRange(const Field& field, std::string_view part) {
    Fail(field, part, fmt::format("expected are {} to {}", field.first, field.last));
  }

  // A number of the field, or a name that begins with one that the field has.
  std::optional<int> ParseValue(const Field& field, std::string_view part) {
    const auto named = [part](const auto& names) -> std::optional<int> {
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (part.starts_with(names[i])) return static_cast<int>(i) + 1;
      }
      return std::nullopt;
    };
    std::optional<int> value = ParseNumber(part);
    if (&field == &kMonth && !value.has_value()) value = named(kMonthNames);
    if (&field == &kDayOfWeek && !value.has_value()) value = named(kDayNames);
    if (!value.has_value() || *value < field.first || *value > field.last) {
      FailRange(field, part);
      return std::nullopt;
    }
    return value;
  }

  template <std::size_t kSize>
  void ParseSet(const Field& field, std::string_view text, std::bitset<kSize>& bits, int offset) {
    if (text == "?") {
      return Fail(field, text, "only a day of month or a day of week can be left open");
    }
    std::size_t begin = 0;
    while (begin <= text.size()) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      ParsePart(field, text.substr(begin, comma - begin), bits, offset);
      begin = comma + 1;
    }
  }

  // a, a-b, *, each with a step.
  template <std::size_t kSize>
  void ParsePart(const Field& field, std::string_view part, std::bitset<kSize>& bits, int offset) {
    if (part.empty()) return Fail(field, part, "there is nothing between two commas");
    const std::size_t slash = part.find('/');
    const std::string_view range = part.substr(0, slash);
    int step = 1;
    if (slash != std::string_view::npos) {
      const std::optional<int> given = ParseNumber(part.substr(slash + 1));
      if (!given.has_value() || *given == 0) {
        return Fail(field, part, "the step behind '/' has to be a number from 1 on");
      }
      step = *given;
    }
    int first = field.first;
    int last = field.last;
    const bool any = range == "*" || (range.empty() && slash != std::string_view::npos);
    const int count = field.last - field.first + 1;
    if (any && step > count && !stored_) {  // It would mean one moment, and look like a period.
      return Fail(field, part, fmt::format("the step after '*' is {} at most", count));
    }
    if (!any) {
      const std::size_t dash = range.find('-');
      const std::optional<int> from = ParseValue(field, range.substr(0, dash));
      if (!from.has_value()) return;
      first = *from;
      if (dash != std::string_view::npos) {
        const std::optional<int> to = ParseValue(field, range.substr(dash + 1));
        if (!to.has_value()) return;
        last = *to;
      } else if (slash == std::string_view::npos) {
        last = first;
      }
    }
    if (last < first && &field == &kYear) return Fail(field, part, "the second year is earlier");
    if (last < first) last += count;  // Over the end.
    step = std::min(step, count);     // A longer one leads beyond the end as well.
    for (int value = first; value <= last; value += step) {
      bits.set(static_cast<std::size_t>((value - field.first) % count + field.first - offset));
    }
  }

  void ParseDays(std::string_view of_month, std::string_view of_week) {
    const auto open = [](std::string_view text) { return text == "?" || text == "*"; };
    if (of_month == "?" && of_week == "?") {
      return Fail(kDayOfWeek, of_week, "the day of month is left open already");
    }
    if (!open(of_month) && !open(of_week)) {
      return Fail(kDayOfWeek, of_week,
                  "expected is '?', because there is a day of month; give one of them");
    }
    expression_.by_day_of_week_ = !open(of_week);
    if (expression_.by_day_of_week_) return ParseDaysOfWeek(of_week);
    ParseDaysOfMonth(open(of_month) ? "*" : of_month);
  }

  void ParseDaysOfMonth(std::string_view text) {
    const std::string without_c = WithoutC(text);
    text = without_c;
    const bool list = text.find(',') != std::string_view::npos;
    if (text.find('L') != std::string_view::npos) {
      if (list) return Fail(kDayOfMonth, text, "'L' cannot stand beside other days");
      return ParseLastDay(text);
    }
    const std::size_t w = text.find('W');
    if (w == std::string_view::npos) {
      return ParseSet(kDayOfMonth, text, expression_.days_, 0);
    }
    // Of a list only this day counts, as with Zeze 1.6.
    const std::size_t comma = text.rfind(',', w);
    const std::size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
    const std::optional<int> day = ParseValue(kDayOfMonth, text.substr(begin, w - begin));
    if (day.has_value()) {
      expression_.special_ = {.kind = Kind::kNearWeekday, .number = *day};
    }
  }

  // L, LW, L-n, L-nW
  void ParseLastDay(std::string_view text) {
    std::string_view rest = text;
    bool weekday = false;
    if (rest.ends_with('W')) {
      weekday = true;
      rest.remove_suffix(1);
    }
    std::optional<int> before = 0;
    if (rest != "L") {
      before = rest.starts_with("L-") ? ParseNumber(rest.substr(2)) : std::nullopt;
    }
    if (!before.has_value() || *before > 30) {
      return Fail(kDayOfMonth, text, "expected are L, LW, L-n or L-nW, n up to 30");
    }
    expression_.special_ = {.kind = Kind::kLastDay, .number = *before, .weekday = weekday};
  }

  void ParseDaysOfWeek(std::string_view text) {
    const std::string without_c = WithoutC(text);
    text = without_c;
    const bool list = text.find(',') != std::string_view::npos;
    if (const std::size_t hash = text.find('#'); hash != std::string_view::npos) {
      const std::optional<int> nth = ParseNumber(text.substr(hash + 1));
      if (list || !nth.has_value() || *nth < 1 || *nth > 5) {
        return Fail(kDayOfWeek, text, "expected is one day, '#' and a number from 1 to 5");
      }
      const std::optional<int> day = ParseValue(kDayOfWeek, text.substr(0, hash));
      if (!day.has_value()) return;
      expression_.special_ = {.kind = Kind::kNthDayOfWeek, .number = *day, .nth = *nth};
      return;
    }
    if (text == "L") {
      expression_.days_of_week_.set(7);
      return;
    }
    if (text.ends_with('L')) {
      if (list) return Fail(kDayOfWeek, text, "'L' cannot stand beside other days");
      const std::optional<int> day = ParseValue(kDayOfWeek, text.substr(0, text.size() - 1));
      if (!day.has_value()) return;
      expression_.special_ = {.kind = Kind::kLastDayOfWeek, .number = *day};
      return;
    }
    ParseSet(kDayOfWeek, text, expression_.days_of_week_, 0);
  }

  // A letter of old that means nothing.
  static std::string WithoutC(std::string_view text) {
    std::string result(text);
    if (result.ends_with('C')) result.pop_back();
    return result;
  }

  using Kind = CronExpression::SpecialDay::Kind;

  const std::string text_;
  const bool stored_;
  std::string error_;
  CronExpression expression_;
};

Result<CronExpression> CronExpression::Parse(std::string_view text, std::string_view zone) {
  return In(zone, CronParser(text, false).Parse());
}

Result<CronExpression> CronExpression::ParseStored(std::string_view text, std::string_view zone) {
  return In(zone, CronParser(text, true).Parse());
}

Result<CronExpression> CronExpression::In(std::string_view zone, Result<CronExpression> parsed) {
  if (!parsed.ok()) return parsed;
  absl::TimeZone found = absl::LocalTimeZone();
  if (!zone.empty() && !absl::LoadTimeZone(std::string(zone), &found)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cron '{}': there is no time zone '{}' in the system's database "
                             "(package tzdata); expected is a name such as Europe/Berlin",
                             parsed.value().text(), zone));
  }
  parsed.value().zone_ = found;
  return parsed;
}

// Bits 1 to 31.
std::uint32_t CronExpression::DaysOfMonth(const absl::CivilMonth& month) const {
  const int count = DaysIn(month);
  const auto bit = [count](int day) {
    return day >= 1 && day <= count ? std::uint32_t{1} << day : 0;
  };
  switch (special_.kind) {
    case SpecialDay::Kind::kNone:
      break;
    case SpecialDay::Kind::kLastDay: {
      const int day = count - special_.number;
      return day >= 1 && special_.weekday ? bit(NearestWeekday(month, day)) : bit(day);
    }
    case SpecialDay::Kind::kNearWeekday:
      return special_.number > count ? 0 : bit(NearestWeekday(month, special_.number));
    case SpecialDay::Kind::kLastDayOfWeek: {
      const int last = DayOfWeek(absl::CivilDay(month) + (count - 1));
      return bit(count - (last - special_.number + 7) % 7);
    }
    case SpecialDay::Kind::kNthDayOfWeek: {
      const int first = DayOfWeek(absl::CivilDay(month));
      return bit(1 + (special_.number - first + 7) % 7 + 7 * (special_.nth - 1));
    }
  }
  std::uint32_t days = 0;
  int day_of_week = DayOfWeek(absl::CivilDay(month));
  for (int day = 1; day <= count; ++day) {
    const bool wanted = by_day_of_week_ ? days_of_week_.test(static_cast<std::size_t>(day_of_week))
                                        : days_.test(static_cast<std::size_t>(day));
    if (wanted) days |= bit(day);
    day_of_week = day_of_week % 7 + 1;
  }
  return days;
}

// The first time of the calendar from `from` on, whatever the zone makes of it.
std::optional<absl::CivilSecond> CronExpression::NextMatch(absl::CivilSecond from) const {
  if (from.year() < kFirstYear) from = absl::CivilSecond(kFirstYear);
  while (from.year() <= kLastYear) {
    const std::optional<int> year = NextBit(years_, static_cast<int>(from.year()) - kFirstYear);
    if (!year.has_value()) return std::nullopt;
    if (*year + kFirstYear != from.year()) from = absl::CivilSecond(*year + kFirstYear);
    const std::optional<int> month = NextBit(months_, from.month());
    if (!month.has_value()) {
      from = absl::CivilSecond(absl::CivilYear(from) + 1);
      continue;
    }
    if (*month != from.month()) from = absl::CivilSecond(from.year(), *month);
    const std::uint32_t days = DaysOfMonth(absl::CivilMonth(from)) >> from.day() << from.day();
    if (days == 0) {
      from = absl::CivilSecond(absl::CivilMonth(from) + 1);
      continue;
    }
    const int day = __builtin_ctz(days);
    if (day != from.day()) from = absl::CivilSecond(from.year(), from.month(), day);
    const std::optional<int> hour = NextBit(hours_, from.hour());
    if (!hour.has_value()) {
      from = absl::CivilSecond(absl::CivilDay(from) + 1);
      continue;
    }
    if (*hour != from.hour()) {
      from = absl::CivilSecond(from.year(), from.month(), from.day(), *hour);
    }
    const std::optional<int> minute = NextBit(minutes_, from.minute());
    if (!minute.has_value()) {
      from = absl::CivilSecond(absl::CivilHour(from) + 1);
      continue;
    }
    if (*minute != from.minute()) {
      from = absl::CivilSecond(from.year(), from.month(), from.day(), from.hour(), *minute);
    }
    const std::optional<int> second = NextBit(seconds_, from.second());
    if (second.has_value()) return from + (*second - from.second());
    from = absl::CivilSecond(absl::CivilMinute(from) + 1);
  }
  return std::nullopt;
}

std::optional<std::int64_t> CronExpression::NextAfter(std::int64_t unix_ms) const {
  const absl::Time after = absl::FromUnixMillis(unix_ms);
  // Whole seconds of the zone are whole seconds of the world.
  absl::CivilSecond from = absl::ToCivilSecond(after, zone_) + 1;
  if (!every_hour()) {
    // What has happened before clocks went back is not repeated.
    const absl::TimeZone::TimeInfo info = zone_.At(absl::ToCivilSecond(after, zone_));
    if (info.kind == absl::TimeZone::TimeInfo::REPEATED && after >= info.trans) {
      absl::TimeZone::CivilTransition change;
      if (zone_.NextTransition(info.trans - absl::Nanoseconds(1), &change)) from = change.from;
    }
  }
  std::optional<absl::CivilSecond> match = NextMatch(from);
  absl::Time segment = after;
  absl::TimeZone::CivilTransition change;
  while (match.has_value() && zone_.NextTransition(segment, &change)) {
    if (*match < change.from) break;
    // Clocks change before: at the moment of it they go from `from` to `to`.
    const absl::Time moment = zone_.At(change.to).trans;
    if (*match < change.to) {
      if (!every_hour()) return absl::ToUnixMillis(moment);
      match = NextMatch(change.to);
    } else if (change.to < change.from && every_hour()) {
      match = NextMatch(change.to);
    }
    segment = moment;
  }
  if (!match.has_value()) return std::nullopt;
  const absl::TimeZone::TimeInfo info = zone_.At(*match);
  // Of two moments with this time of day the one after the last change of clocks.
  const bool first = info.pre > after && info.pre >= segment;
  return absl::ToUnixMillis(first ? info.pre : info.post);
}

}  // namespace zeze
