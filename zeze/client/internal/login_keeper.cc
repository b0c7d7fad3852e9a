#include "zeze/client/internal/login_keeper.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/Online.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/client/login_as.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/serialize/binary.h"

namespace zeze::internal {

namespace {

namespace account = Zeze::Builtin::Online;
namespace role = Zeze::Builtin::Game::Online;
using account::BReliableNotify;
using std::chrono::nanoseconds;

// So many wait for no delay: the server keeps only so many that are not confirmed.
constexpr std::int64_t kConfirmBatch = 64;
// What came before the answer to a login; the rest is asked for later.
constexpr std::size_t kEarlyMax = 256;
constexpr std::size_t kFrameBytesMax = 16 << 20;

// Whether it is this code of one of the two modules, which have the same numbers.
bool Says(std::int64_t result_code, std::int32_t code) {
  const std::int64_t module_id = result_code >> 32;
  return static_cast<std::int32_t>(result_code) == code &&
         (module_id == role::Login::kModuleId || module_id == account::Login::kModuleId);
}

// The login cannot be resumed.
bool IsVoid(std::int64_t code) {
  return Says(code, account::ResultCodeReliableNotifyConfirmIndexOutOfRange) ||
         Says(code, account::ResultCodeOnlineDataNotFound);
}

// The application or the rules of logins say no; the other codes are of servers that come and go.
bool IsRefusal(std::int64_t code) {
  constexpr std::int64_t kLogicError = -6;
  return code > 0 || code == kLogicError;
}

}  // namespace

void LoginKeeper::Handle(const ProtocolDescriptor& protocol, Handler handler) {
  handlers_[{protocol.module_id, protocol.protocol_id}] = std::move(handler);
}

void LoginKeeper::OnLogin(std::function<void(LoginOutcome)> callback) {
  on_login_ = std::move(callback);
}

bool LoginKeeper::wanted() const {
  MutexLock lock(mutex_);
  return as_.has_value();
}

bool LoginKeeper::logged_in() const {
  MutexLock lock(mutex_);
  return state_ == State::kIn;
}

// --- logging in and out ---

void LoginKeeper::LogIn(LoginAs as, const ConnectionPtr& ready, Done done) {
  Done superseded;
  Done already_in;
  bool same = false;
  bool used = false;
  {
    MutexLock lock(mutex_);
    superseded = std::exchange(wanted_done_, nullptr);
    same = as_ == as && state_ == State::kIn;
    if (as_ != as) resumable_ = false;
    as_ = std::move(as);
    if (same) {
      already_in = std::move(done);
    } else {
      wanted_done_ = std::move(done);
    }
    used = ready != nullptr && connection_ == ready && (used_ || state_ != State::kOut);
  }
  if (superseded) superseded(Error(ErrorCode::kUnavailable, "another login was asked for"));
  if (same) {
    if (already_in) already_in(LoginOutcome::kResumed);
    return;
  }
  if (ready == nullptr) return;  // With the next connection.
  // What is on its way for the other login must not be taken for notifies of this one.
  if (used) return ready->Close("the client logs in as somebody else");
  LogInOn(ready, TryAgain());
}

void LoginKeeper::LogOut(const ConnectionPtr& ready) {
  std::optional<LoginAs> was;
  {
    MutexLock lock(mutex_);
    was = std::exchange(as_, std::nullopt);
    resumable_ = false;
    wanted_done_ = nullptr;
    ++generation_;
    state_ = State::kOut;
    if (ready == nullptr || ready != connection_) return;
  }
  if (!was) return;
  const auto ignore = [](const auto&) {};
  // If it is not sent, the connection ends, and with it the login.
  if (std::holds_alternative<RoleLogin>(*was)) {
    static_cast<void>(ready->Call<role::Logout>({}, {}, ignore));
  } else {
    static_cast<void>(ready->Call<account::Logout>({}, {}, ignore));
  }
}

void LoginKeeper::Begin(State state) {
  ++generation_;
  state_ = state;
  early_.clear();
  calling_ = want_sync_ = confirm_due_ = timer_set_ = active_ = false;
}

void LoginKeeper::LogInOn(const ConnectionPtr& connection, Done done) {
  MutexLock lock(mutex_);
  if (!as_ || (connection_ == connection && state_ != State::kOut)) return;
  connection_ = connection;
  used_ = false;
  if (resumable_) {
    SendReLogin(std::move(done));
  } else {
    SendLogin(std::move(done));
  }
}

void LoginKeeper::OnReady(const ConnectionPtr& connection) {
  {
    MutexLock lock(mutex_);
    if (!as_ || connection_ == connection) return;
  }
  LogInOn(connection, TryAgain());
}

void LoginKeeper::SendLogin(Done done) {
  Begin(State::kBeginning);
  Connection& connection = *connection_;
  const auto complete = [this, generation = generation_, done](const auto& reply) {
    if (reply.ok()) {
      {
        MutexLock lock(mutex_);
        if (!IsCurrent(generation)) return;
        receiver_.Reset();
        confirmed_ = 0;
      }
      return Ended(LoginOutcome::kFresh, done);
    }
    {
      MutexLock lock(mutex_);
      if (!IsCurrent(generation)) return;
      state_ = State::kOut;
      // It may have been done: notifies of that login must not come to the next one.
      if (reply.outcome != RpcOutcome::kAnswered) connection_->Close("the login was not answered");
    }
    Failed({.answered = reply.outcome == RpcOutcome::kAnswered, .code = reply.result_code}, done);
  };
  const Result<void> sent = std::visit(
      [&](const auto& as) -> Result<void> {
        if constexpr (std::is_same_v<std::decay_t<decltype(as)>, RoleLogin>) {
          return connection.Call<role::Login>(
              {.RoleId = as.role_id, .OnlineSetName = as.online_set}, call_, complete);
        } else {
          return connection.Call<account::Login>({.ClientId = as.client_id}, call_, complete);
        }
      },
      *as_);
  if (!sent.ok()) connection.Close("the login cannot be sent: " + sent.error().message());
}

void LoginKeeper::SendReLogin(Done done) {
  Begin(State::kResuming);
  Connection& connection = *connection_;
  const std::int64_t index = receiver_.next();
  const std::int64_t hash = receiver_.hash();
  const auto complete = [this, generation = generation_, index, done](const auto& reply) {
    {
      MutexLock lock(mutex_);
      if (!IsCurrent(generation)) return;
      if (reply.ok()) {
        confirmed_ = index;
      } else if (reply.outcome == RpcOutcome::kAnswered && IsVoid(reply.result_code)) {
        ZEZE_LOG_INFO("{}: the login cannot be resumed, code {}: a fresh one begins",
                      connection_->Describe(), reply.result_code);
        // Notifies of the login before may still come here: then a fresh one needs another
        // connection.
        if (used_) return BeginAfresh("a fresh login is needed");
        resumable_ = false;
        return SendLogin(done);
      } else {
        state_ = State::kOut;
      }
    }
    if (reply.ok()) return Ended(LoginOutcome::kResumed, done);
    Failed({.answered = reply.outcome == RpcOutcome::kAnswered, .code = reply.result_code}, done);
  };
  const Result<void> sent = std::visit(
      [&](const auto& as) -> Result<void> {
        if constexpr (std::is_same_v<std::decay_t<decltype(as)>, RoleLogin>) {
          return connection.Call<role::ReLogin>({.RoleId = as.role_id,
                                                 .ReliableNotifyConfirmIndex = index,
                                                 .OnlineSetName = as.online_set,
                                                 .ReliableNotifyHash = hash},
                                                call_, complete);
        } else {
          return connection.Call<account::ReLogin>({.ClientId = as.client_id,
                                                    .ReliableNotifyConfirmIndex = index,
                                                    .ReliableNotifyHash = hash},
                                                   call_, complete);
        }
      },
      *as_);
  if (!sent.ok()) connection.Close("the login cannot be sent: " + sent.error().message());
}

// In order with what comes on the connection: nothing of this login is handled before.
void LoginKeeper::Ended(LoginOutcome outcome, const Done& done) {
  Done wanted_done;
  std::vector<BReliableNotify> early;
  {
    MutexLock lock(mutex_);
    state_ = State::kIn;
    used_ = true;
    resumable_ = true;
    wanted_done = std::exchange(wanted_done_, nullptr);
    early.swap(early_);
    PollLater();
  }
  on_login_(outcome);
  if (wanted_done) wanted_done(outcome);
  if (done) done(outcome);
  for (const BReliableNotify& notify : early) Take(notify);
}

void LoginKeeper::Failed(const Reply& reply, const Done& done) {
  const Error error(ErrorCode::kUnavailable,
                    reply.answered
                        ? fmt::format("the login was refused with code {}", reply.code)
                        : fmt::format("the login was not answered (code {})", reply.code));
  Done wanted_done;
  if (reply.answered && IsRefusal(reply.code)) {
    MutexLock lock(mutex_);
    wanted_done = std::exchange(wanted_done_, nullptr);
    if (wanted_done) as_.reset();  // The first time: whoever asked for it decides.
  }
  if (wanted_done) wanted_done(error);
  if (done) done(error);
}

void LoginKeeper::OnServerLost(const Connection& connection) {
  {
    MutexLock lock(mutex_);
    if (connection_.get() != &connection || state_ != State::kIn) return;
  }
  ResumeHere();
}

// On the same connection, until a server takes it.
void LoginKeeper::ResumeHere() {
  MutexLock lock(mutex_);
  if (connection_ == nullptr || !connection_->IsOpen() || !as_) return;
  if (resumable_) {
    SendReLogin(TryAgain());
  } else {
    SendLogin(TryAgain());
  }
}

LoginKeeper::Done LoginKeeper::TryAgain() {
  return [this](const Result<LoginOutcome>& outcome) {
    if (outcome.ok()) return;
    MutexLock lock(mutex_);
    if (as_) ResumeLater();
  };
}

void LoginKeeper::ResumeLater() {
  options_.after(NextDelay(), [this, generation = generation_] {
    {
      MutexLock lock(mutex_);
      if (!IsCurrent(generation)) return;
    }
    ResumeHere();
  });
}

void LoginKeeper::BeginAfresh(const std::string& why) {
  resumable_ = false;
  state_ = State::kOut;
  ++generation_;
  connection_->Close(why);
}

void LoginKeeper::OnClosed(const Connection& connection) {
  MutexLock lock(mutex_);
  if (connection_.get() != &connection) return;
  Begin(State::kOut);
  connection_ = nullptr;
}

// --- notifies ---

void LoginKeeper::OnNotify(const Connection& connection, const BReliableNotify& notify) {
  {
    MutexLock lock(mutex_);
    if (connection_.get() != &connection || state_ == State::kOut) return;
    if (state_ != State::kIn) {
      if (early_.size() < kEarlyMax) early_.push_back(notify);
      return;
    }
  }
  Take(notify);
}

void LoginKeeper::Take(const BReliableNotify& notify) {
  std::int64_t index = notify.ReliableNotifyIndex;
  for (const Binary& frame : notify.Notifies) {
    {
      MutexLock lock(mutex_);
      if (!receiver_.Add(index++, frame.bytes)) want_sync_ = true;
    }
    DeliverAll();
  }
  MutexLock lock(mutex_);
  if (receiver_.HasGap()) want_sync_ = true;
  Pump();
}

void LoginKeeper::DeliverAll() {
  while (true) {
    std::string frame;
    {
      MutexLock lock(mutex_);
      const std::string* front = receiver_.Front();
      if (front == nullptr) return;
      frame = *front;
    }
    Deliver(frame);
    MutexLock lock(mutex_);
    receiver_.PopFront();
  }
}

void LoginKeeper::Deliver(const std::string& frame) const {
  std::string_view stream = frame;
  const Result<std::optional<RawFrame>> raw = TakeFrame(stream, kFrameBytesMax);
  if (!raw.ok() || !raw.value()) {
    ZEZE_LOG_WARNING("a reliable notify of {} bytes is not a frame; it is dropped", frame.size());
    return;
  }
  const Result<Frame> parsed = ParseFrame(*raw.value());
  const auto handler = handlers_.find({raw.value()->module_id, raw.value()->protocol_id});
  if (!parsed.ok() || handler == handlers_.end()) {
    ZEZE_LOG_DEBUG("dropped a reliable notify of module {} protocol {}", raw.value()->module_id,
                   raw.value()->protocol_id);
    return;
  }
  try {
    const Result<void> handled = handler->second(parsed.value().payload);
    if (!handled.ok()) {
      ZEZE_LOG_WARNING("a reliable notify is dropped: {}", handled.error().message());
    }
  } catch (const std::exception& error) {
    ZEZE_LOG_ERROR("the handler of a reliable notify failed: {}", error.what());
  }
}

// --- confirmations ---

// One request at a time; what happens meanwhile goes into the next.
void LoginKeeper::Pump() {
  if (state_ != State::kIn || calling_) return;
  const std::int64_t index = receiver_.next();
  const std::int64_t handled = index - confirmed_;
  if (!want_sync_) {
    if (handled == 0) return;
    if (handled < kConfirmBatch && !confirm_due_) return PumpAfter(options_.confirm_delay);
  }
  const bool sync = std::exchange(want_sync_, false);
  calling_ = true;
  confirm_due_ = false;
  Connection& connection = *connection_;
  const std::int64_t hash = receiver_.hash();
  const auto complete = [this, generation = generation_, index, sync](const auto& reply) {
    OnConfirmed(generation, index, sync,
                {.answered = reply.outcome == RpcOutcome::kAnswered, .code = reply.result_code});
  };
  const Result<void> sent = std::visit(
      [&](const auto& as) -> Result<void> {
        if constexpr (std::is_same_v<std::decay_t<decltype(as)>, RoleLogin>) {
          return connection.Call<role::ReliableNotifyConfirm>(
              {.ReliableNotifyConfirmIndex = index, .Sync = sync, .ReliableNotifyHash = hash},
              call_, complete);
        } else {
          return connection.Call<account::ReliableNotifyConfirm>(
              {.ClientId = as.client_id,
               .ReliableNotifyConfirmIndex = index,
               .Sync = sync,
               .ReliableNotifyHash = hash},
              call_, complete);
        }
      },
      *as_);
  if (sent.ok()) return;
  calling_ = false;
  want_sync_ = sync;
  PumpAfter(NextDelay());
}

void LoginKeeper::PumpAfter(nanoseconds delay) {
  if (std::exchange(timer_set_, true)) return;
  options_.after(delay, [this, generation = generation_] {
    MutexLock lock(mutex_);
    if (!IsCurrent(generation)) return;
    timer_set_ = false;
    confirm_due_ = true;
    // What was asked for has not come.
    if (receiver_.HasGap()) want_sync_ = true;
    Pump();
  });
}

// Notifies may be lost between a server and the gateway, and the last one has no successor that
// would show it.
void LoginKeeper::PollLater() {
  if (options_.poll_period.count() == 0) return;
  options_.after(options_.poll_period, [this, generation = generation_] {
    MutexLock lock(mutex_);
    if (!IsCurrent(generation)) return;
    if (!std::exchange(active_, false)) want_sync_ = true;
    Pump();
    PollLater();
  });
}

void LoginKeeper::OnConfirmed(std::uint64_t generation, std::int64_t index, bool sync,
                              const Reply& reply) {
  MutexLock lock(mutex_);
  if (!IsCurrent(generation)) return;
  calling_ = false;
  if (reply.answered && reply.code == 0) {
    confirmed_ = index;
    active_ = true;
    delay_ = nanoseconds(0);
    // The answer to a sync is followed by what is missing; if not, it is asked for again.
    if (sync && receiver_.HasGap()) return PumpAfter(NextDelay());
    return Pump();
  }
  if (reply.answered && IsVoid(reply.code)) {
    return BeginAfresh(fmt::format("the reliable notifies cannot go on, code {}", reply.code));
  }
  if (reply.answered && Says(reply.code, account::ResultCodeNotLogin)) {
    state_ = State::kOut;
    return ResumeLater();
  }
  want_sync_ = want_sync_ || sync;
  PumpAfter(NextDelay());
}

nanoseconds LoginKeeper::NextDelay() {
  delay_ = std::min(2 * std::max(delay_, options_.first_delay / 2), options_.delay_max);
  return delay_;
}

}  // namespace zeze::internal
