// Offline timers, sentence by sentence of what is promised, for accounts and roles.

#include "zeze/arch/online_timer/offline_timers.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Timer.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online_timer/login_timer_wire.h"
#include "zeze/arch/online_timer/testing/login_timers_fixture.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/registry/messages.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

template <typename Side>
class OfflineTimersTest : public LoginTimersTest<Side> {
 protected:
  // How many timers are stored at all.
  std::size_t Stored() {
    std::size_t count = 0;
    EXPECT_TRUE(this->server->timers.tIndexs.Walk([&](auto&, auto&) { return ++count > 0; }).ok());
    return count;
  }
  std::size_t Indexed() {
    std::size_t count = 0;
    EXPECT_TRUE(
        Side::OfflineTable(*this->server).Walk([&](auto&, auto&) { return ++count > 0; }).ok());
    return count;
  }

  // A server whose logout event schedules a timer named "harvest".
  static TimedSetup HarvestsAfterLogout(TimedSetup setup = {}) {
    setup.prepare = [](TimedServer& server) {
      Side::LoginsOf(server).On(
          LoginChange::kLogout, {.in_transaction = [&](Transaction& tx, const auto& login) {
            const Result<bool> scheduled = Side::Offline(server).ScheduleNamed(
                tx, login.key, "harvest", TimerSpec::After("count", 10s));
            EXPECT_TRUE(scheduled.ok()) << scheduled.error().message();
            return 0;
          }});
    };
    return setup;
  }
};
TYPED_TEST_SUITE(OfflineTimersTest, Sides);

// --- what the documents say ---

