#include "zeze/global/service/shard_session.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/global/agent.h"
#include "zeze/global/directory.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"

namespace zeze::global {

namespace {

// Of what is only a hint; a connection has no more than twice as many calls.
constexpr std::size_t kAskedAtOnceMax = 32'768;
constexpr auto kReconnectDelay = std::chrono::milliseconds(100);
constexpr auto kReconnectDelayMax = std::chrono::seconds(1);
constexpr auto kConnectTimeout = std::chrono::seconds(3);
// Different for each key, so that two who are in each other's way do not stay so.
constexpr auto kBusyDelay = std::chrono::milliseconds(5);
constexpr auto kBusyDelayStep = std::chrono::milliseconds(2);
// KeepAlives without an answer, after which the connection is given up: 2 s by default.
constexpr int kUnansweredMax = 10;
constexpr auto kSavedLookPeriod = std::chrono::milliseconds(50);

ConnectionId IdOf(const Connection& connection) {
  return static_cast<ConnectionId>(connection.id());
}

}  // namespace

ShardSession::ShardSession(IoThreads& io, Engine& engine, const GlobalClientOptions& options,
                           std::size_t shard, std::int64_t epoch, std::int64_t start_term,
                           Identity identity, std::function<void(const std::string&)> fenced)
    : io_(io),
      engine_(engine),
      options_(options),
      shard_(shard),
      fenced_(std::move(fenced)),
      start_term_(start_term),
      epoch_(epoch),
      identity_(std::move(identity)),
      agent_({.server_id = options.server_id,
              .epoch = epoch,
              .start_term = start_term,
              .lease = options.lease.said()},
             *this),
      trust_(options.unfenced_silence_max),
      service_(io, {.name = fmt::format("GlobalClient{}", shard),
                    .socket = {.unconfirmed_max = wire::kUnconfirmedMax},
                    .frame_bytes_max = std::size_t{8} << 20,
                    .output_bytes_max = std::size_t{64} << 20,
                    // An attempt that began before the network healed does not delay the next one.
                    .handshake_timeout = kConnectTimeout}) {
  service_.OnOpen([this](const ConnectionPtr& connection) {
    {
      const MutexLock lock(mutex_);
      connection_ = connection;
      unanswered_ = 0;
      if (kind_ == Kind::kUnfenced) {  // Not before everything is saved.
        login_due_ = true;
        guard_wake_.NotifyAll();
        return;
      }
    }
    WithAgent([&](GlobalAgent& agent) { agent.OnConnected(IdOf(*connection)); });
  });
  service_.OnClose([this](const ConnectionPtr& connection, const Error&) {
    WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) {
      if (connection_ == connection) Lost();
      agent.OnClosed(IdOf(*connection));
    });
    const MutexLock lock(mutex_);
    if (connection_ == connection) connection_ = nullptr;
    changed_.NotifyAll();
  });
  service_.Handle<wire::Reduce>(
      [this](::zeze::Request<wire::Reduce> request) { OnReduce(std::move(request)); });
}

ShardSession::~ShardSession() {
  Stop();
}

void ShardSession::Connect() {
  if (options_.log_in_as_old_peer) {
    const MutexLock lock(mutex_);
    BecomeUnfenced();
  }
  const GlobalClientOptions::Shard& where = options_.shards[shard_];
  service_.Connect({.host = where.host,
                    .port = where.port,
                    .first_delay = kReconnectDelay,
                    .delay_max = kReconnectDelayMax,
                    .tls = options_.tls,
                    .tls_name = options_.tls_name});
  KeepAlive();
}

void ShardSession::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    guard_wake_.NotifyAll();
  }
  service_.Stop();
  if (guard_.joinable() && guard_.get_id() != std::this_thread::get_id()) guard_.join();
  {
    const MutexLock lock(life_->mutex);
    life_->over = true;
  }
  std::map<std::uint64_t, ::zeze::Request<wire::Reduce>> reduces;
  const MutexLock lock(mutex_);
  reduces.swap(reduces_);
}

