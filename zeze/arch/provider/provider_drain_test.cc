// How a server leaves: what it has accepted is answered, and nothing more comes.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Provider.h"
#include "demo/Game.h"
#include "demo/Map.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/arch/provider/testing/fake_linkd.h"
#include "zeze/arch/provider/testing/provider_fixture.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/net/frame.h"

namespace zeze::arch {
namespace {

namespace wire = Zeze::Builtin::Provider;

using demo::Game::Add;
using demo::Game::Echo;
using demo::Game::Wait;
using demo::Map::Move;
using ::testing::Contains;
using testing::DemoMap;
using testing::DemoOptions;
using testing::DemoServer;
using testing::FakeLinkd;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

using ProviderDrainTest = testing::ProviderFixture;

TEST_F(ProviderDrainTest, AnswersWhatItHasAcceptedBeforeItGoes) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t running = linkd_->Request<Wait>(ann, {.text = "running"});
  const std::int64_t queued = linkd_->Request<Echo>(ann, {.text = "queued"});
  server.game.gate.AwaitWaiting(1);

  std::thread stopping([&] { server.provider().Stop(); });
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 0));
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(ann).bound.empty(); }));
  EXPECT_THAT(linkd_->Answers<Echo>(ann, queued), IsEmpty());
  server.game.gate.Open();
  stopping.join();

  // It has said goodbye, so everything has arrived.
  EXPECT_THAT(linkd_->Answers<Wait>(ann, running), SizeIs(1));
  EXPECT_EQ(linkd_->Answers<Echo>(ann, queued).front().result.text, "queued");
  EXPECT_TRUE(linkd_->Await([&] { return linkd_->servers().empty(); }));
  EXPECT_THAT(linkd_->story(), IsSupersetOf({"DisableChoice", "UnBind"}));
  EXPECT_FALSE(linkd_->client(ann).closed);
}

TEST_F(ProviderDrainTest, ItsClientsGoOnWithAnotherServer) {
  StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  linkd_->Call<Echo>(ann, {});
  StartServer({.server_id = 2});
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 2));

  servers_[0]->provider().Stop();

  EXPECT_EQ(linkd_->Call<Add>(ann, {.count = 3}).result.count, 3);
  EXPECT_THAT(linkd_->client(ann).kicks, IsEmpty());
}

TEST_F(ProviderDrainTest, LeavesTheRegistry) {
  DemoServer& server = StartBoth();
  agent_->Subscribe({.name = "Demo.Server.Module#100"}, [](const auto&, const auto&) {});
  ASSERT_TRUE(agent_->AwaitSettled(std::chrono::seconds(20)).ok());

  server.provider().Stop();
  ASSERT_TRUE(agent_->AwaitSettled(std::chrono::seconds(20)).ok());

  // The service manager has confirmed it to the server before it tells others, so ask anew.
  agent_->Unsubscribe("Demo.Server.Module#100");
  agent_->Subscribe({.name = "Demo.Server.Module#100"}, [](const auto&, const auto&) {});
  ASSERT_TRUE(agent_->AwaitSettled(std::chrono::seconds(20)).ok());
  EXPECT_EQ(agent_->Services("Demo.Server.Module#100")->Find("1"), nullptr);
}

TEST_F(ProviderDrainTest, ClientsOfDynamicModulesAreUnboundAndTold) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  DemoMap::Enter(server.provider().links(), {linkd_->link_name(), ann});
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(ann).bound.contains(kMap); }));
  EXPECT_TRUE(linkd_->Call<Move>(ann, {}).ok());

  server.provider().Stop();

  const FakeLinkd::Client client = linkd_->client(ann);
  EXPECT_THAT(client.bound, IsEmpty());
  ASSERT_THAT(client.kicks, SizeIs(1));
  EXPECT_EQ(client.kicks[0].code, wire::BKick::ErrorReconnectServer);
  EXPECT_EQ(client.kicks[0].control, wire::BKick::eControlReportClient);
  EXPECT_FALSE(client.closed);
}

// They are on another server's map, and need not come again.
TEST_F(ProviderDrainTest, DoesNotTellClientsThatAnotherServerHasTaken) {
  StartLinkd();
  Mutex mutex;
  CondVar changed;
  std::vector<wire::BUnbound> heard;
  servers_.push_back(std::make_unique<DemoServer>(registry_, DemoOptions{.server_id = 1}));
  DemoServer& first = *servers_.back();
  first.provider().OnUnbound([&](const LinkAddress& address, const wire::BUnbound& taken) {
    EXPECT_EQ(address, (LinkAddress{linkd_->link_name(), taken.linkSid}));
    MutexLock lock(mutex);
    heard.push_back(taken);
    changed.NotifyAll();
  });
  first.Start();
  DemoServer& second = StartServer({.server_id = 2});
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 2));
  const std::int64_t ann = linkd_->AddClient("ann");
  DemoMap::Enter(first.provider().links(), {linkd_->link_name(), ann});
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(ann).bound.contains(kMap); }));
  const std::int64_t owner = linkd_->client(ann).bound.at(kMap);

  DemoMap::Enter(second.provider().links(), {linkd_->link_name(), ann});
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(ann).bound.at(kMap) != owner; }));
  {
    MutexLock lock(mutex);
    while (heard.empty()) changed.Wait(mutex);
    ASSERT_THAT(heard, SizeIs(1));
    EXPECT_EQ(heard[0].account, "ann");
    EXPECT_TRUE(heard[0].modules.Contains(kMap));
  }
  first.provider().Stop();

  EXPECT_THAT(linkd_->client(ann).kicks, IsEmpty());
  EXPECT_TRUE(linkd_->Call<Move>(ann, {}).ok());
}

