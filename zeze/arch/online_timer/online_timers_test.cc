// Online timers, sentence by sentence of what is promised, for accounts and roles.

#include "zeze/arch/online_timer/online_timers.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/session.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online_timer/testing/login_timers_fixture.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/wait_group.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

template <typename Side>
using OnlineTimersTest = LoginTimersTest<Side>;
TYPED_TEST_SUITE(OnlineTimersTest, Sides);

// --- what the documents say ---

TYPED_TEST(OnlineTimersTest, Seed002RegisteredOnlyWhileOnline) {
  this->Open();
  const auto refused = this->TrySchedule(this->Online(), TimerSpec::After("count", 1s));
  EXPECT_EQ(refused.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(refused.error().message(), HasSubstr("is not logged in"));

  this->LogIn();
  EXPECT_THAT(this->Schedule(this->Online(), TimerSpec::After("count", 1s)), HasSubstr("@"));
  this->LogOut();
  EXPECT_FALSE(this->TrySchedule(this->Online(), TimerSpec::After("count", 1s)).ok());
}

TYPED_TEST(OnlineTimersTest, Seed002LogoutEndsAllOfThem) {
  TimedServer& s = this->Open();
  this->LogIn();
  for (int i = 0; i < 5; ++i) this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  ASSERT_TRUE(this->ScheduleNamed(this->Online(), "one", TimerSpec::After("count", 1s)).value());
  EXPECT_EQ(this->StoredOnline(), 6U);
  EXPECT_EQ(s.timers.statistics().armed, 6U);

  this->LogOut();

  EXPECT_EQ(this->StoredOnline(), 0U);
  EXPECT_EQ(s.timers.statistics().armed, 0U);
  this->Pass(5s);
  EXPECT_EQ(s.told.count(), 0U);
}

TYPED_TEST(OnlineTimersTest, Seed002InMemoryOnlyNotStored) {
  TimedServer& s = this->Open({.memory = false});
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  s.Save();
  s.Crash();

  TimedServer& next = this->Open({.memory = false});
  EXPECT_FALSE(this->IsLoggedIn());  // The start has ended it.
  this->Pass(5s);
  EXPECT_EQ(next.told.count(), 0U);
  EXPECT_EQ(next.timers.statistics().armed, 0U);
  this->LogIn();
  this->Pass(5s);
  EXPECT_EQ(next.told.count(), 0U);
}

TYPED_TEST(OnlineTimersTest, Seed002LiveAsLongAsTheLocalData) {
  std::size_t left = 99;
  TimedServer& s = this->Open({.prepare = [&](TimedServer& of) {
    TypeParam::LoginsOf(of).On(
        LoginChange::kLocalRemoved, {.in_transaction = [&](Transaction& tx, const auto& login) {
          const auto* timers = TypeParam::LoginTable(of).Get(tx, TypeParam::TableKey());
          left = timers == nullptr ? 0 : timers->Timers.size();
          EXPECT_EQ(login.version, 1);
          return 0;
        }});
  }});
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  // The link breaks: the local data stay, and the timers.
  TypeParam::LinkBroken(s, this->link);
  this->Pass(1s);
  EXPECT_EQ(s.told.count(), 1U);
  EXPECT_EQ(this->Count(this->Online()), 1U);
  EXPECT_EQ(left, 99U);
  // Nobody comes back: both go, in one transaction.
  this->Pass(60s);
  while (this->IsLoggedIn()) this->Pass(1ms);
  EXPECT_EQ(left, 0U);
  const std::size_t before = s.told.count();
  this->Pass(10s);
  EXPECT_EQ(s.told.count(), before);
}

TYPED_TEST(OnlineTimersTest, Seed002TheirNumberIsNotLimitedByItself) {
  TimedServer& s = this->Open();
  this->LogIn();
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {
    for (int i = 0; i < 3000; ++i) {
      ASSERT_TRUE(this->Online().Schedule(tx, this->key, TimerSpec::After("count", 1s)).ok());
    }
  }));
  EXPECT_EQ(this->Count(this->Online()), 3000U);
  this->Pass(1s);
  EXPECT_EQ(s.told.Await(3000).size(), 3000U);
}

