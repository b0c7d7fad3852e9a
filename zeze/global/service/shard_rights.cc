// The way of a right on a server: Acquire and Release to Global and back, Reduce from Global and
// back. docs/architecture.md walks both.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/global/agent.h"
#include "zeze/global/service/shard_session.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/rpc.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"

namespace zeze::global {

namespace {

// Of what is only a hint; a connection has no more than twice as many calls.
constexpr std::size_t kAskedAtOnceMax = 32'768;
// Different for each key, so that two who are in each other's way do not stay so.
constexpr auto kBusyDelay = std::chrono::milliseconds(5);
constexpr auto kBusyDelayStep = std::chrono::milliseconds(2);

Error NotGranted(std::string_view why) {
  return {ErrorCode::kUnavailable, fmt::format("the right of a record cannot be had: {}", why)};
}

// What an answer grants; kInvalid: nothing.
Right GrantIn(const RpcReply<wire::Acquire>& reply, Right wanted) {
  if (reply.outcome != RpcOutcome::kAnswered ||
      reply.result.state < static_cast<std::uint32_t>(wanted) ||
      reply.result.state > static_cast<std::uint32_t>(Right::kModify)) {
    return Right::kInvalid;
  }
  return static_cast<Right>(reply.result.state);
}

// The holder uses it just now: it is worth asking again.
bool IsBusy(const RpcReply<wire::Acquire>& reply) {
  return reply.outcome == RpcOutcome::kAnswered &&
         (reply.result_code == wire::kHolderFresh || reply.result_code == wire::kShareDeadlock ||
          reply.result_code == wire::kModifyDeadlock);
}

}  // namespace

// --- Acquire: on the thread of the transaction. --------------------------------------------------

Result<void> ShardSession::Acquire(std::string_view key, Right wanted, FreshRights& fresh,
                                   FunctionRef<void(Right)> install) {
  // What stands behind the awaited key in the order of all is given up: no two procedures wait for
  // each other with rights in their hands (rule 21).
  for (const std::string& held : fresh.keys) {
    if (held > key) Used(held);
  }
  const auto deadline = options_.clock->Now() + options_.acquire_timeout;
  Result<void> result;
  while (!AcquireOnce(key, wanted, fresh, install, result)) {
    if (options_.clock->Now() >= deadline) break;
    // An old peer refuses what it has just got, and an old Global does not let anybody wait who is
    // being asked himself. So let go of everything, and ask again.
    for (const std::string& held : fresh.keys) Used(held);
    Used(std::string(key));
    options_.clock->SleepFor(kBusyDelay + kBusyDelayStep * (RoutingHashOfBytes(key) % 8));
  }
  return result;
}

bool ShardSession::AcquireOnce(std::string_view key, Right wanted, FreshRights& fresh,
                               FunctionRef<void(Right)> install, Result<void>& result) {
  const MutexLock lock(mutex_);
  if (asking_.contains(key)) {
    while (asking_.contains(key)) changed_.Wait(mutex_);
    result = {};
    return true;
  }
  Asking& asking = asking_[std::string(key)];
  asking.install = [&install](Right granted) { install(granted); };
  SendAcquire(key, wanted);
  AwaitAnswer(asking);
  result = asking.result;
  const bool busy = asking.busy;
  Forget(key);
  if (result.ok()) fresh.keys.emplace_back(key);
  return !busy;
}

void ShardSession::AskForAll(std::span<const Coherence::Wish> wishes,
                             std::span<const std::size_t> which,
                             FunctionRef<void(std::size_t, Right)> install, std::size_t& open) {
  const MutexLock lock(mutex_);
  for (const std::size_t index : which) {
    const Coherence::Wish& wish = wishes[index];
    if (asking_.size() >= kAskedAtOnceMax) return;
    if (asking_.contains(wish.key)) continue;
    Asking& asking = asking_[wish.key];
    asking.install = [install, index](Right granted) { install(index, granted); };
    asking.open = &open;
    ++open;
    SendAcquire(wish.key, wish.wanted);
  }
}

void ShardSession::AwaitAll(const std::size_t& open) {
  const MutexLock lock(mutex_);
  while (open > 0) changed_.Wait(mutex_);
}

void ShardSession::Release(std::string_view key) {
  const MutexLock lock(mutex_);
  while (asking_.contains(key)) changed_.Wait(mutex_);
  Asking& asking = asking_[std::string(key)];
  SendAcquire(key, Right::kInvalid);
  AwaitAnswer(asking);
  Forget(key);
}

void ShardSession::AwaitAnswer(const Asking& asking) {
  while (!asking.done) changed_.Wait(mutex_);
}

void ShardSession::Forget(std::string_view key) {
  asking_.erase(asking_.find(key));
  changed_.NotifyAll();
  UnlockAsOldPeer(key);
}

// One message for both: what is wanted of a right that is given back is kInvalid.
void ShardSession::SendAcquire(std::string_view key, Right wanted) {
  const std::uint64_t request = ++last_request_;
  const ConnectionId to = agent_.Begin(request, key);
  if (to == 0) {
    Lost(request, key);
    return;
  }
  // A new connection, and the agent does not know yet that the old one is gone: this one is lost
  // when it does.
  if (connection_ == nullptr || IdOf(*connection_) != to) return;
  const wire::KeyState argument{.key = key, .state = static_cast<std::uint32_t>(wanted)};
  Result<void> sent = connection_->Call<wire::Acquire>(
      argument, {.timeout = options_.acquire_timeout},
      [this, to, sent_at = options_.clock->Now(), request, key = std::string(key),
       wanted](const RpcReply<wire::Acquire>& reply) {
        OnAcquireReply(to, sent_at, request, key, wanted, reply);
      });
  // Not sent means not asked; the close ends everything that waits.
  if (!sent.ok()) connection_->Close(sent.error().message());
}

// --- Acquire: its answer, on the network thread. -------------------------------------------------

void ShardSession::OnAcquireReply(ConnectionId from, std::chrono::nanoseconds sent,
                                  std::uint64_t request, const std::string& key, Right wanted,
                                  const RpcReply<wire::Acquire>& reply) {
  const Right granted = wanted == Right::kInvalid ? wanted : GrantIn(reply, wanted);
  const std::function<void(Right)>* install = nullptr;
  {
    const MutexLock lock(mutex_);
    if (reply.outcome == RpcOutcome::kAnswered && reply.result_code != wire::kNotLoggedIn) {
      Heard(from, sent);
    }
    if (!agent_.End(from, request)) return;  // A grant that is void.
    Asking& asking = asking_.find(key)->second;
    if (wanted == Right::kInvalid) {
      Finish(key, {});
      return;
    }
    if (granted == Right::kInvalid) {
      asking.busy = IsBusy(reply);
      Finish(key, NotGranted(asking.busy ? "its holder is using it"
                                         : "its holder cannot be reached or has failed"));
      return;
    }
    if (asking.open == nullptr) held_[key] = options_.clock->Now() + options_.hold;
    ++installing_;
    install = &asking.install;
  }
  // Before any later message of this connection is looked at (rule 16), and without the mutex: the
  // record layer may call back. Whoever asks waits for it.
  (*install)(granted);
  const MutexLock lock(mutex_);
  --installing_;
  Finish(key, {});
}

void ShardSession::Lost(std::uint64_t /*request*/, std::string_view key) {
  const auto at = asking_.find(key);
  const bool release = at != asking_.end() && at->second.install == nullptr;
  Finish(key, release ? Result<void>() : NotGranted("there is no session with Global"));
}

void ShardSession::Finish(std::string_view key, Result<void> result) {
  const auto at = asking_.find(key);
  if (at == asking_.end()) return;
  if (at->second.open != nullptr) {
    --*at->second.open;
    asking_.erase(at);
  } else {
    at->second.result = std::move(result);
    at->second.done = true;
  }
  changed_.NotifyAll();
}

// --- Reduce: on the network thread. --------------------------------------------------------------

void ShardSession::OnReduce(::zeze::Request<wire::Reduce> request) {
  Reducing reducing{.connection = IdOf(*request.connection())};
  const std::string key(request.argument().key);
  const std::uint32_t state = request.argument().state;
  if (state > static_cast<std::uint32_t>(Right::kShare)) {
    (void)request.Answer(wire::kReduceBadState, {.key = key, .state = state});
    return;
  }
  reducing.to = static_cast<Right>(state);
  {
    const MutexLock lock(mutex_);
    // Of a session that is over, or has not begun. Old Globals look at the state only.
    if (!agent_.Current(reducing.connection)) {
      (void)request.Answer(wire::kReduceBadState, {.key = key, .state = wire::kStateFailed});
      return;
    }
    reducing.serial = ++last_serial_;
    reduces_.emplace(reducing.serial, std::move(request));
  }
  Lower(key, reducing);
}

void ShardSession::Lower(const std::string& key, const Reducing& reducing) {
  {
    const MutexLock lock(mutex_);
    if (LockedAsOldPeer(key)) {
      deferred_[key] = reducing;
      return;
    }
    const auto held = held_.find(key);
    const auto now = options_.clock->Now();
    if (held != held_.end() && held->second > now) {
      deferred_[key] = reducing;
      Later(held->second - now, [this, key] { Used(key); });
      return;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): a function frees what it holds.
    }
    if (held != held_.end()) held_.erase(held);
  }
  engine_.ReduceThen(key, reducing.to, [this, key, reducing] { AnswerReduce(key, reducing); });
}