TYPED_TEST(OfflineTimersTest, Seed002RegisteredOnlyWhileOffline) {
  this->Open();
  const auto never = this->TrySchedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_EQ(never.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(never.error().message(), HasSubstr("has never logged in"));

  this->LogIn();
  const auto online = this->TrySchedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_EQ(online.error().code(), ErrorCode::kConflict);
  EXPECT_THAT(online.error().message(), HasSubstr("is logged in on server 1"));
  TypeParam::LinkBroken(*this->server, this->link);  // Not logged out yet.
  EXPECT_FALSE(this->TrySchedule(this->Offline(), TimerSpec::After("count", 1s)).ok());

  this->LogInAgain();
  this->LogOut();
  EXPECT_THAT(this->Schedule(this->Offline(), TimerSpec::After("count", 1s)), HasSubstr("@"));
  this->Pass(1s);
  EXPECT_EQ(this->server->told.count(), 1U);
}

TYPED_TEST(OfflineTimersTest, Seed002ALoginEndsAllOfThem) {
  TimedServer& s = this->Open();
  this->BeOffline();
  for (int i = 0; i < 5; ++i) this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_EQ(this->Stored(), 5U);
  EXPECT_EQ(this->Indexed(), 1U);

  this->LogIn();

  EXPECT_EQ(this->Stored(), 0U);
  EXPECT_EQ(this->Indexed(), 0U);
  EXPECT_EQ(s.timers.statistics().armed, 0U);
  this->LogOut();
  this->Pass(5s);
  EXPECT_EQ(s.told.count(), 0U);
}

TYPED_TEST(OfflineTimersTest, AReLoginEndsAllOfThem) {
  TimedServer& s = this->Open();
  this->BeOffline();
  this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  this->LogInAgain();
  EXPECT_EQ(this->Stored(), 0U);
  this->Pass(5s);
  EXPECT_EQ(s.told.count(), 0U);
}

TYPED_TEST(OfflineTimersTest, Seed002RegisteredInTheLogoutEvent) {
  TimedServer& s = this->Open(this->HarvestsAfterLogout());
  this->BeOffline();
  EXPECT_EQ(this->Find(this->Offline(), "harvest")->next_time_ms, this->Now() + 10'000);
  this->Pass(10s);
  EXPECT_THAT(s.told.Await(1), ElementsAre("offline harvest"));
}

TYPED_TEST(OfflineTimersTest, Seed002MoreMayBeRegisteredWhileOffline) {
  TimedServer& s = this->Open(this->HarvestsAfterLogout());
  this->BeOffline();
  this->Pass(5s);
  this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_EQ(this->Count(this->Offline()), 2U);
  this->Pass(10s);
  EXPECT_EQ(s.told.Await(2).size(), 2U);
}

// The older login ends, and a newer one begins, in one transaction.
TYPED_TEST(OfflineTimersTest, ALoginThatReplacesAnotherLeavesNone) {
  TimedServer& s = this->Open(this->HarvestsAfterLogout());
  this->LogIn();
  this->LogIn();
  EXPECT_EQ(this->Stored(), 0U);
  EXPECT_EQ(this->Indexed(), 0U);
  this->Pass(20s);
  EXPECT_EQ(s.told.count(), 0U);
}

TYPED_TEST(OfflineTimersTest, Seed002TheyAreStored) {
  TimedServer& s = this->Open(this->HarvestsAfterLogout({.memory = false}));
  this->BeOffline();
  s.Save();
  s.Crash();
  TimedServer& next = this->Open(this->HarvestsAfterLogout({.memory = false}));
  this->Pass(9s);
  EXPECT_EQ(next.told.count(), 0U);
  this->Pass(1s);
  EXPECT_THAT(next.told.Await(1), ElementsAre("offline harvest"));
  EXPECT_EQ(next.Effects("offline harvest"), 1);
}

// The logout is that of the stop.
TYPED_TEST(OfflineTimersTest, AnOrderlyStopRegistersThem) {
  TimedServer& s = this->Open(this->HarvestsAfterLogout({.memory = false}));
  this->LogIn();
  s.Stop();
  TimedServer& next = this->Open(this->HarvestsAfterLogout({.memory = false}));
  this->Pass(10s);
  EXPECT_THAT(next.told.Await(1), ElementsAre("offline harvest"));
}

// A server crashes while the user is logged in: whoever ends the login, has the timers.
TYPED_TEST(OfflineTimersTest, WhoTakesOverTheLoginRegistersThem) {
  TimedServer& s = this->Open(this->HarvestsAfterLogout({.memory = false}));
  this->LogIn();
  s.Save();
  s.Crash();
  TimedServer& other = this->Open(this->HarvestsAfterLogout({.server_id = 2, .memory = false}));
  EXPECT_FALSE(this->Find(this->Offline(), "harvest"));
  EXPECT_EQ(this->Logins().LogoutAllOf(1).value(), 1U);
  EXPECT_EQ(this->Find(this->Offline(), "harvest")->server_id, 2);
  this->Pass(10s);
  EXPECT_THAT(other.told.Await(1), ElementsAre("offline harvest"));
}

TYPED_TEST(OfflineTimersTest, AnotherServerTakesThemOver) {
  TimedServer& s = this->Open(this->HarvestsAfterLogout({.memory = false}));
  this->BeOffline();
  s.Save();
  const std::int64_t serial = s.timers.tNodeRoot.ReadCopy(1).value()->LoadSerialNo;
  s.Crash();
  TimedServer& other = this->Open(this->HarvestsAfterLogout({.server_id = 2, .memory = false}));
  EXPECT_EQ(other.timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  ASSERT_TRUE(other.timers.AwaitLoaded(20s));
  this->Pass(10s);
  EXPECT_THAT(other.told.Await(1), ElementsAre("offline harvest"));
  EXPECT_EQ(this->Indexed(), 0U);
}

// "When somebody logged out on A and then logs in on B, A's timers are canceled": whoever has them.
TYPED_TEST(OfflineTimersTest, Seed002ALoginOnAnotherServerEndsThoseOfTheFirst) {
  TimedServer& s = this->Open(this->HarvestsAfterLogout({.memory = false}));
  this->BeOffline();
  EXPECT_EQ(this->Find(this->Offline(), "harvest")->server_id, 1);
  s.Stop();
  this->Open({.server_id = 2, .memory = false});
  this->LogIn();
  EXPECT_EQ(this->Stored(), 0U);
  this->server->Stop();
  TimedServer& back = this->Open(this->HarvestsAfterLogout({.memory = false}));
  this->Pass(20s);
  EXPECT_EQ(back.told.count(), 0U);
}

TYPED_TEST(OfflineTimersTest, Seed002AllThatALogoutRegistersAreOnOneServer) {
  TimedServer& s = this->Open({.server_id = 4});
  this->BeOffline();
  for (int i = 0; i < 3; ++i) this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {
    const auto* timers = TypeParam::OfflineTable(s).Get(tx, TypeParam::TableKey());
    ASSERT_EQ(timers->OfflineTimers.size(), 3U);  // One record has them all.
    for (const auto& [id, server_id] : timers->OfflineTimers) EXPECT_EQ(server_id, 4);
  }));
}

TYPED_TEST(OfflineTimersTest, Seed002TheirNumberIsLimited) {
  TimedServer& s = this->Open({.options = {.offline_timers_max = 3}});
  this->BeOffline();
  const std::string first = this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  for (int i = 0; i < 2; ++i) this->Schedule(this->Offline(), TimerSpec::After("count", 2s));
  const auto refused = this->TrySchedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_EQ(refused.error().code(), ErrorCode::kOverloaded);
  EXPECT_THAT(refused.error().message(), HasSubstr("has 3 already"));
  EXPECT_EQ(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 1s)).error().code(),
            ErrorCode::kOverloaded);
  EXPECT_EQ(this->Stored(), 3U);
  this->Pass(1s);  // One has ended.
  EXPECT_EQ(s.Effects("offline " + first), 1);
  EXPECT_TRUE(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 1s)).value());
}