TYPED_TEST(OnlineTimersTest, ALimitIsEnforced) {
  TimedServer& s = this->Open({.options = {.online_timers_max = 2}});
  this->LogIn();
  const std::string id = this->Schedule(this->Online(), TimerSpec::After("count", 1s));
  this->Schedule(this->Online(), TimerSpec::After("count", 1s));

  const auto refused = this->TrySchedule(this->Online(), TimerSpec::After("count", 1s));
  EXPECT_EQ(refused.error().code(), ErrorCode::kOverloaded);
  EXPECT_THAT(refused.error().message(), HasSubstr("has 2 already"));
  EXPECT_EQ(this->ScheduleNamed(this->Online(), "x", TimerSpec::After("count", 1s)).error().code(),
            ErrorCode::kOverloaded);

  EXPECT_TRUE(this->Cancel(this->Online(), id));
  this->Schedule(this->Online(), TimerSpec::After("count", 1s));
  this->Pass(1s);  // Those that have ended by themselves do not count either.
  EXPECT_EQ(s.told.count(), 2U);
  this->Schedule(this->Online(), TimerSpec::After("count", 1s));
}

// --- of one login ---

TYPED_TEST(OnlineTimersTest, ALaterLoginDoesNotInheritThem) {
  TimedServer& s = this->Open();
  this->LogIn();
  const std::string first = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->LogIn();  // Replaced, on the same server.
  EXPECT_EQ(this->Count(this->Online()), 0U);
  const std::string second = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  EXPECT_NE(first, second);
  EXPECT_FALSE(this->Cancel(this->Online(), first));
  this->Pass(1s);
  EXPECT_THAT(s.told.Await(1), ElementsAre("online " + second));
  this->LogInAgain();  // A re-login is a login.
  this->Pass(5s);
  EXPECT_EQ(s.told.count(), 1U);
}

TYPED_TEST(OnlineTimersTest, AKickEndsThem) {
  TimedServer& s = this->Open();
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::After("count", 1s));
  EXPECT_EQ(0, s.Call([&](Transaction& tx) { this->Logins().Kick(tx, this->key, 9, "out"); }));
  EXPECT_EQ(this->StoredOnline(), 0U);
  this->Pass(1s);
  EXPECT_EQ(s.told.count(), 0U);
}

// The end of the login was on another server, and this one has not heard of it.
TYPED_TEST(OnlineTimersTest, Seed002DoNothingOnceTheLoginHasEndedElsewhere) {
  TimedServer& s = this->Open();
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->Schedule(this->Online(), TimerSpec::Every("count", 2s, 1s));
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {  // What the other server's transaction does here.
    if constexpr (std::is_same_v<TypeParam, RoleSide>) {
      auto shared = s.roles.tOnlineShared.Edit(tx, this->key);
      shared->LogoutVersion = shared->LoginVersion;
      shared->LoginVersion += 1;
      s.roles.tOnline.Edit(tx, this->key)->ServerId = 2;
    } else {
      auto account = s.accounts.tonline.Edit(tx, "ann");
      account->LastLoginVersion += 1;
      account->Logins.Update("phone", [](auto& online) {
        online.LogoutVersion = online.LoginVersion;
        online.LoginVersion += 1;
        online.ServerId = 2;
      });
    }
  }));
  ASSERT_TRUE(this->IsLoggedIn());
  const auto elsewhere = this->TrySchedule(this->Online(), TimerSpec::After("count", 1s));
  EXPECT_THAT(elsewhere.error().message(), HasSubstr("is logged in on server 2, not here"));
  EXPECT_EQ(this->Count(this->Online()), 0U);

  this->Pass(1s);
  EXPECT_EQ(s.told.count(), 0U);
  EXPECT_EQ(this->StoredOnline(), 0U);  // The first that was due has found out for all.
  this->Pass(5s);
  EXPECT_EQ(s.told.count(), 0U);
}

