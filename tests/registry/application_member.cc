// An Application that offers the service "Shop" under its server id and takes over other servers'
// timers, until it is told to end. Its argument is its configuration file. It says "ready", and
// "taken ID" for each server that it took over.

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/table_base.h"

namespace zeze {
namespace {

class ShopModule final : public Module {
 public:
  std::int32_t id() const override { return 1; }
  std::string_view name() const override { return "test.Shop"; }
  std::vector<TableBase*> Tables() override { return {}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

  Result<void> Start(Application& application) override {
    registry::RegistryAgent& agent = *application.registry();
    const std::int32_t server_id = application.options().server_id;
    agent.RegisterOffline({.server_id = server_id, .notify_id = "Timer", .serial = 1},
                          [](const registry::OfflineNotice& notice) {
                            std::cout << fmt::format("taken {}\n", notice.server_id) << std::flush;
                            return registry::TakeOver::kTaken;
                          });
    Result<void> registered =
        agent.Register({.name = "Shop", .identity = std::to_string(server_id)});
    if (!registered.ok()) return registered;
    return agent.AwaitSettled(std::chrono::seconds(30));
  }
};

template <typename R>
bool Failed(const R& result) {
  if (!result.ok()) std::cerr << result.error().message() << '\n';
  return !result.ok();
}

int Main(const std::string& file) {
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Result<Config> config = Config::Load(file);
  if (Failed(config)) return 1;
  const Result<ApplicationOptions> options = OptionsFromConfig(config.value());
  if (Failed(options)) return 1;
  ShopModule shop;
  const Result<std::unique_ptr<Application>> opened = Application::Open("shop", options.value());
  if (Failed(opened)) return 1;
  opened.value()->AddModule(shop);
  if (Failed(opened.value()->Start())) return 1;
  std::cout << "ready\n" << std::flush;
  int signal = 0;
  sigwait(&signals, &signal);
  return Failed(opened.value()->Stop()) ? 1 : 0;
}

}  // namespace
}  // namespace zeze

int main(int argc, char** argv) {
  return argc == 2 ? zeze::Main(argv[1]) : 2;
}
