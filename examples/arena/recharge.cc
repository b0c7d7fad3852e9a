#include "recharge.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "arena/Recharge.h"
#include "players.h"
#include "zeze/base/result.h"
#include "zeze/components/redo_queue/redo_queue_server.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

using arena::Recharge::BRecharge;

Recharges::Recharges(Players& players, zeze::RedoQueueServer& redo) : players_(players) {
  redo.Register<BRecharge>(
      kRechargeQueue, kRechargeTask,
      [this](zeze::Transaction& tx, const BRecharge& paid) { return Credit(tx, paid); },
      {.attempts_max = 100, .poison = zeze::RedoPoison::kPark});
}

// An order that comes twice throws: that never happens, and if it did, everybody should see it.
bool Recharges::Credit(zeze::Transaction& tx, const BRecharge& paid) {
  const auto player = players_.tPlayer.Edit(tx, paid.role);
  if (!player) return false;
  tRecharge.Insert(tx, paid.order, paid);
  player->gold += paid.gold;
  return true;
}

zeze::Result<RechargeTotals> Recharges::Check(const std::string& orders_file) {
  const auto wrong = [](std::string what) {
    return zeze::Error(zeze::ErrorCode::kCorrupt, std::move(what));
  };
  RechargeTotals confirmed;
  std::ifstream orders(orders_file);
  for (BRecharge order; orders >> order.order >> order.role >> order.gold;) {
    const auto credited = tRecharge.ReadCopy(order.order);
    if (!credited.ok()) return credited.error();
    if (!credited.value()) return wrong(fmt::format("order {} was not credited", order.order));
    if (!(*credited.value() == order)) {
      return wrong(fmt::format("order {} was for {} gold, credited were {}", order.order,
                               order.gold, credited.value()->gold));
    }
    ++confirmed.orders;
    confirmed.gold += order.gold;
  }
  RechargeTotals credited;
  const auto walked = tRecharge.Walk([&](std::int64_t, const BRecharge& order) {
    ++credited.orders;
    credited.gold += order.gold;
    return true;
  });
  if (!walked.ok()) return walked.error();
  if (credited.orders != confirmed.orders || credited.gold != confirmed.gold) {
    return wrong(fmt::format("{} orders of {} gold were credited, but {} of {} confirmed",
                             credited.orders, credited.gold, confirmed.orders, confirmed.gold));
  }
  return credited;
}

}  // namespace arena_example
