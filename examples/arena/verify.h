// The check of what all servers left behind.

#pragma once

#include <string>

namespace arena_example {

struct Promises {
  long players = -1;          // Who ever came; negative: unknown.
  std::string receipts = {};  // A file of acknowledged trades: lines of role and number.
  std::string orders = {};    // A file of confirmed recharges, see ShopOptions.
};

// When no server runs: compares the records with each other and with what was promised. Prints what
// it found; returns the exit code.
int Verify(const std::string& config_file, const Promises& promises);

}  // namespace arena_example
