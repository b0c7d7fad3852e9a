#include "tools/cli/linkd_command.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.
#include <sys/resource.h>

#include "tools/cli/alert_options.h"
#include "tools/cli/program_config.h"
#include "zeze/admin/operator_key.h"
#include "zeze/admin/operator_list.h"
#include "zeze/arch/linkd/address_book.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/arch/linkd/linkd_settings.h"
#include "zeze/arch/linkd/token_authenticator.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/config/config.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/http/text_server.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/service_options.h"

namespace zeze::cli {

namespace {

constexpr std::size_t kTlsBindingBytes = 32;  // RFC 9266, tls-exporter.

struct LinkdArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string ip;
  std::optional<std::uint16_t> port;
  std::string provider_ip;
  std::optional<std::uint16_t> provider_port;
  std::string name;
  std::string sid_file;
  std::string token_keys;
  std::string audience;
  bool insecure_accounts = false;
  std::optional<std::uint16_t> metrics_port;
  std::string metrics_ip = "127.0.0.1";
  std::size_t threads = 1;
};

struct TokenArguments {
  std::string key;
  std::string account;
  std::string audience = "Linkd";
  std::int64_t seconds = 60;
  std::string tls_binding;
};

// For development: who says to be somebody is believed.
class InsecureAccounts final : public arch::Authenticator {
 public:
  Result<arch::ClientIdentity> Authenticate(const arch::Credentials& given) override {
    if (given.token.empty()) return Error(ErrorCode::kInvalidArgument, "an empty account");
    return arch::ClientIdentity{.account = std::string(given.token),
                                .app_version = given.app_version};
  }
};

int Fail(const Error& error) {
  std::cerr << "zeze linkd: " << error.message() << '\n';
  return error.code() == ErrorCode::kNotFound ? 2 : 1;
}

void Override(const std::string& ip, std::optional<std::uint16_t> port,
              std::vector<AcceptorOptions>& acceptors) {
  if (ip.empty() && !port.has_value()) return;
  acceptors.resize(1);
  if (!ip.empty()) acceptors.front().ip = ip;
  acceptors.front().port = port.value_or(acceptors.front().port);
}

// What the command line says wins.
void Apply(const LinkdArguments& arguments, arch::LinkdSettings& settings) {
  arch::LinkdOptions& options = settings.options;
  Override(arguments.ip, arguments.port, options.client_acceptors);
  Override(arguments.provider_ip, arguments.provider_port, options.provider_acceptors);
  const auto text = [](const std::string& from, std::string& to) {
    if (!from.empty()) to = from;
  };
  if (settings.audience == options.name) text(arguments.name, settings.audience);
  text(arguments.name, options.name);
  text(arguments.sid_file, options.sid_file);
  text(arguments.token_keys, settings.token_keys);
  text(arguments.audience, settings.audience);
}

Result<std::shared_ptr<arch::Authenticator>> MakeAuthenticator(
    const LinkdArguments& arguments, const arch::LinkdSettings& settings) {
  if (arguments.insecure_accounts) {
    ZEZE_LOG_WARNING("every client is believed whatever account it names (--insecure-accounts)");
    return std::shared_ptr<arch::Authenticator>(std::make_shared<InsecureAccounts>());
  }
  if (settings.token_keys.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "no client could log in: --token-keys FILE (or TokenKeys in the configuration) "
                 "names the public keys of whoever signs their tokens; --insecure-accounts "
                 "believes everybody");
  }
  Result<std::vector<admin::Operator>> keys = admin::LoadOperators(settings.token_keys);
  if (!keys.ok()) return keys.error();
  arch::TokenOptions options{.audience = settings.audience,
                             .require_tls_binding = settings.require_tls_binding};
  for (const admin::Operator& one : keys.value()) options.public_keys.push_back(one.public_key);
  return std::shared_ptr<arch::Authenticator>(
      std::make_shared<arch::TokenAuthenticator>(std::move(options)));
}

std::string MetricsOf(const arch::Linkd& linkd) {
  return linkd.GetStatistics().FormatMetrics() +
         fmt::format("# TYPE zeze_linkd_banned_addresses gauge\nzeze_linkd_banned_addresses {}\n",
                     linkd.Bans().size());
}

// To what the system allows: each connection needs one.
std::size_t RaiseOpenFiles() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max;
}

