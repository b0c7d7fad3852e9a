// Timers of logins that run while the login begins, ends or moves: by the time both have committed,
// one was first.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/arch/online/account_online.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/online_timer/account_timers.h"
#include "zeze/arch/online_timer/role_timers.h"
#include "zeze/arch/online_timer/testing/login_timers_fixture.h"
#include "zeze/base/result_code.h"
#include "zeze/base/wait_group.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::HasSubstr;

// A handler whose first run waits, after its effects, for the test.
struct Gate {
  WaitGroup reached{1};
  WaitGroup go{1};
  std::atomic<int> runs = 0;

  Extra Waits() {
    return [this](Transaction&, TimerContext&) -> std::int64_t {
      if (++runs == 1) {
        reached.Done();
        go.Wait();
      }
      return result_code::kSuccess;
    };
  }
};

template <typename Side>
class LoginTimerRacesTest : public LoginTimersTest<Side> {};
TYPED_TEST_SUITE(LoginTimerRacesTest, Sides);

TYPED_TEST(LoginTimerRacesTest, ALogoutWhileAnOnlineTimerRuns) {
  Gate gate;
  TimedServer& s = this->Open({.extra = gate.Waits()});
  this->LogIn();
  const std::string id = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->clock.Advance(1010ms);
  gate.reached.Wait();
  this->LogOut();  // Commits first.
  gate.go.Done();
  this->Pass(5s);
  EXPECT_EQ(s.Effects("online " + id), 0);
  EXPECT_EQ(gate.runs, 1);
  EXPECT_EQ(this->StoredOnline(), 0U);
  EXPECT_EQ(s.timers.statistics().armed, 0U);
}

TYPED_TEST(LoginTimerRacesTest, ANewLoginWhileAnOnlineTimerRuns) {
  Gate gate;
  TimedServer& s = this->Open({.extra = gate.Waits()});
  this->LogIn();
  const std::string old = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->clock.Advance(1010ms);
  gate.reached.Wait();
  this->LogIn();
  const std::string fresh = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  gate.go.Done();
  this->Pass(1s);
  EXPECT_EQ(s.Effects("online " + old), 0);
  EXPECT_EQ(s.Effects("online " + fresh), 1);
}

TYPED_TEST(LoginTimerRacesTest, ACancelWhileAnOnlineTimerRuns) {
  Gate gate;
  TimedServer& s = this->Open({.extra = gate.Waits()});
  this->LogIn();
  const std::string id = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->clock.Advance(1010ms);
  gate.reached.Wait();
  EXPECT_TRUE(this->Cancel(this->Online(), id));
  gate.go.Done();
  this->Pass(5s);
  EXPECT_EQ(s.Effects("online " + id), 0);
  EXPECT_EQ(this->StoredOnline(), 0U);
}

// The link breaks while the timer runs: the login goes on, and so does the timer.
TYPED_TEST(LoginTimerRacesTest, ABrokenLinkWhileAnOnlineTimerRuns) {
  Gate gate;
  TimedServer& s = this->Open({.extra = gate.Waits()});
  this->LogIn();
  const std::string id = this->Schedule(this->Online(), TimerSpec::Every("count", 1s, 1s));
  this->clock.Advance(1010ms);
  gate.reached.Wait();
  TypeParam::LinkBroken(s, this->link);
  gate.go.Done();
  this->Pass(0ms);
  EXPECT_EQ(s.Effects("online " + id), 1);
  EXPECT_GE(gate.runs, 1);
  this->LogInAgain();
  this->Pass(5s);
  EXPECT_EQ(s.Effects("online " + id), 1);
}

