// LoginTimerWire: how timers of accounts and of roles are stored: beans, keys and names.

#pragma once

#include <string>
#include <string_view>

#include "Zeze/Builtin/Timer.h"
#include "zeze/arch/online/login.h"

namespace zeze::arch::internal {

template <typename Key>
struct LoginTimerWire;

template <>
struct LoginTimerWire<AccountKey> {
  using OnlineTimer = Zeze::Builtin::Timer::BArchOnlineTimer;
  using OfflineCustom = Zeze::Builtin::Timer::BOfflineAccountCustom;
  using TransmitCancel = Zeze::Builtin::Timer::BTransmitCancelAccountTimer;
  using TableKey = Zeze::Builtin::Timer::BAccountClientId;

  // Of all implementations that share a database.
  static constexpr const char* kOfflineHandler = "Zeze.Component.TimerAccount$OfflineHandle";
  // Actions that are transmitted.
  static constexpr const char* kSendSimple = "Zeze.TimerAccount.TransmitSimpleTimer";
  static constexpr const char* kSendCron = "Zeze.TimerAccount.TransmitCronTimer";
  static constexpr const char* kSendCancel = "Zeze.TimerAccount.TransmitCancelAccountTimer";

  static TableKey TableKeyOf(const AccountKey& key) {
    return {.Account = key.Account, .ClientId = key.ClientId};
  }
  template <typename Bean>
  static AccountKey KeyOf(const Bean& bean) {
    return {.Account = bean.Account, .ClientId = bean.ClientId};
  }
  template <typename Bean>
  static void SetKey(Bean& bean, const AccountKey& key) {
    bean.Account = key.Account;
    bean.ClientId = key.ClientId;
  }
  static void SetSet(OfflineCustom&, const std::string&) {}  // Accounts have only one.

  static std::string Describe(const AccountKey& key);
  // The name in the cluster of what a key calls so. Those of two keys are never the same.
  static std::string FullName(const AccountKey& key, std::string_view set, std::string_view name);
};

template <>
struct LoginTimerWire<RoleId> {
  using OnlineTimer = Zeze::Builtin::Timer::BGameOnlineTimer;
  using OfflineCustom = Zeze::Builtin::Timer::BOfflineRoleCustom;
  using TransmitCancel = Zeze::Builtin::Timer::BTransmitCancelRoleTimer;
  using TableKey = RoleId;

  static constexpr const char* kOfflineHandler = "Zeze.Component.TimerRole$OfflineHandle";
  static constexpr const char* kSendSimple = "Zeze.TimerRole.TransmitSimpleTimer";
  static constexpr const char* kSendCron = "Zeze.TimerRole.TransmitCronTimer";
  static constexpr const char* kSendCancel = "Zeze.TimerRole.TransmitCancelRoleTimer";

  static TableKey TableKeyOf(RoleId key) { return key; }
  template <typename Bean>
  static RoleId KeyOf(const Bean& bean) {
    return bean.RoleId;
  }
  template <typename Bean>
  static void SetKey(Bean& bean, RoleId key) {
    bean.RoleId = key;
  }
  static void SetSet(OfflineCustom& custom, const std::string& set) { custom.OnlineSetName = set; }

  static std::string Describe(RoleId key);
  static std::string FullName(RoleId key, std::string_view set, std::string_view name);
};

}  // namespace zeze::arch::internal
