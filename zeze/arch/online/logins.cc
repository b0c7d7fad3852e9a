#include "zeze/arch/online/logins.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/login_book.h"
#include "zeze/arch/online/internal/login_environment.h"
#include "zeze/arch/online/internal/login_events.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/internal/login_sender.h"
#include "zeze/arch/online/internal/notify_queues.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/scheduler.h"
#include "zeze/base/usage_error.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

using internal::AnswerScope;
using internal::LocalRecord;
using internal::LoginRecord;

template <typename Key>
struct Logins<Key>::Impl {
  Impl(internal::LoginKind<Key>& the_kind, OnlineOptions options)
      : kind(the_kind),
        environment(the_kind, options),
        events(environment),
        book(environment, events),
        sender(environment, book),
        notifies(environment) {}

  void CheckSetUp() const {
    ZEZE_REQUIRE(environment.application == nullptr,
                 "handlers of logins are set before the application starts");
  }

  std::int64_t NotLoggedIn() const {
    return kind.ErrorCode(Zeze::Builtin::Online::ResultCodeNotLogin);
  }

  // Once the transaction has committed; behind the answer if that is still to come.
  void Later(Transaction& tx, Task task) {
    if (AnswerScope::account().empty()) return tx.AfterCommit(std::move(task));
    auto shared = std::make_shared<Task>(std::move(task));
    tx.AfterCommit(
        Task(shared->name(), [this, shared, account = std::string(AnswerScope::account())] {
          environment.PostBehind(account, Task(shared->name(), [shared] { (*shared)(); }));
        }));
  }

  // Reliable notifies are counted by login: what one is owed must not come to a later one.
  void SendLater(Transaction& tx, const Key& key, std::int64_t version, std::string frame) {
    Later(tx, Task("send", [this, key, version, frame = std::move(frame)] {
            sender.SendToLogin(key, version, frame);
          }));
  }
  void SendRestLater(Transaction& tx, const Key& key, std::int64_t version) {
    if (std::optional<std::string> rest = notifies.Rest(tx, key)) {
      SendLater(tx, key, version, std::move(*rest));
    }
  }

  std::int64_t LogIn(Transaction& tx, ProviderSession& session, const Key& key, LoginChange change);
  void Deliver(const TransmitHandler& run, const Key& target, const Key& sender_key,
               const std::string& parameter);

  internal::LoginKind<Key>& kind;
  internal::LoginEnvironment<Key> environment;
  internal::LoginEvents<Key> events;
  internal::LoginBook<Key> book;
  internal::LoginSender<Key> sender;
  internal::NotifyQueues<Key> notifies;
  std::map<std::string, TransmitHandler, std::less<>> actions;  // Fixed after Start.
  ScheduledTask suspects_timer;
  ScheduledTask verify_timer;
};

template <typename Key>
Logins<Key>::Logins(internal::LoginKind<Key>& kind, OnlineOptions options)
    : impl_(std::make_unique<Impl>(kind, options)) {}

template <typename Key>
Logins<Key>::~Logins() = default;

template <typename Key>
void Logins<Key>::On(LoginChange change, LoginHandler<Key> handler) {
  impl_->CheckSetUp();
  impl_->events.Add(change, std::move(handler));
}

template <typename Key>
void Logins<Key>::OnTransmit(std::string action, TransmitHandler handler) {
  impl_->CheckSetUp();
  ZEZE_REQUIRE(handler != nullptr, "the handler of transmit action \"" + action + "\" is empty");
  const auto [at, added] = impl_->actions.emplace(std::move(action), std::move(handler));
  ZEZE_REQUIRE(added, "transmit action \"" + at->first + "\" has a handler already");
}

template <typename Key>
void Logins<Key>::SetLogoutTimer(LogoutTimer timer) {
  impl_->CheckSetUp();
  impl_->book.SetLogoutTimer(std::move(timer));
}

template <typename Key>
void Logins<Key>::LogoutIfBroken(const Key& key, std::int64_t version) {
  impl_->book.LogoutIfBroken(key, version);
}

// --- start and stop ---

template <typename Key>
void Logins<Key>::Connect(Links* links, DirectSender* direct) {
  impl_->environment.links = links;
  impl_->environment.direct = direct;
}

