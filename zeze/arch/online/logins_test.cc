#include "zeze/arch/online/logins.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Online.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/testing/fake_links.h"
#include "zeze/arch/online/testing/login_story.h"
#include "zeze/arch/online/testing/role_servers.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;

constexpr RoleId kRole = 7;
constexpr std::string_view kHelloFrame = "frame 11011.918874807";

std::int64_t Code(std::int32_t code) {
  return ModuleErrorCode(11013, code);
}

class LoginsTest : public ::testing::Test {
 protected:
  explicit LoginsTest(OnlineOptions options = {})
      : servers(3, options, [this](RoleServer& server) {
          RecordChanges(server, story, Stages::kFirst);
          timers.Attach(server);
        }) {}

  LinkAddress Connect(const std::string& gateway = "g1") { return servers.links.Connect(gateway); }

  Story story;
  Timers timers;
  RoleServers servers;
};

TEST_F(LoginsTest, LogsInAndOut) {
  const LinkAddress link = Connect();

  EXPECT_EQ(servers[0].LogIn(kRole, link), 0);

  const std::optional<Login<RoleId>> login = servers[0].Find(kRole);
  ASSERT_TRUE(login);
  EXPECT_EQ(login->account, "ann");
  EXPECT_EQ(login->link, link);
  EXPECT_EQ(login->version, 1);
  EXPECT_EQ(login->server_id, 1);
  EXPECT_EQ(login->state, LoginState::kLoggedIn);
  EXPECT_EQ(servers[0].logins.online(), 1);

  EXPECT_EQ(servers[0].LogOut(kRole, link), 0);

  EXPECT_FALSE(servers[0].Find(kRole));
  EXPECT_EQ(servers[0].logins.online(), 0);
  EXPECT_THAT(servers.links.Story(link), ElementsAre("state 7", "state "));
  EXPECT_THAT(story.Take(), ElementsAre("login 7 v1 at 1", "local 7 v1 at 1", "logout 7 v1 at 1"));
}

TEST_F(LoginsTest, OnlyTheConnectionThatLoggedInCanLogOut) {
  const LinkAddress link = Connect();
  const LinkAddress other = Connect();
  EXPECT_EQ(servers[0].LogOut(kRole, link), Code(7));
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);

  EXPECT_EQ(servers[0].LogOut(kRole, other), Code(7));

  EXPECT_TRUE(servers[0].Find(kRole));
}

TEST_F(LoginsTest, ALaterLoginEndsTheEarlierOneAndKicksIt) {
  const LinkAddress old_link = Connect("g1");
  const LinkAddress new_link = Connect("g2");
  ASSERT_EQ(servers[0].LogIn(kRole, old_link), 0);
  story.Take();

  EXPECT_EQ(servers[1].LogIn(kRole, new_link), 0);

  EXPECT_THAT(servers.links.Story(old_link), ElementsAre("state 7", "kick 4"));
  EXPECT_EQ(servers[0].Find(kRole)->link, new_link);
  EXPECT_EQ(servers[0].Find(kRole)->server_id, 2);
  servers.Settle();
  EXPECT_EQ(servers[0].logins.online(), 0);
  EXPECT_EQ(servers[1].logins.online(), 1);
  EXPECT_THAT(story.Take(),
              UnorderedElementsAre("logout 7 v1 at 2", "login 7 v2 at 2", "local 7 v1 at 1"));
}

// A client has lost its connection while its login waited for a record, and has logged in on a new
// connection. If the old login is done last, it replaces the new one; a client that is told that it
// logged in elsewhere would stay away for good, although there is no other one.
TEST_F(LoginsTest, ALateLoginOfAClientThatHasGoneLetsTheReplacedOneComeBack) {
  const LinkAddress late = Connect("g1");
  const LinkAddress live = Connect("g2");
  servers.links.Disconnect(late);
  ASSERT_EQ(servers[0].LogIn(kRole, live), 0);

  EXPECT_EQ(servers[1].LogIn(kRole, late), 0);

  EXPECT_THAT(servers.links.Story(live), ElementsAre("state 7", "kick 7"));
  servers.Settle();
  EXPECT_EQ(servers[0].LogIn(kRole, Connect("g2")), 0);
  EXPECT_EQ(servers[0].Find(kRole)->version, 3);
}

