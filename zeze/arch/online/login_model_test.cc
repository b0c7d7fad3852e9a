// Random histories of logins on several servers: whatever happens in whatever order, each key has
// one live login at most, versions grow, and each login ends once.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Online.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/testing/role_servers.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/mutex.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using Zeze::Builtin::LinkdBase::ReportError;
using Zeze::Builtin::Online::BNotifyQueue;

constexpr RoleId kRoles = 3;
constexpr std::size_t kServers = 3;
constexpr int kLives = 12;

// What has happened to each role, written in the transactions in which it happened.
constexpr TableDescriptor kHistory{.id = 5, .name = "test_history"};

class World {
 public:
  explicit World(std::uint64_t seed)
      : servers_(kServers, {.lives = kLives,
                            .prepare = [this](RoleServer& server) { Prepare(server); },
                            .tables = {&history_}}),
        random_(seed) {}

  // One thing happens, at one of the servers.
  void Step(std::mt19937_64& random) {
    const auto server_index = Pick(random, kServers);
    RoleServer& server = servers_[server_index];
    const auto role = static_cast<RoleId>(Pick(random, kRoles)) + 1;
    switch (Pick(random, 14)) {
      case 0:
      case 1:
        LogIn(server, role, NewLink(random));
        break;
      case 2: {
        const LinkAddress link = NewLink(random);
        if (CanBeHeard(link)) static_cast<void>(server.LogInAgain(role, link, 0));
        break;
      }
      case 3:  // On a connection that may have been somebody else's, or replaced.
        LogIn(server, role, AnyLink(random));
        break;
      case 4: {
        const LinkAddress link = AnyLink(random);
        if (CanBeHeard(link)) static_cast<void>(server.LogOut(role, link));
        break;
      }
      case 5: {  // With or without word of it.
        const LinkAddress link = AnyLink(random);
        servers_.links.Disconnect(link);
        if (Pick(random, 2) == 0) server.logins.LinkBroken(link);
        break;
      }
      case 6:  // Late, twice, at the wrong server, or not true.
        server.logins.LinkBroken(AnyLink(random));
        break;
      case 7:
        FireTimer(random);
        break;
      case 8:
        server.logins.Send<ReportError>(std::vector<RoleId>{role}, {});
        break;
      case 9:
        server.logins.Verify();
        break;
      case 10:
        servers_.links.SetReachable(Gateway(random), Pick(random, 3) != 0);
        servers_.LoseDirect(Pick(random, 3) == 0);
        break;
      case 11:
        servers_.clock.Advance(std::chrono::seconds(Pick(random, 40)));
        server.logins.CheckSuspects();
        break;
      case 12:  // Somebody takes over from a server, which may be alive.
        static_cast<void>(
            server.logins.LogoutAllOf(static_cast<std::int32_t>(Pick(random, kServers)) + 1).ok());
        break;
      case 13:
        servers_.application->Call("kick", [&](Transaction& tx) {
          server.logins.Kick(tx, role, 5, "kicked");
          return 0;
        });
        break;
      default:
        break;
    }
  }

  // Not while other threads take steps.
  void Restart() { servers_.Restart(Pick(random_, kServers)); }

  std::mt19937_64& random() { return random_; }

