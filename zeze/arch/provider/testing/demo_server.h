// DemoServer: a whole server process of the tests, with the modules of solution.xml here.
//
//   testing::DemoServer server(registry, {.server_id = 1});
//   server.Start();

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "demo/Game.module.h"
#include "demo/Map.module.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/provider/module_binds.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/arch/provider/testing/test_registry.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::testing {

using demo::Game::BCount;
using demo::Game::BText;

// Handlers wait in it until it is opened.
class Gate {
 public:
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Pass() {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
  }
  void AwaitWaiting(int count) {
    MutexLock lock(mutex_);
    while (waiting_ < count) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ZEZE_GUARDED_BY(mutex_) = false;
  int waiting_ ZEZE_GUARDED_BY(mutex_) = 0;
};

class DemoGame final : public demo::Game::ModuleGameBase {
 public:
  Gate gate;
  std::function<void(const BText& text)> on_echo = nullptr;  // Before Start.

  // What Note has got, in the order of its commits.
  std::vector<BText> notes() const {
    MutexLock lock(mutex_);
    return notes_;
  }

  std::int64_t ProcessAdd(Transaction& tx, Session& session, const BCount& argument,
                          BCount& result) override {
    auto count = tCount.GetOrAdd(tx, session.account());
    count->count += argument.count;
    result.count = count->count;
    session.SendAfterCommit<demo::Game::Noted>(tx, {.text = "added", .number = result.count});
    return 0;
  }
  std::int64_t ProcessCount(Transaction& tx, Session& session, const BCount& argument,
                            BCount& result) override {
    auto count = tCount.GetOrAdd(tx, session.account());
    count->count += argument.count;
    result.count = count->count;
    return 0;
  }
  std::int64_t ProcessFail(Transaction& tx, Session& session, const BCount& argument,
                           BCount& result) override {
    BCount added;
    (void)ProcessAdd(tx, session, {.count = 1000}, added);
    result.count = argument.count;
    return argument.count;
  }
  std::int64_t ProcessThrow(Transaction&, Session&) override {
    throw std::runtime_error("as the test wants it");
  }
  std::int64_t ProcessThrowOutside(Session&) override {
    throw std::runtime_error("as the test wants it");
  }
  std::int64_t ProcessEcho(Session&, const BText& argument, BText& result) override {
    if (on_echo) on_echo(argument);
    result = argument;
    return 0;
  }
  std::int64_t ProcessEchoDirect(Session&, const BText& argument, BText& result) override {
    result.text = argument.text + (IoThreads::IsIoThread() ? " directly" : " on a worker");
    return 0;
  }
  std::int64_t ProcessEchoCritical(Session&, const BText& argument, BText& result) override {
    result = argument;
    return 0;
  }
  std::int64_t ProcessWait(Session&, const BText& argument, BText& result) override {
    gate.Pass();
    result = argument;
    return 0;
  }
  std::int64_t ProcessOptional(Session&, const BText& argument, BText& result) override {
    result = argument;
    return 0;
  }
  std::int64_t ProcessUsual(Session&, const BText& argument, BText& result) override {
    result = argument;
    return 0;
  }
  std::int64_t ProcessWhoAmI(Session& session, BText& result) override {
    const ProviderSession& client = ProviderSession::Of(session);
    result.text = fmt::format("{} {} {} {} {}", client.account(), client.context(),
                              client.context_bytes().bytes, client.online_set_name(),
                              client.address().link_name);
    result.number = client.address().link_sid;
    return 0;
  }
  std::int64_t ProcessNote(Transaction& tx, Session&, const BText& argument) override {
    tx.AfterCommit([this, argument] {
      MutexLock lock(mutex_);
      notes_.push_back(argument);
    });
    return 0;
  }

 private:
  mutable Mutex mutex_;
  std::vector<BText> notes_ ZEZE_GUARDED_BY(mutex_);
};

class DemoMap final : public demo::Map::ModuleMapBase {
 public:
  // Offered by a static module of the same server in real programs; tests call it.
  static void Enter(Links& links, const LinkAddress& client) {
    const std::int32_t modules[] = {kModuleId};
    EXPECT_TRUE(links.Bind(client, modules, nullptr).ok());
  }
  std::int64_t ProcessMove(Session&, const BText& argument, BText& result) override {
    result = argument;
    return 0;
  }
};

struct DemoOptions {
  std::int32_t server_id = 1;
  std::size_t worker_threads = 4;
  ProviderOptions provider = {};
};

class DemoServer {
 public:
  DemoServer(TestRegistry& registry, DemoOptions options)
      : io_({.name = "server-io"}), agent_(registry.NewAgent()) {
    auto opened = Application::Open("demo", {.server_id = options.server_id,
                                             .storage = {.url = "memory:"},
                                             .worker_threads = options.worker_threads});
    EXPECT_TRUE(opened.ok());
    application_ = std::move(opened).value();
    application_->AddModule(game);
    application_->AddModule(map);
    EXPECT_TRUE(application_->Start().ok());
    options.provider.name_prefix = "Demo.Server.Module#";
    options.provider.link_connector.first_delay = std::chrono::milliseconds(20);
    options.provider.link_connector.delay_max = std::chrono::milliseconds(50);
    if (options.provider.direct_port == 0) {
      options.provider.direct_ip = "127.0.0.1";
      options.provider.direct_port = 7000 + options.server_id;
    }
    options.provider.binds = ModuleBinds::Parse(
                                 "<ProviderModuleBinds><module name='demo.Map' dynamic='true'/>"
                                 "</ProviderModuleBinds>",
                                 "binds.xml")
                                 .value();
    provider_ =
        std::make_unique<Provider>(*application_, io_, *agent_, std::move(options.provider));
    provider_->AddModule(game);
    provider_->AddModule(map);
  }
  ~DemoServer() {
    game.gate.Open();
    provider_->Stop();
    EXPECT_TRUE(application_->Stop().ok());
    agent_->Stop();
    provider_.reset();
  }
  DemoServer(const DemoServer&) = delete;
  DemoServer& operator=(const DemoServer&) = delete;

  void Start(bool ready = true) {
    const Result<void> started = provider_->Start(ready);
    EXPECT_TRUE(started.ok()) << started.error().message();
  }

  Provider& provider() { return *provider_; }
  Application& application() { return *application_; }
  registry::RegistryAgent& agent() { return *agent_; }
  IoThreads& io() { return io_; }

  DemoGame game;
  DemoMap map;

 private:
  IoThreads io_;
  std::unique_ptr<registry::RegistryAgent> agent_;
  std::unique_ptr<Application> application_;
  std::unique_ptr<Provider> provider_;
};

}  // namespace zeze::arch::testing
