// The way of a right through GlobalServer, between the connections and the book (Directory):
// Acquire and Release, and the questions (Reduce) to whoever is in the way of a request.
// docs/architecture.md walks both.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

namespace {

// A server because of which a request was refused is in the way of others for so long.
constexpr std::chrono::nanoseconds kInTheWayFor = std::chrono::seconds(10);

}  // namespace

SessionId GlobalServer::Heard(Time now, ConnectionId connection) {
  now_ = now;
  // Requests come in bursts of one connection.
  if (last_heard_.session == nullptr || last_heard_.session->connection != connection) {
    last_heard_ = {};
    const SessionId id = SessionOf(connection);
    if (id == kNoSession) return kNoSession;
    last_heard_ = {.id = id, .session = &sessions_.at(id)};
  }
  last_heard_.session->heard = now;
  return last_heard_.id;
}

// --- Acquire and Release -------------------------------------------------------------------------

bool GlobalServer::OnAcquire(Time now, ConnectionId from, std::uint64_t request,
                             std::string_view key, Right wanted) {
  const SessionId id = Heard(now, from);
  if (id == kNoSession) return false;
  if (phase_ == Phase::kRecovering) asked_while_recovering_ = now;
  const bool hangs = last_heard_.session->unfenced && !options_.unsafe_let_old_peers_wait;
  directory_.Acquire(id, request, key, wanted,
                     hangs ? Directory::WhileWaiting::kHangs : Directory::WhileWaiting::kAnswers,
                     now);
  return true;
}

void GlobalServer::Granted(SessionId session, std::uint64_t request, std::string_view key,
                           Right right) {
  const bool asks = session == last_heard_.id;  // Mostly the one that asked gets it.
  const Session& to = asks ? *last_heard_.session : sessions_.at(session);
  output_.SendGrant(to.connection, request, key, right);
}

void GlobalServer::Refused(SessionId session, std::uint64_t request, std::string_view key,
                           Right wanted, Refusal refusal, SessionId holder) {
  const auto at = sessions_.find(holder);
  // A deadlock has no holder: nobody is in the way.
  if (at != sessions_.end() && refusal != Refusal::kHolderFresh) {
    at->second.in_the_way_until = now_ + kInTheWayFor;
  }
  output_.SendRefusal(sessions_.at(session).connection, request, key, wanted, refusal);
}

bool GlobalServer::OnRelease(Time now, ConnectionId from, std::uint64_t request,
                             std::string_view key) {
  const SessionId id = Heard(now, from);
  if (id == kNoSession) return false;
  // Answered first: grants that this makes possible go to others, the order does not matter.
  output_.SendReleased(from, request, key);
  directory_.Release(id, key);
  return true;
}

// --- Reduce --------------------------------------------------------------------------------------

void GlobalServer::Reduce(SessionId holder, std::uint64_t serial, std::string_view key, Right to,
                          Time since) {
  Session& session = sessions_.at(holder);
  if (session.connection != 0) {
    questions_[serial] = {.asked = now_, .holder = holder};
    output_.SendReduce(session.connection, serial, key, to);
    return;
  }
  // A request that has waited behind others does not wait longer than these.
  Question question{.asked = now_, .holder = holder};
  Time fails = since + options_.acquire_wait;
  if (const auto at = questions_.find(serial); at != questions_.end()) {
    question = at->second;  // Its connection was lost.
    fails = std::min(now_ + options_.acquire_wait, question.asked + options_.reduce_timeout);
  }
  kept_.emplace(fails,
                Kept{.question = question, .serial = serial, .key = std::string(key), .to = to});
}

void GlobalServer::OnReduced(Time now, ConnectionId from, std::uint64_t serial,
                             std::string_view key, Right right) {
  const SessionId id = Heard(now, from);
  if (id == kNoSession) return;
  questions_.erase(serial);
  last_heard_.session->told_stuck = false;
  directory_.Reduced(id, serial, key, right);
}

void GlobalServer::OnReduceFailed(Time now, ConnectionId from, std::uint64_t serial,
                                  std::string_view key, Refusal why) {
  const SessionId id = Heard(now, from);
  if (id == kNoSession) return;
  questions_.erase(serial);
  directory_.ReduceFailed(id, serial, key, why);
}

// --- questions that are not answered -------------------------------------------------------------

void GlobalServer::ExpireQuestions(Time now) {
  while (!questions_.empty() && questions_.begin()->second.asked + options_.reduce_timeout <= now) {
    // It hangs. If it lives, it comes back at once; if not, it is silent from now on.
    const SessionId holder = questions_.begin()->second.holder;
    Session& session = sessions_.at(holder);
    session.in_the_way_until = now + kInTheWayFor;
    if (!session.told_cut && !std::exchange(session.told_stuck, true)) TellStuck(session);
    Unbind(now, holder);
  }
}

// The age of a question outlives the connections of its holder.
void GlobalServer::AskWhoIsBack(Time now) {
  now_ = now;
  for (auto at = kept_.begin(); at != kept_.end();) {
    const Kept& kept = at->second;
    const ConnectionId connection = sessions_.at(kept.question.holder).connection;
    if (connection == 0) {
      ++at;
      continue;
    }
    questions_[kept.serial] = kept.question;
    output_.SendReduce(connection, kept.serial, kept.key, kept.to);
    at = kept_.erase(at);
  }
}

void GlobalServer::ExpireKept(Time now) {
  while (!kept_.empty() && kept_.begin()->first <= now) {
    const Kept failed = std::move(kept_.extract(kept_.begin()).mapped());
    directory_.ReduceFailed(failed.question.holder, failed.serial, failed.key,
                            Refusal::kHolderUnreachable);
  }
}

}  // namespace zeze::global
