// The server process of the referee tests: an Application that counts in one table, durably.
//
//   zeze_referee_server --id 3 --database URL --global PORT,PORT --table-id 7 --table-version 1
//
// Without --global it needs the database for itself. It says "ready" when it serves and "done N."
// for each count; it works until SIGTERM, then stops in order. If it does not start, it says why
// and ends with status 1.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "tests/cluster/cluster_tables.h"
#include "tests/cluster/server_program.h"
#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze::cluster {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("A server of the referee tests.");
  ApplicationOptions options{.lease = std::chrono::seconds(2),
                             .on_fenced = EndFenced,
                             .checkpoint_period = std::chrono::milliseconds(300)};
  std::vector<std::uint16_t> globals;
  TableDescriptor descriptor{.id = 7, .name = "referee_tCount"};
  app.add_option("--id", options.server_id)->required();
  app.add_option("--database", options.storage.url)->required();
  app.add_option("--global", globals)->delimiter(',');
  app.add_option("--table-id", descriptor.id);
  app.add_option("--table-version", descriptor.version);
  CLI11_PARSE(app, argc, argv);
  for (const std::uint16_t port : globals) options.globals.push_back({"127.0.0.1", port});
  options.tables[""] = {.durable_at_commit = true};

  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);
  Table<std::int64_t, BNumber> counts(descriptor);
  const std::int32_t id = options.server_id;
  Result<std::unique_ptr<Application>> opened = Application::Open("referee", std::move(options));
  CheckOrEnd(opened);
  Application& server = *opened.value();
  server.AddTable(counts);
  CheckOrEnd(server.Start());
  std::cout << "ready\n" << std::flush;
  std::atomic<bool> stop = false;
  {
    const std::jthread work([&] {
      for (std::int64_t done = 0; !stop;) {
        const std::int64_t code = server.Call("count", [&](Transaction& tx) {
          counts.GetOrAdd(tx, id)->value += 1;
          return 0;
        });
        if (code == 0) std::cout << fmt::format("done {}.\n", ++done) << std::flush;
        SystemClock().SleepFor(std::chrono::milliseconds(20));
      }
    });
    int signal = 0;
    sigwait(&end, &signal);
    stop = true;
  }
  CheckOrEnd(server.Stop());
  return 0;
}

}  // namespace
}  // namespace zeze::cluster

int main(int argc, char** argv) {
  return zeze::cluster::Main(argc, argv);
}
