#include "zeze/arch/online_timer/offline_timers.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "zeze/app/application.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/any_bean.h"
#include "zeze/bean/map.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

namespace {

bool Ends(const TimerSpec& spec) {
  const bool once = spec.cron.empty() && spec.period.count() == 0;
  return once || spec.times > 0 || spec.end_time_ms > 0;
}

}  // namespace

template <typename Key>
OfflineTimers<Key>::OfflineTimers(Logins<Key>& logins, Timers& timers, Index& index,
                                  std::string set_name, LoginTimersOptions options)
    : logins_(logins),
      timers_(timers),
      index_(index),
      set_name_(std::move(set_name)),
      options_(options) {
  // If that cannot be done, the login is refused.
  const LoginHandler<Key> cancel{
      .in_transaction = [this](Transaction& tx, const Login<Key>& login) {
        CancelAll(tx, login.key);
        return result_code::kSuccess;
      }};
  logins_.On(LoginChange::kLogin, cancel);
  logins_.On(LoginChange::kReLogin, cancel);
}

template <typename Key>
void OfflineTimers<Key>::RegisterHandler(std::string name, LoginTimerHandler<Key> handler) {
  ZEZE_REQUIRE(!timers_.started(), "timer handler \"" + name +
                                       "\" was registered after the start: call RegisterHandler "
                                       "before Application::Start");
  handlers_.Add(std::move(name), std::move(handler));
}

// --- scheduling ---

template <typename Key>
Result<std::int64_t> OfflineTimers<Key>::Check(Transaction& tx, const Key& key,
                                               const TimerSpec& spec) {
  if (!timers_.started()) {
    return Error(ErrorCode::kInvalidArgument,
                 "offline timer: Timers have not started: add that module to the application "
                 "before the one of the logins");
  }
  if (handlers_.Find(spec.handler) == nullptr) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("offline timer: no handler \"{}\" is registered", spec.handler));
  }
  if (!Ends(spec)) {
    return Error(ErrorCode::kInvalidArgument,
                 "offline timer: it would repeat without end: give it times or an end time");
  }
  if (const auto version = logins_.LastVersionIfOffline(tx, key)) return *version;
  if (const std::optional<Login<Key>> login = logins_.Find(tx, key)) {
    return Error(ErrorCode::kConflict, fmt::format("offline timer: {} is logged in on server {}",
                                                   Wire::Describe(key), login->server_id));
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("offline timer: {} has never logged in", Wire::Describe(key)));
}

// Timers that have ended by themselves while they were loaded, or whose end was on a server that
// knows nothing of this, are still in the index: they do not count.
template <typename Key>
Result<void> OfflineTimers<Key>::MakeRoom(Transaction& tx, const Key& key, std::int64_t version) {
  if (Count(tx, key) < options_.offline_timers_max) return {};
  const auto* found = index_.Get(tx, Wire::TableKeyOf(key));
  const Map<std::string, std::int32_t> timers =
      found == nullptr ? Map<std::string, std::int32_t>() : found->OfflineTimers;
  for (const auto& [timer_id, server_id] : timers) {
    const std::optional<Custom> custom = FindCustom(tx, timer_id);
    if (custom && custom->LoginVersion == version) continue;
    timers_.Cancel(tx, timer_id);
    Forget(tx, key, timer_id);
  }
  const std::size_t count = Count(tx, key);
  if (count < options_.offline_timers_max) return {};
  return Error(ErrorCode::kOverloaded,
               fmt::format("offline timer: {} has {} already, as many as offline_timers_max allows",
                           Wire::Describe(key), count));
}

template <typename Key>
auto OfflineTimers<Key>::CustomOf(const Key& key, std::int64_t version, const std::string& timer_id,
                                  const TimerSpec& spec) const -> Custom {
  Custom custom;
  custom.TimerName = timer_id;
  Wire::SetKey(custom, key);
  Wire::SetSet(custom, set_name_);
  custom.LoginVersion = version;
  custom.HandleName = spec.handler;
  custom.CustomData = spec.data;
  return custom;
}

template <typename Key>
Result<std::string> OfflineTimers<Key>::Schedule(Transaction& tx, const Key& key,
                                                 const TimerSpec& spec) {
  const Result<std::int64_t> version = Check(tx, key, spec);
  if (!version.ok()) return version.error();
  if (Result<void> room = MakeRoom(tx, key, version.value()); !room.ok()) return room.error();
  TimerSpec outer = spec;
  outer.handler = Wire::kOfflineHandler;
  Result<std::string> id = timers_.Schedule(tx, outer);
  if (!id.ok()) return id;
  timers_.SetData(tx, id.value(), AnyBean::Of(CustomOf(key, version.value(), id.value(), spec)));
  index_.GetOrAdd(tx, Wire::TableKeyOf(key))
      ->OfflineTimers.Put(id.value(), timers_.application().options().server_id);
  return id;
}

template <typename Key>
Result<bool> OfflineTimers<Key>::ScheduleNamed(Transaction& tx, const Key& key,
                                               const std::string& name, const TimerSpec& spec) {
  if (name.empty() || name.starts_with('@')) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("offline timer: the name \"{}\" is empty or begins with '@', as those "
                             "that get their name by themselves",
                             name));
  }
  const Result<std::int64_t> version = Check(tx, key, spec);
  if (!version.ok()) return version.error();
  const std::string timer_id = TimerIdOf(key, name);
  if (const std::optional<Custom> old = FindCustom(tx, timer_id)) {
    if (old->LoginVersion == version.value()) return false;
    timers_.Cancel(tx, timer_id);  // Of before a login.
    Forget(tx, key, timer_id);
  }
  if (Result<void> room = MakeRoom(tx, key, version.value()); !room.ok()) return room.error();
  TimerSpec outer = spec;
  outer.handler = Wire::kOfflineHandler;
  outer.data = AnyBean::Of(CustomOf(key, version.value(), timer_id, spec));
  Result<bool> scheduled = timers_.ScheduleNamed(tx, timer_id, outer);
  if (!scheduled.ok()) return scheduled;
  if (!scheduled.value()) {
    return Error(ErrorCode::kInUse,
                 fmt::format("offline timer: there is another timer named \"{}\"", timer_id));
  }
  index_.GetOrAdd(tx, Wire::TableKeyOf(key))
      ->OfflineTimers.Put(timer_id, timers_.application().options().server_id);
  return true;
}

