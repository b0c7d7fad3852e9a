// The `zeze global` command: a Global as a process.

#pragma once

#include <CLI/CLI.hpp>

namespace zeze::cli {

void AddGlobalCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::cli
