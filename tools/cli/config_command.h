// `zeze config check|print|explain`: is a configuration file right, and what does it amount to?

#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace zeze::cli {

// `exit_code` is set when the command has run; it must outlive the app.
void AddConfigCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::cli
