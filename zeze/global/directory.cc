#include "zeze/global/directory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/hash.h"
#include "zeze/global/compact_key.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

namespace {

constexpr std::size_t kNone = ~std::size_t{0};

std::uint64_t Load(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

// --- one entry ----------------------------------------------------------------------------------

bool Directory::Entry::Shares(SessionId session) const {
  if (share == session) return true;
  return sharers != nullptr &&
         std::find(sharers->begin(), sharers->end(), session) != sharers->end();
}

void Directory::Entry::AddShare(SessionId session) {
  if (Shares(session)) return;
  if (share == kNoSession) {
    share = session;
    return;
  }
  if (sharers == nullptr) sharers = std::make_unique<std::vector<SessionId>>();
  sharers->push_back(session);
}

void Directory::Entry::RemoveShare(SessionId session) {
  if (sharers != nullptr) {
    std::erase(*sharers, session);
    if (share == session && !sharers->empty()) {
      share = sharers->back();
      sharers->pop_back();
      session = kNoSession;
    }
    if (sharers->empty()) sharers.reset();
  }
  if (share == session) share = kNoSession;
}

Right Directory::Entry::RightOf(SessionId session) const {
  if (modify == session) return Right::kModify;
  return Shares(session) ? Right::kShare : Right::kInvalid;
}

void Directory::Entry::Set(SessionId session, Right right) {
  if (modify == session) modify = kNoSession;
  RemoveShare(session);
  if (right == Right::kModify) modify = session;
  if (right == Right::kShare) AddShare(session);
}

template <typename Visit>
void Directory::Entry::ForEachHolder(Visit visit) const {
  if (modify != kNoSession) visit(modify, Right::kModify);
  if (share != kNoSession) visit(share, Right::kShare);
  if (sharers == nullptr) return;
  for (const SessionId session : *sharers) visit(session, Right::kShare);
}

// --- the directory ------------------------------------------------------------------------------

std::size_t Directory::Hash::operator()(std::string_view key) const {
  // Keys are chosen by players too: nobody outside can know which of them fall into one place.
  std::uint64_t hash = CombineHash(CombinedHashStart(), key.size());
  const char* at = key.data();
  std::size_t left = key.size();
  for (; left > 8; left -= 8, at += 8) hash = CombineHash(hash, Load(at));
  std::uint64_t last = 0;
  if (key.size() >= 8) {
    last = Load(key.data() + key.size() - 8);
  } else {
    std::memcpy(&last, at, left);
  }
  return HashInteger(hash ^ last);
}

Directory::Entries::iterator Directory::FindOrAdd(std::string_view key) {
  if (CompactKey::Fits(key)) return entries_.try_emplace(CompactKey(key)).first;
  const auto at = entries_.find(key);
  return at != entries_.end() ? at : entries_.try_emplace(CompactKey(key)).first;
}

void Directory::Set(Entry& entry, SessionId session, Right right) {
  const Right before = entry.RightOf(session);
  if (before == right) return;
  entry.Set(session, right);
  if (session >= counts_.size()) counts_.resize(std::size_t{session} + 1);
  RightCounts& counts = counts_[session];
  if (before == Right::kShare) --counts.share;
  if (before == Right::kModify) --counts.modify;
  if (right == Right::kShare) ++counts.share;
  if (right == Right::kModify) ++counts.modify;
}

void Directory::EraseIfEmpty(Entries::iterator at) {
  if (at->second.empty()) entries_.erase(at);
}

bool Directory::Satisfied(const Entry& entry, const Request& request) {
  bool satisfied = true;
  entry.ForEachHolder([&](SessionId holder, Right right) {
    if (holder == request.session) return;
    if (request.wanted == Right::kModify || right == Right::kModify) satisfied = false;
  });
  return satisfied;
}

void Directory::Acquire(SessionId session, std::uint64_t request, std::string_view key,
                        Right wanted, WhileWaiting meanwhile, DirectoryOutput::Time now) {
  ZEZE_CHECK(wanted != Right::kInvalid);
  const auto at = FindOrAdd(key);
  Entry& entry = at->second;
  const Request asked{.session = session,
                      .wanted = wanted,
                      .hangs = meanwhile == WhileWaiting::kHangs,
                      .number = request,
                      .since = now};
  if (!paused_ && entry.waiting == nullptr && Satisfied(entry, asked)) {  // The usual case.
    const Right right = std::max(wanted, entry.RightOf(session));
    Set(entry, session, right);
    output_.Granted(session, request, key, right);
    return;
  }
  if (entry.waiting == nullptr) entry.waiting = std::make_unique<Waiting>();
  const auto asks_it = [session](const Question& q) { return q.holder == session; };
  if (asked.hangs &&
      std::any_of(entry.waiting->questions.begin(), entry.waiting->questions.end(), asks_it)) {
    output_.Refused(session, request, key, wanted, Refusal::kDeadlock, kNoSession);
    return;
  }
  entry.waiting->requests.push_back(asked);
  if (entry.waiting->requests.size() == 1) Advance(at);
}

void Directory::RefuseWhatHangs(SessionId session, std::string_view key, Waiting& waiting) {
  const auto at = std::find_if(
      waiting.requests.begin(), waiting.requests.end(),
      [session](const Request& request) { return request.session == session && request.hangs; });
  if (at == waiting.requests.end()) return;
  const Request refused = *at;
  waiting.requests.erase(at);  // Not the first one, which is never asked about its own key.
  output_.Refused(session, refused.number, key, refused.wanted, Refusal::kDeadlock, kNoSession);
}

void Directory::Ask(std::string_view key, Entry& entry) {
  Waiting& waiting = *entry.waiting;
  const Request first = waiting.requests.front();
  const Right to = waiting.asked_for();
  std::vector<SessionId> holders;
  entry.ForEachHolder([&](SessionId holder, Right right) {
    if (holder != first.session && right > to) holders.push_back(holder);
  });
  for (const SessionId holder : holders) {
    RefuseWhatHangs(holder, key, waiting);
    const std::uint64_t serial = ++last_serial_;
    waiting.questions.push_back({holder, serial});
    output_.Reduce(holder, serial, key, to, first.since);
  }
}

void Directory::Advance(Entries::iterator at) {
  Entry& entry = at->second;
  while (!paused_ && entry.waiting != nullptr && entry.waiting->questions.empty()) {
    Waiting& waiting = *entry.waiting;
    const Request first = waiting.requests.front();
    if (first.session != kNoSession && !waiting.failed && !Satisfied(entry, first)) {
      Ask(at->first.view(), entry);
      continue;
    }
    const bool failed = std::exchange(waiting.failed, false);
    const Refusal refusal = waiting.refusal;
    const SessionId culprit = waiting.culprit;
    waiting.requests.pop_front();
    if (waiting.requests.empty()) entry.waiting.reset();
    if (first.session == kNoSession) continue;
    if (failed) {
      output_.Refused(first.session, first.number, at->first.view(), first.wanted, refusal,
                      culprit);
      continue;
    }
    const Right right = std::max(first.wanted, entry.RightOf(first.session));
    Set(entry, first.session, right);
    output_.Granted(first.session, first.number, at->first.view(), right);
  }
  EraseIfEmpty(at);
}

Right Directory::Release(SessionId session, std::string_view key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return Right::kInvalid;
  const Right held = at->second.RightOf(session);
  Set(at->second, session, Right::kInvalid);
  // A question that crossed this is still answered: the session says then that it has nothing.
  Advance(at);
  return held;
}

std::size_t Directory::FindQuestion(const Entry& entry, SessionId holder, std::uint64_t serial) {
  if (entry.waiting == nullptr) return kNone;
  const auto& questions = entry.waiting->questions;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (questions[i].serial == serial && questions[i].holder == holder) return i;
  }
  return kNone;
}

void Directory::Answered(Entries::iterator at, std::size_t question, bool failed, Refusal why) {
  Waiting& waiting = *at->second.waiting;
  const SessionId holder = waiting.questions[question].holder;
  waiting.questions.erase(waiting.questions.begin() + static_cast<std::ptrdiff_t>(question));
  if (failed) {
    waiting.failed = true;
    waiting.refusal = why;
    waiting.culprit = holder;
  }
  Advance(at);
}

void Directory::Reduced(SessionId holder, std::uint64_t serial, std::string_view key, Right now) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  const std::size_t question = FindQuestion(at->second, holder, serial);
  if (question == kNone) return;
  const Right held = at->second.RightOf(holder);
  if (now < held) Set(at->second, holder, now);
  const Right wanted = at->second.waiting->requests.front().wanted;
  const bool enough = std::min(now, held) == Right::kInvalid ||
                      (wanted == Right::kShare && std::min(now, held) == Right::kShare);
  Answered(at, question, !enough, Refusal::kHolderFailed);
}

