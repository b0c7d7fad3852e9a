// How a ShardSession logs in: with a fence, or to a Global of Zeze 1.6 without one.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "zeze/base/activity.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/global/agent.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/proof.h"
#include "zeze/global/service/shard_session.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/rpc.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

namespace {

constexpr std::size_t kLoginPartBytes = std::size_t{1} << 20;
// An old Global closes a connection on which it gets a message that it does not know. Once may be
// an accident.
constexpr int kCutOffsMax = 2;
// Global has no room for a part of a login, because of the logins of others.
constexpr auto kNoRoomDelay = std::chrono::milliseconds(100);
constexpr auto kGuardPeriod = std::chrono::milliseconds(100);

}  // namespace

void ShardSession::SendLogin(ConnectionId to, const LoginRequest& request) {
  if (kind_ == Kind::kUnfenced) {
    SendOldLogin(to);
    return;
  }
  if (kind_ == Kind::kFencing || !options_.allow_unfenced_global) {
    SendFencedLogin(to, request);
    return;
  }
  // A Global that has answered this and then closes is there and does not know the login. Every
  // Global answers it, if only with an error.
  Result<void> sent = connection_->Call<wire::KeepAlive>(
      {}, {}, [this, to, request](const RpcReply<wire::KeepAlive>& reply) {
        if (reply.outcome != RpcOutcome::kAnswered) {
          CloseIfCurrent(to, "no answer before the login");
          return;
        }
        const MutexLock lock(mutex_);
        if (connection_ != nullptr && IdOf(*connection_) == to) SendFencedLogin(to, request);
      });
  if (!sent.ok()) connection_->Close(sent.error().message());
}

void ShardSession::SendFencedLogin(ConnectionId to, const LoginRequest& request) {
  greeted_ = {.to = to,
              .login = std::make_shared<const LoginRequest>(request),
              .nonce = NewSecret(),
              .sent_at = options_.clock->Now(),
              .said = {}};
  Result<void> sent = connection_->Call<wire::Greeting>(
      {.nonce = greeted_.nonce}, {},
      [this, to](const RpcReply<wire::Greeting>& reply) { OnGreeting(to, reply); });
  if (!sent.ok()) connection_->Close(sent.error().message());
}

void ShardSession::OnGreeting(ConnectionId to, const RpcReply<wire::Greeting>& reply) {
  if (!reply.ok()) {
    if (reply.outcome == RpcOutcome::kAnswered) {
      CloseIfCurrent(to, "it does not know its term yet");
    } else {
      OnNoFencedLogin(to, reply.outcome);
    }
    return;
  }
  if (reply.result.cluster != identity_.cluster ||
      reply.result.shard != static_cast<std::int32_t>(shard_)) {
    ZEZE_LOG_ERROR_EVERY(std::chrono::seconds(10),
                         "the Global of shard {} says that it is shard {} of cluster {}; this "
                         "server is of cluster {}",
                         shard_, reply.result.shard, FormatClusterId(reply.result.cluster),
                         FormatClusterId(identity_.cluster));
    CloseIfCurrent(to, "it is another Global");
    return;
  }
  {
    const MutexLock lock(mutex_);
    if (greeted_.to != to) return;
    greeted_.said = reply.result;
  }
  identity_.look_up();
}

// Nothing is said to a Global that does not prove that it is that of the term in the database.
void ShardSession::OnTermRow(const Result<Fence::TermRow>& row) {
  if (row.ok()) OnTerm(row.value().term);
  const MutexLock lock(mutex_);
  if (greeted_.said.nonce.empty()) return;  // Nothing waits for it.
  const Greeted greeted = std::exchange(greeted_, {});
  if (connection_ == nullptr || IdOf(*connection_) != greeted.to) return;
  const Claim claim{.server_nonce = greeted.nonce,
                    .global_nonce = greeted.said.nonce,
                    .cluster = identity_.cluster,
                    .shard = static_cast<std::int32_t>(shard_)};
  if (!row.ok() || row.value().term != greeted.said.term) {
    connection_->Close(row.ok() ? "its term has passed" : row.error().message());
    return;
  }
  if (!SameProof(ProofOfTerm(row.value().secret, claim, row.value().term), greeted.said.proof)) {
    ZEZE_LOG_ERROR_EVERY(
        std::chrono::seconds(10),
        "the Global of shard {} does not prove that it is that of term {}: it is a "
        "stranger, or uses a copy of the database",
        shard_, row.value().term);
    connection_->Close("it proves nothing");
    return;
  }
  proof_ = ProofOfEpoch(identity_.secret, claim, options_.server_id, epoch_);
  SendLoginPart(greeted.to, greeted.login, 0);
}

