// A server of the arena.

#pragma once

#include <string>

namespace arena_example {

// Serves until it is told to end (SIGTERM, SIGINT). Returns the exit code.
int Serve(const std::string& config_file, const std::string& binds_file);

}  // namespace arena_example
