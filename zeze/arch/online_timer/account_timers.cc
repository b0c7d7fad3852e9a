#include "zeze/arch/online_timer/account_timers.h"

#include <cstdint>
#include <optional>

#include "Zeze/Builtin/Timer.h"
#include "zeze/arch/online/account_online.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/arch/online_timer/login_timer_wire.h"
#include "zeze/base/log.h"
#include "zeze/base/result_code.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

using Zeze::Builtin::Timer::BOfflineAccountCustom;

AccountTimers::AccountTimers(AccountOnline& online, Timers& timers, LoginTimersOptions options)
    : online_(online.logins(), timers,
              {.timers = timers.tAccountTimers, .logins = timers.tAccountLoginTimers}, options),
      offline_(online.logins(), timers, timers.tAccountOfflineTimers, "", options) {
  timers.RegisterHandler(internal::LoginTimerWire<AccountKey>::kOfflineHandler,
                         [this](Transaction& tx, TimerContext& timer) -> std::int64_t {
                           const std::optional custom = timer.data().As<BOfflineAccountCustom>();
                           if (custom) return offline_.Fire(tx, timer, *custom);
                           ZEZE_LOG_ERROR("offline timer {}: its data say of no account",
                                          timer.id());
                           return result_code::kLogicError;
                         });
}

}  // namespace zeze::arch