  // Everything works again, and the dust settles.
  void Calm() {
    for (const char* gateway : {"g1", "g2"}) servers_.links.SetReachable(gateway, true);
    servers_.LoseDirect(false);
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < kServers; ++i) {
        servers_[i].logins.CheckSuspects();
        servers_[i].logins.Verify();
      }
      servers_.Settle();
      while (FireTimer(random_)) servers_.Settle();
    }
  }

  // "login 1, logout 1, login 2, broken 2, given-up 2 ...": the last login may be open.
  void CheckHistories(bool all_out) {
    for (RoleId role = 1; role <= kRoles; ++role) {
      std::optional<std::int64_t> open;
      std::int64_t last = 0;
      bool broken = false;
      // Of one moment: what happens in the background goes on.
      std::optional<BNotifyQueue> history;
      std::optional<Login<RoleId>> live;
      servers_.application->Call("look", [&](Transaction& tx) {
        const BNotifyQueue* stored = history_.Get(tx, role);
        history = stored == nullptr ? std::nullopt : std::optional(*stored);
        live = servers_[0].logins.Find(tx, role);
        return 0;
      });
      if (!history) continue;
      for (const Binary& entry : history->Frames) {
        const auto space = entry.bytes.find(' ');
        const std::string what = entry.bytes.substr(0, space);
        const std::int64_t version = std::stoll(entry.bytes.substr(space));
        if (what == "login") {
          ASSERT_FALSE(open) << "role " << role << " is logged in twice: " << entry.bytes;
          ASSERT_GT(version, last);
          last = version;
          open = version;
          broken = false;
        } else {
          ASSERT_EQ(open, version) << "role " << role << ": " << entry.bytes;
          if (what == "broken") {
            ASSERT_FALSE(broken) << "role " << role << ": " << entry.bytes;
            broken = true;
            continue;
          }
          if (what == "given-up") {
            ASSERT_TRUE(broken) << "role " << role << ": " << entry.bytes;
          }
          open.reset();
        }
      }
      ASSERT_EQ(live.has_value(), open.has_value());
      if (live) {
        ASSERT_EQ(live->version, *open);
      }
      if (all_out) {
        ASSERT_FALSE(open);
      }
    }
  }

  // After Calm: tables, counters and gateways say the same.
  void CheckAgreement(bool one_role_per_link) {
    std::map<std::int32_t, std::int64_t> live_at;
    std::set<std::int64_t> links;
    for (RoleId role = 1; role <= kRoles; ++role) {
      const std::optional<Login<RoleId>> live = servers_[0].Find(role);
      if (!live) continue;
      ++live_at[live->server_id];
      const bool first = links.insert(live->link.link_sid).second;
      EXPECT_TRUE(first || !one_role_per_link) << "two roles on one connection";
      EXPECT_EQ(live->state, LoginState::kLoggedIn);
      EXPECT_TRUE(servers_.links.IsConnected(live->link));
    }
    for (std::size_t i = 0; i < kServers; ++i) {
      EXPECT_EQ(servers_[i].logins.online(), live_at[servers_[i].id]) << "server " << i + 1;
    }
  }

  void LogAllOut() {
    for (std::size_t i = 0; i < kServers; ++i) {
      ASSERT_TRUE(servers_[0].logins.LogoutAllOf(servers_[i].id).ok());
    }
  }

  std::size_t LoginCount() {
    std::size_t count = 0;
    for (RoleId role = 1; role <= kRoles; ++role) {
      const std::optional<BNotifyQueue> history = history_.ReadCopy(role).value();
      if (history) count += history->Frames.size() / 2;
    }
    return count;
  }

 private:
  struct Timer {
    RoleServer* server;
    RoleId role;
    std::int64_t version;
  };

  static std::size_t Pick(std::mt19937_64& random, std::size_t count) { return random() % count; }
  static std::string Gateway(std::mt19937_64& random) { return Pick(random, 2) == 0 ? "g1" : "g2"; }

  std::int64_t Write(Transaction& tx, std::string_view what, const Login<RoleId>& login) {
    history_.GetOrAdd(tx, login.key)
        ->Frames.PushBack(Binary{fmt::format("{} {}", what, login.version)});
    return 0;
  }

  void Prepare(RoleServer& server) {
    const auto write = [this](std::string what) {
      return [this, what](Transaction& tx, const Login<RoleId>& login) {
        return Write(tx, what, login);
      };
    };
    server.logins.On(LoginChange::kLogin, {.in_transaction = write("login")});
    server.logins.On(LoginChange::kReLogin, {.in_transaction = write("login")});
    server.logins.On(LoginChange::kLinkBroken, {.in_transaction = write("broken")});
    server.logins.On(LoginChange::kLogout,
                     {.in_transaction = [this](Transaction& tx, const Login<RoleId>& login) {
                       const bool broken = login.reason == LogoutReason::kLinkBroken;
                       return Write(tx, broken ? "given-up" : "logout", login);
                     }});
    server.logins.SetLogoutTimer([this, &server](Transaction& tx, RoleId role, std::int64_t version,
                                                 std::chrono::nanoseconds) {
      tx.AfterCommit([this, &server, role, version] {
        MutexLock lock(mutex_);
        timers_.push_back({&server, role, version});
      });
    });
  }

  // In any order. One that fires on a server that has been restarted is lost.
  bool FireTimer(std::mt19937_64& random) {
    std::optional<Timer> timer;
    {
      MutexLock lock(mutex_);
      if (timers_.empty()) return false;
      const auto at = timers_.begin() + static_cast<std::ptrdiff_t>(Pick(random, timers_.size()));
      timer = *at;
      timers_.erase(at);
    }
    if (&servers_[static_cast<std::size_t>(timer->server->id) - 1] == timer->server) {
      timer->server->logins.LogoutIfBroken(timer->role, timer->version);
    }
    return true;
  }

  // Of a gateway that is not connected no messages come.
  bool CanBeHeard(const LinkAddress& link) { return servers_.links.IsReachable(link.link_name); }
  void LogIn(RoleServer& server, RoleId role, const LinkAddress& link) {
    if (CanBeHeard(link)) static_cast<void>(server.LogIn(role, link));
  }

  LinkAddress NewLink(std::mt19937_64& random) {
    const LinkAddress link = servers_.links.Connect(Gateway(random));
    MutexLock lock(mutex_);
    connections_.push_back(link);
    if (connections_.size() > 20) connections_.erase(connections_.begin());
    return link;
  }
  LinkAddress AnyLink(std::mt19937_64& random) {
    {
      MutexLock lock(mutex_);
      if (!connections_.empty()) return connections_[Pick(random, connections_.size())];
    }
    return NewLink(random);
  }

  Mutex mutex_;
  std::vector<Timer> timers_ ZEZE_GUARDED_BY(mutex_);
  std::vector<LinkAddress> connections_ ZEZE_GUARDED_BY(mutex_);
  Table<RoleId, BNotifyQueue> history_{kHistory};
  RoleServers servers_;
  std::mt19937_64 random_;
};

