#include "zeze/arch/online/account_online.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/internal/account_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/base/result.h"
#include "zeze/transaction/result_code.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

namespace wire = Zeze::Builtin::Online;

AccountOnline::AccountOnline(OnlineOptions options)
    : kind_({.online = tonline,
             .notifies = tReliableNotify,
             .server_logins = tServerLogins,
             .local = tlocal,
             .links = tLinkLogins}),
      logins_(kind_, options) {}

Result<void> AccountOnline::Start(Application& application) {
  return logins_.Start(application, application.options().server_id);
}

void AccountOnline::Stop(Application&) {
  logins_.Stop();
}

std::int64_t AccountOnline::ProcessLogin(Transaction& tx, Session& session,
                                         const wire::BLogin& argument) {
  // Gateways take an empty one for nobody.
  if (argument.ClientId.empty()) return result_code::kLogicError;
  return logins_.LogIn(tx, session, {.Account = session.account(), .ClientId = argument.ClientId});
}

std::int64_t AccountOnline::ProcessReLogin(Transaction& tx, Session& session,
                                           const wire::BReLogin& argument) {
  return logins_.LogInAgain(tx, session,
                            {.Account = session.account(), .ClientId = argument.ClientId},
                            argument.ReliableNotifyConfirmIndex);
}

std::int64_t AccountOnline::ProcessLogout(Transaction& tx, Session& session) {
  return logins_.LogOut(tx, session);
}

std::int64_t AccountOnline::ProcessReliableNotifyConfirm(
    Transaction& tx, Session& session, const wire::BReliableNotifyConfirm& argument) {
  if (argument.ClientId != session.context()) return ErrorCode(wire::ResultCodeNotLogin);
  return logins_.ConfirmNotifies(tx, session, argument.ReliableNotifyConfirmIndex, argument.Sync);
}

void AccountOnline::Transmitted(const Zeze::Builtin::ProviderDirect::BTransmitAccount& message) {
  const std::vector<AccountKey> targets(message.Targets.begin(), message.Targets.end());
  logins_.Transmitted(message.ActionName, targets,
                      {.Account = message.SenderAccount, .ClientId = message.SenderClientId},
                      message.Parameter.bytes);
}

void AccountOnline::RemoveLocal(const std::string& account) {
  const std::optional<wire::BLocals> locals = tlocal.ReadCached(account);
  if (!locals) return;
  for (const auto& [client, local] : locals->Logins) {
    logins_.RemoveStaleLocal({.Account = account, .ClientId = client});
  }
}

}  // namespace zeze::arch