template <typename Key>
Result<void> Logins<Key>::Start(Application& application, std::int32_t server_id) {
  if (impl_->environment.application != nullptr) {
    return Error(ErrorCode::kInvalidArgument, "logins can be started only once");
  }
  impl_->environment.application = &application;
  impl_->environment.server_id = server_id;
  // What a crash has left behind. The server does not wait for its own old lease: who logs in again
  // meanwhile ends the old login himself.
  // On a machine that is too busy the lease may run out before it is first renewed.
  constexpr int kAttempts = 10;
  constexpr std::chrono::milliseconds kPause{500};
  Result<std::size_t> ended = std::size_t{0};
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    ended = impl_->book.LogoutAllOf(server_id, true, internal::LoginBook<Key>::Unfinished::kGoOn);
    if (ended.ok() || ended.error().code() != ErrorCode::kUnavailable) break;
    application.options().clock->SleepFor(kPause);
  }
  if (!ended.ok()) return ended.error();
  if (ended.value() > 0) {
    ZEZE_LOG_INFO("server {}: {} logins from before its start have ended", server_id,
                  ended.value());
  }
  const OnlineOptions& options = impl_->environment.options;
  impl_->suspects_timer = application.scheduler().Every(
      options.suspect_period, Task("check suspects", [this] { CheckSuspects(); }));
  impl_->verify_timer = application.scheduler().Every(options.verify_period,
                                                      Task("verify logins", [this] { Verify(); }));
  return {};
}

template <typename Key>
void Logins<Key>::Stop() {
  impl_->suspects_timer.Cancel();
  impl_->verify_timer.Cancel();
  impl_->events.Finish();
  const Result<std::size_t> ended = impl_->book.LogoutAllOf(impl_->environment.server_id, false);
  if (!ended.ok()) ZEZE_LOG_WARNING("{}; the next start does it", ended.error().message());
  impl_->events.Finish();
}

// --- requests of clients ---

template <typename Key>
std::int64_t Logins<Key>::Impl::LogIn(Transaction& tx, ProviderSession& session, const Key& key,
                                      LoginChange change) {
  // Also for what handlers of the older login's end send: it comes to the newer one.
  const AnswerScope scope(session.account());
  std::int64_t code = book.LogIn(tx, session, key, change);
  if (code != result_code::kSuccess) return code;
  const std::optional<LoginRecord> record = kind.Get(tx, key);
  // First of all that is sent after the answer: what handlers send now comes behind.
  if (change == LoginChange::kReLogin) SendRestLater(tx, key, record->login_version);
  code = events.Raise(tx, change, book.LoginFrom(key, *record));
  if (code != result_code::kSuccess) return code;
  // A client may have gone before its gateway knew that it was logging in: then nobody would say
  // so.
  Later(tx,
        Task("check new login", [this, key, version = record->login_version, link = record->link] {
          sender.CheckNew(key, version, link);
        }));
  return code;
}

template <typename Key>
std::int64_t Logins<Key>::LogIn(Transaction& tx, Session& session, const Key& key) {
  return impl_->LogIn(tx, ProviderSession::Of(session), key, LoginChange::kLogin);
}

template <typename Key>
std::int64_t Logins<Key>::LogInAgain(Transaction& tx, Session& session, const Key& key,
                                     Handled handled) {
  ProviderSession& client = ProviderSession::Of(session);
  const std::optional<LoginRecord> record = impl_->kind.Get(tx, key);
  if (!record || record->login_version == 0) {
    return impl_->kind.ErrorCode(Zeze::Builtin::Online::ResultCodeOnlineDataNotFound);
  }
  const std::int64_t code = impl_->notifies.Confirm(tx, key, handled.index, handled.hash);
  if (code != result_code::kSuccess) return code;
  return impl_->LogIn(tx, client, key, LoginChange::kReLogin);
}

template <typename Key>
std::int64_t Logins<Key>::LogOut(Transaction& tx, Session& session) {
  ProviderSession& client = ProviderSession::Of(session);
  const std::optional<Login<Key>> login = impl_->book.LoginOf(tx, client);
  if (!login) return impl_->NotLoggedIn();
  impl_->book.LogOut(tx, login->key, login->version, LogoutReason::kRequested);
  tx.AfterCommit(Task("clear user state", [&links = client.links(), link = client.address()] {
    const Result<void> told = links.SetUserState(link, {});
    if (!told.ok()) {
      ZEZE_LOG_INFO("gateway {} is not told of a logout: {}", link.link_name,
                    told.error().message());
    }
  }));
  return result_code::kSuccess;
}

template <typename Key>
std::int64_t Logins<Key>::ConfirmNotifies(Transaction& tx, Session& session, Handled handled,
                                          bool sync) {
  ProviderSession& client = ProviderSession::Of(session);
  const std::optional<Login<Key>> login = impl_->book.LoginOf(tx, client);
  if (!login) return impl_->NotLoggedIn();
  const std::int64_t code = impl_->notifies.Confirm(tx, login->key, handled.index, handled.hash);
  if (code != result_code::kSuccess || !sync) return code;
  const AnswerScope scope(client.account());
  impl_->SendRestLater(tx, login->key, login->version);
  return code;
}

