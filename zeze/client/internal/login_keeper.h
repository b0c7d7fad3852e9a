// LoginKeeper: keeps a client logged in at the servers, over any number of connections, and hands
// on its reliable notifies: once, in order, without a gap.
//
// The server numbers the notifies of a login and keeps them until they are confirmed. After a loss
// the keeper resumes the login (ReLogin) with the number and the hash of what it has handled; the
// server sends the rest, or refuses, and then a fresh login begins anew. The wire is described in
// docs/online.md.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Zeze/Builtin/Online.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/client/internal/notify_receiver.h"
#include "zeze/client/login_as.h"
#include "zeze/net/connection.h"
#include "zeze/net/protocol.h"
#include "zeze/net/service_options.h"

namespace zeze::internal {

// Thread-safe, except that OnNotify and the completions of calls are serialised by the caller, as a
// service does for a connection.
class LoginKeeper {
 public:
  using Done = std::function<void(const Result<LoginOutcome>& outcome)>;
  using Handler = std::function<Result<void>(std::string_view payload)>;

  struct Options {
    std::chrono::nanoseconds first_delay = std::chrono::seconds(1);
    std::chrono::nanoseconds delay_max = std::chrono::seconds(8);
    // Handled notifies are confirmed together, after this time.
    std::chrono::nanoseconds confirm_delay = std::chrono::milliseconds(100);
    // How often the server is asked whether anything was lost on the way; 0: never.
    std::chrono::nanoseconds poll_period = std::chrono::seconds(30);
    // Where completions of calls run: in order with OnNotify.
    std::optional<Dispatch> dispatch = std::nullopt;
    // Runs the action later, on any thread; not when the client has ended.
    std::function<void(std::chrono::nanoseconds delay, std::function<void()> action)> after;
  };

  explicit LoginKeeper(Options options)
      : options_(std::move(options)), call_{.dispatch = options_.dispatch} {}
  LoginKeeper(const LoginKeeper&) = delete;
  LoginKeeper& operator=(const LoginKeeper&) = delete;

  // Before the client starts.
  void Handle(const ProtocolDescriptor& protocol, Handler handler);
  void OnLogin(std::function<void(LoginOutcome outcome)> callback);

  // From now on the client logs in as this on every connection. `done` runs once: when it is logged
  // in, or a server has refused it; then it is forgotten again. It may be null.
  // `ready`: the present connection, if it is ready.
  void LogIn(LoginAs as, const ConnectionPtr& ready, Done done);
  // Ends the login on the connection; later ones are not logged in.
  void LogOut(const ConnectionPtr& ready);
  bool wanted() const;
  bool logged_in() const;

  // On a new connection that is authenticated. `done` runs once, unless the connection ends first.
  void LogInOn(const ConnectionPtr& connection, Done done);
  // The connection is ready: begins a login that was asked for meanwhile.
  void OnReady(const ConnectionPtr& connection);
  // The server on which the client was logged in has gone; its connection is still there.
  void OnServerLost(const Connection& connection);
  void OnClosed(const Connection& connection);

  void OnNotify(const Connection& connection, const Zeze::Builtin::Online::BReliableNotify& notify);

 private:
  enum class State : std::uint8_t {
    kOut,
    kBeginning,  // A fresh login is under way.
    kResuming,
    kIn,
  };
  // Of an answer to a request.
  struct Reply {
    bool answered = false;
    std::int64_t code = 0;
  };
  using Completion = std::function<void(const Reply& reply)>;

  bool IsCurrent(std::uint64_t generation) const ZEZE_REQUIRES(mutex_) {
    return generation == generation_;
  }
  void Begin(State state) ZEZE_REQUIRES(mutex_);
  void SendLogin(Done done) ZEZE_REQUIRES(mutex_);
  void SendReLogin(Done done) ZEZE_REQUIRES(mutex_);
  void Ended(LoginOutcome outcome, const Done& done);
  void Failed(const Reply& reply, const Done& done);
  void ResumeHere();
  void ResumeLater() ZEZE_REQUIRES(mutex_);
  Done TryAgain();
  void BeginAfresh(const std::string& why) ZEZE_REQUIRES(mutex_);
  void Take(const Zeze::Builtin::Online::BReliableNotify& notify);
  void DeliverAll();
  void Deliver(const std::string& frame) const;
  void Pump() ZEZE_REQUIRES(mutex_);
  void PumpAfter(std::chrono::nanoseconds delay) ZEZE_REQUIRES(mutex_);
  void PollLater() ZEZE_REQUIRES(mutex_);
  void OnConfirmed(std::uint64_t generation, std::int64_t index, bool sync, const Reply& reply);
  std::chrono::nanoseconds NextDelay() ZEZE_REQUIRES(mutex_);

  const Options options_;
  const CallOptions call_;
  std::map<std::pair<std::int32_t, std::int32_t>, Handler> handlers_;  // By module and protocol.
  std::function<void(LoginOutcome)> on_login_ = [](LoginOutcome) {};

  mutable Mutex mutex_;
  std::optional<LoginAs> as_ ZEZE_GUARDED_BY(mutex_);
  Done wanted_done_ ZEZE_GUARDED_BY(mutex_);
  NotifyReceiver receiver_ ZEZE_GUARDED_BY(mutex_);
  // The receiver goes on with the next login; otherwise that is a fresh one.
  bool resumable_ ZEZE_GUARDED_BY(mutex_) = false;

  // Changes with each connection and each login: answers and timers of an older one are void.
  std::uint64_t generation_ ZEZE_GUARDED_BY(mutex_) = 0;
  State state_ ZEZE_GUARDED_BY(mutex_) = State::kOut;
  ConnectionPtr connection_ ZEZE_GUARDED_BY(mutex_);
  bool used_ ZEZE_GUARDED_BY(mutex_) = false;  // The connection was logged in before.
  // What has come before the answer to the login.
  std::vector<Zeze::Builtin::Online::BReliableNotify> early_ ZEZE_GUARDED_BY(mutex_);
  std::int64_t confirmed_ ZEZE_GUARDED_BY(mutex_) = 0;
  bool calling_ ZEZE_GUARDED_BY(mutex_) = false;
  bool want_sync_ ZEZE_GUARDED_BY(mutex_) = false;
  bool confirm_due_ ZEZE_GUARDED_BY(mutex_) = false;
  bool timer_set_ ZEZE_GUARDED_BY(mutex_) = false;
  bool active_ ZEZE_GUARDED_BY(mutex_) = false;  // The server has answered since the last poll.
  std::chrono::nanoseconds delay_ ZEZE_GUARDED_BY(mutex_){0};
};

}  // namespace zeze::internal
