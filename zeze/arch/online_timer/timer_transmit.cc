#include "zeze/arch/online_timer/timer_transmit.h"

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "Zeze/Builtin/Timer.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online_timer/login_timer_wire.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/bean/codec.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

using Zeze::Builtin::Timer::BCronTimer;
using Zeze::Builtin::Timer::BSimpleTimer;
using Zeze::Builtin::Timer::BTransmitCronTimer;
using Zeze::Builtin::Timer::BTransmitSimpleTimer;

namespace {

// What servers of Zeze 1.6 may say where there are no data.
constexpr std::string_view kEmptyBean = "Zeze.Transaction.EmptyBean";

template <typename Message>
std::string Encode(Message message, std::int64_t version, const TimerBean& timer) {
  message.TimerId = timer.TimerName;
  message.HandleClass = timer.HandleName;
  message.CustomClass = std::string(timer.CustomData.type_name());
  message.CustomBean = Binary{std::string(timer.CustomData.bytes())};
  message.CustomTypeId = timer.CustomData.type_id();
  message.LoginVersion = version;
  return EncodeBean(message);
}

template <typename Message>
TimerBean TimerOf(const Message& message) {
  TimerBean timer;
  timer.TimerName = message.TimerId;
  timer.HandleName = message.HandleClass;
  if constexpr (std::same_as<Message, BTransmitSimpleTimer>) {
    timer.TimerObj.Set(message.SimpleTimer);
  } else {
    timer.TimerObj.Set(message.CronTimer);
  }
  std::int64_t type_id = message.CustomTypeId;
  if (type_id == 0 && !message.CustomClass.empty() && message.CustomClass != kEmptyBean) {
    type_id = HashName64(message.CustomClass);
  }
  timer.CustomData.SetEncoded(type_id, message.CustomBean.bytes);
  return timer;
}

}  // namespace

template <typename Key>
TimerTransmit<Key>::TimerTransmit(Logins<Key>& logins, Arrivals arrivals)
    : logins_(logins), arrivals_(std::move(arrivals)) {
  Receive<BTransmitSimpleTimer>(LoginTimerWire<Key>::kSendSimple);
  Receive<BTransmitCronTimer>(LoginTimerWire<Key>::kSendCron);
  ReceiveCancels();
}

// --- going ---

template <typename Key>
void TimerTransmit<Key>::Send(Transaction& tx, const Login<Key>& login, const TimerBean& timer) {
  using Wire = LoginTimerWire<Key>;
  if (const auto* simple = timer.TimerObj.template As<BSimpleTimer>()) {
    const BTransmitSimpleTimer message{.SimpleTimer = *simple};
    TransmitAfterCommit(tx, Wire::kSendSimple, login.key, Encode(message, login.version, timer));
  } else if (const auto* cron = timer.TimerObj.template As<BCronTimer>()) {
    const BTransmitCronTimer message{.CronTimer = *cron};
    TransmitAfterCommit(tx, Wire::kSendCron, login.key, Encode(message, login.version, timer));
  }
}

template <typename Key>
void TimerTransmit<Key>::SendCancel(Transaction& tx, const Login<Key>& login,
                                    const std::string& id) {
  typename LoginTimerWire<Key>::TransmitCancel message;
  message.TimerId = id;
  message.LoginVersion = login.version;
  LoginTimerWire<Key>::SetKey(message, login.key);
  TransmitAfterCommit(tx, LoginTimerWire<Key>::kSendCancel, login.key, EncodeBean(message));
}

template <typename Key>
void TimerTransmit<Key>::TransmitAfterCommit(Transaction& tx, const char* action, const Key& key,
                                             std::string parameter) {
  tx.AfterCommit(Task("transmit timer", [this, action, key, parameter = std::move(parameter)] {
    if (logins_.Transmit(action, std::span(&key, 1), key, parameter) == 1) return;
    ZEZE_LOG_WARNING("{} for {} does not reach its server", action,
                     LoginTimerWire<Key>::Describe(key));
  }));
}

// --- coming ---

template <typename Key>
template <typename Message>
void TimerTransmit<Key>::Receive(const char* action) {
  logins_.OnTransmit(action,
                     [this](Transaction& tx, const Key& /*sender*/, const Key& key,
                            std::string_view parameter) -> std::int64_t {
                       const Result<Message> message = DecodeBean<Message>(parameter);
                       const Result<void> done =
                           message.ok() ? arrivals_.schedule(tx, key, message.value().LoginVersion,
                                                             TimerOf(message.value()))
                                        : message.error();
                       if (!done.ok()) {
                         ZEZE_LOG_ERROR("another server has sent a timer of {} in vain: {}",
                                        LoginTimerWire<Key>::Describe(key), done.error().message());
                       }
                       return result_code::kSuccess;
                     });
}

template <typename Key>
void TimerTransmit<Key>::ReceiveCancels() {
  logins_.OnTransmit(
      LoginTimerWire<Key>::kSendCancel,
      [this](Transaction& tx, const Key& /*sender*/, const Key& key,
             std::string_view parameter) -> std::int64_t {
        using Message = typename LoginTimerWire<Key>::TransmitCancel;
        const Result<Message> message = DecodeBean<Message>(parameter);
        if (message.ok()) {
          arrivals_.cancel(tx, key, message.value().LoginVersion, message.value().TimerId);
        } else {
          ZEZE_LOG_ERROR("another server cancels a timer of {} in vain: {}",
                         LoginTimerWire<Key>::Describe(key), message.error().message());
        }
        return result_code::kSuccess;
      });
}

template class TimerTransmit<AccountKey>;
template class TimerTransmit<RoleId>;

}  // namespace zeze::arch::internal
