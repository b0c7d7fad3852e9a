// A server with logins of roles, until it is killed or told to end. It says "ready", and a line for
// each login and logout: "logout 7 v1". With --notify it sends reliable notifies to roles 1 to N
// that are logged in anywhere, each with the next number of its role, until SIGUSR1; then it says
// how many each has: "total 7 120".

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Online.h"
#include "zeze/app/application.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online/redirect_sender.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

struct Arguments {
  std::int32_t server_id = 0;
  std::string url;
  std::uint16_t global_port = 0;
  std::uint16_t registry_port = 0;
  std::int64_t lease_ms = 2000;
  RoleId notify = 0;
};

constexpr TableDescriptor kSent{.id = 5, .name = "test_sent"};

// Numbers are given, and notifies sent, in one transaction: a client that misses none and sees none
// twice sees 1, 2, 3 and so on.
class Notifier {
 public:
  Notifier(RoleOnline& online, RoleId roles) : online_(online), roles_(roles) {}
  ~Notifier() { Stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void AddTo(Application& application) {
    online_.logins().On(LoginChange::kLogin,
                        {.in_transaction = [this](Transaction& tx, const auto& login) {
                          online_.logins().Listen(tx, login.key, "mail");
                          return 0;
                        }});
    application.AddTable(sent_);
  }
  void Start(Application& application) {
    thread_ = std::thread([this, &application] {
      for (RoleId turn = 0; !stop_; ++turn) {
        application.Call("notify", [&](Transaction& tx) { return Notify(tx, turn % roles_ + 1); });
        SystemClock().SleepFor(std::chrono::milliseconds(10));
      }
    });
  }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void SayTotals(Application& application) {
    for (RoleId role = 1; role <= roles_; ++role) {
      std::int64_t total = 0;
      application.Call("total", [&](Transaction& tx) {
        const auto* sent = sent_.Get(tx, role);
        total = sent == nullptr ? 0 : sent->LoginVersion;
        return 0;
      });
      std::cout << fmt::format("total {} {}\n", role, total) << std::flush;
    }
  }

 private:
  // Nothing is kept for those who are logged out.
  std::int64_t Notify(Transaction& tx, RoleId role) {
    if (!online_.logins().Find(tx, role)) return 0;
    const auto sent = sent_.GetOrAdd(tx, role);
    sent->LoginVersion += 1;
    return online_.logins().SendReliable<Zeze::Builtin::LinkdBase::ReportError>(
        tx, role, "mail", {.code = static_cast<std::int32_t>(sent->LoginVersion)});
  }

  RoleOnline& online_;
  const RoleId roles_;
  // The number is all that is used of it.
  Table<RoleId, Zeze::Builtin::Online::BServerLogin> sent_{kSent};
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

template <typename R>
bool Failed(const R& result) {
  if (!result.ok()) std::cerr << result.error().message() << '\n';
  return !result.ok();
}

ApplicationOptions OptionsOf(const Arguments& arguments) {
  ApplicationOptions options{
      .server_id = arguments.server_id,
      .storage = {.url = arguments.url},
      .globals = {{.host = "127.0.0.1", .port = arguments.global_port}},
      .lease = std::chrono::milliseconds(arguments.lease_ms),
      .worker_threads = 4,
      .checkpoint_period = std::chrono::milliseconds(100),
      // An answered login is not lost.
      .tables = {{"Zeze_Builtin_Game_Online_tOnlineShared", {.durable_at_commit = true}},
                 {"Zeze_Builtin_Game_Online_tOnline", {.durable_at_commit = true}}},
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
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  // Clients that are away for long must not lose anything: whoever notifies them waits.
  RoleOnline online({.notify_overflow = NotifyOverflow::kRefuse});
  SayChanges(online);
  const Result<std::unique_ptr<Application>> opened =
      Application::Open("online", OptionsOf(arguments));
  if (Failed(opened)) return 1;
  Application& application = *opened.value();
  application.AddModule(online);
  Notifier notifier(online, arguments.notify);
  if (arguments.notify > 0) notifier.AddTo(application);
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

  if (arguments.notify > 0) notifier.Start(application);
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGUSR1) {
    notifier.Stop();
    notifier.SayTotals(application);
  }
  notifier.Stop();
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
  app.add_option("--notify", arguments.notify, "roles");
  CLI11_PARSE(app, argc, argv);
  return zeze::arch::Serve(arguments);
}
