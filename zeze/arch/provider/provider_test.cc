// A server behind a gateway of the test, over real connections.

#include "zeze/arch/provider/provider.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Provider.h"
#include "demo/Game.h"
#include "demo/Map.h"
#include "zeze/app/session.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/arch/provider/testing/fake_linkd.h"
#include "zeze/arch/provider/testing/provider_fixture.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/net/frame.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/binary.h"

namespace zeze::arch {
namespace {

namespace wire = Zeze::Builtin::Provider;

using demo::Game::Add;
using demo::Game::Echo;
using demo::Game::EchoCritical;
using demo::Game::EchoDirect;
using demo::Game::Fail;
using demo::Game::Note;
using demo::Game::Noted;
using demo::Game::Throw;
using demo::Game::ThrowOutside;
using demo::Game::Wait;
using demo::Game::WhoAmI;
using demo::Map::Move;
using ::testing::AllOf;
using ::testing::Contains;
using testing::DemoMap;
using testing::DemoOptions;
using testing::DemoServer;
using ::testing::ElementsAre;
using testing::FakeLinkd;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using ProviderTest = testing::ProviderFixture;

TEST_F(ProviderTest, IntroducesItselfToEachGateway) {
  StartBoth({.server_id = 7, .provider = {.app_version = std::int64_t{3} << 48}});

  EXPECT_THAT(linkd_->story(),
              ElementsAre("AnnounceProviderInfo", "Bind", "Subscribe", "EnableChoice"));
  const FakeLinkd::Server server = linkd_->servers().front();
  EXPECT_EQ(server.announcement.ServiceNamePrefix, "Demo.Server.Module#");
  EXPECT_EQ(server.announcement.ServiceIdentity, "7");
  EXPECT_EQ(server.announcement.ProviderDirectPort, 7007);
  EXPECT_EQ(server.announcement.AppVersion, std::int64_t{3} << 48);
  EXPECT_TRUE(server.announcement.DisableChoice);
  EXPECT_TRUE(server.static_modules.contains(kGame));
  EXPECT_FALSE(server.static_modules.contains(kMap));
  EXPECT_TRUE(server.dynamic_modules.at(kMap).Dynamic);
}

TEST_F(ProviderTest, RegistersItsModules) {
  DemoServer& server =
      StartServer({.server_id = 7, .provider = {.app_version = (std::int64_t{3} << 48) + 5}});
  ASSERT_TRUE(server.agent().AwaitSettled(std::chrono::seconds(20)).ok());

  for (const std::string name : {"Demo.Server.Module#100", "Demo.Server.Module#101"}) {
    Mutex mutex;
    CondVar changed;
    registry::ServiceListPtr seen;
    agent_->Subscribe({.name = name}, [&](const registry::ServiceListPtr& list, const auto&) {
      MutexLock lock(mutex);
      seen = list;
      changed.NotifyAll();
    });
    {
      MutexLock lock(mutex);
      while (seen == nullptr) changed.Wait(mutex);
      const registry::ServiceInfo* info = seen->Find("7");
      ASSERT_NE(info, nullptr) << name;
      EXPECT_EQ(info->version, 3);
      EXPECT_EQ(info->passive_ip, "127.0.0.1");
      EXPECT_EQ(info->passive_port, 7007);
    }
    agent_->Unsubscribe(name);
  }
}

TEST_F(ProviderTest, AnswersARequest) {
  StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");

  EXPECT_EQ(linkd_->Call<Add>(ann, {.count = 5}).result.count, 5);
  EXPECT_EQ(linkd_->Call<Add>(ann, {.count = 2}).result.count, 7);

  EXPECT_EQ(linkd_->Call<Add>(linkd_->AddClient("bob"), {.count = 1}).result.count, 1);
}

TEST_F(ProviderTest, HandlersSeeWhoAsks) {
  StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  EXPECT_EQ(linkd_->Call<WhoAmI>(ann, {}).result.text, "ann    " + linkd_->link_name());

  ASSERT_TRUE(servers_[0]
                  ->provider()
                  .links()
                  .SetUserState({linkd_->link_name(), ann},
                                {.context = "12", .contextx = Binary{"x"}, .onlineSetName = "pvp"})
                  .ok());
  ASSERT_TRUE(linkd_->Await([&] { return !linkd_->client(ann).state.context.empty(); }));

  const RpcReply<WhoAmI> reply = linkd_->Call<WhoAmI>(ann, {});
  EXPECT_EQ(reply.result.text, "ann 12 x pvp " + linkd_->link_name());
  EXPECT_EQ(reply.result.number, ann);
}

TEST_F(ProviderTest, TheAnswerComesAfterTheCommitAndAfterWhatItSent) {
  StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");

  linkd_->Call<Add>(ann, {.count = 5});

  const std::vector<std::string> frames = linkd_->client(ann).frames;
  ASSERT_THAT(frames, SizeIs(2));
  std::string_view first = frames[0];
  EXPECT_EQ(TakeFrame(first, 1000).value()->protocol_id, Noted::kProtocolId);
}

TEST_F(ProviderTest, ARollbackSendsOnlyItsCode) {
  StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");

  const RpcReply<Fail> reply = linkd_->Call<Fail>(ann, {.count = 77});

  EXPECT_EQ(reply.result_code, 77);
  EXPECT_EQ(reply.result.count, 77);
  EXPECT_THAT(linkd_->Received<Noted>(ann), IsEmpty());
  EXPECT_EQ(linkd_->Call<Add>(ann, {.count = 1}).result.count, 1);
}

TEST_F(ProviderTest, AnExceptionInAHandlerIsACode) {
  StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");

  EXPECT_EQ(linkd_->Call<Throw>(ann, {}).result_code, result_code::kException);
  EXPECT_EQ(linkd_->Call<ThrowOutside>(ann, {}).result_code, result_code::kException);

  EXPECT_TRUE(linkd_->Call<Echo>(ann, {}).ok());
  EXPECT_THAT(linkd_->client(ann).kicks, IsEmpty());
}

// Seed 001, TaskOneByOneByKey: messages of one client run one after the other, in their order.
TEST_F(ProviderTest, Seed001MessagesOfAnAccountRunOneByOneInOrder) {
  DemoServer& server =
      StartBoth({.worker_threads = 8, .provider = {.client_requests_max = 10'000}});
  const std::int64_t ann = linkd_->AddClient("ann");

  for (int i = 0; i < 2000; ++i) linkd_->Send<Note>(ann, {.number = i});
  linkd_->Call<Add>(ann, {.count = 1});

  const std::vector<testing::BText> notes = server.game.notes();
  ASSERT_THAT(notes, SizeIs(2000));
  int next = 0;
  for (const testing::BText& note : notes) ASSERT_EQ(note.number, next++);
}

TEST_F(ProviderTest, AccountsDoNotWaitForEachOther) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t waiting = linkd_->Request<Wait>(ann, {.text = "x"});
  server.game.gate.AwaitWaiting(1);

  EXPECT_TRUE(linkd_->Call<Echo>(linkd_->AddClient("bob"), {}).ok());

  EXPECT_THAT(linkd_->Answers<Wait>(ann, waiting), IsEmpty());
  server.game.gate.Open();
  EXPECT_EQ(linkd_->AwaitAnswer<Wait>(ann, waiting)->result.text, "x");
}

TEST_F(ProviderTest, OtherDispatchModesOvertake) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t waiting = linkd_->Request<Wait>(ann, {.text = "x"});
  server.game.gate.AwaitWaiting(1);

  EXPECT_EQ(linkd_->Call<EchoDirect>(ann, {.text = "a"}).result.text, "a directly");
  EXPECT_EQ(linkd_->Call<EchoCritical>(ann, {.text = "b"}).result.text, "b");

  EXPECT_THAT(linkd_->Answers<Wait>(ann, waiting), IsEmpty());
}

TEST_F(ProviderTest, KicksForAnUnknownProtocol) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t bob = linkd_->AddClient("bob");

  linkd_->SendBody(ann, ProtocolTypeId(kGame, 12345), "\x02\x00");

  ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(ann).closed; }));
  EXPECT_EQ(linkd_->client(ann).kicks.front().code, wire::BKick::ErrorProtocolUnknown);
  EXPECT_EQ(server.provider().GetStatistics().unknown_types, 1);
  EXPECT_TRUE(linkd_->Call<Echo>(bob, {}).ok());
}

