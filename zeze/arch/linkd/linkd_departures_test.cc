// Servers and clients leave a gateway: the others are told, and requests under way are answered.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/net/frame.h"

namespace zeze::arch {
namespace {

using testing::Eventually;
using testing::FrameOf;
using testing::Gateway;
using testing::Received;
using testing::TestClient;
using testing::TestOptions;
using testing::TestProvider;
namespace provider = testing::provider;

constexpr std::int32_t kShop = 100;
constexpr std::int32_t kRank = 101;
constexpr std::int32_t kMap = 200;
constexpr std::int32_t kOnline = 11013;

TEST(Linkd, NoServerIsSaidAndTheConnectionStays) {
  Gateway gateway;
  TestClient client(gateway, "alice");

  client.Request(kShop, 5, "hello", 3);

  const std::optional<Received> answer = client.Receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(-9, answer->code);
  EXPECT_EQ(3, answer->session_id);
  EXPECT_EQ("0 2 no server for module 100 (2)", client.Report(true));
  TestProvider provider(gateway, "1");
  provider.Offer({kShop});
  client.Request(kShop, 5, "hello");
  EXPECT_EQ("hello", client.Answer());
}

TEST(Linkd, WhenAServerLeavesItsClientsAreToldAndGoElsewhere) {
  Gateway gateway;
  auto first = std::make_unique<TestProvider>(gateway, "1");
  first->Offer({kShop, kOnline});
  TestClient client(gateway, "alice");
  TestClient other(gateway, "bob");
  client.Request(kShop, 5, "x");
  EXPECT_EQ("x", client.Answer());

  TestProvider second(gateway, "2");
  second.Offer({kShop});
  first = nullptr;

  EXPECT_EQ("0 4", client.Report()) << "she was logged in there";
  client.Request(kShop, 5, "y");
  EXPECT_EQ("y", client.Answer());
  EXPECT_TRUE(other.Settle().empty()) << "not bound there";
}

TEST(Linkd, RequestsUnderWayAtAServerThatDiesAreAnswered) {
  Gateway gateway;
  auto dying = std::make_unique<TestProvider>(gateway, "1", 0, /*echo=*/false);
  dying->Offer({kShop});
  TestProvider map(gateway, "2", 0, /*echo=*/false);
  map.OfferDynamic({kMap});
  TestClient client(gateway, "alice");
  ASSERT_EQ(0, map.BindClient(client.sid(), kMap));
  client.Request(kShop, 5, "one", 11);
  client.Request(kShop, 6, "two", 12);
  client.Note(kShop, 7, "nobody waits for this");
  client.Request(kShop, 5, "three", 13);
  client.Request(kMap, 5, "at the other server", 14);
  ASSERT_TRUE(dying->AwaitDispatched(4));
  ASSERT_TRUE(map.AwaitDispatched(1));
  EXPECT_TRUE(dying
                  ->Send({client.sid()}, ProtocolTypeId(kShop, 6),
                         FrameOf(kShop, 6, "in time", FrameFamily::kResponse, 12))
                  .empty());
  EXPECT_EQ("in time", client.Answer());

  dying = nullptr;

  for (const std::int64_t call : {11, 13}) {
    const std::optional<Received> answer = client.Receive();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(FrameFamily::kResponse, answer->family);
    EXPECT_EQ(ProtocolTypeId(kShop, 5), answer->type);
    EXPECT_EQ(call, answer->session_id);
    EXPECT_EQ(-9, answer->code);
  }
  EXPECT_TRUE(client.Settle().empty()) << "the other server still has its request";
  EXPECT_EQ(2U, gateway.refused(Refusal::kLostWithServer));
  EXPECT_TRUE(map.Send({client.sid()}, ProtocolTypeId(kMap, 5),
                       FrameOf(kMap, 5, "late", FrameFamily::kResponse, 14))
                  .empty());
  EXPECT_EQ("late", client.Answer());
}

// The client has left the map; what it asked there is still under way.
TEST(Linkd, RequestsUnderWayAtAFormerServerThatDiesAreAnswered) {
  Gateway gateway;
  auto former = std::make_unique<TestProvider>(gateway, "1", 0, /*echo=*/false);
  former->OfferDynamic({kMap});
  TestClient client(gateway, "alice");
  ASSERT_EQ(0, former->BindClient(client.sid(), kMap));
  client.Request(kMap, 5, "x", 21);
  ASSERT_TRUE(former->AwaitDispatched(1));
  ASSERT_EQ(0, former->UnbindClient(client.sid(), kMap));

  former = nullptr;

  EXPECT_EQ("code -9", client.Answer());
}

// Whatever dies and whenever: every request gets one answer.
TEST(Linkd, EveryRequestIsAnsweredOnceWhileServersComeAndGo) {
  Gateway gateway(TestOptions(), {.thread_count = 2});
  TestProvider steady(gateway, "1");
  steady.Offer({kRank});
  std::atomic<bool> stop = false;
  std::atomic<bool> stopped = false;
  std::thread servers([&] {
    for (int round = 0; !stop; ++round) {
      TestProvider mortal(gateway, "2", 0, /*echo=*/round % 2 == 0);
      mortal.Offer({kShop});
      mortal.AwaitDispatched(3);
    }
    stopped = true;
  });
  int served = 0;
  int lost = 0;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<TestClient>(gateway, "c" + std::to_string(i)));
  }
  std::int64_t call = 0;
  for (int round = 0; round < 200; ++round) {
    for (const auto& client : clients) {
      constexpr int kTogether = 5;
      std::set<std::int64_t> waiting;
      for (int i = 0; i < kTogether; ++i) {
        waiting.insert(++call);
        ASSERT_TRUE(client->Request(kShop, 5, "x", call));
      }
      while (!waiting.empty()) {
        const std::optional<Received> got = client->Receive();
        ASSERT_TRUE(got.has_value());
        if (got->family != FrameFamily::kResponse) continue;
        ASSERT_EQ(1U, waiting.erase(got->session_id)) << "answered twice";
        ASSERT_TRUE(got->code == 0 || got->code == -9) << got->code;
        ++(got->code == 0 ? served : lost);
      }
    }
  }
  stop = true;
  while (!stopped) {  // The last server waits for some messages, too.
    clients[0]->Note(kShop, 5, "x");
    clients[0]->Settle();
  }
  servers.join();
  EXPECT_GT(served, 0);
  EXPECT_GT(lost, 0);
}

