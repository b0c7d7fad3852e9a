// A server that registers the service "Shop" and takes over other servers' timers, until it is
// killed. It says "ready", and "taken ID" for each server that it took over.

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"

int main(int argc, char** argv) {
  CLI::App app("A member of a cluster");
  std::uint16_t port = 0;
  std::int32_t id = 0;
  app.add_option("--port", port, "of the service manager")->required();
  app.add_option("--id", id, "server id")->required();
  CLI11_PARSE(app, argc, argv);
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  zeze::ThreadPool pool({.name = "callbacks", .thread_count = 1});
  zeze::IoThreads io({.name = "io"});
  zeze::registry::RegistryAgentOptions options;
  options.connector = {.host = "127.0.0.1",
                       .port = port,
                       .first_delay = std::chrono::milliseconds(50),
                       .delay_max = std::chrono::milliseconds(200)};
  options.goodbye_timeout = std::chrono::seconds(30);
  zeze::registry::RegistryAgent agent(io, pool, options);
  if (!agent.Start().ok()) return 1;
  if (!agent.Register({.name = "Shop", .identity = std::to_string(id)}).ok()) return 1;
  agent.RegisterOffline({.server_id = id, .notify_id = "Timer", .serial = 1},
                        [](const zeze::registry::OfflineNotice& notice) {
                          std::cout << fmt::format("taken {}\n", notice.server_id) << std::flush;
                          return zeze::registry::TakeOver::kTaken;
                        });
  if (const zeze::Result<void> settled = agent.AwaitSettled(std::chrono::seconds(30));
      !settled.ok()) {
    std::cerr << settled.error().message() << '\n';
    return 1;
  }
  std::cout << "ready\n" << std::flush;
  int signal = 0;
  sigwait(&signals, &signal);
  agent.Stop();
  return 0;
}
