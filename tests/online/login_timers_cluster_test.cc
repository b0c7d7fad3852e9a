// Timers of roles on servers with caches of their own, over one database and one Global.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/AutoKey.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/online/testing/fake_links.h"
#include "zeze/arch/online_timer/online_timers.h"
#include "zeze/arch/online_timer/role_timers.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::HasSubstr;
using BCount = Zeze::Builtin::AutoKey::BSeed;

constexpr RoleId kRole = 7;
constexpr std::chrono::seconds kLease(30);
constexpr std::chrono::seconds kPatience(30);
constexpr TableDescriptor kEffects{.id = 4711, .name = "effects"};

class Server;

// The way between the servers.
class Between final : public DirectSender {
 public:
  void Open(Server& a, Server& b) { servers_ = {&a, &b}; }

  Result<void> Send(std::int32_t server_id,
                    const Zeze::Builtin::ProviderDirect::BTransmit& message) override;
  Result<void> Send(std::int32_t, const Zeze::Builtin::ProviderDirect::BTransmitAccount&) override {
    return Lost();
  }
  Result<void> RemoveLocal(std::int32_t, const std::string&) override { return Lost(); }
  Result<void> RemoveLocal(std::int32_t, std::int64_t, const std::string&) override {
    return Lost();
  }

 private:
  static Result<void> Lost() { return Error(ErrorCode::kUnavailable, "lost"); }

  std::array<Server*, 2> servers_ = {};
};

// Its online and offline timers are named by it in handlers of logins and logouts.
class Server {
 public:
  Server(const std::string& url, std::uint16_t global_port, std::int32_t server_id,
         testing::FakeLinks& links, Between& between)
      : links_(links) {
    const auto count = [this](Transaction& tx, auto& timer) -> std::int64_t {
      effects.GetOrAdd(tx, std::string(timer.id()))->NextId += 1;
      tx.AfterCommit([this] { ++runs; });
      return 0;
    };
    role_timers.online().RegisterHandler("count", count);
    role_timers.offline().RegisterHandler("count", count);
    auto opened = Application::Open(fmt::format("server {}", server_id),
                                    {.server_id = server_id,
                                     .storage = {.url = url},
                                     .globals = {{.host = "127.0.0.1", .port = global_port}},
                                     .lease = kLease,
                                     .worker_threads = 4,
                                     .checkpoint_period = 200ms,
                                     .liveness = {.period = 0s}});
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    application = std::move(opened).value();
    application->AddTable(effects);
    application->AddModule(keys);
    application->AddModule(timers);
    application->AddModule(roles);
    roles.Connect(links, &between);
    const Result<void> started = application->Start();
    EXPECT_TRUE(started.ok()) << started.error().message();
  }
  ~Server() { EXPECT_TRUE(application->Stop().ok()); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void LogIn() {
    link_ = links_.Connect("g1");
    EXPECT_EQ(Request([&](Transaction& tx, Session& session) {
                return roles.ProcessLogin(tx, session, {.RoleId = kRole});
              }),
              0);
  }
  void LogOut() {
    EXPECT_EQ(Request([&](Transaction& tx, Session& session) {
                return roles.ProcessLogout(tx, session);
              }),
              0);
  }
  template <typename Handle>
  std::int64_t Request(Handle handle) {
    const auto session = std::make_shared<ProviderSession>(
        links_, ProviderSession::State{
                    .address = link_, .account = "ann", .context = links_.Context(link_)});
    return application->Call("request", [&](Transaction& tx) { return handle(tx, *session); });
  }
  template <typename Body>
  void Call(const Body& body) {
    EXPECT_EQ(application->Call("test",
                                [&](Transaction& tx) {
                                  body(tx);
                                  return 0;
                                }),
              0);
  }
  std::int64_t Effects(const std::string& id) {
    std::int64_t count = 0;
    Call([&](Transaction& tx) {
      const BCount* effect = effects.Get(tx, id);
      count = effect == nullptr ? 0 : effect->NextId;
    });
    return count;
  }
  template <typename OfAKind>
  void ScheduleNamed(OfAKind& of_kind, const std::string& name, const TimerSpec& spec) {
    Call([&](Transaction& tx) {
      const Result<bool> scheduled = of_kind.ScheduleNamed(tx, kRole, name, spec);
      ASSERT_TRUE(scheduled.ok()) << scheduled.error().message();
      EXPECT_TRUE(scheduled.value());
    });
  }
  std::size_t OnlineRecords() {
    return roles.tRoleTimers.WalkCache([](const auto&, const auto&) { return true; });
  }

 private:
  testing::FakeLinks& links_;
  LinkAddress link_;

 public:
  std::atomic<int> runs = 0;
  AutoKeys keys;
  Timers timers{keys};
  RoleOnline roles{OnlineOptions{}};
  RoleTimers role_timers{roles, timers};
  Table<std::string, BCount> effects{kEffects};
  std::unique_ptr<Application> application;
};

Result<void> Between::Send(std::int32_t server_id,
                           const Zeze::Builtin::ProviderDirect::BTransmit& message) {
  Server* server = servers_.at(static_cast<std::size_t>(server_id - 1));
  if (server == nullptr) return Lost();
  server->roles.Transmitted(message);
  return {};
}

class LoginTimersClusterTest : public ::testing::Test {
 protected:
  LoginTimersClusterTest()
      : url_(SharedPostgresServer().NewDatabase()),
        io_({.name = "test-io"}),
        pool_({.name = "blocking", .thread_count = 4}),
        storage_(OpenStorage({.url = url_}).value()),
        global_(io_, *storage_->fence(), pool_,
                {.acceptor = {.ip = "127.0.0.1", .port = 0},
                 .machine = {.lease = {.duration = kLease}},
                 .holder = "test"}) {
    EXPECT_TRUE(global_.Start().ok());
    a_.emplace(url_, global_.address().port(), 1, links_, between_);
    b_.emplace(url_, global_.address().port(), 2, links_, between_);
  }
  ~LoginTimersClusterTest() override {
    b_.reset();
    a_.reset();
    global_.Stop();
  }

