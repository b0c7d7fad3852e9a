#include "zeze/components/rank/rank_board.h"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

namespace zeze {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::year;

using std::chrono::local_days;

local_days Day(int year, unsigned month, unsigned day) {
  return local_days(std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day));
}

RankBoard Board(RankSpan span, std::int32_t year, std::int64_t offset) {
  return {.rank_type = 3, .span = span, .year = year, .offset = offset};
}

TEST(RankBoardTest, ADayIsThatOfThePlace) {
  const auto evening = std::chrono::sys_days(year(2026) / 3 / 1) + hours(20);
  EXPECT_EQ(LocalDay(evening, seconds(0)), Day(2026, 3, 1));
  EXPECT_EQ(LocalDay(evening, hours(8)), Day(2026, 3, 2));
  EXPECT_EQ(LocalDay(evening, -hours(21)), Day(2026, 2, 28));
  EXPECT_EQ(LocalDay(std::chrono::sys_days(year(1969) / 12 / 31) + hours(1), seconds(0)),
            Day(1969, 12, 31));
}

TEST(RankBoardTest, DaysAreCountedFromOne) {
  EXPECT_EQ(RankBoard::Day(3, Day(2026, 1, 1)), Board(RankSpan::kDay, 2026, 1));
  EXPECT_EQ(RankBoard::Day(3, Day(2024, 12, 31)), Board(RankSpan::kDay, 2024, 366));
}

TEST(RankBoardTest, SeasonsAreThePeers) {
  const std::int64_t season_of_month[] = {4, 4, 4, 1, 1, 1, 2, 2, 2, 3, 3, 3};
  for (unsigned month = 1; month <= 12; ++month) {
    EXPECT_EQ(RankBoard::Season(3, Day(2026, month, 15)),
              Board(RankSpan::kSeason, 2026, season_of_month[month - 1]));
  }
}

TEST(RankBoardTest, TotalYearAndCustom) {
  EXPECT_EQ(RankBoard::Total(3), Board(RankSpan::kTotal, 0, 0));
  EXPECT_EQ(RankBoard::Year(3, Day(2026, 7, 1)), Board(RankSpan::kYear, 2026, 0));
  EXPECT_EQ(RankBoard::Custom(3, 77), Board(RankSpan::kCustom, 0, 77));
}

// 1 January 2026 is a Thursday: in Java's American and Chinese settings week 1 begins on Sunday, 28
// December 2025.
TEST(RankBoardTest, WeeksBeginOnSunday) {
  EXPECT_EQ(RankBoard::Week(3, Day(2026, 1, 1)), Board(RankSpan::kWeek, 2026, 1));
  EXPECT_EQ(RankBoard::Week(3, Day(2026, 1, 3)), Board(RankSpan::kWeek, 2026, 1));
  EXPECT_EQ(RankBoard::Week(3, Day(2026, 1, 4)), Board(RankSpan::kWeek, 2026, 2));
  EXPECT_EQ(RankBoard::Week(3, Day(2025, 12, 27)), Board(RankSpan::kWeek, 2025, 52));
}

TEST(RankBoardTest, TheLastDaysOfDecemberDoNotShareABoardWithTheJanuaryBefore) {
  EXPECT_EQ(RankBoard::Week(3, Day(2025, 12, 28)), Board(RankSpan::kWeek, 2026, 1));
  EXPECT_EQ(RankBoard::Week(3, Day(2025, 1, 1)), Board(RankSpan::kWeek, 2025, 1));
  // As the peer has it.
  EXPECT_EQ(RankBoard::Week(3, Day(2025, 12, 28), {.calendar_year = true}),
            Board(RankSpan::kWeek, 2025, 1));
}

TEST(RankBoardTest, WeeksCanBeThoseOfIso) {
  const RankWeeks iso{.first_day = std::chrono::Monday, .days_in_first_week_min = 4};
  EXPECT_EQ(RankBoard::Week(3, Day(2026, 1, 1), iso), Board(RankSpan::kWeek, 2026, 1));
  EXPECT_EQ(RankBoard::Week(3, Day(2025, 12, 29), iso), Board(RankSpan::kWeek, 2026, 1));
  EXPECT_EQ(RankBoard::Week(3, Day(2027, 1, 1), iso), Board(RankSpan::kWeek, 2026, 53));
  EXPECT_EQ(RankBoard::Week(3, Day(2027, 1, 4), iso), Board(RankSpan::kWeek, 2027, 1));
}

TEST(RankBoardTest, TheKeyOfAGroupLeadsBackToItsBoard) {
  const RankBoard board = RankBoard::Week(3, Day(2026, 6, 1));
  const RankKey key = board.Key(17);
  EXPECT_EQ(key.ConcurrentId, 17);
  EXPECT_EQ(RankBoard::Of(key), board);
}

}  // namespace
}  // namespace zeze