TYPED_TEST(OfflineTimersTest, TheLimitIs200UnlessSaidOtherwise) {
  this->Open();
  this->BeOffline();
  for (int i = 0; i < 200; ++i) this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_FALSE(this->TrySchedule(this->Offline(), TimerSpec::After("count", 1s)).ok());
}

TYPED_TEST(OfflineTimersTest, ALimitOf0AllowsNone) {
  this->Open({.options = {.offline_timers_max = 0}});
  this->BeOffline();
  const auto refused = this->TrySchedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_EQ(refused.error().code(), ErrorCode::kOverloaded);
  EXPECT_FALSE(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 1s)).ok());
  EXPECT_EQ(this->Stored(), 0U);
}

TYPED_TEST(OfflineTimersTest, Seed002TheyCannotGoOnForEver) {
  TimedServer& s = this->Open();
  this->BeOffline();
  for (const TimerSpec& endless :
       {TimerSpec::Every("count", 1s, 1s), TimerSpec::Cron("count", "0 0 5 * * ?")}) {
    const auto refused = this->TrySchedule(this->Offline(), endless);
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr("give it times or an end time"));
  }
  TimerSpec twice = TimerSpec::Every("count", 1s, 1s);
  twice.times = 2;
  this->Schedule(this->Offline(), twice);
  TimerSpec today = TimerSpec::Cron("count", "0 0 5 * * ?", "UTC");
  today.end_time_ms = this->Now() + 30 * 3'600'000;
  this->Schedule(this->Offline(), today);
  for (int i = 0; i < 4; ++i) this->Pass(1s);
  EXPECT_EQ(s.told.count(), 2U);
  this->Pass(5h);
  this->Pass(24h);
  this->Pass(24h);
  EXPECT_EQ(s.told.count(), 4U);
  EXPECT_EQ(this->Stored(), 0U);
  EXPECT_EQ(this->Indexed(), 0U);
}

TYPED_TEST(OfflineTimersTest, Seed002TheEndIsPartOfTheLoginTransaction) {
  std::atomic<bool> refuse = true;
  TimedServer& s = this->Open({.prepare = [&](TimedServer& of) {
    TypeParam::LoginsOf(of).On(
        LoginChange::kLogin,
        {.in_transaction = [&](Transaction&, const auto&) { return refuse ? 5 : 0; }});
  }});
  refuse = false;
  this->BeOffline();
  const std::string id = this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  refuse = true;
  EXPECT_EQ(this->TryLogIn(this->links.Connect("g1")), 5);
  EXPECT_EQ(this->Count(this->Offline()), 1U);  // Refused: nothing has happened.
  this->Pass(1s);
  EXPECT_EQ(s.Effects("offline " + id), 1);
}

