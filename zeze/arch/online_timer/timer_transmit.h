// TimerTransmit: online timers on their way between servers, as Zeze 1.6 sends them.
//
//   TimerTransmit<RoleId> transmit(logins, {.schedule = ..., .cancel = ...});
//   transmit.Send(tx, login, timer);                 // To the server where that login is.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/base/result.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

// Thread-safe after the start of the application.
template <typename Key>
class TimerTransmit {
 public:
  // What comes is not checked, but that it can be decoded. An error is logged.
  struct Arrivals {
    std::function<Result<void>(Transaction& tx, const Key& key, std::int64_t login_version,
                               const TimerBean& timer)>
        schedule;
    std::function<void(Transaction& tx, const Key& key, std::int64_t login_version,
                       const std::string& id)>
        cancel;
  };

  // Before the start of the application. The logins outlive this.
  TimerTransmit(Logins<Key>& logins, Arrivals arrivals);
  TimerTransmit(const TimerTransmit&) = delete;
  TimerTransmit& operator=(const TimerTransmit&) = delete;

  // After the commit, at most once.
  void Send(Transaction& tx, const Login<Key>& login, const TimerBean& timer);
  void SendCancel(Transaction& tx, const Login<Key>& login, const std::string& id);

 private:
  template <typename Message>
  void Receive(const char* action);
  void ReceiveCancels();
  void TransmitAfterCommit(Transaction& tx, const char* action, const Key& key,
                           std::string parameter);

  Logins<Key>& logins_;
  const Arrivals arrivals_;
};

extern template class TimerTransmit<AccountKey>;
extern template class TimerTransmit<RoleId>;

}  // namespace zeze::arch::internal
