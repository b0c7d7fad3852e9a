#include "zeze/arch/online_timer/online_timers.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "Zeze/Builtin/Timer.h"
#include "zeze/app/application.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/base/check.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/map.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timer_retry.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

template <typename Key>
OnlineTimers<Key>::OnlineTimers(Logins<Key>& logins, Timers& timers,
                                const OnlineTimerTables<Key>& tables, LoginTimersOptions options)
    : logins_(logins),
      timers_(timers),
      tables_(tables),
      options_(options),
      transmit_(
          logins,
          {.schedule = [this](Transaction& tx, const Key& key, std::int64_t version,
                              const TimerBean& timer) { return Accept(tx, key, version, timer); },
           .cancel =
               [this](Transaction& tx, const Key& key, std::int64_t version,
                      const std::string& id) {
                 const std::optional<Login<Key>> login = logins_.FindHere(tx, key);
                 if (login && login->version == version) Cancel(tx, key, id);
               }}) {
  logins_.On(LoginChange::kLocalRemoved,
             {.in_transaction = [this](Transaction& tx, const Login<Key>& login) {
               EndAll(tx, login.key);
               return result_code::kSuccess;
             }});
  timers_.OnSetBack([this] { return Heal(); });
}

template <typename Key>
void OnlineTimers<Key>::RegisterHandler(std::string name, LoginTimerHandler<Key> handler) {
  ZEZE_REQUIRE(!timers_.started(), "timer handler \"" + name +
                                       "\" was registered after the start: call RegisterHandler "
                                       "before Application::Start");
  handlers_.Add(std::move(name), std::move(handler));
}

// --- scheduling ---

template <typename Key>
Result<Login<Key>> OnlineTimers<Key>::LoginHere(Transaction& tx, const Key& key) {
  std::optional<Login<Key>> login = logins_.FindHere(tx, key);
  if (login) return *std::move(login);
  const std::optional<Login<Key>> elsewhere = logins_.Find(tx, key);
  if (!elsewhere) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("online timer: {} is not logged in", Wire::Describe(key)));
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("online timer: {} is logged in on server {}, not here: "
                           "ScheduleWhereOnline sends it there",
                           Wire::Describe(key), elsewhere->server_id));
}

template <typename Key>
Result<void> OnlineTimers<Key>::CheckHandler(const std::string& name) const {
  if (handlers_.Find(name) != nullptr) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("online timer: no handler \"{}\" is registered", name));
}

template <typename Key>
Result<TimerBean> OnlineTimers<Key>::Plan(const TimerSpec& spec) const {
  if (Result<void> started = CheckStarted(); !started.ok()) return started.error();
  if (Result<void> known = CheckHandler(spec.handler); !known.ok()) return known.error();
  return PlanTimer(spec, timers_.UnixNow());
}

template <typename Key>
Result<void> OnlineTimers<Key>::CheckStarted() const {
  if (timers_.started()) return {};
  return Error(ErrorCode::kInvalidArgument,
               "online timer: Timers have not started: add that module to the application before "
               "the one of the logins");
}

template <typename Key>
auto OnlineTimers<Key>::TimersOf(Transaction& tx, const Login<Key>& login) -> const LoginTimers* {
  const LoginTimers* timers = tables_.logins.Get(tx, Wire::TableKeyOf(login.key));
  if (timers == nullptr || timers->LoginVersion == login.version) return timers;
  EndAll(tx, login.key);  // Of an older login.
  return nullptr;
}

template <typename Key>
Result<void> OnlineTimers<Key>::CheckRoom(const Key& key, const LoginTimers* timers) const {
  const std::size_t count = timers == nullptr ? 0 : timers->Timers.size();
  if (options_.online_timers_max == 0 || count < options_.online_timers_max) return {};
  return Error(ErrorCode::kOverloaded,
               fmt::format("online timer: {} has {} already, as many as online_timers_max allows",
                           Wire::Describe(key), count));
}

template <typename Key>
Result<void> OnlineTimers<Key>::CheckName(const std::string& name) {
  if (!name.empty() && !name.starts_with('@')) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("online timer: the name \"{}\" is empty or begins with '@', as those "
                           "that get their name by themselves",
                           name));
}

