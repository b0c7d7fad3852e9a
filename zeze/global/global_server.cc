#include "zeze/global/global_server.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/global/directory.h"
#include "zeze/global/lease.h"
#include "zeze/global/messages.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

namespace {

// Reads of the database for logins under way: strangers cost no more.
constexpr std::size_t kLookupsMax = 16;
constexpr std::chrono::nanoseconds kRefusalPeriod = std::chrono::minutes(1);

// Epochs of earlier builds have no secret and prove nothing.
bool Proves(const LoginProof& proof, const std::string& secret) {
  return secret.empty() ? proof == nullptr : proof != nullptr && proof(secret);
}

}  // namespace

std::string_view ToString(AlertKind kind) {
  switch (kind) {
    case AlertKind::kLost:
      return "lost";
    case AlertKind::kReturned:
      return "returned";
    case AlertKind::kEvicted:
      return "evicted";
    case AlertKind::kFreed:
      return "freed";
    case AlertKind::kStopFailed:
      return "stop_failed";
    case AlertKind::kRecovering:
      return "recovering";
    case AlertKind::kServing:
      return "serving";
    case AlertKind::kDeposed:
      return "deposed";
    case AlertKind::kRefused:
      return "refused";
    case AlertKind::kYielded:
      return "yielded";
    case AlertKind::kCutFromDatabase:
      return "cut_from_database";
    case AlertKind::kStuck:
      return "stuck";
  }
  return "unknown";
}

GlobalServer::GlobalServer(const GlobalOptions& options, GlobalOutput& output)
    : options_(options), output_(output), directory_(*this) {
  directory_.Pause();
}

// --- start and recovery --------------------------------------------------------------------------

void GlobalServer::Start(Time now) {
  ZEZE_CHECK(phase_ == Phase::kNew);
  now_ = now;
  phase_ = Phase::kRaisingTerm;
  output_.RaiseTerm();
}

void GlobalServer::OnTermRaised(Time now, const Result<std::int64_t>& term) {
  if (phase_ != Phase::kRaisingTerm) return;
  now_ = now;
  if (!term.ok()) {
    retry_at_ = now + options_.retry_delay;
    return;
  }
  term_ = term.value();
  phase_ = Phase::kListing;  // After the term is raised: who starts later sees it (rule 43).
  output_.ListLive();
}

void GlobalServer::FinishRecovery() {
  if (phase_ != Phase::kRecovering || now_ < recovery_until_) return;
  for (const auto& [id, session] : sessions_) {
    if (!session.announced) return;
  }
  phase_ = Phase::kServing;
  output_.Alert({.kind = AlertKind::kServing,
                 .text = fmt::format("serves, term {}, {} servers, {} keys", term_,
                                     sessions_.size(), directory_.key_count())});
  directory_.Resume();
}

// --- sessions ------------------------------------------------------------------------------------

SessionId GlobalServer::FindSession(std::int32_t server_id, std::int64_t epoch) const {
  for (const auto& [id, session] : sessions_) {
    if (session.server_id == server_id && session.epoch == epoch) return id;
  }
  return kNoSession;
}

SessionId GlobalServer::AddSession(std::int32_t server_id, std::int64_t epoch) {
  SessionId id = 0;
  while (sessions_.contains(id)) ++id;
  sessions_[id] = {.server_id = server_id,
                   .epoch = epoch,
                   .number = ++last_session_,
                   .seen = now_,
                   .known_since = lists_};
  return id;
}

LeaseOptions GlobalServer::LeaseOf(const Session& session) const {
  LeaseOptions lease = options_.lease;
  if (session.lease.count() > 0 && !options_.unsafe_own_lease) {
    lease.duration = std::min(session.lease, kLeaseMax);  // No server starts with a longer one.
  }
  return lease;
}

SessionId GlobalServer::SessionOf(ConnectionId connection) const {
  const auto at = connections_.find(connection);
  return at == connections_.end() ? kNoSession : at->second;
}

void GlobalServer::OnKeepAlive(Time now, ConnectionId from) {
  Heard(now, from);
}

void GlobalServer::Bind(Time now, SessionId id, ConnectionId connection) {
  Unbind(now, id);
  Session& session = sessions_.at(id);
  session.connection = connection;
  session.heard = now;
  session.sign = now;
  if (session.wanting == Wanting::kYes || session.wanting == Wanting::kYielded) {
    session.wanting = Wanting::kNo;
    output_.Unwant(session.server_id, session.epoch, term_);
  }
  if (std::exchange(session.told_lost, false)) {
    Tell(AlertKind::kReturned, session, "is connected again");
  }
  connections_[connection] = id;
}

