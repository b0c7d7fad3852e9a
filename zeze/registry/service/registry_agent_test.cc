// Agents and a service manager over real connections.

#include "zeze/registry/service/registry_agent.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/registry/service/service_list.h"
#include "zeze/registry/service/wire.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/faulty_storage.h"

namespace zeze::registry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience(30);

// Something that callbacks change and a test waits for.
template <typename T>
class Watched {
 public:
  void Change(const std::function<void(T&)>& change) {
    const MutexLock lock(mutex_);
    change(value_);
    changed_.NotifyAll();
  }
  bool Await(const std::function<bool(const T&)>& condition) {
    const MutexLock lock(mutex_);
    while (!condition(value_)) {
      if (!changed_.WaitFor(mutex_, kPatience)) return false;
    }
    return true;
  }
  T value() {
    const MutexLock lock(mutex_);
    return value_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  T value_ ZEZE_GUARDED_BY(mutex_) = {};
};

using Identities = std::set<std::string>;

Identities IdentitiesOf(const ServiceList& list) {
  Identities all;
  for (const auto& [version, services] : list.versions) {
    for (const ServiceInfo& info : services) all.insert(info.identity);
  }
  return all;
}

ServiceInfo Shop(const std::string& identity) {
  return {.name = "Shop",
          .identity = identity,
          .version = 1,
          .passive_ip = "10.0.0." + identity,
          .passive_port = 7001};
}

class RegistryAgentTest : public ::testing::Test {
 protected:
  RegistryAgentTest()
      : pool_({.name = "pool", .thread_count = 4}),
        io_({.name = "registry-io"}),
        agent_io_({.name = "agent-io"}),
        storage_(OpenMemoryStorage()) {
    options_.acceptors = {{.ip = "127.0.0.1", .port = 0}};
    options_.machine.recovery = seconds(2);
    options_.machine.offline.delay = milliseconds(200);
    options_.machine.offline.retry = milliseconds(200);
  }
  ~RegistryAgentTest() override {
    if (service_ != nullptr) service_->Stop();
  }

  void StartRegistry() {
    service_ = std::make_unique<RegistryService>(io_, *storage_, pool_, options_);
    const Result<void> started = service_->Start();
    ASSERT_TRUE(started.ok()) << started.error().message();
    options_.acceptors.front().port = service_->address().port();
  }
  void StopRegistry() {
    service_->Stop();
    service_.reset();
  }

  RegistryAgentOptions AgentOptions() const {
    RegistryAgentOptions options;
    options.connector = {.host = "127.0.0.1",
                         .port = options_.acceptors.front().port,
                         .first_delay = milliseconds(20),
                         .delay_max = milliseconds(50)};
    options.hold = milliseconds(500);
    options.goodbye_timeout = kPatience;
    return options;
  }
  std::unique_ptr<RegistryAgent> StartAgent(RegistryAgentOptions options) {
    auto agent = std::make_unique<RegistryAgent>(agent_io_, pool_, std::move(options));
    EXPECT_TRUE(agent->Start().ok());
    return agent;
  }
  std::unique_ptr<RegistryAgent> StartAgent() { return StartAgent(AgentOptions()); }
  static void Settle(RegistryAgent& agent) {
    const Result<void> settled = agent.AwaitSettled(kPatience);
    EXPECT_TRUE(settled.ok()) << settled.error().message();
  }
  static void SubscribeShops(RegistryAgent& agent, Watched<Identities>& seen) {
    agent.Subscribe({.name = "Shop"}, [&seen](const ServiceListPtr& list, const ServiceChange&) {
      seen.Change([&list](Identities& value) { value = IdentitiesOf(*list); });
    });
  }
  static bool Sees(Watched<Identities>& seen, const Identities& expected) {
    return seen.Await([&expected](const Identities& value) { return value == expected; });
  }

