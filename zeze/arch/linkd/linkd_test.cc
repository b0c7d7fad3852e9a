// A gateway over real connections: who gets what.

#include "zeze/arch/linkd/linkd.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/arch/linkd/token_authenticator.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/tls.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"

namespace zeze::arch {
namespace {

using testing::Dispatched;
using testing::Eventually;
using testing::FrameOf;
using testing::Gateway;
using testing::Received;
using testing::TestClient;
using testing::TestOptions;
using testing::TestProvider;
using testing::Watched;
namespace provider = testing::provider;

constexpr std::int32_t kShop = 100;
constexpr std::int32_t kRank = 101;
constexpr std::int32_t kMap = 200;
constexpr std::int32_t kOnline = 11013;

TEST(Linkd, ForwardsARequestAndItsAnswer) {
  Gateway gateway;
  TestProvider provider(gateway, "1");
  provider.Offer({kShop});
  TestClient client(gateway, "alice");

  client.Request(kShop, 5, "hello");

  EXPECT_EQ("hello", client.Answer());
  const Dispatched got = provider.dispatched.value().at(0);
  EXPECT_EQ(client.sid(), got.sid);
  EXPECT_EQ("alice", got.account);
  EXPECT_EQ(ProtocolTypeId(kShop, 5), got.type);
  EXPECT_EQ(1U, gateway.linkd.GetStatistics().forwarded);
  EXPECT_TRUE(Eventually([&] { return gateway.linkd.GetStatistics().delivered == 1; }));
}

TEST(Linkd, TheBodyIsForwardedAsItIsWhateverItsFamily) {
  Gateway gateway;
  TestProvider provider(gateway, "1", 0, false);
  provider.Offer({kShop});
  TestClient client(gateway, "alice");

  client.Note(kShop, 5, "one way");
  client.Request(kShop, 6, "request", 77);
  // To what a server asked the client.
  client.raw().Send(FrameOf(kShop, 7, "response", FrameFamily::kResponse, 1'000'000));

  ASSERT_TRUE(provider.AwaitDispatched(3));
  const std::vector<Dispatched> got = provider.dispatched.value();
  EXPECT_EQ(FrameOf(kShop, 5, "one way").substr(12), got[0].body);
  EXPECT_EQ(FrameOf(kShop, 6, "request", FrameFamily::kRequest, 77).substr(12), got[1].body);
  EXPECT_EQ(FrameOf(kShop, 7, "response", FrameFamily::kResponse, 1'000'000).substr(12),
            got[2].body);
}

TEST(Linkd, Seed001AClientStaysAtTheServerThatWasChosenForIt) {
  Gateway gateway;
  TestProvider first(gateway, "1");
  TestProvider second(gateway, "2");
  first.Offer({kShop, kRank});
  second.Offer({kShop, kRank});
  TestClient alice(gateway, "alice");
  TestClient bob(gateway, "bob");

  for (int i = 0; i < 10; ++i) {
    for (TestClient* client : {&alice, &bob}) {
      client->Request(i % 2 == 0 ? kShop : kRank, 5, "x");
      EXPECT_EQ("x", client->Answer());
    }
  }

  const std::vector<Dispatched> at_first = first.dispatched.value();
  const std::vector<Dispatched> at_second = second.dispatched.value();
  EXPECT_EQ(10U, at_first.size()) << "round robin: one client each";
  EXPECT_EQ(10U, at_second.size());
  for (const Dispatched& one : at_first) EXPECT_EQ(at_first[0].account, one.account);
  for (const Dispatched& one : at_second) EXPECT_EQ(at_second[0].account, one.account);
}

TEST(Linkd, MessagesOfAClientArriveInTheirOrder) {
  Gateway gateway;
  TestProvider provider(gateway, "1", 0, false);
  provider.Offer({kShop});
  TestClient client(gateway, "alice");
  constexpr int kMessages = 5000;
  std::string many;
  for (int i = 0; i < kMessages; ++i) many += FrameOf(kShop, i, "x");

  client.raw().Send(many);

  ASSERT_TRUE(provider.AwaitDispatched(kMessages));
  const std::vector<Dispatched> got = provider.dispatched.value();
  int next = 0;
  for (const Dispatched& message : got) ASSERT_EQ(ProtocolTypeId(kShop, next++), message.type);
}

TEST(Linkd, Seed001DynamicModulesGoToWhoeverBoundTheClient) {
  Gateway gateway;
  TestProvider game(gateway, "1");
  TestProvider map(gateway, "2");
  game.Offer({kShop});
  map.OfferDynamic({kMap});
  TestClient alice(gateway, "alice");
  TestClient bob(gateway, "bob");

  alice.Request(kMap, 5, "nowhere yet");
  EXPECT_EQ("code -9", alice.Answer());
  EXPECT_EQ("2 200", alice.Report());
  alice.Request(kMap, 5, "again");
  EXPECT_EQ("code -9", alice.Answer()) << "every request is answered";
  alice.Note(kMap, 5, "and again");
  EXPECT_TRUE(alice.Settle().empty()) << "one report a second is enough";

  EXPECT_EQ(0, map.BindClient(alice.sid(), kMap));  // She enters a map.
  alice.Request(kMap, 5, "here");
  EXPECT_EQ("here", alice.Answer());
  bob.Request(kMap, 5, "not bound");
  EXPECT_EQ("code -9", bob.Answer());
  EXPECT_EQ("2 200", bob.Report()) << "it was bound for alice only";

  EXPECT_EQ(0, game.UnbindClient(alice.sid(), kMap));
  alice.Request(kMap, 5, "still here");
  EXPECT_EQ("still here", alice.Answer()) << "only the owner unbinds";

  EXPECT_EQ(0, map.UnbindClient(alice.sid(), kMap));  // She leaves it.
  alice.Note(kMap, 5, "gone");
  alice.Settle();
  EXPECT_EQ(2U, map.dispatched.value().size());
  EXPECT_EQ(1, map.BindClient(alice.sid() + 1000, kMap)) << "there is no such client";
}

TEST(Linkd, AServerHearsThatAnotherOneHasTakenItsClient) {
  Gateway gateway;
  TestProvider first(gateway, "1");
  TestProvider second(gateway, "2");
  for (TestProvider* map : {&first, &second}) map->OfferDynamic({kMap, kMap + 1});
  TestClient alice(gateway, "alice");
  EXPECT_EQ(0, first.BindClient(alice.sid(), kMap));
  EXPECT_EQ(0, first.BindClient(alice.sid(), kMap + 1));
  first.Tell<provider::SetUserState>({.linkSid = alice.sid(), .userState = {.context = "77"}});
  first.Settle();

  EXPECT_EQ(0, second.BindClient(alice.sid(), kMap));

  ASSERT_TRUE(first.unbound.Await([](const auto& all) { return all.size() == 1; }));
  const provider::BUnbound notice = first.unbound.value().front();
  EXPECT_EQ("alice", notice.account);
  EXPECT_EQ(alice.sid(), notice.linkSid);
  EXPECT_EQ("77", notice.userState.context);
  EXPECT_EQ(1U, notice.modules.size());
  EXPECT_TRUE(notice.modules.Contains(kMap));
  alice.Request(kMap, 5, "x");
  EXPECT_EQ("x", alice.Answer());
  alice.Request(kMap + 1, 5, "y");
  EXPECT_EQ("y", alice.Answer());
  EXPECT_EQ(1U, second.dispatched.value().size());
  EXPECT_EQ(1U, first.dispatched.value().size());
  // Bound again by its owner, or unbound by it: nobody else is concerned.
  EXPECT_EQ(0, second.BindClient(alice.sid(), kMap));
  EXPECT_EQ(0, second.UnbindClient(alice.sid(), kMap));
  EXPECT_TRUE(second.unbound.value().empty());
}

TEST(Linkd, ServersThatDoNotUnderstandItAreNotToldThatAClientWasTaken) {
  Gateway gateway;
  TestProvider first(gateway, "1", 0, true, TestProvider::kOldPrefix);
  TestProvider second(gateway, "2", 0, true, TestProvider::kOldPrefix);
  for (TestProvider* map : {&first, &second}) map->OfferDynamic({kMap});
  TestClient alice(gateway, "alice");
  EXPECT_EQ(0, first.BindClient(alice.sid(), kMap));
  EXPECT_EQ(0, second.BindClient(alice.sid(), kMap));
  first.Settle();

  EXPECT_TRUE(first.unbound.value().empty());
  EXPECT_FALSE(first.closed.value());
}

// Or a server that is chosen for another module would take this one from a server that does not
// know of it.
TEST(Linkd, AffinityDoesNotTakeModulesFromTheServerThatAClientHas) {
  Gateway gateway;
  TestProvider narrow(gateway, "1");
  narrow.Offer({kRank});
  TestClient alice(gateway, "alice");
  alice.Request(kRank, 5, "x");
  EXPECT_EQ("x", alice.Answer());
  TestProvider wide(gateway, "2");
  wide.Offer({kShop, kRank});

  for (const std::int32_t module : {kShop, kRank}) {
    alice.Request(module, 5, "y");
    EXPECT_EQ("y", alice.Answer());
  }

  EXPECT_EQ(2U, narrow.dispatched.value().size());
  EXPECT_EQ(1U, wide.dispatched.value().size());
}

TEST(Linkd, AnotherKindOfServerCannotTakeAModule) {
  Gateway gateway;
  TestProvider game(gateway, "1");
  game.Offer({kShop});
  game.OfferDynamic({kMap});
  TestClient alice(gateway, "alice");
  {
    const zeze::testing::CapturedLog log;
    TestProvider mall(gateway, "2", 0, true, "Mall.Module#");
    EXPECT_EQ(provider::Bind::OfOtherServers, mall.TryOffer({kShop}));
    EXPECT_EQ(provider::Bind::OfOtherServers, mall.TryOfferDynamic({kMap}));
    EXPECT_EQ(provider::Bind::OfOtherServers, mall.BindClient(alice.sid(), kMap));
    mall.Offer({kRank});
    for (const std::int32_t module : {kShop, kRank}) {
      alice.Request(module, 5, "x");
      EXPECT_EQ("x", alice.Answer());
    }
    EXPECT_EQ(1U, mall.dispatched.value().size()) << "of its own module";
    EXPECT_EQ(3U, gateway.refused(Refusal::kModuleOfOthers));
    EXPECT_THAT(log.lines(),
                ::testing::Contains(::testing::AllOf(::testing::StartsWith("error: "),
                                                     ::testing::HasSubstr("Game.Module#100"),
                                                     ::testing::HasSubstr("Mall.Module#100"))));
  }

  // The others have left; their module is dead, and nothing else.
  EXPECT_TRUE(Eventually([&] { return gateway.linkd.GetStatistics().providers == 1; }));
  TestClient bob(gateway, "bob");
  for (TestClient* client : {&alice, &bob}) {
    client->Request(kShop, 5, "y");
    EXPECT_EQ("y", client->Answer());
  }
}

TEST(Linkd, UnauthenticatedClientsGetNothingThrough) {
  Gateway gateway;
  TestProvider provider(gateway, "1");
  provider.Offer({kShop});
  TestClient client(gateway);
  ASSERT_TRUE(client.EndHandshake());

  client.Request(kShop, 5, "hello");

  EXPECT_EQ("0 1", client.Report());
  EXPECT_FALSE(client.Receive().has_value()) << "closed";
  EXPECT_EQ(1U, gateway.refused(Refusal::kUnauthenticated));
  EXPECT_TRUE(provider.dispatched.value().empty());
}

TEST(Linkd, WrongTokensAreRefusedAndClosed) {
  Gateway gateway;
  for (const char* token : {"bad", "used"}) {
    TestClient client(gateway);
    ASSERT_TRUE(client.EndHandshake());
    EXPECT_EQ(-20, client.Authenticate(token));
    EXPECT_FALSE(client.Receive().has_value());
  }
  EXPECT_EQ(1U, gateway.refused(Refusal::kBadToken));
  EXPECT_EQ(1U, gateway.refused(Refusal::kReplayedToken));
}

// Sixty players behind one address, whose gateway has crashed: all of them show tokens that were
// issued before its start, were used, or have expired, and come back with new ones.
TEST(Linkd, HonestClientsWithTokensThatAreNotGoodAnyMoreAreNotBanned) {
  const admin::OperatorKey key = admin::OperatorKey::Generate().value();
  zeze::testing::ManualClock clock;
  LinkdOptions options = TestOptions();
  options.limits.address = {.connections_max = 0, .attempts = {}};
  const auto issued_before =
      SignToken(key, NewToken("alice", "Linkd", std::chrono::minutes(4), clock));
  clock.Advance(std::chrono::minutes(1));
  options.authenticator = std::make_shared<TokenAuthenticator>(
      TokenOptions{.public_keys = {key.public_key()}, .clock = &clock});
  Gateway gateway(options);
  const auto show = [&](const std::string& token) {
    TestClient client(gateway);
    return client.EndHandshake() ? client.Authenticate(token) : -1000;
  };
  const auto used = SignToken(key, NewToken("alice", "Linkd", std::chrono::minutes(1), clock));
  EXPECT_EQ(0, show(used));
  const auto other = SignToken(key, NewToken("alice", "Other", std::chrono::minutes(1), clock));
  const auto expired = SignToken(key, NewToken("alice", "Linkd", std::chrono::seconds(0), clock));

  for (int i = 0; i < 60; ++i) {
    for (const std::string& token : {issued_before, used, other, expired}) {
      ASSERT_EQ(-20, show(token));
    }
  }
  EXPECT_TRUE(gateway.linkd.Bans().empty());
  EXPECT_EQ(120U, gateway.refused(Refusal::kUnsuitableToken));
  EXPECT_EQ(60U, gateway.refused(Refusal::kReplayedToken));
  EXPECT_EQ(60U, gateway.refused(Refusal::kExpiredToken));
  EXPECT_EQ(0, show(SignToken(key, NewToken("alice", "Linkd", std::chrono::minutes(1), clock))));

  const admin::OperatorKey forger = admin::OperatorKey::Generate().value();
  const auto forged = SignToken(forger, NewToken("alice", "Linkd", std::chrono::minutes(1), clock));
  for (int i = 0; i < 60 && gateway.linkd.Bans().empty(); ++i) show(forged);
  EXPECT_EQ(1U, gateway.linkd.Bans().size()) << "forgers still are";
}

// An account service that is away is not the clients' fault.
TEST(Linkd, ClientsWhoseTokensCannotBeCheckedAreToldToComeAgain) {
  LinkdOptions options = TestOptions();
  options.limits.address = {.connections_max = 0, .attempts = {}};
  Gateway gateway(options);
  for (int i = 0; i < 60; ++i) {
    TestClient client(gateway);
    ASSERT_TRUE(client.EndHandshake());
    ASSERT_EQ(-19, client.Authenticate("unavailable"));
  }
  EXPECT_TRUE(gateway.linkd.Bans().empty());
  EXPECT_EQ(60U, gateway.refused(Refusal::kNotChecked));
}

TEST(Linkd, ThePortForServersIsOnLoopbackUnlessAnAddressIsNamed) {
  LinkdOptions options = TestOptions();
  options.provider_acceptors = {{}};
  const Gateway gateway(options);
  EXPECT_EQ("127.0.0.1", gateway.linkd.provider_address().IpText());
}

TEST(Linkd, AnApplicationAuthenticatesInItsOwnWay) {
  LinkdOptions options = TestOptions();
  options.authenticator = nullptr;
  IoThreads io({});
  ThreadPool workers({.thread_count = 1});
  Linkd linkd(io, workers, options);
  using zeze::testing::Echo;
  linkd.clients().Handle<Echo>([&linkd](Request<Echo> request) {
    EXPECT_TRUE(linkd.Accept(*request.connection(), {.account = request.argument().text}).ok());
    EXPECT_FALSE(linkd.Accept(*request.connection(), {.account = "other"}).ok());
    (void)request.Answer({"welcome"});
  });
  ASSERT_TRUE(linkd.Start().ok());
  zeze::testing::RawClient raw(linkd.client_address());
  ASSERT_TRUE(raw.EndHandshake());

  raw.Send(zeze::testing::RawClient::RequestFrame<Echo>(1, {"alice"}));

  ASSERT_TRUE(raw.ReadFrame().has_value());
  EXPECT_EQ(1U, linkd.GetStatistics().authenticated);
  linkd.Stop();
}

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

TEST(Linkd, UserStateTravelsWithEveryMessage) {
  Gateway gateway;
  TestProvider provider(gateway, "1");
  provider.Offer({kShop});
  TestClient client(gateway, "alice");
  provider::BSetUserState state{.linkSid = client.sid(),
                                .userState = {.context = "77", .onlineSetName = "set"}};
  state.userState.contextx = Binary("more");
  provider.Tell<provider::SetUserState>(state);
  provider.Settle();

  client.Request(kShop, 5, "x");

  EXPECT_EQ("x", client.Answer());
  EXPECT_EQ(state.userState, provider.dispatched.value()[0].state);
}

TEST(Linkd, SendReportsWhomItDidNotReach) {
  Gateway gateway;
  TestProvider provider(gateway, "1");
  provider.Offer({kShop});
  TestClient alice(gateway, "alice");
  TestClient bob(gateway, "bob");
  const std::string frame = FrameOf(kShop, 9, "news");

  EXPECT_EQ((std::vector<std::int64_t>{999'999'999}),
            provider.Send({alice.sid(), 999'999'999, bob.sid()}, ProtocolTypeId(kShop, 9), frame));

  for (TestClient* client : {&alice, &bob}) {
    const std::optional<Received> got = client->Receive();
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ("news", got->payload);
  }
}

TEST(Linkd, CheckLinkSessionOnlyLooks) {
  Gateway gateway;
  TestProvider provider(gateway, "1");
  TestClient alice(gateway, "alice");
  const std::int64_t type = provider::CheckLinkSession::kDescriptor.type_id();

  EXPECT_EQ((std::vector<std::int64_t>{5'000'000}),
            provider.Send({alice.sid(), 5'000'000}, type, ""));

  EXPECT_TRUE(alice.Settle().empty());
}

TEST(Linkd, WhatIsNoFrameDoesNotReachAClient) {
  Gateway gateway;
  TestProvider provider(gateway, "1");
  TestClient alice(gateway, "alice");

  EXPECT_EQ((std::vector<std::int64_t>{alice.sid()}),
            provider.Send({alice.sid()}, ProtocolTypeId(kShop, 9), "not a frame at all"));

  EXPECT_TRUE(alice.Settle().empty());
  EXPECT_EQ(1U, gateway.refused(Refusal::kBadProviderFrame));
}

TEST(Linkd, BroadcastGoesToThoseWhoAreLoggedIn) {
  Gateway gateway;
  TestProvider provider(gateway, "1", 2);
  TestClient in_same(gateway, "alice", 2);
  TestClient in_other(gateway, "bob", 3);
  TestClient not_logged_in(gateway, "carol", 2);
  TestClient not_authenticated(gateway);
  for (const TestClient* client : {&in_same, &in_other}) {
    provider.Tell<provider::SetUserState>(
        {.linkSid = client->sid(), .userState = {.context = "7"}});
  }
  provider::BBroadcast broadcast{.protocolType = ProtocolTypeId(kShop, 9)};
  broadcast.protocolWholeData = Binary(FrameOf(kShop, 9, "to all"));
  provider.Tell<provider::Broadcast>(broadcast);
  broadcast.protocolWholeData = Binary(FrameOf(kShop, 9, "to version 2"));
  broadcast.onlySameVersion = true;
  provider.Tell<provider::Broadcast>(broadcast);
  provider.Settle();

  EXPECT_EQ("to all", in_same.Receive()->payload);
  EXPECT_EQ("to version 2", in_same.Receive()->payload);
  EXPECT_EQ("to all", in_other.Receive()->payload);
  EXPECT_TRUE(in_other.Settle().empty());
  EXPECT_TRUE(not_logged_in.Settle().empty());
}

TEST(Linkd, KickReportsAndCloses) {
  Gateway gateway;
  TestProvider provider(gateway, "1");
  TestClient warned(gateway, "alice");
  TestClient kicked(gateway, "bob");
  provider.Tell<provider::Kick>(
      {.linksid = warned.sid(), .code = 5, .desc = "look out", .control = 1});
  provider.Tell<provider::Kick>(
      {.linksid = kicked.sid(), .code = 4, .desc = "twice", .control = 0});

  EXPECT_EQ("1 5 look out", warned.Report(true));
  EXPECT_TRUE(warned.Settle().empty());
  EXPECT_EQ("1 4 twice", kicked.Report(true));
  EXPECT_FALSE(kicked.Receive().has_value());
}

TEST(Linkd, StrictRightsKeepAServerFromOthersClients) {
  LinkdOptions options = TestOptions();
  options.strict_provider_rights = true;
  Gateway gateway(options);
  TestProvider own(gateway, "1");
  TestProvider stranger(gateway, "2");
  own.Offer({kShop});
  TestClient client(gateway, "alice");
  client.Request(kShop, 5, "x");
  EXPECT_EQ("x", client.Answer());
  const std::string frame = FrameOf(kShop, 9, "news");

  EXPECT_TRUE(own.Send({client.sid()}, ProtocolTypeId(kShop, 9), frame).empty());
  EXPECT_EQ(1U, stranger.Send({client.sid()}, ProtocolTypeId(kShop, 9), frame).size());
  stranger.Tell<provider::Kick>({.linksid = client.sid(), .code = 4});
  stranger.Settle();

  EXPECT_EQ(1U, client.Settle().size());
  EXPECT_EQ(2U, gateway.refused(Refusal::kProviderRights));
}

// A client that leaves a map, or enters another one, still hears the end of what it asked there.
TEST(Linkd, WithStrictRightsAServerAnswersWhatItWasAskedBeforeItsClientLeft) {
  LinkdOptions options = TestOptions();
  options.strict_provider_rights = true;
  Gateway gateway(options);
  TestProvider first(gateway, "1", 0, /*echo=*/false);
  TestProvider second(gateway, "2", 0, /*echo=*/false);
  TestProvider third(gateway, "3");
  for (TestProvider* one : {&first, &second, &third}) one->OfferDynamic({kMap});
  TestClient client(gateway, "alice");
  const auto answer = [&](TestProvider& provider, std::int64_t call, std::string_view text) {
    return provider.Send({client.sid()}, ProtocolTypeId(kMap, 5),
                         FrameOf(kMap, 5, text, FrameFamily::kResponse, call));
  };

  ASSERT_EQ(0, first.BindClient(client.sid(), kMap));
  client.Request(kMap, 5, "x", 1);
  ASSERT_TRUE(first.AwaitDispatched(1));
  EXPECT_EQ(0, first.UnbindClient(client.sid(), kMap));
  ASSERT_EQ(0, second.BindClient(client.sid(), kMap));
  client.Request(kMap, 5, "y", 2);
  ASSERT_TRUE(second.AwaitDispatched(1));
  ASSERT_EQ(0, third.BindClient(client.sid(), kMap));

  EXPECT_TRUE(answer(first, 1, "of the first").empty());
  EXPECT_EQ("of the first", client.Answer());
  EXPECT_TRUE(answer(second, 2, "of the second").empty());
  EXPECT_EQ("of the second", client.Answer());
  EXPECT_EQ(0U, gateway.refused(Refusal::kProviderRights));
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

TEST(Linkd, ClientsGoToServersOfTheirMainVersion) {
  Gateway gateway;
  TestProvider one(gateway, "1", 1);
  TestProvider two(gateway, "2", 2);
  one.Offer({kShop});
  two.Offer({kShop});
  for (const std::int64_t version : {1, 2, 2}) {
    TestClient client(gateway, "v" + std::to_string(version), version);
    client.Request(kShop, 5, "x");
    EXPECT_EQ("x", client.Answer());
  }
  TestClient three(gateway, "v3", 3);
  three.Request(kShop, 5, "x");
  EXPECT_EQ("code -9", three.Answer());

  EXPECT_EQ(1U, one.dispatched.value().size());
  EXPECT_EQ(2U, two.dispatched.value().size());
}

TEST(Linkd, ServesClientsAndServersOverTls) {
  const zeze::testing::Certificates& certificates = zeze::testing::Certificates::Get();
  LinkdOptions options = TestOptions();
  options.client_acceptors.front().tls =
      TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                             .private_key_file = certificates.server_key})
          .value();
  // Servers have to show who they are.
  options.provider_acceptors.front().tls =
      TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                             .private_key_file = certificates.server_key,
                             .authorities_file = certificates.authority,
                             .require_client_certificate = true})
          .value();
  Gateway gateway(options);
  IoThreads io({});
  Service clients(io, {.name = "clients", .handshake = HandshakeOptions{}});
  const auto connect = [&](const NetAddress& to, const TlsOptions& tls) {
    return clients
        .Connect({.host = to.IpText(),
                  .port = to.port(),
                  .reconnect = false,
                  .tls = TlsContext::ForClient(tls).value()})
        ->WaitReady(testing::kPatience);
  };
  const Result<ConnectionPtr> client =
      connect(gateway.linkd.client_address(), {.authorities_file = certificates.authority});
  ASSERT_TRUE(client.ok()) << client.error().message();
  using Zeze::Builtin::LinkdAuth::Auth;
  Zeze::Builtin::LinkdAuth::BAuth auth;
  auth.token.bytes = "alice";
  const Result<RpcReply<Auth>> reply = client.value()->CallAndWait<Auth>(auth);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ("alice", reply.value().result.account);

  const NetAddress inner = gateway.linkd.provider_address();
  EXPECT_TRUE(connect(inner, {.certificate_file = certificates.server_certificate,
                              .private_key_file = certificates.server_key,
                              .authorities_file = certificates.authority})
                  .ok());
  EXPECT_FALSE(connect(inner, {.authorities_file = certificates.authority}).ok());
}