TEST_F(ProviderTest, KicksForWhatCannotBeDecoded) {
  DemoServer& server = StartBoth();
  const std::int64_t type = Echo::kDescriptor.type_id();
  const std::vector<std::string> broken = {
      "",                                 // No envelope at all.
      std::string("\x02\x00", 2),         // A one-way message, but Echo is an rpc.
      std::string("\x00\x01\x00", 3),     // An answer.
      std::string("\x1f\x01\x00", 3),     // No such family.
      "\x01",                             // No session id.
      std::string("\x01\x01\x13\x7f", 4)  // A text that ends early.
  };
  for (const std::string& body : broken) {
    const std::int64_t client = linkd_->AddClient("ann");
    linkd_->SendBody(client, type, body);
    ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(client).closed; }));
    EXPECT_EQ(linkd_->client(client).kicks.front().code, wire::BKick::ErrorDecode);
  }
  EXPECT_EQ(server.provider().GetStatistics().undecodable, broken.size());
  EXPECT_TRUE(linkd_->Call<Echo>(linkd_->AddClient("bob"), {}).ok());
}

TEST_F(ProviderTest, HearsOnceThatAClientHasGone) {
  StartLinkd();
  servers_.push_back(std::make_unique<DemoServer>(registry_, DemoOptions{}));
  Mutex mutex;
  std::vector<std::string> story;
  servers_[0]->provider().OnLinkBroken(
      [&](const LinkAddress& address, const wire::BLinkBroken& broken) {
        MutexLock lock(mutex);
        story.push_back(broken.account + " of " + address.link_name + " " +
                        std::to_string(address.link_sid));
      });
  servers_[0]->Start();
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 1));
  const std::int64_t ann = linkd_->AddClient("ann");
  linkd_->Call<Echo>(ann, {});

  linkd_->CloseClient(ann);
  linkd_->Call<Add>(linkd_->AddClient("ann"), {});  // Behind it: the same account.

  MutexLock lock(mutex);
  EXPECT_THAT(story, ElementsAre("ann of " + linkd_->link_name() + " " + std::to_string(ann)));
}

