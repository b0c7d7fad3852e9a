#include "tools/cli/global_command.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.
#include <unistd.h>

#include "tools/cli/open_database.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/lease.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/tls.h"
#include "zeze/storage/storage.h"

namespace zeze::cli {

namespace {

struct GlobalArguments {
  std::string database;
  std::string ip;
  std::uint16_t port = 5002;
  std::int32_t shard = 0;
  std::int64_t lease_ms = 6000;
  std::int64_t silence_ms = 1000;
  std::int64_t unfenced_wait_ms = 0;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_authorities;
};

// Unique among all processes and starts.
std::string Holder() {
  std::string host(256, '\0');
  if (gethostname(host.data(), host.size() - 1) != 0) host = "unknown";
  host.resize(host.find('\0'));
  return fmt::format("{} pid {} at {}", host, getpid(),
                     SystemClock().SystemNow().time_since_epoch().count());
}

sigset_t EndSignals() {  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR2);  // Our own: the shard was taken over.
  return signals;
}

int RunGlobal(const GlobalArguments& arguments) {
  // Before any thread starts, so that all of them leave the signals to this one.
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  Result<std::unique_ptr<Storage>> storage = OpenDatabase(arguments.database);
  if (!storage.ok()) {
    std::cerr << "zeze global: " << storage.error().message() << '\n';
    return 1;
  }
  if (storage.value()->fence() == nullptr) {
    std::cerr << "zeze global: " << storage.value()->Description()
              << " cannot be shared by several servers; use PostgreSQL or MariaDB\n";
    return 1;
  }
  ThreadPool pool({.name = "global", .thread_count = 4});
  IoThreads io({.name = "global-io"});
  global::GlobalServiceOptions options;
  options.shard = arguments.shard;
  options.acceptor.ip = arguments.ip;
  options.acceptor.port = arguments.port;
  if (!arguments.tls_certificate.empty()) {
    Result<TlsContextPtr> tls =
        TlsContext::ForServer({.certificate_file = arguments.tls_certificate,
                               .private_key_file = arguments.tls_key,
                               .authorities_file = arguments.tls_authorities,
                               .require_client_certificate = true});
    if (!tls.ok()) {
      std::cerr << "zeze global: " << tls.error().message() << '\n';
      return 1;
    }
    options.acceptor.tls = std::move(tls).value();
  }
  options.machine.lease.duration = std::chrono::milliseconds(arguments.lease_ms);
  options.machine.silence_max = std::chrono::milliseconds(arguments.silence_ms);
  options.machine.unfenced_wait = std::chrono::milliseconds(arguments.unfenced_wait_ms);
  options.holder = Holder();
  options.deposed = [self = getpid()] { kill(self, SIGUSR2); };
  global::GlobalService service(io, *storage.value()->fence(), pool, std::move(options));
  if (Result<void> started = service.Start(); !started.ok()) {
    std::cerr << "zeze global: " << started.error().message() << '\n';
    return 1;
  }
  std::cout << "listening on port " << service.address().port() << '\n' << std::flush;
  int signal = 0;
  sigwait(&signals, &signal);
  service.Stop();
  if (signal != SIGUSR2) return 0;
  std::cerr << "zeze global: another process has taken over shard " << arguments.shard << '\n';
  return 1;
}

}  // namespace

void AddGlobalCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<GlobalArguments>();
  CLI::App* command = app.add_subcommand(
      "global", "Run a Global: it says which server may read and write which record");
  command->add_option("--database", arguments->database, "The database that the servers share")
      ->required();
  command->add_option("--ip", arguments->ip, "Address to listen on (default: all)");
  command->add_option("--port", arguments->port, "Port to listen on; 0: any")
      ->capture_default_str();
  command->add_option("--shard", arguments->shard, "Which of several Globals, from 0")
      ->capture_default_str();
  command->add_option("--lease", arguments->lease_ms, "Milliseconds; the same on all servers")
      ->capture_default_str();
  command
      ->add_option("--silence", arguments->silence_ms,
                   "Milliseconds after which a silent server that blocks others is evicted")
      ->capture_default_str();
  CLI::Option* certificate = command->add_option(
      "--tls-certificate", arguments->tls_certificate,
      "Speak encrypted, with this certificate (PEM), to servers that show one themselves");
  CLI::Option* key =
      command->add_option("--tls-key", arguments->tls_key, "The key of the certificate (PEM)");
  CLI::Option* authorities = command->add_option("--tls-authorities", arguments->tls_authorities,
                                                 "Who may sign the certificates of servers (PEM)");
  certificate->needs(key)->needs(authorities);
  key->needs(certificate);
  authorities->needs(certificate);
  command
      ->add_option("--unfenced-wait", arguments->unfenced_wait_ms,
                   "Allow servers of Zeze 1.6, and wait so many milliseconds for them (75000); the "
                   "cluster is then not safe from all faults")
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  zeze global --database postgresql://zeze:secret@db/game --port 5002");
  command->callback([arguments, &exit_code] { exit_code = RunGlobal(*arguments); });
}

}  // namespace zeze::cli
