#include "zeze/arch/online/internal/login_book.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/login_environment.h"
#include "zeze/arch/online/internal/login_events.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/messages/notify_hash.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

namespace {

using Zeze::Builtin::Provider::BKick;

constexpr std::size_t kFailuresInARow = 3;

// If it is lost, the old client's messages still come, and LoginOf does not know them.
void Kick(Links& links, const LinkAddress& link, std::int32_t code, const char* why) {
  const Result<void> kicked = links.Kick(link, code, why, BKick::eControlClose);
  if (!kicked.ok()) {
    ZEZE_LOG_INFO("client {} of gateway {} is not kicked: {}", link.link_sid, link.link_name,
                  kicked.error().message());
  }
}

}  // namespace

template <typename Key>
LoginBook<Key>::LoginBook(LoginEnvironment<Key>& environment, LoginEvents<Key>& events)
    : environment_(environment), events_(events), kind_(environment.kind) {
  timer_ = [this](Transaction& tx, const Key& key, std::int64_t version,
                  std::chrono::nanoseconds delay) { ScheduleLogout(tx, key, version, delay); };
}

template <typename Key>
std::int64_t LoginBook<Key>::LogIn(Transaction& tx, const ProviderSession& session, const Key& key,
                                   LoginChange change) {
  if (session.account().empty()) {
    return kind_.ErrorCode(Zeze::Builtin::Online::ResultCodeAccountNotExist);
  }
  LeaveLink(tx, session, &key);
  if (!kind_.MakeRoom(tx, key, environment_.options.clients_max)) return result_code::kBusy;
  LoginRecord record = kind_.Get(tx, key).value_or(LoginRecord{.account = session.account()});
  if (record.account.empty()) record.account = session.account();
  if (record.account != session.account()) return result_code::kLogicError;

  if (record.live()) {
    if (record.link != session.address()) {
      KickReplacedAfterCommit(tx, record.link, session.address());
    }
    EndLogin(tx, key, record, LogoutReason::kReplaced);
    record = kind_.Get(tx, key).value();  // Handlers may have changed the rest of it.
  }
  record.login_version = ++record.last_version;
  record.link = session.address();
  record.state = LoginState::kLoggedIn;
  record.server_id = environment_.server_id;
  if (change == LoginChange::kLogin) {
    record.notify_marks.Clear();
    record.notify_index = 0;
    record.notify_confirmed = 0;
    record.notify_hash = kNotifyHashAtLogin;
    kind_.RemoveQueue(tx, key);
  }
  kind_.Put(tx, key, record);
  AddLocal(tx, key, record);
  kind_.PutServerLogin(tx, record.server_id, key, record.login_version);

  tx.AfterCommit(Task("set user state", [this, key, link = record.link, &links = session.links()] {
    const Result<void> told = links.SetUserState(link, kind_.UserStateOf(key));
    if (!told.ok()) {
      ZEZE_LOG_INFO("{} logged in, but its gateway is not told: {}", kind_.Describe(key),
                    told.error().message());
    }
  }));
  return result_code::kSuccess;
}

template <typename Key>
bool LoginBook<Key>::LogOut(Transaction& tx, const Key& key, std::int64_t version,
                            LogoutReason reason) {
  const std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (!record || !record->IsLogin(version)) return false;
  EndLogin(tx, key, *record, reason);
  return true;
}

// This server knows what is logged in on the connection here, at once; the gateway what is, on
// whichever server.
template <typename Key>
void LoginBook<Key>::LeaveLink(Transaction& tx, const ProviderSession& session, const Key* except) {
  for (const std::optional<Key>& key :
       {kind_.KeyOfLink(tx, session.address()), kind_.KeyOf(session)}) {
    if (!key || (except != nullptr && *key == *except)) continue;
    const std::optional<LoginRecord> record = kind_.Get(tx, *key);
    if (record && record->live() && record->link == session.address()) {
      EndLogin(tx, *key, *record, LogoutReason::kReplaced);
    } else {
      RemoveStaleLocal(tx, *key);
    }
  }
}

// The record is that of a live login.
template <typename Key>
void LoginBook<Key>::EndLogin(Transaction& tx, const Key& key, LoginRecord record,
                              LogoutReason reason) {
  record.logout_version = record.login_version;
  record.state = LoginState::kOffline;
  kind_.Put(tx, key, record);
  kind_.RemoveServerLogin(tx, record.server_id, key);
  RemoveLocal(tx, key, reason);
  if (record.server_id != environment_.server_id) {
    // If this is lost, the other server finds out when it uses or verifies its local data.
    tx.AfterCommit(Task("remove remote local", [this, key, server_id = record.server_id] {
      DirectSender* direct = environment_.direct;
      if (direct == nullptr) return;
      const Result<void> sent = kind_.RemoveRemoteLocal(*direct, server_id, key);
      if (!sent.ok()) {
        ZEZE_LOG_INFO("server {} is not told that {} has logged out: {}", server_id,
                      kind_.Describe(key), sent.error().message());
      }
    }));
  }
  Login<Key> login = LoginFrom(key, record);
  login.reason = reason;
  static_cast<void>(events_.Raise(tx, LoginChange::kLogout, login));
}

