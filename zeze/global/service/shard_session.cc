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

constexpr auto kReconnectDelay = std::chrono::milliseconds(100);
constexpr auto kReconnectDelayMax = std::chrono::seconds(1);
constexpr auto kConnectTimeout = std::chrono::seconds(3);
// How long a greeting may be without an answer while other servers wait for this one's records.
constexpr auto kGreetingPatience = std::chrono::milliseconds(500);
// KeepAlives without an answer, after which the connection is given up: 2 s by default.
constexpr int kUnansweredMax = 10;
constexpr auto kSavedLookPeriod = std::chrono::milliseconds(50);

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

// --- the session ---------------------------------------------------------------------------------

std::vector<HeldRight> ShardSession::Rights() {
  std::vector<HeldRight> rights;
  if (kind_ == Kind::kUnfenced) return rights;  // Nobody wants to know.
  engine_.ForEachRight([&](std::string_view key, Right right) {
    if (Mine(key)) rights.push_back({.key = std::string(key), .right = right});
  });
  return rights;
}

void ShardSession::KeepAlive() {
  {
    const MutexLock lock(mutex_);
    if (agent_.ready()) SendKeepAlive();
  }
  Later(options_.keep_alive, [this] { KeepAlive(); });
}

void ShardSession::SendKeepAlive() {
  // Counted, not timed: a process that stood still has not asked meanwhile. Old Globals have a time
  // of their own (trust_).
  if (++unanswered_ > kUnansweredMax && kind_ == Kind::kFencing) {
    connection_->Close("Global does not answer");
    return;
  }
  (void)connection_->Call<wire::KeepAlive>(
      {}, {},
      [this, to = agent_.connection(),
       sent = options_.clock->Now()](const RpcReply<wire::KeepAlive>& reply) {
        const MutexLock lock(mutex_);
        if (!reply.ok()) return;
        if (agent_.connection() == to) unanswered_ = 0;
        Heard(to, sent);
      });
}

void ShardSession::NormalClose() {
  const auto deadline = options_.clock->Now() + std::chrono::seconds(5);
  const MutexLock lock(mutex_);
  if (!agent_.ready()) return;
  SendNormalClose();
  while (!closed_normally_ && options_.clock->WaitUntil(changed_, mutex_, deadline)) {
  }
}

void ShardSession::SendNormalClose() {
  Result<void> sent =
      connection_->Call<wire::NormalClose>({}, {}, [this](const RpcReply<wire::NormalClose>&) {
        const MutexLock lock(mutex_);
        closed_normally_ = true;
        changed_.NotifyAll();
      });
  if (!sent.ok()) closed_normally_ = true;
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
  WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) {
    if (GreetingOverdue()) {
      connection_->Close("it does not answer the greeting, and others need records");
      agent.OnClosed(IdOf(*connection_));
      greeted_ = {};  // An answer that still comes does not send the login.
    }
    agent.OnWanted(term);
  });
}

// A network that swallows everything would hold up the yield until the greeting times out. Nothing
// of the login has been sent while the greeting has no answer, so no login arrives after the yield.
bool ShardSession::GreetingOverdue() const {
  return connection_ != nullptr && greeted_.to == IdOf(*connection_) &&
         greeted_.said.nonce.empty() &&
         options_.clock->Now() - greeted_.sent_at >= kGreetingPatience;
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