  template <typename Condition>
  static void Await(const Condition& holds) {
    const auto until = SystemClock().Now() + kPatience;
    while (!holds()) {
      ASSERT_LT(SystemClock().Now(), until);
      SystemClock().SleepFor(5ms);
    }
  }

  const std::string url_;
  testing::FakeLinks links_;
  Between between_;
  IoThreads io_;
  ThreadPool pool_;
  const std::unique_ptr<Storage> storage_;
  global::GlobalService global_;
  std::optional<Server> a_;
  std::optional<Server> b_;
};

TEST_F(LoginTimersClusterTest, Seed002OnlineTimersAreOnlyOnTheServerOfTheLogin) {
  a_->LogIn();
  b_->Call([&](Transaction& tx) {
    const auto refused =
        b_->role_timers.online().Schedule(tx, kRole, TimerSpec::After("count", 1s));
    EXPECT_THAT(refused.error().message(), HasSubstr("logged in on server 1, not here"));
  });
  a_->ScheduleNamed(a_->role_timers.online(), "a", TimerSpec::Every("count", 1ms, 1ms));
  Await([&] { return a_->runs > 3; });
  EXPECT_EQ(b_->runs, 0);
}

TEST_F(LoginTimersClusterTest, OnlineTimersGoToTheServerOfTheLogin) {
  between_.Open(*a_, *b_);
  a_->LogIn();
  OnlineTimers<RoleId>& from_b = b_->role_timers.online();
  std::string id;
  b_->Call([&](Transaction& tx) {
    const TimerSpec spec = TimerSpec::Every("count", 1ms, 1ms, AnyBean::Of(BCount{.NextId = 1}));
    id = from_b.ScheduleWhereOnline(tx, kRole, spec).value();
    EXPECT_TRUE(from_b
                    .ScheduleNamedWhereOnline(tx, kRole, "each hour",
                                              TimerSpec::Cron("count", "0 0 * * * ?"))
                    .ok());
    EXPECT_FALSE(from_b.ScheduleNamedWhereOnline(tx, kRole, "@x", spec).ok());
    EXPECT_FALSE(from_b.ScheduleWhereOnline(tx, kRole, TimerSpec::Cron("count", "each hour")).ok());
  });
  Await([&] { return a_->runs > 3; });
  Await([&] { return a_->OnlineRecords() == 2; });
  EXPECT_EQ(b_->runs, 0);
  EXPECT_EQ(b_->OnlineRecords(), 0U);
  a_->Call([&](Transaction& tx) {
    const std::optional<TimerInfo> info = a_->role_timers.online().Find(tx, kRole, id);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->data.As<BCount>()->NextId, 1);
  });

  b_->Call([&](Transaction& tx) {
    EXPECT_TRUE(from_b.CancelWhereOnline(tx, kRole, id));
    EXPECT_TRUE(from_b.CancelWhereOnline(tx, kRole, "each hour"));
  });
  Await([&] { return a_->OnlineRecords() == 0; });
}

// A cancel is never before the timer that it is for.
TEST_F(LoginTimersClusterTest, WhatIsSentToALoginKeepsItsOrder) {
  between_.Open(*a_, *b_);
  a_->LogIn();
  OnlineTimers<RoleId>& from_b = b_->role_timers.online();
  for (int i = 0; i < 200; ++i) {
    const std::string name = fmt::format("timer {}", i);
    b_->Call([&](Transaction& tx) {
      ASSERT_TRUE(
          from_b.ScheduleNamedWhereOnline(tx, kRole, name, TimerSpec::After("count", 1h)).ok());
      EXPECT_TRUE(from_b.CancelWhereOnline(tx, kRole, name));
    });
  }
  b_->Call([&](Transaction& tx) {
    ASSERT_TRUE(
        from_b.ScheduleNamedWhereOnline(tx, kRole, "last", TimerSpec::After("count", 1ms)).ok());
  });
  Await([&] { return a_->runs == 1; });
  EXPECT_EQ(a_->OnlineRecords(), 0U);
}

