// How GlobalServer knows which servers live, and what it does about one that is in the way of
// others (rules 59 to 66).

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
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

namespace {

// Looks that are further apart say nothing about the time between.
constexpr std::chrono::nanoseconds kLooksApartMax = std::chrono::seconds(2);
// A short break of a connection heals by itself; whoever yields loses its cache.
constexpr std::chrono::nanoseconds kWantAfter = std::chrono::milliseconds(500);
constexpr std::chrono::nanoseconds kWantPeriod = std::chrono::seconds(2);
// While nothing is granted a request is not refused; its caller waits for so long and more.
constexpr std::chrono::nanoseconds kAsksFor = std::chrono::seconds(30);

std::int64_t Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

}  // namespace

void GlobalServer::LookAtDatabase(Time now) {
  if (now >= term_due_) {
    term_due_ = Time::max();
    output_.ReadTerm();
  }
  if (!listing_ && now >= list_due_) {
    listing_ = true;
    ++lists_;
    list_due_ = now + options_.term_period;
    output_.ListLive();
  }
  if (!reading_yields_ && now >= yields_due_ && AnyWanted()) {
    reading_yields_ = true;
    yields_due_ = now + options_.yield_period;
    output_.ReadYields();
  }
}

void GlobalServer::OnLiveServers(Time now, const Result<std::vector<LiveServer>>& servers) {
  now_ = now;
  listing_ = false;
  if (phase_ == Phase::kListing) {
    if (servers.ok()) {
      StartListing(now, servers.value());
    } else {
      retry_at_ = now + options_.retry_delay;
    }
    return;
  }
  if (!accepting()) return;
  if (!servers.ok()) {
    counting_since_ = Time::max();
    return;
  }
  if (counting_since_ == Time::max() || now - looked_ > kLooksApartMax) counting_since_ = now;
  looked_ = now;
  NoteLeases(now, servers.value());
}

void GlobalServer::StartListing(Time now, const std::vector<LiveServer>& servers) {
  looked_ = now;
  counting_since_ = now;
  for (const LiveServer& server : servers) {
    const SessionId id = AddSession(server.server_id, server.epoch);
    Session& session = sessions_.at(id);
    session.silent_since = now;
    session.sign = now;
    session.lease = server.lease;
    session.renewals = server.renew_seq;
    // Fenced by a Global or a successor, and nobody has waited for the end of its lease.
    if (server.fenced) Fenced(now, id, server.renew_seq);
  }
  phase_ = Phase::kRecovering;
  term_due_ = now + options_.term_period;
  list_due_ = now + options_.term_period;
  recovery_until_ = now + options_.unfenced_wait;
  if (!sessions_.empty()) {
    output_.Alert({.kind = AlertKind::kRecovering,
                   .text = fmt::format("term {} begins: {} servers must announce their rights",
                                       term_, sessions_.size())});
  }
  FinishRecovery();
}

void GlobalServer::NoteRenewals(Time now, Session& session, std::int64_t renewals) {
  if (session.renewals == renewals) return;
  session.renewals = renewals;
  session.seen = now;
  if (std::exchange(session.told_cut, false)) {
    Tell(AlertKind::kReturned, session, "renews its lease again");
  }
}

void GlobalServer::NoteLeases(Time now, const std::vector<LiveServer>& servers) {
  std::map<std::pair<std::int32_t, std::int64_t>, const LiveServer*> listed;
  for (const LiveServer& server : servers) listed[{server.server_id, server.epoch}] = &server;
  std::vector<SessionId> over;
  std::vector<std::pair<SessionId, std::int64_t>> fenced;
  for (auto& [id, session] : sessions_) {
    // One that came after this list was asked for may be missing in it.
    if (session.unfenced || session.known_since >= lists_) continue;
    const auto at = listed.find({session.server_id, session.epoch});
    if (at == listed.end()) {
      // A process that has ended in order says so itself, if it can (rule 47).
      if (session.connection == 0) over.push_back(id);
    } else if (!at->second->fenced) {
      NoteRenewals(now, session, at->second->renew_seq);
    } else if (session.state != State::kFreeing) {
      fenced.emplace_back(id, at->second->renew_seq);
    }
  }
  for (const auto& [id, renewals] : fenced) Fenced(now, id, renewals);
  for (const SessionId id : over) {
    const Session& session = sessions_.at(id);
    std::int64_t& last = fenced_[session.server_id];
    last = std::max(last, session.epoch);
    Freed(id, "the database shows that it has ended");
  }
}

GlobalServer::Time GlobalServer::SilentFor(Time now, const Session& session) const {
  if (counting_since_ == Time::max() || now - looked_ > kLooksApartMax) return Time{0};
  return now - std::max(session.seen, counting_since_);
}

bool GlobalServer::InTheWay(Time now, SessionId id) const {
  const Session& session = sessions_.at(id);
  if (now < session.in_the_way_until) return true;
  const bool asked =
      asked_while_recovering_ != Time::min() && now < asked_while_recovering_ + kAsksFor;
  if (!session.announced && asked) return true;
  return std::any_of(questions_.begin(), questions_.end(),
                     [id](const auto& entry) { return entry.second.holder == id; }) ||
         std::any_of(kept_.begin(), kept_.end(),
                     [id](const auto& entry) { return entry.second.question.holder == id; });
}