class LoginModel : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(LoginModel, OneThingAfterTheOther) {
  World world(GetParam());
  for (int step = 0; step < 3000; ++step) {
    world.Step(world.random());
    if (step % 250 == 249) world.Restart();
    if (step % 100 == 99) world.CheckHistories(false);
    if (HasFatalFailure()) return;
  }
  world.Calm();
  world.CheckHistories(false);
  world.CheckAgreement(true);
  world.LogAllOut();
  world.CheckHistories(true);
  EXPECT_GT(world.LoginCount(), 100);
}

TEST_P(LoginModel, AllAtOnce) {
  constexpr int kThreads = 4;
  World world(GetParam());
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&world, seed = world.random()()] {
        std::mt19937_64 random(seed);
        for (int step = 0; step < 200; ++step) world.Step(random);
      });
    }
    for (std::thread& thread : threads) thread.join();
    world.CheckHistories(false);
    if (HasFatalFailure()) return;
    world.Restart();
  }
  world.Calm();
  world.CheckHistories(false);
  // A gateway that goes away while it is told of a login may send on what it knew before.
  world.CheckAgreement(false);
  world.LogAllOut();
  world.CheckHistories(true);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LoginModel, ::testing::Range<std::uint64_t>(1, 5));

}  // namespace
}  // namespace zeze::arch
