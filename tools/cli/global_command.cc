#include "tools/cli/global_command.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.
#include <unistd.h>

#include "tools/cli/alert_options.h"
#include "zeze/admin/admin_desk.h"
#include "zeze/admin/alert_sender.h"
#include "zeze/admin/audit_log.h"
#include "zeze/admin/operator_key.h"
#include "zeze/admin/operator_list.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/shell_command.h"
#include "zeze/base/text.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/global_server.h"
#include "zeze/global/lease.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/tls.h"
#include "zeze/net/tls_settings.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze::cli {

namespace {

struct GlobalArguments {
  std::string database;
  std::string ip;
  std::uint16_t port = 5002;
  std::int32_t shard = 0;
  std::int32_t shards = 0;
  std::int64_t lease_ms = 6000;
  std::int64_t silence_ms = 1000;
  std::int64_t passive_wait_ms = 30'000;
  std::int64_t database_wait_ms = 30'000;
  std::int64_t acquire_wait_ms = 5'000;
  std::int64_t unfenced_wait_ms = 0;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_authorities;
  std::string operators;
  std::size_t approvals = 2;
  std::chrono::nanoseconds cleanup_delay = std::chrono::minutes(1);
  std::string audit_log;
  AlertArguments alerts;
  std::string fence_command;
  std::chrono::nanoseconds fence_timeout = std::chrono::minutes(1);
};

// Unique among all processes and starts.
std::string Holder() {
  return fmt::format("{} pid {} at {}", HostName(), getpid(),
                     SystemClock().SystemNow().time_since_epoch().count());
}

// The operators and their log, if there are any. Null: none.
Result<std::unique_ptr<admin::AuditLog>> OpenDesk(const GlobalArguments& arguments,
                                                  admin::AdminDeskOptions& desk) {
  if (arguments.operators.empty() != arguments.audit_log.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "--operators and --audit-log belong together: what operators do is written down");
  }
  if (arguments.operators.empty()) return std::unique_ptr<admin::AuditLog>();
  Result<std::vector<admin::Operator>> operators = admin::LoadOperators(arguments.operators);
  if (!operators.ok()) return operators.error();
  const std::size_t count = operators.value().size();
  if (arguments.approvals < 1 || arguments.approvals > count) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("--approvals {}: there are {} operators in {}", arguments.approvals,
                             count, arguments.operators));
  }
  Result<std::unique_ptr<admin::AuditLog>> log =
      admin::AuditLog::Open({.path = arguments.audit_log});
  if (!log.ok()) return log;
  desk.operators = std::move(operators).value();
  desk.approvals = arguments.approvals;
  desk.delay = arguments.cleanup_delay;
  std::string names;
  for (const admin::Operator& one : desk.operators) {
    names += fmt::format(" {} {}", one.name, admin::FormatPublicKey(one.public_key));
  }
  // Open requests do not survive their Global: those before this line are void.
  const Result<void> noted =
      log.value()->Append("-", "start",
                          fmt::format("shard {}, {} of {} operators, delay {}:{}", arguments.shard,
                                      desk.approvals, count, FormatDuration(desk.delay), names));
  if (!noted.ok()) return noted.error();
  return log;
}

void SendAlert(admin::AlertSender& alerts, std::string_view kind,
               const global::GlobalAlert& alert) {
  admin::AlertMessage message{.kind = std::string(kind), .text = alert.text};
  if (alert.server_id) {
    message.details = {{"server_id", std::to_string(*alert.server_id)},
                       {"epoch", std::to_string(alert.epoch)}};
  }
  alerts.Send(std::move(message));
}

// Only status 0 means that the server is stopped for certain.
bool RunFenceCommand(const GlobalArguments& arguments, std::int32_t server_id) {
  const Result<int> status =
      RunShellCommand({.command = arguments.fence_command,
                       .environment = {{"ZEZE_SERVER_ID", std::to_string(server_id)},
                                       {"ZEZE_GLOBAL_SHARD", std::to_string(arguments.shard)}},
                       .timeout = arguments.fence_timeout});
  ZEZE_LOG_WARNING(
      "the fence command for server {}: {}", server_id,
      status.ok() ? fmt::format("status {}", status.value()) : status.error().message());
  return status.ok() && status.value() == 0;
}

