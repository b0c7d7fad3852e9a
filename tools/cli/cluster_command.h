// The `zeze cluster` commands: what all processes of a cluster must agree on, as its database has
// it.

#pragma once

#include <CLI/CLI.hpp>

namespace zeze::cli {

void AddClusterCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::cli
