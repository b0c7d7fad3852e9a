#include "board.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "arena/Board.h"
#include "players.h"
#include "zeze/app/session.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/components/rank/rank.h"
#include "zeze/components/rank/rank_board.h"
#include "zeze/components/rank/rank_group.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

using arena::Board::BTop;
using arena::Board::BTopResult;

namespace {

constexpr zeze::RankBoard kFights{.rank_type = 1};

}  // namespace

Board::Board(Players& players)
    : players_(players),
      rank_({.concurrent_level = 64, .views = {.lifetime = std::chrono::seconds(3)}}) {}

std::int64_t Board::Update(zeze::Transaction& tx, std::int64_t role, std::int64_t score) {
  const auto updated = rank_.Update(tx, kFights, role, zeze::RankLong(score));
  return updated.ok() ? zeze::result_code::kSuccess : ErrorCode(arena::Board::NotWritten);
}

std::int64_t Board::ProcessTop(zeze::Session&, const BTop& argument, BTopResult& result) {
  const auto view = rank_.Top(kFights);
  if (!view.ok()) return ErrorCode(arena::Board::NotReadable);
  for (const auto& entry : view.value()->Shown()) {
    if (result.entries.size() >= static_cast<std::size_t>(std::max(argument.count, 0))) break;
    const auto player = players_.tPlayer.ReadCopy(entry.role);
    result.entries.PushBack(
        {.role = entry.role,
         .account = player.ok() && player.value() ? player.value()->account : "",
         .score = entry.value.As<zeze::BValueLong>()->Value});
  }
  return zeze::result_code::kSuccess;
}

zeze::Result<void> Board::Check() {
  std::vector<std::int64_t> truth;
  const auto walked =
      players_.tPlayer.Walk([&](std::int64_t, const arena::Player::BPlayer& player) {
        if (player.fights > 0) truth.push_back(player.score);
        return true;
      });
  if (!walked.ok()) return walked.error();
  std::ranges::sort(truth, std::greater());

  const auto view = rank_.Read(kFights);
  if (!view.ok()) return view.error();
  std::size_t place = 0;
  for (const auto& entry : view.value()->Shown()) {
    const std::int64_t score = entry.value.As<zeze::BValueLong>()->Value;
    if (place >= truth.size() || truth[place] != score) {
      return zeze::Error(
          zeze::ErrorCode::kCorrupt,
          fmt::format("place {} of the board has {} points, the players' records say {}", place + 1,
                      score, place < truth.size() ? truth[place] : -1));
    }
    ++place;
  }
  const std::size_t expected = std::min<std::size_t>(truth.size(), 100);
  if (place != expected) {
    return zeze::Error(zeze::ErrorCode::kCorrupt,
                       fmt::format("the board shows {} players, not {}", place, expected));
  }
  return {};
}

}  // namespace arena_example
