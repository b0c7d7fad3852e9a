#include "zeze/arch/online/account_online.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/account_kind.h"
#include "zeze/arch/online/internal/take_over.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

namespace wire = Zeze::Builtin::Online;

struct AccountOnline::Parts {
  Parts(const internal::AccountTables& tables, OnlineOptions options)
      : take_over(options.take_over), kind(tables), logins(kind, options) {}

  const bool take_over;
  internal::AccountKind kind;
  Logins<AccountKey> logins;
};

AccountOnline::AccountOnline(OnlineOptions options)
    : parts_(std::make_unique<Parts>(internal::AccountTables{.online = tonline,
                                                             .notifies = tReliableNotify,
                                                             .server_logins = tServerLogins,
                                                             .local = tlocal,
                                                             .links = tLinkLogins},
                                     options)) {}

AccountOnline::~AccountOnline() = default;

Logins<AccountKey>& AccountOnline::logins() {
  return parts_->logins;
}

void AccountOnline::Connect(Links& links, DirectSender* direct) {
  logins().Connect(&links, direct);
}

void AccountOnline::LinkBroken(const LinkAddress& link) {
  logins().LinkBroken(link);
}

Result<void> AccountOnline::Start(Application& application) {
  Result<void> started = logins().Start(application, application.options().server_id);
  if (!started.ok() || !parts_->take_over) return started;
  return internal::RegisterTakeOver(application, "Zeze.Arch.Online",
                                    [this](std::int32_t server_id, const auto& proceed) {
                                      return logins().LogoutAllOf(server_id, proceed);
                                    });
}

void AccountOnline::Stop(Application&) {
  logins().Stop();
}

std::int64_t AccountOnline::ProcessLogin(Transaction& tx, Session& session,
                                         const wire::BLogin& argument) {
  // Gateways take an empty one for nobody.
  if (argument.ClientId.empty()) return result_code::kLogicError;
  return logins().LogIn(tx, session, {.Account = session.account(), .ClientId = argument.ClientId});
}

std::int64_t AccountOnline::ProcessReLogin(Transaction& tx, Session& session,
                                           const wire::BReLogin& argument) {
  return logins().LogInAgain(
      tx, session, {.Account = session.account(), .ClientId = argument.ClientId},
      {.index = argument.ReliableNotifyConfirmIndex, .hash = argument.ReliableNotifyHash});
}

std::int64_t AccountOnline::ProcessLogout(Transaction& tx, Session& session) {
  return logins().LogOut(tx, session);
}

std::int64_t AccountOnline::ProcessReliableNotifyConfirm(
    Transaction& tx, Session& session, const wire::BReliableNotifyConfirm& argument) {
  const std::optional<Login<AccountKey>> login = logins().LoginOf(tx, session);
  if (!login || login->key.ClientId != argument.ClientId) {
    return ErrorCode(wire::ResultCodeNotLogin);
  }
  return logins().ConfirmNotifies(
      tx, session,
      {.index = argument.ReliableNotifyConfirmIndex, .hash = argument.ReliableNotifyHash},
      argument.Sync);
}

void AccountOnline::Transmitted(const Zeze::Builtin::ProviderDirect::BTransmitAccount& message) {
  const std::vector<AccountKey> targets(message.Targets.begin(), message.Targets.end());
  logins().Transmitted(message.ActionName, targets,
                       {.Account = message.SenderAccount, .ClientId = message.SenderClientId},
                       message.Parameter.bytes);
}

void AccountOnline::RemoveLocal(std::int32_t, const std::string& account) {
  const std::optional<wire::BLocals> locals = tlocal.ReadCached(account);
  if (!locals) return;
  for (const auto& [client, local] : locals->Logins) {
    logins().RemoveStaleLocal({.Account = account, .ClientId = client});
  }
}

}  // namespace zeze::arch
