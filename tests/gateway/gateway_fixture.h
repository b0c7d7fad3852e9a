// GatewayFixture: a service manager, gateways, servers and clients, over real connections.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/arch/provider/testing/test_registry.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/client/client.h"
#include "zeze/net/io_threads.h"
#include "zeze/serialize/binary.h"

namespace zeze::arch::testing {

class GatewayFixture : public ::testing::Test {
 protected:
  static constexpr std::chrono::seconds kPatience{30};

  GatewayFixture() : workers_({.name = "gateway", .thread_count = 2}), io_({.name = "linkd-io"}) {}
  ~GatewayFixture() override {
    clients_.clear();
    servers_.clear();
    linkds_.clear();
  }

  // A token is the account's name.
  class Trusting final : public Authenticator {
   public:
    Result<ClientIdentity> Authenticate(const Credentials& given) override {
      return ClientIdentity{.account = std::string(given.token)};
    }
  };

  Linkd& StartLinkd(bool strict_rights = false) {
    LinkdOptions options;
    options.strict_provider_rights = strict_rights;
    return StartLinkd(std::move(options));
  }
  Linkd& StartLinkd(LinkdOptions options) {
    options.client_acceptors = {{.ip = "127.0.0.1"}};
    options.provider_acceptors = {{.ip = "127.0.0.1"}};
    options.authenticator = std::make_shared<Trusting>();
    options.registry.emplace().connector = registry_.Connector();
    options.limits.address.exempt = {"127.0.0.1"};
    options.limits.ramp.last = 0;
    options.limits.session_messages = {};
    options.limits.session_bytes = {};
    options.limits.account_messages = {};
    linkds_.push_back(std::make_unique<Linkd>(io_, workers_, std::move(options)));
    const Result<void> started = linkds_.back()->Start();
    EXPECT_TRUE(started.ok()) << started.error().message();
    return *linkds_.back();
  }

  std::unique_ptr<DemoServer> NewServer(std::int32_t id, ProviderOptions provider = {}) {
    auto server = std::make_unique<DemoServer>(
        registry_, DemoOptions{.server_id = id, .provider = std::move(provider)});
    server->game.on_echo = on_echo_;
    server->Start();
    EXPECT_TRUE(
        Eventually([&] { return server->provider().links().names().size() == linkds_.size(); }));
    return server;
  }

  Client& StartClient(const std::string& account, std::size_t linkd = 0) {
    const NetAddress address = linkds_.at(linkd)->client_address();
    clients_.push_back(std::make_unique<Client>(
        client_io_,
        ClientOptions{.gateways = {{"127.0.0.1", address.port()}},
                      .authenticate = AuthenticateBy<Zeze::Builtin::LinkdAuth::Auth>([account] {
                        return Zeze::Builtin::LinkdAuth::BAuth{.token = Binary{account}};
                      }),
                      .first_delay = std::chrono::milliseconds(20)}));
    return *clients_.back();
  }
  static void MustBeReady(Client& client) {
    EXPECT_TRUE(client.Start().ok());
    const Result<void> ready = client.AwaitReady(kPatience);
    EXPECT_TRUE(ready.ok()) << ready.error().message();
  }

  static bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = SystemClock().Now() + kPatience;
    while (!condition()) {
      if (SystemClock().Now() > deadline) return false;
      SystemClock().SleepFor(std::chrono::milliseconds(1));
    }
    return true;
  }

  TestRegistry registry_;
  ThreadPool workers_;
  IoThreads io_;
  IoThreads client_io_{{.name = "client-io"}};
  std::function<void(const BText&)> on_echo_;
  std::vector<std::unique_ptr<Linkd>> linkds_;
  std::vector<std::unique_ptr<DemoServer>> servers_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace zeze::arch::testing
