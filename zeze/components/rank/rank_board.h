// RankBoard: which leaderboard, of which span of time; and the calendar that says which span is
// now.
//
//   const auto today = zeze::LocalDay(clock.SystemNow(), std::chrono::hours(8));    // UTC+8.
//   rank.Update(tx, zeze::RankBoard::Total(kPower), role, value);
//   rank.Update(tx, zeze::RankBoard::Week(kPower, today), role, value);

#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "Zeze/Builtin/Game/Rank.h"
#include "zeze/base/hash.h"

namespace zeze {

using RankKey = Zeze::Builtin::Game::Rank::BConcurrentKey;

// Stored; the numbers are those of Zeze 1.6.
enum class RankSpan : std::int32_t {
  kTotal = RankKey::TimeTypeTotal,
  kDay = RankKey::TimeTypeDay,
  kWeek = RankKey::TimeTypeWeek,
  kSeason = RankKey::TimeTypeSeason,
  kYear = RankKey::TimeTypeYear,
  kCustom = RankKey::TimeTypeCustomize,
};

// How weeks are numbered. The defaults are those of Java in Chinese and American settings: weeks
// begin on Sunday, and the one with the first of January is the first.
struct RankWeeks {
  std::chrono::weekday first_day = std::chrono::Sunday;
  unsigned days_in_first_week_min = 1;
  // The last days of December may belong to week 1. False: of the year that begins then. True: of
  // their own calendar year, as Zeze 1.6 has it: they share a board with the January before.
  bool calendar_year = false;
};

// The day at a place that is so far ahead of UTC. For places with summer time pass the offset of
// the moment, or the day itself: boards know days only.
std::chrono::local_days LocalDay(std::chrono::system_clock::time_point now,
                                 std::chrono::seconds ahead_of_utc);

struct RankBoard {
  std::int32_t rank_type = 0;
  RankSpan span = RankSpan::kTotal;
  std::int32_t year = 0;
  std::int64_t offset = 0;  // Which day, week, season of the year; custom: whatever it means.

  static RankBoard Total(std::int32_t rank_type) { return {.rank_type = rank_type}; }
  // 1 January is day 1.
  static RankBoard Day(std::int32_t rank_type, std::chrono::local_days day);
  static RankBoard Week(std::int32_t rank_type, std::chrono::local_days day,
                        const RankWeeks& weeks = {});
  // April to June is season 1, January to March season 4 of the same calendar year.
  static RankBoard Season(std::int32_t rank_type, std::chrono::local_days day);
  static RankBoard Year(std::int32_t rank_type, std::chrono::local_days day);
  // For example the id of an event.
  static RankBoard Custom(std::int32_t rank_type, std::int64_t id) {
    return {.rank_type = rank_type, .span = RankSpan::kCustom, .offset = id};
  }

  RankKey Key(std::uint32_t group) const {
    return {.RankType = rank_type,
            .ConcurrentId = static_cast<std::int32_t>(group),
            .TimeType = static_cast<std::int32_t>(span),
            .Year = year,
            .Offset = offset};
  }
  static RankBoard Of(const RankKey& key) {
    return {.rank_type = key.RankType,
            .span = static_cast<RankSpan>(key.TimeType),
            .year = key.Year,
            .offset = key.Offset};
  }

  std::string ToString() const;
  auto operator<=>(const RankBoard&) const = default;
};

}  // namespace zeze

template <>
struct std::hash<zeze::RankBoard> {
  std::size_t operator()(const zeze::RankBoard& board) const noexcept {
    std::uint64_t combined = zeze::CombinedHashStart();
    combined = zeze::CombineHash(combined, zeze::HashOf(board.rank_type));
    combined = zeze::CombineHash(combined, zeze::HashOf(board.offset));
    combined = zeze::CombineHash(combined, zeze::HashOf(board.year));
    combined = zeze::CombineHash(combined, zeze::HashOf(board.span));
    return static_cast<std::size_t>(combined);
  }
};
