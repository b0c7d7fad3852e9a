// `zeze admin`: what operators do: keys, cleanups of lost servers, the audit log.

#pragma once

#include <CLI/CLI.hpp>

namespace zeze::cli {

void AddAdminCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::cli
