// Game: the modules of the arena, and the components that they stand on.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "board.h"
#include "buffs.h"
#include "daily.h"
#include "mail.h"
#include "maps.h"
#include "players.h"
#include "recharge.h"
#include "world.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/components/redo_queue/redo_queue_server.h"
#include "zeze/components/timer/timers.h"
#include "zeze/config/config.h"
#include "zeze/net/acceptor.h"

namespace arena_example {

struct GameOptions {
  std::string daily_reset = "0 0 5 * * ?";
  // How long deleted mails are kept.
  std::chrono::seconds deleted_kept = std::chrono::hours(24 * 7);
  // For the shop. Empty: what the configuration says.
  std::vector<zeze::AcceptorOptions> shop_acceptors = {};

  // What <CustomizeConf Name="Arena" DailyReset="0/15 * * * * ?" DeletedKept="10"/> says.
  static zeze::Result<GameOptions> FromConfig(const zeze::Config& config);
};

// Every server has all modules, for their tables; provider.module.binds.xml says which of them it
// offers to clients. Outlives the application.
struct Game {
  explicit Game(const GameOptions& options);

  zeze::AutoKeys auto_keys;
  zeze::Timers timers{auto_keys};
  zeze::Queues queues;
  zeze::DelayRemove delay_remove;
  zeze::LinkedMaps linked_maps{delay_remove};
  zeze::RedoQueueServer redo;

  Players players;
  Mails mails{players, auto_keys, linked_maps};
  Buffs buffs{players, timers};
  Daily daily;
  Recharges recharges{players, redo};
  Board board{players};
  Maps maps{players, board, buffs};
  World world{players};
  zeze::arch::RoleOnline online{{}};

  void AddTo(zeze::Application& application);
  // To look at what others have left: nothing of it goes on.
  void AddTablesTo(zeze::Application& application);

 private:
  std::vector<zeze::Module*> Modules();
};

}  // namespace arena_example