void ShardSession::Later(std::chrono::nanoseconds delay, std::function<void()> work) {
  io_.PostAfter(delay, [life = life_, work = std::move(work)] {
    const MutexLock lock(life->mutex);
    if (!life->over) work();
  });
}

bool ShardSession::Mine(std::string_view key) const {
  return RoutingHashOfBytes(key) % options_.shards.size() == shard_;
}

void ShardSession::WithAgent(FunctionRef<void(GlobalAgent&)> work) {
  std::vector<std::function<void()>> after;
  {
    const MutexLock lock(mutex_);
    work(agent_);
    after.swap(after_);
    changed_.NotifyAll();
  }
  for (const auto& what : after) what();
}

Result<void> ShardSession::AwaitReady(std::chrono::nanoseconds deadline) {
  const GlobalClientOptions::Shard& where = options_.shards[shard_];
  const MutexLock lock(mutex_);
  bool in_time = true;
  while (!agent_.ready()) {
    if (!refusal_.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("Global {} ({}:{}) refuses this server: {}", shard_, where.host,
                               where.port, refusal_));
    }
    if (!in_time) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("no session with Global {} ({}:{}): is it running, and does it use "
                               "the same database?",
                               shard_, where.host, where.port));
    }
    in_time = options_.clock->WaitUntil(changed_, mutex_, deadline);
  }
  return {};
}

void ShardSession::OnTerm(std::int64_t term) {
  WithAgent([term](GlobalAgent& agent) { agent.OnTerm(term); });
}

// --- asking --------------------------------------------------------------------------------------

Result<void> ShardSession::Acquire(std::string_view key, Right wanted, FreshRights& fresh,
                                   FunctionRef<void(Right)> install) {
  // What stands behind the awaited key in the order of all is given up: no two procedures wait for
  // each other with rights in their hands (rule 21).
  for (const std::string& held : fresh.keys) {
    if (held > key) Used(held);
  }
  const auto deadline = options_.clock->Now() + options_.acquire_timeout;
  Result<void> result;
  while (!TryAcquire(key, wanted, fresh, install, result)) {
    if (options_.clock->Now() >= deadline) break;
    // An old peer refuses what it has just got, and an old Global does not let anybody wait who is
    // being asked himself. So let go of everything, and ask again.
    for (const std::string& held : fresh.keys) Used(held);
    Used(std::string(key));
    options_.clock->SleepFor(kBusyDelay + kBusyDelayStep * (RoutingHashOfBytes(key) % 8));
  }
  return result;
}

bool ShardSession::TryAcquire(std::string_view key, Right wanted, FreshRights& fresh,
                              FunctionRef<void(Right)> install, Result<void>& result) {
  Asking* asking = nullptr;
  {
    const MutexLock lock(mutex_);
    if (asking_.contains(key)) {
      while (asking_.contains(key)) changed_.Wait(mutex_);
      result = {};
      return true;
    }
    asking = &asking_[std::string(key)];
    asking->install = [&install](Right granted) { install(granted); };
  }
  WithAgent([&](GlobalAgent& agent)
                ZEZE_REQUIRES(mutex_) { agent.Acquire(++last_request_, key, wanted); });
  const MutexLock lock(mutex_);
  while (!asking->done) changed_.Wait(mutex_);
  result = asking->result;
  const bool busy = asking->busy;
  asking_.erase(asking_.find(key));
  changed_.NotifyAll();
  UnlockAsOldPeer(key);
  if (result.ok()) fresh.keys.emplace_back(key);
  return !busy;
}

void ShardSession::AskForAll(std::span<const Coherence::Wish> wishes,
                             std::span<const std::size_t> which,
                             FunctionRef<void(std::size_t, Right)> install, std::size_t& open) {
  WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) {
    for (const std::size_t index : which) {
      const Coherence::Wish& wish = wishes[index];
      if (asking_.size() >= kAskedAtOnceMax) return;
      if (asking_.contains(wish.key)) continue;
      Asking& asking = asking_[wish.key];
      asking.install = [install, index](Right granted) { install(index, granted); };
      asking.open = &open;
      ++open;
      agent.Acquire(++last_request_, wish.key, wish.wanted);
    }
  });
}

