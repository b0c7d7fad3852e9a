// Bots: players without a person. Each has a thread of its own and plays in plain words.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "zeze/client/client.h"

namespace arena_example {

struct BotOptions {
  std::vector<zeze::ClientOptions::Gateway> gateways = {};
  std::string token_key_file = {};  // Whose tokens the gateways accept.
  int count = 100;
  std::chrono::seconds duration{60};
  // Trades that were acknowledged, a line each: role and number. Empty: not written.
  std::string receipts_file = {};
  // How often a line says how it goes. Zero: never.
  std::chrono::seconds progress{0};
};

// Plays until the time is up or SIGTERM comes, then says how it went and which promises were kept.
// Returns the exit code: 0, or 1 if a promise was broken, see promises.h.
int PlayBots(const BotOptions& options);

}  // namespace arena_example