void ShardSession::SendLoginPart(ConnectionId to, const std::shared_ptr<const LoginRequest>& login,
                                 std::size_t begin) {
  if (connection_ == nullptr || IdOf(*connection_) != to) return;
  wire::FencedLoginArgument part{.server_id = login->server_id,
                                 .hash_index = static_cast<std::int32_t>(shard_),
                                 .epoch = login->epoch,
                                 .start_term = login->start_term,
                                 .last = false,
                                 .rights = {},
                                 .lease_ms = login->lease.count(),
                                 .cluster = identity_.cluster,
                                 .proof = proof_,
                                 .serial = login->serial,
                                 .yields = login->yields};
  std::size_t end = begin;
  for (std::size_t bytes = 0; end < login->rights.size() && bytes < kLoginPartBytes; ++end) {
    part.rights.push_back(login->rights[end]);
    bytes += login->rights[end].key.size() + 8;
  }
  part.last = end == login->rights.size();
  Result<void> sent = connection_->Call<wire::FencedLogin>(
      part, {}, [this, to, login, begin, end](const RpcReply<wire::FencedLogin>& reply) {
        if (!reply.ok()) {
          OnNoFencedLogin(to, reply.outcome);
          return;
        }
        const auto outcome = static_cast<LoginOutcome>(reply.result.outcome);
        if (outcome == LoginOutcome::kLater) {
          Later(kNoRoomDelay, [this, to, login, begin] {
            const MutexLock lock(mutex_);
            SendLoginPart(to, login, begin);
          });
          return;
        }
        if (end < login->rights.size() && outcome == LoginOutcome::kAccepted) {
          const MutexLock lock(mutex_);
          SendLoginPart(to, login, end);
          return;
        }
        WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) {
          kind_ = Kind::kFencing;
          if (outcome == LoginOutcome::kRefused) {
            refusal_ = reply.result.text;
            ZEZE_LOG_ERROR_EVERY(std::chrono::seconds(10), "Global {} refuses this server: {}",
                                 shard_, refusal_);
          }
          agent.OnLoginReply(to, {.outcome = outcome, .term = reply.result.term});
          was_ready_ = was_ready_ || agent.ready();
        });
      });
  // A login that lacks a part would give rights away that this server has.
  if (!sent.ok()) connection_->Close(sent.error().message());
}

void ShardSession::OnNoFencedLogin(ConnectionId to, RpcOutcome outcome) {
  {
    const MutexLock lock(mutex_);
    const bool cut_off = kind_ == Kind::kUnknown && outcome == RpcOutcome::kClosed;
    logins_cut_off_ = cut_off ? logins_cut_off_ + 1 : 0;
    if (logins_cut_off_ >= kCutOffsMax && !stopping_) {
      if (options_.allow_unfenced_global) {
        BecomeUnfenced();
      } else {
        ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(10),
                               "Global {} closes the connection at each login. If it is of Zeze "
                               "1.6: it fences nobody, and is used only with AllowUnfencedGlobal",
                               shard_);
      }
    }
  }
  CloseIfCurrent(to, "no answer to the login");
}

// --- a Global without a fence --------------------------------------------------------------------

void ShardSession::BecomeUnfenced() {
  kind_ = Kind::kUnfenced;
  unfenced_ = true;
  Publish();
  ZEZE_LOG_WARNING(
      "UNFENCED: server {} works under a Global ({}) that fences nobody. The cluster is not safe "
      "from all faults: a Global that restarts grants what others still hold",
      options_.server_id, shard_);
  guard_ = std::thread([this] { Guard(); });
}

void ShardSession::SendOldLogin(ConnectionId to) {
  if (agent_.term() != start_term_) {
    ZEZE_LOG_ERROR(
        "a Global with a fence serves shard {} of this database (term {}): the one without is not "
        "used any more. All servers must use the same",
        shard_, agent_.term());
    connection_->Close("another Global serves this shard");
    return;
  }
  const std::chrono::nanoseconds now = options_.clock->Now();
  const wire::LoginArgument argument{.server_id = options_.server_id,
                                     .hash_index = static_cast<std::int32_t>(shard_)};
  Result<void> sent;
  if (trust_.has_rights()) {
    sent = connection_->Call<wire::ReLogin>(
        argument, {}, [this, to, now](const RpcReply<wire::ReLogin>& reply) {
          OnOldLogin(to, now, true, reply.outcome, reply.result_code, {});
        });
  } else {
    sent = connection_->Call<wire::Login>(
        argument, {}, [this, to, now](const RpcReply<wire::Login>& reply) {
          OnOldLogin(to, now, false, reply.outcome, reply.result_code, reply.result);
        });
  }
  if (!sent.ok()) connection_->Close(sent.error().message());
}

