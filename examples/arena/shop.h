// Shop: sells gold. It is no zeze application: it keeps its orders in a redo queue on its own disk
// until the servers have them.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "zeze/redo/redo_queue_client.h"

namespace arena_example {

struct ShopOptions {
  std::string directory = {};  // The queue's.
  std::vector<zeze::RedoServerAddress> servers = {};
  // Orders that were confirmed to whoever paid, a line each: order, role and gold.
  std::string orders_file = {};
  int players = 100;  // Who pay: the first bots.
  std::chrono::milliseconds pause{20};
};

// Sells until it is told to end (SIGTERM, SIGINT), then waits until the servers have everything.
// Returns the exit code. May be killed and started again at any moment.
int RunShop(const ShopOptions& options);

}  // namespace arena_example
