// What a Global does about servers that are in the way of others (rules 59 to 66).

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/lease.h"
#include "zeze/global/messages.h"
#include "zeze/global/testing/global_server_fixture.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// Server 1 has "a", server 3 wants it.
class GlobalLeasesTest : public GlobalServerTest {
 protected:
  explicit GlobalLeasesTest(const GlobalOptions& machine = {}) : GlobalServerTest(machine) {
    Start();
    Login(1, {{.key = "a", .right = Right::kModify}});
    Login(2, {});
    Login(3, {});
    renewing = {1, 2, 3};
    speaking = {1, 2, 3};
    Wait(seconds(2), 3);
    Take();
  }
  void Ask() { global.OnAcquire(now, 3, ++requests_, "a", Right::kModify); }
  // Asks until it is granted, while the first server is in the given state.
  std::chrono::nanoseconds TimeUntilGranted() {
    const auto begin = now;
    Ask();
    while (true) {
      Wait(kStep, 3);
      for (const std::string& one : Take()) {
        if (one == "grant 3 a 2") return now - begin;
        if (one == "refuse 3 a") Ask();
        if (one == "evict 1" && !last_unless.renewed_since.has_value() &&
            !last_unless.yielded_since.has_value()) {
          ADD_FAILURE() << "nothing could save it";
        }
        if (one == "evict 1") Evicted(1);
      }
      if (now > begin + std::chrono::minutes(5)) return std::chrono::minutes(5);
    }
  }
  void LoginAgain(std::int64_t serial, std::int64_t yield_count, std::vector<HeldRight> rights) {
    global.OnLogin(now, 11,
                   {.server_id = 1,
                    .epoch = kEpoch,
                    .start_term = kTerm - 1,
                    .rights = std::move(rights),
                    .serial = serial,
                    .yields = yield_count});
    global.OnServerRow(now, 1, Fence::ServerRow{.epoch = kEpoch, .live = true});
  }

 private:
  std::uint64_t requests_ = 0;
};

// Rules 60 and 61. Fenced and freed at about the same moment: a lease after its last renewal.
TEST_F(GlobalLeasesTest, ADeadServerIsEvictedWhenItsLeaseIsOverAndItsRightsAreFreeThen) {
  global.OnClosed(now, 1);
  renewing.erase(1);
  const auto granted = TimeUntilGranted();
  EXPECT_GE(granted, options.lease.duration - seconds(1));
  EXPECT_LE(granted, options.lease.free_after() + seconds(2));
}

// Hole 8. It is this Global that is cut off, not they: they renew their leases.
TEST_F(GlobalLeasesTest, Hole08AServerThatRenewsItsLeaseIsAskedToYieldAndNotEvicted) {
  global.OnClosed(now, 1);
  global.OnClosed(now, 2);
  Ask();
  Wait(options.acquire_wait + seconds(1), 3);
  EXPECT_THAT(Take(), ElementsAre("want 1", "refuse 3 a"));
  EXPECT_THAT(alerts, Not(Contains("evicted")));
}

TEST_F(GlobalLeasesTest, NobodyIsEvictedThatIsInNobodysWay) {
  global.OnClosed(now, 1);
  renewing.erase(1);
  Wait(std::chrono::minutes(5), 3);
  EXPECT_THAT(Take(), IsEmpty());
}

// The majority is dead: each is judged by its own renewals.
TEST_F(GlobalLeasesTest, TheLastServerGetsWhatTheDeadMajorityHad) {
  global.OnClosed(now, 1);
  global.OnClosed(now, 2);
  renewing = {3};
  EXPECT_LE(TimeUntilGranted(), options.lease.free_after() + seconds(2));
}

// A database that does not answer says nothing about the servers.
TEST_F(GlobalLeasesTest, WhileTheDatabaseIsAwayNobodyIsEvicted) {
  global.OnClosed(now, 1);
  renewing.erase(1);
  Ask();
  for (int i = 0; i < 200; ++i) {
    now += kStep;
    global.OnKeepAlive(now, 3);
    global.Tick(now);
    if (std::exchange(list_asked, false)) {
      global.OnLiveServers(now, Error(ErrorCode::kUnavailable, "away"));
    }
  }
  EXPECT_THAT(said, Not(Contains("evict 1")));
}