TEST_F(ProviderDrainTest, BindsNobodyAnyMore) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  server.provider().Stop();

  const std::int32_t modules[] = {kMap};
  const Result<void> bound =
      server.provider().links().Bind({linkd_->link_name(), ann}, modules, nullptr);

  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), ErrorCode::kShuttingDown);
}

// Gateways of Zeze 1.6 leave clients bound: who goes on sending is told to come again.
TEST_F(ProviderDrainTest, KicksClientsThatAGatewayLeavesBound) {
  StartLinkd({.keeps_clients_of_unbound = true});
  DemoServer& server = StartServer();
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 1));
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t bob = linkd_->AddClient("bob");
  const std::int64_t running = linkd_->Request<Wait>(ann, {.text = "x"});
  linkd_->Call<Echo>(bob, {});
  server.game.gate.AwaitWaiting(1);

  std::thread stopping([&] { server.provider().Stop(); });
  ASSERT_TRUE(linkd_->Await([&] {
    linkd_->Request<Echo>(bob, {});
    return linkd_->client(bob).closed;
  }));
  server.game.gate.Open();
  stopping.join();

  EXPECT_EQ(linkd_->client(bob).kicks.front().code, wire::BKick::ErrorReconnectServer);
  EXPECT_THAT(linkd_->Answers<Wait>(ann, running), SizeIs(1));
}

TEST_F(ProviderDrainTest, EndsInTimeAlthoughAHandlerDoesNot) {
  DemoServer& server = StartBoth({.provider = {.drain_timeout = std::chrono::milliseconds(100)}});
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t running = linkd_->Request<Wait>(ann, {.text = "running"});
  const std::int64_t queued = linkd_->Request<Echo>(ann, {.text = "queued"});
  server.game.gate.AwaitWaiting(1);

  std::thread stopping([&] { server.provider().Stop(); });
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->servers().empty(); }));
  server.game.gate.Open();
  stopping.join();

  // Its connection was gone when the handler ended.
  EXPECT_THAT(linkd_->Answers<Wait>(ann, running), IsEmpty());
  EXPECT_THAT(linkd_->Answers<Echo>(ann, queued), IsEmpty());
}

TEST_F(ProviderDrainTest, WorksWithoutAnyGateway) {
  DemoServer& server = StartServer();
  server.provider().Stop();
  server.provider().Stop();
}

// Every request has an id of its own; each must be answered once, whatever server it met.
TEST_F(ProviderDrainTest, RollingRestartUnderLoadLosesAndDoublesNothing) {
  constexpr int kClients = 16;
  constexpr int kRestarts = 9;
  constexpr std::int64_t kOutstandingMax = 200;
  StartLinkd();
  for (int id = 1; id <= 3; ++id) StartServer({.server_id = id});
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 3));
  std::vector<std::int64_t> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(linkd_->AddClient("c" + std::to_string(i)));

  std::atomic<bool> done = false;
  std::int64_t asked = 0;
  std::int64_t unroutable = 0;
  std::thread load([&] {
    while (!done) {
      const std::int64_t sid = clients[static_cast<std::size_t>(asked) % clients.size()];
      if (linkd_->Request<Echo>(sid, {.number = asked}) == 0) {
        ++unroutable;
      } else {
        ++asked;
      }
      ASSERT_TRUE(linkd_->AwaitFrames(asked - kOutstandingMax));
    }
  });
  for (int restart = 0; restart < kRestarts; ++restart) {
    const int id = restart % 3 + 1;
    servers_.front().reset();
    servers_.erase(servers_.begin());
    StartServer({.server_id = id});
    ASSERT_TRUE(linkd_->AwaitServers(kGame, 3));
  }
  done = true;
  load.join();
  ASSERT_TRUE(linkd_->AwaitFrames(asked));

  std::map<std::int64_t, int> answers;
  for (const std::int64_t sid : clients) {
    for (const std::string& frame : linkd_->client(sid).frames) {
      std::string_view stream = frame;
      const Frame answer = ParseFrame(*TakeFrame(stream, frame.size()).value()).value();
      EXPECT_EQ(answer.result_code, 0);
      ++answers[answer.session_id];
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(answers.size()), asked + unroutable);
  for (const auto& [id, count] : answers) ASSERT_EQ(count, 1) << "request " << id;
  EXPECT_EQ(unroutable, 0);
  EXPECT_GT(asked, 1000);
  std::printf("%lld requests over %d restarts\n", static_cast<long long>(asked), kRestarts);
}

}  // namespace
}  // namespace zeze::arch