  ThreadPool pool_;
  IoThreads io_;
  IoThreads agent_io_;
  std::unique_ptr<Storage> storage_;
  RegistryServiceOptions options_;
  std::unique_ptr<RegistryService> service_;
};

TEST_F(RegistryAgentTest, ASubscriberFollowsRegistrations) {
  Watched<Identities> seen;
  StartRegistry();
  const auto server = StartAgent();
  const auto reader = StartAgent();
  EXPECT_EQ(nullptr, reader->Services("Shop"));
  SubscribeShops(*reader, seen);
  Settle(*reader);
  ASSERT_NE(nullptr, reader->Services("Shop"));

  EXPECT_TRUE(server->Register(Shop("1")).ok());
  EXPECT_TRUE(server->Register(Shop("2")).ok());
  EXPECT_TRUE(Sees(seen, {"1", "2"}));
  server->Unregister({"Shop", "1"});
  EXPECT_TRUE(Sees(seen, {"2"}));
  EXPECT_TRUE(server->Edit({.remove = {Shop("2")}, .add = {Shop("3")}}).ok());
  EXPECT_TRUE(Sees(seen, {"3"}));
  EXPECT_EQ(Shop("3"), *reader->Services("Shop")->Find("3"));
  EXPECT_FALSE(server->Register(Shop("x")).ok()) << "not an identity";
}

// It would be found there by nobody but its own machine.
TEST_F(RegistryAgentTest, WarnsOfALoopbackAddressAtAServiceManagerElsewhere) {
  const zeze::testing::CapturedLog log;
  const auto warnings = [&log] {
    return std::ranges::count_if(log.lines(), [](const std::string& line) {
      return line.starts_with("warning: Game.Linkd is registered with the address 127.0.0.1:5") &&
             line.find("the service manager is at 203.0.113.1") != std::string::npos;
    });
  };
  const ServiceInfo info{
      .name = "Game.Linkd", .identity = "@a", .passive_ip = "127.0.0.1", .passive_port = 5};
  RegistryAgentOptions here = AgentOptions();
  RegistryAgentOptions elsewhere = AgentOptions();
  elsewhere.connector.host = "203.0.113.1";
  RegistryAgent near(agent_io_, pool_, here);
  RegistryAgent far(agent_io_, pool_, elsewhere);

  ASSERT_TRUE(near.Register(info).ok());
  EXPECT_EQ(0, warnings());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(far.Register(info).ok());
  EXPECT_EQ(1, warnings());
}

TEST_F(RegistryAgentTest, ADeadServersRegistrationsGoAway) {
  Watched<Identities> seen;
  StartRegistry();
  auto server = StartAgent();
  const auto reader = StartAgent();
  SubscribeShops(*reader, seen);
  EXPECT_TRUE(server->Register(Shop("1")).ok());
  EXPECT_TRUE(Sees(seen, {"1"}));
  server->Abandon();
  EXPECT_TRUE(Sees(seen, {}));
}

TEST_F(RegistryAgentTest, CallbacksTellTheDifference) {
  Watched<Identities> from_changes;  // What the changes alone make.
  Watched<std::uint64_t> revision;
  StartRegistry();
  const auto server = StartAgent();
  const auto reader = StartAgent();
  reader->Subscribe({.name = "Shop"}, [&](const ServiceListPtr& list, const ServiceChange& change) {
    from_changes.Change([&](Identities& value) {
      for (const ServiceInfo& info : change.removed) value.erase(info.identity);
      for (const ServiceInfo& info : change.added) value.insert(info.identity);
      EXPECT_EQ(IdentitiesOf(*list), value);
    });
    revision.Change([&](std::uint64_t& value) {
      EXPECT_LT(value, list->revision);
      value = list->revision;
    });
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(server->Register(Shop(std::to_string(i % 20))).ok());
    if (i % 3 == 0) server->Unregister({"Shop", std::to_string((i * 7) % 20)});
  }
  EXPECT_TRUE(server->Register(Shop("99")).ok());
  EXPECT_TRUE(from_changes.Await([](const Identities& value) { return value.contains("99"); }));
}

TEST_F(RegistryAgentTest, WhatIsSaidWithoutAConnectionIsSaidLater) {
  Watched<Identities> seen;
  options_.acceptors.front().port = 0;
  StartRegistry();
  StopRegistry();  // The port is known, and nobody is there.
  const auto server = StartAgent();
  const auto reader = StartAgent();
  EXPECT_TRUE(server->Register(Shop("1")).ok());
  SubscribeShops(*reader, seen);
  EXPECT_FALSE(server->AwaitSettled(milliseconds(10)).ok());

  StartRegistry();
  EXPECT_TRUE(Sees(seen, {"1"}));
  Settle(*server);
}

TEST_F(RegistryAgentTest, ManyServicesAndSubscriptionsComeBackInParts) {
  StartRegistry();
  const auto server = StartAgent();
  const auto reader = StartAgent();
  ServiceEdit edit;
  for (int i = 0; i < 3000; ++i) {
    edit.add.push_back({.name = "Shop" + std::to_string(i), .identity = "1"});
    reader->Subscribe({.name = edit.add.back().name}, nullptr);
  }
  EXPECT_TRUE(server->Edit(edit).ok());
  Settle(*server);
  Settle(*reader);
  StopRegistry();
  storage_ = OpenMemoryStorage();  // It has lost its memory, too.
  StartRegistry();
  while (service_->GetStatus().services < 3000) std::this_thread::yield();
  Settle(*reader);
  EXPECT_NE(nullptr, reader->Services("Shop2999")->Find("1"));
}

TEST_F(RegistryAgentTest, LoadsReachSubscribers) {
  Watched<std::string> load;
  StartRegistry();
  const auto server = StartAgent();
  RegistryAgentOptions options = AgentOptions();
  options.on_load = [&load](const ServerLoad& one) {
    load.Change([&one](std::string& value) { value = one.param; });
  };
  const auto reader = StartAgent(options);
  reader->Subscribe({.name = "Shop"}, nullptr);
  Settle(*reader);
  EXPECT_TRUE(server->Register(Shop("1")).ok());
  server->SetLoad({.ip = "10.0.0.1", .port = 7001, .param = "busy"});
  EXPECT_TRUE(load.Await([](const std::string& value) { return value == "busy"; }));
}

TEST_F(RegistryAgentTest, IdsOfSeveralAgentsAreUniqueAcrossARestart) {
  Watched<std::set<std::int64_t>> ids;
  Watched<std::set<Id128>> ids128;
  StartRegistry();
  RegistryAgentOptions options = AgentOptions();
  options.id_block = 7;
  for (int life = 0; life < 3; ++life) {
    const auto first = StartAgent(options);
    const auto second = StartAgent(options);
    std::vector<std::thread> threads;
    for (RegistryAgent* agent : {first.get(), second.get(), first.get(), second.get()}) {
      threads.emplace_back([agent, &ids, &ids128] {
        for (int i = 0; i < 100; ++i) {
          const Result<std::int64_t> id = agent->NextId("order");
          ASSERT_TRUE(id.ok()) << id.error().message();
          ids.Change([&id](auto& value) { EXPECT_TRUE(value.insert(id.value()).second); });
          const Result<Id128> wide = agent->NextId128("order");
          ASSERT_TRUE(wide.ok()) << wide.error().message();
          ids128.Change([&wide](auto& value) { EXPECT_TRUE(value.insert(wide.value()).second); });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    StopRegistry();
    StartRegistry();
  }
  EXPECT_EQ(1200U, ids.value().size());
  EXPECT_EQ(1, *ids.value().begin());
  EXPECT_EQ((Id128{.high = 0, .low = 1}), *ids128.value().begin());
}

TEST_F(RegistryAgentTest, IdsOfAnotherServiceManagerCanBeSkipped) {
  options_.raise_ids = {{"order", 1000}};
  StartRegistry();
  const auto agent = StartAgent();
  EXPECT_EQ(1001, agent->NextId("order").value());
  StopRegistry();
  StartRegistry();
  EXPECT_LT(1001U, agent->AllocateIds("order", 1).value().start.low);
}

TEST_F(RegistryAgentTest, WithoutTheDiskThereAreNoIdsButServices) {
  const auto behind = OpenMemoryStorage();
  auto faulty = std::make_unique<FaultyStorage>(*behind);
  FaultyStorage& faults = *faulty;
  storage_ = std::move(faulty);
  StartRegistry();
  RegistryAgentOptions options = AgentOptions();
  options.call_timeout = seconds(1);
  const auto agent = StartAgent(options);
  Settle(*agent);
  faults.FailFlushes(1'000'000, ErrorCode::kUnavailable);
  EXPECT_FALSE(agent->NextId("order").ok());
  EXPECT_TRUE(agent->Register(Shop("1")).ok());
  Settle(*agent);
  EXPECT_EQ(1U, service_->GetStatus().services);
  agent->RegisterOffline({.server_id = 1, .notify_id = "Timer"}, nullptr);
  EXPECT_FALSE(agent->AwaitSettled(milliseconds(100)).ok()) << "it is not safe yet";
  EXPECT_EQ(1U, service_->GetStatus().services) << "the connection stays";

  faults.FailFlushes(0, ErrorCode::kUnavailable);
  Settle(*agent);
  const Result<std::int64_t> id = agent->NextId("order");
  EXPECT_TRUE(id.ok()) << id.error().message();
  StopRegistry();
  storage_.reset();
}

// --- offline notices ---

struct Taken {
  int by = 0;
  OfflineNotice notice;
};

class OfflineAgentTest : public RegistryAgentTest {
 protected:
  std::unique_ptr<RegistryAgent> StartTaker(std::int32_t server_id, TakeOver answer) {
    auto agent = StartAgent();
    agent->RegisterOffline(
        {.server_id = server_id, .notify_id = "Timer", .serial = server_id * 10, .context = "c"},
        [this, server_id, answer](const OfflineNotice& notice) {
          asked_.Change([&](std::vector<Taken>& value) { value.push_back({server_id, notice}); });
          return answer;
        });
    Settle(*agent);
    return agent;
  }
  bool AwaitAsked(std::size_t count) {
    return asked_.Await([count](const std::vector<Taken>& value) { return value.size() >= count; });
  }

  Watched<std::vector<Taken>> asked_;
};

TEST_F(OfflineAgentTest, ExactlyOneLiveServerTakesOver) {
  StartRegistry();
  const auto dead = StartTaker(1, TakeOver::kTaken);
  const auto second = StartTaker(2, TakeOver::kTaken);
  const auto third = StartTaker(3, TakeOver::kTaken);
  const auto other = StartAgent();
  other->RegisterOffline({.server_id = 4, .notify_id = "Rank"}, [](const OfflineNotice&) {
    ADD_FAILURE() << "another notify id";
    return TakeOver::kTaken;
  });
  Settle(*other);
  dead->Abandon();

  ASSERT_TRUE(AwaitAsked(1));
  EXPECT_EQ(1, asked_.value()[0].notice.server_id);
  EXPECT_EQ(10, asked_.value()[0].notice.serial);
  EXPECT_EQ("c", asked_.value()[0].notice.context);
  // Time for a second one that must not come: another server is lost, and told after it. Not the
  // one that took over: lost before it could say so, it would be followed by the next.
  const int taker = asked_.value()[0].by;
  (taker == 2 ? third : second)->Abandon();
  ASSERT_TRUE(AwaitAsked(2));
  EXPECT_EQ(taker == 2 ? 3 : 2, asked_.value()[1].notice.server_id);
  EXPECT_EQ(2U, asked_.value().size());
}

TEST_F(OfflineAgentTest, AnOrderlyStopIsNoLoss) {
  StartRegistry();
  const auto orderly = StartTaker(1, TakeOver::kTaken);
  const auto dead = StartTaker(2, TakeOver::kTaken);
  const auto third = StartTaker(3, TakeOver::kTaken);
  orderly->Stop();
  dead->Abandon();
  ASSERT_TRUE(AwaitAsked(1));
  EXPECT_EQ(2, asked_.value()[0].notice.server_id);
}

TEST_F(OfflineAgentTest, AnOrderlyStopWhileTheServiceManagerRestartsIsNoLoss) {
  StartRegistry();
  const auto orderly = StartTaker(1, TakeOver::kTaken);
  const auto dead = StartTaker(2, TakeOver::kTaken);
  const auto third = StartTaker(3, TakeOver::kTaken);
  StopRegistry();
  std::thread stopping([&orderly] { orderly->Stop(); });
  StartRegistry();
  stopping.join();
  dead->Abandon();
  ASSERT_TRUE(AwaitAsked(1));
  EXPECT_EQ(2, asked_.value()[0].notice.server_id);
}

// The peer's agent says yes whatever its handler says.
TEST_F(OfflineAgentTest, RegistryDefectARefusalIsReportedAndTheNextOneIsAsked) {
  StartRegistry();
  const auto dead = StartTaker(1, TakeOver::kTaken);
  const auto refusing = StartTaker(2, TakeOver::kRefused);
  dead->Abandon();
  ASSERT_TRUE(AwaitAsked(2)) << "again and again";
  const auto third = StartTaker(3, TakeOver::kTaken);
  EXPECT_TRUE(asked_.Await(
      [](const std::vector<Taken>& value) { return !value.empty() && value.back().by == 3; }));
}

TEST_F(OfflineAgentTest, WhoHasStoppedItsCallbacksDoesNotTakeOver) {
  Watched<Identities> seen;
  StartRegistry();
  std::vector<std::unique_ptr<RegistryAgent>> dead;
  for (const int id : {4, 5, 6, 7, 8, 9}) dead.push_back(StartTaker(id, TakeOver::kTaken));
  const auto stopping = StartTaker(2, TakeOver::kTaken);
  SubscribeShops(*stopping, seen);
  EXPECT_TRUE(stopping->Register(Shop("2")).ok());
  EXPECT_TRUE(Sees(seen, {"2"}));
  stopping->StopCallbacks();
  const auto third = StartTaker(3, TakeOver::kTaken);
  EXPECT_TRUE(third->Register(Shop("3")).ok());

  for (const auto& agent : dead) agent->Abandon();

  ASSERT_TRUE(AwaitAsked(dead.size()));
  for (const Taken& taken : asked_.value()) EXPECT_NE(2, taken.by);
  while (stopping->Services("Shop")->size() < 2) std::this_thread::yield();
  EXPECT_EQ(Identities{"2"}, seen.value()) << "it is listed, and its list goes on, without a call";
  EXPECT_EQ(2U, service_->GetStatus().services);
}

TEST_F(OfflineAgentTest, WhoThrowsDoesNotTakeOver) {
  StartRegistry();
  const auto dead = StartTaker(1, TakeOver::kTaken);
  auto throwing = StartAgent();
  throwing->RegisterOffline(
      {.server_id = 2, .notify_id = "Timer"},
      [](const OfflineNotice&) -> TakeOver { throw std::runtime_error("the database is away"); });
  Settle(*throwing);
  const auto third = StartTaker(3, TakeOver::kTaken);
  dead->Abandon();
  EXPECT_TRUE(AwaitAsked(1));
}

TEST_F(OfflineAgentTest, WhoDiedWhileTheServiceManagerWasAwayIsTakenOver) {
  options_.machine.recovery = milliseconds(500);
  StartRegistry();
  const auto dead = StartTaker(1, TakeOver::kTaken);
  const auto second = StartTaker(2, TakeOver::kTaken);
  StopRegistry();
  dead->Abandon();
  StartRegistry();
  ASSERT_TRUE(AwaitAsked(1));
  EXPECT_EQ(1, asked_.value()[0].notice.server_id);
  EXPECT_EQ(2, asked_.value()[0].by);
}

TEST_F(OfflineAgentTest, WhoIsAnnouncedAsMissingIsTakenOver) {
  StartRegistry();
  const auto first = StartTaker(1, TakeOver::kTaken);
  first->Announce({.notify_id = "Timer", .server_id = 1, .watched = {{9, 4}}});
  ASSERT_TRUE(AwaitAsked(1));
  EXPECT_EQ(9, asked_.value()[0].notice.server_id);
  EXPECT_EQ(4, asked_.value()[0].notice.serial);
}

// --- the peer's defects, over real connections ---

using RegistryDefectOfConnections = RegistryAgentTest;

TEST_F(RegistryDefectOfConnections, ARestartIsNotSeenBySubscribers) {
  Watched<std::vector<Identities>> history;
  StartRegistry();
  const auto server = StartAgent();
  const auto reader = StartAgent();
  for (const char* identity : {"1", "2", "3"}) EXPECT_TRUE(server->Register(Shop(identity)).ok());
  Settle(*server);
  reader->Subscribe({.name = "Shop"}, [&history](const ServiceListPtr& list, const ServiceChange&) {
    history.Change([&list](auto& value) { value.push_back(IdentitiesOf(*list)); });
  });
  Settle(*reader);
  EXPECT_TRUE(history.Await([](const auto& value) { return !value.empty(); }));
  StopRegistry();
  StartRegistry();
  Settle(*server);
  Settle(*reader);
  EXPECT_TRUE(server->Register(Shop("4")).ok());
  EXPECT_TRUE(history.Await(
      [](const auto& value) { return !value.empty() && value.back().contains("4"); }));
  EXPECT_EQ((std::vector<Identities>{{"1", "2", "3"}, {"1", "2", "3", "4"}}), history.value());
}

TEST_F(RegistryDefectOfConnections, ADeathDuringTheRestartIsSeenBySubscribers) {
  Watched<Identities> seen;
  StartRegistry();
  const auto server = StartAgent();
  const auto dead = StartAgent();
  const auto reader = StartAgent();
  EXPECT_TRUE(server->Register(Shop("1")).ok());
  EXPECT_TRUE(dead->Register(Shop("2")).ok());
  SubscribeShops(*reader, seen);
  EXPECT_TRUE(Sees(seen, {"1", "2"}));
  StopRegistry();
  dead->Abandon();
  StartRegistry();
  EXPECT_TRUE(Sees(seen, {"1"}));
}

// A service manager that has lost everything, as the peer's does at each restart.
TEST_F(RegistryDefectOfConnections, AForgetfulServiceManagerMakesNobodyDisappear) {
  Watched<std::vector<Identities>> history;
  StartRegistry();
  const auto server = StartAgent();
  RegistryAgentOptions options = AgentOptions();
  options.hold = seconds(20);
  const auto reader = StartAgent(options);
  EXPECT_TRUE(server->Register(Shop("1")).ok());
  Settle(*server);
  reader->Subscribe({.name = "Shop"}, [&history](const ServiceListPtr& list, const ServiceChange&) {
    history.Change([&list](auto& value) { value.push_back(IdentitiesOf(*list)); });
  });
  Settle(*reader);
  StopRegistry();
  storage_ = OpenMemoryStorage();
  StartRegistry();
  Settle(*server);
  Settle(*reader);
  EXPECT_TRUE(server->Register(Shop("2")).ok());
  EXPECT_TRUE(history.Await(
      [](const auto& value) { return !value.empty() && value.back().contains("2"); }));
  for (const Identities& one : history.value()) EXPECT_TRUE(one.contains("1"));
}

// --- slow and silent peers ---

// Connects as an agent does, and answers nothing.
class SilentAgent {
 public:
  SilentAgent(IoThreads& io, std::uint16_t port)
      : service_(io, DefaultRegistryAgentServiceOptions()) {
    service_.HandleRaw(wire::KeepAlive::kDescriptor,
                       [](Connection&, const Frame&) -> Result<void> { return {}; });
    service_.HandleRaw(wire::EditService::kDescriptor,
                       [](Connection&, const Frame&) -> Result<void> { return {}; });
    service_.OnClose([this](const ConnectionPtr&, const Error&) {
      closed_.Change([](int& value) { ++value; });
    });
    connector_ = service_.Connect({.host = "127.0.0.1", .port = port, .reconnect = false});
    connection_ = connector_->WaitReady(kPatience).value();
  }
  Connection& connection() { return *connection_; }
  bool AwaitClosed() {
    return closed_.Await([](int value) { return value == 1; });
  }

 private:
  Watched<int> closed_;
  std::shared_ptr<Connector> connector_;
  ConnectionPtr connection_;
  Service service_;
};

TEST_F(RegistryAgentTest, WhoGivesNoSignOfLifeIsClosed) {
  options_.keep_alive_period = milliseconds(50);
  options_.keep_alive_timeout = milliseconds(100);
  StartRegistry();
  const auto alive = StartAgent();
  EXPECT_TRUE(alive->Register(Shop("1")).ok());
  Settle(*alive);
  SilentAgent silent(agent_io_, options_.acceptors.front().port);
  ASSERT_TRUE(
      silent.connection().CallAndWait<wire::EditService>({.edit = {.add = {Shop("2")}}}).ok());
  EXPECT_TRUE(silent.AwaitClosed());
  EXPECT_TRUE(alive->connected());
}

TEST_F(RegistryAgentTest, WhoConfirmsNoEditIsClosed) {
  options_.keep_alive_period = {};
  options_.edit_timeout = milliseconds(100);
  StartRegistry();
  SilentAgent silent(agent_io_, options_.acceptors.front().port);
  ASSERT_TRUE(
      silent.connection().CallAndWait<wire::Subscribe>({.subscriptions = {{.name = "Shop"}}}).ok());
  const auto server = StartAgent();
  EXPECT_TRUE(server->Register(Shop("1")).ok());
  EXPECT_TRUE(silent.AwaitClosed());
}

TEST_F(RegistryAgentTest, ThePortInUseAndABadStoreAreErrors) {
  StartRegistry();
  const auto other_storage = OpenMemoryStorage();
  RegistryService second(io_, *other_storage, pool_, options_);
  const Result<void> started = second.Start();
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(ErrorCode::kInUse, started.error().code());

  const auto foreign = OpenMemoryStorage();
  ASSERT_TRUE(foreign->OpenTable("tRole").ok());
  RegistryService third(io_, *foreign, pool_, options_);
  EXPECT_EQ(ErrorCode::kInvalidArgument, third.Start().error().code());
}

}  // namespace
}  // namespace zeze::registry
