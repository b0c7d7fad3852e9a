// TimedServer: a server with logins and timers of accounts and roles, over a directory that
// outlives it, whose time a test moves. Tests that begin with TYPED_TEST are for both kinds.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Timer.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/account_online.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/online/testing/fake_links.h"
#include "zeze/arch/online_timer/account_timers.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/arch/online_timer/offline_timers.h"
#include "zeze/arch/online_timer/online_timers.h"
#include "zeze/arch/online_timer/role_timers.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/check.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/wait_group.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/testing/timers_fixture.h"
#include "zeze/components/timer/timers.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

// What the handlers "count" do besides counting, and what they answer.
using Extra = std::function<std::int64_t(Transaction& tx, TimerContext& timer)>;

struct TimedSetup {
  std::int32_t server_id = 1;
  bool memory = true;
  bool with_timers = true;  // Else logins only, as servers that know nothing of their timers.
  LoginTimersOptions options = {};
  TimersOptions timers = {};
  Extra extra = nullptr;
  std::function<void(struct TimedServer&)> prepare = nullptr;
};

struct TimedServer {
  TimedServer(const std::string& directory, Clock& clock, testing::FakeLinks& the_links,
              TimedSetup setup)
      : links(the_links),
        timers(keys, setup.timers),
        roles({.clients_max = 3}, {"battle"}),
        accounts({.clients_max = 3}) {
    if (setup.with_timers) {
      role_timers.emplace(roles, timers, setup.options);
      account_timers.emplace(accounts, timers, setup.options);
      Count(role_timers->online(), "online", setup.extra);
      Count(role_timers->offline(), "offline", setup.extra);
      Count(role_timers->online("battle"), "battle online", setup.extra);
      Count(role_timers->offline("battle"), "battle offline", setup.extra);
      Count(account_timers->online(), "online", setup.extra);
      Count(account_timers->offline(), "offline", setup.extra);
    }
    if (setup.prepare) setup.prepare(*this);
    // One worker: what was posted before a barrier has run when the barrier has.
    auto opened = Application::Open(
        "timed", {.server_id = setup.server_id,
                  .storage = {.url = setup.memory ? "memory:" : "rocksdb:" + directory + "/db"},
                  .worker_threads = 1,
                  .checkpoint_period = std::chrono::nanoseconds(0),
                  .liveness = {.period = std::chrono::nanoseconds(0)},
                  .clock = &clock});
    ZEZE_CHECK(opened.ok());
    application = std::move(opened).value();
    application->AddTable(effects);
    application->AddModule(keys);
    application->AddModule(timers);
    application->AddModule(roles);
    application->AddModule(accounts);
    roles.Connect(links);
    accounts.Connect(links);
    const Result<void> started = application->Start();
    EXPECT_TRUE(started.ok());
    EXPECT_TRUE(timers.AwaitLoaded(std::chrono::seconds(20)));
  }

  template <typename LoginTimersOfAKind>
  void Count(LoginTimersOfAKind& of_kind, const std::string& word, const Extra& extra) {
    of_kind.RegisterHandler("count", [this, word, extra](Transaction& tx, auto& timer) {
      const std::string what = fmt::format("{} {}", word, timer.id());
      effects.GetOrAdd(tx, what)->NextId += 1;
      const std::int64_t code = extra ? extra(tx, timer) : result_code::kSuccess;
      if (code == result_code::kSuccess) tx.AfterCommit([this, what] { told.Add(what); });
      return code;
    });
  }

  void Stop() const { EXPECT_TRUE(application->Stop().ok()); }
  void Save() const { EXPECT_TRUE(application->engine().CheckpointNow().ok()); }
  // Nothing that was not saved is ever saved.
  void Crash() {
    application->engine().Abandon();
    application.reset();
  }

  template <typename Body>
  std::int64_t Call(const Body& body) {
    return application->Call("test", [&](Transaction& tx) -> std::int64_t {
      body(tx);
      return result_code::kSuccess;
    });
  }
  template <typename Handle>
  std::int64_t Request(const LinkAddress& link, const std::string& context, Handle handle) {
    const auto session = std::make_shared<ProviderSession>(
        links, ProviderSession::State{.address = link, .account = "ann", .context = context});
    return application->Call("request", [&](Transaction& tx) { return handle(tx, *session); });
  }
  // How often a handler's effects have been committed, for "online ID" or "offline ID".
  std::int64_t Effects(const std::string& what) {
    std::int64_t count = 0;
    EXPECT_EQ(0, Call([&](Transaction& tx) {
                const BCount* effect = effects.Get(tx, what);
                count = effect == nullptr ? 0 : effect->NextId;
              }));
    return count;
  }

