// Recharges: gold that players have paid for somewhere else. A program that is no server of ours
// (shop.h) hands the orders over by a redo queue.

#pragma once

#include <cstdint>
#include <string>

#include "arena/Recharge.h"
#include "arena/Recharge.module.h"
#include "zeze/base/result.h"
#include "zeze/components/redo_queue/redo_queue_server.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

class Players;

// Between the shop and the servers.
inline constexpr const char* kRechargeQueue = "recharge";
inline constexpr std::int32_t kRechargeTask = 1;

struct RechargeTotals {
  std::int64_t orders = 0;
  std::int64_t gold = 0;
};

class Recharges final : public arena::Recharge::ModuleRechargeBase {
 public:
  // Both outlive this.
  Recharges(Players& players, zeze::RedoQueueServer& redo);

  // False: the player is not there yet. The queue comes again.
  bool Credit(zeze::Transaction& tx, const arena::Recharge::BRecharge& paid);

  // When nothing runs: compares with the orders that the shop has confirmed (lines of order, role
  // and gold). An error tells which one is missing, is another, or was never confirmed.
  zeze::Result<RechargeTotals> Check(const std::string& orders_file);

 private:
  Players& players_;
};

}  // namespace arena_example
