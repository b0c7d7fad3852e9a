// AccountKind: logins of accounts, each with any number of clients.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "Zeze/Builtin/Online.h"
#include "zeze/arch/online/internal/keyed_kind.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/transaction/table.h"

namespace zeze::arch::internal {

// All outlive the kind.
struct AccountTables {
  Table<std::string, Zeze::Builtin::Online::BOnlines>& online;
  Table<AccountKey, NotifyQueue>& notifies;
  Table<Zeze::Builtin::Online::BServerLoginKey, Zeze::Builtin::Online::BServerLogin>& server_logins;
  // Of this server.
  Table<std::string, Zeze::Builtin::Online::BLocals>& local;
  Table<WireLink, Zeze::Builtin::Online::BLinkLogin>& links;
};

// For KeyedKind.
struct AccountWire {
  using ServerLoginKey = Zeze::Builtin::Online::BServerLoginKey;
  using LinkLogin = Zeze::Builtin::Online::BLinkLogin;
  using ReliableNotify = Zeze::Builtin::Online::SReliableNotify;

  static ServerLoginKey ServerLoginKeyOf(std::int32_t server_id, const AccountKey& key) {
    return {.ServerId = server_id, .Account = key.Account, .ClientId = key.ClientId};
  }
  static LinkLogin LinkLoginOf(const AccountKey& key) {
    return {.ClientId = key.ClientId, .Account = key.Account};
  }
  template <typename Bean>
  static AccountKey KeyOf(const Bean& bean) {
    return {.Account = bean.Account, .ClientId = bean.ClientId};
  }
};

class AccountKind final : public KeyedKind<AccountKey, AccountWire> {
 public:
  explicit AccountKind(AccountTables tables)
      : KeyedKind(tables.notifies, tables.server_logins, tables.links), tables_(tables) {}

  std::optional<LoginRecord> Get(Transaction& tx, const AccountKey& key) override;
  void Put(Transaction& tx, const AccountKey& key, const LoginRecord& record) override;
  Result<std::optional<LoginRecord>> ReadCopy(const AccountKey& key) override;
  bool MakeRoom(Transaction& tx, const AccountKey& key, std::size_t clients_max) override;

  std::optional<LocalRecord> GetLocal(Transaction& tx, const AccountKey& key) override;
  void PutLocal(Transaction& tx, const AccountKey& key, const LocalRecord& local) override;
  void RemoveLocal(Transaction& tx, const AccountKey& key) override;
  void WalkLocals(
      FunctionRef<void(const AccountKey& key, const LocalRecord& local)> visit) override;

  Zeze::Builtin::Provider::BUserState UserStateOf(const AccountKey& key) const override;
  std::optional<AccountKey> KeyOf(const ProviderSession& session) const override;
  std::string Describe(const AccountKey& key) const override;

  Result<void> RemoveRemoteLocal(DirectSender& direct, std::int32_t server_id,
                                 const AccountKey& key) const override;
  Result<void> Transmit(DirectSender& direct, std::int32_t server_id, std::string_view action,
                        std::span<const AccountKey> targets, const AccountKey& sender,
                        std::string_view parameter) const override;

 private:
  const AccountTables tables_;
};

}  // namespace zeze::arch::internal
