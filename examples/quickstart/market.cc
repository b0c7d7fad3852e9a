#include "market.h"

#include <cstdint>
#include <string>

#include "bazaar/Market.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/transaction.h"

namespace quickstart {

using bazaar::Market::BBag;
using bazaar::Market::BReceipt;
using bazaar::Market::BRole;

zeze::Result<void> Market::Start(zeze::Application& application) {
  for (std::int64_t id = 0; id < kRoleCount; ++id) {
    const std::int64_t code = application.Call("create role", [&](zeze::Transaction& tx) {
      BRole role;
      role.name = "player " + std::to_string(id);
      role.gold = kGoldEach;
      if (!tRole.TryAdd(tx, id, role)) return zeze::result_code::kSuccess;
      BBag bag;
      for (int good = 0; good < kGoodKinds; ++good) bag.goods.Put(good, kGoodsEach);
      tBag.Insert(tx, id, bag);
      return zeze::result_code::kSuccess;
    });
    if (code != zeze::result_code::kSuccess) {
      return zeze::Error(zeze::ErrorCode::kUnavailable,
                         "cannot create player " + std::to_string(id));
    }
  }
  return {};
}

std::int64_t Market::Trade(zeze::Transaction& tx, const Offer& offer) {
  auto buyer = tRole.Edit(tx, offer.buyer);
  auto seller = tRole.Edit(tx, offer.seller);
  if (!buyer || !seller) return ErrorCode(bazaar::Market::NoSuchRole);
  if (buyer->gold < offer.price) return ErrorCode(bazaar::Market::NotEnoughGold);

  auto bag = tBag.Edit(tx, offer.seller);
  const int* count = bag->goods.Find(offer.good);
  if (count == nullptr) return ErrorCode(bazaar::Market::NotInBag);
  if (*count == 1) {
    bag->goods.Erase(offer.good);
  } else {
    bag->goods.Update(offer.good, [](int& n) { --n; });
  }
  auto target = tBag.Edit(tx, offer.buyer);
  if (!target->goods.Update(offer.good, [](int& n) { ++n; })) target->goods.Put(offer.good, 1);

  buyer->gold -= offer.price;
  seller->gold += offer.price;
  ++buyer->trades;
  ++seller->trades;
  return zeze::result_code::kSuccess;
}

std::int64_t Market::TradeWithReceipt(zeze::Transaction& tx, const Offer& offer,
                                      std::int64_t receipt) {
  const std::int64_t code = Trade(tx, offer);
  if (code != zeze::result_code::kSuccess) return code;
  ++tRole.Edit(tx, offer.buyer)->receipts;
  ++tRole.Edit(tx, offer.seller)->receipts;
  tReceipt.Insert(
      tx, receipt,
      BReceipt{
          .buyer = offer.buyer, .seller = offer.seller, .good = offer.good, .price = offer.price});
  return zeze::result_code::kSuccess;
}

zeze::Result<Totals> Market::Count() {
  Totals totals;
  const auto roles = tRole.Walk([&](std::int64_t, const BRole& role) {
    ++totals.roles;
    totals.gold += role.gold;
    totals.receipts_counted += role.receipts;
    return true;
  });
  if (!roles.ok()) return roles.error();
  const auto bags = tBag.Walk([&](std::int64_t, const BBag& bag) {
    for (const auto& [good, count] : bag.goods) totals.goods += count;
    return true;
  });
  if (!bags.ok()) return bags.error();
  const auto receipts = tReceipt.Walk([&](std::int64_t, const BReceipt&) {
    ++totals.receipts;
    return true;
  });
  if (!receipts.ok()) return receipts.error();
  return totals;
}

}  // namespace quickstart