void ShardSession::AwaitAll(const std::size_t& open) {
  const MutexLock lock(mutex_);
  while (open > 0) changed_.Wait(mutex_);
}

void ShardSession::Release(std::string_view key) {
  Asking* asking = nullptr;
  {
    const MutexLock lock(mutex_);
    while (asking_.contains(key)) changed_.Wait(mutex_);
    asking = &asking_[std::string(key)];
  }
  WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) { agent.Release(++last_request_, key); });
  const MutexLock lock(mutex_);
  while (!asking->done) changed_.Wait(mutex_);
  asking_.erase(asking_.find(key));
  changed_.NotifyAll();
  UnlockAsOldPeer(key);
}

void ShardSession::Finish(const std::string& key, Result<void> result) {
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

void ShardSession::Granted(std::uint64_t /*request*/, std::string_view key, Right right) {
  const auto at = asking_.find(key);
  if (at->second.open == nullptr) held_[std::string(key)] = options_.clock->Now() + options_.hold;
  ++installing_;
  after_.emplace_back([this, key = std::string(key), right] {
    const std::function<void(Right)>* install = nullptr;
    {
      const MutexLock lock(mutex_);
      install = &asking_.find(key)->second.install;
    }
    (*install)(right);  // Whoever asks waits for it.
    const MutexLock lock(mutex_);
    --installing_;
    Finish(key, {});
  });
}

void ShardSession::Failed(std::uint64_t /*request*/, std::string_view key, AcquireFailure why) {
  const char* text = "its holder cannot be reached or has failed";
  if (why == AcquireFailure::kDisconnected) text = "there is no session with Global";
  if (why == AcquireFailure::kBusy) text = "its holder is using it";
  if (const auto at = asking_.find(key); at != asking_.end()) {
    at->second.busy = why == AcquireFailure::kBusy;
  }
  Finish(std::string(key), Error(ErrorCode::kUnavailable,
                                 fmt::format("the right of a record cannot be had: {}", text)));
}

void ShardSession::Released(std::uint64_t /*request*/, std::string_view key) {
  Finish(std::string(key), {});
}

void ShardSession::SendState(ConnectionId to, std::uint64_t request, std::string_view key,
                             Right wanted) {
  if (connection_ == nullptr || IdOf(*connection_) != to) return;
  const wire::KeyState argument{.key = key, .state = static_cast<std::uint32_t>(wanted)};
  Result<void> sent = connection_->Call<wire::Acquire>(
      argument, {.timeout = options_.acquire_timeout},
      [this, to, sent_at = options_.clock->Now(), request, key = std::string(key), wanted](
          RpcReply<wire::Acquire> reply) { OnReply(to, sent_at, request, key, wanted, reply); });
  // Not sent means not asked; the close fails everything that waits.
  if (!sent.ok()) connection_->Close(sent.error().message());
}

void ShardSession::SendAcquire(ConnectionId to, std::uint64_t request, std::string_view key,
                               Right wanted) {
  SendState(to, request, key, wanted);
}

void ShardSession::SendRelease(ConnectionId to, std::uint64_t request, std::string_view key) {
  SendState(to, request, key, Right::kInvalid);
}

void ShardSession::OnReply(ConnectionId from, std::chrono::nanoseconds sent, std::uint64_t request,
                           const std::string& key, Right wanted,
                           const RpcReply<wire::Acquire>& reply) {
  WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) {
    const bool answered = reply.outcome == RpcOutcome::kAnswered;
    if (answered && reply.result_code != wire::kNotLoggedIn) Heard(from, sent);
    if (wanted == Right::kInvalid) {
      agent.OnReleased(from, request, key);
    } else if (answered && reply.result.state >= static_cast<std::uint32_t>(wanted) &&
               reply.result.state <= static_cast<std::uint32_t>(Right::kModify)) {
      agent.OnGrant(from, request, key, static_cast<Right>(reply.result.state));
    } else {
      const bool busy = answered && (reply.result_code == wire::kHolderFresh ||
                                     reply.result_code == wire::kShareDeadlock ||
                                     reply.result_code == wire::kModifyDeadlock);
      agent.OnRefusal(from, request, key, busy ? Refusal::kHolderFresh : Refusal::kHolderFailed);
    }
  });
}