template <typename Key>
void Logins<Key>::LeaveLink(Transaction& tx, Session& session) {
  impl_->book.LeaveLink(tx, ProviderSession::Of(session), nullptr);
}

template <typename Key>
void Logins<Key>::LinkBroken(const LinkAddress& link) {
  const std::int64_t code =
      impl_->environment.application->Call("link broken", [&](Transaction& tx) {
        impl_->book.BreakLink(tx, link);
        return result_code::kSuccess;
      });
  if (code == result_code::kSuccess || code == result_code::kClosed) return;
  impl_->environment.RunUntilDone("link broken", [this, link](Transaction& tx) {
    impl_->book.BreakLink(tx, link);
    return result_code::kSuccess;
  });
}

// --- inside a transaction ---

template <typename Key>
std::optional<Login<Key>> Logins<Key>::Find(Transaction& tx, const Key& key) {
  const std::optional<LoginRecord> record = impl_->kind.Get(tx, key);
  if (!record || !record->live()) return std::nullopt;
  return impl_->book.LoginFrom(key, *record);
}

template <typename Key>
std::optional<Login<Key>> Logins<Key>::FindHere(Transaction& tx, const Key& key) {
  return impl_->book.LiveLocal(tx, key) ? Find(tx, key) : std::nullopt;
}

template <typename Key>
std::optional<std::int64_t> Logins<Key>::LastVersionIfOffline(Transaction& tx, const Key& key) {
  const std::optional<LoginRecord> record = impl_->kind.Get(tx, key);
  if (!record || record->live() || record->login_version == 0) return std::nullopt;
  return record->login_version;
}

template <typename Key>
std::optional<Login<Key>> Logins<Key>::LoginOf(Transaction& tx, Session& session) {
  return impl_->book.LoginOf(tx, ProviderSession::Of(session));
}

template <typename Key>
void Logins<Key>::Kick(Transaction& tx, const Key& key, std::int32_t code,
                       std::string_view description) {
  const std::optional<Login<Key>> login = Find(tx, key);
  if (!login) return;
  impl_->book.LogOut(tx, key, login->version, LogoutReason::kKicked);
  tx.AfterCommit(Task("kick", [this, link = login->link, code, text = std::string(description)] {
    Links* links = impl_->environment.links;
    if (links == nullptr) return;
    const Result<void> kicked =
        links->Kick(link, code, text, Zeze::Builtin::Provider::BKick::eControlClose);
    if (!kicked.ok()) ZEZE_LOG_INFO("not kicked: {}", kicked.error().message());
  }));
}

template <typename Key>
void Logins<Key>::SendFrameAfterCommit(Transaction& tx, std::span<const Key> keys,
                                       std::string frame) {
  impl_->Later(tx, Task("send", [this, to = std::vector<Key>(keys.begin(), keys.end()),
                                 frame = std::move(frame)] { impl_->sender.Send(to, frame); }));
}

template <typename Key>
void Logins<Key>::Listen(Transaction& tx, const Key& key, std::string_view mark) {
  std::optional<LoginRecord> record = impl_->kind.Get(tx, key);
  if (!record || !record->live()) return;
  if (record->notify_marks.Add(std::string(mark))) impl_->kind.Put(tx, key, *record);
}

template <typename Key>
void Logins<Key>::StopListening(Transaction& tx, const Key& key, std::string_view mark) {
  std::optional<LoginRecord> record = impl_->kind.Get(tx, key);
  if (record && record->notify_marks.Erase(std::string(mark))) impl_->kind.Put(tx, key, *record);
}

template <typename Key>
std::int64_t Logins<Key>::SendReliableFrame(Transaction& tx, const Key& key, std::string_view mark,
                                            std::string_view frame) {
  auto added = impl_->notifies.Add(tx, key, mark, frame);
  if (added.frame) impl_->SendLater(tx, key, added.version, std::move(*added.frame));
  return added.code;
}

template <typename Key>
std::optional<LocalData> Logins<Key>::Local(Transaction& tx, const Key& key) {
  const std::optional<LocalRecord> local = impl_->book.LiveLocal(tx, key);
  return local ? std::optional(LocalData(local->Datas)) : std::nullopt;
}

template <typename Key>
bool Logins<Key>::PutLocal(Transaction& tx, const Key& key, const LocalData& data) {
  std::optional<LocalRecord> local = impl_->book.LiveLocal(tx, key);
  if (!local) return false;
  local->Datas = data.entries();
  impl_->kind.PutLocal(tx, key, *local);
  return true;
}

template <typename Key>
bool Logins<Key>::RemoveLocal(Transaction& tx, const Key& key, std::string_view name) {
  std::optional<LocalData> data = Local(tx, key);
  return data && data->Remove(name) && PutLocal(tx, key, *data);
}

