#include "players.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "arena/Player.h"
#include "daily.h"
#include "mail.h"
#include "zeze/app/session.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

using arena::Player::BEnterResult;
using arena::Player::BPlayer;
using arena::Player::BReceipt;
using arena::Player::BRequest;
using arena::Player::BTrade;

std::int64_t RoleOf(std::string_view account) {
  return zeze::HashName64(account) & std::numeric_limits<std::int64_t>::max();
}

void Players::Enter(zeze::Transaction& tx, std::int64_t role, const std::string& account) {
  if (tPlayer.Contains(tx, role)) {
    daily_->BringUpToDate(tx, role);
    return;
  }
  const std::int64_t today = daily_->Today(tx);
  BPlayer fresh{.account = account, .gold = kGoldAtStart, .firstDay = today, .day = today};
  for (int good = 1; good <= kGoodKinds; ++good) fresh.goods.Put(good, kGoodsAtStart);
  tPlayer.Insert(tx, role, fresh);
}

std::int64_t Players::ProcessEnter(zeze::Transaction& tx, zeze::Session& session,
                                   BEnterResult& result) {
  const std::int64_t role = RoleOf(session.account());
  Enter(tx, role, session.account());
  const BPlayer* player = tPlayer.Get(tx, role);
  if (player->account != session.account()) return ErrorCode(arena::Player::RoleTaken);
  result.role = role;
  result.gold = player->gold;
  result.score = player->score;
  result.goods = player->goods;
  result.lastRequest = player->lastRequest;
  return zeze::result_code::kSuccess;
}

std::int64_t Players::Once(zeze::Transaction& tx, std::int64_t role, std::int64_t request,
                           zeze::FunctionRef<std::int64_t()> action) {
  auto player = tPlayer.Edit(tx, role);
  if (!player) return ErrorCode(arena::Player::NoSuchPlayer);
  if (request == player->lastRequest) return zeze::result_code::kSuccess;
  if (request < player->lastRequest) return ErrorCode(arena::Player::OldRequest);
  player->lastRequest = request;
  return action();
}

bool Players::TakeGood(zeze::Transaction& tx, std::int64_t role, std::int32_t good) {
  const auto player = tPlayer.Edit(tx, role);
  if (!player) return false;
  const int* count = player->goods.Find(good);
  if (count == nullptr) return false;
  if (*count == 1) {
    player->goods.Erase(good);
  } else {
    player->goods.Update(good, [](int& n) { --n; });
  }
  return true;
}

std::int64_t Players::ProcessTrade(zeze::Transaction& tx, zeze::Session& session,
                                   const BTrade& trade) {
  const std::int64_t role = RoleOf(session.account());
  return Once(tx, role, trade.request, [&] { return Trade(tx, role, trade); });
}

std::int64_t Players::Trade(zeze::Transaction& tx, std::int64_t role, const BTrade& trade) {
  if (trade.price <= 0 || trade.seller == role) return ErrorCode(arena::Player::BadRequest);
  auto buyer = tPlayer.Edit(tx, role);
  auto seller = tPlayer.Edit(tx, trade.seller);
  if (!seller) return ErrorCode(arena::Player::NoSuchPlayer);
  if (buyer->gold < trade.price) return ErrorCode(arena::Player::NotEnoughGold);
  if (!TakeGood(tx, trade.seller, trade.good)) return ErrorCode(arena::Player::NotInBag);

  if (!buyer->goods.Update(trade.good, [](int& n) { ++n; })) buyer->goods.Put(trade.good, 1);
  buyer->gold -= trade.price;
  // The seller need not be there.
  mails_->Send(tx, trade.seller, fmt::format("{} has bought from you.", buyer->account),
               trade.price);
  ++buyer->trades;
  ++seller->trades;
  tReceipt.Insert(
      tx, BRequest{.role = role, .number = trade.request},
      BReceipt{.buyer = role, .seller = trade.seller, .good = trade.good, .price = trade.price});
  return zeze::result_code::kSuccess;
}

zeze::Result<Totals> Players::Count() {
  Totals totals;
  const auto players = tPlayer.Walk([&](std::int64_t, const BPlayer& player) {
    ++totals.players;
    totals.gold += player.gold;
    totals.trades += player.trades;
    for (const auto& [good, count] : player.goods) totals.goods += count;
    return true;
  });
  if (!players.ok()) return players.error();
  const auto receipts = tReceipt.Walk([&](const BRequest&, const BReceipt& receipt) {
    ++totals.receipts;
    totals.gold_traded += receipt.price;
    return true;
  });
  if (!receipts.ok()) return receipts.error();
  return totals;
}

}  // namespace arena_example
