// The whole way of a message: client, gateway, server and back.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Provider.h"
#include "demo/Game.h"
#include "demo/Map.h"
#include "tests/gateway/gateway_fixture.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/client/client.h"
#include "zeze/net/rpc.h"

namespace zeze::arch {
namespace {

using demo::Game::Add;
using demo::Game::Echo;
using demo::Game::Note;
using demo::Game::Noted;
using demo::Game::Wait;
using demo::Game::WhoAmI;
using demo::Map::Move;
using testing::DemoMap;
using ::testing::ElementsAre;
using ::testing::SizeIs;
using Zeze::Builtin::LinkdBase::BReportError;

class GatewayTest : public testing::GatewayFixture {
 protected:
  // Until there is a server for it.
  template <typename P>
  RpcReply<P> MustCall(Client& client, const typename P::Argument& argument) {
    RpcReply<P> reply;
    EXPECT_TRUE(Eventually([&] {
      const Result<RpcReply<P>> answered = client.CallAndWait<P>(argument);
      if (!answered.ok()) return false;
      reply = answered.value();
      return reply.result_code != result_code::kProviderNotExist;
    }));
    return reply;
  }
};

TEST_F(GatewayTest, ARequestIsAnsweredAfterItsCommit) {
  StartLinkd();
  servers_.push_back(NewServer(1));
  Client& ann = StartClient("ann");
  Mutex mutex;
  std::vector<std::int64_t> noted;
  ann.On<Noted>([&](const testing::BText& text) {
    MutexLock lock(mutex);
    noted.push_back(text.number);
  });
  MustBeReady(ann);

  EXPECT_EQ(MustCall<Add>(ann, {.count = 5}).result.count, 5);
  EXPECT_EQ(MustCall<Add>(ann, {.count = 5}).result.count, 10);

  MutexLock lock(mutex);
  EXPECT_THAT(noted, ElementsAre(5, 10));
}

TEST_F(GatewayTest, ServersKnowTheirGatewayByTheSameName) {
  StartLinkd();
  StartLinkd();
  servers_.push_back(NewServer(1));
  servers_.push_back(NewServer(2));

  EXPECT_EQ(servers_[0]->provider().links().names(), servers_[1]->provider().links().names());
  Client& ann = StartClient("ann", 1);
  MustBeReady(ann);
  const std::string expected = "127.0.0.1_" + std::to_string(linkds_[1]->provider_address().port());
  EXPECT_EQ(MustCall<WhoAmI>(ann, {}).result.text, "ann    " + expected);
}

// Seed 001: one-by-one, also through a gateway.
TEST_F(GatewayTest, MessagesOfAClientRunInTheirOrder) {
  StartLinkd();
  servers_.push_back(NewServer(1));
  Client& ann = StartClient("ann");
  MustBeReady(ann);
  MustCall<Echo>(ann, {});
  constexpr int kCount = 2000;

  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(ann.Send<Note>({.number = i}).ok());
    if (i % 40 == 39) MustCall<Add>(ann, {.count = 1});  // Within the bound of a client.
  }

  const std::vector<testing::BText> notes = servers_[0]->game.notes();
  ASSERT_THAT(notes, SizeIs(kCount));
  int next = 0;
  for (const testing::BText& note : notes) ASSERT_EQ(note.number, next++);
}

// Seed 001: a map binds the client that enters it, and unbinds it when it leaves.
TEST_F(GatewayTest, ADynamicModuleIsReachedByTheClientsThatItBinds) {
  StartLinkd();
  servers_.push_back(NewServer(1));
  Client& ann = StartClient("ann");
  Mutex mutex;
  std::vector<std::string> reports;
  ann.OnReportError([&](const BReportError& report) {
    MutexLock lock(mutex);
    reports.push_back(std::to_string(report.from) + " " + std::to_string(report.code));
  });
  MustBeReady(ann);
  const RpcReply<WhoAmI> who = MustCall<WhoAmI>(ann, {});
  const LinkAddress address{servers_[0]->provider().links().names().front(), who.result.number};

  DemoMap::Enter(servers_[0]->provider().links(), address);
  ASSERT_TRUE(Eventually([&] {
    const auto moved =
        ann.CallAndWait<Move>({.text = "north"}, {.timeout = std::chrono::seconds(1)});
    return moved.ok() && moved.value().result.text == "north";
  }));

  // The server leaves: the client is told, and stays connected.
  servers_[0]->provider().Stop();
  ASSERT_TRUE(Eventually([&] {
    MutexLock lock(mutex);
    for (const std::string& report : reports) {
      if (report == "1 7") return true;  // Of the server: connect to another one.
    }
    return false;
  }));
  EXPECT_TRUE(ann.ready());
}

// A gateway that lets servers speak only to their own clients lets one that leaves answer them.
TEST_F(GatewayTest, AServerThatLeavesAnswersAlsoWithStrictRights) {
  StartLinkd(/*strict_rights=*/true);
  servers_.push_back(NewServer(1));
  Client& ann = StartClient("ann");
  MustBeReady(ann);
  MustCall<Echo>(ann, {});
  Client& bob = StartClient("bob");
  MustBeReady(bob);
  std::optional<std::int64_t> code;
  Mutex mutex;
  ASSERT_TRUE(ann.Call<Wait>({}, {},
                             [&](const RpcReply<Wait>& reply) {
                               MutexLock lock(mutex);
                               code = reply.result_code;
                             })
                  .ok());
  servers_[0]->game.gate.AwaitWaiting(1);

  std::thread stopping([&] { servers_[0]->provider().Stop(); });
  // No client is bound to it any more.
  ASSERT_TRUE(Eventually([&] {
    return bob.CallAndWait<Echo>({}).value().result_code == result_code::kProviderNotExist;
  }));
  servers_[0]->game.gate.Open();
  stopping.join();

  ASSERT_TRUE(Eventually([&] {
    MutexLock lock(mutex);
    return code.has_value();
  }));
  EXPECT_EQ(*code, 0);
}

TEST_F(GatewayTest, AServerHearsOnceThatAClientHasGone) {
  StartLinkd();
  auto server = std::make_unique<testing::DemoServer>(registry_, testing::DemoOptions{});
  Mutex mutex;
  std::vector<std::string> gone;
  server->provider().OnLinkBroken(
      [&](const LinkAddress&, const Zeze::Builtin::Provider::BLinkBroken& broken) {
        MutexLock lock(mutex);
        gone.push_back(broken.account);
      });
  server->Start();
  servers_.push_back(std::move(server));
  Client& ann = StartClient("ann");
  MustBeReady(ann);
  MustCall<Echo>(ann, {});

  ann.Stop();

  ASSERT_TRUE(Eventually([&] {
    MutexLock lock(mutex);
    return !gone.empty();
  }));
  MutexLock lock(mutex);
  EXPECT_THAT(gone, ElementsAre("ann"));
}

}  // namespace
}  // namespace zeze::arch
