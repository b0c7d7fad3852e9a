// The words of logins: their state, what happens to them, and how an application takes part.
//
//   logins.On(LoginChange::kLogin, {.in_transaction = [&](Transaction& tx, const auto& login) {
//     return roles.Contains(tx, login.key) ? 0 : kNoSuchRole;      // Anything but 0 refuses.
//   }});

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/provider/links.h"
#include "zeze/bean/map.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/transaction.h"

namespace zeze {
class Config;
}  // namespace zeze

namespace zeze::arch {

// Who is logged in: a client of an account, or a role.
using AccountKey = Zeze::Builtin::ProviderDirect::BLoginKey;
using RoleId = std::int64_t;

// Stored and sent: never renumber.
enum class LoginState : std::int32_t {
  kOffline = 0,
  kLinkBroken = 1,  // Logged in; the connection has gone, and a new one is awaited for a while.
  kLoggedIn = 2,
};

enum class LoginChange : std::uint8_t {
  kLogin,
  kReLogin,
  kLinkBroken,
  kLogout,
  kLocalRemoved,  // The local data of a login have gone from this server.
};

enum class LogoutReason : std::uint8_t {
  kRequested,   // By the client.
  kReplaced,    // By another login of the same key, or another login on the same connection.
  kLinkBroken,  // And nobody came back in time.
  kKicked,      // By the application.
  kServerGone,  // Where it was logged in.
};

// Beans of the application that live and end with a login, on the server where it is.
class LocalData {
 public:
  using Entries = Map<std::string, Zeze::Builtin::Online::BLocalData>;

  LocalData() = default;
  explicit LocalData(Entries entries) : entries_(std::move(entries)) {}

  // None if there is nothing of this name, or a bean of another type.
  template <typename Bean>
  std::optional<Bean> Get(std::string_view name) const {
    const Zeze::Builtin::Online::BLocalData* data = entries_.Find(std::string(name));
    if (data == nullptr || data->TypeId != Bean::kTypeId) return std::nullopt;
    ByteReader in(data->Bytes.bytes);
    Bean bean;
    bean.Decode(in);
    return in.ok() ? std::optional(std::move(bean)) : std::nullopt;
  }

  template <typename Bean>
  void Set(std::string_view name, const Bean& bean) {
    ByteWriter out;
    bean.Encode(out);
    entries_.Put(std::string(name),
                 {.TypeId = Bean::kTypeId, .Bytes = Binary{std::string(out.view())}});
  }

  bool Remove(std::string_view name) { return entries_.Erase(std::string(name)); }

  const Entries& entries() const { return entries_; }

 private:
  Entries entries_;
};

// A login at the moment of a change.
template <typename Key>
struct Login {
  Key key = {};
  std::string account = {};
  LoginState state = LoginState::kOffline;
  LinkAddress link = {};
  // Of this login; each later one of the key has a higher one. Whatever is done later for a login
  // compares it first.
  std::int64_t version = 0;
  std::int32_t server_id = 0;                      // Where it is.
  LogoutReason reason = LogoutReason::kRequested;  // Of kLogout and kLocalRemoved.
  LocalData local = {};                            // Of kLocalRemoved: what there was.
};

// Takes part in a change in up to three stages:
//   - in_transaction: as part of the change. A code other than 0 refuses a login; every other
//     change happens all the same, only what this handler did is taken back. What it sends through
//     Logins goes out behind the answer.
//   - in_procedure: in a transaction of its own, after the change was committed.
//   - outside: after that, without a transaction.
// The later stages of one account's changes run in the order of the changes, if one server made
// them; a crash loses them. The first stage happens exactly once, with the change.
template <typename Key>
struct LoginHandler {
  std::function<std::int64_t(Transaction& tx, const Login<Key>& login)> in_transaction = nullptr;
  std::function<std::int64_t(Transaction& tx, const Login<Key>& login)> in_procedure = nullptr;
  std::function<void(const Login<Key>& login)> outside = nullptr;
};

// What happens when a client does not confirm its reliable notifies, and their queue is full.
enum class NotifyOverflow : std::uint8_t {
  // The queue is dropped. The client is told when it confirms or logs in again that it must log in
  // afresh and fetch everything.
  kRequireLogin,
  // SendReliable fails with result_code::kBusy: the sender decides.
  kRefuse,
};

struct OnlineOptions {
  // From a broken connection to the logout. A login meanwhile prevents it.
  std::chrono::nanoseconds logout_delay = std::chrono::seconds(60);
  // How often connections are looked at whose gateway could not be reached.
  std::chrono::nanoseconds suspect_period = std::chrono::seconds(5);
  // How often all logins of this server are compared with what gateways and tables say.
  std::chrono::nanoseconds verify_period = std::chrono::minutes(10);

  // A server that is gone for as long as the service manager waits (OfflineNotifyDelay) is taken
  // over: one that lives ends its logins. Needs Application::registry() and a shared database.
  bool take_over = true;

  // Of reliable notifies that one login has not confirmed.
  std::size_t notify_frames_max = 256;
  std::size_t notify_bytes_max = 256 << 10;
  NotifyOverflow notify_overflow = NotifyOverflow::kRequireLogin;

  // Clients of one account that are remembered; beyond it those are forgotten that logged in
  // longest ago and are offline. If all are online, one more is refused with result_code::kBusy.
  std::size_t clients_max = 64;
};

// What zeze.xml says (OnlineLogoutDelay); the rest has its defaults.
OnlineOptions OnlineOptionsFromConfig(const Config& config);

}  // namespace zeze::arch
