#include "tools/cli/cluster_command.h"

#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "tools/cli/switch_over_command.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/global/lease.h"
#include "zeze/global/silence_watch.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze::cli {

namespace {

struct ClusterArguments {
  std::string database;
  std::int32_t shards = 0;
  std::int32_t protocol = 0;
  std::string table;
  std::optional<std::int32_t> table_id = std::nullopt;
  bool forget = false;
  bool new_identity = false;
};

int Fail(const Error& error) {
  std::cerr << "zeze cluster: " << error.message() << '\n';
  return 1;
}

Result<std::unique_ptr<Storage>> OpenFenced(const std::string& url) {
  Result<std::unique_ptr<Storage>> storage = OpenStorage({.url = url});
  if (!storage.ok() || storage.value()->fence() != nullptr) return storage;
  return Error(ErrorCode::kInvalidArgument,
               storage.value()->Description() + " belongs to one process: it has no cluster");
}

Result<void> Show(Fence& fence) {
  const Result<std::optional<ClusterRow>> row = fence.Cluster();
  if (!row.ok()) return row.error();
  if (!row.value().has_value()) {
    std::cout << "No Global and no server has used this database yet.\n";
    return {};
  }
  const ClusterRow& cluster = *row.value();
  const Result<std::map<std::string, std::int32_t>> tables = fence.TableIds();
  if (!tables.ok()) return tables.error();
  const Result<std::vector<LiveServer>> live = fence.ListLive();
  if (!live.ok()) return live.error();
  std::cout << fmt::format("identity  {}\nprotocol  {}\nshards    {}\n",
                           FormatClusterId(cluster.cluster), cluster.protocol, cluster.shards);
  for (const LiveServer& server : live.value()) {
    const bool alone = server.server_id == cluster.alone_server &&
                       server.epoch == cluster.alone_epoch && !server.fenced;
    std::cout << fmt::format("server    {} epoch {} {}{}\n", server.server_id, server.epoch,
                             server.fenced ? "evicted, its lease is open" : server.holder,
                             alone ? " (has the database to itself)" : "");
  }
  for (const auto& [name, id] : tables.value()) {
    std::cout << fmt::format("table     {} id {}\n", name, id);
  }
  return {};
}

int RunShow(const ClusterArguments& arguments) {
  Result<std::unique_ptr<Storage>> storage = OpenFenced(arguments.database);
  if (!storage.ok()) return Fail(storage.error());
  const Result<void> shown = Show(*storage.value()->fence());
  return shown.ok() ? 0 : Fail(shown.error());
}

int RunChange(const ClusterArguments& arguments, const ClusterChange& change) {
  Result<std::unique_ptr<Storage>> storage = OpenFenced(arguments.database);
  if (!storage.ok()) return Fail(storage.error());
  Fence& fence = *storage.value()->fence();
  const Result<bool> changed = global::WhenNobodyIsInTheWay<bool>(
      fence, ChangeOptions(), global::LeaseOptions(), SystemClock(), [&]() -> Result<bool> {
        const Result<void> done = fence.Change(change);
        if (done.ok()) return true;
        return done.error();
      });
  if (!changed.ok()) return Fail(changed.error());
  const Result<void> shown = Show(fence);
  return shown.ok() ? 0 : Fail(shown.error());
}

CLI::App* AddCommand(CLI::App& app, const char* name, const char* what, const char* example,
                     const std::shared_ptr<ClusterArguments>& arguments, int& exit_code,
                     std::function<int(const ClusterArguments&)> run) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("--database", arguments->database, "The database that the servers share")
      ->required();
  command->footer(std::string("Example:\n  ") + example);
  command->callback([arguments, &exit_code, run = std::move(run)] { exit_code = run(*arguments); });
  return command;
}

}  // namespace

void AddClusterCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ClusterArguments>();
  CLI::App* cluster = app.add_subcommand(
      "cluster", "Show or change what all servers and Globals of a database must agree on");
  cluster->require_subcommand(1);
  cluster->footer(
      "Changes are made only while no server lives; they wait for the leases of servers that have "
      "crashed.\nExamples:\n"
      "  zeze cluster show --database postgresql://zeze:secret@db/game\n"
      "  zeze cluster shards 2 --database postgresql://zeze:secret@db/game\n"
      "  zeze cluster table Game_tRole --id 5 --database postgresql://zeze:secret@db/game");
  AddCommand(*cluster, "show", "Print what the database says",
             "zeze cluster show --database postgresql://zeze:secret@db/game", arguments, exit_code,
             RunShow);
  CLI::App* shards = AddCommand(
      *cluster, "shards", "Change how many Globals share the keys",
      "zeze cluster shards 2 --database postgresql://zeze:secret@db/game", arguments, exit_code,
      [](const ClusterArguments& given) { return RunChange(given, {.shards = given.shards}); });
  shards->add_option("count", arguments->shards, "How many")
      ->required()
      ->check(CLI::Range(1, INT32_MAX));
  CLI::App* table =
      AddCommand(*cluster, "table", "Change the id of a table, or forget it",
                 "zeze cluster table Game_tRole --id 5 --database postgresql://zeze:secret@db/game",
                 arguments, exit_code, [](const ClusterArguments& given) {
                   return RunChange(given, {.tables = {{given.table, given.table_id}}});
                 });
  table->add_option("name", arguments->table, "Its name in the storage")->required();
  CLI::App* change = table->add_option_group("change");
  change->add_option("--id", arguments->table_id, "Its id in the schema");
  change->add_flag("--forget", arguments->forget,
                   "The next server that has the table says its id anew");
  change->require_option(1);
  CLI::App* protocol = AddCommand(
      *cluster, "protocol", "Change the protocol, for builds that speak another one",
      "zeze cluster protocol 1 --database postgresql://zeze:secret@db/game", arguments, exit_code,
      [](const ClusterArguments& given) { return RunChange(given, {.protocol = given.protocol}); });
  protocol->add_option("number", arguments->protocol, "One that this build speaks")->required();
  CLI::App* identity = AddCommand(
      *cluster, "identity", "Give a copy of a database an identity of its own",
      "zeze cluster identity --new --database postgresql://zeze:secret@db/staging", arguments,
      exit_code,
      [](const ClusterArguments& given) { return RunChange(given, {.new_identity = true}); });
  identity->add_flag("--new", arguments->new_identity, "Make a new identity")->required();
  AddSwitchOverCommands(*cluster, exit_code);
}

}  // namespace zeze::cli