TYPED_TEST(OnlineTimersTest, AnOrderlyStopEndsThem) {
  TimedServer& s = this->Open({.memory = false});
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  s.Stop();
  TimedServer& next = this->Open({.memory = false});
  this->Pass(5s);
  EXPECT_EQ(next.told.count(), 0U);
}

TYPED_TEST(OnlineTimersTest, CountIfAndWhenTheTransactionCommits) {
  TimedServer& s = this->Open();
  this->LogIn();
  EXPECT_NE(0, s.application->Call("fails", [&](Transaction& tx) -> std::int64_t {
    EXPECT_TRUE(this->Online().Schedule(tx, this->key, TimerSpec::After("count", 1s)).ok());
    return 5;
  }));
  EXPECT_EQ(this->Count(this->Online()), 0U);
  EXPECT_EQ(s.timers.statistics().armed, 0U);
  const std::string id = this->Schedule(this->Online(), TimerSpec::After("count", 1s));
  EXPECT_NE(0, s.application->Call("fails", [&](Transaction& tx) -> std::int64_t {
    EXPECT_TRUE(this->Online().Cancel(tx, this->key, id));
    return 5;
  }));
  this->Pass(1s);
  EXPECT_THAT(s.told.Await(1), ElementsAre("online " + id));
}

// --- plans ---

TYPED_TEST(OnlineTimersTest, DelayPeriodTimesAndEnd) {
  TimedServer& s = this->Open();
  this->LogIn();
  const std::string once = this->Schedule(this->Online(), TimerSpec::After("count", 1s));
  TimerSpec twice = TimerSpec::Every("count", 1s, 2s);
  twice.times = 2;
  const std::string two = this->Schedule(this->Online(), twice);
  TimerSpec until = TimerSpec::Every("count", 1s, 1s);
  until.end_time_ms = this->Now() + 3500;
  const std::string three = this->Schedule(this->Online(), until);
  for (int i = 0; i < 10; ++i) this->Pass(500ms);
  EXPECT_EQ(s.Effects("online " + once), 1);
  EXPECT_EQ(s.Effects("online " + two), 2);
  EXPECT_EQ(s.Effects("online " + three), 3);
  EXPECT_EQ(this->StoredOnline(), 0U);
  EXPECT_EQ(this->Count(this->Online()), 0U);
}

TYPED_TEST(OnlineTimersTest, ByTheCalendar) {
  TimedServer& s = this->Open();
  this->LogIn();
  const std::string id =
      this->Schedule(this->Online(), TimerSpec::Cron("count", "0 0 5 * * ?", "UTC"));
  EXPECT_EQ(this->Find(this->Online(), id)->next_time_ms, this->Now() + 5 * 3'600'000);
  this->Pass(5h - 10ms);
  EXPECT_EQ(s.told.count(), 0U);
  this->Pass(10ms);
  EXPECT_EQ(s.told.count(), 1U);
  this->Pass(24h);
  EXPECT_EQ(s.told.count(), 2U);
}

TYPED_TEST(OnlineTimersTest, WhatWasMissedFollowsItsPolicy) {
  TimedServer& s = this->Open();
  this->LogIn();
  const auto schedule = [&](MisfirePolicy policy) {
    TimerSpec spec = TimerSpec::Every("count", 10s, 10s);
    spec.misfire = policy;
    spec.misfire_max = 3;
    return "online " + this->Schedule(this->Online(), spec);
  };
  const std::string skip = schedule(MisfirePolicy::kSkip);
  const std::string once = schedule(MisfirePolicy::kOnce);
  const std::string keep = schedule(MisfirePolicy::kOnceKeepPhase);
  const std::string all = schedule(MisfirePolicy::kAll);
  this->Pass(95s);  // At once: the process was stopped.
  for (int i = 0; i < 4; ++i) this->Pass(0ms);
  EXPECT_EQ(s.Effects(skip), 0);
  EXPECT_EQ(s.Effects(once), 1);
  EXPECT_EQ(s.Effects(keep), 1);
  EXPECT_EQ(s.Effects(all), 3);
  this->Pass(5s);  // At 100 s.
  EXPECT_EQ(s.Effects(skip), 0);
  EXPECT_EQ(s.Effects(keep), 2);
  this->Pass(5s);
  EXPECT_EQ(s.Effects(skip), 1);
}

