// Logins: who is logged in, by one kind of key; and the way to them. The same for clients of
// accounts (AccountOnline) and for roles (each online set of RoleOnline).
//
//   logins.On(LoginChange::kLogout, {.in_transaction = [&](Transaction& tx, const auto& login) {
//     return market.CloseStall(tx, login.key);
//   }});
//   if (auto login = logins.LoginOf(tx, session)) ...       // In handlers: who sent this.
//   logins.SendAfterCommit<SGift>(tx, role, {.item = 7});   // Wherever the role is logged in.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "zeze/app/session.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/result.h"
#include "zeze/net/protocol.h"
#include "zeze/transaction/transaction.h"

namespace zeze {
class Application;
}  // namespace zeze

namespace zeze::arch {

namespace internal {
template <typename Key>
class LoginKind;
}  // namespace internal

// Guarantees (docs/online.md says how, and what is not promised):
//   - At any moment a key has at most one live login in the whole cluster. A newer login ends the
//     older one, in one transaction, and its client is kicked with code 4.
//   - Login versions of a key only grow.
//   - Every login ends exactly once, with its logout event: before the next login of its key at the
//     latest.
//   - Reliable notifies arrive once, in order and without a gap, or the client is told to log in
//     afresh.
//
// Thread-safe after Start. Key is AccountKey or RoleId.
template <typename Key>
class Logins {
 public:
  using TransmitHandler = std::function<std::int64_t(
      Transaction& tx, const Key& sender, const Key& target, std::string_view parameter)>;
  using LogoutTimer = std::function<void(Transaction& tx, const Key& key, std::int64_t version,
                                         std::chrono::nanoseconds delay)>;

  // The kind outlives this.
  Logins(internal::LoginKind<Key>& kind, OnlineOptions options);
  ~Logins();
  Logins(const Logins&) = delete;
  Logins& operator=(const Logins&) = delete;

  // --- before Start ---

  // Several handlers of a change run in the order of these calls.
  void On(LoginChange change, LoginHandler<Key> handler);

  // Runs on the server where the target is, in a procedure, behind what the target's account has
  // there. Several actions need several names.
  void OnTransmit(std::string action, TransmitHandler handler);

  // Remembers, in the transaction in which a connection broke, that LogoutIfBroken is due after the
  // delay. Without this a scheduler does, and a server that starts ends what it had left behind.
  void SetLogoutTimer(LogoutTimer timer);
  void LogoutIfBroken(const Key& key, std::int64_t version);

  // --- inside a transaction ---

  // The key's live login.
  std::optional<Login<Key>> Find(Transaction& tx, const Key& key);
  // The same, if it is on this server.
  std::optional<Login<Key>> FindHere(Transaction& tx, const Key& key);

  // The version of the key's last login, if that has ended. None: it is logged in, or never was, or
  // has been forgotten (OnlineOptions::clients_max).
  std::optional<std::int64_t> LastVersionIfOffline(Transaction& tx, const Key& key);

  // Who sent a message. None if that connection is not, or no longer, the one that is logged in:
  // a client that was replaced may still send, because its kick is on the way, or lost.
  std::optional<Login<Key>> LoginOf(Transaction& tx, Session& session);

  // Ends the key's login, if there is one. The client is told the code and disconnected.
  void Kick(Transaction& tx, const Key& key, std::int32_t code, std::string_view description);

  // If and when the transaction commits. In a handler of a login: behind its answer.
  template <OneWayProtocol P>
  void SendAfterCommit(Transaction& tx, const Key& key, const typename P::Argument& argument) {
    SendFrameAfterCommit(tx, std::span(&key, 1), EncodeOneWayFrame<P>(argument));
  }
  template <OneWayProtocol P>
  void SendAfterCommit(Transaction& tx, std::span<const Key> keys,
                       const typename P::Argument& argument) {
    SendFrameAfterCommit(tx, keys, EncodeOneWayFrame<P>(argument));
  }
  void SendFrameAfterCommit(Transaction& tx, std::span<const Key> keys, std::string frame);

  // Reliable notifies go to logins that listen to their mark. A login listens to nothing at first;
  // a re-login goes on with what it had.
  void Listen(Transaction& tx, const Key& key, std::string_view mark);
  void StopListening(Transaction& tx, const Key& key, std::string_view mark);

