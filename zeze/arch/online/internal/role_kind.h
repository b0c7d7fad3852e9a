// RoleKind: logins of roles in one online set.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "Zeze/Builtin/Game/Online.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/transaction/table.h"

namespace zeze::arch::internal {

// All outlive the kind.
struct RoleTables {
  Table<RoleId, Zeze::Builtin::Game::Online::BOnlineShared>& shared;
  Table<RoleId, Zeze::Builtin::Game::Online::BOnline>& online;
  Table<RoleId, NotifyQueue>& notifies;
  Table<Zeze::Builtin::Game::Online::BServerLoginKey, Zeze::Builtin::Online::BServerLogin>&
      server_logins;
  // Of this server.
  Table<RoleId, LocalRecord>& local;
  Table<WireLink, Zeze::Builtin::Game::Online::BLinkLogin>& links;
};

class RoleKind : public LoginKind<RoleId> {
 public:
  RoleKind(std::string set_name, RoleTables tables)
      : set_name_(std::move(set_name)), tables_(tables) {}

  std::optional<LoginRecord> Get(Transaction& tx, const RoleId& key) override;
  void Put(Transaction& tx, const RoleId& key, const LoginRecord& record) override;
  Result<std::optional<LoginRecord>> ReadCopy(const RoleId& key) override;
  bool MakeRoom(Transaction&, const RoleId&, std::size_t) override { return true; }

  std::optional<NotifyQueue> GetQueue(Transaction& tx, const RoleId& key) override;
  void PutQueue(Transaction& tx, const RoleId& key, const NotifyQueue& queue) override;
  void RemoveQueue(Transaction& tx, const RoleId& key) override;

  void PutServerLogin(Transaction& tx, std::int32_t server_id, const RoleId& key,
                      std::int64_t version) override;
  void RemoveServerLogin(Transaction& tx, std::int32_t server_id, const RoleId& key) override;
  Result<void> WalkServerLogins(
      std::int32_t server_id,
      FunctionRef<void(const RoleId& key, std::int64_t version)> visit) override;

  std::optional<LocalRecord> GetLocal(Transaction& tx, const RoleId& key) override;
  void PutLocal(Transaction& tx, const RoleId& key, const LocalRecord& local) override;
  void RemoveLocal(Transaction& tx, const RoleId& key) override;
  void WalkLocals(FunctionRef<void(const RoleId& key, const LocalRecord& local)> visit) override;

  std::optional<RoleId> KeyOfLink(Transaction& tx, const LinkAddress& link) override;
  void PutLink(Transaction& tx, const LinkAddress& link, const RoleId& key) override;
  void RemoveLink(Transaction& tx, const LinkAddress& link) override;

  std::int64_t ErrorCode(std::int32_t code) const override;
  Zeze::Builtin::Provider::BUserState UserStateOf(const RoleId& key) const override;
  std::optional<RoleId> KeyOf(const ProviderSession& session) const override;
  std::string NotifyFrame(const Zeze::Builtin::Online::BReliableNotify& notify) const override;
  std::string Describe(const RoleId& key) const override;

  Result<void> RemoveRemoteLocal(DirectSender& direct, std::int32_t server_id,
                                 const RoleId& key) const override;
  Result<void> Transmit(DirectSender& direct, std::int32_t server_id, std::string_view action,
                        std::span<const RoleId> targets, const RoleId& sender,
                        std::string_view parameter) const override;

 private:
  const std::string set_name_;
  const RoleTables tables_;
};

}  // namespace zeze::arch::internal