TEST(Linkd, WhenAClientLeavesEachOfItsServersIsToldOnce) {
  Gateway gateway;
  TestProvider game(gateway, "1");
  TestProvider map(gateway, "2");
  TestProvider other(gateway, "3");
  game.Offer({kShop, kRank});
  map.OfferDynamic({kMap});
  other.Offer({300});
  {
    TestClient client(gateway, "alice");
    client.Request(kShop, 5, "x");
    EXPECT_EQ("x", client.Answer());
    map.BindClient(client.sid(), kMap);
    map.Tell<provider::SetUserState>(
        {.linkSid = client.sid(), .userState = {.context = "77", .onlineSetName = "set"}});
    map.Settle();
    TestClient silent(gateway);  // Was never authenticated.
  }

  ASSERT_TRUE(game.broken.Await([](const auto& all) { return !all.empty(); }));
  ASSERT_TRUE(map.broken.Await([](const auto& all) { return !all.empty(); }));
  ASSERT_TRUE(gateway.AwaitSessions(0));
  for (TestProvider* provider : {&game, &map}) {
    provider->Settle();
    const auto broken = provider->broken.value();
    ASSERT_EQ(1U, broken.size());
    EXPECT_EQ("alice", broken[0].account);
    EXPECT_EQ("77", broken[0].userState.context);
    EXPECT_EQ(0, broken[0].reason);
  }
  EXPECT_TRUE(other.broken.value().empty());
}

TEST(Linkd, DrainedServersKeepTheirClients) {
  Gateway gateway;
  TestProvider old(gateway, "1");
  TestProvider fresh(gateway, "2");
  old.Offer({kShop});
  TestClient before(gateway, "alice");
  before.Request(kShop, 5, "x");
  EXPECT_EQ("x", before.Answer());

  fresh.Offer({kShop});
  old.SetDisableChoice(true);
  for (int i = 0; i < 3; ++i) {
    TestClient after(gateway, "new");
    after.Request(kShop, 5, "y");
    EXPECT_EQ("y", after.Answer());
  }
  before.Request(kShop, 5, "z");
  EXPECT_EQ("z", before.Answer());

  EXPECT_EQ(2U, old.dispatched.value().size());
  EXPECT_EQ(3U, fresh.dispatched.value().size());
}

TEST(Linkd, NoMessageComesBehindTheAnswerToAnUnbind) {
  Gateway gateway(TestOptions(), {.thread_count = 2});
  TestProvider old(gateway, "1");
  TestProvider fresh(gateway, "2");
  old.Offer({kShop, kRank});
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<TestClient>(gateway, "c" + std::to_string(i)));
    clients.back()->Request(kShop, 5, "x");
    EXPECT_EQ("x", clients.back()->Answer());
  }
  fresh.Offer({kShop, kRank});
  // While they go on asking.
  std::atomic<bool> stop = false;
  std::atomic<int> answered = 0;
  std::thread players([&] {
    while (!stop) {
      for (const auto& client : clients) client->Request(kRank, 5, "y");
      for (const auto& client : clients) {
        EXPECT_EQ("y", client->Answer());
        ++answered;
      }
    }
  });
  EXPECT_TRUE(Eventually([&] { return answered > 100; }));

  EXPECT_EQ(0, old.Unbind({kShop, kRank}));
  const std::size_t at_answer = old.dispatched.value().size();
  const int answered_then = answered;
  EXPECT_TRUE(Eventually([&] { return answered > answered_then + 100; }));
  stop = true;
  players.join();

  EXPECT_EQ(at_answer, old.dispatched.value().size());
  EXPECT_GE(fresh.dispatched.value().size(), 90U);
}

}  // namespace
}  // namespace zeze::arch
