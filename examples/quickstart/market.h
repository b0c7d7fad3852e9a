// Market: the game logic of the quickstart. Plain code on plain structs; every function that takes
// a Transaction is part of somebody's procedure.

#pragma once

#include <cstdint>

#include "bazaar/Market.module.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"

namespace quickstart {

inline constexpr std::int64_t kRoleCount = 2000;
inline constexpr std::int64_t kGoldEach = 1000;
inline constexpr int kGoodKinds = 5;
inline constexpr int kGoodsEach = 4;  // Of every kind.

struct Offer {
  std::int64_t buyer = 0;
  std::int64_t seller = 0;
  int good = 0;
  std::int64_t price = 0;
};

// What must hold at every moment, and after every crash.
struct Totals {
  std::int64_t roles = 0;
  std::int64_t gold = 0;
  std::int64_t goods = 0;
  std::int64_t receipts = 0;          // Rows of tReceipt.
  std::int64_t receipts_counted = 0;  // As the players remember them: two for each receipt.
};

class Market final : public bazaar::Market::ModuleMarketBase {
 public:
  // Gives every player gold and goods, once: players who exist are left alone.
  zeze::Result<void> Start(zeze::Application& application) override;

  // One good for gold. The caller's transaction decides whether it happens.
  std::int64_t Trade(zeze::Transaction& tx, const Offer& offer);

  // The same with a receipt: returns only when it is on the disk.
  std::int64_t TradeWithReceipt(zeze::Transaction& tx, const Offer& offer, std::int64_t receipt);

  // Counts everything there is. Walks see records at different moments: only exact while nobody
  // trades.
  zeze::Result<Totals> Count();
};

}  // namespace quickstart
