#include "game.h"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "arena/Player.h"
#include "players.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/online/login.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/config/config.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

zeze::Result<GameOptions> GameOptions::FromConfig(const zeze::Config& config) {
  GameOptions options;
  const zeze::CustomizeConfig* arena = config.Customize("Arena");
  if (arena == nullptr) return options;
  options.daily_reset = arena->element->GetAttribute("DailyReset", options.daily_reset);
  const std::string kept = arena->element->GetAttribute("DeletedKept");
  if (kept.empty()) return options;
  std::int64_t seconds = 0;
  const auto read = std::from_chars(kept.data(), kept.data() + kept.size(), seconds);
  if (read.ec != std::errc() || read.ptr != kept.data() + kept.size() || seconds < 1) {
    return zeze::Error(
        zeze::ErrorCode::kInvalidArgument,
        fmt::format("DeletedKept of the CustomizeConf \"Arena\" is '{}': give it in seconds, from "
                    "1 on",
                    kept));
  }
  options.deleted_kept = std::chrono::seconds(seconds);
  return options;
}

Game::Game(const GameOptions& options)
    // A server that is gone comes back, or others go on for it after some seconds.
    : delay_remove(queues, {.delay = options.deleted_kept,
                            .take_over_after = std::chrono::seconds(10),
                            .take_over_period = std::chrono::seconds(2)}),
      redo({.acceptors = options.shop_acceptors}),
      daily({.players = players, .mails = mails, .timers = timers, .delay_remove = delay_remove},
            options.daily_reset) {
  players.Connect(mails, daily);
  online.logins().On(zeze::arch::LoginChange::kLogin,
                     {.in_transaction = [](zeze::Transaction&, const auto& login) {
                       // Nobody plays what is not his.
                       return login.key == RoleOf(login.account)
                                  ? zeze::result_code::kSuccess
                                  : Players::ErrorCode(arena::Player::RoleTaken);
                     }});
}

// In the order of their starts: each stands on those before it. The shop's orders come last, when
// all others can be used.
std::vector<zeze::Module*> Game::Modules() {
  return {&auto_keys, &timers, &queues, &delay_remove, &linked_maps,  &players,
          &mails,     &buffs,  &daily,  &recharges,    &board.rank(), &board,
          &maps,      &world,  &online, &redo};
}

void Game::AddTo(zeze::Application& application) {
  for (zeze::Module* module : Modules()) application.AddModule(*module);
}

void Game::AddTablesTo(zeze::Application& application) {
  for (zeze::Module* module : Modules()) {
    if (module == &board.rank()) {
      application.AddModule(*module);  // Reads boards only when it is started.
      continue;
    }
    for (zeze::TableBase* table : module->Tables()) application.AddTable(*table);
  }
}

}  // namespace arena_example