// Clients must not take the descriptors that servers, files and the metrics need: beyond what is
// left they are refused, and counted.
void LeaveDescriptors(ServiceOptions& clients) {
  constexpr std::size_t kReserve = 64;
  const std::size_t files = RaiseOpenFiles();
  const std::size_t room = files > 2 * kReserve ? files - kReserve : files / 2;
  if (clients.connections_max <= room) return;
  ZEZE_LOG_WARNING(
      "at most {} clients can connect at a time, not {} (maxConnections): a process may have {} "
      "descriptors open ('ulimit -Hn')",
      room, clients.connections_max, files);
  clients.connections_max = room;
}

// The first port for clients is printed already.
void PrintFurtherPorts(const arch::Linkd& linkd, const std::vector<bool>& websockets) {
  const std::vector<NetAddress> addresses = linkd.client_addresses();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (i == 0 && !websockets[i]) continue;
    std::cout << (websockets[i] ? ", WebSockets on port " : ", clients also on port ")
              << addresses[i].port();
  }
}

int RunLinkd(const LinkdArguments& arguments) {
  // Before any thread starts, so that all of them leave the signals to this one.
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);  // Says what was refused, and goes on.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Result<Config> config = LoadProgramConfig(arguments.config, arguments.overrides);
  if (!config.ok()) return Fail(config.error());
  if (Result<void> log = ApplyLogSettings(config.value()); !log.ok()) return Fail(log.error());
  Result<arch::LinkdSettings> settings = arch::LinkdSettingsFromConfig(config.value());
  if (!settings.ok()) return Fail(settings.error());
  Apply(arguments, settings.value());
  arch::LinkdOptions& options = settings.value().options;
  if (options.sid_file.empty() && !options.registry.has_value()) {
    return Fail({ErrorCode::kInvalidArgument,
                 "session ids must never repeat: --sid-file FILE, or a service manager"});
  }
  Result<std::shared_ptr<arch::Authenticator>> authenticator =
      MakeAuthenticator(arguments, settings.value());
  if (!authenticator.ok()) return Fail(authenticator.error());
  options.authenticator = std::move(authenticator).value();

  LeaveDescriptors(options.clients);

  ThreadPool workers({.name = "linkd", .thread_count = 2});
  IoThreads io({.name = "linkd-io", .thread_count = arguments.threads});
  std::vector<bool> websockets;  // Which ports for clients are.
  websockets.reserve(options.client_acceptors.size());
  for (const AcceptorOptions& acceptor : options.client_acceptors) {
    websockets.push_back(acceptor.websocket.has_value());
  }
  arch::Linkd linkd(io, workers, std::move(options));
  if (Result<void> started = linkd.Start(); !started.ok()) return Fail(started.error());
  std::unique_ptr<TextServer> metrics;  // Ends before the gateway.
  if (arguments.metrics_port.has_value()) {
    Result<std::unique_ptr<TextServer>> served =
        TextServer::Start({.ip = arguments.metrics_ip, .port = *arguments.metrics_port});
    if (!served.ok()) return Fail(served.error());
    metrics = std::move(served).value();
    metrics->Add("/metrics", [&linkd] { return MetricsOf(linkd); });
  }
  std::cout << "clients on port " << linkd.client_address().port() << ", servers on port "
            << linkd.provider_address().port();
  if (metrics != nullptr) std::cout << ", metrics on port " << metrics->port();
  PrintFurtherPorts(linkd, websockets);
  std::cout << '\n' << std::flush;
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGUSR1) {
    std::cout << linkd.GetStatistics().Format();
    for (const arch::AddressBook::Ban& ban : linkd.Bans()) {
      std::cout << "banned: " << ban.address.IpText() << " for "
                << std::chrono::duration_cast<std::chrono::seconds>(ban.remaining).count()
                << " s\n";
    }
    std::cout << std::flush;
  }
  metrics = nullptr;
  linkd.Stop();
  return 0;
}

