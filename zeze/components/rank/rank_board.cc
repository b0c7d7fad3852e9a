#include "zeze/components/rank/rank_board.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "zeze/base/usage_error.h"

namespace zeze {

namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::year_month_day;

std::chrono::year YearOf(local_days day) {
  return year_month_day(day).year();
}

local_days NewYear(std::chrono::year year) {
  return local_days(year / std::chrono::January / 1);
}

// Where the first week of the year begins: perhaps in the December before.
local_days FirstWeek(std::chrono::year year, const RankWeeks& weeks) {
  const local_days first = NewYear(year);
  const local_days begin = first - (std::chrono::weekday(first) - weeks.first_day);
  const days in_this_year = begin + days(7) - first;
  const bool is_first = in_this_year >= days(weeks.days_in_first_week_min);
  return is_first ? begin : begin + days(7);
}

}  // namespace

std::chrono::local_days LocalDay(std::chrono::system_clock::time_point now,
                                 std::chrono::seconds ahead_of_utc) {
  return local_days(std::chrono::floor<days>(
      now.time_since_epoch() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(ahead_of_utc)));
}

RankBoard RankBoard::Day(std::int32_t rank_type, std::chrono::local_days day) {
  const std::chrono::year year = YearOf(day);
  return {.rank_type = rank_type,
          .span = RankSpan::kDay,
          .year = static_cast<int>(year),
          .offset = (day - NewYear(year)).count() + 1};
}

RankBoard RankBoard::Week(std::int32_t rank_type, std::chrono::local_days day,
                          const RankWeeks& weeks) {
  ZEZE_REQUIRE(weeks.days_in_first_week_min >= 1 && weeks.days_in_first_week_min <= 7,
               "the first week of a year has 1 to 7 days of it");
  const std::chrono::year calendar_year = YearOf(day);
  std::chrono::year year = calendar_year;
  const std::chrono::years one(1);
  if (day >= FirstWeek(year + one, weeks)) {
    year += one;
  } else if (day < FirstWeek(year, weeks)) {
    year -= one;
  }
  return {.rank_type = rank_type,
          .span = RankSpan::kWeek,
          .year = static_cast<int>(weeks.calendar_year ? calendar_year : year),
          .offset = (day - FirstWeek(year, weeks)).count() / 7 + 1};
}

RankBoard RankBoard::Season(std::int32_t rank_type, std::chrono::local_days day) {
  const unsigned quarter = (static_cast<unsigned>(year_month_day(day).month()) - 1) / 3;
  return {.rank_type = rank_type,
          .span = RankSpan::kSeason,
          .year = static_cast<int>(YearOf(day)),
          .offset = quarter == 0 ? 4 : quarter};
}

RankBoard RankBoard::Year(std::int32_t rank_type, std::chrono::local_days day) {
  return {.rank_type = rank_type, .span = RankSpan::kYear, .year = static_cast<int>(YearOf(day))};
}

std::string RankBoard::ToString() const {
  return fmt::format("board of rank type {} (time type {}, year {}, offset {})", rank_type,
                     static_cast<std::int32_t>(span), year, offset);
}

}  // namespace zeze
