#include "zeze/global/agent.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/global/directory.h"
#include "zeze/global/messages.h"

namespace zeze::global {

GlobalAgent::GlobalAgent(const AgentOptions& options, AgentOutput& output)
    : options_(options), output_(output), term_(options.start_term) {
  if (options.unsafe_ignore_start_term) term_ = 0;
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
  LoseRequests();
}

// A grant that was on its way is void: this side drops it, and the next login does not name it.
// What was to be released is not named either.
void GlobalAgent::LoseRequests() {
  const auto lost = std::exchange(requests_, {});
  for (const auto& [request, key] : lost) output_.Lost(request, key);
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

ConnectionId GlobalAgent::Begin(std::uint64_t request, std::string_view key) {
  if (state_ != State::kReady) return 0;
  requests_[request] = key;
  return connection_;
}

bool GlobalAgent::End(ConnectionId from, std::uint64_t request) {
  return Current(from) && requests_.erase(request) != 0;
}

}  // namespace zeze::global