  // Kept until the client confirms it; sent if and when the transaction commits, and again after a
  // re-login. Nobody listens: nothing happens. Fails only with kBusy, and only if the options say
  // NotifyOverflow::kRefuse.
  template <OneWayProtocol P>
  std::int64_t SendReliable(Transaction& tx, const Key& key, std::string_view mark,
                            const typename P::Argument& argument) {
    return SendReliableFrame(tx, key, mark, EncodeOneWayFrame<P>(argument));
  }
  std::int64_t SendReliableFrame(Transaction& tx, const Key& key, std::string_view mark,
                                 std::string_view frame);

  // Beans that live and end with a login. Only on the server where it is: elsewhere there is
  // nothing, and Set returns false.
  template <typename Bean>
  std::optional<Bean> GetLocal(Transaction& tx, const Key& key, std::string_view name) {
    const std::optional<LocalData> data = Local(tx, key);
    return data ? data->template Get<Bean>(name) : std::nullopt;
  }
  template <typename Bean>
  bool SetLocal(Transaction& tx, const Key& key, std::string_view name, const Bean& bean) {
    std::optional<LocalData> data = Local(tx, key);
    if (data) data->Set(name, bean);
    return data && PutLocal(tx, key, *data);
  }
  bool RemoveLocal(Transaction& tx, const Key& key, std::string_view name);

  // --- outside transactions ---

  // At once. Returns how many are connected, as far as is known.
  template <OneWayProtocol P>
  std::size_t Send(std::span<const Key> keys, const typename P::Argument& argument) {
    return SendFrame(keys, EncodeOneWayFrame<P>(argument));
  }
  std::size_t SendFrame(std::span<const Key> keys, std::string_view frame);

  // To everybody who is logged in, whatever the key. Nobody hears who got it.
  template <OneWayProtocol P>
  void Broadcast(const typename P::Argument& argument, bool only_same_version = false) {
    BroadcastFrame(EncodeOneWayFrame<P>(argument), only_same_version);
  }
  void BroadcastFrame(std::string_view frame, bool only_same_version);

  // Runs the action for each target on the server where it is logged in, at most once, behind those
  // that this server has transmitted to the same login before. Returns how many are logged in
  // somewhere and not known to be out of reach.
  std::size_t Transmit(std::string_view action, std::span<const Key> targets, const Key& sender,
                       std::string_view parameter);

  // A server has gone for good, or for now: the logins that it has at this moment end. With a
  // service manager this happens by itself (OnlineOptions::take_over). Fails if some could not be
  // ended, because the server's lease still lasts: to be repeated. Several servers may do it at
  // once. `proceed` is asked when it is known which logins those are; false: none ends.
  using Proceed = std::function<Result<bool>()>;
  Result<std::size_t> LogoutAllOf(std::int32_t server_id, const Proceed& proceed = nullptr);

  // How many are logged in on this server, and how many came since the last call.
  struct Count {
    std::int64_t online = 0;
    std::int64_t online_new = 0;
  };
  Count TakeCount();
  std::int64_t online() const;

  // --- for the module that has these logins, and for tests ---

  void Connect(Links* links, DirectSender* direct);
  Result<void> Start(Application& application, std::int32_t server_id);
  void Stop();

  std::int64_t LogIn(Transaction& tx, Session& session, const Key& key);
  // What the client has handled: see notify_hash.h.
  struct Handled {
    std::int64_t index = 0;
    std::int64_t hash = 0;
  };
  std::int64_t LogInAgain(Transaction& tx, Session& session, const Key& key, Handled handled);
  std::int64_t LogOut(Transaction& tx, Session& session);
  std::int64_t ConfirmNotifies(Transaction& tx, Session& session, Handled handled, bool sync);
  // Another kind of login takes the connection.
  void LeaveLink(Transaction& tx, Session& session);
  void LinkBroken(const LinkAddress& link);
  // Does not wait.
  void Transmitted(std::string_view action, std::span<const Key> targets, const Key& sender,
                   std::string_view parameter);
  // Another server says that this login has ended there.
  void RemoveStaleLocal(const Key& key);
  void Verify();
  void CheckSuspects();

 private:
  struct Impl;

  std::optional<LocalData> Local(Transaction& tx, const Key& key);
  bool PutLocal(Transaction& tx, const Key& key, const LocalData& data);

  const std::unique_ptr<Impl> impl_;
};

extern template class Logins<AccountKey>;
extern template class Logins<RoleId>;

}  // namespace zeze::arch