// A login on a server that knows nothing of offline timers, and the logout from it: the stored
// version is not that of the last login any more.
TYPED_TEST(OfflineTimersTest, Seed002TheVersionOfTheLoginGuardsThem) {
  TimedServer& s = this->Open({.memory = false});
  this->BeOffline();
  const std::string id = this->Schedule(this->Offline(), TimerSpec::After("count", 10s));
  ASSERT_TRUE(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 99s)).value());
  s.Stop();
  this->Open({.server_id = 2, .memory = false, .with_timers = false});
  this->BeOffline();
  this->server->Stop();

  TimedServer& back = this->Open({.memory = false, .options = {.offline_timers_max = 2}});
  EXPECT_TRUE(this->Find(this->Offline(), id));  // Still there,
  this->Pass(10s);
  EXPECT_EQ(back.told.count(), 0U);  // but it does not run, and ends.
  EXPECT_FALSE(this->Find(this->Offline(), id));
  EXPECT_EQ(this->Count(this->Offline()), 1U);
  // The name is free for this time, and old ones do not count.
  EXPECT_TRUE(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 1s)).value());
  this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  EXPECT_EQ(this->Count(this->Offline()), 2U);
  this->Pass(1s);
  EXPECT_EQ(back.told.count(), 2U);
}

// --- handlers ---

TYPED_TEST(OfflineTimersTest, AHandlerKnowsWhoseTimerItIsAndKeepsData) {
  std::vector<std::int64_t> seen;
  TimedServer& s = this->Open({.prepare = [&](TimedServer& of) {
    TypeParam::Offline(of).RegisterHandler(
        "sum", [&](Transaction& tx, auto& timer) -> std::int64_t {
          EXPECT_EQ(timer.key(), TypeParam::TheKey());
          EXPECT_EQ(timer.login_version(), 1);
          EXPECT_EQ(timer.id(), "sum");
          const std::int64_t value = timer.data().template As<BCount>()->NextId;
          timer.SetData(AnyBean::Of(BCount{.NextId = value + 1}));
          if (timer.happened_times() == 0) timer.SetNextTime(timer.now_ms() + 5000);
          tx.AfterCommit([&, value] {
            seen.push_back(value);
            of.told.Add("sum");
          });
          return 0;
        });
  }});
  this->BeOffline();
  TimerSpec spec = TimerSpec::Every("sum", 1s, 1s, AnyBean::Of(BCount{.NextId = 5}));
  spec.times = 2;
  ASSERT_TRUE(this->ScheduleNamed(this->Offline(), "sum", spec).value());
  this->Pass(1s);
  EXPECT_EQ(this->Find(this->Offline(), "sum")->data.template As<BCount>()->NextId, 6);
  EXPECT_EQ(this->Find(this->Offline(), "sum")->handler, "sum");
  this->Pass(4s);
  EXPECT_EQ(s.told.count(), 1U);
  this->Pass(1s);
  s.told.Await(2);
  EXPECT_THAT(seen, ElementsAre(5, 6));
}

TYPED_TEST(OfflineTimersTest, AHandlerThatThrowsIsTriedAgainThenParked) {
  std::atomic<bool> fails = true;
  TimedServer& s = this->Open(
      {.timers = {.retries = 1}, .extra = [&](Transaction&, TimerContext&) -> std::int64_t {
         if (fails) throw std::runtime_error("no");
         return 0;
       }});
  this->BeOffline();
  const std::string id = this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  this->Pass(1s);
  EXPECT_EQ(this->Find(this->Offline(), id)->failed_times, 1);
  EXPECT_EQ(s.Effects("offline " + id), 0);
  this->Pass(1s);
  EXPECT_TRUE(this->Find(this->Offline(), id)->parked);
  fails = false;
  EXPECT_EQ(0, s.Call([&](Transaction& tx) { EXPECT_TRUE(s.timers.Resume(tx, id)); }));
  this->Pass(1ms);
  EXPECT_EQ(s.Effects("offline " + id), 1);
  EXPECT_EQ(this->Indexed(), 0U);
}

TYPED_TEST(OfflineTimersTest, AParkedOneEndsWithTheNextLogin) {
  this->Open({.timers = {.retries = 0},
              .extra = [](Transaction&, TimerContext&) -> std::int64_t { return 9; }});
  this->BeOffline();
  const std::string id = this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  this->Pass(1s);
  EXPECT_TRUE(this->Find(this->Offline(), id)->parked);
  this->LogIn();
  EXPECT_EQ(this->Stored(), 0U);
}

