// Story, Timers: what tests of logins watch and steer.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/arch/online/login.h"
#include "zeze/arch/online/testing/role_servers.h"
#include "zeze/base/mutex.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

// What happened, as handlers saw it. Thread-safe.
class Story {
 public:
  void Add(std::string line) {
    MutexLock lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> Take() {
    MutexLock lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ZEZE_GUARDED_BY(mutex_);
};

enum class Stages { kFirst, kAll };

// Writes down every change as "login 7 v1 at 2": role, version and server. The second stage adds a
// plus to the word, the third another one.
inline void RecordChanges(RoleServer& server, Story& story, Stages stages) {
  const auto record = [&](LoginChange change, const std::string& name) {
    const auto line = [&story, &server, name](std::string_view stage, const Login<RoleId>& login) {
      story.Add(fmt::format("{}{} {} v{} at {}", name, stage, login.key, login.version, server.id));
    };
    LoginHandler<RoleId> handler;
    handler.in_transaction = [line](Transaction& tx, const Login<RoleId>& login) {
      tx.AfterCommit([line, login] { line("", login); });
      return 0;
    };
    if (stages == Stages::kAll) {
      handler.in_procedure = [line](Transaction&, const Login<RoleId>& login) {
        line("+", login);
        return 0;
      };
      handler.outside = [line](const Login<RoleId>& login) { line("++", login); };
    }
    server.logins.On(change, handler);
  };
  record(LoginChange::kLogin, "login");
  record(LoginChange::kReLogin, "relogin");
  record(LoginChange::kLinkBroken, "broken");
  record(LoginChange::kLogout, "logout");
  record(LoginChange::kLocalRemoved, "local");
}

// Delayed logouts that wait until the test says that their time has come.
struct Timers {
  struct Timer {
    RoleServer* server;
    RoleId role;
    std::int64_t version;
  };
  std::vector<Timer> timers;

  void Attach(RoleServer& server) {
    server.logins.SetLogoutTimer([this, &server](Transaction& tx, RoleId role, std::int64_t version,
                                                 std::chrono::nanoseconds) {
      tx.AfterCommit(
          [this, &server, role, version] { timers.push_back({&server, role, version}); });
    });
  }
  void Fire() {
    for (const Timer& timer : std::exchange(timers, {})) {
      timer.server->logins.LogoutIfBroken(timer.role, timer.version);
    }
  }
};

}  // namespace zeze::arch