// What the transaction did not commit is not sent.
TEST_F(LoginTimersClusterTest, ARolledBackTransactionSendsNothing) {
  between_.Open(*a_, *b_);
  a_->LogIn();
  OnlineTimers<RoleId>& from_b = b_->role_timers.online();
  EXPECT_EQ(
      b_->application->Call(
          "refused",
          [&](Transaction& tx) {
            EXPECT_TRUE(
                from_b.ScheduleNamedWhereOnline(tx, kRole, "x", TimerSpec::After("count", 1ms))
                    .ok());
            return 1;
          }),
      1);
  b_->Call([&](Transaction& tx) {
    ASSERT_TRUE(
        from_b.ScheduleNamedWhereOnline(tx, kRole, "y", TimerSpec::After("count", 1ms)).ok());
  });
  Await([&] { return a_->runs == 1; });
  EXPECT_EQ(a_->Effects("x"), 0);
  EXPECT_EQ(a_->Effects("y"), 1);
}

// Nobody tells the first server: its timer finds out by itself, from that commit on.
TEST_F(LoginTimersClusterTest, Seed002OnlineTimersEndWhenTheLoginMoves) {
  a_->LogIn();
  a_->ScheduleNamed(a_->role_timers.online(), "a", TimerSpec::Every("count", 1ms, 1ms));
  Await([&] { return a_->runs > 0; });

  b_->LogIn();
  const std::int64_t effects = b_->Effects("a");

  Await([&] { return a_->OnlineRecords() == 0; });
  EXPECT_EQ(b_->Effects("a"), effects);
  b_->ScheduleNamed(b_->role_timers.online(), "a", TimerSpec::After("count", 1ms));
  Await([&] { return b_->runs == 1; });
  EXPECT_EQ(b_->Effects("a"), effects + 1);
}

TEST_F(LoginTimersClusterTest, ALoginElsewhereEndsOfflineTimersAtOnce) {
  a_->LogIn();
  a_->LogOut();
  TimerSpec often = TimerSpec::Every("count", 1ms, 1ms);
  often.times = 1'000'000;
  a_->ScheduleNamed(a_->role_timers.offline(), "often", often);
  Await([&] { return a_->runs > 3; });

  b_->LogIn();
  const std::int64_t effects = b_->Effects("often");

  b_->Call([&](Transaction& tx) { EXPECT_EQ(b_->role_timers.offline().Count(tx, kRole), 0U); });
  b_->LogOut();
  b_->ScheduleNamed(b_->role_timers.offline(), "later", TimerSpec::After("count", 20ms));
  Await([&] { return b_->runs == 1; });
  EXPECT_EQ(a_->Effects("often"), effects);
}

// While somebody is offline every server may add timers; each runs where it was added.
TEST_F(LoginTimersClusterTest, AnyServerAddsOfflineTimers) {
  a_->LogIn();
  a_->LogOut();
  a_->ScheduleNamed(a_->role_timers.offline(), "x", TimerSpec::After("count", 1h));
  b_->Call([&](Transaction& tx) {
    const auto twice =
        b_->role_timers.offline().ScheduleNamed(tx, kRole, "x", TimerSpec::After("count", 1s));
    EXPECT_FALSE(twice.value());
  });
  b_->ScheduleNamed(b_->role_timers.offline(), "y", TimerSpec::After("count", 1ms));
  Await([&] { return b_->runs == 1; });
  b_->Call([&](Transaction& tx) {
    EXPECT_EQ(b_->role_timers.offline().Find(tx, kRole, "x")->server_id, 1);
    EXPECT_TRUE(b_->role_timers.offline().Cancel(tx, kRole, "x"));
  });
  a_->Call([&](Transaction& tx) { EXPECT_EQ(a_->role_timers.offline().Count(tx, kRole), 0U); });
}

// The role goes to and fro, and timers of both kinds run all the time.
TEST_F(LoginTimersClusterTest, EachRunIsOfTheStateOfItsTime) {
  for (int round = 0; round < 12; ++round) {
    Server& here = round % 2 == 0 ? *a_ : *b_;
    here.LogIn();
    const std::string on = fmt::format("on {}", round);
    here.ScheduleNamed(here.role_timers.online(), on, TimerSpec::Every("count", 1ms, 1ms));
    Await([&] { return here.Effects(on) > 0; });
    if (round % 3 == 0) continue;  // The next login moves it.
    here.LogOut();
    const std::int64_t at_logout = here.Effects(on);
    TimerSpec spec = TimerSpec::Every("count", 1ms, 1ms);
    spec.times = 1'000'000;
    const std::string off = fmt::format("off {}", round);
    here.ScheduleNamed(here.role_timers.offline(), off, spec);
    Await([&] { return here.Effects(off) > 1; });
    EXPECT_EQ(here.Effects(on), at_logout);
    Server& there = round % 2 == 0 ? *b_ : *a_;
    there.LogIn();
    const std::int64_t at_login = there.Effects(off);
    there.LogOut();
    const std::string end = fmt::format("end {}", round);
    there.ScheduleNamed(there.role_timers.offline(), end, TimerSpec::After("count", 1ms));
    Await([&] { return there.Effects(end) == 1; });
    EXPECT_EQ(there.Effects(off), at_login);
  }
}

}  // namespace
}  // namespace zeze::arch
