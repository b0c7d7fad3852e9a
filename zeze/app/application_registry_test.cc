// Applications and a service manager, over real connections.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/thread_pool.h"
#include "zeze/config/config.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/registry/service/service_list.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/testing/gate.h"
#include "zeze/transaction/transaction.h"
#include "zeze/xml/diagnostics.h"

namespace zeze {
namespace {

using registry::OfflineNotice;
using registry::RegistryAgent;
using registry::ServiceChange;
using registry::ServiceListPtr;
using registry::TakeOver;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using zeze::testing::Gate;

constexpr seconds kPatience(60);

using Identities = std::set<std::string>;

// The identities of the services "Shop", as an agent is told of them.
class ShopList {
 public:
  void Follow(RegistryAgent& agent) {
    agent.Subscribe({.name = "Shop"}, [this](const ServiceListPtr& list, const ServiceChange&) {
      const MutexLock lock(mutex_);
      identities_.clear();
      for (const auto& [version, services] : list->versions) {
        for (const registry::ServiceInfo& info : services) identities_.insert(info.identity);
      }
      changed_.NotifyAll();
    });
  }
  bool Await(const Identities& expected) {
    const MutexLock lock(mutex_);
    while (identities_ != expected) {
      if (!changed_.WaitFor(mutex_, kPatience)) return false;
    }
    return true;
  }
  Identities identities() {
    const MutexLock lock(mutex_);
    return identities_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  Identities identities_ ZEZE_GUARDED_BY(mutex_);
};

// Offers the service "Shop" 7, follows it, and would take over others' timers.
class ShopModule final : public Module {
 public:
  std::int32_t id() const override { return 1; }
  std::string_view name() const override { return "test.Shop"; }
  std::vector<TableBase*> Tables() override { return {}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

  Result<void> Start(Application& application) override {
    RegistryAgent* agent = application.registry();
    if (agent == nullptr) return Error(ErrorCode::kUnavailable, "there is no service manager");
    list.Follow(*agent);
    agent->RegisterOffline({.server_id = 7, .notify_id = "Timer", .serial = 1},
                           [](const OfflineNotice&) { return TakeOver::kTaken; });
    if (Result<void> registered = agent->Register({.name = "Shop", .identity = "7"});
        !registered.ok()) {
      return registered;
    }
    return agent->AwaitSettled(kPatience);
  }
  void Stop(Application& application) override {
    if (on_stop) on_stop(*application.registry());
  }

  ShopList list;
  std::function<void(RegistryAgent&)> on_stop = nullptr;
};

class ApplicationRegistryTest : public ::testing::Test {
 protected:
  ApplicationRegistryTest()
      : storage_(OpenMemoryStorage()),
        io_({.name = "registry-io"}),
        pool_({.name = "pool", .thread_count = 2}) {
    StartManager(0);
  }
  ~ApplicationRegistryTest() override { StopManager(); }

  void StartManager(std::uint16_t port) {
    registry::RegistryServiceOptions options;
    options.acceptors = {{.ip = "127.0.0.1", .port = port}};
    options.machine.offline.delay = milliseconds(1);
    manager_ = std::make_unique<registry::RegistryService>(io_, *storage_, pool_, options);
    const Result<void> started = manager_->Start();
    ASSERT_TRUE(started.ok()) << started.error().message();
    port_ = manager_->address().port();
  }
  void StopManager() {
    if (manager_ != nullptr) manager_->Stop();
    manager_.reset();
  }

  // Of a file with these attributes of <zeze> and these elements in it.
  static Result<ApplicationOptions> Options(const std::string& attributes,
                                            const std::string& elements) {
    xml::Diagnostics diagnostics;
    const auto config =
        Config::Parse("<zeze WorkerThreads='1' " + attributes + ">" + elements + "</zeze>",
                      "zeze.xml", {}, diagnostics);
    EXPECT_TRUE(config.has_value()) << diagnostics.Format();
    return OptionsFromConfig(config.value());
  }
  std::string AgentElement() const {
    return "<ServiceConf Name='Zeze.Services.ServiceManager.Agent'><Connector "
           "HostNameOrAddress='127.0.0.1' Port='" +
           std::to_string(port_) + "'/></ServiceConf>";
  }
  std::unique_ptr<Application> Open() {
    return Application::Open("shop", Options("", AgentElement()).value()).value();
  }
  // Another server of the cluster.
  std::unique_ptr<RegistryAgent> StartAgent() {
    auto agent = std::make_unique<RegistryAgent>(
        io_, pool_,
        registry::RegistryAgentOptions{.connector = {.host = "127.0.0.1", .port = port_}});
    EXPECT_TRUE(agent->Start().ok());
    return agent;
  }

