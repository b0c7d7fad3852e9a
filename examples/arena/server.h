// A server of the arena, and the check of what all of them left behind.

#pragma once

#include <string>

namespace arena_example {

// Serves until it is told to end (SIGTERM, SIGINT). Returns the exit code.
int Serve(const std::string& config_file, const std::string& binds_file);

// When no server runs: compares the players' records with each other, with the board, with the
// number of players who ever came (negative: unknown) and with the trades that they were promised
// (a file of lines of role and number, or none). Prints what it found; returns the exit code.
int Verify(const std::string& config_file, long player_count, const std::string& receipts_file);

}  // namespace arena_example