template <typename Key>
void LoginBook<Key>::AddLocal(Transaction& tx, const Key& key, const LoginRecord& record) {
  // One that a login elsewhere has left behind.
  RemoveLocal(tx, key, LogoutReason::kReplaced);
  kind_.PutLocal(tx, key,
                 {.LoginVersion = record.login_version,
                  .Link = WireLinkOf(record.link, LoginState::kLoggedIn)});
  kind_.PutLink(tx, record.link, key);
  tx.AfterCommit(Task("count login", [this] {
    online_.fetch_add(1, std::memory_order_relaxed);
    online_new_.fetch_add(1, std::memory_order_relaxed);
  }));
}

template <typename Key>
void LoginBook<Key>::RemoveLocal(Transaction& tx, const Key& key, LogoutReason reason) {
  const std::optional<LocalRecord> local = kind_.GetLocal(tx, key);
  if (!local) return;
  Login<Key> login{.key = key,
                   .link = AddressOf(local->Link),
                   .version = local->LoginVersion,
                   .server_id = environment_.server_id,
                   .reason = reason,
                   .local = LocalData(local->Datas)};
  if (const std::optional<LoginRecord> record = kind_.Get(tx, key)) login.account = record->account;
  kind_.RemoveLocal(tx, key);
  if (kind_.KeyOfLink(tx, login.link) == key) kind_.RemoveLink(tx, login.link);
  tx.AfterCommit(Task("count logout", [this] { online_.fetch_sub(1, std::memory_order_relaxed); }));
  static_cast<void>(events_.Raise(tx, LoginChange::kLocalRemoved, login));
}

template <typename Key>
void LoginBook<Key>::BreakLink(Transaction& tx, const LinkAddress& link) {
  if (const std::optional<Key> key = kind_.KeyOfLink(tx, link)) BreakLink(tx, *key, link);
}

template <typename Key>
void LoginBook<Key>::BreakLink(Transaction& tx, const Key& key, const LinkAddress& link) {
  const std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (!record || !record->live() || record->link != link) return;
  if (MarkBroken(tx, key, *record)) {
    timer_(tx, key, record->login_version, environment_.options.logout_delay);
  }
}

template <typename Key>
void LoginBook<Key>::AwaitReturn(Transaction& tx, const Key& key, std::int64_t version) {
  const std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (!record || !record->IsLogin(version) || record->state != LoginState::kLinkBroken) return;
  timer_(tx, key, version, environment_.options.logout_delay);
}

template <typename Key>
bool LoginBook<Key>::MarkBroken(Transaction& tx, const Key& key, LoginRecord record) {
  if (record.state == LoginState::kLinkBroken) return false;
  record.state = LoginState::kLinkBroken;
  kind_.Put(tx, key, record);
  static_cast<void>(events_.Raise(tx, LoginChange::kLinkBroken, LoginFrom(key, record)));
  return true;
}

template <typename Key>
void LoginBook<Key>::GiveUp(Transaction& tx, const Key& key, std::int64_t version) {
  const std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (!record || !record->IsLogin(version)) return;
  MarkBroken(tx, key, *record);
  LogOut(tx, key, version, LogoutReason::kLinkBroken);
}

template <typename Key>
void LoginBook<Key>::ScheduleLogout(Transaction& tx, const Key& key, std::int64_t version,
                                    std::chrono::nanoseconds delay) {
  tx.AfterCommit(Task("await return", [this, key, version, delay] {
    environment_.application->scheduler().After(
        delay, Task("log out", [this, key, version] { LogoutIfBroken(key, version); }));
  }));
}

template <typename Key>
void LoginBook<Key>::LogoutIfBroken(const Key& key, std::int64_t version) {
  environment_.RunUntilDone("log out after delay", [this, key, version](Transaction& tx) {
    const std::optional<LoginRecord> record = kind_.Get(tx, key);
    if (record && record->IsLogin(version) && record->state == LoginState::kLinkBroken) {
      EndLogin(tx, key, *record, LogoutReason::kLinkBroken);
    }
    return result_code::kSuccess;
  });
}

template <typename Key>
void LoginBook<Key>::RemoveStaleLocal(Transaction& tx, const Key& key) {
  const std::optional<LocalRecord> local = kind_.GetLocal(tx, key);
  if (!local) return;
  const std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (record && record->IsLogin(local->LoginVersion)) return;
  RemoveLocal(tx, key, LogoutReason::kReplaced);
}

