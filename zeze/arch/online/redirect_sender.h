// RedirectSender: what logins of different servers say to each other, over Redirect.
//
//   arch::RedirectSender direct(redirect);
//   direct.Serve(online);                                // Before redirect.Start().
//   ...
//   online.Connect(provider.links(), &direct);

#pragma once

#include <cstdint>
#include <string>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/online/account_online.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/result.h"

namespace zeze::arch {

class RedirectSender final : public DirectSender {
 public:
  // Outlives this.
  explicit RedirectSender(Redirect& redirect) : redirect_(redirect) {}

  // Messages of other servers come to the module, which outlives `redirect`.
  void Serve(AccountOnline& online);
  void Serve(RoleOnline& online);

  // Fail with kUnavailable if the server is not connected now.
  Result<void> Send(std::int32_t server_id,
                    const Zeze::Builtin::ProviderDirect::BTransmit& message) override;
  Result<void> Send(std::int32_t server_id,
                    const Zeze::Builtin::ProviderDirect::BTransmitAccount& message) override;

  Result<void> RemoveLocal(std::int32_t server_id, const std::string& account) override;
  Result<void> RemoveLocal(std::int32_t server_id, RoleId role,
                           const std::string& set_name) override;

 private:
  Redirect& redirect_;
};

}  // namespace zeze::arch