template <typename Key>
Result<std::string> OnlineTimers<Key>::Schedule(Transaction& tx, const Key& key,
                                                const TimerSpec& spec) {
  Result<TimerBean> timer = Plan(spec);
  if (!timer.ok()) return timer.error();
  const Result<Login<Key>> login = LoginHere(tx, key);
  if (!login.ok()) return login.error();
  const LoginTimers* timers = TimersOf(tx, login.value());
  if (Result<void> room = CheckRoom(key, timers); !room.ok()) return room.error();
  // Unique for the key: versions of its logins only grow.
  std::string id =
      fmt::format("@{}.{}", login.value().version, timers == nullptr ? 1 : timers->LastNumber + 1);
  Insert(tx, login.value(), id, std::move(timer).value());
  tables_.logins.Edit(tx, Wire::TableKeyOf(key))->LastNumber += 1;
  return id;
}

template <typename Key>
Result<bool> OnlineTimers<Key>::ScheduleNamed(Transaction& tx, const Key& key,
                                              const std::string& name, const TimerSpec& spec) {
  if (Result<void> named = CheckName(name); !named.ok()) return named.error();
  Result<TimerBean> timer = Plan(spec);
  if (!timer.ok()) return timer.error();
  const Result<Login<Key>> login = LoginHere(tx, key);
  if (!login.ok()) return login.error();
  const LoginTimers* timers = TimersOf(tx, login.value());
  if (timers != nullptr && timers->Timers.Contains(name)) return false;
  if (Result<void> room = CheckRoom(key, timers); !room.ok()) return room.error();
  Insert(tx, login.value(), name, std::move(timer).value());
  return true;
}

template <typename Key>
void OnlineTimers<Key>::Insert(Transaction& tx, const Login<Key>& login, const std::string& id,
                               TimerBean timer) {
  const std::int64_t serial_id = timers_.NewLocal();
  timer.TimerName = id;
  OnlineTimer stored{.LoginVersion = login.version, .SerialId = serial_id, .Timer = timer};
  Wire::SetKey(stored, login.key);
  tables_.timers.Put(tx, std::to_string(serial_id), std::move(stored));
  auto timers = tables_.logins.GetOrAdd(tx, Wire::TableKeyOf(login.key));
  timers->LoginVersion = login.version;
  timers->Timers.Put(id, serial_id);
  ArmAfterCommit(tx, serial_id, timer);
}

template <typename Key>
void OnlineTimers<Key>::Remove(Transaction& tx, const Key& key, const std::string& id,
                               std::int64_t serial_id) {
  tables_.timers.Remove(tx, std::to_string(serial_id));
  // The record stays for its LastNumber.
  if (auto timers = tables_.logins.Edit(tx, Wire::TableKeyOf(key))) timers->Timers.Erase(id);
  tx.AfterCommit([this, serial_id] { timers_.CancelLocal(serial_id); });
}

template <typename Key>
void OnlineTimers<Key>::EndAll(Transaction& tx, const Key& key) {
  const LoginTimers* found = tables_.logins.Get(tx, Wire::TableKeyOf(key));
  if (found == nullptr) return;
  const Map<std::string, std::int64_t> timers = found->Timers;
  for (const auto& [id, serial_id] : timers) {
    tables_.timers.Remove(tx, std::to_string(serial_id));
  }
  tables_.logins.Remove(tx, Wire::TableKeyOf(key));
  tx.AfterCommit([this, timers] {
    for (const auto& [id, serial_id] : timers) timers_.CancelLocal(serial_id);
  });
}

template <typename Key>
auto OnlineTimers<Key>::FindTimer(Transaction& tx, const Key& key, const std::string& id)
    -> const OnlineTimer* {
  const std::optional<Login<Key>> login = logins_.FindHere(tx, key);
  if (!login) return nullptr;
  const LoginTimers* timers = tables_.logins.Get(tx, Wire::TableKeyOf(key));
  if (timers == nullptr || timers->LoginVersion != login->version) return nullptr;
  const std::int64_t* serial_id = timers->Timers.Find(id);
  return serial_id == nullptr ? nullptr : tables_.timers.Get(tx, std::to_string(*serial_id));
}

template <typename Key>
bool OnlineTimers<Key>::Cancel(Transaction& tx, const Key& key, const std::string& id) {
  const OnlineTimer* timer = FindTimer(tx, key, id);
  if (timer == nullptr) return false;
  Remove(tx, key, id, timer->SerialId);
  return true;
}