TYPED_TEST(LoginTimerRacesTest, ALoginWhileAnOfflineTimerRuns) {
  Gate gate;
  TimedServer& s = this->Open({.extra = gate.Waits()});
  this->BeOffline();
  TimerSpec spec = TimerSpec::Every("count", 1s, 1s);
  spec.times = 5;
  const std::string id = this->Schedule(this->Offline(), spec);
  this->clock.Advance(1010ms);
  gate.reached.Wait();
  this->LogIn();  // Commits first.
  gate.go.Done();
  this->Pass(5s);
  EXPECT_EQ(s.Effects("offline " + id), 0);
  EXPECT_EQ(gate.runs, 1);
  EXPECT_EQ(s.timers.statistics().armed, 0U);
}

TYPED_TEST(LoginTimerRacesTest, ALoginAndALogoutWhileAnOfflineTimerRuns) {
  Gate gate;
  TimedServer& s = this->Open({.extra = gate.Waits()});
  this->BeOffline();
  ASSERT_TRUE(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 1s)).value());
  this->clock.Advance(1010ms);
  gate.reached.Wait();
  this->BeOffline();
  ASSERT_TRUE(this->ScheduleNamed(this->Offline(), "x", TimerSpec::After("count", 1s)).value());
  gate.go.Done();
  this->Pass(0ms);
  EXPECT_EQ(s.Effects("offline x"), 0);  // That of before has nothing to say.
  this->Pass(1s);
  EXPECT_EQ(s.Effects("offline x"), 1);
}

// The timer commits first: the login is behind it, and finds nothing.
TYPED_TEST(LoginTimerRacesTest, ALoginRightBehindAnOfflineTimer) {
  TimedServer& s = this->Open();
  this->BeOffline();
  const std::string id = this->Schedule(this->Offline(), TimerSpec::After("count", 1s));
  this->Pass(1s);
  this->LogIn();
  EXPECT_EQ(s.Effects("offline " + id), 1);
}

// A server with a wrong order of modules ends left-over logins before it has timers.
TYPED_TEST(LoginTimerRacesTest, TimersThatHaveNotStartedAreRefused) {
  AutoKeys keys;
  Timers timers(keys);
  RoleOnline roles({});
  AccountOnline accounts({});
  const RoleTimers role_timers(roles, timers);
  AccountTimers account_timers(accounts, timers);
  account_timers.offline().RegisterHandler("x", [](Transaction&, auto&) { return 0; });
  auto opened = Application::Open("test", {.storage = {.url = "memory:"}});
  auto application = std::move(opened).value();
  application->AddModule(roles);
  application->AddModule(accounts);
  ASSERT_TRUE(application->Start().ok());
  application->Call("schedule", [&](Transaction& tx) -> std::int64_t {
    const AccountKey client{.Account = "ann", .ClientId = "phone"};
    EXPECT_THAT(
        account_timers.offline().Schedule(tx, client, TimerSpec::After("x", 1s)).error().message(),
        HasSubstr("Timers have not started"));
    EXPECT_THAT(
        account_timers.online().Schedule(tx, client, TimerSpec::After("x", 1s)).error().message(),
        HasSubstr("Timers have not started"));
    return 0;
  });
  EXPECT_TRUE(application->Stop().ok());
}

using RoleTimerRacesTest = LoginTimerRacesTest<RoleSide>;

TEST_F(RoleTimerRacesTest, NorAreTheySentBeforeTimersHaveStarted) {
  Open({.memory = false});
  LogIn();
  server->Save();
  server->Crash();
  AutoKeys keys;
  Timers timers(keys);
  RoleOnline roles({}, {"battle"});
  RoleTimers role_timers(roles, timers);
  auto opened = Application::Open(
      "test", {.server_id = 2, .storage = {.url = "rocksdb:" + directory.path() + "/db"}});
  auto application = std::move(opened).value();
  application->AddModule(roles);
  ASSERT_TRUE(application->Start().ok());
  application->Call("schedule", [&](Transaction& tx) -> std::int64_t {
    const TimerSpec spec = TimerSpec::After("x", 1s);
    EXPECT_THAT(role_timers.online().ScheduleWhereOnline(tx, key, spec).error().message(),
                HasSubstr("Timers have not started"));
    EXPECT_THAT(role_timers.online().ScheduleNamedWhereOnline(tx, key, "y", spec).error().message(),
                HasSubstr("Timers have not started"));
    return 0;
  });
  EXPECT_TRUE(application->Stop().ok());
}

