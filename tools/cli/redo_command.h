// `zeze redo`: tasks for servers, from scripts and by operators.

#pragma once

#include <CLI/CLI.hpp>

namespace zeze::cli {

void AddRedoCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::cli