template <typename Key>
std::string OfflineTimers<Key>::TimerIdOf(const Key& key, const std::string& id) const {
  return id.starts_with('@') ? id : Wire::FullName(key, set_name_, id);
}

template <typename Key>
auto OfflineTimers<Key>::FindCustom(Transaction& tx, const std::string& timer_id)
    -> std::optional<Custom> {
  const std::optional<TimerInfo> info = timers_.Find(tx, timer_id);
  return info ? info->data.template As<Custom>() : std::nullopt;
}

template <typename Key>
void OfflineTimers<Key>::Forget(Transaction& tx, const Key& key, const std::string& timer_id) {
  const typename Wire::TableKey table_key = Wire::TableKeyOf(key);
  const auto timers = index_.Edit(tx, table_key);
  if (!timers) return;
  timers->OfflineTimers.Erase(timer_id);
  if (timers->OfflineTimers.empty()) index_.Remove(tx, table_key);
}

template <typename Key>
bool OfflineTimers<Key>::Cancel(Transaction& tx, const Key& key, const std::string& id) {
  const std::string timer_id = TimerIdOf(key, id);
  const auto* timers = index_.Get(tx, Wire::TableKeyOf(key));
  if (timers == nullptr || !timers->OfflineTimers.Contains(timer_id)) return false;
  Forget(tx, key, timer_id);
  return timers_.Cancel(tx, timer_id);
}

template <typename Key>
void OfflineTimers<Key>::CancelAll(Transaction& tx, const Key& key) {
  const auto* found = index_.Get(tx, Wire::TableKeyOf(key));
  if (found == nullptr) return;
  const Map<std::string, std::int32_t> timers = found->OfflineTimers;
  for (const auto& [timer_id, server_id] : timers) timers_.Cancel(tx, timer_id);
  index_.Remove(tx, Wire::TableKeyOf(key));
}

template <typename Key>
std::optional<TimerInfo> OfflineTimers<Key>::Find(Transaction& tx, const Key& key,
                                                  const std::string& id) {
  const std::string timer_id = TimerIdOf(key, id);
  const auto* timers = index_.Get(tx, Wire::TableKeyOf(key));
  if (timers == nullptr || !timers->OfflineTimers.Contains(timer_id)) return std::nullopt;
  std::optional<TimerInfo> info = timers_.Find(tx, timer_id);
  if (!info) return std::nullopt;
  const std::optional<Custom> custom = info->data.template As<Custom>();
  if (!custom) return std::nullopt;
  info->id = id;
  info->handler = custom->HandleName;
  info->data = custom->CustomData;
  return info;
}

template <typename Key>
std::size_t OfflineTimers<Key>::Count(Transaction& tx, const Key& key) {
  const auto* timers = index_.Get(tx, Wire::TableKeyOf(key));
  return timers == nullptr ? 0 : timers->OfflineTimers.size();
}

// --- firing ---

template <typename Key>
std::int64_t OfflineTimers<Key>::Fire(Transaction& tx, TimerContext& timer, const Custom& custom) {
  const Key key = Wire::KeyOf(custom);
  const std::string timer_id(timer.id());
  const std::optional<std::int64_t> version = logins_.LastVersionIfOffline(tx, key);
  if (version != custom.LoginVersion) {
    ZEZE_LOG_INFO("offline timer {} of {} ends: it is of before a login", timer_id,
                  Wire::Describe(key));
    timers_.Cancel(tx, timer_id);
    Forget(tx, key, timer_id);
    return result_code::kSuccess;
  }
  const LoginTimerHandler<Key>* handler = handlers_.Find(custom.HandleName);
  if (handler == nullptr) {
    ZEZE_LOG_ERROR("offline timer {} of {} waits: no handler \"{}\" is registered on this server",
                   timer_id, Wire::Describe(key), custom.HandleName);
    return result_code::kNotImplement;
  }
  const std::string prefix = Wire::FullName(key, set_name_, {});
  const std::string_view id =
      timer.id().starts_with(prefix) ? timer.id().substr(prefix.size()) : timer.id();
  const std::int64_t serial_id = timers_.SerialIdOf(tx, timer_id);
  LoginTimer<Key> context(timer, id, custom.CustomData, key, *version);
  const std::int64_t code = (*handler)(tx, context);
  if (code != result_code::kSuccess) return code;
  if (!(context.data() == custom.CustomData)) {
    Custom changed = custom;
    changed.CustomData = context.data();
    timer.SetData(AnyBean::Of(changed));
  }
  if (context.next_time()) timer.SetNextTime(*context.next_time());
  if (!timer.last_time()) return code;
  // Other timers of the same user that end change the same record.
  tx.EndWith([this, key, timer_id, serial_id](Transaction& end) -> std::int64_t {
    // Unless the handler has registered the name anew.
    if (timers_.SerialIdOf(end, timer_id) == serial_id) Forget(end, key, timer_id);
    return result_code::kSuccess;
  });
  return code;
}

template class OfflineTimers<AccountKey>;
template class OfflineTimers<RoleId>;

}  // namespace zeze::arch
