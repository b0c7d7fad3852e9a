// LoginKind: what is different between logins of accounts and of roles: tables and messages.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "Zeze/Builtin/Online.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/bean/list.h"
#include "zeze/bean/set.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

// What the tables that all servers share say about a key.
struct LoginRecord {
  std::string account = {};
  LinkAddress link = {};
  LoginState state = LoginState::kOffline;
  std::int64_t login_version = 0;
  std::int64_t logout_version = 0;
  std::int64_t last_version = 0;  // The highest ever given; that of the key, or of its account.
  std::int32_t server_id = 0;

  Set<std::string> notify_marks = {};
  std::int64_t notify_index = 0;
  std::int64_t notify_confirmed = 0;
  std::int64_t notify_hash = 0;  // Of what is confirmed; 0: another kind of server has confirmed.

  bool live() const { return login_version != logout_version; }
  bool IsLogin(std::int64_t version) const { return live() && login_version == version; }
};

using LocalRecord = Zeze::Builtin::Online::BLocal;
using NotifyQueue = Zeze::Builtin::Online::BNotifyQueue;
using WireLink = Zeze::Builtin::Online::BLink;

inline LinkAddress AddressOf(const WireLink& link) {
  return {.link_name = link.LinkName, .link_sid = link.LinkSid};
}
inline WireLink WireLinkOf(const LinkAddress& address, LoginState state) {
  return {.LinkName = address.link_name,
          .LinkSid = address.link_sid,
          .State = static_cast<std::int32_t>(state)};
}

// Functions that take no transaction are for outside of one.
template <typename Key>
class LoginKind {
 public:
  virtual ~LoginKind() = default;

  // --- records of all servers ---

  virtual std::optional<LoginRecord> Get(Transaction& tx, const Key& key) = 0;
  virtual void Put(Transaction& tx, const Key& key, const LoginRecord& record) = 0;
  virtual Result<std::optional<LoginRecord>> ReadCopy(const Key& key) = 0;
  // For a key that is not there yet. False: there is no room for it.
  virtual bool MakeRoom(Transaction& tx, const Key& key, std::size_t clients_max) = 0;

  virtual std::optional<NotifyQueue> GetQueue(Transaction& tx, const Key& key) = 0;
  virtual void PutQueue(Transaction& tx, const Key& key, const NotifyQueue& queue) = 0;
  virtual void RemoveQueue(Transaction& tx, const Key& key) = 0;

  // Who is logged in on a server, by login version. A hint: the record decides.
  virtual void PutServerLogin(Transaction& tx, std::int32_t server_id, const Key& key,
                              std::int64_t version) = 0;
  virtual void RemoveServerLogin(Transaction& tx, std::int32_t server_id, const Key& key) = 0;
  virtual Result<void> WalkServerLogins(
      std::int32_t server_id, FunctionRef<void(const Key& key, std::int64_t version)> visit) = 0;

  // --- records of this server ---

  virtual std::optional<LocalRecord> GetLocal(Transaction& tx, const Key& key) = 0;
  virtual void PutLocal(Transaction& tx, const Key& key, const LocalRecord& local) = 0;
  virtual void RemoveLocal(Transaction& tx, const Key& key) = 0;
  virtual void WalkLocals(FunctionRef<void(const Key& key, const LocalRecord& local)> visit) = 0;

  virtual std::optional<Key> KeyOfLink(Transaction& tx, const LinkAddress& link) = 0;
  virtual void PutLink(Transaction& tx, const LinkAddress& link, const Key& key) = 0;
  virtual void RemoveLink(Transaction& tx, const LinkAddress& link) = 0;

  // --- messages ---

  virtual std::int64_t ErrorCode(std::int32_t code) const = 0;
  // What gateways keep for the client, and the key of a message that brings it.
  virtual Zeze::Builtin::Provider::BUserState UserStateOf(const Key& key) const = 0;
  virtual std::optional<Key> KeyOf(const ProviderSession& session) const = 0;
  virtual std::string NotifyFrame(const Zeze::Builtin::Online::BReliableNotify& notify) const = 0;
  virtual std::string Describe(const Key& key) const = 0;

  virtual Result<void> RemoveRemoteLocal(DirectSender& direct, std::int32_t server_id,
                                         const Key& key) const = 0;
  virtual Result<void> Transmit(DirectSender& direct, std::int32_t server_id,
                                std::string_view action, std::span<const Key> targets,
                                const Key& sender, std::string_view parameter) const = 0;
};

}  // namespace zeze::arch::internal
