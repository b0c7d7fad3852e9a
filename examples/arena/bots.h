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
};

// Plays and says how it went; returns the exit code: 1 if a bot was away for longer than ten
// seconds, or if it saw something that cannot be, or if what it drank did not wear off.
int PlayBots(const BotOptions& options);

}  // namespace arena_example