TEST_F(GlobalLeasesTest, AServerThatHasRenewedMeanwhileIsNotEvicted) {
  global.OnClosed(now, 1);
  renewing.erase(1);
  Ask();
  for (int i = 0; i < 100 && !last_unless.renewed_since.has_value(); ++i) Wait(kStep, 3);
  EXPECT_EQ(last_unless.renewed_since, rows[1].renew_seq);
  rows[1].renew_seq += 1;
  global.OnEvicted(now, 1, kEpoch, EvictOutcome::kRenewed);
  renewing.insert(1);
  LoginAgain(2, 0, {{.key = "a", .right = Right::kModify}});
  Look();
  EXPECT_TRUE(global.LoggedIn(11));
  EXPECT_THAT(alerts, Not(Contains("evicted")));
}

// Rule 61: it is connected, but its rights are of no use to anybody.
TEST_F(GlobalLeasesTest, AServerThatIsCutFromTheDatabaseIsToldOfAndEvictedAfterAWhile) {
  renewing.erase(1);
  const auto begin = now;
  Ask();
  std::optional<std::chrono::nanoseconds> told;
  while (!told && now < begin + std::chrono::minutes(1)) {
    Wait(kStep, 3);
    for (const std::string& alert : alerts) {
      if (alert == "cut_from_database") told = now - begin;
    }
  }
  ASSERT_TRUE(told.has_value());
  EXPECT_LE(*told, options.lease.duration + seconds(2));
  Take();
  while (!last_unless.renewed_since.has_value() && now < begin + std::chrono::minutes(5)) {
    Wait(kStep, 3);
    // It answers what it can: not that it has saved.
    if (!global.LoggedIn(1)) Login(1, {{.key = "a", .right = Right::kModify}});
    for (const std::string& one : Take()) {
      if (one == "refuse 3 a") Ask();
    }
  }
  EXPECT_GE(now - begin, options.database_wait - seconds(2));
  EXPECT_LE(now - begin, options.database_wait + seconds(2));
}

TEST_F(GlobalLeasesTest, TellsOnceOfAServerThatRenewsAndDoesNotAnswer) {
  Ask();
  for (int i = 0; i < 200; ++i) {
    Wait(kStep, 3);
    if (!global.LoggedIn(1)) Login(1, {{.key = "a", .right = Right::kModify}});
    Take();
    Ask();
  }
  EXPECT_EQ(std::count(alerts.begin(), alerts.end(), "stuck"), 1);
  EXPECT_THAT(alerts, Not(Contains("evicted")));
}

// Rule 66.
TEST_F(GlobalLeasesTest, WhatAServerHasYieldedIsGranted) {
  global.OnClosed(now, 1);
  Ask();
  Wait(seconds(1), 3);
  EXPECT_THAT(Take(), ElementsAre("want 1"));
  yields = {{.server_id = 1, .epoch = kEpoch, .mark = {.number = 1, .term = kTerm}}};
  Wait(kStep, 3);
  EXPECT_THAT(Take(), ElementsAre("grant 3 a 2"));
  EXPECT_THAT(alerts, Contains("yielded"));

  LoginAgain(2, 1, {});
  EXPECT_TRUE(global.LoggedIn(11));
  EXPECT_TRUE(wanted.empty());
}

TEST_F(GlobalLeasesTest, AMarkFromBeforeTheLastLoginSaysNothing) {
  yields = {{.server_id = 1, .epoch = kEpoch, .mark = {.number = 1, .term = kTerm}}};
  LoginAgain(2, 1, {{.key = "a", .right = Right::kModify}});
  ASSERT_TRUE(global.LoggedIn(11));
  global.OnClosed(now, 11);
  Ask();
  Wait(seconds(2), 3);
  EXPECT_THAT(Take(), ElementsAre("want 1"));
}

TEST_F(GlobalLeasesTest, ALoginFromBeforeTheMarkIsNotAccepted) {
  global.OnClosed(now, 1);
  Ask();
  Wait(seconds(1), 3);
  yields = {{.server_id = 1, .epoch = kEpoch, .mark = {.number = 1, .term = kTerm}}};
  Wait(kStep, 3);
  Take();
  LoginAgain(2, 0, {{.key = "a", .right = Right::kModify}});
  EXPECT_FALSE(global.LoggedIn(11));
  EXPECT_THAT(Take(), ElementsAre("reply 11 1 "));
}