TEST_F(ProviderTest, SendsSayWhoIsGone) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  Mutex mutex;
  CondVar changed;
  std::optional<SendOutcome> outcome;
  const SendCompletion done = [&](const SendOutcome& result) {
    MutexLock lock(mutex);
    outcome = result;
    changed.NotifyAll();
  };
  const std::string frame = EncodeOneWayFrame<Noted>({.text = "hello"});
  const std::int64_t sids[] = {ann, 999};

  ASSERT_TRUE(server.provider().links().Send(linkd_->link_name(), sids, frame, done).ok());

  {
    MutexLock lock(mutex);
    while (!outcome) changed.Wait(mutex);
    EXPECT_TRUE(outcome->answered);
    EXPECT_THAT(outcome->lost_sids, ElementsAre(999));
    outcome.reset();
  }
  EXPECT_EQ(linkd_->Received<Noted>(ann).front().text, "hello");

  ASSERT_TRUE(server.provider().links().CheckSession({linkd_->link_name(), ann}, done).ok());
  {
    MutexLock lock(mutex);
    while (!outcome) changed.Wait(mutex);
    EXPECT_TRUE(outcome->answered);
    EXPECT_THAT(outcome->lost_sids, IsEmpty());
  }
  EXPECT_THAT(linkd_->client(ann).frames, SizeIs(1));
}

TEST_F(ProviderTest, SendsFailWithoutTheirGateway) {
  DemoServer& server = StartBoth();
  Links& links = server.provider().links();

  const Result<void> sent = links.Send({"10.0.0.1_1", 1}, EncodeOneWayFrame<Noted>({}));

  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(sent.error().message(), HasSubstr("10.0.0.1_1"));
  EXPECT_FALSE(links.Send({linkd_->link_name(), 1}, "no frame").ok());
}

TEST_F(ProviderTest, BroadcastsToThoseThatHaveLoggedIn) {
  DemoServer& server = StartBoth();
  Links& links = server.provider().links();
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t bob = linkd_->AddClient("bob");
  ASSERT_TRUE(links.SetUserState({linkd_->link_name(), ann}, {.context = "1"}).ok());

  links.Broadcast(EncodeOneWayFrame<Noted>({.text = "all"}), false);

  ASSERT_TRUE(linkd_->Await([&] { return !linkd_->Received<Noted>(ann).empty(); }));
  EXPECT_THAT(linkd_->Received<Noted>(bob), IsEmpty());
}

// Seed 001, dynamic binding: by the program, for one client, until it unbinds.
TEST_F(ProviderTest, BindsADynamicModuleForOneClient) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t bob = linkd_->AddClient("bob");
  const LinkAddress address{linkd_->link_name(), ann};
  EXPECT_EQ(linkd_->Call<Move>(ann, {}).result_code, result_code::kProviderNotExist);

  DemoMap::Enter(server.provider().links(), address);
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(ann).bound.contains(kMap); }));

  EXPECT_EQ(linkd_->Call<Move>(ann, {.text = "north"}).result.text, "north");
  EXPECT_EQ(linkd_->Call<Move>(bob, {}).result_code, result_code::kProviderNotExist);

  const std::int32_t modules[] = {kMap};
  ASSERT_TRUE(server.provider().links().Unbind(address, modules, nullptr).ok());
  EXPECT_TRUE(linkd_->Await([&] { return !linkd_->client(ann).bound.contains(kMap); }));
}

