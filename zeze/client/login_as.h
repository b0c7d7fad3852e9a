// LoginAs: who a client logs in as at the servers behind the gateway (docs/online.md).
//
//   client.LogIn(RoleLogin{.role_id = 7});

#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace zeze {

// A role, in an online set (module Zeze.Builtin.Game.Online).
struct RoleLogin {
  std::int64_t role_id = 0;
  std::string online_set = {};

  bool operator==(const RoleLogin&) const = default;
};

// One of the clients of the account (module Zeze.Builtin.Online).
struct AccountLogin {
  std::string client_id = {};

  bool operator==(const AccountLogin&) const = default;
};

using LoginAs = std::variant<RoleLogin, AccountLogin>;

enum class LoginOutcome : std::uint8_t {
  // Reliable notifies begin with the next one. Those that were sent before and not handled yet will
  // never come: the application fetches its whole state.
  kFresh,
  // Reliable notifies go on without a gap.
  kResumed,
};

}  // namespace zeze