TYPED_TEST(OnlineTimersTest, ALoginHasOneTimerOfAName) {
  TimedServer& s = this->Open();
  this->LogIn();
  EXPECT_TRUE(this->ScheduleNamed(this->Online(), "buff", TimerSpec::After("count", 1s)).value());
  EXPECT_FALSE(this->ScheduleNamed(this->Online(), "buff", TimerSpec::After("count", 9s)).value());
  EXPECT_EQ(this->Find(this->Online(), "buff")->next_time_ms, this->Now() + 1000);
  EXPECT_THAT(
      this->ScheduleNamed(this->Online(), "@x", TimerSpec::After("count", 1s)).error().message(),
      HasSubstr("begins with '@'"));
  EXPECT_FALSE(this->ScheduleNamed(this->Online(), "", TimerSpec::After("count", 1s)).ok());
  this->Pass(1s);
  EXPECT_THAT(s.told.Await(1), ElementsAre("online buff"));
  // It has ended: the name is free.
  EXPECT_TRUE(this->ScheduleNamed(this->Online(), "buff", TimerSpec::After("count", 1s)).value());
  EXPECT_TRUE(this->Cancel(this->Online(), "buff"));
  EXPECT_FALSE(this->Cancel(this->Online(), "buff"));
  EXPECT_FALSE(this->Find(this->Online(), "buff"));
  this->Pass(1s);
  EXPECT_EQ(s.told.count(), 1U);
}