int PrintToken(const TokenArguments& arguments) {
  const Result<admin::OperatorKey> key = admin::OperatorKey::Load(arguments.key);
  if (!key.ok()) return Fail(key.error());
  auto token = arch::NewToken(arguments.account, arguments.audience,
                              std::chrono::seconds(arguments.seconds));
  if (!arguments.tls_binding.empty()) {
    const std::optional<std::string> binding = admin::FromHex(arguments.tls_binding);
    if (!binding || binding->size() != kTlsBindingBytes) {
      return Fail({ErrorCode::kInvalidArgument,
                   fmt::format("--tls-binding: {} hexadecimal digits are expected (what "
                               "Connection::TlsBinding returns at the client)",
                               2 * kTlsBindingBytes)});
    }
    token.tlsBinding.bytes = *binding;
  }
  std::cout << admin::ToHex(arch::SignToken(key.value(), token)) << '\n';
  return 0;
}

void AddTokenCommand(CLI::App& linkd, int& exit_code) {
  auto arguments = std::make_shared<TokenArguments>();
  CLI::App* command = linkd.add_subcommand(
      "token", "Sign a token with which a client can log in once; in hexadecimal digits");
  command->add_option("--key", arguments->key, "The private key (\"zeze admin keygen\" makes one)")
      ->required();
  AddTextOption(*command, "--account", arguments->account, "Who the client is")->required();
  AddTextOption(*command, "--audience", arguments->audience,
                "Of which gateways: their name (default: Linkd)");
  command->add_option("--seconds", arguments->seconds, "How long it is good (default: 60)")
      ->check(CLI::Range(1, 300));
  command->add_option(
      "--tls-binding", arguments->tls_binding,
      "Only for the TLS connection with this binding, in hexadecimal digits "
      "(default: for any connection, as browsers need it: they cannot tell theirs)");
  command->footer("Example:\n  zeze linkd token --key accounts.key --account alice");
  command->callback([arguments, &exit_code] { exit_code = PrintToken(*arguments); });
}

}  // namespace

void AddLinkdCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<LinkdArguments>();
  CLI::App* command = app.add_subcommand(
      "linkd", "Run a gateway: clients connect to it, and their messages find the right server");
  command->add_option("--config", arguments->config,
                      "Configuration (default: what ZEZE_CONFIG names, else zeze.xml, if it is "
                      "there); it reads the "
                      "ServiceConfs "
                      "\"LinkdService\", \"ProviderService\" and "
                      "\"Zeze.Services.ServiceManager.Agent\" and the CustomizeConf "
                      "\"Zeze.Linkd\"");
  command->add_option("--set", arguments->overrides, "NAME=VALUE: overrides the configuration");
  command->add_option("--ip", arguments->ip, "Address for clients (default: all)");
  command->add_option("--port", arguments->port, "Port for clients (default: 10000); 0: any");
  command->add_option("--provider-ip", arguments->provider_ip,
                      "Address for servers (default: 127.0.0.1; @internal: a private address of "
                      "this machine, for servers of others); nobody else should reach it");
  command->add_option("--provider-port", arguments->provider_port,
                      "Port for servers (default: 11000); 0: any");
  command->add_option("--name", arguments->name,
                      "Under which servers find it at the service manager (default: Linkd)");
  command->add_option("--sid-file", arguments->sid_file,
                      "Keeps session ids from repeating (default: the service manager does)");
  command->add_option("--token-keys", arguments->token_keys,
                      "File of public keys of whoever signs clients' tokens, each line NAME "
                      "ed25519:KEY");
  command->add_option("--audience", arguments->audience,
                      "What tokens must be for (default: the name)");
  command->add_flag("--insecure-accounts", arguments->insecure_accounts,
                    "For development: a token is the account's name, and everybody is believed");
  command->add_option("--metrics-port", arguments->metrics_port,
                      "Serve http://IP:PORT/metrics for Prometheus (default: not); 0: any");
  command->add_option(
      "--metrics-ip", arguments->metrics_ip,
      "Address of the metrics (default: 127.0.0.1); nobody outside should reach it");
  command->add_option("--threads", arguments->threads, "Network threads (default: 1)")
      ->check(CLI::Range(1, 64));
  command->footer(
      "Signals: SIGUSR1 prints what was forwarded and refused; SIGTERM ends.\n"
      "Examples:\n"
      "  zeze linkd --insecure-accounts --sid-file linkd.sids        to try things\n"
      "  zeze linkd --config zeze.xml --token-keys accounts.keys\n"
      "  zeze linkd token --key accounts.key --account alice");
  AddTokenCommand(*command, exit_code);
  command->callback([arguments, command, &exit_code] {
    if (command->get_subcommands().empty()) exit_code = RunLinkd(*arguments);
  });
}

}  // namespace zeze::cli