bool GlobalServer::Disconnect(Time now, SessionId id) {
  Session& session = sessions_.at(id);
  if (session.connection == 0) return false;
  if (last_heard_.id == id) last_heard_ = {};
  connections_.erase(session.connection);
  output_.Close(session.connection);
  session.connection = 0;
  session.silent_since = now;
  session.sign = now;
  return true;
}

void GlobalServer::Unbind(Time now, SessionId id) {
  if (!Disconnect(now, id)) return;
  directory_.Unreachable(id);  // Its questions are kept.
  std::erase_if(questions_, [id](const auto& entry) { return entry.second.holder == id; });
}

void GlobalServer::DropRights(SessionId id) {
  directory_.Drop(id);
  std::erase_if(questions_, [id](const auto& entry) { return entry.second.holder == id; });
  std::erase_if(kept_, [id](const auto& entry) { return entry.second.question.holder == id; });
}

void GlobalServer::Remove(SessionId id) {
  DropRights(id);
  if (last_heard_.id == id) last_heard_ = {};
  sessions_.erase(id);
  FinishRecovery();
}

// Who may have a session (rules 40, 41, 42, 44).
LoginOutcome GlobalServer::Judge(const LoginRequest& request) const {
  if (phase_ == Phase::kDeposed) return LoginOutcome::kOldTerm;
  if (!accepting()) return LoginOutcome::kBusy;
  const auto fenced = fenced_.find(request.server_id);
  if (fenced != fenced_.end() && request.epoch <= fenced->second) return LoginOutcome::kFenced;
  for (const auto& [id, session] : sessions_) {
    if (session.server_id != request.server_id) continue;
    if (session.epoch > request.epoch) return LoginOutcome::kFenced;
    if (session.epoch != request.epoch) continue;
    return session.state == State::kLive ? LoginOutcome::kAccepted : LoginOutcome::kBusy;
  }
  if (options_.unsafe_ignore_start_term) return LoginOutcome::kAccepted;
  // Started under a later term: somebody else is this shard's Global now.
  if (request.start_term > term_) return LoginOutcome::kOldTerm;
  // Started before this Global listed the live servers, and was not among them: fenced or finished.
  return request.start_term < term_ ? LoginOutcome::kFenced : LoginOutcome::kAccepted;
}

void GlobalServer::Reply(ConnectionId to, LoginOutcome outcome) {
  output_.SendLoginReply(to, {.outcome = outcome, .term = term_});
  if (outcome != LoginOutcome::kAccepted) output_.Close(to);
}

void GlobalServer::OnLogin(Time now, ConnectionId from, LoginRequest request) {
  now_ = now;
  if (const LoginOutcome outcome = Judge(request); outcome != LoginOutcome::kAccepted) {
    Reply(from, outcome);
    return;
  }
  if (options_.unsafe_believe_logins) {
    Accept(now, from, request, "");
    return;
  }
  const SessionId known = FindSession(request.server_id, request.epoch);
  if (known != kNoSession && sessions_.at(known).secret.has_value()) {
    const std::string secret = *sessions_.at(known).secret;
    JudgeByRow(
        now, {.from = from, .request = std::move(request)},
        Fence::ServerRow{.epoch = sessions_.at(known).epoch, .live = true, .secret = secret});
    return;
  }
  if (lookups_.size() >= kLookupsMax) {
    Reply(from, LoginOutcome::kBusy);
    return;
  }
  const std::int32_t server_id = request.server_id;
  lookups_.push_back({.from = from, .request = std::move(request)});
  output_.ReadServer(server_id);
}

// What a login says of epochs is believed only if the database says it too (rule 58).
void GlobalServer::JudgeByRow(Time now, Lookup lookup, const Result<Fence::ServerRow>& row) {
  const LoginRequest& request = lookup.request;
  LoginOutcome outcome = Judge(request);
  if (outcome == LoginOutcome::kAccepted && !row.ok()) outcome = LoginOutcome::kBusy;
  if (outcome != LoginOutcome::kAccepted) {
    Reply(lookup.from, outcome);
    return;
  }
  if (row.value().epoch < request.epoch) {
    // The row may have been read before the login came.
    if (!std::exchange(lookup.asked_again, true)) {
      const std::int32_t server_id = request.server_id;
      lookups_.push_back(std::move(lookup));
      output_.ReadServer(server_id);
      return;
    }
    RefuseLogin(now, lookup.from, request,
                fmt::format("the database has epoch {}", row.value().epoch));
    return;
  }
  if (row.value().epoch > request.epoch || !row.value().live) {
    Reply(lookup.from, LoginOutcome::kFenced);
    return;
  }
  const std::string& secret = row.value().secret;
  if (!Proves(request.proves, secret)) {
    RefuseLogin(now, lookup.from, request,
                "it does not prove that it is the process of this epoch: it uses another database, "
                "or is a stranger");
    return;
  }
  if (IsLate(request)) {
    Reply(lookup.from, LoginOutcome::kBusy);
    return;
  }
  Accept(now, lookup.from, request, secret);
}

