#include "zeze/arch/online_timer/login_timer_wire.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "zeze/arch/online/login.h"

namespace zeze::arch::internal {

std::string LoginTimerWire<AccountKey>::Describe(const AccountKey& key) {
  return fmt::format("client \"{}\" of account \"{}\"", key.ClientId, key.Account);
}

// With the lengths of what clients may choose: dots in it cannot make two of them the same.
std::string LoginTimerWire<AccountKey>::FullName(const AccountKey& key, std::string_view /*set*/,
                                                 std::string_view name) {
  return fmt::format("offline.account.{}.{}.{}.{}.{}", key.Account.size(), key.Account,
                     key.ClientId.size(), key.ClientId, name);
}

std::string LoginTimerWire<RoleId>::Describe(RoleId key) {
  return fmt::format("role {}", key);
}

std::string LoginTimerWire<RoleId>::FullName(RoleId key, std::string_view set,
                                             std::string_view name) {
  return fmt::format("offline.role.{}.{}.{}.{}", key, set.size(), set, name);
}

}  // namespace zeze::arch::internal
