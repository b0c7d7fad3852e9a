// A server that ends as servers do.
//
//   zeze_stop_server --database URL [--global PORT] --records N
//
// Says "starting", "ready" when N records are committed and unsaved, and stops with SIGTERM.

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "tests/cluster/cluster_tables.h"
#include "tests/cluster/server_program.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/base/stop_signals.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

int main(int argc, char** argv) {
  zeze::StopSignals signals;
  std::string database;
  std::uint16_t global = 0;
  std::int64_t records = 0;
  CLI::App command("A server that ends as servers do.");
  command.add_option("--database", database)->required();
  command.add_option("--global", global);
  command.add_option("--records", records);
  CLI11_PARSE(command, argc, argv);

  zeze::ApplicationOptions options;
  options.storage = {.url = database};
  options.checkpoint_period = std::chrono::hours(1);  // Nothing is saved before the stop.
  if (global != 0) options.globals.push_back({.host = "127.0.0.1", .port = global});
  zeze::Table<std::int64_t, zeze::cluster::BNumber> numbers{
      zeze::TableDescriptor{.id = 1, .name = "cluster_counters"}};

  std::cout << "starting\n" << std::flush;
  auto opened = zeze::Application::Open("stopper", std::move(options));
  zeze::cluster::CheckOrEnd(opened);
  zeze::Application& application = *opened.value();
  application.AddTable(numbers);
  zeze::cluster::CheckOrEnd(application.Start());
  for (std::int64_t key = 0; key < records; ++key) {
    const std::int64_t code = application.Call("put", [&](zeze::Transaction& tx) {
      numbers.GetOrAdd(tx, key)->value = 1;
      return 0;
    });
    if (code != 0) return 1;
  }
  std::cout << "ready\n" << std::flush;
  signals.Wait();
  zeze::cluster::CheckOrEnd(application.Stop());
  return 0;
}