// A thief who was quicker than its owner can do nothing with it either.
TEST(Linkd, ATokenCanBeBoundToItsTlsConnection) {
  const zeze::testing::Certificates& certificates = zeze::testing::Certificates::Get();
  const admin::OperatorKey key = admin::OperatorKey::Generate().value();
  LinkdOptions options = TestOptions();
  options.client_acceptors.front().tls =
      TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                             .private_key_file = certificates.server_key})
          .value();
  options.authenticator = std::make_shared<TokenAuthenticator>(
      TokenOptions{.public_keys = {key.public_key()}, .require_tls_binding = true});
  Gateway gateway(options);
  IoThreads io({});
  Service clients(io, {.name = "clients", .handshake = HandshakeOptions{}});
  Watched<std::map<std::int64_t, std::string>> bindings;
  clients.OnOpen([&](const ConnectionPtr& connection) {
    bindings.Change([&](auto& all) { all[connection->id()] = connection->TlsBinding(); });
  });
  const TlsContextPtr tls =
      TlsContext::ForClient({.authorities_file = certificates.authority}).value();
  const NetAddress to = gateway.linkd.client_address();
  const auto connect = [&] {
    return clients
        .Connect({.host = to.IpText(), .port = to.port(), .reconnect = false, .tls = tls})
        ->WaitReady(testing::kPatience)
        .value();
  };
  const ConnectionPtr thief = connect();
  const ConnectionPtr alice = connect();
  ASSERT_TRUE(bindings.Await([](const auto& all) { return all.size() == 2; }));
  const std::string of_alice = bindings.value().at(alice->id());
  EXPECT_EQ(32U, of_alice.size());
  EXPECT_NE(of_alice, bindings.value().at(thief->id()));

  auto token = NewToken("alice", "Linkd", std::chrono::minutes(1));
  token.tlsBinding.bytes = of_alice;
  Zeze::Builtin::LinkdAuth::BAuth auth;
  auth.token.bytes = SignToken(key, token);
  using Zeze::Builtin::LinkdAuth::Auth;
  EXPECT_EQ(-20, thief->CallAndWait<Auth>(auth).value().result_code);
  EXPECT_EQ(1U, gateway.refused(Refusal::kUnboundToken));
  EXPECT_EQ(0, alice->CallAndWait<Auth>(auth).value().result_code);
}