// --- outside transactions ---

template <typename Key>
std::size_t Logins<Key>::SendFrame(std::span<const Key> keys, std::string_view frame) {
  return impl_->sender.Send(keys, frame);
}

template <typename Key>
void Logins<Key>::BroadcastFrame(std::string_view frame, bool only_same_version) {
  if (Links* links = impl_->environment.links) links->Broadcast(frame, only_same_version);
}

template <typename Key>
std::size_t Logins<Key>::Transmit(std::string_view action, std::span<const Key> targets,
                                  const Key& sender, std::string_view parameter) {
  std::map<std::int32_t, std::vector<Key>> by_server;
  for (const Key& target : std::set<Key>(targets.begin(), targets.end())) {
    const Result<std::optional<LoginRecord>> record = impl_->kind.ReadCopy(target);
    if (!record.ok() || !record.value() || !record.value()->live()) continue;
    by_server[record.value()->server_id].push_back(target);
  }
  std::size_t handed_over = 0;
  for (const auto& [server_id, keys] : by_server) {
    if (server_id == impl_->environment.server_id) {
      Transmitted(action, keys, sender, parameter);
      handed_over += keys.size();
      continue;
    }
    DirectSender* direct = impl_->environment.direct;
    if (direct == nullptr) continue;
    const Result<void> sent =
        impl_->kind.Transmit(*direct, server_id, action, keys, sender, parameter);
    if (sent.ok()) {
      handed_over += keys.size();
    } else {
      ZEZE_LOG_WARNING("\"{}\" is not transmitted to {} logins of server {}: {}", action,
                       keys.size(), server_id, sent.error().message());
    }
  }
  return handed_over;
}

template <typename Key>
void Logins<Key>::Transmitted(std::string_view action, std::span<const Key> targets,
                              const Key& sender, std::string_view parameter) {
  const auto handler = impl_->actions.find(action);
  if (handler == impl_->actions.end()) {
    ZEZE_LOG_WARNING("nobody here handles the transmitted action \"{}\"", action);
    return;
  }
  // Records may have to be loaded, which is not for network threads; what comes for a target keeps
  // its order.
  const auto text = std::make_shared<const std::string>(parameter);
  for (const Key& target : targets) {
    const Result<void> posted = impl_->environment.application->one_by_one().Post(
        impl_->kind.Describe(target),
        Task("transmit", [this, &run = handler->second, sender, target, text] {
          impl_->Deliver(run, target, sender, *text);
        }));
    if (!posted.ok()) {
      ZEZE_LOG_WARNING("the transmitted action \"{}\" for {} is dropped: {}", action,
                       impl_->kind.Describe(target), posted.error().message());
    }
  }
}

template <typename Key>
void Logins<Key>::Impl::Deliver(const TransmitHandler& run, const Key& target,
                                const Key& sender_key, const std::string& parameter) {
  const Result<std::optional<LoginRecord>> record = kind.ReadCopy(target);
  if (!record.ok()) {
    ZEZE_LOG_WARNING("an action for {} is lost: {}", kind.Describe(target),
                     record.error().message());
    return;
  }
  if (!record.value()) return;
  environment.PostBehind(
      record.value()->account, Task("transmit", [this, &run, target, sender_key, parameter] {
        environment.application->Call("transmit", [&](Transaction& tx) -> std::int64_t {
          // It may have gone elsewhere meanwhile.
          if (!book.LiveLocal(tx, target)) return result_code::kSuccess;
          return run(tx, sender_key, target, parameter);
        });
      }));
}

template <typename Key>
void Logins<Key>::RemoveStaleLocal(const Key& key) {
  impl_->environment.RunUntilDone("remove stale local", [this, key](Transaction& tx) {
    impl_->book.RemoveStaleLocal(tx, key);
    return result_code::kSuccess;
  });
}

template <typename Key>
Result<std::size_t> Logins<Key>::LogoutAllOf(std::int32_t server_id, const Proceed& proceed) {
  return impl_->book.LogoutAllOf(server_id, true, internal::LoginBook<Key>::Unfinished::kReport,
                                 proceed);
}

template <typename Key>
auto Logins<Key>::TakeCount() -> Count {
  return {.online = impl_->book.online(), .online_new = impl_->book.TakeNew()};
}

template <typename Key>
std::int64_t Logins<Key>::online() const {
  return impl_->book.online();
}

template <typename Key>
void Logins<Key>::Verify() {
  impl_->sender.Verify();
}

template <typename Key>
void Logins<Key>::CheckSuspects() {
  impl_->sender.CheckSuspects();
}

template class Logins<AccountKey>;
template class Logins<RoleId>;

}  // namespace zeze::arch
