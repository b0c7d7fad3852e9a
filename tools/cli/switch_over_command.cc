#include "tools/cli/switch_over_command.h"

#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/sql/database_home.h"

namespace zeze::cli {
namespace {

struct CopyArguments {
  std::string database;
  std::string marker;
  std::int64_t margin = 1'000'000;
  bool yes = false;
};

// Opens the copy and does one thing with it, which says what it did.
int With(const CopyArguments& arguments,
         const std::function<Result<std::string>(DatabaseHome&)>& act) {
  Result<std::unique_ptr<DatabaseHome>> home = OpenDatabaseHome(arguments.database);
  const Result<std::string> done =
      home.ok() ? act(*home.value()) : Result<std::string>(home.error());
  if (done.ok()) {
    std::cout << done.value() << '\n' << std::flush;
    return 0;
  }
  std::cerr << "zeze cluster: " << done.error().message() << '\n';
  return 1;
}

Result<std::string> Begin(DatabaseHome& home) {
  const Result<std::string> marker = home.BeginSwitchOver();
  if (!marker.ok()) return marker.error();
  return fmt::format(
      "marker {}\n"
      "This copy of the database takes nothing any more, and every process waits. Promote the "
      "replica, then:\n"
      "  zeze cluster switch-over finish {} --database ADDRESS-OF-THE-NEW-COPY\n"
      "Or, to go on with this copy, if the replica was not promoted:\n"
      "  zeze cluster switch-over cancel {} --database ADDRESS-OF-THIS-COPY\n"
      "Never both.",
      marker.value(), marker.value(), marker.value());
}

Result<std::string> Adopt(DatabaseHome& home, const CopyArguments& arguments) {
  if (!arguments.yes) {
    const Result<DatabaseHome::Facts> facts = home.Read();
    if (!facts.ok()) return facts.error();
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("this makes {} the copy that counts, in place of {}: what that one "
                             "acknowledged and this one lacks is gone for good. Stop every process "
                             "of the cluster, and repeat the command with --yes.",
                             facts.value().identity, facts.value().row.home));
  }
  if (const Result<void> adopted = home.Adopt(arguments.margin); !adopted.ok()) {
    return adopted.error();
  }
  const Result<DatabaseHome::Facts> facts = home.Read();
  if (!facts.ok()) return facts.error();
  return fmt::format("{} is the copy that counts now, number {}; epochs and terms rose by {}",
                     facts.value().identity, facts.value().row.number, arguments.margin);
}

void AddDatabaseOption(CLI::App& command, CopyArguments& arguments) {
  command
      .add_option("--database", arguments.database,
                  "Address of exactly one copy: postgresql://user:password@host/database")
      ->required();
}

}  // namespace

void AddSwitchOverCommands(CLI::App& cluster, int& exit_code) {
  auto arguments = std::make_shared<CopyArguments>();
  CLI::App* switch_over = cluster.add_subcommand(
      "switch-over", "Move from one copy of the database to another, without losing anything");
  switch_over->require_subcommand(1);

  CLI::App* begin = switch_over->add_subcommand("begin", "Freeze the copy that counts");
  AddDatabaseOption(*begin, *arguments);
  begin->callback([arguments, &exit_code] { exit_code = With(*arguments, Begin); });

  CLI::App* finish = switch_over->add_subcommand("finish", "Go on with the copy that was promoted");
  finish->add_option("marker", arguments->marker, "As \"begin\" printed it")->required();
  AddDatabaseOption(*finish, *arguments);
  finish->callback([arguments, &exit_code] {
    exit_code = With(*arguments, [&](DatabaseHome& home) -> Result<std::string> {
      const Result<void> finished = home.FinishSwitchOver(arguments->marker);
      if (!finished.ok()) return finished.error();
      return std::string("This copy counts now; every process goes on with it.");
    });
  });

  CLI::App* cancel = switch_over->add_subcommand("cancel", "Go on with the copy that was frozen");
  cancel->add_option("marker", arguments->marker, "As \"begin\" printed it")->required();
  AddDatabaseOption(*cancel, *arguments);
  cancel->callback([arguments, &exit_code] {
    exit_code = With(*arguments, [&](DatabaseHome& home) -> Result<std::string> {
      const Result<void> cancelled = home.CancelSwitchOver(arguments->marker);
      if (!cancelled.ok()) return cancelled.error();
      return std::string("This copy goes on.");
    });
  });

  CLI::App* adopt =
      cluster.add_subcommand("adopt", "Use a copy that may lack what was acknowledged");
  AddDatabaseOption(*adopt, *arguments);
  adopt->add_option("--margin", arguments->margin, "By how much epochs and terms rise")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  adopt->add_flag("--yes", arguments->yes, "Do it");
  adopt->callback([arguments, &exit_code] {
    exit_code = With(*arguments, [&](DatabaseHome& home) { return Adopt(home, *arguments); });
  });
}

}  // namespace zeze::cli