TEST_F(LoginsTest, ALateLoginThroughAGatewayThatHasGoneLetsTheReplacedOneComeBack) {
  const LinkAddress late = Connect("g1");
  const LinkAddress live = Connect("g2");
  servers.links.SetReachable("g1", false);
  ASSERT_EQ(servers[0].LogIn(kRole, live), 0);

  EXPECT_EQ(servers[1].LogIn(kRole, late), 0);

  EXPECT_THAT(servers.links.Story(live), ElementsAre("state 7", "kick 7"));
}

TEST_F(LoginsTest, ALoginThroughAGatewayThatDoesNotAnswerLetsTheReplacedOneComeBack) {
  const LinkAddress old_link = Connect("g1");
  const LinkAddress new_link = Connect("g2");
  servers.links.SetSilent("g2", true);
  ASSERT_EQ(servers[0].LogIn(kRole, old_link), 0);

  EXPECT_EQ(servers[1].LogIn(kRole, new_link), 0);

  EXPECT_THAT(servers.links.Story(old_link), ElementsAre("state 7", "kick 7"));
}

TEST_F(LoginsTest, ALoginOnTheSameConnectionIsNotKicked) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);

  EXPECT_EQ(servers[0].LogIn(kRole, link), 0);

  EXPECT_THAT(servers.links.Story(link), ElementsAre("state 7", "state 7"));
  EXPECT_EQ(servers[0].logins.online(), 1);
  EXPECT_THAT(story.Take(), ElementsAre("login 7 v1 at 1", "local 7 v1 at 1", "logout 7 v1 at 1",
                                        "login 7 v2 at 1"));
}

TEST_F(LoginsTest, ARoleBelongsToTheAccountThatFirstLoggedIn) {
  ASSERT_EQ(servers[0].LogIn(kRole, Connect(), "ann"), 0);

  EXPECT_EQ(servers[0].LogIn(kRole, Connect(), "bob"), result_code::kLogicError);

  EXPECT_EQ(servers[0].Find(kRole)->account, "ann");
}

TEST_F(LoginsTest, AnotherRoleOnTheConnectionLogsTheFirstOut) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);

  EXPECT_EQ(servers[0].LogIn(8, link), 0);

  EXPECT_FALSE(servers[0].Find(kRole));
  EXPECT_TRUE(servers[0].Find(8));
  EXPECT_EQ(servers[0].logins.online(), 1);
}

// A client may come to another server when its own stops offering the module.
TEST_F(LoginsTest, AnotherRoleOnTheConnectionLogsTheFirstOutOnWhicheverServer) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);

  EXPECT_EQ(servers[1].LogIn(8, link), 0);

  EXPECT_FALSE(servers[0].Find(kRole));
  EXPECT_TRUE(servers[0].Find(8));
}

TEST_F(LoginsTest, ABrokenLinkLogsOutAfterTheDelay) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  story.Take();

  servers[0].logins.LinkBroken(link);

  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLinkBroken);
  EXPECT_THAT(story.Take(), ElementsAre("broken 7 v1 at 1"));
  timers.Fire();
  servers.Settle();
  EXPECT_FALSE(servers[0].Find(kRole));
  EXPECT_THAT(story.Take(), ElementsAre("local 7 v1 at 1", "logout 7 v1 at 1"));
}

TEST_F(LoginsTest, TheDelayIsOverAfterAReLogin) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers[0].logins.LinkBroken(link);

  EXPECT_EQ(servers[1].LogInAgain(kRole, Connect(), 0), 0);
  timers.Fire();
  servers.Settle();

  EXPECT_EQ(servers[0].Find(kRole)->version, 2);
  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLoggedIn);
}

TEST_F(LoginsTest, ABrokenLinkOfAnOldLoginIsIgnored) {
  const LinkAddress old_link = Connect();
  const LinkAddress new_link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, old_link), 0);
  ASSERT_EQ(servers[0].LogIn(kRole, new_link), 0);

  servers[0].logins.LinkBroken(old_link);
  servers[1].logins.LinkBroken(new_link);  // A server where the client is not logged in.

  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLoggedIn);
  EXPECT_THAT(timers.timers, IsEmpty());
}