template <typename Key>
Result<std::size_t> LoginBook<Key>::LogoutAllOf(std::int32_t server_id, bool crashed,
                                                Unfinished unfinished,
                                                const std::function<Result<bool>()>& proceed) {
  std::vector<Entry> entries;
  const Result<void> walked = kind_.WalkServerLogins(
      server_id,
      [&entries](const Key& key, std::int64_t version) { entries.push_back({key, version}); });
  if (!walked.ok()) return walked.error();
  if (proceed) {
    const Result<bool> may = proceed();
    if (!may.ok()) return may.error();
    if (!may.value()) return std::size_t{0};
  }
  std::size_t ended = 0;
  std::size_t failed = 0;
  std::size_t failed_in_a_row = 0;
  for (const Entry& entry : entries) {
    const auto procedure = [=, this](Transaction& tx) {
      LogoutOneOf(tx, server_id, entry.key, entry.version, crashed);
      return result_code::kSuccess;
    };
    // If some cannot be had, most of the others cannot either, and each try may wait long.
    const std::size_t failures_max = unfinished == Unfinished::kGoOn ? 1 : kFailuresInARow;
    if (failed_in_a_row < failures_max) {
      if (environment_.application->CallApart("log out of a server", procedure) ==
          result_code::kSuccess) {
        ++ended;
        failed_in_a_row = 0;
        continue;
      }
      ++failed_in_a_row;
    }
    ++failed;
    if (unfinished == Unfinished::kGoOn) {
      environment_.RunUntilDone("log out of a server", procedure);
    }
  }
  if (failed == 0 || unfinished == Unfinished::kGoOn) return ended;
  return Error(ErrorCode::kUnavailable,
               fmt::format("{} of {} logins of server {} could not be ended: try again", failed,
                           entries.size(), server_id));
}

template <typename Key>
void LoginBook<Key>::LogoutOneOf(Transaction& tx, std::int32_t server_id, const Key& key,
                                 std::int64_t version, bool crashed) {
  const std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (!record || !record->IsLogin(version)) {
    // A newer login there has made this entry its own.
    const bool newer = record && record->live() && record->server_id == server_id;
    if (!newer) kind_.RemoveServerLogin(tx, server_id, key);
    return;
  }
  if (crashed && !record->notify_marks.empty()) {
    NotifyQueue queue = kind_.GetQueue(tx, key).value_or(NotifyQueue{});
    queue.Unproven = true;
    kind_.PutQueue(tx, key, queue);
  }
  if (record->state == LoginState::kLoggedIn) {
    KickAfterCommit(tx, record->link, BKick::ErrorReconnectServer, "the server has gone");
  }
  EndLogin(tx, key, *record, LogoutReason::kServerGone);
  kind_.RemoveServerLogin(tx, server_id, key);
}

template <typename Key>
std::optional<Login<Key>> LoginBook<Key>::LoginOf(Transaction& tx, const ProviderSession& session) {
  // Where the login is, its connection is known before the gateway knows the login.
  std::optional<Key> key = kind_.KeyOfLink(tx, session.address());
  if (!key) key = kind_.KeyOf(session);
  if (!key) return std::nullopt;
  const std::optional<LoginRecord> record = kind_.Get(tx, *key);
  if (!record || !record->live() || record->link != session.address()) return std::nullopt;
  return LoginFrom(*key, *record);
}

template <typename Key>
std::optional<LocalRecord> LoginBook<Key>::LiveLocal(Transaction& tx, const Key& key) {
  std::optional<LocalRecord> local = kind_.GetLocal(tx, key);
  if (!local) return std::nullopt;
  const std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (!record || !record->IsLogin(local->LoginVersion)) return std::nullopt;
  return local;
}

template <typename Key>
Login<Key> LoginBook<Key>::LoginFrom(const Key& key, const LoginRecord& record) const {
  return {.key = key,
          .account = record.account,
          .state = record.state,
          .link = record.link,
          .version = record.login_version,
          .server_id = record.server_id};
}

template <typename Key>
void LoginBook<Key>::KickAfterCommit(Transaction& tx, const LinkAddress& link, std::int32_t code,
                                     const char* why) {
  tx.AfterCommit(Task("kick", [this, link, code, why] {
    if (environment_.links != nullptr) Kick(*environment_.links, link, code, why);
  }));
}

// A client that was kicked because it logged in elsewhere stays away. So this is said only if the
// other client is there. A login may have waited for its record until its client had given up and
// logged in on a new connection: then the replaced login is the one that the client uses, and the
// client must come back.
template <typename Key>
void LoginBook<Key>::KickReplacedAfterCommit(Transaction& tx, const LinkAddress& replaced,
                                             const LinkAddress& by) {
  tx.AfterCommit(Task("kick replaced", [this, replaced, by] {
    Links* links = environment_.links;
    if (links == nullptr) return;
    const auto kick = [links, replaced](bool other_is_there) {
      if (other_is_there) {
        Kick(*links, replaced, BKick::ErrorDuplicateLogin, "logged in elsewhere");
      } else {
        Kick(*links, replaced, BKick::ErrorReconnectServer, "replaced by a client that has gone");
      }
    };
    const Result<void> asked = links->CheckSession(by, [kick](const SendOutcome& outcome) {
      kick(outcome.answered && outcome.lost_sids.empty());
    });
    // A gateway that has too much to do is there, and so are its clients.
    if (!asked.ok()) kick(asked.error().code() == ErrorCode::kOverloaded);
  }));
}

template class LoginBook<AccountKey>;
template class LoginBook<RoleId>;

}  // namespace zeze::arch::internal
