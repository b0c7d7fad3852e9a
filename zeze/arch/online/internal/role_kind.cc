#include "zeze/arch/online/internal/role_kind.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/Provider.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

namespace {

namespace wire = Zeze::Builtin::Game::Online;

LoginRecord RecordOf(const wire::BOnlineShared& shared, const wire::BOnline* online) {
  LoginRecord record{.account = shared.Account,
                     .link = AddressOf(shared.Link),
                     .state = static_cast<LoginState>(shared.Link.State),
                     .login_version = shared.LoginVersion,
                     .logout_version = shared.LogoutVersion,
                     .last_version = shared.LoginVersion};
  // Logged in with another main version: where, is not known here.
  if (online == nullptr) return record;
  record.server_id = online->ServerId;
  record.notify_marks = online->ReliableNotifyMark;
  record.notify_index = online->ReliableNotifyIndex;
  record.notify_confirmed = online->ReliableNotifyConfirmIndex;
  record.notify_hash = online->ReliableNotifyHash;
  return record;
}

}  // namespace

std::optional<LoginRecord> RoleKind::Get(Transaction& tx, const RoleId& key) {
  const wire::BOnlineShared* shared = tables_.shared.Get(tx, key);
  if (shared == nullptr) return std::nullopt;
  return RecordOf(*shared, tables_.online.Get(tx, key));
}

void RoleKind::Put(Transaction& tx, const RoleId& key, const LoginRecord& record) {
  auto shared = tables_.shared.GetOrAdd(tx, key);
  shared->Account = record.account;
  shared->Link = WireLinkOf(record.link, record.state);
  shared->LoginVersion = record.login_version;
  shared->LogoutVersion = record.logout_version;
  auto online = tables_.online.GetOrAdd(tx, key);
  online->ServerId = record.server_id;
  online->ReliableNotifyMark = record.notify_marks;
  online->ReliableNotifyIndex = record.notify_index;
  online->ReliableNotifyConfirmIndex = record.notify_confirmed;
  online->ReliableNotifyHash = record.notify_hash;
}

// The two are read one after the other: for the server id, which is only a hint outside of
// transactions.
Result<std::optional<LoginRecord>> RoleKind::ReadCopy(const RoleId& key) {
  Result<std::optional<wire::BOnlineShared>> shared = tables_.shared.ReadCopy(key);
  if (!shared.ok()) return shared.error();
  if (!shared.value()) return std::optional<LoginRecord>();
  Result<std::optional<wire::BOnline>> online = tables_.online.ReadCopy(key);
  if (!online.ok()) return online.error();
  return std::optional<LoginRecord>(
      RecordOf(*shared.value(), online.value() ? &*online.value() : nullptr));
}

std::optional<LocalRecord> RoleKind::GetLocal(Transaction& tx, const RoleId& key) {
  const LocalRecord* local = tables_.local.Get(tx, key);
  return local == nullptr ? std::nullopt : std::optional(*local);
}

void RoleKind::PutLocal(Transaction& tx, const RoleId& key, const LocalRecord& local) {
  tables_.local.Put(tx, key, local);
}

void RoleKind::RemoveLocal(Transaction& tx, const RoleId& key) {
  tables_.local.Remove(tx, key);
}

void RoleKind::WalkLocals(FunctionRef<void(const RoleId& key, const LocalRecord& local)> visit) {
  tables_.local.WalkCache([&visit](const RoleId& key, const LocalRecord& local) {
    visit(key, local);
    return true;
  });
}

Zeze::Builtin::Provider::BUserState RoleKind::UserStateOf(const RoleId& key) const {
  return {.context = fmt::format("{}", key), .onlineSetName = set_name_};
}

std::optional<RoleId> RoleKind::KeyOf(const ProviderSession& session) const {
  if (session.online_set_name() != set_name_) return std::nullopt;
  const std::string& text = session.context();
  RoleId role = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), role);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return role;
}

std::string RoleKind::Describe(const RoleId& key) const {
  if (set_name_.empty()) return fmt::format("role {}", key);
  return fmt::format("role {} of online set \"{}\"", key, set_name_);
}

Result<void> RoleKind::RemoveRemoteLocal(DirectSender& direct, std::int32_t server_id,
                                         const RoleId& key) const {
  return direct.RemoveLocal(server_id, key, set_name_);
}

Result<void> RoleKind::Transmit(DirectSender& direct, std::int32_t server_id,
                                std::string_view action, std::span<const RoleId> targets,
                                const RoleId& sender, std::string_view parameter) const {
  Zeze::Builtin::ProviderDirect::BTransmit message{.ActionName = std::string(action),
                                                   .Sender = sender,
                                                   .Parameter = Binary{std::string(parameter)},
                                                   .OnlineSetName = set_name_};
  for (const RoleId target : targets) message.Roles.Add(target);
  return direct.Send(server_id, message);
}

}  // namespace zeze::arch::internal