// --- being asked ---------------------------------------------------------------------------------

void ShardSession::OnReduce(::zeze::Request<wire::Reduce> request) {
  const ConnectionId from = IdOf(*request.connection());
  const std::string key(request.argument().key);
  const std::uint32_t state = request.argument().state;
  if (state > static_cast<std::uint32_t>(Right::kShare)) {
    (void)request.Answer(wire::kReduceBadState, {.key = key, .state = state});
    return;
  }
  WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) {
    // Of a session that is over, or has not begun. Old Globals look at the state only.
    if (!agent.ready() || agent.connection() != from) {
      (void)request.Answer(wire::kReduceBadState, {.key = key, .state = wire::kStateFailed});
      return;
    }
    const std::uint64_t serial = ++last_serial_;
    reduces_.emplace(serial, std::move(request));
    agent.OnReduce(from, serial, key, static_cast<Right>(state));
  });
}

void ShardSession::Reduce(ConnectionId from, std::uint64_t serial, std::string_view key, Right to) {
  after_.emplace_back([this, key = std::string(key),
                       reduce = Deferred{.connection = from, .serial = serial, .to = to}] {
    TryReduce(key, reduce);
  });
}

void ShardSession::TryReduce(const std::string& key, const Deferred& reduce) {
  {
    const MutexLock lock(mutex_);
    if (LockedAsOldPeer(key)) {
      deferred_[key] = reduce;
      return;
    }
    const auto held = held_.find(key);
    const auto now = options_.clock->Now();
    if (held != held_.end() && held->second > now) {
      deferred_[key] = reduce;
      Later(held->second - now, [this, key] { Used(key); });
      return;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): a function frees what it holds.
    }
    if (held != held_.end()) held_.erase(held);
  }
  engine_.ReduceThen(key, reduce.to, [this, key, reduce] {
    WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) {
      agent.Reduced(reduce.connection, reduce.serial, key, reduce.to);
      reduces_.erase(reduce.serial);  // Of a connection that is gone.
    });
  });
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
  Later(std::chrono::nanoseconds(0), [this, key = std::string(key)] { TryDeferred(key, false); });
}

void ShardSession::Used(const std::string& key) {
  TryDeferred(key, true);
}

void ShardSession::TryDeferred(const std::string& key, bool used) {
  std::optional<Deferred> due;
  {
    const MutexLock lock(mutex_);
    if (used) held_.erase(key);
    const auto at = deferred_.find(key);
    if (at == deferred_.end()) return;
    due = at->second;
    deferred_.erase(at);
  }
  TryReduce(key, *due);
}

void ShardSession::SendReduced(ConnectionId /*to*/, std::uint64_t serial, std::string_view key,
                               Right now) {
  const auto at = reduces_.find(serial);
  if (at == reduces_.end()) return;
  (void)at->second.Answer({.key = key, .state = static_cast<std::uint32_t>(now)});
}

// --- the session ---------------------------------------------------------------------------------

std::vector<HeldRight> ShardSession::Rights() {
  std::vector<HeldRight> rights;
  if (kind_ == Kind::kUnfenced) return rights;  // Nobody wants to know.
  engine_.ForEachRight([&](std::string_view key, Right right) {
    if (Mine(key)) rights.push_back({.key = std::string(key), .right = right});
  });
  return rights;
}