template <typename Key>
TimerInfo OnlineTimers<Key>::InfoOf(const TimerBean& timer, std::int64_t serial_id) const {
  return Timers::InfoOf(timer.TimerName, timer, timers_.application().options().server_id,
                        serial_id);
}

template <typename Key>
std::optional<TimerInfo> OnlineTimers<Key>::Find(Transaction& tx, const Key& key,
                                                 const std::string& id) {
  const OnlineTimer* timer = FindTimer(tx, key, id);
  return timer == nullptr ? std::nullopt : std::optional(InfoOf(timer->Timer, timer->SerialId));
}

template <typename Key>
std::size_t OnlineTimers<Key>::Count(Transaction& tx, const Key& key) {
  const std::optional<Login<Key>> login = logins_.FindHere(tx, key);
  if (!login) return 0;
  const LoginTimers* timers = tables_.logins.Get(tx, Wire::TableKeyOf(key));
  const bool has = timers != nullptr && timers->LoginVersion == login->version;
  return has ? timers->Timers.size() : 0;
}

// --- on other servers ---

template <typename Key>
Result<std::string> OnlineTimers<Key>::ScheduleWhereOnline(Transaction& tx, const Key& key,
                                                           const TimerSpec& spec) {
  if (Result<void> started = CheckStarted(); !started.ok()) return started.error();
  const std::optional<Login<Key>> login = logins_.Find(tx, key);
  if (!login || logins_.FindHere(tx, key)) return Schedule(tx, key, spec);
  std::string id = timers_.NewTimerId(tx);
  if (Result<void> sent = Send(tx, *login, id, spec); !sent.ok()) return sent.error();
  return id;
}

template <typename Key>
Result<void> OnlineTimers<Key>::ScheduleNamedWhereOnline(Transaction& tx, const Key& key,
                                                         const std::string& name,
                                                         const TimerSpec& spec) {
  if (Result<void> started = CheckStarted(); !started.ok()) return started;
  const std::optional<Login<Key>> login = logins_.Find(tx, key);
  if (!login || logins_.FindHere(tx, key)) {
    const Result<bool> scheduled = ScheduleNamed(tx, key, name, spec);
    return scheduled.ok() ? Result<void>() : scheduled.error();
  }
  if (Result<void> named = CheckName(name); !named.ok()) return named;
  return Send(tx, *login, name, spec);
}

// The handler may be one that only the server of the login has.
template <typename Key>
Result<void> OnlineTimers<Key>::Send(Transaction& tx, const Login<Key>& login,
                                     const std::string& id, const TimerSpec& spec) {
  Result<TimerBean> timer = PlanTimer(spec, timers_.UnixNow());
  if (!timer.ok()) return timer.error();
  timer.value().TimerName = id;
  transmit_.Send(tx, login, timer.value());
  return {};
}

template <typename Key>
bool OnlineTimers<Key>::CancelWhereOnline(Transaction& tx, const Key& key, const std::string& id) {
  const std::optional<Login<Key>> login = logins_.Find(tx, key);
  if (!login) return false;
  if (logins_.FindHere(tx, key)) return Cancel(tx, key, id);
  transmit_.SendCancel(tx, *login, id);
  return true;
}

template <typename Key>
Result<void> OnlineTimers<Key>::Accept(Transaction& tx, const Key& key, std::int64_t version,
                                       TimerBean timer) {
  if (Result<void> plan = CheckPlan(timer); !plan.ok()) return plan;
  if (timer.TimerName.empty()) {
    return Error(ErrorCode::kInvalidArgument, "online timer: it has no name");
  }
  if (Result<void> known = CheckHandler(timer.HandleName); !known.ok()) return known;
  const Result<Login<Key>> login = LoginHere(tx, key);
  if (!login.ok()) return login.error();
  if (login.value().version != version) return {};  // Of a login that has ended meanwhile.
  const LoginTimers* timers = TimersOf(tx, login.value());
  const std::string id = timer.TimerName;
  if (timers != nullptr && timers->Timers.Contains(id)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("online timer: there is one with the name \"{}\" already", id));
  }
  if (Result<void> room = CheckRoom(key, timers); !room.ok()) return room;
  Insert(tx, login.value(), id, std::move(timer));
  return {};
}

// --- firing ---

