// OfflineTimers: timers of those who have logged out: stored, so that they run wherever and
// whenever that is, until the next login ends them.
//
//   online.logins().On(LoginChange::kLogout, {.in_transaction = [&](Transaction& tx, auto& login) {
//     auto id = timers.offline().Schedule(tx, login.key, TimerSpec::After("harvest", 8h));
//     return id.ok() ? 0 : kNoHarvest;
//   }});

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "Zeze/Builtin/Timer.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/arch/online_timer/login_timer_wire.h"
#include "zeze/base/result.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

// Guarantees, besides those of Timers (once; stored; taken over; a failed run is not an end):
//   - A login, and a re-login, ends all offline timers of its key in its own transaction: none runs
//     after that has committed, on whatever server it was.
//   - Each run compares the version of the key's last login, in the transaction in which the
//     handler works: a timer that was scheduled before a login never runs behind it, even if that
//     login was on a server that knows nothing of offline timers.
//
// Thread-safe after the start of the application.
template <typename Key>
class OfflineTimers {
 public:
  using Wire = internal::LoginTimerWire<Key>;
  using Index = Table<typename Wire::TableKey, Zeze::Builtin::Timer::BOfflineTimers>;
  using Custom = typename Wire::OfflineCustom;

  // All outlive this. Who makes it hands what Wire::kOfflineHandler is told to Fire.
  OfflineTimers(Logins<Key>& logins, Timers& timers, Index& index, std::string set_name,
                LoginTimersOptions options);
  OfflineTimers(const OfflineTimers&) = delete;
  OfflineTimers& operator=(const OfflineTimers&) = delete;

  // Before the start of the application; on every server.
  void RegisterHandler(std::string name, LoginTimerHandler<Key> handler);

  // --- inside a transaction ---

  // On any server, while the key is logged out: in handlers of kLogout, and later. Returns the id,
  // which begins with '@'. Errors, and nothing has changed then:
  //   - kNotFound: the key has never logged in, or has been forgotten.
  //   - kConflict: it is logged in.
  //   - kInvalidArgument: what is wrong with the spec. One that repeats needs `times` or an end.
  //   - kOverloaded: it has as many as it may (LoginTimersOptions::offline_timers_max).
  Result<std::string> Schedule(Transaction& tx, const Key& key, const TimerSpec& spec);
  // A key has one timer of a name. False: it has that already, and it stays.
  Result<bool> ScheduleNamed(Transaction& tx, const Key& key, const std::string& name,
                             const TimerSpec& spec);

  // By id or name, of any server. False: the key has no such timer.
  bool Cancel(Transaction& tx, const Key& key, const std::string& id);
  void CancelAll(Transaction& tx, const Key& key);
  std::optional<TimerInfo> Find(Transaction& tx, const Key& key, const std::string& id);
  std::size_t Count(Transaction& tx, const Key& key);

  // --- for the owner ---

  std::int64_t Fire(Transaction& tx, TimerContext& timer, const Custom& custom);

 private:
  // What Schedule needs to know: the version that the timer is for.
  Result<std::int64_t> Check(Transaction& tx, const Key& key, const TimerSpec& spec);
  Result<void> MakeRoom(Transaction& tx, const Key& key, std::int64_t version);
  Custom CustomOf(const Key& key, std::int64_t version, const std::string& timer_id,
                  const TimerSpec& spec) const;
  // The id in Timers of what the key calls so.
  std::string TimerIdOf(const Key& key, const std::string& id) const;
  std::optional<Custom> FindCustom(Transaction& tx, const std::string& timer_id);
  void Forget(Transaction& tx, const Key& key, const std::string& timer_id);

  Logins<Key>& logins_;
  Timers& timers_;
  Index& index_;
  const std::string set_name_;
  const LoginTimersOptions options_;
  LoginTimerHandlers<Key> handlers_;
};

extern template class OfflineTimers<AccountKey>;
extern template class OfflineTimers<RoleId>;

}  // namespace zeze::arch