TYPED_TEST(OnlineTimersTest, WhatIsWrongIsSaid) {
  this->Open();
  this->LogIn();
  EXPECT_THAT(this->TrySchedule(this->Online(), TimerSpec::After("nobody", 1s)).error().message(),
              HasSubstr("no handler \"nobody\""));
  EXPECT_EQ(this->TrySchedule(this->Online(), TimerSpec::After("count", -1s)).error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(this->TrySchedule(this->Online(), TimerSpec::Cron("count", "x")).error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(this->Count(this->Online()), 0U);
}

// --- handlers ---

TYPED_TEST(OnlineTimersTest, AHandlerKnowsWhoseTimerItIsAndKeepsData) {
  std::vector<std::int64_t> seen;
  TimedServer& s = this->Open({.prepare = [&](TimedServer& of) {
    TypeParam::Online(of).RegisterHandler("sum", [&](Transaction& tx, auto& timer) -> std::int64_t {
      EXPECT_EQ(timer.key(), TypeParam::TheKey());
      EXPECT_EQ(timer.login_version(), 1);
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
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::Every("sum", 1s, 1s, AnyBean::Of(BCount{.NextId = 5})));
  this->Pass(1s);
  this->Pass(4s);
  EXPECT_EQ(s.told.count(), 1U);
  this->Pass(1s);
  s.told.Await(2);
  EXPECT_THAT(seen, ElementsAre(5, 6));
}

TYPED_TEST(OnlineTimersTest, AHandlerThatThrowsIsTriedAgainThenParkedUntilTheLoginEnds) {
  std::atomic<int> parked = 0;
  std::atomic<bool> fails = true;
  TimedServer& s = this->Open({.timers = {.retries = 2,
                                          .on_parked =
                                              [&](const TimerInfo& timer, std::int64_t) {
                                                EXPECT_EQ(timer.failed_times, 3);
                                                ++parked;
                                              }},
                               .extra = [&](Transaction&, TimerContext&) -> std::int64_t {
                                 if (fails) throw std::runtime_error("no");
                                 return 0;
                               }});
  this->LogIn();
  const std::string id = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 10s));
  this->Pass(1s);
  EXPECT_EQ(this->Find(this->Online(), id)->failed_times, 1);
  EXPECT_EQ(s.Effects("online " + id), 0);  // Undone.
  this->Pass(1s);
  fails = false;
  this->Pass(2s);  // The third try is that of the same occurrence.
  EXPECT_EQ(s.Effects("online " + id), 1);
  EXPECT_EQ(this->Find(this->Online(), id)->failed_times, 0);

  fails = true;
  this->Pass(10s);
  this->Pass(1s);
  this->Pass(2s);
  EXPECT_TRUE(this->Find(this->Online(), id)->parked);
  EXPECT_EQ(parked, 1);
  fails = false;
  this->Pass(1min);
  EXPECT_EQ(s.Effects("online " + id), 1);
  this->LogOut();
  EXPECT_EQ(this->StoredOnline(), 0U);
}

TYPED_TEST(OnlineTimersTest, AHandlerMayCancelOrRegisterAnew) {
  this->Open({.extra = [this](Transaction& tx, TimerContext& timer) -> std::int64_t {
    if (timer.id() != "again") return 0;
    EXPECT_TRUE(this->Online().Cancel(tx, this->key, "again"));
    return this->Online().ScheduleNamed(tx, this->key, "again", TimerSpec::After("count", 7s)).ok()
               ? 0
               : 1;
  }});
  TimedServer& s = *this->server;
  this->LogIn();
  ASSERT_TRUE(this->ScheduleNamed(this->Online(), "again", TimerSpec::Every("count", 1s, 1s)).ok());
  this->Pass(1s);
  EXPECT_EQ(s.Effects("online again"), 1);
  this->Pass(6s);
  EXPECT_EQ(s.Effects("online again"), 1);
  this->Pass(1s);
  EXPECT_EQ(s.Effects("online again"), 2);
  EXPECT_EQ(this->StoredOnline(), 1U);
}

TYPED_TEST(OnlineTimersTest, AHandlerMayEndTheLogin) {
  TimedServer& s = this->Open({.extra = [this](Transaction& tx, TimerContext&) -> std::int64_t {
    this->Logins().Kick(tx, this->key, 9, "idle");
    return 0;
  }});
  this->LogIn();
  const std::string id = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->Pass(1s);
  EXPECT_EQ(s.Effects("online " + id), 1);
  EXPECT_FALSE(this->IsLoggedIn());
  this->Pass(5s);
  EXPECT_EQ(s.Effects("online " + id), 1);
  EXPECT_EQ(this->StoredOnline(), 0U);
  EXPECT_EQ(s.timers.statistics().armed, 0U);
}

TYPED_TEST(OnlineTimersTest, AWallClockThatIsSetBackIsFollowed) {
  TimedServer& s = this->Open();
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::After("count", 10s));
  this->clock.ShiftSystemTime(-5s);
  this->Pass(11s);
  EXPECT_EQ(s.told.count(), 0U);
  this->Pass(5s);
  EXPECT_EQ(s.told.count(), 1U);
}

// --- defects of the peer ---

// It cancels a timer whose transaction failed for reasons that are not the timer's.
TYPED_TEST(OnlineTimersTest, PeerDefect27AFailureOfTheInfrastructureDoesNotEndATimer) {
  std::atomic<int> runs = 0;
  TimedServer& s = this->Open(
      {.timers = {.retries = 0}, .extra = [&](Transaction&, TimerContext&) -> std::int64_t {
         if (++runs == 2) return result_code::kClosed;  // Of a connection that it has used.
         return runs < 4 ? result_code::kBusy : 0;
       }});
  this->LogIn();
  const std::string id = this->Schedule(this->Online(), TimerSpec::After("count", 1s));
  this->Pass(1s);
  EXPECT_EQ(this->Find(this->Online(), id)->failed_times, 0);
  for (int i = 0; i < 3; ++i) this->Pass(5s);
  EXPECT_EQ(s.Effects("online " + id), 1);
  EXPECT_EQ(runs, 4);
}

// What was missed comes in a burst.
TYPED_TEST(OnlineTimersTest, PeerDefect27NoBurstAfterAPause) {
  TimedServer& s = this->Open();
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->Pass(1h);
  for (int i = 0; i < 5; ++i) this->Pass(0ms);
  EXPECT_EQ(s.told.count(), 1U);
}

TYPED_TEST(OnlineTimersTest, APeriodGoesOnWhenTheWallClockIsSetBack) {
  TimedServer& s = this->Open();
  this->LogIn();
  this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->Pass(1010ms);
  s.told.Await(1);
  this->clock.ShiftSystemTime(-30min);
  this->Pass(1010ms);  // It is looked at once a second.
  EXPECT_TRUE(s.timers.AwaitLoaded(20s));
  for (int i = 0; i < 60 && s.told.count() < 4; ++i) this->Pass(1010ms);
  EXPECT_GE(s.told.count(), 4U);
}

// It ignores the key, so that timers of one key run side by side.
TYPED_TEST(OnlineTimersTest, PeerDefect25OneByOneKeyCounts) {
  std::atomic<bool> waiting = false;
  std::atomic<int> running = 0;
  TimedServer& s = this->Open({.extra = [&](Transaction&, TimerContext&) -> std::int64_t {
    EXPECT_EQ(++running, 1);
    EXPECT_FALSE(waiting);
    --running;
    return 0;
  }});
  this->LogIn();
  TimerSpec spec = TimerSpec::After("count", 1s);
  spec.one_by_one_key = "forge";
  WaitGroup go(1);
  WaitGroup held(1);
  waiting = true;
  ASSERT_TRUE(s.application->one_by_one()
                  .Post(std::string("forge"), Task("holds the key",
                                                   [&] {
                                                     held.Done();
                                                     go.Wait();
                                                     waiting = false;
                                                   }))
                  .ok());
  held.Wait();
  this->Schedule(this->Online(), spec);
  this->Schedule(this->Online(), spec);
  this->clock.Advance(1010ms);
  EXPECT_EQ(s.told.count(), 0U);
  go.Done();
  EXPECT_EQ(s.told.Await(2).size(), 2U);
}

// --- sets, and other clients ---

class RoleOnlineTimersTest : public LoginTimersTest<RoleSide> {};

TEST_F(RoleOnlineTimersTest, EachSetHasItsOwn) {
  TimedServer& s = Open();
  LogIn();
  const LinkAddress battle = links.Connect("g1");
  ASSERT_EQ(s.Request(battle, "",
                      [&](Transaction& tx, Session& session) {
                        return s.roles.ProcessLogin(tx, session,
                                                    {.RoleId = 7, .OnlineSetName = "battle"});
                      }),
            0);
  ASSERT_TRUE(ScheduleNamed(Online(), "x", TimerSpec::After("count", 1s)).value());
  ASSERT_TRUE(
      ScheduleNamed(s.role_timers->online("battle"), "x", TimerSpec::After("count", 1s)).value());
  Pass(1s);
  EXPECT_THAT(s.told.Await(2), UnorderedElementsAre("online x", "battle online x"));
  Schedule(s.role_timers->online("battle"), TimerSpec::After("count", 1s));
  LogOut();
  Pass(1s);
  EXPECT_EQ(s.told.Await(3).size(), 3U);
}

class AccountOnlineTimersTest : public LoginTimersTest<AccountSide> {};

TEST_F(AccountOnlineTimersTest, EachClientHasItsOwn) {
  TimedServer& s = Open();
  LogIn();
  const LinkAddress desktop = links.Connect("g1");
  ASSERT_EQ(s.Request(desktop, "",
                      [&](Transaction& tx, Session& session) {
                        return s.accounts.ProcessLogin(tx, session, {.ClientId = "desktop"});
                      }),
            0);
  const AccountKey other{.Account = "ann", .ClientId = "desktop"};
  ASSERT_TRUE(ScheduleNamed(Online(), "phone", TimerSpec::After("count", 1s)).value());
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {
    EXPECT_TRUE(
        Online().ScheduleNamed(tx, other, "desktop", TimerSpec::After("count", 1s)).value());
    EXPECT_FALSE(Online().Cancel(tx, other, "phone"));
  }));
  LogOut();
  Pass(1s);
  EXPECT_THAT(s.told.Await(1), ElementsAre("online desktop"));
}

}  // namespace
}  // namespace zeze::arch