  testing::FakeLinks& links;
  Told told;
  AutoKeys keys;
  Timers timers;
  RoleOnline roles;
  AccountOnline accounts;
  std::optional<RoleTimers> role_timers;
  std::optional<AccountTimers> account_timers;
  Table<std::string, BCount> effects{kEffects};
  std::unique_ptr<Application> application;
};

struct RoleSide {
  using Key = RoleId;

  static Key TheKey() { return 7; }
  static Logins<Key>& LoginsOf(TimedServer& server) { return server.roles.logins(); }
  static OnlineTimers<Key>& Online(TimedServer& server) { return server.role_timers->online(); }
  static OfflineTimers<Key>& Offline(TimedServer& server) { return server.role_timers->offline(); }
  static std::string Context() { return "7"; }
  static std::int64_t LogIn(TimedServer& server, Transaction& tx, Session& session) {
    return server.roles.ProcessLogin(tx, session, {.RoleId = TheKey()});
  }
  static std::int64_t LogInAgain(TimedServer& server, Transaction& tx, Session& session) {
    return server.roles.ProcessReLogin(tx, session, {.RoleId = TheKey()});
  }
  static std::int64_t LogOut(TimedServer& server, Transaction& tx, Session& session) {
    return server.roles.ProcessLogout(tx, session);
  }
  static void LinkBroken(TimedServer& server, const LinkAddress& link) {
    server.roles.LinkBroken(link);
  }
  static auto& OnlineTable(TimedServer& server) { return server.roles.tRoleTimers; }
  static auto& LoginTable(TimedServer& server) { return server.roles.tRoleLoginTimers; }
  static auto& OfflineTable(TimedServer& server) { return server.roles.tRoleOfflineTimers; }
  static auto TableKey() { return TheKey(); }
};

struct AccountSide {
  using Key = AccountKey;

  static Key TheKey() { return {.Account = "ann", .ClientId = "phone"}; }
  static Logins<Key>& LoginsOf(TimedServer& server) { return server.accounts.logins(); }
  static OnlineTimers<Key>& Online(TimedServer& server) { return server.account_timers->online(); }
  static OfflineTimers<Key>& Offline(TimedServer& server) {
    return server.account_timers->offline();
  }
  static std::string Context() { return "phone"; }
  static std::int64_t LogIn(TimedServer& server, Transaction& tx, Session& session) {
    return server.accounts.ProcessLogin(tx, session, {.ClientId = "phone"});
  }
  static std::int64_t LogInAgain(TimedServer& server, Transaction& tx, Session& session) {
    return server.accounts.ProcessReLogin(tx, session, {.ClientId = "phone"});
  }
  static std::int64_t LogOut(TimedServer& server, Transaction& tx, Session& session) {
    return server.accounts.ProcessLogout(tx, session);
  }
  static void LinkBroken(TimedServer& server, const LinkAddress& link) {
    server.accounts.LinkBroken(link);
  }
  static auto& OnlineTable(TimedServer& server) { return server.timers.tAccountTimers; }
  static auto& LoginTable(TimedServer& server) { return server.timers.tAccountLoginTimers; }
  static auto& OfflineTable(TimedServer& server) { return server.timers.tAccountOfflineTimers; }
  static auto TableKey() {
    return Zeze::Builtin::Timer::BAccountClientId{.Account = "ann", .ClientId = "phone"};
  }
};

using Sides = ::testing::Types<RoleSide, AccountSide>;

// The story of one user: a role, or a client of an account.
template <typename Side>
class LoginTimersTest : public ::testing::Test {
 protected:
  using Key = typename Side::Key;

  // Starts a server over the same database; the one before must have ended.
  TimedServer& Open(TimedSetup setup = {}) {
    server.reset();
    server = std::make_unique<TimedServer>(directory.path(), clock, links, std::move(setup));
    return *server;
  }

  // --- of the user ---

