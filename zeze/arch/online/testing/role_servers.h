// RoleServers: several servers with logins of roles, in one process over one database.
//
//   RoleServers servers(2);
//   LinkAddress link = servers.links.Connect("g1");
//   EXPECT_EQ(servers[0].LogIn(7, link), 0);
//   servers.Restart(0);                                      // As after a crash.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/Game/Online.module.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/role_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online/testing/fake_links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/check.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/wait_group.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

// Whose records cannot be had for a while, as those of a server that has just crashed.
class GuardedRoleKind final : public internal::RoleKind {
 public:
  using RoleKind::RoleKind;

  void SetOutOfReach(std::set<RoleId> roles) {
    MutexLock lock(mutex_);
    out_of_reach_ = std::move(roles);
  }

  std::optional<internal::LoginRecord> Get(Transaction& tx, const RoleId& key) override {
    {
      MutexLock lock(mutex_);
      ++reads_;
      if (out_of_reach_.contains(key)) throw std::runtime_error("the record is out of reach");
    }
    return RoleKind::Get(tx, key);
  }
  int reads() const {
    MutexLock lock(mutex_);
    return reads_;
  }

 private:
  mutable Mutex mutex_;
  std::set<RoleId> out_of_reach_ ZEZE_GUARDED_BY(mutex_);
  int reads_ ZEZE_GUARDED_BY(mutex_) = 0;
};

// What a server shares with nobody: its local tables, and its view of the cluster.
class RoleServer {
 public:
  RoleServer(std::int32_t server_id, Application& application, testing::FakeLinks& links,
             Zeze::Builtin::Game::Online::ModuleOnlineBase& shared, OnlineOptions options, int life)
      : id(server_id),
        local_name_(fmt::format("test_local_{}_{}", server_id, life)),
        links_name_(fmt::format("test_links_{}_{}", server_id, life)),
        local_(
            {.id = HashName32(std::string_view(local_name_)), .name = local_name_, .memory = true}),
        link_logins_(
            {.id = HashName32(std::string_view(links_name_)), .name = links_name_, .memory = true}),
        application_(application),
        links_(links),
        kind("", {.shared = shared.tOnlineShared,
                  .online = shared.tOnline,
                  .notifies = shared.tReliableNotify,
                  .server_logins = shared.tServerLogins,
                  .local = local_,
                  .links = link_logins_}),
        logins(kind, options) {
    application.AddTable(local_);
    application.AddTable(link_logins_);
  }

  std::shared_ptr<ProviderSession> SessionOf(const LinkAddress& link, std::string context = {},
                                             std::string account = "ann") {
    return std::make_shared<ProviderSession>(
        links_, ProviderSession::State{
                    .address = link, .account = std::move(account), .context = std::move(context)});
  }

  std::int64_t LogIn(RoleId role, const LinkAddress& link, const std::string& account = "ann") {
    return Request(
        SessionOf(link, links_.Context(link), account),
        [&](Transaction& tx, Session& session) { return logins.LogIn(tx, session, role); });
  }
  std::int64_t LogInAgain(RoleId role, const LinkAddress& link, std::int64_t confirmed,
                          std::int64_t hash = 0) {
    return Request(SessionOf(link, links_.Context(link)), [&](Transaction& tx, Session& session) {
      return logins.LogInAgain(tx, session, role, {.index = confirmed, .hash = hash});
    });
  }
  std::int64_t LogOut(RoleId role, const LinkAddress& link) {
    return Request(SessionOf(link, std::to_string(role)),
                   [&](Transaction& tx, Session& session) { return logins.LogOut(tx, session); });
  }
  std::int64_t Confirm(RoleId role, const LinkAddress& link, std::int64_t index, bool sync,
                       std::int64_t hash = 0) {
    return Request(SessionOf(link, std::to_string(role)), [&](Transaction& tx, Session& session) {
      return logins.ConfirmNotifies(tx, session, {.index = index, .hash = hash}, sync);
    });
  }

  std::int64_t Request(const std::shared_ptr<ProviderSession>& session,
                       const std::function<std::int64_t(Transaction&, Session&)>& handle) {
    return application_.Call("request", [&](Transaction& tx) { return handle(tx, *session); });
  }

  std::optional<Login<RoleId>> Find(RoleId role) {
    std::optional<Login<RoleId>> found;
    application_.Call("find", [&](Transaction& tx) {
      found = logins.Find(tx, role);
      return 0;
    });
    return found;
  }

  const std::int32_t id;