  std::unique_ptr<Storage> storage_;
  IoThreads io_;
  ThreadPool pool_;
  std::uint16_t port_ = 0;
  std::unique_ptr<registry::RegistryService> manager_;
};

TEST_F(ApplicationRegistryTest, ModulesUseTheServiceManagerOfTheConfiguration) {
  ShopList seen;
  const auto other = StartAgent();
  seen.Follow(*other);
  ShopModule shop;
  const auto app = Open();
  app->AddModule(shop);

  const Result<void> started = app->Start();

  ASSERT_TRUE(started.ok()) << started.error().message();
  EXPECT_TRUE(seen.Await({"7"}));
  EXPECT_TRUE(shop.list.Await({"7"}));
  EXPECT_EQ(1, app->registry()->NextId("Shop.tOrder").value());
  EXPECT_TRUE(app->Stop().ok());
  EXPECT_TRUE(seen.Await({}));
}

TEST_F(ApplicationRegistryTest, WhatAModuleOffersIsItsOwnUntilItHasStopped) {
  const auto other = StartAgent();
  ShopModule shop;
  const auto app = Open();
  app->AddModule(shop);
  ASSERT_TRUE(app->Start().ok());
  EXPECT_TRUE(shop.list.Await({"7"}));
  shop.on_stop = [&](RegistryAgent& agent) {
    EXPECT_EQ(1U, manager_->GetStatus().services);
    EXPECT_TRUE(other->Register({.name = "Shop", .identity = "8"}).ok());
    while (agent.Services("Shop")->size() < 2) std::this_thread::yield();
    EXPECT_EQ(Identities{"7"}, shop.list.identities()) << "it is not called any more";
    agent.Unregister({.name = "Shop", .identity = "7"});
    EXPECT_TRUE(agent.AwaitSettled(kPatience).ok());
    EXPECT_EQ(1U, manager_->GetStatus().services);
  };

  EXPECT_TRUE(app->Stop().ok());
  EXPECT_EQ(1U, manager_->GetStatus().services) << "of the other server";
}

// A process that dies before it has saved everything must be taken over.
TEST_F(ApplicationRegistryTest, SaysGoodbyeOnlyWhenEverythingIsSaved) {
  ShopModule shop;
  const auto app = Open();
  app->AddModule(shop);
  ASSERT_TRUE(app->Start().ok());
  Gate gate;
  std::thread running([&] {
    EXPECT_EQ(0, app->Call("slow", [&](Transaction&) {
      gate.Pass();
      return 0;
    }));
  });
  gate.AwaitArrivals(1);
  std::thread stopping([&] { EXPECT_TRUE(app->Stop().ok()); });
  while (app->Call("late", [](Transaction&) { return 0; }) != result_code::kClosed) {
    std::this_thread::yield();
  }

  // It waits for the procedure, and saves then.
  EXPECT_EQ(1U, manager_->GetStatus().offline_notices);
  EXPECT_EQ(1U, manager_->GetStatus().services);

  gate.Open();
  running.join();
  stopping.join();
  EXPECT_EQ(0U, manager_->GetStatus().offline_notices);
}

TEST_F(ApplicationRegistryTest, StartsWhileTheServiceManagerIsAway) {
  const std::uint16_t port = port_;
  StopManager();
  const auto app = Open();
  ASSERT_TRUE(app->Start().ok());
  EXPECT_FALSE(app->registry()->connected());
  EXPECT_TRUE(app->registry()->Register({.name = "Shop", .identity = "7"}).ok());

  StartManager(port);

  EXPECT_TRUE(app->registry()->AwaitSettled(kPatience).ok());
  EXPECT_EQ(1U, manager_->GetStatus().services);
  EXPECT_TRUE(app->Stop().ok());
}

TEST_F(ApplicationRegistryTest, ThereIsNoneUnlessTheConfigurationSaysSo) {
  for (const auto& [attributes, elements] : {std::pair<std::string, std::string>{"", ""},
                                             {"ServiceManager='disable'", AgentElement()}}) {
    const auto app = Application::Open("shop", Options(attributes, elements).value()).value();
    ASSERT_TRUE(app->Start().ok());
    EXPECT_EQ(nullptr, app->registry());
  }
}

TEST_F(ApplicationRegistryTest, WrongSettingsAreErrors) {
  EXPECT_THAT(Options("ServiceManager='raft'", AgentElement()).error().message(),
              HasSubstr("ServiceManager=\"raft\" is not in this version"));
  EXPECT_THAT(
      Options("", "<ServiceConf Name='Zeze.Services.ServiceManager.Agent'/>").error().message(),
      HasSubstr("needs one <Connector>, and has 0"));

  ApplicationOptions options = Options("", AgentElement()).value();
  options.registry->connector.host = "";
  const Result<void> started = Application::Open("shop", options).value()->Start();
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), HasSubstr("needs its host and its port"));
}

}  // namespace
}  // namespace zeze
