// A server with logins of roles, until it is killed or told to end. It says "ready", and a line for
// each login and logout: "logout 7 v1".

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "zeze/app/application.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online/redirect_sender.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch {
namespace {

struct Arguments {
  std::int32_t server_id = 0;
  std::string url;
  std::uint16_t global_port = 0;
  std::uint16_t registry_port = 0;
  std::int64_t lease_ms = 2000;
};

template <typename R>
bool Failed(const R& result) {
  if (!result.ok()) std::cerr << result.error().message() << '\n';
  return !result.ok();
}

ApplicationOptions OptionsOf(const Arguments& arguments) {
  ApplicationOptions options{
      .server_id = arguments.server_id,
      .storage = StorageKind::kPostgreSql,
      .storage_url = arguments.url,
      .globals = {{.host = "127.0.0.1", .port = arguments.global_port}},
      .lease = std::chrono::milliseconds(arguments.lease_ms),
      .worker_threads = 4,
      .checkpoint_period = std::chrono::milliseconds(100),
      // An answered login is not lost.
      .tables = {{"Zeze_Builtin_Game_Online_tOnlineShared", {.durable_at_commit = true}}},
      .liveness = {.period = std::chrono::seconds(0)}};
  options.registry.emplace().connector = {.host = "127.0.0.1",
                                          .port = arguments.registry_port,
                                          .first_delay = std::chrono::milliseconds(20)};
  return options;
}

void SayChanges(RoleOnline& online) {
  const auto say = [&online](LoginChange change, const char* what) {
    online.logins().On(change, {.outside = [what](const Login<RoleId>& login) {
                         std::cout << fmt::format("{} {} v{}\n", what, login.key, login.version)
                                   << std::flush;
                       }});
  };
  say(LoginChange::kLogin, "login");
  say(LoginChange::kLogout, "logout");
}

int Serve(const Arguments& arguments) {
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  RoleOnline online({});
  SayChanges(online);
  const Result<std::unique_ptr<Application>> opened =
      Application::Open("online", OptionsOf(arguments));
  if (Failed(opened)) return 1;
  Application& application = *opened.value();
  application.AddModule(online);
  if (Failed(application.Start())) return 1;

  IoThreads io({});
  const std::string prefix = "Game.Server.Module#";
  Redirect redirect(
      application, io, *application.registry(),
      {.name_prefix = prefix, .direct = {.ip = "127.0.0.1"}, .register_modules = false});
  RedirectSender direct(redirect);
  direct.Serve(online);
  if (Failed(redirect.Start())) return 1;
  Provider provider(application, io, *application.registry(),
                    {.name_prefix = prefix,
                     .direct_ip = redirect.links().ip(),
                     .direct_port = redirect.links().port()});
  provider.AddModule(online);
  provider.OnLinkBroken([&](const LinkAddress& link, const auto&) { online.LinkBroken(link); });
  if (Failed(provider.Start(false))) return 1;
  online.Connect(provider.links(), &direct);
  provider.SetReady(true);
  if (Failed(application.registry()->AwaitSettled(std::chrono::seconds(30)))) return 1;
  std::cout << "ready\n" << std::flush;

  int signal = 0;
  sigwait(&signals, &signal);
  provider.Stop();
  redirect.Stop();
  return Failed(application.Stop()) ? 1 : 0;
}

}  // namespace
}  // namespace zeze::arch

int main(int argc, char** argv) {
  zeze::arch::Arguments arguments;
  CLI::App app("A server with logins of roles");
  app.add_option("--id", arguments.server_id)->required();
  app.add_option("--url", arguments.url)->required();
  app.add_option("--global", arguments.global_port)->required();
  app.add_option("--registry", arguments.registry_port)->required();
  app.add_option("--lease", arguments.lease_ms, "ms");
  CLI11_PARSE(app, argc, argv);
  return zeze::arch::Serve(arguments);
}
