// KeyedKind: what logins of accounts and of roles keep in the same way, each in tables of its own:
// reliable notifies, and who is logged in on a server and on a connection. `Wire` names the beans
// and says how a key is in them:
//
//   struct RoleWire {
//     using ServerLoginKey = ...;                  // Keys of tServerLogins,
//     using LinkLogin = ...;                       // values of tLinkLogins,
//     using ReliableNotify = ...;                  // the protocol.
//     static ServerLoginKey ServerLoginKeyOf(std::int32_t server_id, const RoleId& role);
//     static LinkLogin LinkLoginOf(const RoleId& role);
//     static RoleId KeyOf(const ServerLoginKey& key);
//     static RoleId KeyOf(const LinkLogin& login);
//   };

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "Zeze/Builtin/Online.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/internal/server_logins.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

template <typename Key, typename Wire>
class KeyedKind : public LoginKind<Key> {
 public:
  using ServerLogin = Zeze::Builtin::Online::BServerLogin;
  using ServerLoginKey = typename Wire::ServerLoginKey;
  using LinkLogin = typename Wire::LinkLogin;

  std::optional<NotifyQueue> GetQueue(Transaction& tx, const Key& key) final {
    const NotifyQueue* queue = notifies_.Get(tx, key);
    return queue == nullptr ? std::nullopt : std::optional(*queue);
  }
  void PutQueue(Transaction& tx, const Key& key, const NotifyQueue& queue) final {
    notifies_.Put(tx, key, queue);
  }
  void RemoveQueue(Transaction& tx, const Key& key) final { notifies_.Remove(tx, key); }

  void PutServerLogin(Transaction& tx, std::int32_t server_id, const Key& key,
                      std::int64_t version) final {
    server_logins_.Put(tx, Wire::ServerLoginKeyOf(server_id, key), {.LoginVersion = version});
  }
  void RemoveServerLogin(Transaction& tx, std::int32_t server_id, const Key& key) final {
    server_logins_.Remove(tx, Wire::ServerLoginKeyOf(server_id, key));
  }
  Result<void> WalkServerLogins(
      std::int32_t server_id, FunctionRef<void(const Key& key, std::int64_t version)> visit) final {
    return WalkLoginsOf(server_logins_, server_id,
                        [&visit](const ServerLoginKey& key, const ServerLogin& login) {
                          visit(Wire::KeyOf(key), login.LoginVersion);
                        });
  }

  std::optional<Key> KeyOfLink(Transaction& tx, const LinkAddress& link) final {
    const LinkLogin* login = links_.Get(tx, WireLinkOf(link, LoginState::kOffline));
    return login == nullptr ? std::nullopt : std::optional(Wire::KeyOf(*login));
  }
  void PutLink(Transaction& tx, const LinkAddress& link, const Key& key) final {
    links_.Put(tx, WireLinkOf(link, LoginState::kOffline), Wire::LinkLoginOf(key));
  }
  void RemoveLink(Transaction& tx, const LinkAddress& link) final {
    links_.Remove(tx, WireLinkOf(link, LoginState::kOffline));
  }

  std::int64_t ErrorCode(std::int32_t code) const final {
    return ModuleErrorCode(Wire::ReliableNotify::kModuleId, code);
  }
  std::string NotifyFrame(const Zeze::Builtin::Online::BReliableNotify& notify) const final {
    return EncodeOneWayFrame<typename Wire::ReliableNotify>(notify);
  }

 protected:
  // All outlive the kind.
  KeyedKind(Table<Key, NotifyQueue>& notifies, Table<ServerLoginKey, ServerLogin>& server_logins,
            Table<WireLink, LinkLogin>& links)
      : notifies_(notifies), server_logins_(server_logins), links_(links) {}

 private:
  Table<Key, NotifyQueue>& notifies_;
  Table<ServerLoginKey, ServerLogin>& server_logins_;
  Table<WireLink, LinkLogin>& links_;
};

}  // namespace zeze::arch::internal