 private:
  const std::string local_name_;
  const std::string links_name_;
  Table<RoleId, internal::LocalRecord> local_;
  Table<internal::WireLink, Zeze::Builtin::Game::Online::BLinkLogin> link_logins_;
  Application& application_;
  testing::FakeLinks& links_;

 public:
  GuardedRoleKind kind;
  Logins<RoleId> logins;
};

class RoleServers final : public DirectSender {
 public:
  struct Options {
    OnlineOptions online = {};
    // How often each server can be started.
    int lives = 1;
    // Of each life, before it starts.
    std::function<void(RoleServer&)> prepare = nullptr;
    // More tables for the test.
    std::vector<TableBase*> tables = {};
  };

  explicit RoleServers(std::size_t count, OnlineOptions options = {},
                       std::function<void(RoleServer&)> prepare = nullptr)
      : RoleServers(count, Options{.online = options, .prepare = std::move(prepare)}) {}
  RoleServers(std::size_t count, const Options& options) : life_(count, 0), lives_(count) {
    // One worker: what was posted before a barrier has run when the barrier has.
    auto opened = Application::Open("test", {.storage = {.url = "memory:"},
                                             .worker_threads = 1,
                                             .checkpoint_period = std::chrono::seconds(0),
                                             .liveness = {.period = std::chrono::seconds(0)},
                                             .clock = &clock});
    ZEZE_CHECK(opened.ok());
    application = std::move(opened).value();
    application->AddModule(shared);
    for (TableBase* table : options.tables) application->AddTable(*table);
    for (std::size_t i = 0; i < count; ++i) {
      for (int life = 0; life < options.lives; ++life) {
        lives_[i].push_back(std::make_unique<RoleServer>(
            static_cast<std::int32_t>(i) + 1, *application, links, shared, options.online, life));
        if (options.prepare) options.prepare(*lives_[i].back());
      }
    }
    const bool started = application->Start().ok();
    ZEZE_CHECK(started);
    for (std::size_t i = 0; i < count; ++i) Begin(i);
  }
  ~RoleServers() override { static_cast<void>(application->Stop().ok()); }

  RoleServer& operator[](std::size_t index) { return *lives_[index][life_[index]]; }
  std::size_t size() const { return lives_.size(); }

  RoleServer& NextLife(std::size_t index) { return *lives_[index].at(life_[index] + 1); }

  // The old life is not used any more. False: there is no other one.
  bool Restart(std::size_t index) {
    if (life_[index] + 1 == lives_[index].size()) return false;
    ++life_[index];
    Begin(index);
    return true;
  }

  // Until everything that was posted, and what that has posted, has run.
  void Settle() const {
    for (int round = 0; round < 6; ++round) {
      WaitGroup done;
      done.Add();
      application->workers().Post(Task("barrier", [&done] { done.Done(); }));
      done.Wait();
    }
  }

  // A link between servers that loses everything.
  void LoseDirect(bool lose) { lose_direct_ = lose; }

  Result<void> Send(std::int32_t server_id,
                    const Zeze::Builtin::ProviderDirect::BTransmit& message) override {
    if (lose_direct_) return {};
    const std::vector<RoleId> roles(message.Roles.begin(), message.Roles.end());
    At(server_id).logins.Transmitted(message.ActionName, roles, message.Sender,
                                     message.Parameter.bytes);
    return {};
  }
  Result<void> Send(std::int32_t, const Zeze::Builtin::ProviderDirect::BTransmitAccount&) override {
    return {};
  }
  Result<void> RemoveLocal(std::int32_t, const std::string&) override { return {}; }
  Result<void> RemoveLocal(std::int32_t server_id, RoleId role, const std::string&) override {
    if (!lose_direct_) At(server_id).logins.RemoveStaleLocal(role);
    return {};
  }

  zeze::testing::ManualClock clock;
  testing::FakeLinks links;
  Zeze::Builtin::Game::Online::ModuleOnlineBase shared;

 private:
  RoleServer& At(std::int32_t server_id) {
    return (*this)[static_cast<std::size_t>(server_id) - 1];
  }

  void Begin(std::size_t index) {
    RoleServer& server = (*this)[index];
    server.logins.Connect(&links, this);
    const bool begun = server.logins.Start(*application, server.id).ok();
    ZEZE_CHECK(begun);
  }

  std::vector<std::size_t> life_;
  std::vector<std::vector<std::unique_ptr<RoleServer>>> lives_;
  std::atomic<bool> lose_direct_ = false;

 public:
  std::unique_ptr<Application> application;  // Ends before the tables.
};

}  // namespace zeze::arch
