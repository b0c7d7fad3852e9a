// `zeze daemon`: runs a server and starts it again when it crashes or hangs.

#pragma once

#include <CLI/CLI.hpp>

namespace zeze::cli {

void AddDaemonCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::cli