template <typename Key>
bool OnlineTimers<Key>::Heal() {
  const auto heal = [this](Transaction& tx, const std::string& serial_id) {
    const OnlineTimer* found = tables_.timers.Get(tx, serial_id);
    if (found == nullptr || found->Timer.Parked) return;
    TimerBean timer = found->Timer;
    if (!HealPlan(timer, timers_.UnixNow(), PlannedBy::kThisServer)) return;
    ArmAfterCommit(tx, found->SerialId, timer);
    tables_.timers.Edit(tx, serial_id)->Timer = timer;
  };
  bool all = true;
  const Result<std::size_t> walked = tables_.timers.WalkKeys([&](const std::string& serial_id) {
    const std::int64_t code = timers_.application().Call("heal online timer", [&](Transaction& tx) {
      heal(tx, serial_id);
      return result_code::kSuccess;
    });
    all = all && code == result_code::kSuccess;
    return timers_.application().engine().running();
  });
  return all && walked.ok();
}

template <typename Key>
void OnlineTimers<Key>::ArmAfterCommit(Transaction& tx, std::int64_t serial_id,
                                       const TimerBean& timer) {
  auto moment = std::make_shared<Moment>(Moment{.serial_id = serial_id,
                                                .serial = timer.ConcurrentFireSerialNo,
                                                .one_by_one_key = OneByOneKey(timer)});
  tx.AfterCommit([this, moment, due = DueTime(timer)] { Arm(std::move(*moment), due); });
}

template <typename Key>
void OnlineTimers<Key>::Arm(Moment moment, std::int64_t unix_ms) {
  const std::int64_t serial_id = moment.serial_id;
  timers_.SetLocal(serial_id, unix_ms,
                   Task("online timer", [this, moment = std::move(moment)] { Ring(moment); }));
}

// On a worker.
template <typename Key>
void OnlineTimers<Key>::Ring(Moment moment) {
  if (moment.one_by_one_key.empty()) return Fire(std::move(moment));
  const Result<void> posted = timers_.application().one_by_one().Post(
      moment.one_by_one_key, Task("online timer", [this, moment] { Fire(moment); }));
  if (posted.ok() || posted.error().code() == ErrorCode::kShuttingDown) return;
  const std::int64_t later = timers_.UnixNow() + PutOffDelay(moment.attempts).count();
  ++moment.attempts;
  Arm(std::move(moment), later);
}

template <typename Key>
void OnlineTimers<Key>::Fire(Moment moment) {
  Firing firing{.moment = moment};
  const std::int64_t code = timers_.application().Call(
      "fire online timer", [&](Transaction& tx) -> std::int64_t { return FireIn(tx, firing); });
  if (code == result_code::kSuccess || !timers_.application().engine().running()) return;
  // Not the timer's fault: a conflict, a lease, a storage. It is as it was, and is tried again.
  ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(5),
                         "an online timer could not be run (result code {}); it is tried again",
                         code);
  const std::int64_t later = timers_.UnixNow() + PutOffDelay(moment.attempts).count();
  ++moment.attempts;
  Arm(std::move(moment), later);
}

template <typename Key>
std::int64_t OnlineTimers<Key>::FireIn(Transaction& tx, Firing& firing) {
  const OnlineTimer* found = tables_.timers.Get(tx, std::to_string(firing.moment.serial_id));
  if (found == nullptr) return result_code::kSuccess;  // Canceled, or its login has ended.
  firing.stored = *found;
  firing.key = Wire::KeyOf(firing.stored);
  const std::optional<Login<Key>> login = logins_.FindHere(tx, firing.key);
  if (!login || login->version != firing.stored.LoginVersion) {
    EndStale(tx, firing.key, firing.stored);
    return result_code::kSuccess;
  }
  TimerBean& timer = firing.timer;
  timer = firing.stored.Timer;
  // Whoever ran it meanwhile has armed it again.
  if (timer.Parked || timer.ConcurrentFireSerialNo != firing.moment.serial) {
    return result_code::kSuccess;
  }
  if (DueTime(timer) > timers_.UnixNow()) {  // The wall clock was set back.
    ArmAfterCommit(tx, firing.stored.SerialId, timer);
    return result_code::kSuccess;
  }
  if (!LeaveOutMissed(tx, firing.stored, timer)) return result_code::kSuccess;

  const LoginTimerHandler<Key>* handler = handlers_.Find(timer.HandleName);
  ZEZE_CHECK(handler != nullptr);  // Schedule has seen it.
  const TimerContext plain(timer.TimerName, timer, timers_.UnixNow(),
                           timers_.options().misfire_after.count());
  firing.context.emplace(plain, plain.id(), plain.data(), firing.key, login->version);
  firing.code = tx.Call("online timer handler", [&](Transaction& nested) {
    return CallTimerHandler("online timer", timer.TimerName, timer.HandleName,
                            [&] { return (*handler)(nested, *firing.context); });
  });
  if (IsPassing(firing.code)) return firing.code;
  tx.EndWith([this, &firing](Transaction& end) { return FinishFiring(end, firing); });
  return result_code::kSuccess;
}