void Directory::ReduceFailed(SessionId holder, std::uint64_t serial, std::string_view key,
                             Refusal why) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  const std::size_t question = FindQuestion(at->second, holder, serial);
  if (question != kNone) Answered(at, question, true, why);
}

std::vector<std::string> Directory::KeysOf(FunctionRef<bool(const Entry&)> chosen) const {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_) {
    if (chosen(entry)) keys.emplace_back(key.view());
  }
  std::sort(keys.begin(), keys.end());  // The same run twice must do the same.
  return keys;
}

void Directory::Waiting::Forget(SessionId session) {
  if (requests.front().session == session) requests.front().session = kNoSession;
  requests.erase(std::remove_if(requests.begin() + 1, requests.end(),
                                [session](const Request& one) { return one.session == session; }),
                 requests.end());
}

void Directory::Unreachable(SessionId session) {
  const auto waits = KeysOf([](const Entry& entry) { return entry.waiting != nullptr; });
  for (const std::string& key : waits) {
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.waiting == nullptr) continue;
    Waiting& waiting = *at->second.waiting;
    waiting.Forget(session);
    for (const Question& question : waiting.questions) {
      if (question.holder != session) continue;
      output_.Reduce(session, question.serial, key, waiting.asked_for(),
                     waiting.requests.front().since);
    }
    Advance(at);
  }
}

