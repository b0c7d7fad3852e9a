// RoleTimers: timers of roles, in each online set, while they are logged in and while they are not.
//
//   arch::RoleOnline online({}, {"battle"});
//   arch::RoleTimers role_timers(online, timers);
//   role_timers.online().RegisterHandler("energy", ...);
//   role_timers.offline().RegisterHandler("harvest", ...);
//   application.AddModule(auto_keys);
//   application.AddModule(timers);                           // Before the logins.
//   application.AddModule(online);
//   ...
//   role_timers.online().Schedule(tx, role, TimerSpec::Every("energy", 60s, 60s));
//   role_timers.online("battle").Schedule(tx, role, TimerSpec::After("surrender", 5min));

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/arch/online/login.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/arch/online_timer/offline_timers.h"
#include "zeze/arch/online_timer/online_timers.h"
#include "zeze/components/timer/timers.h"

namespace zeze::arch {

// Made before the application starts; ends after it.
class RoleTimers {
 public:
  // Both outlive this.
  RoleTimers(RoleOnline& online, Timers& timers, LoginTimersOptions options = {});
  RoleTimers(const RoleTimers&) = delete;
  RoleTimers& operator=(const RoleTimers&) = delete;

  // Of a set of the RoleOnline; the empty name is that of the first one.
  OnlineTimers<RoleId>& online(std::string_view set_name = {}) { return SetOf(set_name).online; }
  OfflineTimers<RoleId>& offline(std::string_view set_name = {}) { return SetOf(set_name).offline; }

 private:
  struct Set {
    Set(RoleOnline& role_online, const std::string& name, Timers& timers,
        LoginTimersOptions options);

    OnlineTimers<RoleId> online;
    OfflineTimers<RoleId> offline;
  };

  Set& SetOf(std::string_view name);

  std::map<std::string, std::unique_ptr<Set>, std::less<>> sets_;
};

}  // namespace zeze::arch
