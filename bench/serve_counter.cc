#include "bench/serve_counter.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "bench/Counter.module.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/transaction.h"

namespace zeze::bench {

namespace {

class ModuleCounter final : public ::bench::Counter::ModuleCounterBase {
 public:
  std::int64_t ProcessAddOne(Transaction& tx, Session& session,
                             ::bench::Counter::BCount& result) override {
    result.count = ++tCounter.GetOrAdd(tx, session.account())->count;
    return 0;
  }
};

int Fail(const Error& error) {
  fmt::print("{}\n", error.message());
  std::fflush(stdout);
  return 1;
}

}  // namespace

int ServeCounter(std::uint16_t port) {
  // A service manager of its own, which knows the one gateway.
  ThreadPool pool({.name = "registry", .thread_count = 1});
  IoThreads registry_io({.name = "registry-io"});
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  registry::RegistryServiceOptions registry_options;
  registry_options.acceptors = {{.ip = "127.0.0.1", .port = 0}};
  registry_options.machine.recovery = std::chrono::seconds(0);
  registry::RegistryService registry(registry_io, *storage, pool, std::move(registry_options));
  if (Result<void> started = registry.Start(); !started.ok()) return Fail(started.error());
  registry::RegistryAgentOptions agent_options;
  agent_options.connector = {.host = "127.0.0.1", .port = registry.address().port()};
  registry::RegistryAgent agent(registry_io, pool, std::move(agent_options));
  if (Result<void> started = agent.Start(); !started.ok()) return Fail(started.error());
  const Result<void> listed = agent.Register({.name = "Linkd",
                                              .identity = fmt::format("@127.0.0.1_{}", port),
                                              .passive_ip = "127.0.0.1",
                                              .passive_port = port});
  if (!listed.ok()) return Fail(listed.error());

  ModuleCounter counter;
  Result<std::unique_ptr<Application>> opened =
      Application::Open("counter", {.server_id = 1, .storage = {.url = "memory:"}});
  if (!opened.ok()) return Fail(opened.error());
  Application& application = *opened.value();
  application.AddModule(counter);
  if (Result<void> started = application.Start(); !started.ok()) return Fail(started.error());
  IoThreads io({.name = "provider-io"});
  arch::Provider provider(application, io, agent, {.name_prefix = "Bench.Module#"});
  provider.AddModule(counter);
  if (Result<void> started = provider.Start(); !started.ok()) return Fail(started.error());
  while (provider.links().names().empty()) std::this_thread::yield();
  fmt::print("listening on port {}\n", port);
  std::fflush(stdout);
  while (true) ::pause();
}

}  // namespace zeze::bench