// As after a step back to an older program: that is no fault of the timer.
TYPED_TEST(OfflineTimersTest, OneWithoutAHandlerHereWaitsForAProgramThatHasIt) {
  const TimedSetup newer{.memory = false, .prepare = [](TimedServer& of) {
                           TypeParam::Offline(of).RegisterHandler(
                               "new", [&](Transaction& tx, auto& timer) {
                                 of.effects.GetOrAdd(tx, std::string(timer.id()))->NextId += 1;
                                 return result_code::kSuccess;
                               });
                         }};
  TimedServer* s = &this->Open(newer);
  this->BeOffline();
  const std::string id = this->Schedule(this->Offline(), TimerSpec::After("new", 1s));
  s->Stop();
  this->Open({.memory = false, .timers = {.retries = 1}});
  for (int i = 0; i < 10; ++i) this->Pass(1s);
  EXPECT_EQ(this->Find(this->Offline(), id)->failed_times, 0);
  EXPECT_FALSE(this->Find(this->Offline(), id)->parked);
  this->server->Stop();
  s = &this->Open(newer);
  this->Pass(1s);
  EXPECT_EQ(s->Effects(id), 1);
  EXPECT_EQ(this->Indexed(), 0U);
}

TYPED_TEST(OfflineTimersTest, AHandlerMayCancelOrRegisterAnew) {
  TimedServer& s =
      this->Open({.extra = [this](Transaction& tx, TimerContext& timer) -> std::int64_t {
        EXPECT_EQ(timer.id(), "again");
        EXPECT_TRUE(this->Offline().Cancel(tx, this->key, "again"));
        const auto scheduled =
            this->Offline().ScheduleNamed(tx, this->key, "again", TimerSpec::After("count", 7s));
        return scheduled.ok() && scheduled.value() ? 0 : 1;
      }});
  this->BeOffline();
  TimerSpec spec = TimerSpec::Every("count", 1s, 1s);
  spec.times = 5;
  ASSERT_TRUE(this->ScheduleNamed(this->Offline(), "again", spec).value());
  this->Pass(1s);
  this->Pass(6s);
  EXPECT_EQ(s.Effects("offline again"), 1);
  this->Pass(1s);
  EXPECT_EQ(s.Effects("offline again"), 2);
  EXPECT_EQ(this->Count(this->Offline()), 1U);
}

TYPED_TEST(OfflineTimersTest, OneOfANameForEachUser) {
  TimedServer& s = this->Open();
  this->BeOffline();
  EXPECT_TRUE(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 1s)).value());
  EXPECT_FALSE(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 9s)).value());
  EXPECT_FALSE(this->ScheduleNamed(this->Offline(), "@x", TimerSpec::After("count", 1s)).ok());
  EXPECT_THAT(this->TrySchedule(this->Offline(), TimerSpec::After("nobody", 1s)).error().message(),
              HasSubstr("no handler \"nobody\""));
  EXPECT_TRUE(this->Cancel(this->Offline(), "x"));
  EXPECT_FALSE(this->Cancel(this->Offline(), "x"));
  EXPECT_FALSE(this->Cancel(this->Offline(), "@1"));
  EXPECT_EQ(this->Indexed(), 0U);
  this->Pass(9s);
  EXPECT_EQ(s.told.count(), 0U);
}

// --- the database that is shared with the peer ---

TYPED_TEST(OfflineTimersTest, StoredAsThePeerStoresThem) {
  using Wire = internal::LoginTimerWire<typename TypeParam::Key>;
  TimedServer& s = this->Open();
  this->BeOffline();
  const std::string id =
      this->Schedule(this->Offline(), TimerSpec::After("count", 1s, AnyBean::Of(BCount{})));
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {
    const TimerInfo timer = *s.timers.Find(tx, id);
    EXPECT_THAT(timer.handler, HasSubstr("$OfflineHandle"));
    const auto custom = timer.data.template As<typename Wire::OfflineCustom>();
    ASSERT_TRUE(custom);
    EXPECT_EQ(custom->TimerName, id);
    EXPECT_EQ(Wire::KeyOf(*custom), this->key);
    EXPECT_EQ(custom->LoginVersion, 1);
    EXPECT_EQ(custom->HandleName, "count");
    EXPECT_TRUE(custom->CustomData.template Is<BCount>());
  }));
}

