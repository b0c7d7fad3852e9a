// Handlers of the application: their stages, their order, and actions that are transmitted.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdBase.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/testing/login_story.h"
#include "zeze/arch/online/testing/role_servers.h"
#include "zeze/base/executor.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Zeze::Builtin::LinkdBase::ReportError;

constexpr RoleId kRole = 7;
constexpr std::string_view kHelloFrame = "frame 11011.918874807";
constexpr std::string_view kNotifyFrame = "frame 11013.1941465447";

TEST(LoginHandlers, ThreeStagesInOrder) {
  Story story;
  RoleServers servers(1, {},
                      [&](RoleServer& server) { RecordChanges(server, story, Stages::kAll); });
  const LinkAddress link = servers.links.Connect("g1");

  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers.Settle();
  EXPECT_THAT(story.Take(),
              ElementsAre("login 7 v1 at 1", "login+ 7 v1 at 1", "login++ 7 v1 at 1"));

  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers.Settle();
  std::vector<std::string> first;
  std::vector<std::string> later;
  for (std::string& line : story.Take()) {
    (line.find('+') == std::string::npos ? first : later).push_back(std::move(line));
  }
  EXPECT_THAT(first, ElementsAre("local 7 v1 at 1", "logout 7 v1 at 1", "login 7 v2 at 1"));
  EXPECT_THAT(later, ElementsAre("local+ 7 v1 at 1", "local++ 7 v1 at 1", "logout+ 7 v1 at 1",
                                 "logout++ 7 v1 at 1", "login+ 7 v2 at 1", "login++ 7 v2 at 1"));
}

TEST(LoginHandlers, AStopRunsTheLaterStages) {
  Story story;
  RoleServers servers(1, {},
                      [&](RoleServer& server) { RecordChanges(server, story, Stages::kAll); });
  ASSERT_EQ(servers[0].LogIn(kRole, servers.links.Connect("g1")), 0);
  servers.Settle();
  story.Take();

  servers[0].logins.Stop();

  EXPECT_THAT(story.Take(), ::testing::Contains("logout++ 7 v1 at 1"));
}

TEST(LoginHandlers, ARefusedLoginChangesNothing) {
  bool refuse = false;
  std::vector<LogoutReason> logouts;
  RoleServers servers(1, {}, [&](RoleServer& server) {
    server.logins.On(LoginChange::kLogin, {.in_transaction = [&](Transaction&, const auto&) {
                       return std::int64_t{refuse ? 99 : 0};
                     }});
    server.logins.On(LoginChange::kLogout,
                     {.outside = [&](const auto& login) { logouts.push_back(login.reason); }});
  });
  const LinkAddress link = servers.links.Connect("g1");
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  refuse = true;

  EXPECT_EQ(servers[0].LogIn(kRole, servers.links.Connect("g1")), 99);
  servers.Settle();

  EXPECT_EQ(servers[0].Find(kRole)->link, link);
  EXPECT_EQ(servers[0].Find(kRole)->version, 1);
  EXPECT_EQ(servers[0].logins.online(), 1);
  EXPECT_THAT(servers.links.Story(link), ElementsAre("state 7"));
  EXPECT_THAT(logouts, IsEmpty());
}

TEST(LoginHandlers, ALogoutCannotBeRefused) {
  RoleServers servers(1, {}, [&](RoleServer& server) {
    server.logins.On(LoginChange::kLogout,
                     {.in_transaction = [&](Transaction& tx, const auto& login) {
                       server.logins.Listen(tx, login.key, "taken back");
                       return std::int64_t{99};
                     }});
  });
  const LinkAddress link = servers.links.Connect("g1");
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);

  EXPECT_EQ(servers[0].LogOut(kRole, link), 0);

  EXPECT_FALSE(servers[0].Find(kRole));
}

// As a provider does it: the handler runs on the lane of its account, and the answer follows.
void LogInAndAnswer(RoleServers& servers, const LinkAddress& link) {
  WaitGroup answered;
  answered.Add();
  ASSERT_TRUE(servers.application->one_by_one()
                  .Post(std::string_view("ann"),
                        Task("login",
                             [&] {
                               ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
                               ByteWriter answer;
                               EncodeFrame({.module_id = 11013, .protocol_id = 1}, answer);
                               ASSERT_TRUE(servers.links.Send(link, answer.view()).ok());
                               answered.Done();
                             }))
                  .ok());
  answered.Wait();
  servers.Settle();
}

