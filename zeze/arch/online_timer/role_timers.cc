#include "zeze/arch/online_timer/role_timers.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "Zeze/Builtin/Timer.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/arch/online_timer/login_timer_wire.h"
#include "zeze/base/log.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

using Zeze::Builtin::Timer::BOfflineRoleCustom;

RoleTimers::Set::Set(RoleOnline& role_online, const std::string& name, Timers& timers,
                     LoginTimersOptions options)
    : online(role_online.logins(name), timers,
             {.timers = role_online.timer_tables(name).timers,
              .logins = role_online.timer_tables(name).logins},
             options),
      offline(role_online.logins(name), timers, role_online.timer_tables(name).offline, name,
              options) {}

RoleTimers::RoleTimers(RoleOnline& online, Timers& timers, LoginTimersOptions options) {
  for (const std::string& name : online.set_names()) {
    sets_.emplace(name, std::make_unique<Set>(online, name, timers, options));
  }
  timers.RegisterHandler(
      internal::LoginTimerWire<RoleId>::kOfflineHandler,
      [this](Transaction& tx, TimerContext& timer) -> std::int64_t {
        const std::optional custom = timer.data().As<BOfflineRoleCustom>();
        const auto set = custom ? sets_.find(custom->OnlineSetName) : sets_.end();
        if (set != sets_.end()) return set->second->offline.Fire(tx, timer, *custom);
        if (!custom) {
          ZEZE_LOG_ERROR("offline timer {}: its data say of no role", timer.id());
          return result_code::kLogicError;
        }
        ZEZE_LOG_ERROR("offline timer {} of role {} waits: there is no online set \"{}\" here",
                       timer.id(), custom->RoleId, custom->OnlineSetName);
        return result_code::kNotImplement;
      });
}

RoleTimers::Set& RoleTimers::SetOf(std::string_view name) {
  const auto at = sets_.find(name);
  ZEZE_REQUIRE(at != sets_.end(),
               "there is no online set \"" + std::string(name) + "\": name it to the RoleOnline");
  return *at->second;
}

}  // namespace zeze::arch
