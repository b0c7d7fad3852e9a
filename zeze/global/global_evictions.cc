// How GlobalServer takes rights from servers that are lost: evictions, leases, operators.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/lease.h"
#include "zeze/storage/fence.h"

namespace zeze::global {

void GlobalServer::StartEvict(Time now, SessionId id, const std::string& why,
                              const EvictUnless& unless) {
  Session& session = sessions_.at(id);
  if (session.state != State::kLive) return;
  if (session.unfenced) {  // The database cannot fence it (rule 49).
    Tell(AlertKind::kEvicted, session, "is evicted: " + why);
    Unbind(now, id);
    session.state = State::kFreeing;
    session.due = now + options_.unfenced_wait;
    AskToStop(session);
    return;
  }
  const bool certain = !unless.renewed_since.has_value() && !unless.yielded_since.has_value();
  if (certain) Unbind(now, id);
  session.state = State::kEvicting;
  session.due = Time::max();
  session.unless = unless;
  session.why = why;
  output_.Evict(session.server_id, session.epoch, term_, unless);
}

// The book does not say what they have, so the end of one does not free it: as after a start,
// nothing is granted until none of them can use a right any more (hole 30).
void GlobalServer::EvictTheContradictory(Time now, const std::vector<SessionId>& sessions) {
  phase_ = Phase::kRecovering;
  directory_.Pause();
  for (const SessionId id : sessions) {
    sessions_.at(id).announced = false;
    StartEvict(now, id, "announced rights contradict each other");
  }
}

void GlobalServer::Tell(AlertKind kind, const Session& session, const std::string& what) {
  output_.Alert(
      {.kind = kind,
       .server_id = session.server_id,
       .epoch = session.epoch,
       .text = fmt::format("server {} (epoch {}) {}", session.server_id, session.epoch, what)});
}

void GlobalServer::AskToStop(Session& session) {
  if (!options_.can_stop_servers) return;
  session.stop_ticket = ++last_ticket_;
  output_.StopServer(session.server_id, session.stop_ticket);
}

// Nobody has looked at it: only if it is stopped for certain are its rights free.
void GlobalServer::StopUnfenced(Time now, SessionId id) {
  Session& session = sessions_.at(id);
  Tell(AlertKind::kEvicted, session, "is being stopped: it is silent and in the way of others");
  Unbind(now, id);
  session.state = State::kStopping;
  session.due = Time::max();
  AskToStop(session);
}

void GlobalServer::OnStopped(Time now, std::int32_t server_id, std::uint64_t ticket, bool surely) {
  now_ = now;
  const SessionId id = FindSession(server_id, kUnfencedEpoch);
  if (id == kNoSession) return;
  Session& session = sessions_.at(id);
  // Not the answer to an older question: since then it may have been started again.
  if (session.stop_ticket != ticket) return;
  if (session.state != State::kStopping && session.state != State::kFreeing) return;
  if (surely) {
    Freed(id, "it is stopped");
    return;
  }
  Tell(AlertKind::kStopFailed, session, "could not be stopped: see to it that it does not run");
  if (session.state != State::kStopping) return;  // Freed when its time is over.
  session.state = State::kLive;
  session.stop_not_before = now + options_.stop_retry;
}

void GlobalServer::Freed(SessionId id, const std::string& why) {
  const RightCounts rights = directory_.CountsOf(id);
  Tell(AlertKind::kFreed, sessions_.at(id),
       fmt::format("has lost its rights, {} to write and {} to read: {}", rights.modify,
                   rights.share, why));
  Remove(id);
}

// Its successor says that it is gone; freed when the database says so too.
void GlobalServer::Supersede(Time now, SessionId id) {
  Session& session = sessions_.at(id);
  session.state = State::kFenced;
  session.due = Time::max();
  Unbind(now, id);
  list_due_ = now;
}

// No flush of it takes effect any more. What it may still do is answer from memory, until its lease
// is over (rule 40). That is counted from the moment at which its last renewal was seen: it was
// sent before (rule 60).
void GlobalServer::Fenced(Time now, SessionId id, std::int64_t renewals) {
  Session& session = sessions_.at(id);
  std::int64_t& fenced = fenced_[session.server_id];
  fenced = std::max(fenced, session.epoch);
  Unbind(now, id);
  if (renewals < 0 || (session.renewals != renewals && !options_.unsafe_free_by_old_renewals)) {
    session.renewals = renewals;
    session.seen = now;
  }
  session.state = State::kFreeing;
  session.due = session.seen + LeaseOf(session).free_after();
  if (options_.unsafe_free_at_once) Remove(id);
}

void GlobalServer::OnEvicted(Time now, std::int32_t server_id, std::int64_t epoch,
                             const Result<EvictOutcome>& outcome) {
  now_ = now;
  const SessionId id = FindSession(server_id, epoch);
  if (id == kNoSession || sessions_.at(id).state != State::kEvicting) return;
  if (!outcome.ok()) {
    sessions_.at(id).due = now + options_.retry_delay;
    return;
  }
  Session& session = sessions_.at(id);
  switch (outcome.value()) {
    case EvictOutcome::kEvicted:
      Tell(AlertKind::kEvicted, session, "is evicted: " + session.why);
      Unbind(now, id);
      session.state = State::kFenced;
      list_due_ = now;
      return;
    case EvictOutcome::kRenewed:
      session.state = State::kLive;
      list_due_ = now;
      return;
    case EvictOutcome::kYielded:
      session.state = State::kLive;
      session.sign = now;  // Its mark is read next.
      if (session.wanting != Wanting::kAsking) session.wanting = Wanting::kYes;
      yields_due_ = now;
      return;
    case EvictOutcome::kTermPassed:
      Depose(now);
  }
}

void GlobalServer::Depose(Time now) {
  phase_ = Phase::kDeposed;
  directory_.Pause();
  output_.Alert({.kind = AlertKind::kDeposed,
                 .text = fmt::format("term {} has passed: another Global has taken over", term_)});
  for (auto& [id, session] : sessions_) Unbind(now, id);
}

void GlobalServer::OnTerm(Time now, const Result<std::int64_t>& term) {
  now_ = now;
  if (phase_ == Phase::kDeposed) return;
  term_due_ = now + options_.term_period;
  if (term.ok() && term.value() > term_) Depose(now);
}

void GlobalServer::OnHistoryLost(Time now) {
  now_ = now;
  if (phase_ == Phase::kDeposed) return;
  output_.Alert(
      {.kind = AlertKind::kDeposed,
       .text = "the database is another copy than before: what it acknowledged may be gone"});
  Depose(now);
}

void GlobalServer::OnServerRow(Time now, std::int32_t server_id,
                               const Result<Fence::ServerRow>& row) {
  now_ = now;
  std::vector<Lookup> answered;
  std::erase_if(lookups_, [&](Lookup& one) {
    const bool mine = one.request.server_id == server_id;
    if (mine) answered.push_back(std::move(one));
    return mine;
  });
  for (Lookup& lookup : answered) JudgeByRow(now, std::move(lookup), row);
  for (auto& [id, session] : sessions_) {
    if (session.server_id != server_id) continue;
    session.secret_asked = false;
    if (row.ok() && session.epoch == row.value().epoch) session.secret = row.value().secret;
  }
}

bool GlobalServer::Cleanup(Time now, std::int32_t server_id, std::int64_t epoch,
                           std::uint64_t session) {
  now_ = now;
  const SessionId id = FindSession(server_id, epoch);
  if (id == kNoSession) return false;
  const Session& found = sessions_.at(id);
  if (found.number != session) return false;
  if (found.state != State::kLive && found.state != State::kStopping) return false;
  if (found.state == State::kStopping) sessions_.at(id).state = State::kLive;
  StartEvict(now, id, "operators asked for it");
  return true;
}

bool GlobalServer::Cleanup(Time now, std::int32_t server_id) {
  for (const auto& [id, session] : sessions_) {
    if (session.server_id == server_id && session.state == State::kLive) {
      return Cleanup(now, server_id, session.epoch, session.number);
    }
  }
  return false;
}

std::vector<ServerView> GlobalServer::Servers(Time now) const {
  std::vector<ServerView> views;
  for (const auto& [id, session] : sessions_) {
    const bool connected = session.connection != 0;
    views.push_back({.server_id = session.server_id,
                     .epoch = session.epoch,
                     .session = session.number,
                     .unfenced = session.unfenced,
                     .live = session.state == State::kLive || session.state == State::kStopping,
                     .announced = session.announced,
                     .connection = session.connection,
                     .silent_for = now - (connected ? session.heard : session.silent_since),
                     .rights = directory_.CountsOf(id)});
  }
  return views;
}

// The database cannot fence them: operators decide, unless a command can stop them.
void GlobalServer::StopSilentOldPeers(Time now) {
  if (!options_.can_stop_servers) return;
  std::vector<SessionId> silent;
  for (const auto& [id, session] : sessions_) {
    if (session.unfenced && session.state == State::kLive && session.connection == 0 &&
        now >= session.silent_since + options_.stop_after && now >= session.stop_not_before &&
        InTheWay(now, id)) {
      silent.push_back(id);
    }
  }
  for (const SessionId id : silent) StopUnfenced(now, id);
}

// Short breaks are no loss.
void GlobalServer::TellLosses(Time now) {
  for (auto& [id, session] : sessions_) {
    if (session.state != State::kLive || session.connection != 0 || session.told_lost ||
        now < session.silent_since + options_.silence_max) {
      continue;
    }
    session.told_lost = true;
    const RightCounts rights = directory_.CountsOf(id);
    Tell(AlertKind::kLost, session,
         session.announced ? fmt::format("is lost; it has {} rights to write and {} to read",
                                         rights.modify, rights.share)
                           : fmt::format("has not announced its rights; nothing is granted before "
                                         "it does, or has not renewed its lease for {} ms",
                                         LeaseOf(session).said().count()));
  }
}

}  // namespace zeze::global