TEST(LoginHandlers, TheClientHearsOfItsLoginBeforeAnythingElse) {
  RoleServers servers(1, {}, [](RoleServer& server) {
    server.logins.On(
        LoginChange::kLogin, {.in_transaction = [&server](Transaction& tx, const auto& login) {
          server.logins.Listen(tx, login.key, "mail");
          server.logins.template SendAfterCommit<ReportError>(tx, login.key, {});
          return server.logins.template SendReliable<ReportError>(tx, login.key, "mail", {});
        }});
  });
  const LinkAddress link = servers.links.Connect("g1");

  LogInAndAnswer(servers, link);

  EXPECT_THAT(servers.links.Story(link),
              ElementsAre("state 7", "frame 11013.1", kHelloFrame, kNotifyFrame));
}

// The logout of the older login is part of the newer one, and writes to the newer client.
TEST(LoginHandlers, WhatTheLogoutOfAnEarlierLoginSendsComesBehindTheAnswer) {
  RoleServers servers(1, {}, [](RoleServer& server) {
    server.logins.On(LoginChange::kLogout,
                     {.in_transaction = [&server](Transaction& tx, const auto& login) {
                       server.logins.template SendAfterCommit<ReportError>(tx, login.key, {});
                       return 0;
                     }});
  });
  ASSERT_EQ(servers[0].LogIn(kRole, servers.links.Connect("g1")), 0);
  const LinkAddress link = servers.links.Connect("g1");

  LogInAndAnswer(servers, link);

  EXPECT_THAT(servers.links.Story(link), ElementsAre("state 7", "frame 11013.1", kHelloFrame));
}

// The framework's own timer, not the test's.
TEST(LoginHandlers, TheSchedulerLogsOutAfterTheDelay) {
  WaitGroup logged_out;
  logged_out.Add();
  RoleServers servers(1, {.logout_delay = std::chrono::seconds(10)}, [&](RoleServer& server) {
    server.logins.On(LoginChange::kLogout, {.outside = [&](const auto& login) {
                       EXPECT_EQ(login.reason, LogoutReason::kLinkBroken);
                       logged_out.Done();
                     }});
  });
  const LinkAddress link = servers.links.Connect("g1");
  ASSERT_EQ(servers[0].LogIn(kRole, link), 0);
  servers[0].logins.LinkBroken(link);
  servers.Settle();
  EXPECT_TRUE(servers[0].Find(kRole));

  servers.clock.Advance(std::chrono::seconds(10));
  logged_out.Wait();

  EXPECT_FALSE(servers[0].Find(kRole));
}

// --- transmit ---

TEST(LoginTransmit, RunsWhereTheTargetIs) {
  Story story;
  RoleServers servers(3, {}, [&](RoleServer& server) {
    server.logins.OnTransmit(
        "greet", [&](Transaction& tx, RoleId sender, RoleId target, std::string_view text) {
          tx.AfterCommit([&story, line = fmt::format("{} greets {} at {}: {}", sender, target,
                                                     server.id, text)] { story.Add(line); });
          return 0;
        });
  });
  ASSERT_EQ(servers[0].LogIn(1, servers.links.Connect("g1")), 0);
  ASSERT_EQ(servers[1].LogIn(2, servers.links.Connect("g1")), 0);

  const std::vector<RoleId> targets = {1, 2, 3, 2, 1};
  EXPECT_EQ(servers[0].logins.Transmit("greet", targets, 1, "hi"), 2);
  servers.Settle();

  EXPECT_THAT(story.Take(), UnorderedElementsAre("1 greets 1 at 1: hi", "1 greets 2 at 2: hi"));
}

TEST(LoginTransmit, ATargetThatHasLeftIsLeftAlone) {
  int runs = 0;
  RoleServers servers(2, {}, [&](RoleServer& server) {
    server.logins.OnTransmit("count", [&](Transaction&, RoleId, RoleId, std::string_view) {
      ++runs;
      return 0;
    });
  });
  ASSERT_EQ(servers[0].LogIn(kRole, servers.links.Connect("g1")), 0);
  servers.LoseDirect(true);
  ASSERT_EQ(servers[1].LogIn(kRole, servers.links.Connect("g1")), 0);

  servers[0].logins.Transmitted("count", std::vector<RoleId>{kRole}, 1, "");
  servers.Settle();

  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace zeze::arch
