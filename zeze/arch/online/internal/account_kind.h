// AccountKind: logins of accounts, each with any number of clients.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "Zeze/Builtin/Online.h"
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

class AccountKind final : public LoginKind<AccountKey> {
 public:
  explicit AccountKind(AccountTables tables) : tables_(tables) {}

  std::optional<LoginRecord> Get(Transaction& tx, const AccountKey& key) override;
  void Put(Transaction& tx, const AccountKey& key, const LoginRecord& record) override;
  Result<std::optional<LoginRecord>> ReadCopy(const AccountKey& key) override;
  bool MakeRoom(Transaction& tx, const AccountKey& key, std::size_t clients_max) override;

  std::optional<NotifyQueue> GetQueue(Transaction& tx, const AccountKey& key) override;
  void PutQueue(Transaction& tx, const AccountKey& key, const NotifyQueue& queue) override;
  void RemoveQueue(Transaction& tx, const AccountKey& key) override;

  void PutServerLogin(Transaction& tx, std::int32_t server_id, const AccountKey& key,
                      std::int64_t version) override;
  void RemoveServerLogin(Transaction& tx, std::int32_t server_id, const AccountKey& key) override;
  Result<void> WalkServerLogins(
      std::int32_t server_id,
      FunctionRef<void(const AccountKey& key, std::int64_t version)> visit) override;

  std::optional<LocalRecord> GetLocal(Transaction& tx, const AccountKey& key) override;
  void PutLocal(Transaction& tx, const AccountKey& key, const LocalRecord& local) override;
  void RemoveLocal(Transaction& tx, const AccountKey& key) override;
  void WalkLocals(
      FunctionRef<void(const AccountKey& key, const LocalRecord& local)> visit) override;

  std::optional<AccountKey> KeyOfLink(Transaction& tx, const LinkAddress& link) override;
  void PutLink(Transaction& tx, const LinkAddress& link, const AccountKey& key) override;
  void RemoveLink(Transaction& tx, const LinkAddress& link) override;

  std::int64_t ErrorCode(std::int32_t code) const override;
  Zeze::Builtin::Provider::BUserState UserStateOf(const AccountKey& key) const override;
  std::optional<AccountKey> KeyOf(const ProviderSession& session) const override;
  std::string NotifyFrame(const Zeze::Builtin::Online::BReliableNotify& notify) const override;
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