void ShardSession::Used(const std::string& key) {
  LowerDeferred(key, true);
}

void ShardSession::LowerDeferred(const std::string& key, bool used) {
  std::optional<Reducing> due;
  {
    const MutexLock lock(mutex_);
    if (used) held_.erase(key);
    const auto at = deferred_.find(key);
    if (at == deferred_.end()) return;
    due = at->second;
    deferred_.erase(at);
  }
  Lower(key, *due);
}

// On whichever thread has saved what was done under the right.
void ShardSession::AnswerReduce(const std::string& key, const Reducing& reducing) {
  const MutexLock lock(mutex_);
  const auto at = reduces_.find(reducing.serial);
  if (at == reduces_.end()) return;  // The session has ended.
  // Not if the connection is gone: the next login tells.
  if (agent_.Current(reducing.connection)) {
    (void)at->second.Answer({.key = key, .state = static_cast<std::uint32_t>(reducing.to)});
  }
  reduces_.erase(at);
}

// Servers of Zeze 1.6 hold the lock of a record while they wait for its right, and need it to give
// the right away.
bool ShardSession::LockedAsOldPeer(std::string_view key) const {
  if (!options_.log_in_as_old_peer) return false;
  const auto at = asking_.find(key);
  return at != asking_.end() && at->second.open == nullptr;
}

void ShardSession::UnlockAsOldPeer(std::string_view key) {
  if (!options_.log_in_as_old_peer || !deferred_.contains(key)) return;
  Later(std::chrono::nanoseconds(0), [this, key = std::string(key)] { LowerDeferred(key, false); });
}

}  // namespace zeze::global
