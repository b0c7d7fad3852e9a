// "zeze cluster switch-over" and "adopt": which copy of the database counts (rules 73 to 75).

#pragma once

#include <CLI/CLI.hpp>

namespace zeze::cli {

// `cluster` is the command that they belong to.
void AddSwitchOverCommands(CLI::App& cluster, int& exit_code);

}  // namespace zeze::cli