// Hole 33. It was stuck on a connection that the server gave up; the newer one has been granted
// more since.
TEST_F(GlobalLeasesTest, Hole33ALoginThatWasOvertakenChangesNothing) {
  LoginAgain(2, 0, {{.key = "a", .right = Right::kModify}});
  global.OnAcquire(now, 11, 1, "b", Right::kModify);
  EXPECT_THAT(Take(), ElementsAre("grant 11 b 2"));
  global.OnLogin(now, 12,
                 {.server_id = 1, .epoch = kEpoch, .start_term = 1, .rights = {}, .serial = 1});
  EXPECT_FALSE(global.LoggedIn(12));
  EXPECT_TRUE(global.LoggedIn(11));
  Take();
  global.OnAcquire(now, 3, 7, "b", Right::kModify);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(GlobalLeasesTest, AServerThatRenewsButNeitherComesBackNorYieldsIsEvicted) {
  global.OnClosed(now, 1);
  const auto begin = now;
  Ask();
  while (last_unless.yielded_since == std::nullopt) {
    Wait(kStep, 3);
    for (const std::string& one : Take()) {
      if (one == "refuse 3 a") Ask();
    }
    ASSERT_LE(now, begin + options.passive_wait + seconds(2));
  }
  EXPECT_GE(now - begin, options.passive_wait);
  EXPECT_EQ(last_unless.yielded_since->number, 0);

  // It yields at the last moment.
  yields = {{.server_id = 1, .epoch = kEpoch, .mark = {.number = 1, .term = kTerm}}};
  Ask();
  global.OnEvicted(now, 1, kEpoch, EvictOutcome::kYielded);
  Wait(kStep, 3);
  EXPECT_THAT(Take(), Contains("grant 3 a 2"));
  EXPECT_THAT(alerts, Not(Contains("evicted")));
}

// Rule 62.
TEST_F(GlobalLeasesTest, TheRightsOfAServerThatHasEndedForCertainAreFreeAtTheLoginOfTheNext) {
  global.OnClosed(now, 1);
  Ask();
  rows[1].epoch = kEpoch + 1;  // Nobody listed the one before.
  global.OnLogin(
      now, 11,
      {.server_id = 1, .epoch = kEpoch + 1, .start_term = kTerm, .rights = {}, .serial = 1});
  global.OnServerRow(now, 1, Fence::ServerRow{.epoch = kEpoch + 1, .live = true});
  Look();
  EXPECT_THAT(Take(), ElementsAre("grant 3 a 2"));
}

TEST_F(GlobalLeasesTest, AServerThatHasEndedInOrderAndCouldNotSaySoIsInNobodysWay) {
  global.OnClosed(now, 1);
  rows.erase(1);
  Ask();
  Wait(seconds(2), 3);
  EXPECT_THAT(Take(), Contains("grant 3 a 2"));
}

// A Global that has restarted.
class GlobalRestartedTest : public GlobalServerTest {
 protected:
  GlobalRestartedTest() {
    Start();
    renewing = {1, 2, 3};
    Login(2, {});
    Login(3, {});
    global.OnAcquire(now, 3, 1, "a", Right::kModify);
  }
};

TEST_F(GlobalRestartedTest, WaitsForAServerThatAnnouncesSlowly) {
  for (int i = 0; i < 400; ++i) {
    global.OnLoginPart(now, 1, kEpoch, nullptr);
    global.OnServerRow(now, 1, Fence::ServerRow{.epoch = kEpoch, .live = true});
    Wait(kStep, 3);
  }
  EXPECT_THAT(Take(), ElementsAre("want 1"));
  Login(1, {});
  EXPECT_THAT(Take(), ElementsAre("grant 3 a 2"));
}

TEST_F(GlobalRestartedTest, AMarkForThisTermIsAnAnnouncementOfNothing) {
  Wait(seconds(1), 3);
  yields = {{.server_id = 1, .epoch = kEpoch, .mark = {.number = 4, .term = kTerm - 1}}};
  Wait(seconds(1), 3);
  EXPECT_FALSE(global.serving()) << "the mark was for the Global before";
  yields.front().mark = {.number = 5, .term = kTerm};
  Wait(seconds(1), 3);
  EXPECT_TRUE(global.serving());
  EXPECT_THAT(Take(), ElementsAre("want 1", "grant 3 a 2"));
}

TEST_F(GlobalRestartedTest, GrantsAgainWhenTheLeaseOfADeadServerIsOver) {
  renewing.erase(1);
  const auto begin = now;
  while (true) {
    Wait(kStep, 3);
    const std::vector<std::string> answer = Take();
    if (answer == std::vector<std::string>{"evict 1"}) Evicted(1);
    if (global.serving()) break;
    ASSERT_LE(now, begin + options.lease.free_after() + seconds(3));
  }
  EXPECT_GE(now - begin, options.lease.free_after());
}

}  // namespace
}  // namespace zeze::global