void Directory::Drop(SessionId session) {
  const auto concerned = KeysOf([session](const Entry& entry) {
    return entry.waiting != nullptr || entry.RightOf(session) != Right::kInvalid;
  });
  for (const std::string& key : concerned) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) continue;
    if (Waiting* waiting = at->second.waiting.get()) {
      waiting->Forget(session);
      std::erase_if(waiting->questions,
                    [session](const Question& q) { return q.holder == session; });
    }
    Set(at->second, session, Right::kInvalid);
    Advance(at);
  }
}

std::vector<SessionId> Directory::Announce(SessionId session, std::span<const HeldRight> rights,
                                           bool known) {
  boost::unordered_flat_map<std::string_view, Right, SeededHash> said;
  for (const HeldRight& one : rights) said[one.key] = one.right;
  std::vector<SessionId> wrong;
  for (const HeldRight& one : rights) {
    if (one.right == Right::kInvalid) continue;
    if (known) {
      if (Held(session, one.key) < one.right) wrong.push_back(session);
      continue;
    }
    const auto at = FindOrAdd(one.key);
    bool conflict = false;
    at->second.ForEachHolder([&](SessionId holder, Right right) {
      if (one.right != Right::kModify && right != Right::kModify) return;
      conflict = true;
      wrong.push_back(holder);
    });
    if (!conflict) Set(at->second, session, one.right);
  }
  if (!wrong.empty()) wrong.push_back(session);
  std::sort(wrong.begin(), wrong.end());
  wrong.erase(std::unique(wrong.begin(), wrong.end()), wrong.end());
  if (!known || !wrong.empty()) return wrong;

  const auto forgotten =
      KeysOf([session](const Entry& entry) { return entry.RightOf(session) != Right::kInvalid; });
  for (const std::string& key : forgotten) {
    const auto at = entries_.find(key);
    const auto still = said.find(key);
    Set(at->second, session, still == said.end() ? Right::kInvalid : still->second);
    Advance(at);
  }
  return {};
}

void Directory::Resume() {
  paused_ = false;
  const auto waits = KeysOf([](const Entry& entry) { return entry.waiting != nullptr; });
  for (const std::string& key : waits) {
    const auto at = entries_.find(key);
    if (at != entries_.end()) Advance(at);
  }
}

Right Directory::Held(SessionId session, std::string_view key) const {
  const auto at = entries_.find(key);
  return at == entries_.end() ? Right::kInvalid : at->second.RightOf(session);
}

void Directory::ForEachHeld(SessionId session,
                            FunctionRef<void(std::string_view key, Right right)> visit) const {
  const auto held =
      KeysOf([session](const Entry& entry) { return entry.RightOf(session) != Right::kInvalid; });
  for (const std::string& key : held) visit(key, Held(session, key));
}

}  // namespace zeze::global
