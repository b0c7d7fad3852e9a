// AccountTimers: timers of clients of accounts, while they are logged in and while they are not.
//
//   arch::AccountOnline online({});
//   arch::AccountTimers account_timers(online, timers);
//   account_timers.online().RegisterHandler("kick idle", ...);
//   application.AddModule(auto_keys);
//   application.AddModule(timers);                           // Before the logins.
//   application.AddModule(online);
//   ...
//   account_timers.online().Schedule(tx, client, TimerSpec::After("kick idle", 10min));
//   account_timers.offline().Schedule(tx, client, TimerSpec::After("remind", 72h));

#pragma once

#include "zeze/arch/online/account_online.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/arch/online_timer/offline_timers.h"
#include "zeze/arch/online_timer/online_timers.h"
#include "zeze/components/timer/timers.h"

namespace zeze::arch {

// Made before the application starts; ends after it.
class AccountTimers {
 public:
  // Both outlive this.
  AccountTimers(AccountOnline& online, Timers& timers, LoginTimersOptions options = {});
  AccountTimers(const AccountTimers&) = delete;
  AccountTimers& operator=(const AccountTimers&) = delete;

  OnlineTimers<AccountKey>& online() { return online_; }
  OfflineTimers<AccountKey>& offline() { return offline_; }

 private:
  OnlineTimers<AccountKey> online_;
  OfflineTimers<AccountKey> offline_;
};

}  // namespace zeze::arch