TEST_F(LoginsTest, ALinkIsBrokenOnce) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);

  servers[0].logins.LinkBroken(link);
  servers[0].logins.LinkBroken(link);

  EXPECT_THAT(timers.timers, SizeIs(1));
}

// The gateway had told nobody: the connection broke before it knew who logs in on it.
TEST_F(LoginsTest, AClientThatWasGoneWhenItsLoginWasDoneIsNoticedAtOnce) {
  const LinkAddress link = Connect();
  servers.links.Disconnect(link);

  EXPECT_EQ(servers[0].LogIn(kRole, link), 0);
  servers.Settle();

  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLinkBroken);
}

TEST_F(LoginsTest, AReplacedClientWhoseKickWasLostIsNobody) {
  const LinkAddress old_link = Connect("g1");
  ASSERT_EQ(servers[0].LogIn(kRole, old_link), 0);
  servers.links.SetReachable("g1", false);
  ASSERT_EQ(servers[1].LogIn(kRole, Connect("g2")), 0);

  servers[0].Request(servers[0].SessionOf(old_link, "7"), [&](Transaction& tx, Session& session) {
    EXPECT_FALSE(servers[0].logins.LoginOf(tx, session));
    return 0;
  });
  EXPECT_EQ(servers[0].LogOut(kRole, old_link), Code(7));

  EXPECT_EQ(servers[0].Find(kRole)->version, 2);
}

TEST_F(LoginsTest, ALostRedirectLeavesLocalDataThatNobodySeesAndThatIsVerifiedAway) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers[0].Request(servers[0].SessionOf(link, "7"), [&](Transaction& tx, Session&) {
    EXPECT_TRUE(servers[0].logins.SetLocal(tx, kRole, "note", BReportError{.code = 5}));
    return 0;
  });
  servers.LoseDirect(true);
  ASSERT_EQ(servers[1].LogIn(kRole, Connect()), 0);
  story.Take();
  EXPECT_EQ(servers[0].logins.online(), 1);

  servers[0].Request(servers[0].SessionOf(link, "7"), [&](Transaction& tx, Session&) {
    EXPECT_FALSE(servers[0].logins.GetLocal<BReportError>(tx, kRole, "note"));
    EXPECT_FALSE(servers[0].logins.SetLocal(tx, kRole, "note", BReportError{}));
    return 0;
  });
  servers[0].logins.Verify();
  servers.Settle();

  EXPECT_EQ(servers[0].logins.online(), 0);
  EXPECT_THAT(story.Take(), ElementsAre("local 7 v1 at 1"));
}

TEST_F(LoginsTest, ALoginReturnsToAServerThatStillHasItsOldLocalData) {
  ASSERT_EQ(servers[0].LogIn(kRole, Connect()), 0);
  servers.LoseDirect(true);
  ASSERT_EQ(servers[1].LogIn(kRole, Connect()), 0);
  servers.LoseDirect(false);
  story.Take();

  ASSERT_EQ(servers[0].LogIn(kRole, Connect()), 0);
  servers.Settle();

  EXPECT_EQ(servers[0].logins.online(), 1);
  EXPECT_EQ(servers[1].logins.online(), 0);
  EXPECT_THAT(story.Take(), UnorderedElementsAre("local 7 v1 at 1", "logout 7 v2 at 1",
                                                 "login 7 v3 at 1", "local 7 v2 at 2"));
}

