// `zeze linkd`: runs a gateway; `zeze linkd token`: a token for a client of one.

#pragma once

#include <CLI/CLI.hpp>

namespace zeze::cli {

void AddLinkdCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::cli
