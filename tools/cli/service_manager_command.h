// `zeze service-manager`: runs the service manager.

#pragma once

#include <CLI/CLI.hpp>

namespace zeze::cli {

void AddServiceManagerCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::cli