void ShardSession::SendKeepAlive(ConnectionId to) {
  // Counted, not timed: a process that stood still has not asked meanwhile. Old Globals have a time
  // of their own (trust_).
  if (++unanswered_ > kUnansweredMax && kind_ == Kind::kFencing) {
    connection_->Close("Global does not answer");
    return;
  }
  (void)connection_->Call<wire::KeepAlive>(
      {}, {}, [this, to, sent = options_.clock->Now()](const RpcReply<wire::KeepAlive>& reply) {
        const MutexLock lock(mutex_);
        if (!reply.ok()) return;
        if (agent_.connection() == to) unanswered_ = 0;
        Heard(to, sent);
      });
}

void ShardSession::KeepAlive() {
  WithAgent([](GlobalAgent& agent) { agent.KeepAlive(); });
  Later(options_.keep_alive, [this] { KeepAlive(); });
}

void ShardSession::SendNormalClose(ConnectionId /*to*/) {
  Result<void> sent =
      connection_->Call<wire::NormalClose>({}, {}, [this](const RpcReply<wire::NormalClose>&) {
        const MutexLock lock(mutex_);
        closed_normally_ = true;
        changed_.NotifyAll();
      });
  if (!sent.ok()) closed_normally_ = true;
}

void ShardSession::NormalClose() {
  const auto deadline = options_.clock->Now() + std::chrono::seconds(5);
  bool sent = false;
  WithAgent([&](GlobalAgent& agent) {
    sent = agent.ready();
    agent.NormalClose();
  });
  const MutexLock lock(mutex_);
  while (sent && !closed_normally_ && options_.clock->WaitUntil(changed_, mutex_, deadline)) {
  }
}

void ShardSession::Close(ConnectionId connection) {
  if (connection_ == nullptr || IdOf(*connection_) != connection) return;
  Lost();
  connection_->Close("the session with this Global is over");
}

void ShardSession::CloseIfCurrent(ConnectionId connection, std::string_view why) {
  const MutexLock lock(mutex_);
  if (connection_ != nullptr && IdOf(*connection_) == connection) connection_->Close(why);
}

// --- out of sight (rules 63 to 65) ---------------------------------------------------------------

bool ShardSession::out_of_sight() {
  const MutexLock lock(mutex_);
  return was_ready_ && !agent_.ready() && kind_ == Kind::kFencing && !stopping_;
}

void ShardSession::OnWanted(std::int64_t term) {
  WithAgent([term](GlobalAgent& agent) { agent.OnWanted(term); });
}

void ShardSession::Yield(const YieldMark& mark) {
  due_yield_ = mark;
}

std::optional<YieldMark> ShardSession::DueYield() {
  const MutexLock lock(mutex_);
  return std::exchange(due_yield_, std::nullopt);
}

bool ShardSession::GiveUpRights(FunctionRef<bool()> stopping) {
  {
    // Grants of the connection before; no new one comes until the mark is written.
    const MutexLock lock(mutex_);
    while (installing_ > 0) changed_.Wait(mutex_);
  }
  struct Saving {
    Mutex mutex;
    CondVar changed;
    std::size_t open ZEZE_GUARDED_BY(mutex) = 0;
  };
  while (true) {
    std::vector<std::string> keys;
    engine_.ForEachRight([&](std::string_view key, Right) {
      if (Mine(key)) keys.emplace_back(key);
    });
    if (keys.empty()) return true;
    const auto saving = std::make_shared<Saving>();
    {
      const MutexLock lock(saving->mutex);
      saving->open = keys.size();
    }
    for (const std::string& key : keys) {
      engine_.ReduceThen(key, Right::kInvalid, [saving] {
        const MutexLock lock(saving->mutex);
        if (--saving->open == 0) saving->changed.NotifyAll();
      });
    }
    const MutexLock lock(saving->mutex);
    while (saving->open > 0) {
      if (stopping()) return false;
      options_.clock->WaitUntil(saving->changed, saving->mutex,
                                options_.clock->Now() + kSavedLookPeriod);
    }
  }
}

void ShardSession::Yielded() {
  WithAgent([](GlobalAgent& agent) { agent.Yielded(); });
}

void ShardSession::Fenced() {
  after_.emplace_back([this] { fenced_("Global refuses this epoch for ever"); });
}

}  // namespace zeze::global
