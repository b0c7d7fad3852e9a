// TestRegistry: a service manager on a free port, and agents of it.
//
//   testing::TestRegistry registry;
//   std::unique_ptr<registry::RegistryAgent> agent = registry.NewAgent();

#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/connector.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"

namespace zeze::arch::testing {

struct TestRegistryOptions {
  // From a lost connection until somebody is asked to take over; and until all are asked again.
  std::chrono::nanoseconds offline_delay = std::chrono::seconds(600);
  std::chrono::nanoseconds offline_retry = std::chrono::seconds(30);
};

class TestRegistry {
 public:
  explicit TestRegistry(const TestRegistryOptions& options = {})
      : pool_({.name = "registry", .thread_count = 2}),
        io_({.name = "registry-io"}),
        storage_(OpenMemoryStorage()),
        service_(io_, *storage_, pool_, ServiceOptionsOf(options)) {
    const Result<void> started = service_.Start();
    EXPECT_TRUE(started.ok()) << started.error().message();
  }
  ~TestRegistry() { service_.Stop(); }
  TestRegistry(const TestRegistry&) = delete;
  TestRegistry& operator=(const TestRegistry&) = delete;

  // Ends before the registry. Started.
  std::unique_ptr<registry::RegistryAgent> NewAgent(registry::RegistryAgentOptions options = {}) {
    options.connector = Connector();
    auto agent = std::make_unique<registry::RegistryAgent>(io_, pool_, std::move(options));
    EXPECT_TRUE(agent->Start().ok());
    return agent;
  }

  // For whoever makes its own.
  ConnectorOptions Connector() const {
    return {.host = "127.0.0.1",
            .port = service_.address().port(),
            .first_delay = std::chrono::milliseconds(20),
            .delay_max = std::chrono::milliseconds(50)};
  }

  ThreadPool& pool() { return pool_; }

 private:
  static registry::RegistryServiceOptions ServiceOptionsOf(const TestRegistryOptions& given) {
    registry::RegistryServiceOptions options;
    options.acceptors = {{.ip = "127.0.0.1", .port = 0}};
    options.machine.recovery = std::chrono::seconds(0);
    options.machine.offline.delay = given.offline_delay;
    options.machine.offline.retry = given.offline_retry;
    return options;
  }

  ThreadPool pool_;
  IoThreads io_;
  const std::unique_ptr<Storage> storage_;
  registry::RegistryService service_;
};

}  // namespace zeze::arch::testing
