// Buffs: a potion makes a player stronger for a few seconds. A timer ends it, whatever server dies
// meanwhile.

#pragma once

#include <chrono>
#include <cstdint>

#include "arena/Buff.h"
#include "arena/Buff.module.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/logins.h"
#include "zeze/base/result.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

class Players;

inline constexpr int kPotion = 3;  // The kind of good.
inline constexpr std::chrono::seconds kBuffTime{5};
inline constexpr int kBuffPower = 20;  // Per cent.

struct BuffTotals {
  std::int64_t begun = 0;  // A potion each.
  std::int64_t ended = 0;
  std::int64_t active = 0;
  std::int64_t strays = 0;     // Ended twice.
  std::int64_t forgotten = 0;  // Active, without a timer.
};

class Buffs final : public arena::Buff::ModuleBuffBase {
 public:
  // Both outlive the buffs.
  Buffs(Players& players, zeze::Timers& timers);

  // Before the first message. Outlives the buffs' use.
  void Connect(zeze::arch::Logins<std::int64_t>& logins) { logins_ = &logins; }

  // 0 if the player has no buff.
  int PowerOf(zeze::Transaction& tx, std::int64_t role);
  // Potion, buff and timer are one transaction.
  std::int64_t Drink(zeze::Transaction& tx, std::int64_t role);
  arena::Buff::BShownBuff Show(zeze::Transaction& tx, std::int64_t role);

  std::int64_t ProcessDrink(zeze::Transaction& tx, zeze::Session& session,
                            const arena::Buff::BDrink& argument,
                            arena::Buff::BShownBuff& result) override;
  std::int64_t ProcessLook(zeze::Transaction& tx, zeze::Session& session,
                           arena::Buff::BShownBuff& result) override;

  zeze::Result<void> Start(zeze::Application& application) override;

  // When nothing runs.
  zeze::Result<BuffTotals> Count();

 private:
  std::int64_t End(zeze::Transaction& tx, const arena::Buff::BBuffEnd& end);
  std::int64_t UnixNow() const;

  Players& players_;
  zeze::Timers& timers_;
  zeze::Application* application_ = nullptr;
  zeze::arch::Logins<std::int64_t>* logins_ = nullptr;
};

}  // namespace arena_example
