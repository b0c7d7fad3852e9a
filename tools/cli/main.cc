// The `zeze` program. Exit codes: 0 fine, 1 the input is wrong, 2 the command line is, or a file
// could not be read or written.

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/cli/admin_command.h"
#include "tools/cli/cluster_command.h"
#include "tools/cli/config_command.h"
#include "tools/cli/daemon_command.h"
#include "tools/cli/global_command.h"
#include "tools/cli/linkd_command.h"
#include "tools/cli/redo_command.h"
#include "tools/cli/service_manager_command.h"
#include "zeze/xml/diagnostics.h"

#if defined(ZEZE_WITH_GEN)
#include "tools/gen/commands.h"
#endif

namespace zeze {
namespace {

constexpr int kUsageError = 2;

void AddVersionCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("version", "Print the version and how it was built");
  command->footer("Example:\n  zeze version");
  command->callback([] {
    std::cout << "zeze " << ZEZE_VERSION << " (" << __VERSION__ << ", "
              << (sizeof(void*) == 8 ? "64" : "32") << " bit)\n";
  });
}

// The first word that no option or sub-command of this level took, if there is one.
std::string UnknownSubcommand(const CLI::App& app) {
  for (const std::string& word : app.remaining()) {
    if (!word.empty() && word.front() != '-') return word;
  }
  return {};
}

std::string SuggestSubcommand(const CLI::App& app, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return xml::DidYouMean(word, {names.begin(), names.end()});
}

// For an option that this command does not have.
std::string SuggestOption(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(0, word.find('='));
    return xml::DidYouMean(name, {names.begin(), names.end()});
  }
  return {};
}

// Where parsing stopped: the deepest sub-command that was named.
const CLI::App& Deepest(const CLI::App& app) {
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().back();
  return *deepest;
}

int ReportUsageError(const CLI::App& app, const CLI::ParseError& error, int argc,
                     const char* const* argv) {
  const CLI::App& at = Deepest(app);
  std::string path;
  for (const CLI::App* level = &at; level != nullptr; level = level->get_parent()) {
    path.insert(0, path.empty() ? level->get_name() : level->get_name() + " ");
  }
  std::string word = UnknownSubcommand(at);
  // Without a single known sub-command nothing remains: the first word itself is the culprit.
  if (word.empty() && &at == &app && argc > 1 && argv[1][0] != '-') word = argv[1];
  const bool has_subcommands = !at.get_subcommands([](const CLI::App*) { return true; }).empty();
  if (!word.empty() && has_subcommands) {
    std::cerr << path << ": there is no command \"" << word << '"';
    const std::string suggestion = SuggestSubcommand(at, word);
    if (!suggestion.empty()) std::cerr << "; " << suggestion;
  } else {
    std::cerr << path << ": " << error.what();
    const std::string suggestion = SuggestOption(at);
    if (!suggestion.empty()) std::cerr << "; " << suggestion;
  }
  std::cerr << "\nRun \"" << path << " --help\" for what there is.\n";
  return kUsageError;
}

int Main(int argc, const char* const* argv) {
  CLI::App app(
      "zeze: transactional game servers in C++. Generates code from a schema, checks configuration "
      "files, starts new projects, runs the stock servers.",
      "zeze");
  int exit_code = 0;
#if defined(ZEZE_WITH_GEN)
  gen::AddGenCommand(app, exit_code);
  gen::AddNewCommand(app, exit_code);
#endif
  cli::AddConfigCommand(app, exit_code);
  cli::AddGlobalCommand(app, exit_code);
  cli::AddClusterCommand(app, exit_code);
  cli::AddServiceManagerCommand(app, exit_code);
  cli::AddLinkdCommand(app, exit_code);
  cli::AddAdminCommand(app, exit_code);
  cli::AddDaemonCommand(app, exit_code);
  cli::AddRedoCommand(app, exit_code);
  AddVersionCommand(app);
  app.set_version_flag("--version", ZEZE_VERSION, "Print the version");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  zeze new shop                       a new project that builds and runs\n"
      "  zeze gen solution.xml --out gen     C++ from a schema\n"
      "  zeze config check zeze.xml          is this configuration right?\n"
      "  zeze COMMAND --help                 more about a command");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    return ReportUsageError(app, error, argc, argv);
  }
  return exit_code;
}

}  // namespace
}  // namespace zeze

int main(int argc, char** argv) {
  return zeze::Main(argc, argv);
}