// Section 9, defect 20: whatever became of the old connection, a new one works.
TEST_F(ProviderTest, IntroducesItselfAgainAfterALostConnection) {
  StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  linkd_->Call<Add>(ann, {.count = 1});

  linkd_->CloseServers();
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->story().size() == 8; }));

  EXPECT_EQ(linkd_->Call<Add>(ann, {.count = 1}).result.count, 2);
}

TEST_F(ProviderTest, TriesAgainWhenAGatewayRefusesToBind) {
  StartLinkd().RefuseBinds(2);
  StartServer();

  ASSERT_TRUE(linkd_->AwaitServers(kGame, 1));

  EXPECT_TRUE(linkd_->Call<Echo>(linkd_->AddClient("ann"), {}).ok());
}

// As gateways do when another process says that it is this server.
TEST_F(ProviderTest, SaysSoWhenGatewaysCloseItsConnectionsAgainAndAgain) {
  const zeze::testing::CapturedLog log;
  StartBoth({.server_id = 7});
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_THAT(log.lines(), Not(Contains(HasSubstr("same server id"))));
    linkd_->CloseServers();
    ASSERT_TRUE(linkd_->Await([&] { return linkd_->story().size() == 4 * (i + 1); }));
  }

  EXPECT_THAT(log.lines(),
              Contains(AllOf(StartsWith("error: gateway "), HasSubstr("same server id (7)"))));
}

TEST_F(ProviderTest, SaysSoWhenAnotherKindOfServerHasItsModules) {
  const zeze::testing::CapturedLog log;
  StartLinkd().RefuseBinds(1, Zeze::Builtin::Provider::Bind::OfOtherServers);
  StartServer();

  ASSERT_TRUE(linkd_->AwaitServers(kGame, 1)) << "it asks again until the others are gone";

  EXPECT_THAT(log.lines(), Contains(AllOf(StartsWith("error: gateway 127.0.0.1:"),
                                          HasSubstr("another kind of server"))));
}

// An answer finds its client also when the connection to the gateway was lost meanwhile.
TEST_F(ProviderTest, AnswersThroughANewConnection) {
  DemoServer& server = StartBoth();
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t request = linkd_->Request<Wait>(ann, {.text = "late"});
  server.game.gate.AwaitWaiting(1);
  linkd_->CloseServers();
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->story().size() == 8; }));

  server.game.gate.Open();

  EXPECT_EQ(linkd_->AwaitAnswer<Wait>(ann, request)->result.text, "late");
}

TEST_F(ProviderTest, FindsGatewaysThatComeLater) {
  DemoServer& server = StartServer();
  StartLinkd();
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 1));
  FakeLinkd second(io_, agent_.get());
  ASSERT_TRUE(second.AwaitServers(kGame, 1));

  EXPECT_THAT(server.provider().links().names(), SizeIs(2));
  EXPECT_TRUE(second.Call<Echo>(second.AddClient("ann"), {}).ok());
}

TEST_F(ProviderTest, IsNotChosenBeforeItIsReady) {
  StartLinkd();
  servers_.push_back(std::make_unique<DemoServer>(registry_, DemoOptions{}));
  servers_[0]->Start(/*ready=*/false);
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->story().size() == 3; }));
  const std::int64_t ann = linkd_->AddClient("ann");
  EXPECT_EQ(linkd_->Call<Echo>(ann, {}).result_code, result_code::kProviderNotExist);

  servers_[0]->provider().SetReady(true);
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 1));
  EXPECT_TRUE(linkd_->Call<Echo>(ann, {}).ok());

  // Those it has stay.
  servers_[0]->provider().SetReady(false);
  ASSERT_TRUE(linkd_->AwaitServers(kGame, 0));
  EXPECT_TRUE(linkd_->Call<Echo>(ann, {}).ok());
  EXPECT_EQ(linkd_->Call<Echo>(linkd_->AddClient("bob"), {}).result_code,
            result_code::kProviderNotExist);
}

TEST_F(ProviderTest, RefusesAPrefixThatOthersCannotCut) {
  DemoServer server(registry_, {});
  Provider provider(server.application(), io_, server.agent(), {.name_prefix = "Demo"});

  const Result<void> started = provider.Start();

  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), HasSubstr("'#'"));
}

TEST_F(ProviderTest, RefusesTwoHandlersOfOneProtocol) {
  DemoServer server(registry_, {});
  Provider provider(server.application(), io_, server.agent(), {});
  provider.AddModule(server.game);
  provider.AddModule(server.game);

  const Result<void> started = provider.Start();

  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), HasSubstr("both handle protocol demo.Game"));
}

}  // namespace
}  // namespace zeze::arch