TEST(Linkd, SeveralNetworkThreadsShareTheWork) {
  Gateway gateway(TestOptions(), {.thread_count = 3});
  TestProvider first(gateway, "1");
  TestProvider second(gateway, "2");
  first.Offer({kShop});
  second.Offer({kShop});
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(std::make_unique<TestClient>(gateway, "c" + std::to_string(i)));
  }
  for (int round = 0; round < 50; ++round) {
    for (const auto& client : clients) client->Request(kShop, 5, "x");
    for (const auto& client : clients) ASSERT_EQ("x", client->Answer());
  }
  EXPECT_EQ(1500U, gateway.linkd.GetStatistics().forwarded);
}

// With a service manager: registered, and choosing from its lists.
TEST(Linkd, RegistersItselfAndHearsOfLoads) {
  IoThreads registry_io({.name = "registry"});
  ThreadPool pool({.name = "registry", .thread_count = 2});
  std::unique_ptr<Storage> storage = OpenMemoryStorage();
  registry::RegistryService registry(registry_io, *storage, pool,
                                     {.acceptors = {{.ip = "127.0.0.1"}}});
  ASSERT_TRUE(registry.Start().ok());
  registry::RegistryAgentOptions agent_options;
  agent_options.connector = {.host = "127.0.0.1", .port = registry.address().port()};
  LinkdOptions options = TestOptions();
  options.name = "Game.Linkd";
  options.registry = agent_options;
  {
    Gateway gateway(options);
    registry::RegistryAgent agent(registry_io, pool, agent_options);
    ASSERT_TRUE(agent.Start().ok());
    Watched<registry::ServiceListPtr> linkds;
    agent.Subscribe({.name = "Game.Linkd"},
                    [&](const registry::ServiceListPtr& list, const registry::ServiceChange&) {
                      linkds.Change([&](auto& value) { value = list; });
                    });
    ASSERT_TRUE(
        linkds.Await([](const auto& list) { return list != nullptr && list->size() == 1; }));
    const registry::ServiceInfo info = linkds.value()->versions.at(0).at(0);
    EXPECT_EQ("@127.0.0.1_" + std::to_string(gateway.linkd.provider_address().port()),
              info.identity);
    Zeze::Builtin::LinkdBase::BLinkInfo link;
    ByteReader in(info.extra_info);
    link.Decode(in);
    EXPECT_EQ(gateway.linkd.client_address().port(), link.Port);

    // The server registers its module, too, and says that it is overloaded.
    TestProvider provider(gateway, "1");
    provider.Offer({kShop});
    ASSERT_TRUE(agent
                    .Register({.name = "Game.Module#100",
                               .identity = "1",
                               .passive_ip = "10.0.0.1",
                               .passive_port = 7000})
                    .ok());
    TestClient client(gateway, "alice");
    ByteWriter load;
    provider::BLoad{.Overload = 2}.Encode(load);
    EXPECT_TRUE(Eventually([&] {
      agent.SetLoad({.ip = "10.0.0.1", .port = 7000, .param = std::string(load.view())});
      client.Request(kShop, 5, "x");
      const std::string answer = client.Answer();
      if (answer == "x" || answer == "code -9") return false;
      EXPECT_EQ("code -19", answer);
      return true;
    }));
    agent.Stop();
  }
  registry.Stop();
}

}  // namespace
}  // namespace zeze::arch
