#include "zeze/arch/online/internal/account_kind.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/Provider.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/bean/map.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

namespace {

namespace wire = Zeze::Builtin::Online;

LoginRecord RecordOf(const wire::BOnlines& account, const std::string& name,
                     const wire::BOnline& online) {
  return {.account = name,
          .link = AddressOf(online.Link),
          .state = static_cast<LoginState>(online.Link.State),
          .login_version = online.LoginVersion,
          .logout_version = online.LogoutVersion,
          .last_version = account.LastLoginVersion,
          .server_id = online.ServerId,
          .notify_marks = online.ReliableNotifyMark,
          .notify_index = online.ReliableNotifyIndex,
          .notify_confirmed = online.ReliableNotifyConfirmIndex,
          .notify_hash = online.ReliableNotifyHash};
}

void Store(const LoginRecord& record, wire::BOnline& online) {
  online.Link = WireLinkOf(record.link, record.state);
  online.LoginVersion = record.login_version;
  online.LogoutVersion = record.logout_version;
  online.ServerId = record.server_id;
  online.ReliableNotifyMark = record.notify_marks;
  online.ReliableNotifyIndex = record.notify_index;
  online.ReliableNotifyConfirmIndex = record.notify_confirmed;
  online.ReliableNotifyHash = record.notify_hash;
}

}  // namespace

// A client that never logged in has a record all the same: versions are counted by account.
std::optional<LoginRecord> AccountKind::Get(Transaction& tx, const AccountKey& key) {
  const wire::BOnlines* account = tables_.online.Get(tx, key.Account);
  if (account == nullptr) return std::nullopt;
  const wire::BOnline* online = account->Logins.Find(key.ClientId);
  if (online == nullptr) return RecordOf(*account, key.Account, {});
  return RecordOf(*account, key.Account, *online);
}

void AccountKind::Put(Transaction& tx, const AccountKey& key, const LoginRecord& record) {
  auto account = tables_.online.GetOrAdd(tx, key.Account);
  account->Account = key.Account;
  account->LastLoginVersion = record.last_version;
  account->Logins.UpdateOrAdd(key.ClientId,
                              [&record](wire::BOnline& online) { Store(record, online); });
}

Result<std::optional<LoginRecord>> AccountKind::ReadCopy(const AccountKey& key) {
  Result<std::optional<wire::BOnlines>> account = tables_.online.ReadCopy(key.Account);
  if (!account.ok()) return account.error();
  if (!account.value()) return std::optional<LoginRecord>();
  const wire::BOnline* online = account.value()->Logins.Find(key.ClientId);
  if (online == nullptr) return std::optional<LoginRecord>();
  return std::optional<LoginRecord>(RecordOf(*account.value(), key.Account, *online));
}

bool AccountKind::MakeRoom(Transaction& tx, const AccountKey& key, std::size_t clients_max) {
  const wire::BOnlines* account = tables_.online.Get(tx, key.Account);
  if (account == nullptr || account->Logins.Contains(key.ClientId)) return true;
  if (account->Logins.size() < clients_max) return true;
  const MapEntry<std::string, wire::BOnline>* oldest = nullptr;
  const Map<std::string, wire::BOnline> logins = account->Logins;
  for (const auto& entry : logins) {
    if (entry.value.LoginVersion != entry.value.LogoutVersion) continue;
    if (oldest == nullptr || entry.value.LoginVersion < oldest->value.LoginVersion) {
      oldest = &entry;
    }
  }
  if (oldest == nullptr) return false;
  RemoveQueue(tx, {.Account = key.Account, .ClientId = oldest->key});
  tables_.online.Edit(tx, key.Account)->Logins.Erase(oldest->key);
  return true;
}

std::optional<LocalRecord> AccountKind::GetLocal(Transaction& tx, const AccountKey& key) {
  const wire::BLocals* locals = tables_.local.Get(tx, key.Account);
  const LocalRecord* local = locals == nullptr ? nullptr : locals->Logins.Find(key.ClientId);
  return local == nullptr ? std::nullopt : std::optional(*local);
}

void AccountKind::PutLocal(Transaction& tx, const AccountKey& key, const LocalRecord& local) {
  tables_.local.GetOrAdd(tx, key.Account)->Logins.Put(key.ClientId, local);
}

void AccountKind::RemoveLocal(Transaction& tx, const AccountKey& key) {
  auto locals = tables_.local.Edit(tx, key.Account);
  if (!locals) return;
  locals->Logins.Erase(key.ClientId);
  if (locals->Logins.empty()) tables_.local.Remove(tx, key.Account);
}

void AccountKind::WalkLocals(
    FunctionRef<void(const AccountKey& key, const LocalRecord& local)> visit) {
  tables_.local.WalkCache([&visit](const std::string& account, const wire::BLocals& locals) {
    for (const auto& [client, local] : locals.Logins) {
      visit({.Account = account, .ClientId = client}, local);
    }
    return true;
  });
}

Zeze::Builtin::Provider::BUserState AccountKind::UserStateOf(const AccountKey& key) const {
  return {.context = key.ClientId};
}

std::optional<AccountKey> AccountKind::KeyOf(const ProviderSession& session) const {
  if (session.context().empty()) return std::nullopt;
  return AccountKey{.Account = session.account(), .ClientId = session.context()};
}

std::string AccountKind::Describe(const AccountKey& key) const {
  return fmt::format("client \"{}\" of account \"{}\"", key.ClientId, key.Account);
}

Result<void> AccountKind::RemoveRemoteLocal(DirectSender& direct, std::int32_t server_id,
                                            const AccountKey& key) const {
  return direct.RemoveLocal(server_id, key.Account);
}

Result<void> AccountKind::Transmit(DirectSender& direct, std::int32_t server_id,
                                   std::string_view action, std::span<const AccountKey> targets,
                                   const AccountKey& sender, std::string_view parameter) const {
  Zeze::Builtin::ProviderDirect::BTransmitAccount message{
      .ActionName = std::string(action),
      .Parameter = Binary{std::string(parameter)},
      .SenderAccount = sender.Account,
      .SenderClientId = sender.ClientId};
  for (const AccountKey& target : targets) message.Targets.Add(target);
  return direct.Send(server_id, message);
}

}  // namespace zeze::arch::internal
