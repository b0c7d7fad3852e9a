// Daily: a new day begins for everybody, at the moments that a schedule says: fights of the day are
// counted anew, and everybody gets a mail with some gold.

#pragma once

#include <cstdint>
#include <string>

#include "arena/Daily.module.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

class Mails;
class Players;

inline constexpr std::int64_t kDailyGold = 2;  // And one more for each fight that was won.

struct DailyTotals {
  std::int64_t days = 0;
  std::int64_t begun = 0;  // Days, for players.
  std::int64_t gold = 0;
  std::int64_t waiting = 0;  // Players for whom the last day has not begun: the servers were ended.
};

// One server begins a day: a named timer exists once in the cluster. A job that outlives servers
// begins it for everybody, some players in each transaction.
class Daily final : public arena::Daily::ModuleDailyBase {
 public:
  struct Parts {
    Players& players;
    Mails& mails;
    zeze::Timers& timers;
    zeze::DelayRemove& delay_remove;
  };

  // The schedule is a cron expression, in UTC. All parts outlive this.
  Daily(const Parts& parts, std::string schedule);

  // The one that has begun last.
  std::int64_t Today(zeze::Transaction& tx);
  // Every day that has begun for others begins for this player, once.
  void BringUpToDate(zeze::Transaction& tx, std::int64_t role) { Begin(tx, role, Today(tx)); }

  zeze::Result<void> Start(zeze::Application& application) override;

  // When nothing runs. An error tells which day, or whose, is not as it should be.
  zeze::Result<DailyTotals> Check();

 private:
  std::int64_t NextDay(zeze::Transaction& tx, const zeze::TimerContext& timer);
  bool BeginForSome(zeze::Transaction& tx, std::string& state);
  void Begin(zeze::Transaction& tx, std::int64_t role, std::int64_t day);

  Players& players_;
  Mails& mails_;
  zeze::Timers& timers_;
  zeze::DelayRemove& delay_remove_;
  const std::string schedule_;
  zeze::Application* application_ = nullptr;
};

}  // namespace arena_example
