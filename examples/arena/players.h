// Players: who they are, what they own, and that nothing happens to it twice.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "arena/Player.module.h"
#include "zeze/app/session.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

class Daily;
class Mails;

inline constexpr std::int64_t kGoldAtStart = 1000;
inline constexpr int kGoodKinds = 4;
inline constexpr int kGoodsAtStart = 5;  // Of each kind.

// The one player of an account.
std::int64_t RoleOf(std::string_view account);

struct Totals {
  std::int64_t players = 0;
  std::int64_t gold = 0;
  std::int64_t goods = 0;
  std::int64_t trades = 0;  // Noted at players: two for each receipt.
  std::int64_t receipts = 0;
  std::int64_t gold_traded = 0;
};

class Players final : public arena::Player::ModulePlayerBase {
 public:
  // Before the first message. Both outlive the players' use.
  void Connect(Mails& mails, Daily& daily) {
    mails_ = &mails;
    daily_ = &daily;
  }

  std::int64_t ProcessEnter(zeze::Transaction& tx, zeze::Session& session,
                            arena::Player::BEnterResult& result) override;
  std::int64_t ProcessTrade(zeze::Transaction& tx, zeze::Session& session,
                            const arena::Player::BTrade& argument) override;

  // Carries out a request about a player's property, once: clients repeat a request until it is
  // answered, and its number is saved in the transaction of its effect. One that failed had no
  // effect, and may be tried again.
  std::int64_t Once(zeze::Transaction& tx, std::int64_t role, std::int64_t request,
                    zeze::FunctionRef<std::int64_t()> action);

  // The player of the account; made if there is none.
  void Enter(zeze::Transaction& tx, std::int64_t role, const std::string& account);
  std::int64_t Trade(zeze::Transaction& tx, std::int64_t buyer, const arena::Player::BTrade& trade);
  // One piece out of the player's bag. False: there is none.
  bool TakeGood(zeze::Transaction& tx, std::int64_t role, std::int32_t good);

  // By looking at every record.
  zeze::Result<Totals> Count();

 private:
  Mails* mails_ = nullptr;
  Daily* daily_ = nullptr;
};

}  // namespace arena_example
