// A gateway over real connections: which messages reach which server and which client.

#include "zeze/arch/linkd/linkd.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/testing/peer_messages.h"
#include "zeze/net/testing/raw_client.h"
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

TEST(Linkd, ThePortForServersIsOnLoopbackUnlessAnAddressIsNamed) {
  LinkdOptions options = TestOptions();
  options.provider_acceptors = {{}};
  const Gateway gateway(options);
  EXPECT_EQ("127.0.0.1", gateway.linkd.provider_address().IpText());
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

// A server of Zeze 1.6 kicks at once and sends the answer when its transaction has committed.
TEST(Linkd, AnswersThatFollowAKickReachTheClientBeforeItIsClosed) {
  Gateway gateway;
  TestProvider provider(gateway, "1", 0, false);
  provider.Offer({kShop});
  TestClient client(gateway, "bob");
  ASSERT_TRUE(client.Request(kShop, 5, "x", 7));
  ASSERT_TRUE(client.Request(kShop, 6, "y", 8));
  ASSERT_TRUE(provider.AwaitDispatched(2));
  provider.Tell<provider::Kick>({.linksid = client.sid(), .code = 4, .desc = "twice"});
  provider.Settle();
  ASSERT_TRUE(client.Request(kShop, 5, "too late", 9));
  for (const int call : {7, 8}) {
    const std::int32_t protocol = call - 2;
    EXPECT_TRUE(provider
                    .Send({client.sid()}, ProtocolTypeId(kShop, protocol),
                          FrameOf(kShop, protocol, "last words", FrameFamily::kResponse, call))
                    .empty());
  }

  EXPECT_EQ("1 4 twice", client.Report(true));
  EXPECT_EQ("last words", client.Answer());
  EXPECT_EQ("last words", client.Answer());
  EXPECT_FALSE(client.Receive().has_value());
  EXPECT_EQ(2U, provider.dispatched.value().size());
}

TEST(Linkd, AKickedClientWhoseRequestIsNeverAnsweredIsClosed) {
  Gateway gateway;
  TestProvider provider(gateway, "1", 0, false);
  provider.Offer({kShop});
  TestClient client(gateway, "bob");
  ASSERT_TRUE(client.Request(kShop, 5, "x"));
  ASSERT_TRUE(provider.AwaitDispatched(1));
  provider.Tell<provider::Kick>({.linksid = client.sid(), .code = 4, .desc = "twice"});

  EXPECT_EQ("1 4 twice", client.Report(true));
  EXPECT_FALSE(client.Receive().has_value());
}

TEST(Linkd, MessagesOfThePeersOwnModulesAreIgnored) {
  Gateway gateway;
  zeze::testing::RawClient server(gateway.linkd.provider_address());
  ASSERT_TRUE(server.EndHandshake());
  zeze::testing::ExpectPeerMessagesAreHarmless(server);
  TestClient client(gateway, "alice");
  zeze::testing::ExpectPeerMessagesAreHarmless(client.raw());
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