sigset_t EndSignals() {  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR2);  // Our own: the shard was taken over.
  return signals;
}

int Fail(const Error& error) {
  std::cerr << "zeze global: " << error.message() << '\n';
  return 1;
}

int RunGlobal(const GlobalArguments& arguments) {
  // Before any thread starts, so that all of them leave the signals to this one.
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  if (Result<void> fits = CheckAlerts(arguments.alerts); !fits.ok()) return Fail(fits.error());
  global::GlobalServiceOptions options;
  Result<std::unique_ptr<admin::AuditLog>> log = OpenDesk(arguments, options.operators);
  if (!log.ok()) return Fail(log.error());
  Result<std::unique_ptr<Storage>> storage = OpenStorage({.url = arguments.database});
  if (!storage.ok()) return Fail(storage.error());
  if (storage.value()->fence() == nullptr) {
    std::cerr << "zeze global: " << storage.value()->Description()
              << " cannot be shared by several servers; use PostgreSQL or MariaDB\n";
    return 1;
  }
  ThreadPool pool({.name = "global", .thread_count = 4});
  ThreadPool hooks({.name = "hooks", .thread_count = 2});
  admin::AlertSender alerts(
      AlertOptionsOf(arguments.alerts, fmt::format("global {}", arguments.shard)));
  IoThreads io({.name = "global-io"});
  options.shard = arguments.shard;
  options.shards = arguments.shards;
  options.acceptor.ip = arguments.ip;
  options.acceptor.port = arguments.port;
  Result<TlsContextPtr> tls =
      ServerTls({.certificate = {"--tls-certificate", arguments.tls_certificate},
                 .key = {"--tls-key", arguments.tls_key},
                 .authorities = {"--tls-authorities", arguments.tls_authorities}});
  if (!tls.ok()) return Fail(tls.error());
  options.acceptor.tls = std::move(tls).value();
  options.machine.lease.duration = std::chrono::milliseconds(arguments.lease_ms);
  options.machine.silence_max = std::chrono::milliseconds(arguments.silence_ms);
  options.machine.passive_wait = std::chrono::milliseconds(arguments.passive_wait_ms);
  options.machine.database_wait = std::chrono::milliseconds(arguments.database_wait_ms);
  options.machine.acquire_wait = std::chrono::milliseconds(arguments.acquire_wait_ms);
  options.machine.unfenced_wait = std::chrono::milliseconds(arguments.unfenced_wait_ms);
  options.holder = Holder();
  options.audit_log = log.value().get();
  options.hooks = &hooks;
  options.alert = [&alerts](std::string_view kind, const global::GlobalAlert& alert) {
    SendAlert(alerts, kind, alert);
  };
  if (!arguments.fence_command.empty()) {
    options.stop_server = [&arguments](std::int32_t server_id) {
      return RunFenceCommand(arguments, server_id);
    };
  }
  options.deposed = [self = getpid()] { kill(self, SIGUSR2); };
  std::promise<Error> refused;
  std::future<Error> refusal = refused.get_future();
  options.refused = [&refused, self = getpid()](const Error& why) {
    refused.set_value(why);
    kill(self, SIGUSR2);
  };
  global::GlobalService service(io, *storage.value()->fence(), pool, std::move(options));
  if (Result<void> started = service.Start(); !started.ok()) return Fail(started.error());
  std::cout << "listening on port " << service.address().port() << '\n' << std::flush;
  int signal = 0;
  sigwait(&signals, &signal);
  service.Stop();
  if (signal != SIGUSR2) return 0;
  if (refusal.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    return Fail(refusal.get());
  }
  std::cerr << "zeze global: another process has taken over shard " << arguments.shard << '\n';
  return 1;
}

void AddOperatorOptions(CLI::App& command, GlobalArguments& arguments) {
  command.add_option("--operators", arguments.operators,
                     "File of the operators who may use \"zeze admin\": lines of a name and a "
                     "public key");
  command.add_option("--approvals", arguments.approvals, "How many of them must agree")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  AddDurationOption(command, "--cleanup-delay", arguments.cleanup_delay,
                    "Time to cancel an approved cleanup");
  command.add_option("--audit-log", arguments.audit_log,
                     "File in which everything that operators do is written down first");
  AddAlertOptions(command, arguments.alerts);
  command.add_option("--fence-command", arguments.fence_command,
                     "Run by /bin/sh, with ZEZE_SERVER_ID in its environment, to stop a server of "
                     "Zeze 1.6 that is lost; status 0: it does not run any more, for certain");
  AddDurationOption(command, "--fence-timeout", arguments.fence_timeout,
                    "The fence command is killed, and has failed, after so long",
                    std::chrono::milliseconds(1));
}

