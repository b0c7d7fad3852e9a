// ProviderFixture: a service manager, a gateway of the test and servers behind it.

#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/arch/provider/testing/fake_linkd.h"
#include "zeze/arch/provider/testing/test_registry.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch::testing {

class ProviderFixture : public ::testing::Test {
 protected:
  static constexpr std::int32_t kGame = 100;
  static constexpr std::int32_t kMap = 101;

  ProviderFixture() : io_({.name = "linkd-io"}), agent_(registry_.NewAgent()) {}
  ~ProviderFixture() override {
    servers_.clear();
    linkd_.reset();
    agent_->Stop();
  }

  FakeLinkd& StartLinkd(FakeLinkd::Options options = {}) {
    linkd_ = std::make_unique<FakeLinkd>(io_, agent_.get(), std::move(options));
    return *linkd_;
  }
  DemoServer& StartServer(DemoOptions options = {}) {
    servers_.push_back(std::make_unique<DemoServer>(registry_, std::move(options)));
    servers_.back()->Start();
    return *servers_.back();
  }
  // A gateway and one server behind it.
  DemoServer& StartBoth(DemoOptions options = {}) {
    StartLinkd();
    DemoServer& server = StartServer(std::move(options));
    EXPECT_TRUE(linkd_->AwaitServers(kGame, 1));
    return server;
  }

  TestRegistry registry_;
  IoThreads io_;
  std::unique_ptr<registry::RegistryAgent> agent_;
  std::unique_ptr<FakeLinkd> linkd_;
  std::vector<std::unique_ptr<DemoServer>> servers_;
};

}  // namespace zeze::arch::testing
