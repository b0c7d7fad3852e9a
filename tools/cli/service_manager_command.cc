#include "tools/cli/service_manager_command.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "tools/cli/alert_options.h"
#include "tools/cli/program_config.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/config/config.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/registry/service/registry_settings.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/storage.h"

namespace zeze::cli {

namespace {

using registry::RegistryServiceOptions;
using registry::RegistrySettings;

// Beside the one of Zeze 1.6 ("autokeys"), whose format is another.
constexpr const char* kDefaultDirectory = "service_manager";

struct ServiceManagerArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string ip;
  std::optional<std::uint16_t> port;
  std::string data;
  std::optional<std::int64_t> offline_delay_ms;
  std::optional<std::int64_t> recovery_ms;
  std::optional<std::int64_t> keep_alive_ms;
  bool no_udp = false;
  std::vector<std::string> raise_ids;
};

Error Wrong(const std::string& what) {
  return {ErrorCode::kInvalidArgument, what};
}

// "NAME=VALUE"
Result<std::pair<std::string, std::uint64_t>> ParseRaise(const std::string& text) {
  const std::size_t at = text.rfind('=');
  std::uint64_t value = 0;
  if (at != std::string::npos && at > 0) {
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data() + at + 1, end, value);
    if (error == std::errc() && parsed == end && value < std::uint64_t{INT64_MAX}) {
      return std::pair(text.substr(0, at), value);
    }
  }
  return Wrong(fmt::format("--raise-id \"{}\": it is NAME=NUMBER", text));
}

// What the command line says wins.
Result<void> Apply(const ServiceManagerArguments& arguments, RegistryServiceOptions& options) {
  if (!arguments.ip.empty() || arguments.port.has_value()) {
    options.acceptors.resize(1);
    AcceptorOptions& acceptor = options.acceptors.front();
    if (!arguments.ip.empty()) acceptor.ip = arguments.ip;
    acceptor.port = arguments.port.value_or(acceptor.port);
  }
  const auto milliseconds = [](const std::optional<std::int64_t>& from,
                               std::chrono::nanoseconds& to) {
    if (from.has_value()) to = std::chrono::milliseconds(*from);
  };
  milliseconds(arguments.offline_delay_ms, options.machine.offline.delay);
  milliseconds(arguments.recovery_ms, options.machine.recovery);
  milliseconds(arguments.keep_alive_ms, options.keep_alive_period);
  if (arguments.no_udp) options.datagrams = false;
  for (const std::string& text : arguments.raise_ids) {
    Result<std::pair<std::string, std::uint64_t>> raise = ParseRaise(text);
    if (!raise.ok()) return raise.error();
    options.raise_ids.push_back(std::move(raise).value());
  }
  return {};
}

// 2: a file cannot be read.
int Fail(const Error& error) {
  std::cerr << "zeze service-manager: " << error.message() << '\n';
  return error.code() == ErrorCode::kNotFound ? 2 : 1;
}

int RunServiceManager(const ServiceManagerArguments& arguments) {
  // Before any thread starts, so that all of them leave the signals to this one.
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Result<Config> config = LoadProgramConfig(arguments.config, arguments.overrides);
  if (!config.ok()) return Fail(config.error());
  if (Result<void> log = ApplyLogSettings(config.value()); !log.ok()) return Fail(log.error());
  Result<RegistrySettings> settings = registry::RegistrySettingsFromConfig(config.value());
  if (!settings.ok()) return Fail(settings.error());
  RegistryServiceOptions& options = settings.value().service;
  if (Result<void> applied = Apply(arguments, options); !applied.ok()) return Fail(applied.error());
  const std::string data =
      !arguments.data.empty()
          ? arguments.data
          : (std::filesystem::path(settings.value().db_home) / kDefaultDirectory).string();
  Result<std::unique_ptr<Storage>> storage = OpenRocksDbStorage({.directory = data});
  if (!storage.ok()) return Fail(storage.error());

  ThreadPool pool({.name = "registry", .thread_count = 1});
  IoThreads io({.name = "registry-io"});
  registry::RegistryService service(io, *storage.value(), pool, options);
  if (Result<void> started = service.Start(); !started.ok()) return Fail(started.error());
  std::cout << "listening on port " << service.address().port() << ", data in " << data << '\n'
            << std::flush;
  int signal = 0;
  sigwait(&signals, &signal);
  service.Stop();
  if (Result<void> closed = storage.value()->Close(); !closed.ok()) return Fail(closed.error());
  return 0;
}

}  // namespace

void AddServiceManagerCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ServiceManagerArguments>();
  CLI::App* command = app.add_subcommand(
      "service-manager", "Run a service manager: servers register there and find each other");
  command->add_option("--config", arguments->config,
                      "Configuration (default: what ZEZE_CONFIG names, else zeze.xml, if it is "
                      "there); it reads the ServiceConf "
                      "and the CustomizeConf \"Zeze.Services.ServiceManager\"");
  command->add_option("--set", arguments->overrides, "NAME=VALUE: overrides the configuration");
  command->add_option("--ip", arguments->ip,
                      "Address to listen on (default: 127.0.0.1; @internal: a private address of "
                      "this machine, for servers of others)");
  command->add_option("--port", arguments->port, "Port to listen on (default: 5001); 0: any");
  command->add_option("--data", arguments->data,
                      "Its directory (default: service_manager, below DbHome)");
  command
      ->add_option("--offline-delay", arguments->offline_delay_ms,
                   "Milliseconds from the loss of a server until another one is asked to take over "
                   "(default: 600000)")
      ->check(CLI::Range(std::int64_t{0}, kMillisecondsMax));
  command
      ->add_option("--recovery", arguments->recovery_ms,
                   "Milliseconds for which services stay listed after a restart, until their "
                   "servers are back (default: 30000)")
      ->check(CLI::Range(std::int64_t{0}, kMillisecondsMax));
  command
      ->add_option("--keep-alive", arguments->keep_alive_ms,
                   "Milliseconds between signs of life of a server (default: 10000); 0: none")
      ->check(CLI::Range(std::int64_t{0}, kMillisecondsMax));
  command->add_flag("--no-udp", arguments->no_udp,
                    "No ids of 128 bits, which are asked for by UDP");
  command->add_option("--raise-id", arguments->raise_ids,
                      "NAME=NUMBER: ids of this name begin above it, if they do not already; for "
                      "whoever comes from another service manager");
  command->footer(
      "Examples:\n"
      "  zeze service-manager --data /srv/zeze/registry\n"
      "  zeze service-manager --config zeze.xml --port 5001\n"
      "  zeze service-manager --raise-id Shop.tOrder=1000000");
  command->callback([arguments, &exit_code] { exit_code = RunServiceManager(*arguments); });
}

}  // namespace zeze::cli
