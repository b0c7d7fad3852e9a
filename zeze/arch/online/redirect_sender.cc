#include "zeze/arch/online/redirect_sender.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/online/account_online.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/rpc.h"

namespace zeze::arch {

namespace {

namespace wire = Zeze::Builtin::ProviderDirect;

template <typename P>
Result<void> SendTo(Redirect& redirect, std::int32_t server_id,
                    const typename P::Argument& message) {
  const ConnectionPtr connection = redirect.links().Find(server_id);
  if (connection == nullptr) {
    return Error(ErrorCode::kUnavailable, fmt::format("server {} is not connected", server_id));
  }
  return connection->Send<P>(message);
}

}  // namespace

void RedirectSender::Serve(AccountOnline& online) {
  redirect_.AddModule(online);
  redirect_.links().Handle<wire::TransmitAccount>(
      [&online](const Message<wire::TransmitAccount>& message) {
        online.Transmitted(message.argument);
      });
}

void RedirectSender::Serve(RoleOnline& online) {
  redirect_.AddModule(online);
  redirect_.links().Handle<wire::Transmit>(
      [&online](const Message<wire::Transmit>& message) { online.Transmitted(message.argument); });
}

Result<void> RedirectSender::Send(std::int32_t server_id, const wire::BTransmit& message) {
  return SendTo<wire::Transmit>(redirect_, server_id, message);
}

Result<void> RedirectSender::Send(std::int32_t server_id, const wire::BTransmitAccount& message) {
  return SendTo<wire::TransmitAccount>(redirect_, server_id, message);
}

Result<void> RedirectSender::RemoveLocal(std::int32_t server_id, const std::string& account) {
  redirect_.ToServer<&AccountOnline::RemoveLocal>(server_id, account).Send();
  return {};
}

Result<void> RedirectSender::RemoveLocal(std::int32_t server_id, RoleId role,
                                         const std::string& set_name) {
  redirect_.ToServer<&RoleOnline::RemoveLocal>(server_id, role, set_name).Send();
  return {};
}

}  // namespace zeze::arch
