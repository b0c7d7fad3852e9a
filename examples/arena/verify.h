// The check of what all servers left behind.

#pragma once

#include <string>

namespace arena_example {

// What clients and the shop were told, to be compared with the records.
struct Acknowledged {
  long players = -1;          // How many ever came; negative: unknown.
  std::string receipts = {};  // A file of acknowledged trades: lines of role and number.
  std::string orders = {};    // A file of confirmed recharges, see ShopOptions.
};

// When no server runs: compares the records with each other and with what was acknowledged. Tells
// which promises were kept; returns the exit code: 0, or 1 if one was broken.
int Verify(const std::string& config_file, const Acknowledged& acknowledged);

}  // namespace arena_example
