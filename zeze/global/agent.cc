#include "zeze/global/agent.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/global/directory.h"
#include "zeze/global/messages.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

GlobalAgent::GlobalAgent(const AgentOptions& options, AgentOutput& output)
    : options_(options), output_(output), term_(options.start_term) {
  if (options.unsafe_ignore_start_term) term_ = 0;
}

bool GlobalAgent::Current(ConnectionId from) const {
  return state_ == State::kReady && from == connection_;
}

void GlobalAgent::OnConnected(ConnectionId connection) {
  if (connection_ != 0) OnClosed(connection_);
  connection_ = connection;
  // A login would name rights that are being given up, or not name what is not saved yet.
  if (!yielding_ || options_.unsafe_connect_while_yielding) LogIn();
}

void GlobalAgent::LogIn() {
  state_ = State::kLoggingIn;
  output_.SendLogin(connection_, {.server_id = options_.server_id,
                                  .epoch = options_.epoch,
                                  .start_term = options_.start_term,
                                  .rights = output_.Rights(),
                                  .lease = options_.lease,
                                  .serial = ++logins_,
                                  // The next number is its own only when the mark is written.
                                  .yields = yielding_ ? mark_.number - 1 : mark_.number});
}

void GlobalAgent::OnWanted(std::int64_t term) {
  OnTerm(term);
  if (term < term_ || yielding_ || state_ != State::kDisconnected || connection_ != 0) return;
  // A mark for an earlier Global says nothing to this one.
  if (has_nothing_ && mark_.term >= term) return;
  yielding_ = true;
  mark_ = {.number = mark_.number + 1, .term = term};
  output_.Yield(mark_);
}

void GlobalAgent::Yielded() {
  yielding_ = false;
  has_nothing_ = true;
  if (connection_ != 0 && state_ == State::kDisconnected) LogIn();
}

void GlobalAgent::OnClosed(ConnectionId connection) {
  if (connection_ == 0 || connection != connection_) return;
  state_ = State::kDisconnected;
  connection_ = 0;
  FailPending();
}

// A grant that was on its way is void: this side drops it, and the next login does not name it.
// What was to be released is not named either.
void GlobalAgent::FailPending() {
  const auto failed = std::exchange(pending_, {});
  for (const auto& [request, what] : failed) {
    if (what.release) {
      output_.Released(request, what.key);
    } else {
      output_.Failed(request, what.key, AcquireFailure::kDisconnected);
    }
  }
}

void GlobalAgent::OnLoginReply(ConnectionId from, const LoginReply& reply) {
  if (state_ != State::kLoggingIn || from != connection_) return;
  if (reply.outcome == LoginOutcome::kFenced) {
    output_.Fenced();
    return;
  }
  // A Global of an older term was deposed: its grants are worth nothing (rules 42 and 45).
  if (reply.outcome != LoginOutcome::kAccepted || reply.term < term_) {
    Leave();
    return;
  }
  term_ = reply.term;
  connection_term_ = reply.term;
  state_ = State::kReady;
  has_nothing_ = false;
}

void GlobalAgent::Leave() {
  const ConnectionId closed = connection_;
  OnClosed(closed);
  output_.Close(closed);
}

void GlobalAgent::OnTerm(std::int64_t term) {
  term_ = std::max(term_, term);
  if (state_ == State::kReady && connection_term_ < term_) Leave();
}

void GlobalAgent::OnGrant(ConnectionId from, std::uint64_t request, std::string_view key,
                          Right right) {
  if (Current(from) && pending_.erase(request) != 0) output_.Granted(request, key, right);
}

void GlobalAgent::OnRefusal(ConnectionId from, std::uint64_t request, std::string_view key,
                            Refusal refusal) {
  if (!Current(from) || pending_.erase(request) == 0) return;
  const bool busy = refusal == Refusal::kHolderFresh || refusal == Refusal::kDeadlock;
  output_.Failed(request, key, busy ? AcquireFailure::kBusy : AcquireFailure::kRefused);
}

void GlobalAgent::OnReleased(ConnectionId from, std::uint64_t request, std::string_view key) {
  if (Current(from) && pending_.erase(request) != 0) output_.Released(request, key);
}

void GlobalAgent::OnReduce(ConnectionId from, std::uint64_t serial, std::string_view key,
                           Right to) {
  if (Current(from)) output_.Reduce(from, serial, key, to);
}

void GlobalAgent::Acquire(std::uint64_t request, std::string_view key, Right wanted) {
  if (state_ != State::kReady) {
    output_.Failed(request, key, AcquireFailure::kDisconnected);
    return;
  }
  pending_[request] = {.key = std::string(key), .release = false};
  output_.SendAcquire(connection_, request, key, wanted);
}

void GlobalAgent::Release(std::uint64_t request, std::string_view key) {
  if (state_ != State::kReady) {
    // Not named by the next login, which tells Global. (While one is under way that named it,
    // Global believes that it is held, asks, and learns.)
    output_.Released(request, key);
    return;
  }
  pending_[request] = {.key = std::string(key), .release = true};
  output_.SendRelease(connection_, request, key);
}

void GlobalAgent::KeepAlive() {
  if (state_ == State::kReady) output_.SendKeepAlive(connection_);
}

void GlobalAgent::NormalClose() {
  if (state_ == State::kReady) output_.SendNormalClose(connection_);
}

void GlobalAgent::Reduced(ConnectionId to, std::uint64_t serial, std::string_view key, Right now) {
  if (Current(to)) output_.SendReduced(to, serial, key, now);
}

}  // namespace zeze::global
