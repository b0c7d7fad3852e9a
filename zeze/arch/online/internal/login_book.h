// LoginBook: the one place where logins change: every change is a transaction, or part of one.
//
// What holds at every commit:
//   - A key has at most one live login: its record has one login version. An older login ends in
//     the transaction in which a newer one begins, and is kicked once that has committed.
//   - Login versions of a key only grow. Whatever comes late (a broken link, a delay that is over,
//     a kick, a server's take-over) names the version or the connection that it means, and does
//     nothing if the record has another.
//   - A login ends once, with its logout event.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "zeze/arch/online/internal/login_environment.h"
#include "zeze/arch/online/internal/login_events.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/result.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

template <typename Key>
class LoginBook {
 public:
  // Called in the transaction in which a connection broke: LogoutIfBroken is due after the delay.
  using LogoutTimer = std::function<void(Transaction& tx, const Key& key, std::int64_t version,
                                         std::chrono::nanoseconds delay)>;

  LoginBook(LoginEnvironment<Key>& environment, LoginEvents<Key>& events);

  // Instead of the scheduler, which forgets everything with the process. Before Start.
  void SetLogoutTimer(LogoutTimer timer) { timer_ = std::move(timer); }

  // A fresh login begins with no reliable notifies; a re-login keeps those it has. Its own event is
  // the caller's to raise.
  std::int64_t LogIn(Transaction& tx, const ProviderSession& session, const Key& key,
                     LoginChange change);

  // True if it was there and has ended.
  bool LogOut(Transaction& tx, const Key& key, std::int64_t version, LogoutReason reason);
  // Whatever is logged in on a client's connection, except a key.
  void LeaveLink(Transaction& tx, const ProviderSession& session, const Key* except);

  // The connection has certainly gone: the logout is due after the delay.
  void BreakLink(Transaction& tx, const Key& key, const LinkAddress& link);
  // On this server.
  void BreakLink(Transaction& tx, const LinkAddress& link);
  void LogoutIfBroken(const Key& key, std::int64_t version);
  // The delay begins again: whoever kept it may have ended. A second one does nothing.
  void AwaitReturn(Transaction& tx, const Key& key, std::int64_t version);
  // Nobody could say for the whole delay whether the connection is there: it breaks, and the login
  // ends.
  void GiveUp(Transaction& tx, const Key& key, std::int64_t version);

  // Removes local data whose login is not live any more, or elsewhere.
  void RemoveStaleLocal(Transaction& tx, const Key& key);

  // Ends all logins of a server that it has now, not those that begin meanwhile. `crashed`: what it
  // sent and did not save is unknown, so clients that listen to reliable notifies must log in
  // afresh. Records of a server that has just crashed cannot be had before its lease is over:
  // kGoOn tries again in the background, and returns how many have ended so far.
  // kReport gives up soon, with an error. `proceed` is asked when it is known who is logged in
  // there; false: nothing ends. Null: yes.
  enum class Unfinished : std::uint8_t { kReport, kGoOn };
  Result<std::size_t> LogoutAllOf(std::int32_t server_id, bool crashed,
                                  Unfinished unfinished = Unfinished::kReport,
                                  const std::function<Result<bool>()>& proceed = nullptr);

  // The login of a message's sender; none if the sender has been replaced or logged out.
  std::optional<Login<Key>> LoginOf(Transaction& tx, const ProviderSession& session);
  // The local data of a login that is live and here.
  std::optional<LocalRecord> LiveLocal(Transaction& tx, const Key& key);

  Login<Key> LoginFrom(const Key& key, const LoginRecord& record) const;

  std::int64_t online() const { return online_.load(std::memory_order_relaxed); }
  std::int64_t TakeNew() { return online_new_.exchange(0, std::memory_order_relaxed); }

 private:
  struct Entry {
    Key key;
    std::int64_t version;
  };

  bool MarkBroken(Transaction& tx, const Key& key, LoginRecord record);
  void EndLogin(Transaction& tx, const Key& key, LoginRecord record, LogoutReason reason);
  void AddLocal(Transaction& tx, const Key& key, const LoginRecord& record);
  void RemoveLocal(Transaction& tx, const Key& key, LogoutReason reason);
  void KickAfterCommit(Transaction& tx, const LinkAddress& link, std::int32_t code,
                       const char* why);
  void KickReplacedAfterCommit(Transaction& tx, const LinkAddress& replaced, const LinkAddress& by);
  void LogoutOneOf(Transaction& tx, std::int32_t server_id, const Key& key, std::int64_t version,
                   bool crashed);
  void ScheduleLogout(Transaction& tx, const Key& key, std::int64_t version,
                      std::chrono::nanoseconds delay);

  LoginEnvironment<Key>& environment_;
  LoginEvents<Key>& events_;
  LoginKind<Key>& kind_;
  LogoutTimer timer_;
  std::atomic<std::int64_t> online_ = 0;
  std::atomic<std::int64_t> online_new_ = 0;
};

}  // namespace zeze::arch::internal