// Every handler checks, inside its own transaction, what the login is. Logins, logouts, re-logins
// and timers of both kinds go on side by side.
TYPED_TEST(LoginTimerRacesTest, NoTimerEverRunsForAnotherStateThanItsOwn) {
  std::atomic<int> online_runs = 0;
  std::atomic<int> offline_runs = 0;
  TimedServer& s = this->Open({.prepare = [&](TimedServer& of) {
    auto& logins = TypeParam::LoginsOf(of);
    TypeParam::Online(of).RegisterHandler(
        "check online", [&](Transaction& tx, auto& timer) -> std::int64_t {
          const auto login = logins.FindHere(tx, timer.key());
          const std::int64_t version = timer.data().template As<BCount>()->NextId;
          const bool right = login && login->version == version;
          tx.AfterCommit([&, right] {
            EXPECT_TRUE(right);
            ++online_runs;
          });
          return 0;
        });
    TypeParam::Offline(of).RegisterHandler(
        "check offline", [&](Transaction& tx, auto& timer) -> std::int64_t {
          const auto last = logins.LastVersionIfOffline(tx, timer.key());
          const std::int64_t version = timer.data().template As<BCount>()->NextId;
          const bool right = last == version;
          tx.AfterCommit([&, right] {
            EXPECT_TRUE(right);
            ++offline_runs;
          });
          return 0;
        });
    const auto online = [&](Transaction& tx, const auto& login) -> std::int64_t {
      TimerSpec spec =
          TimerSpec::Every("check online", 1ms, 1ms, AnyBean::Of(BCount{.NextId = login.version}));
      spec.misfire = MisfirePolicy::kOnce;
      return TypeParam::Online(of).Schedule(tx, login.key, spec).ok() ? 0 : 1;
    };
    logins.On(LoginChange::kLogin, {.in_transaction = online});
    logins.On(LoginChange::kReLogin, {.in_transaction = online});
    logins.On(LoginChange::kLogout,
              {.in_transaction = [&](Transaction& tx, const auto& login) -> std::int64_t {
                TimerSpec spec = TimerSpec::Every("check offline", 1ms, 1ms,
                                                  AnyBean::Of(BCount{.NextId = login.version}));
                spec.times = 1000;
                return TypeParam::Offline(of).Schedule(tx, login.key, spec).ok() ? 0 : 1;
              }});
  }});
  std::atomic<bool> stop = false;
  std::thread ticker([&] {
    while (!stop) {
      this->clock.Advance(1ms);
      std::this_thread::yield();
    }
  });
  std::mt19937 random(42);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time.
  for (int i = 0; i < 300; ++i) {
    const auto action = random() % 4;
    if (action == 0) {
      this->LogIn();
    } else if (action == 1) {
      if (!this->IsLoggedIn()) continue;
      this->LogOut();
    } else if (action == 2) {
      EXPECT_EQ(0, s.Call([&](Transaction& tx) { this->Logins().Kick(tx, this->key, 9, ""); }));
    } else if (i > 10) {
      this->LogInAgain();
    }
    const int before = online_runs + offline_runs;
    for (int turn = 0; turn < 20 && online_runs + offline_runs == before; ++turn) {
      std::this_thread::yield();
    }
  }
  // Whatever is armed runs at least once more.
  this->LogIn();
  const int online_before = online_runs;
  while (online_runs == online_before) std::this_thread::yield();
  this->LogOut();
  const int offline_before = offline_runs;
  while (offline_runs == offline_before) std::this_thread::yield();
  EXPECT_EQ(this->StoredOnline(), 0U);
  stop = true;
  ticker.join();
  this->LogIn();
  this->LogOut();
  EXPECT_EQ(this->Count(this->Offline()), 1U);
  s.Stop();
}

}  // namespace
}  // namespace zeze::arch
