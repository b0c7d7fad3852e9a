#include "zeze/registry/offline_book.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"

namespace zeze::registry {

Result<void> OfflineBook::Register(Time now, SessionId session, const OfflineNotice& notice) {
  if (notice.notify_id.size() > options_.text_bytes_max ||
      notice.context.size() > options_.context_bytes_max) {
    return Error(ErrorCode::kInvalidArgument, "an offline notice is too long");
  }
  if (Result<void> checked = CheckCandidate(session, notice.notify_id); !checked.ok()) {
    return checked;
  }
  const Key key = KeyOf(notice, session);
  auto at = records_.find(key);
  if (at == records_.end()) {
    if (records_.size() >= options_.notices_max) {
      return Error(ErrorCode::kOverloaded,
                   fmt::format("there are {} offline notices already", records_.size()));
    }
    at = records_.emplace(key, Record{}).first;
  }
  // Whoever is being asked about an earlier life has its serial to find out.
  asks_.erase(at->second.ask);
  at->second.ask = 0;
  at->second.watched = false;
  at->second.notice = notice;
  Bind(*at, session);
  if (notice.server_id >= 0) output_.SaveOffline(notice, session);
  AddCandidate(now, session, notice.notify_id, notice.server_id);
  return {};
}

Result<void> OfflineBook::Announce(Time now, SessionId session, const Announcement& announcement) {
  if (announcement.notify_id.size() > options_.text_bytes_max ||
      announcement.watched.size() > options_.watched_max) {
    return Error(ErrorCode::kInvalidArgument, "an announcement is too long");
  }
  if (Result<void> checked = CheckCandidate(session, announcement.notify_id); !checked.ok()) {
    return checked;
  }
  if (records_.size() + announcement.watched.size() > options_.notices_max) {
    return Error(ErrorCode::kOverloaded,
                 fmt::format("there are {} offline notices already", records_.size()));
  }
  const auto own = records_.find({announcement.server_id, announcement.notify_id, kNoSession});
  if (own != records_.end() && own->second.watched) {
    Erase(own);
  } else if (own != records_.end() && own->second.owner == kNoSession) {
    Returned(*own, session);
  }
  AddCandidate(now, session, announcement.notify_id, announcement.server_id);
  for (const Announcement::Watched& one : announcement.watched) {
    const Key key{one.server_id, announcement.notify_id, kNoSession};
    if (one.server_id < 0 || records_.contains(key)) continue;
    if (IsLive(one.server_id, announcement.notify_id)) continue;
    auto& entry = *records_.emplace(key, Record{}).first;
    entry.second.notice = {
        .server_id = one.server_id, .notify_id = announcement.notify_id, .serial = one.serial};
    entry.second.watched = true;
    output_.SaveOffline(entry.second.notice, kNoSession);
    WaitUntil(entry, now + options_.delay);
  }
  return {};
}

bool OfflineBook::IsLive(std::int32_t server_id, const std::string& notify_id) const {
  const auto candidates = candidates_.find(notify_id);
  if (candidates == candidates_.end()) return false;
  return std::any_of(candidates->second.begin(), candidates->second.end(),
                     [server_id](const auto& one) { return one.second == server_id; });
}

void OfflineBook::NormalClose(SessionId session) {
  const auto bound = bound_.find(session);
  if (bound != bound_.end()) {
    const std::set<Key> keys = bound->second;
    for (const Key& key : keys) Erase(records_.find(key));
  }
  ForgetReturned(session);
  RemoveCandidate(session);
}

void OfflineBook::ForgetReturned(SessionId session) {
  for (const auto& [ask, key] : asks_) {
    Record& record = records_.at(key);
    if (record.returned == session) record.returned = kNoSession;
  }
}

void OfflineBook::Close(Time now, SessionId session, const std::vector<ServiceKey>& services) {
  ForgetReturned(session);
  RemoveCandidate(session);
  const auto bound = bound_.find(session);
  if (bound == bound_.end()) return;
  const std::set<Key> keys = bound->second;
  for (const Key& key : keys) {
    auto& entry = *records_.find(key);
    Unbind(entry);
    entry.second.services = services;
    for (const ServiceKey& service : services) by_service_[service].insert(key);
    WaitUntil(entry, key.server_id < 0 ? now : now + options_.delay);
  }
}

void OfflineBook::OnService(SessionId session, const ServiceKey& service, SessionId from) {
  const auto found = by_service_.find(service);
  if (found != by_service_.end()) {
    const std::set<Key> keys = found->second;
    for (const Key& key : keys) {
      if (key.server_id >= 0) Returned(*records_.find(key), session);
    }
  }
  // Its old connection has not been noticed to be dead yet.
  const auto bound = bound_.find(from);
  if (from == session || bound == bound_.end()) return;
  const std::set<Key> keys = bound->second;
  for (const Key& key : keys) {
    const bool same_server =
        key.server_id >= 0 && std::to_string(key.server_id) == service.identity;
    if (same_server) Returned(*records_.find(key), session);
  }
}

void OfflineBook::Returned(Records::value_type& entry, SessionId session) {
  if (entry.second.ask != 0) {
    entry.second.returned = session;
    return;
  }
  Bind(entry, session);
  output_.SaveOffline(entry.second.notice, session);
}

void OfflineBook::OnAnswer(Time now, std::uint64_t ask, OfflineAnswer answer) {
  const auto asked = asks_.find(ask);
  if (asked == asks_.end()) return;
  const auto at = records_.find(asked->second);
  asks_.erase(asked);
  at->second.ask = 0;
  if (answer == OfflineAnswer::kTaken) return Erase(at);
  if (at->second.returned != kNoSession) {
    return Returned(*at, at->second.returned);
  }
  Ask(now, *at);
}

void OfflineBook::Tick(Time now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const auto at = records_.find(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    Ask(now, *at);
  }
}

void OfflineBook::Ask(Time now, Records::value_type& entry) {
  Record& record = entry.second;
  std::vector<SessionId> left;
  const auto candidates = candidates_.find(entry.first.notify_id);
  if (candidates != candidates_.end()) {
    for (const auto& [session, server_id] : candidates->second) {
      const bool itself = server_id >= 0 && server_id == entry.first.server_id;
      if (!itself && !record.tried.contains(session)) left.push_back(session);
    }
  }
  if (left.empty()) {
    record.tried.clear();
    record.overdue = true;
    return WaitUntil(entry, now + options_.retry);
  }
  const SessionId chosen = left[random_() % left.size()];
  record.tried.insert(chosen);
  record.ask = ++last_ask_;
  asks_[record.ask] = entry.first;
  output_.SendOfflineNotify(chosen, record.ask, record.notice);
}

void OfflineBook::Restore(const OfflineNotice& notice, SessionId owner, Time watched_since) {
  auto& entry = *records_.emplace(KeyOf(notice, owner), Record{}).first;
  entry.second.notice = notice;
  entry.second.watched = owner == kNoSession;
  if (entry.second.watched) {
    WaitUntil(entry, watched_since + options_.delay);
  } else {
    Bind(entry, owner);
  }
}

Result<void> OfflineBook::CheckCandidate(SessionId session, const std::string& notify_id) const {
  const auto found = candidate_for_.find(session);
  if (found == candidate_for_.end() || found->second.contains(notify_id) ||
      found->second.size() < options_.notify_ids_max) {
    return {};
  }
  return Error(ErrorCode::kOverloaded,
               fmt::format("this server takes part in {} kinds of offline notices already",
                           found->second.size()));
}

void OfflineBook::AddCandidate(Time now, SessionId session, const std::string& notify_id,
                               std::int32_t server_id) {
  candidates_[notify_id][session] = server_id;
  candidate_for_[session].insert(notify_id);
  // What nobody could take over so far: perhaps this one can.
  std::vector<Key> overdue;
  for (const auto& [due, key] : waiting_) {
    if (key.notify_id == notify_id && records_.at(key).overdue) overdue.push_back(key);
  }
  for (const Key& key : overdue) WaitUntil(*records_.find(key), now);
}

void OfflineBook::RemoveCandidate(SessionId session) {
  const auto found = candidate_for_.find(session);
  if (found == candidate_for_.end()) return;
  for (const std::string& notify_id : found->second) {
    const auto candidates = candidates_.find(notify_id);
    candidates->second.erase(session);
    if (candidates->second.empty()) candidates_.erase(candidates);
  }
  candidate_for_.erase(found);
}

void OfflineBook::Bind(Records::value_type& entry, SessionId session) {
  Unbind(entry);
  Record& record = entry.second;
  record.owner = session;
  record.tried.clear();
  record.returned = kNoSession;
  record.overdue = false;
  bound_[session].insert(entry.first);
}

void OfflineBook::Unbind(Records::value_type& entry) {
  Record& record = entry.second;
  const auto bound = bound_.find(record.owner);
  if (bound != bound_.end()) {
    bound->second.erase(entry.first);
    if (bound->second.empty()) bound_.erase(bound);
  }
  record.owner = kNoSession;
  waiting_.erase({record.due, entry.first});
  for (const ServiceKey& service : record.services) {
    const auto found = by_service_.find(service);
    if (found == by_service_.end()) continue;
    found->second.erase(entry.first);
    if (found->second.empty()) by_service_.erase(found);
  }
  record.services.clear();
}

void OfflineBook::WaitUntil(Records::value_type& entry, Time due) {
  waiting_.erase({entry.second.due, entry.first});
  entry.second.due = due;
  waiting_.emplace(due, entry.first);
}

void OfflineBook::Erase(Records::iterator at) {
  Unbind(*at);
  asks_.erase(at->second.ask);
  if (at->first.server_id >= 0) output_.EraseOffline(at->first.server_id, at->first.notify_id);
  records_.erase(at);
}

}  // namespace zeze::registry