void ShardSession::OnOldLogin(ConnectionId from, std::chrono::nanoseconds sent, bool again,
                              RpcOutcome outcome, std::int64_t code,
                              const wire::LoginResult& timing) {
  if (outcome != RpcOutcome::kAnswered || code != 0) {
    if (outcome == RpcOutcome::kAnswered) {
      ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1), "Global {} refuses {} of server {} (code {})",
                             shard_, again ? "to go on with the session" : "the login",
                             options_.server_id, code);
      const MutexLock lock(mutex_);
      if (again) trust_.OnReloginRefused();
    }
    CloseIfCurrent(from, "no answer to the login");
    return;
  }
  WithAgent([&](GlobalAgent& agent) ZEZE_REQUIRES(mutex_) {
    if (connection_ == nullptr || IdOf(*connection_) != from) return;
    if (again) {
      trust_.OnRelogin(sent);
    } else {
      trust_.OnLogin(sent, timing);
    }
    Publish();
    ZEZE_LOG_INFO("server {} {} Global {}, unfenced", options_.server_id,
                  again ? "goes on with its session at" : "has logged in to", shard_);
    agent.OnLoginReply(from, {.outcome = LoginOutcome::kAccepted, .term = agent.term()});
  });
}

void ShardSession::Heard(ConnectionId from, std::chrono::nanoseconds sent) {
  if (kind_ != Kind::kUnfenced || !agent_.ready() || agent_.connection() != from) return;
  trust_.OnAnswer(sent);
  Publish();
}

void ShardSession::Lost() {
  if (kind_ != Kind::kUnfenced) return;
  trust_.OnLost();
  Publish();
  guard_wake_.NotifyAll();
}

void ShardSession::Publish() {
  usable_until_.store(trust_.usable_until().count(), std::memory_order_release);
}

void ShardSession::Guard() {
  SetThreadName("unfenced");
  while (true) {
    ConnectionId due = 0;
    bool save = false;
    bool drop = false;
    bool overdue = false;
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      const std::chrono::nanoseconds now = options_.clock->Now();
      if (trust_.in_sight() && now >= trust_.usable_until() && connection_ != nullptr) {
        connection_->Close("Global does not answer");
      }
      save = trust_.must_save();
      drop = trust_.must_drop(now);
      overdue = save && now >= trust_.save_until();
      if (!save && !drop && login_due_ && connection_ != nullptr) {
        login_due_ = false;
        due = IdOf(*connection_);
      }
      if (!save && !drop && due == 0) {
        options_.clock->WaitUntil(guard_wake_, mutex_, now + kGuardPeriod);
        continue;
      }
    }
    if (overdue) {
      fenced_(
          "Global is out of sight, and what was done could not be saved in time: others may "
          "have these rights by now");
      return;
    }
    if (save) {
      const bool saved = SaveAll();
      const MutexLock lock(mutex_);
      if (saved && options_.clock->Now() < trust_.save_until()) {
        trust_.OnSaved();
      } else {
        options_.clock->WaitUntil(guard_wake_, mutex_, options_.clock->Now() + kGuardPeriod);
      }
    } else if (drop) {
      DropRights();
      const MutexLock lock(mutex_);
      trust_.OnDropped();
    } else {
      WithAgent([due](GlobalAgent& agent) { agent.OnConnected(due); });
    }
  }
}

// Nothing is committed meanwhile: a commit looks at usable_until_ after it has announced itself to
// the checkpoint, and this checkpoint waits for those that did before.
bool ShardSession::SaveAll() {
  bool held = false;
  engine_.ForEachRight([&held](std::string_view, Right) { held = true; });
  if (!held) return true;  // Perhaps the engine does not run yet.
  const Result<void> saved = engine_.CheckpointNow();
  if (!saved.ok()) {
    ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1),
                           "Global {} is out of sight, and what was done is not saved: {}", shard_,
                           saved.error().message());
  }
  return saved.ok();
}

void ShardSession::DropRights() {
  std::vector<std::string> keys;
  engine_.ForEachRight([&](std::string_view key, Right) {
    if (Mine(key)) keys.emplace_back(key);
  });
  for (const std::string& key : keys) engine_.ReduceThen(key, Right::kInvalid, [] {});
  ZEZE_LOG_WARNING("server {} has given up its {} rights of Global {}", options_.server_id,
                   keys.size(), shard_);
}

}  // namespace zeze::global
