// How servers log in to a Global: the greeting, in which Global proves who it is, and the login, in
// which the server does; it names all rights of the server and may come in parts.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/global_service_impl.h"
#include "zeze/global/service/proof.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/storage/cluster.h"

namespace zeze::global {

namespace {

// An operator who looks at a preview does not log in.
constexpr std::chrono::nanoseconds kPreviewTime = std::chrono::minutes(15);

constexpr std::size_t kNonceBytes = 16;
// Operators are told of refused logins at most once in this time.
constexpr std::chrono::nanoseconds kRefusedTold = std::chrono::minutes(1);

// What a right in a login costs, without its key.
constexpr std::size_t kBytesOfRight = 64;

}  // namespace

void GlobalService::Impl::HandleLogins() {
  service_.Handle<wire::Greeting>(
      [this](Request<wire::Greeting> request) { Greet(std::move(request)); });
  service_.Handle<wire::FencedLogin>(
      [this](Request<wire::FencedLogin> request) { Login(std::move(request)); });
  service_.Handle<wire::Login>([this](Request<wire::Login> request) {
    UnfencedLogin(request.connection(), request.argument(), false, [&](bool accepted) {
      (void)request.Answer(accepted ? 0 : wire::kLoginRefused, {});
    });
  });
  service_.Handle<wire::ReLogin>([this](Request<wire::ReLogin> request) {
    UnfencedLogin(request.connection(), request.argument(), true, [&](bool accepted) {
      (void)request.Answer(accepted ? 0 : wire::kReloginRefused, {});
    });
  });
}

Claim GlobalService::Impl::ClaimOf(const Session& session) const {
  return {.server_nonce = session.server_nonce,
          .global_nonce = session.global_nonce,
          .cluster = cluster_,
          .shard = options_.shard};
}

void GlobalService::Impl::Greet(Request<wire::Greeting> request) {
  if (machine_.term() == 0) {
    (void)request.AnswerCode(wire::kNoTermYet);
    return;
  }
  auto* session = request.connection()->state<Session>();
  if (request.argument().nonce.size() != kNonceBytes || !session->global_nonce.empty()) {
    request.connection()->Close("it greets wrongly");
    return;
  }
  session->server_nonce = request.argument().nonce;
  session->global_nonce = NewSecret();
  const Claim claim = ClaimOf(*session);
  (void)request.Answer({.shard = options_.shard,
                        .term = machine_.term(),
                        .cluster = cluster_,
                        .nonce = session->global_nonce,
                        .proof = ProofOfTerm(secret_, claim, machine_.term())});
}

std::string GlobalService::Impl::RefuseShard(std::int32_t server_id, std::int32_t shard) {
  if (shard == options_.shard) return {};
  const std::string text = fmt::format(
      "this Global serves shard {}, and the login of server {} is for shard {}: every server must "
      "list the Globals in the order of their shards (GlobalCacheManagerHostNameOrAddress)",
      options_.shard, server_id, shard);
  ++refused_;
  const GlobalServer::Time now = Now();
  if (!refused_told_ || now >= *refused_told_ + kRefusedTold) {
    refused_told_ = now;
    Tell("refused", {.server_id = server_id,
                     .text = fmt::format("{}. {} logins have been refused so", text, refused_)});
  }
  return text;
}

void GlobalService::Impl::Login(Request<wire::FencedLogin> request) {
  const ConnectionId from = IdOf(*request.connection());
  if (std::string text = RefuseShard(request.argument().server_id, request.argument().hash_index);
      !text.empty()) {
    (void)request.Answer({.outcome = static_cast<std::uint32_t>(LoginOutcome::kRefused),
                          .term = machine_.term(),
                          .text = std::move(text)});
    request.connection()->CloseWhenSent("its login is for another shard");
    return;
  }
  auto* session = request.connection()->state<Session>();
  wire::FencedLoginArgument& argument = request.argument();
  std::size_t bytes = 0;
  for (const HeldRight& one : argument.rights) bytes += kBytesOfRight + one.key.size();
  const bool proven =
      machine_.OnLoginPart(Now(), argument.server_id, argument.epoch, ProofIn(argument, *session));
  if (const auto at = strangers_.find(from); proven && at != strangers_.end()) {
    at->second.since = recent_now_;  // It is at work.
  }
  // One of them always goes on: otherwise all would wait for each other.
  const bool first = announcing_.empty() || *announcing_.begin() == from;
  if (announced_ + bytes > options_.announced_bytes_max && !(proven && first)) {
    if (!proven) {
      request.connection()->Close("the logins under way name too many rights");
      return;
    }
    (void)request.Answer(
        {.outcome = static_cast<std::uint32_t>(LoginOutcome::kLater), .term = machine_.term()});
    return;
  }
  announcing_.insert(from);
  announced_ += bytes;
  session->bytes += bytes;
  std::move(argument.rights.begin(), argument.rights.end(), std::back_inserter(session->rights));
  if (!argument.last) {
    (void)request.Answer({});
    return;
  }
  if (logins_.contains(from)) {
    request.connection()->Close("it logs in twice");
    return;
  }
  connections_[from] = request.connection();
  LoginRequest login{.server_id = argument.server_id,
                     .epoch = argument.epoch,
                     .start_term = argument.start_term,
                     .rights = std::exchange(session->rights, {}),
                     .lease = std::chrono::milliseconds(argument.lease_ms),
                     .serial = argument.serial,
                     .yields = argument.yields,
                     .proves = ProofIn(argument, *session)};
  session->server_nonce.clear();  // It counts once.
  const std::string cluster = argument.cluster;
  logins_.insert_or_assign(from, std::move(request));
  if (!cluster.empty() && cluster != cluster_) {
    machine_.RefuseLogin(Now(), from, login,
                         fmt::format("its database holds cluster {}, this Global serves cluster {}",
                                     FormatClusterId(cluster), FormatClusterId(cluster_)));
    return;
  }
  machine_.OnLogin(Now(), from, std::move(login));
}

// Null: it proves nothing.
std::function<bool(std::string_view)> GlobalService::Impl::ProofIn(
    const wire::FencedLoginArgument& argument, const Session& session) const {
  if (argument.proof.empty()) return nullptr;
  return [proof = argument.proof, server_id = argument.server_id, epoch = argument.epoch,
          server_nonce = session.server_nonce, global_nonce = session.global_nonce,
          cluster = cluster_, shard = options_.shard](std::string_view secret) {
    const Claim claim{.server_nonce = server_nonce,
                      .global_nonce = global_nonce,
                      .cluster = cluster,
                      .shard = shard};
    return !server_nonce.empty() && SameProof(ProofOfEpoch(secret, claim, server_id, epoch), proof);
  };
}

void GlobalService::Impl::UnfencedLogin(const ConnectionPtr& connection,
                                        const wire::LoginArgument& argument, bool again,
                                        const std::function<void(bool)>& answer) {
  const std::int32_t server_id = argument.server_id;
  if (!RefuseShard(server_id, argument.hash_index).empty()) {
    answer(false);
    return;
  }
  connections_[IdOf(*connection)] = connection;
  const bool accepted = machine_.OnUnfencedLogin(Now(), IdOf(*connection), server_id, again);
  if (accepted) strangers_.erase(IdOf(*connection));
  if (!accepted) {
    ZEZE_LOG_WARNING("Global {}: server {} without a fence is refused{}", options_.shard, server_id,
                     options_.machine.unfenced_wait.count() == 0
                         ? ": such servers are not allowed here (zeze global --unfenced-wait)"
                         : "");
  }
  answer(accepted);
}

void GlobalService::Impl::SendLoginReply(ConnectionId to, const LoginReply& reply) {
  const auto at = logins_.find(to);
  if (at == logins_.end()) return;
  Request<wire::FencedLogin> login = std::move(at->second);
  logins_.erase(at);
  const bool accepted = reply.outcome == LoginOutcome::kAccepted;
  ZEZE_LOG_INFO("Global {}: server {} (epoch {}) at {} {}", options_.shard,
                login.argument().server_id, login.argument().epoch, PeerOf(to),
                accepted ? "has logged in" : "is refused");
  announced_ -= std::exchange(login.connection()->state<Session>()->bytes, 0);
  announcing_.erase(to);
  if (accepted) {
    strangers_.erase(to);
    logged_in_.push_back(to);
  }
  // At once: what the machine sends next, a Reduce perhaps, must not overtake it.
  (void)login.Answer({.outcome = static_cast<std::uint32_t>(reply.outcome),
                      .term = reply.term,
                      .text = reply.text});
}

void GlobalService::Impl::CloseStrangers() {
  std::vector<ConnectionPtr> due;  // A close changes the map.
  for (const auto& [id, stranger] : strangers_) {
    const auto patience = admin_.Considers(id) ? std::max(kPreviewTime, options_.login_timeout)
                                               : options_.login_timeout;
    if (recent_now_ - stranger.since >= patience) due.push_back(stranger.connection);
  }
  for (const ConnectionPtr& connection : due) connection->Close("it did not log in in time");
}

}  // namespace zeze::global