// It was stuck on a connection that the server has given up (hole 33), or is from before a mark.
bool GlobalServer::IsLate(const LoginRequest& request) const {
  const SessionId id = FindSession(request.server_id, request.epoch);
  if (id == kNoSession || options_.unsafe_late_logins) return false;
  const Session& session = sessions_.at(id);
  return (session.logins > 0 && request.serial <= session.logins) ||
         request.yields < session.yields;
}

bool GlobalServer::OnLoginPart(Time now, std::int32_t server_id, std::int64_t epoch,
                               const LoginProof& proves) {
  now_ = now;
  const SessionId id = FindSession(server_id, epoch);
  if (id == kNoSession || sessions_.at(id).state != State::kLive) return false;
  Session& session = sessions_.at(id);
  if (!session.secret.has_value()) {  // Its last part waits for it anyway.
    if (!std::exchange(session.secret_asked, true)) output_.ReadServer(server_id);
    return false;
  }
  if (!Proves(proves, *session.secret)) return false;
  session.sign = now;
  return true;
}

void GlobalServer::RefuseLogin(Time now, ConnectionId from, const LoginRequest& request,
                               const std::string& why) {
  now_ = now;
  ++refused_count_;
  const std::string text = fmt::format("a login as server {} (epoch {}) is refused: {}",
                                       request.server_id, request.epoch, why);
  if (refusal_told_ == Time::min() || now >= refusal_told_ + kRefusalPeriod) {
    output_.Alert(
        {.kind = AlertKind::kRefused,
         .text = fmt::format("{}; {} in all since this was told last", text, refused_count_)});
    refused_count_ = 0;
    refusal_told_ = now;
  }
  output_.SendLoginReply(from, {.outcome = LoginOutcome::kRefused, .term = term_, .text = text});
  output_.Close(from);
}

void GlobalServer::Accept(Time now, ConnectionId from, const LoginRequest& request,
                          const std::string& secret) {
  std::vector<SessionId> older;
  for (const auto& [id, session] : sessions_) {
    if (session.server_id == request.server_id && session.epoch < request.epoch &&
        session.state == State::kLive && !session.unfenced) {
      older.push_back(id);
    }
  }
  for (const SessionId id : older) Supersede(now, id);

  SessionId id = FindSession(request.server_id, request.epoch);
  const bool fresh = id == kNoSession;
  if (fresh) id = AddSession(request.server_id, request.epoch);
  sessions_.at(id).lease = std::max(sessions_.at(id).lease, request.lease);
  sessions_.at(id).secret = secret;
  sessions_.at(id).logins = std::max(sessions_.at(id).logins, request.serial);
  sessions_.at(id).yields = std::max(sessions_.at(id).yields, request.yields);
  sessions_.at(id).logged_in = true;
  Bind(now, id, from);
  // A session that is new in this term has nothing; one that was listed has what it says; one that
  // was here before has at most what the book says.
  const bool known = fresh || sessions_.at(id).announced;
  const std::vector<SessionId> wrong = directory_.Announce(id, request.rights, known);
  sessions_.at(id).announced = true;
  if (!wrong.empty()) {
    EvictTheContradictory(now, wrong);
    return;
  }
  output_.SendLoginReply(from, {.outcome = LoginOutcome::kAccepted, .term = term_});
  FinishRecovery();
}

bool GlobalServer::unfenced() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& entry) { return entry.second.unfenced; });
}

bool GlobalServer::OnUnfencedLogin(Time now, ConnectionId from, std::int32_t server_id,
                                   bool again) {
  now_ = now;
  if (phase_ != Phase::kRecovering && phase_ != Phase::kServing) return false;
  if (options_.unfenced_wait == Time{0} || SessionOf(from) != kNoSession) return false;
  SessionId id = FindSession(server_id, kUnfencedEpoch);
  if (id == kNoSession) {
    if (again) return false;
    id = AddSession(server_id, kUnfencedEpoch);
  } else if (sessions_.at(id).state != State::kLive || sessions_.at(id).connection != 0) {
    return false;
  } else if (!again) {
    DropRights(id);
    sessions_.at(id).number = ++last_session_;
  }
  Session& session = sessions_.at(id);
  session.unfenced = true;
  session.announced = true;
  Bind(now, id, from);
  return true;
}