TEST_F(LoginsTest, LocalDataLiveAndEndWithTheLogin) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  const auto session = servers[0].SessionOf(link, "7");

  servers[0].Request(session, [&](Transaction& tx, Session&) {
    servers[0].logins.SetLocal(tx, kRole, "note", BReportError{.code = 5, .desc = "five"});
    return 0;
  });
  servers[0].Request(session, [&](Transaction& tx, Session&) {
    EXPECT_EQ(servers[0].logins.GetLocal<BReportError>(tx, kRole, "note")->desc, "five");
    EXPECT_FALSE(servers[0].logins.GetLocal<BReportError>(tx, kRole, "other"));
    EXPECT_FALSE(servers[0].logins.GetLocal<Zeze::Builtin::Online::BLogin>(tx, kRole, "note"));
    EXPECT_FALSE(servers[1].logins.GetLocal<BReportError>(tx, kRole, "note"));
    return 0;
  });
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers[0].Request(session, [&](Transaction& tx, Session&) {
    EXPECT_FALSE(servers[0].logins.GetLocal<BReportError>(tx, kRole, "note"));
    return 0;
  });
}

TEST_F(LoginsTest, AKickEndsTheLogin) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);

  servers.application->Call("kick", [&](Transaction& tx) {
    servers[1].logins.Kick(tx, kRole, 5, "cheater");
    return 0;
  });

  EXPECT_FALSE(servers[0].Find(kRole));
  EXPECT_THAT(servers.links.Story(link), ElementsAre("state 7", "kick 5"));
}

TEST_F(LoginsTest, TakesOverFromAServerThatHasGone) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  ASSERT_EQ(servers[0].LogIn(8, Connect()), 0);
  ASSERT_EQ(servers[0].LogIn(0, Connect()), 0);
  ASSERT_EQ(servers[1].LogIn(9, Connect()), 0);
  ASSERT_EQ(servers[1].LogIn(8, Connect()), 0);  // Has moved since.
  story.Take();

  ASSERT_TRUE(servers[2].logins.LogoutAllOf(1).ok());

  EXPECT_FALSE(servers[2].Find(kRole));
  EXPECT_FALSE(servers[2].Find(0));
  EXPECT_TRUE(servers[2].Find(8));
  EXPECT_TRUE(servers[2].Find(9));
  EXPECT_THAT(servers.links.Story(link), ElementsAre("state 7", "kick 7"));
  EXPECT_EQ(servers[2].logins.LogoutAllOf(1).value(), 0);
}

TEST_F(LoginsTest, AStopLogsOutWhoIsHere) {
  ASSERT_EQ(servers[0].LogIn(kRole, Connect()), 0);
  ASSERT_EQ(servers[1].LogIn(8, Connect()), 0);
  story.Take();

  servers[0].logins.Stop();

  EXPECT_FALSE(servers[0].Find(kRole));
  EXPECT_TRUE(servers[1].Find(8));
  EXPECT_THAT(story.Take(), ElementsAre("local 7 v1 at 1", "logout 7 v1 at 1"));
}

TEST_F(LoginsTest, SendsGoOnceToEachGateway) {
  std::vector<LinkAddress> clients;
  for (RoleId role = 0; role < 6; ++role) {
    clients.push_back(Connect(role % 2 == 0 ? "g1" : "g2"));
    ASSERT_EQ(servers[static_cast<std::size_t>(role % 3)].LogIn(role, clients.back()), 0);
  }
  servers.links.Forget();

  const std::vector<RoleId> roles = {0, 1, 2, 3, 4, 5, 99};
  EXPECT_EQ(servers[0].logins.Send<ReportError>(roles, {.code = 1}), 6);

  EXPECT_EQ(servers.links.send_count(), 2);
  for (const LinkAddress& client : clients) {
    EXPECT_THAT(servers.links.Story(client), ElementsAre(kHelloFrame));
  }
}

TEST_F(LoginsTest, ASendToALostConnectionBreaksTheLink) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers.Settle();
  servers.links.Disconnect(link);

  servers[1].logins.Send<ReportError>(std::vector<RoleId>{kRole}, {});
  servers.Settle();

  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLinkBroken);
  EXPECT_EQ(servers[0].logins.Send<ReportError>(std::vector<RoleId>{kRole}, {}), 0);
  timers.Fire();
  servers.Settle();
  EXPECT_FALSE(servers[0].Find(kRole));
}