  void LogIn() {
    link = links.Connect("g1");
    ASSERT_EQ(TryLogIn(link), 0);
  }
  std::int64_t TryLogIn(const LinkAddress& at) {
    return server->Request(at, "", [&](Transaction& tx, Session& session) {
      return Side::LogIn(*server, tx, session);
    });
  }
  void LogInAgain() {
    link = links.Connect("g1");
    ASSERT_EQ(server->Request(link, "",
                              [&](Transaction& tx, Session& session) {
                                return Side::LogInAgain(*server, tx, session);
                              }),
              0);
  }
  void LogOut() {
    ASSERT_EQ(server->Request(link, Side::Context(),
                              [&](Transaction& tx, Session& session) {
                                return Side::LogOut(*server, tx, session);
                              }),
              0);
  }
  void BeOffline() {
    LogIn();
    LogOut();
  }
  bool IsLoggedIn() {
    bool live = false;
    EXPECT_EQ(0, server->Call([&](Transaction& tx) { live = Logins().Find(tx, key).has_value(); }));
    return live;
  }

  // --- of the timers ---

  template <typename OfAKind>
  Result<std::string> TrySchedule(OfAKind& timers, const TimerSpec& spec) {
    Result<std::string> scheduled = std::string();
    EXPECT_EQ(0,
              server->Call([&](Transaction& tx) { scheduled = timers.Schedule(tx, key, spec); }));
    return scheduled;
  }
  template <typename OfAKind>
  std::string Schedule(OfAKind& timers, const TimerSpec& spec) {
    const Result<std::string> scheduled = TrySchedule(timers, spec);
    EXPECT_TRUE(scheduled.ok()) << scheduled.error().message();
    return scheduled.ok() ? scheduled.value() : "";
  }
  template <typename OfAKind>
  Result<bool> ScheduleNamed(OfAKind& timers, const std::string& name, const TimerSpec& spec) {
    Result<bool> scheduled = false;
    EXPECT_EQ(0, server->Call([&](Transaction& tx) {
      scheduled = timers.ScheduleNamed(tx, key, name, spec);
    }));
    return scheduled;
  }
  template <typename OfAKind>
  std::optional<TimerInfo> Find(OfAKind& timers, const std::string& id) {
    std::optional<TimerInfo> info;
    EXPECT_EQ(0, server->Call([&](Transaction& tx) { info = timers.Find(tx, key, id); }));
    return info;
  }
  template <typename OfAKind>
  bool Cancel(OfAKind& timers, const std::string& id) {
    bool canceled = false;
    EXPECT_EQ(0, server->Call([&](Transaction& tx) { canceled = timers.Cancel(tx, key, id); }));
    return canceled;
  }
  template <typename OfAKind>
  std::size_t Count(OfAKind& timers) {
    std::size_t count = 0;
    EXPECT_EQ(0, server->Call([&](Transaction& tx) { count = timers.Count(tx, key); }));
    return count;
  }

  zeze::arch::Logins<Key>& Logins() { return Side::LoginsOf(*server); }
  OnlineTimers<Key>& Online() { return Side::Online(*server); }
  OfflineTimers<Key>& Offline() { return Side::Offline(*server); }

  // Records of online timers that there are at all.
  std::size_t StoredOnline() {
    std::size_t count = 0;
    Side::OnlineTable(*server).WalkCache([&](const auto&, const auto&) {
      ++count;
      return true;
    });
    return count;
  }

  std::int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               clock.SystemNow().time_since_epoch())
        .count();
  }
  // The time passes, and everything that is due has been run.
  void Pass(std::chrono::milliseconds time) {
    clock.Advance(time);
    for (int round = 0; round < 2; ++round) {
      auto done = std::make_shared<WaitGroup>(1);
      server->timers.ScheduleLocal(std::chrono::milliseconds(1), [done] { done->Done(); });
      clock.Advance(std::chrono::milliseconds(3));
      done->Wait();
      AwaitWorkers();
      while (!TimersAreIdle()) std::this_thread::yield();
    }
  }
  // What was posted before has run: there is one worker.
  void AwaitWorkers() const {
    auto done = std::make_shared<WaitGroup>(1);
    server->application->workers().Post(Task("barrier", [done] { done->Done(); }));
    done->Wait();
  }
  bool TimersAreIdle() const {
    const TimersStatistics timers = server->timers.statistics();
    return timers.waiting == 0 && timers.running == 0;
  }

  const Key key = Side::TheKey();
  TempDirectory directory;
  zeze::testing::ManualClock clock;
  testing::FakeLinks links;
  LinkAddress link;
  std::unique_ptr<TimedServer> server;
};

}  // namespace zeze::arch
