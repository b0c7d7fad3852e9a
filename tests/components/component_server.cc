// The server process of the crash test. Says "ready" when it serves, "scheduled" when it has no
// timers left to schedule, "fault: ..." if something is not as it must be; works until SIGTERM.

#include <cstdlib>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "tests/components/crash_server.h"
#include "zeze/base/result.h"

namespace {

void CheckOrEnd(const zeze::Result<void>& result) {
  if (result.ok()) return;
  std::cout << "component server: " + result.error().message() + "\n" << std::flush;
  std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  zeze::crash_test::CrashServerOptions options;
  CLI::App app("component server");
  app.add_option("--id", options.id);
  app.add_option("--database", options.database);
  app.add_option("--global", options.global_port);
  app.add_option("--registry", options.registry_port);
  app.add_option("--redo", options.redo_port);
  app.add_option("--issued", options.issued);
  app.add_option("--seed", options.seed);
  app.add_option("--timers", options.timers);
  app.add_option("--timers-per-second", options.timers_per_second);
  CLI11_PARSE(app, argc, argv);
  sigset_t end;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);
  zeze::crash_test::CrashServer server(options);
  CheckOrEnd(server.Start());
  std::cout << "ready\n" << std::flush;
  server.Work();
  int signal = 0;
  sigwait(&end, &signal);
  CheckOrEnd(server.Stop());
  return 0;
}