// A gateway that cannot be reached for a moment logs nobody out, nor does it break a link.
// Whoever sends finds out; the delay is then his to keep, and may end with him.
TEST_F(LoginsTest, ADelayThatWasLostWithAnotherServerBeginsAgain) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers.links.Disconnect(link);
  servers[1].logins.Send<ReportError>(std::vector<RoleId>{kRole}, {});
  servers.Settle();
  ASSERT_EQ(servers[0].Find(kRole)->state, LoginState::kLinkBroken);
  ASSERT_EQ(timers.timers.at(0).server, &servers[1]);
  timers.timers.clear();

  servers[0].logins.Verify();
  servers.Settle();
  timers.Fire();
  servers.Settle();

  EXPECT_FALSE(servers[0].Find(kRole));
  EXPECT_EQ(servers[0].logins.online(), 0);
}

TEST_F(LoginsTest, Defect25ATransientLossOfTheGatewayChangesNothing) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers.Settle();

  servers.links.SetReachable("g1", false);
  EXPECT_EQ(servers[0].logins.Send<ReportError>(std::vector<RoleId>{kRole}, {}), 0);
  servers.clock.Advance(std::chrono::seconds(30));
  servers[0].logins.CheckSuspects();
  servers.Settle();
  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLoggedIn);

  servers.links.SetReachable("g1", true);
  servers[0].logins.CheckSuspects();
  servers.clock.Advance(std::chrono::seconds(59));
  servers[0].logins.CheckSuspects();
  servers.Settle();
  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLoggedIn);
  EXPECT_EQ(servers[0].logins.Send<ReportError>(std::vector<RoleId>{kRole}, {}), 1);
}

TEST_F(LoginsTest, AGatewayThatStaysAwayLogsItsClientsOutAfterTheDelay) {
  ASSERT_EQ(servers[0].LogIn(kRole, Connect("g1")), 0);
  ASSERT_EQ(servers[0].LogIn(8, Connect("g2")), 0);
  ASSERT_EQ(servers[1].LogIn(9, Connect("g1")), 0);
  servers.Settle();
  servers[0].logins.CheckSuspects();

  // Nobody sends anything: that the gateway has gone is enough.
  servers.links.SetReachable("g1", false);
  servers[0].logins.CheckSuspects();
  servers.clock.Advance(std::chrono::seconds(60));
  servers[0].logins.CheckSuspects();
  servers.Settle();

  EXPECT_FALSE(servers[0].Find(kRole));
  EXPECT_TRUE(servers[0].Find(8));
  EXPECT_TRUE(servers[0].Find(9));  // Server 2 decides.
}

TEST_F(LoginsTest, AGatewayThatDoesNotAnswerIsAskedAgain) {
  const LinkAddress link = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers.Settle();
  servers.links.SetSilent("g1", true);
  servers[0].logins.Send<ReportError>(std::vector<RoleId>{kRole}, {});
  servers.clock.Advance(std::chrono::seconds(30));
  servers[0].logins.CheckSuspects();
  servers.links.SetSilent("g1", false);
  servers.links.Disconnect(link);

  servers[0].logins.CheckSuspects();
  servers.Settle();

  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLinkBroken);
}

TEST_F(LoginsTest, VerifyFindsConnectionsThatHaveGoneSilently) {
  const LinkAddress link = Connect();
  const LinkAddress other = Connect();
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  ASSERT_EQ(servers[0].LogIn(8, other), 0);
  servers.Settle();
  servers.links.Disconnect(link);

  servers[0].logins.Verify();
  servers.Settle();

  EXPECT_EQ(servers[0].Find(kRole)->state, LoginState::kLinkBroken);
  EXPECT_EQ(servers[0].Find(8)->state, LoginState::kLoggedIn);
}

TEST_F(LoginsTest, CountsWhoIsHereAndWhoIsNew) {
  ASSERT_EQ(servers[0].LogIn(kRole, Connect()), 0);
  ASSERT_EQ(servers[0].LogIn(8, Connect()), 0);
  EXPECT_EQ(servers[0].logins.TakeCount().online_new, 2);
  ASSERT_EQ(servers[0].LogIn(8, Connect()), 0);

  const Logins<RoleId>::Count count = servers[0].logins.TakeCount();
  EXPECT_EQ(count.online, 2);
  EXPECT_EQ(count.online_new, 1);
}

}  // namespace
}  // namespace zeze::arch