// This server has not heard yet that the login has ended elsewhere.
template <typename Key>
void OnlineTimers<Key>::EndStale(Transaction& tx, const Key& key, const OnlineTimer& timer) {
  const LoginTimers* timers = tables_.logins.Get(tx, Wire::TableKeyOf(key));
  if (timers != nullptr && timers->LoginVersion == timer.LoginVersion) return EndAll(tx, key);
  tables_.timers.Remove(tx, std::to_string(timer.SerialId));
}

template <typename Key>
bool OnlineTimers<Key>::LeaveOutMissed(Transaction& tx, const OnlineTimer& stored,
                                       TimerBean& timer) {
  if (timer.FailedTimes > 0) return true;  // This occurrence has begun.
  const std::int64_t now = timers_.UnixNow();
  const std::string& id = timer.TimerName;
  if (!ApplyMisfire(timer, now, timers_.options().misfire_after.count())) {
    Remove(tx, Wire::KeyOf(stored), id, stored.SerialId);
    return false;
  }
  if (DueTime(timer) <= now) return true;
  timer.ConcurrentFireSerialNo += 1;
  tables_.timers.Edit(tx, std::to_string(stored.SerialId))->Timer = timer;
  ArmAfterCommit(tx, stored.SerialId, timer);
  return false;
}

template <typename Key>
std::int64_t OnlineTimers<Key>::FinishFiring(Transaction& tx, const Firing& firing) {
  const Moment& moment = firing.moment;
  const auto stored = tables_.timers.Edit(tx, std::to_string(moment.serial_id));
  // The handler has canceled the timer, or ended the login.
  if (!stored) return result_code::kSuccess;
  TimerBean timer = firing.timer;
  timer.ConcurrentFireSerialNo += 1;
  bool more = true;
  if (firing.code == result_code::kSuccess) {
    const LoginTimer<Key>& context = *firing.context;
    more = AdvanceTimer(timer, context.now_ms(), timers_.options().misfire_after.count());
    if (more && context.next_time()) SetPlannedTime(timer, *context.next_time());
    timer.CustomData = context.data();
    timer.FailedTimes = 0;
    timer.RetryTime = 0;
  } else {
    NoteFailure(tx, moment, firing.key, timer, firing.code);
  }
  if (!more) {
    Remove(tx, firing.key, timer.TimerName, moment.serial_id);
    return result_code::kSuccess;
  }
  stored->Timer = timer;
  if (!timer.Parked) ArmAfterCommit(tx, moment.serial_id, timer);
  return result_code::kSuccess;
}

template <typename Key>
void OnlineTimers<Key>::NoteFailure(Transaction& tx, const Moment& moment, const Key& key,
                                    TimerBean& timer, std::int64_t code) {
  const TimersOptions& options = timers_.options();
  timer.FailedTimes += 1;
  if (timer.FailedTimes <= options.retries) {
    timer.RetryTime =
        timers_.UnixNow() +
        RetryDelay(timer.FailedTimes, options.retry_delay, options.retry_delay_max).count();
    return;
  }
  timer.Parked = true;
  tx.AfterCommit([this, key, code,
                  info = std::make_shared<TimerInfo>(InfoOf(timer, moment.serial_id))] {
    ZEZE_LOG_ERROR(
        "online timer {} of {} is parked until the login ends: its handler \"{}\" failed {} times, "
        "the last time with result code {}",
        info->id, Wire::Describe(key), info->handler, info->failed_times, code);
    if (timers_.options().on_parked) timers_.options().on_parked(*info, code);
  });
}

template class OnlineTimers<AccountKey>;
template class OnlineTimers<RoleId>;

}  // namespace zeze::arch