// How long Global waits for servers before it does something about them.
void AddWaitOptions(CLI::App& command, GlobalArguments& arguments) {
  command
      .add_option("--silence", arguments.silence_ms,
                  "Milliseconds after which a connection on which nothing is heard is closed")
      ->check(CLI::Range(std::int64_t{1}, kMillisecondsMax))
      ->capture_default_str();
  command
      .add_option("--passive-wait", arguments.passive_wait_ms,
                  "Milliseconds that a server which has no connection here, but renews its lease, "
                  "has to save and give up what others need, or to come back; then it is evicted")
      ->check(CLI::Range(std::int64_t{1}, kMillisecondsMax))
      ->capture_default_str();
  command
      .add_option("--database-wait", arguments.database_wait_ms,
                  "Milliseconds after the last renewal of its lease after which a connected server "
                  "that others wait for is evicted: it is cut off from the database")
      ->check(CLI::Range(std::int64_t{1}, kMillisecondsMax))
      ->capture_default_str();
  command
      .add_option("--acquire-wait", arguments.acquire_wait_ms,
                  "Milliseconds that a request waits for a server without a connection")
      ->check(CLI::Range(std::int64_t{1}, kMillisecondsMax))
      ->capture_default_str();
}

}  // namespace

void AddGlobalCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<GlobalArguments>();
  CLI::App* command = app.add_subcommand(
      "global", "Run a Global: it says which server may read and write which record");
  command->add_option("--database", arguments->database, "The database that the servers share")
      ->required();
  command->add_option("--ip", arguments->ip,
                      "Address to listen on (default: 127.0.0.1; @internal: a private address of "
                      "this machine, for servers of others)");
  command->add_option("--port", arguments->port, "Port to listen on; 0: any")
      ->capture_default_str();
  command->add_option("--shard", arguments->shard, "Which of several Globals, from 0")
      ->check(CLI::Range(0, INT32_MAX))
      ->capture_default_str();
  command
      ->add_option("--shards", arguments->shards,
                   "How many Globals share the keys; the first Global of a cluster says it to the "
                   "database, later ones are compared with that (default: what the database says, "
                   "1 if it is new)")
      ->check(CLI::Range(1, INT32_MAX));
  command
      ->add_option("--lease", arguments->lease_ms,
                   "Milliseconds; of servers of earlier builds, which do not say theirs: at least "
                   "as long as theirs")
      ->check(CLI::Range(global::kLeaseMin.count(), global::kLeaseMax.count()))
      ->capture_default_str();
  AddWaitOptions(*command, *arguments);
  CLI::Option* certificate = AddTextOption(
      *command, "--tls-certificate", arguments->tls_certificate,
      "Speak encrypted, with this certificate (PEM), to servers that show one themselves");
  CLI::Option* key =
      AddTextOption(*command, "--tls-key", arguments->tls_key, "The key of the certificate (PEM)");
  CLI::Option* authorities =
      AddTextOption(*command, "--tls-authorities", arguments->tls_authorities,
                    "Who may sign the certificates of servers (PEM)");
  certificate->needs(key)->needs(authorities);
  key->needs(certificate);
  authorities->needs(certificate);
  command
      ->add_option("--unfenced-wait", arguments->unfenced_wait_ms,
                   "Allow servers of Zeze 1.6, and wait so many milliseconds for them (75000); the "
                   "cluster is then not safe from all faults")
      ->check(CLI::Range(std::int64_t{0}, kMillisecondsMax))
      ->capture_default_str();
  AddOperatorOptions(*command, *arguments);
  command->footer(
      "Examples:\n"
      "  zeze global --database postgresql://zeze:secret@db/game --port 5002\n"
      "  zeze global --database postgresql://zeze:secret@db/game --shard 1 --shards 2 --port 5003");
  command->callback([arguments, &exit_code] { exit_code = RunGlobal(*arguments); });
}

}  // namespace zeze::cli
