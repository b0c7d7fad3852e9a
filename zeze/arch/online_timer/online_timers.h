// OnlineTimers: timers of those who are logged in on this server. In memory; each belongs to one
// login and ends with it.
//
//   auto id = timers.online().Schedule(tx, role, TimerSpec::Every("energy", 60s, 60s));
//   timers.online().ScheduleNamed(tx, role, "buff", TimerSpec::After("buff ends", 30s));
//   timers.online().Cancel(tx, role, "buff");

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "Zeze/Builtin/Timer.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online_timer/login_timer.h"
#include "zeze/arch/online_timer/login_timer_wire.h"
#include "zeze/arch/online_timer/timer_transmit.h"
#include "zeze/base/result.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

// Both are in memory, and of this server.
template <typename Key>
struct OnlineTimerTables {
  using Wire = internal::LoginTimerWire<Key>;

  Table<std::string, typename Wire::OnlineTimer>& timers;  // By serial.
  Table<typename Wire::TableKey, Zeze::Builtin::Timer::BLoginTimers>& logins;
};

// Guarantees:
//   - A timer counts if and when the transaction that scheduled it commits, and never runs for
//     another login than the one that had it: each run compares the login's version, in the
//     transaction in which the handler works. While the link is broken the login goes on, and so do
//     its timers.
//   - The end of a login on this server ends its timers in the same transaction. If it ends on
//     another server, they do nothing from that commit on, and go as soon as this server hears of
//     it.
//   - The run of a handler, that it has run, and when it runs next are one transaction.
//   - A handler that fails is tried again as those of other timers; then its timer is parked: it
//     does not run any more, and ends with the login.
//
// Thread-safe after the start of the application.
template <typename Key>
class OnlineTimers {
 public:
  // All outlive this.
  OnlineTimers(Logins<Key>& logins, Timers& timers, const OnlineTimerTables<Key>& tables,
               LoginTimersOptions options);
  OnlineTimers(const OnlineTimers&) = delete;
  OnlineTimers& operator=(const OnlineTimers&) = delete;

  // Before the start of the application.
  void RegisterHandler(std::string name, LoginTimerHandler<Key> handler);

  // --- inside a transaction ---

  // Returns the id, which begins with '@'. Errors, and nothing has changed then:
  //   - kNotFound: the key is not logged in, or not on this server.
  //   - kInvalidArgument: what is wrong with the spec.
  //   - kOverloaded: the login has as many as it may (LoginTimersOptions::online_timers_max).
  Result<std::string> Schedule(Transaction& tx, const Key& key, const TimerSpec& spec);
  // A login has one timer of a name. False: it has that already, and it stays.
  Result<bool> ScheduleNamed(Transaction& tx, const Key& key, const std::string& name,
                             const TimerSpec& spec);

  // By id or name. False: the key's login on this server has no such timer.
  bool Cancel(Transaction& tx, const Key& key, const std::string& id);
  std::optional<TimerInfo> Find(Transaction& tx, const Key& key, const std::string& id);
  std::size_t Count(Transaction& tx, const Key& key);

  // The same, wherever the key is logged in. Elsewhere than here the timer is sent there after the
  // commit. It arrives at most once, behind what was sent to the key before it, and counts for the
  // login of this moment only; what is against it there (no such handler, no room, a name that is
  // taken) is logged there. kNotFound: not logged in anywhere.
  Result<std::string> ScheduleWhereOnline(Transaction& tx, const Key& key, const TimerSpec& spec);
  Result<void> ScheduleNamedWhereOnline(Transaction& tx, const Key& key, const std::string& name,
                                        const TimerSpec& spec);
  // False: not logged in, or logged in here without such a timer.
  bool CancelWhereOnline(Transaction& tx, const Key& key, const std::string& id);

 private:
  using Wire = internal::LoginTimerWire<Key>;
  using OnlineTimer = typename Wire::OnlineTimer;
  using LoginTimers = Zeze::Builtin::Timer::BLoginTimers;

  // One moment of a timer.
  struct Moment {
    std::int64_t serial_id;
    std::int64_t serial;  // ConcurrentFireSerialNo at that moment.
    std::string one_by_one_key;
    int attempts = 0;
  };

  static Result<void> CheckName(const std::string& name);
  Result<Login<Key>> LoginHere(Transaction& tx, const Key& key);
  Result<void> CheckStarted() const;
  Result<void> CheckHandler(const std::string& name) const;
  Result<TimerBean> Plan(const TimerSpec& spec) const;
  // The timers of that login; those of an older one have ended. Null: it has none.
  const LoginTimers* TimersOf(Transaction& tx, const Login<Key>& login);
  const OnlineTimer* FindTimer(Transaction& tx, const Key& key, const std::string& id);
  Result<void> CheckRoom(const Key& key, const LoginTimers* timers) const;
  void Insert(Transaction& tx, const Login<Key>& login, const std::string& id, TimerBean timer);
  void Remove(Transaction& tx, const Key& key, const std::string& id, std::int64_t serial_id);
  void EndAll(Transaction& tx, const Key& key);
  void EndStale(Transaction& tx, const Key& key, const OnlineTimer& timer);

  // Those that the wall clock, which was set back, has left far away. False: not all of them.
  bool Heal();

  void ArmAfterCommit(Transaction& tx, std::int64_t serial_id, const TimerBean& timer);
  void Arm(Moment moment, std::int64_t unix_ms);
  void Ring(Moment moment);
  void Fire(Moment moment);
  // The run of one handler. Other timers of the login that end change the same record: what follows
  // the handler is a last part of the transaction.
  struct Firing {
    const Moment& moment;
    OnlineTimer stored = {};
    TimerBean timer = {};
    Key key = {};
    std::optional<LoginTimer<Key>> context = std::nullopt;
    std::int64_t code = 0;  // Of the handler.
  };
  std::int64_t FireIn(Transaction& tx, Firing& firing);
  // False: nothing is left of it, or it is not due any more.
  bool LeaveOutMissed(Transaction& tx, const OnlineTimer& stored, TimerBean& timer);
  std::int64_t FinishFiring(Transaction& tx, const Firing& firing);
  void NoteFailure(Transaction& tx, const Moment& moment, const Key& key, TimerBean& timer,
                   std::int64_t code);
  Result<void> Send(Transaction& tx, const Login<Key>& login, const std::string& id,
                    const TimerSpec& spec);
  // From another server, for the login of that version.
  Result<void> Accept(Transaction& tx, const Key& key, std::int64_t version, TimerBean timer);
  TimerInfo InfoOf(const TimerBean& timer, std::int64_t serial_id) const;

  Logins<Key>& logins_;
  Timers& timers_;
  const OnlineTimerTables<Key> tables_;
  const LoginTimersOptions options_;
  LoginTimerHandlers<Key> handlers_;
  internal::TimerTransmit<Key> transmit_;
};

extern template class OnlineTimers<AccountKey>;
extern template class OnlineTimers<RoleId>;

}  // namespace zeze::arch