// --- defects of the peer ---

// Those of accounts compare with the login version, and never fire; of both a failure of the
// infrastructure cancels.
TYPED_TEST(OfflineTimersTest, PeerDefect25And27TheyFireInTheEnd) {
  std::atomic<int> runs = 0;
  TimedServer& s = this->Open(
      {.timers = {.retries = 0}, .extra = [&](Transaction&, TimerContext&) -> std::int64_t {
         return ++runs < 4 ? result_code::kBusy : 0;
       }});
  for (int i = 0; i < 3; ++i) this->BeOffline();
  const std::string id = this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  for (int i = 0; i < 4; ++i) this->Pass(5s);
  EXPECT_EQ(s.Effects("offline " + id), 1);
  EXPECT_EQ(runs, 4);
}

// --- sets, and forgotten clients ---

class RoleOfflineTimersTest : public OfflineTimersTest<RoleSide> {};

TEST_F(RoleOfflineTimersTest, EachSetHasItsOwn) {
  TimedServer& s = Open();
  BeOffline();
  const LinkAddress battle = links.Connect("g1");
  const auto in_battle = [&](Transaction& tx, Session& session) {
    return s.roles.ProcessLogin(tx, session, {.RoleId = 7, .OnlineSetName = "battle"});
  };
  ASSERT_TRUE(ScheduleNamed(Offline(), "x", TimerSpec::After("count", 1s)).value());
  ASSERT_EQ(s.Request(battle, "", in_battle), 0);
  ASSERT_EQ(s.Request(battle, "7",
                      [&](Transaction& tx, Session& session) {
                        return s.roles.ProcessLogout(tx, session);
                      }),
            0);
  ASSERT_TRUE(
      ScheduleNamed(s.role_timers->offline("battle"), "x", TimerSpec::After("count", 1s)).value());
  Pass(1s);
  EXPECT_THAT(s.told.Await(2), UnorderedElementsAre("offline x", "battle offline x"));
  Schedule(s.role_timers->offline("battle"), TimerSpec::After("count", 1s));
  LogIn();  // To the first set: the other has its own.
  Pass(1s);
  EXPECT_EQ(s.told.Await(3).size(), 3U);
}

class AccountOfflineTimersTest : public OfflineTimersTest<AccountSide> {};

TEST_F(AccountOfflineTimersTest, ThoseOfAForgottenClientEnd) {
  TimedServer& s = Open();
  BeOffline();
  Schedule(Offline(), TimerSpec::After("count", 10s));
  for (const char* client : {"a", "b", "c"}) {  // clients_max is 3.
    ASSERT_EQ(s.Request(links.Connect("g1"), "",
                        [&](Transaction& tx, Session& session) {
                          return s.accounts.ProcessLogin(tx, session, {.ClientId = client});
                        }),
              0);
  }
  EXPECT_EQ(TrySchedule(Offline(), TimerSpec::After("count", 1s)).error().code(),
            ErrorCode::kNotFound);
  Pass(10s);
  EXPECT_EQ(s.told.count(), 0U);
  EXPECT_EQ(Stored(), 0U);
  EXPECT_EQ(Indexed(), 0U);
}

TEST(OfflineTimerNames, OfTwoUsersAreNeverTheSame) {
  using Wire = internal::LoginTimerWire<AccountKey>;
  const auto name = [](const char* account, const char* client, const char* timer) {
    return Wire::FullName({.Account = account, .ClientId = client}, "", timer);
  };
  EXPECT_NE(name("a", "b", "c.d"), name("a", "b.c", "d"));
  EXPECT_NE(name("a.1.b", "c", "d"), name("a", "b", "1.c.d"));
  using RoleWire = internal::LoginTimerWire<RoleId>;
  EXPECT_NE(RoleWire::FullName(7, "a", "b.c"), RoleWire::FullName(7, "a.b", "c"));
  EXPECT_NE(RoleWire::FullName(7, "", "1.a.b"), RoleWire::FullName(7, "a", "b"));
}

}  // namespace
}  // namespace zeze::arch
