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
#include "zeze/arch/online/internal/keyed_kind.h"
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

// For KeyedKind.
struct RoleWire {
  using ServerLoginKey = Zeze::Builtin::Game::Online::BServerLoginKey;
  using LinkLogin = Zeze::Builtin::Game::Online::BLinkLogin;
  using ReliableNotify = Zeze::Builtin::Game::Online::SReliableNotify;

  static ServerLoginKey ServerLoginKeyOf(std::int32_t server_id, RoleId role) {
    return {.ServerId = server_id, .RoleId = role};
  }
  static LinkLogin LinkLoginOf(RoleId role) { return {.RoleId = role}; }
  template <typename Bean>
  static RoleId KeyOf(const Bean& bean) {
    return bean.RoleId;
  }
};

class RoleKind : public KeyedKind<RoleId, RoleWire> {
 public:
  RoleKind(std::string set_name, RoleTables tables)
      : KeyedKind(tables.notifies, tables.server_logins, tables.links),
        set_name_(std::move(set_name)),
        tables_(tables) {}

  std::optional<LoginRecord> Get(Transaction& tx, const RoleId& key) override;
  void Put(Transaction& tx, const RoleId& key, const LoginRecord& record) override;
  Result<std::optional<LoginRecord>> ReadCopy(const RoleId& key) override;
  bool MakeRoom(Transaction&, const RoleId&, std::size_t) override { return true; }

  std::optional<LocalRecord> GetLocal(Transaction& tx, const RoleId& key) override;
  void PutLocal(Transaction& tx, const RoleId& key, const LocalRecord& local) override;
  void RemoveLocal(Transaction& tx, const RoleId& key) override;
  void WalkLocals(FunctionRef<void(const RoleId& key, const LocalRecord& local)> visit) override;

  Zeze::Builtin::Provider::BUserState UserStateOf(const RoleId& key) const override;
  std::optional<RoleId> KeyOf(const ProviderSession& session) const override;
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
