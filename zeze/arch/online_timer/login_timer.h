// LoginTimer: what a handler of an online or offline timer is told.
//
//   timers.online().RegisterHandler("energy", [&](Transaction& tx, LoginTimer<RoleId>& timer) {
//     game.tRole.Edit(tx, timer.key())->energy += timer.data().As<BAmount>()->amount;
//     return result_code::kSuccess;
//   });

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/arch/online/login.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

struct LoginTimersOptions {
  // Online timers of one login; 0: as many as there are.
  std::size_t online_timers_max = 0;
  // Offline timers of one client of an account, or of one role in one set; 0: none.
  std::size_t offline_timers_max = 200;
};

// Belongs to its call. Key is AccountKey or RoleId.
template <typename Key>
class LoginTimer : public TimerContext {
 public:
  LoginTimer(const TimerContext& timer, std::string_view id, AnyBean data, const Key& key,
             std::int64_t login_version)
      : TimerContext(timer, id, std::move(data)), key_(key), login_version_(login_version) {}

  const Key& key() const { return key_; }
  // Online: of the login that has this timer. Offline: of the one that ended last.
  std::int64_t login_version() const { return login_version_; }

 private:
  const Key& key_;
  std::int64_t login_version_;
};

// As TimerHandler: 0 is done; after anything else, or an exception, it is tried again.
template <typename Key>
using LoginTimerHandler = std::function<std::int64_t(Transaction& tx, LoginTimer<Key>& timer)>;

// Fixed once the timers have started.
template <typename Key>
class LoginTimerHandlers {
 public:
  void Add(std::string name, LoginTimerHandler<Key> handler) {
    ZEZE_REQUIRE(!name.empty(), "a timer handler needs a name");
    ZEZE_REQUIRE(handler != nullptr, "timer handler \"" + name + "\" is empty");
    const auto [at, added] = handlers_.emplace(std::move(name), std::move(handler));
    ZEZE_REQUIRE(added, "timer handler \"" + at->first + "\" was registered twice");
  }
  // Null: there is none.
  const LoginTimerHandler<Key>* Find(std::string_view name) const {
    const auto at = handlers_.find(name);
    return at == handlers_.end() ? nullptr : &at->second;
  }

 private:
  std::map<std::string, LoginTimerHandler<Key>, std::less<>> handlers_;
};

}  // namespace zeze::arch
