// What a lost server leaves behind is ended by those that live: all of it, once, and nothing else.

#include "zeze/arch/online/internal/take_over.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/arch/online/login.h"
#include "zeze/arch/online/testing/login_story.h"
#include "zeze/arch/online/testing/role_servers.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/result.h"

namespace zeze::arch {
namespace {

using internal::JudgeLostServer;
using internal::LostServer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

constexpr std::int32_t kLost = 1;

TEST(JudgeLostServer, ByWhatTheDatabaseSays) {
  EXPECT_EQ(JudgeLostServer({.epoch = 5, .live = true}, 5), LostServer::kGone);
  EXPECT_EQ(JudgeLostServer({.epoch = 5, .live = false}, 5), LostServer::kGone);
  EXPECT_EQ(JudgeLostServer({.epoch = 6, .live = false}, 5), LostServer::kGone);  // Evicted.
  EXPECT_EQ(JudgeLostServer({.epoch = 6, .live = true}, 5), LostServer::kBack);
  EXPECT_EQ(JudgeLostServer({.epoch = 0, .live = false}, 5), LostServer::kStranger);
}

// Server 1 is the lost one.
class TakeOverTest : public ::testing::Test {
 protected:
  TakeOverTest()
      : servers(3, {.lives = 2, .prepare = [this](RoleServer& server) {
                      RecordChanges(server, story, Stages::kFirst);
                    }}) {
    servers.LoseDirect(true);
  }

  void LogIn(std::size_t server, RoleId role) {
    ASSERT_EQ(servers[server].LogIn(role, servers.links.Connect("g1")), 0);
  }

  Story story;
  RoleServers servers;
};

TEST_F(TakeOverTest, WhoHasLoggedInElsewhereOrAgainStays) {
  for (const RoleId role : {7, 8, 9}) LogIn(0, role);
  LogIn(1, 8);

  const auto log_in_again = [&]() -> Result<bool> {
    LogIn(0, 9);
    LogIn(0, 10);
    story.Take();
    return true;
  };
  EXPECT_EQ(servers[1].logins.LogoutAllOf(kLost, log_in_again).value(), 2);

  EXPECT_THAT(story.Take(), ElementsAre("logout 7 v1 at 2"));
  EXPECT_EQ(servers[1].Find(8)->version, 2);
  EXPECT_EQ(servers[1].Find(9)->version, 2);
  EXPECT_EQ(servers[1].Find(10)->version, 1);
  // And are found when that server is lost, too.
  EXPECT_EQ(servers[2].logins.LogoutAllOf(kLost).value(), 2);
  EXPECT_FALSE(servers[1].Find(9));
  EXPECT_FALSE(servers[1].Find(10));
  EXPECT_TRUE(servers[1].Find(8));
}

TEST_F(TakeOverTest, AServerThatIsBackIsLeftAlone) {
  LogIn(0, 7);
  story.Take();

  EXPECT_EQ(servers[1].logins.LogoutAllOf(kLost, [] { return Result<bool>(false); }).value(), 0);
  EXPECT_EQ(servers[1]
                .logins
                .LogoutAllOf(
                    kLost, [] { return Result<bool>(Error(ErrorCode::kUnavailable, "database")); })
                .error()
                .code(),
            ErrorCode::kUnavailable);

  EXPECT_THAT(story.Take(), IsEmpty());
  EXPECT_TRUE(servers[1].Find(7));
}

TEST_F(TakeOverTest, SeveralMayDoItAtOnce) {
  constexpr RoleId kRoles = 50;
  std::vector<std::string> expected;
  for (RoleId role = 1; role <= kRoles; ++role) LogIn(0, role);
  story.Take();

  std::vector<std::thread> threads;
  for (const std::size_t server : {1U, 2U, 1U, 2U}) {
    threads.emplace_back(
        [this, server] { EXPECT_TRUE(servers[server].logins.LogoutAllOf(kLost).ok()); });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<std::string> ended;
  for (const std::string& line : story.Take()) ended.push_back(line.substr(0, line.find(" at ")));
  for (RoleId role = 1; role <= kRoles; ++role) {
    expected.push_back(fmt::format("logout {} v1", role));
  }
  EXPECT_THAT(ended, UnorderedElementsAreArray(expected));
}

TEST_F(TakeOverTest, WhatCannotBeHadYetIsReportedAndEndedLater) {
  for (const RoleId role : {7, 8}) LogIn(0, role);
  servers[1].kind.SetOutOfReach({7});
  story.Take();

  EXPECT_EQ(servers[1].logins.LogoutAllOf(kLost).error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(story.Take(), ElementsAre("logout 8 v1 at 2"));

  servers[1].kind.SetOutOfReach({});
  EXPECT_EQ(servers[1].logins.LogoutAllOf(kLost).value(), 1);
  EXPECT_THAT(story.Take(), ElementsAre("logout 7 v1 at 2"));
  EXPECT_EQ(servers[1].logins.LogoutAllOf(kLost).value(), 0);
}

// Each try may wait for as long as a lease.
TEST_F(TakeOverTest, GivesUpSoonWhenNothingCanBeHad) {
  std::set<RoleId> roles;
  for (RoleId role = 1; role <= 100; ++role) {
    LogIn(0, role);
    roles.insert(role);
  }
  servers[1].kind.SetOutOfReach(roles);
  const int before = servers[1].kind.reads();

  EXPECT_FALSE(servers[1].logins.LogoutAllOf(kLost).ok());

  EXPECT_LE(servers[1].kind.reads() - before, 5);
  servers[1].kind.SetOutOfReach({});
  EXPECT_EQ(servers[1].logins.LogoutAllOf(kLost).value(), 100);
}

// A server that starts again does not wait for its own lease.
TEST_F(TakeOverTest, AStartGoesOnInTheBackground) {
  LogIn(0, 7);
  GuardedRoleKind& next_life = servers.NextLife(0).kind;
  next_life.SetOutOfReach({7});
  story.Take();

  ASSERT_TRUE(servers.Restart(0));
  servers.Settle();
  EXPECT_TRUE(servers[1].Find(7));

  next_life.SetOutOfReach({});
  servers.clock.Advance(OnlineOptions().suspect_period);
  while (servers[1].Find(7)) servers.Settle();
  EXPECT_THAT(story.Take(), ElementsAre("logout 7 v1 at 1"));
}

}  // namespace
}  // namespace zeze::arch