void GlobalServer::OnNormalClose(Time now, ConnectionId from) {
  now_ = now;
  const SessionId id = SessionOf(from);
  if (id == kNoSession) return;
  Session& session = sessions_.at(id);
  if (!session.unfenced) {
    std::int64_t& fenced = fenced_[session.server_id];
    fenced = std::max(fenced, session.epoch);  // What has ended does not come back.
  }
  if (options_.unsafe_fail_before_close) {
    Unbind(now, id);
    ExpireKept(Time::max());
  }
  // It has saved everything: whoever waits for it is granted, nobody is refused (rule 67).
  Disconnect(now, id);
  Remove(id);
}

void GlobalServer::OnClosed(Time now, ConnectionId connection) {
  now_ = now;
  std::erase_if(lookups_, [connection](const Lookup& one) { return one.from == connection; });
  const SessionId id = SessionOf(connection);
  if (id != kNoSession) Unbind(now, id);
}

// --- time ----------------------------------------------------------------------------------------

// Old peers say something only every few seconds; their connections are left to TCP.
void GlobalServer::CloseTheSilent(Time now) {
  std::vector<SessionId> silent;
  for (const auto& [id, session] : sessions_) {
    if (session.connection != 0 && !session.unfenced &&
        now >= session.heard + options_.silence_max) {
      silent.push_back(id);
    }
  }
  for (const SessionId id : silent) Unbind(now, id);
}

void GlobalServer::Tick(Time now) {
  now_ = now;
  if (retry_at_ != Time{0} && now >= retry_at_) {
    retry_at_ = Time{0};
    if (phase_ == Phase::kRaisingTerm) output_.RaiseTerm();
    if (phase_ == Phase::kListing) output_.ListLive();
  }
  if (phase_ != Phase::kRecovering && phase_ != Phase::kServing) return;
  FinishRecovery();
  LookAtDatabase(now);
  AskWhoIsBack(now);
  ExpireQuestions(now);
  CloseTheSilent(now);
  ExpireKept(now);
  TellLosses(now);
  StopSilentOldPeers(now);
  JudgeServers(now);
  std::vector<SessionId> due;
  for (const auto& [id, session] : sessions_) {
    if (session.state != State::kLive && now >= session.due) due.push_back(id);
  }
  for (const SessionId id : due) {
    Session& session = sessions_.at(id);
    if (session.state == State::kFreeing) {
      if (!session.unfenced) output_.LeaseOver(session.server_id, session.epoch);
      Freed(id, "its time is over");
    } else {
      session.due = Time::max();
      if (session.state == State::kEvicting) {
        output_.Evict(session.server_id, session.epoch, term_, session.unless);
      }
    }
  }
}

GlobalServer::Time GlobalServer::NextDeadline() const {
  Time next = std::min(retry_at_ != Time{0} ? retry_at_ : Time::max(), term_due_);
  if (phase_ == Phase::kRecovering && now_ < recovery_until_) {
    next = std::min(next, recovery_until_);
  }
  if (accepting()) {
    if (!listing_) next = std::min(next, list_due_);
    if (!reading_yields_ && AnyWanted()) next = std::min(next, yields_due_);
  }
  if (!questions_.empty()) {
    next = std::min(next, questions_.begin()->second.asked + options_.reduce_timeout);
  }
  if (!kept_.empty()) next = std::min(next, kept_.begin()->first);
  for (const auto& [fails, kept] : kept_) {
    if (sessions_.at(kept.question.holder).connection != 0) next = std::min(next, now_);
  }
  for (const auto& [id, session] : sessions_) {
    if (session.connection != 0 && !session.unfenced) {
      next = std::min(next, session.heard + options_.silence_max);
    }
    if (session.state != State::kLive) {
      next = std::min(next, session.due);
      continue;
    }
    if (session.connection != 0 || phase_ == Phase::kDeposed) continue;
    if (!session.told_lost) next = std::min(next, session.silent_since + options_.silence_max);
    next = std::min(next, now_ + options_.retry_delay);  // To judge it again.
  }
  return next;
}

}  // namespace zeze::global