// What is known of a server is whether it is connected, and whether it renews its lease. There is
// no majority rule: the database tells a dead server from one that this Global cannot reach.
void GlobalServer::JudgeServers(Time now) {
  if (connections_.empty()) return;  // Nobody could be granted anything.
  std::vector<std::pair<SessionId, bool>> judged;
  for (auto& [id, session] : sessions_) {
    if (session.state != State::kLive || session.unfenced) continue;
    const Time silent = SilentFor(now, session);
    const bool renews = silent < LeaseOf(session).duration;
    if (!renews && session.connection != 0 && !std::exchange(session.told_cut, true)) {
      Tell(AlertKind::kCutFromDatabase, session,
           fmt::format("is connected but has not renewed its lease for {} ms: it is cut off from "
                       "the database, or hangs. It is evicted after {} ms without a renewal if "
                       "others need its records, and loses what it has not saved then. Look at its "
                       "log and at its network",
                       Milliseconds(silent), Milliseconds(options_.database_wait)));
    }
    if (session.connection == 0 || !renews) judged.emplace_back(id, renews);
  }
  for (const auto& [id, renews] : judged) {
    if (InTheWay(now, id)) JudgeInTheWay(now, id, renews);
  }
}

void GlobalServer::JudgeInTheWay(Time now, SessionId id, bool renews) {
  Session& session = sessions_.at(id);
  if (!renews) {
    // Also while it connects again: its questions have become too old.
    const bool connected = session.connection != 0 || session.told_cut;
    if (connected && options_.unsafe_evict_only_unconnected) return;
    if (connected && SilentFor(now, session) < options_.database_wait) return;
    // It may have renewed its lease since the last look.
    StartEvict(now, id,
               connected ? "it is cut off from the database and in the way of others"
                         : "it does not renew its lease, has no connection and is in the way of "
                           "others",
               {.renewed_since = session.renewals});
    return;
  }
  if (now >= session.silent_since + kWantAfter) Want(now, session);
  if (now < session.sign + options_.passive_wait) return;
  const YieldMark since = session.logged_in ? YieldMark{.number = session.yields, .term = 0}
                                            : YieldMark{.number = -1, .term = term_};
  StartEvict(now, id,
             fmt::format("it renews its lease, but has neither come back nor given up its rights "
                         "for {} ms, and is in the way of others",
                         Milliseconds(options_.passive_wait)),
             {.yielded_since = since});
}

// --- yields --------------------------------------------------------------------------------------

bool GlobalServer::AnyWanted() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& entry) { return entry.second.wanting == Wanting::kYes; });
}

void GlobalServer::Want(Time now, Session& session) {
  // Again and again: a removal of the row before may come late.
  const bool open = session.wanting == Wanting::kNo || session.wanting == Wanting::kYes;
  if (!open || now < session.want_not_before) return;
  session.want_not_before = now + kWantPeriod;
  session.wanting = Wanting::kAsking;
  output_.Want(session.server_id, session.epoch, term_);
}

void GlobalServer::OnWanted(Time now, std::int32_t server_id, std::int64_t epoch,
                            const Result<bool>& written) {
  now_ = now;
  if (written.ok() && !written.value()) {
    if (phase_ != Phase::kDeposed) Depose(now);
    return;
  }
  const SessionId id = FindSession(server_id, epoch);
  if (id == kNoSession || sessions_.at(id).wanting != Wanting::kAsking) return;
  Session& session = sessions_.at(id);
  if (!written.ok()) {
    session.wanting = Wanting::kNo;
    session.want_not_before = now + options_.retry_delay;
    return;
  }
  session.wanting = Wanting::kYes;
  yields_due_ = std::min(yields_due_, now + options_.yield_period);
  if (session.connection != 0) {  // It has come back meanwhile.
    session.wanting = Wanting::kNo;
    output_.Unwant(server_id, epoch, term_);
  }
}

void GlobalServer::OnYields(Time now, const Result<std::vector<YieldedServer>>& yields) {
  now_ = now;
  reading_yields_ = false;
  if (!yields.ok() || !accepting()) return;
  for (const YieldedServer& yielded : yields.value()) {
    const SessionId id = FindSession(yielded.server_id, yielded.epoch);
    if (id == kNoSession) continue;
    const Session& session = sessions_.at(id);
    if (session.state != State::kLive) continue;
    // A server that has logged in must have yielded since; another one, for this Global or a later.
    const bool counts =
        session.logged_in ? yielded.mark.number > session.yields || options_.unsafe_any_yield_number
                          : (yielded.mark.term >= term_ || options_.unsafe_any_yield_term) &&
                                yielded.mark.number > session.yields;
    if (counts) Yielded(now, id, yielded.mark);
  }
}

// It has nothing any more: it saved everything and stopped using its rights before it said so.
void GlobalServer::Yielded(Time now, SessionId id, const YieldMark& mark) {
  Session& session = sessions_.at(id);
  const RightCounts rights = directory_.CountsOf(id);
  if (session.wanting == Wanting::kYes) session.wanting = Wanting::kYielded;
  session.yields = mark.number;
  session.announced = true;
  Tell(AlertKind::kYielded, session,
       fmt::format("has no connection here; it has saved everything and given up its rights, {} to "
                   "write and {} to read",
                   rights.modify, rights.share));
  Unbind(now, id);
  DropRights(id);
  FinishRecovery();
}

void GlobalServer::TellStuck(const Session& session) {
  Tell(AlertKind::kStuck, session,
       fmt::format(
           "renews its lease, but has not answered for {} ms while others wait for its "
           "records: it cannot save, or hangs. Look at its log and at locks in the "
           "database. An operator takes its rights away with `zeze admin cleanup {} --global "
           "HOST:PORT --key YOUR.key --reason \"...\"`, after the delay and the approvals that "
           "this Global asks for; what it has not saved is lost then",
           Milliseconds(options_.reduce_timeout), session.server_id));
}

}  // namespace zeze::global
