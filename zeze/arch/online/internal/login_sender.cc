#include "zeze/arch/online/internal/login_sender.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

namespace {

std::string CheckFrame() {
  return EncodeOneWayFrame<Zeze::Builtin::Provider::CheckLinkSession>({});
}

}  // namespace

template <typename Key>
std::optional<LoginRecord> LoginSender<Key>::Connected(const Key& key) {
  Result<std::optional<LoginRecord>> record = environment_.kind.ReadCopy(key);
  if (!record.ok()) {
    ZEZE_LOG_WARNING("nothing is sent to {}: {}", environment_.kind.Describe(key),
                     record.error().message());
    return std::nullopt;
  }
  const std::optional<LoginRecord>& login = record.value();
  if (!login || !login->live() || login->state != LoginState::kLoggedIn) return std::nullopt;
  return login;
}

template <typename Key>
auto LoginSender<Key>::TargetOf(const Key& key, const LoginRecord& login) const -> Target {
  return {.key = key,
          .version = login.login_version,
          .sid = login.link.link_sid,
          .here = login.server_id == environment_.server_id};
}

template <typename Key>
std::size_t LoginSender<Key>::SendToLogin(const Key& key, std::int64_t version,
                                          std::string_view frame) {
  const std::optional<LoginRecord> login = Connected(key);
  if (!login || !login->IsLogin(version)) return 0;
  return SendTo(login->link.link_name, {TargetOf(key, *login)}, frame);
}

template <typename Key>
std::size_t LoginSender<Key>::Send(std::span<const Key> keys, std::string_view frame) {
  std::map<std::string, Targets> by_link;
  for (const Key& key : keys) {
    if (const std::optional<LoginRecord> login = Connected(key)) {
      by_link[login->link.link_name].push_back(TargetOf(key, *login));
    }
  }
  std::size_t sent = 0;
  for (const auto& [link_name, targets] : by_link) sent += SendInBatches(link_name, targets, frame);
  return sent;
}

template <typename Key>
std::size_t LoginSender<Key>::SendInBatches(const std::string& link_name, const Targets& targets,
                                            std::string_view frame) {
  std::size_t sent = 0;
  for (std::size_t at = 0; at < targets.size(); at += kBatch) {
    const auto begin = targets.begin() + static_cast<std::ptrdiff_t>(at);
    const auto size = static_cast<std::ptrdiff_t>(std::min(kBatch, targets.size() - at));
    sent += SendTo(link_name, Targets(begin, begin + size), frame);
  }
  return sent;
}

template <typename Key>
std::size_t LoginSender<Key>::SendTo(const std::string& link_name, Targets targets,
                                     std::string_view frame) {
  Links* links = environment_.links;
  if (links == nullptr) return 0;
  std::vector<std::int64_t> sids;
  sids.reserve(targets.size());
  for (const Target& target : targets) sids.push_back(target.sid);
  const auto shared = std::make_shared<const Targets>(std::move(targets));
  const Result<void> sent =
      links->Send(link_name, sids, frame, [this, link_name, shared](const SendOutcome& outcome) {
        Learn(link_name, *shared, outcome);
      });
  if (sent.ok()) return sids.size();
  ZEZE_LOG_INFO_EVERY(std::chrono::seconds(1), "nothing is sent to {} clients of gateway {}: {}",
                      sids.size(), link_name, sent.error().message());
  // A gateway that has too much to do is there.
  if (sent.error().code() != ErrorCode::kOverloaded) NoteSuspects(link_name, *shared);
  return 0;
}

// On a network thread.
template <typename Key>
void LoginSender<Key>::Learn(const std::string& link_name, const Targets& targets,
                             const SendOutcome& outcome) {
  if (!outcome.answered) return NoteSuspects(link_name, targets);
  Clear(targets);
  if (outcome.lost_sids.empty()) return;
  const std::set<std::int64_t> lost(outcome.lost_sids.begin(), outcome.lost_sids.end());
  for (const Target& target : targets) {
    if (lost.contains(target.sid)) {
      Break(target.key, {.link_name = link_name, .link_sid = target.sid});
    }
  }
}

// Whether this server reaches a gateway says nothing about logins of other servers.
template <typename Key>
void LoginSender<Key>::NoteSuspects(const std::string& link_name, const Targets& targets) {
  const std::chrono::nanoseconds now = environment_.application->options().clock->Now();
  MutexLock lock(mutex_);
  for (const Target& target : targets) {
    if (!target.here) continue;
    Suspect& suspect = suspects_[target.key];
    if (suspect.version >= target.version) continue;
    suspect = {.version = target.version,
               .link = {.link_name = link_name, .link_sid = target.sid},
               .since = now};
  }
}

template <typename Key>
void LoginSender<Key>::Clear(const Targets& targets) {
  MutexLock lock(mutex_);
  if (suspects_.empty()) return;
  for (const Target& target : targets) {
    const auto at = suspects_.find(target.key);
    if (at != suspects_.end() && at->second.version <= target.version) suspects_.erase(at);
  }
}

template <typename Key>
void LoginSender<Key>::Break(const Key& key, const LinkAddress& link) {
  environment_.RunUntilDone("link lost", [this, key, link](Transaction& tx) {
    book_.BreakLink(tx, key, link);
    return result_code::kSuccess;
  });
}

template <typename Key>
void LoginSender<Key>::CheckNew(const Key& key, std::int64_t version, const LinkAddress& link) {
  SendTo(link.link_name, {{.key = key, .version = version, .sid = link.link_sid, .here = true}},
         CheckFrame());
}

template <typename Key>
void LoginSender<Key>::Ask(const std::map<std::string, Targets>& by_link) {
  const std::string frame = CheckFrame();
  for (const auto& [link_name, targets] : by_link) SendInBatches(link_name, targets, frame);
}

template <typename Key>
auto LoginSender<Key>::LocalTargets() -> std::map<std::string, Targets> {
  std::map<std::string, Targets> by_link;
  environment_.kind.WalkLocals([&by_link](const Key& key, const LocalRecord& local) {
    by_link[local.Link.LinkName].push_back(
        {.key = key, .version = local.LoginVersion, .sid = local.Link.LinkSid, .here = true});
  });
  return by_link;
}

template <typename Key>
void LoginSender<Key>::Verify() {
  std::map<std::string, Targets> by_link = LocalTargets();
  for (auto& [link_name, targets] : by_link) {
    std::erase_if(targets, [this](const Target& target) {
      const Result<std::optional<LoginRecord>> record = environment_.kind.ReadCopy(target.key);
      if (!record.ok()) return true;  // Next time.
      const bool live = record.value() && record.value()->IsLogin(target.version);
      if (!live) {
        environment_.RunUntilDone("remove stale local", [this, key = target.key](Transaction& tx) {
          book_.RemoveStaleLocal(tx, key);
          return result_code::kSuccess;
        });
      } else if (record.value()->state == LoginState::kLinkBroken) {
        // Whoever found the link broken keeps the delay: any server that sent to it.
        environment_.RunUntilDone(
            "await return", [this, key = target.key, version = target.version](Transaction& tx) {
              book_.AwaitReturn(tx, key, version);
              return result_code::kSuccess;
            });
        return true;
      }
      return !live;
    });
  }
  Ask(by_link);
}

template <typename Key>
void LoginSender<Key>::NoteLostGateways() {
  Links* links = environment_.links;
  if (links == nullptr) return;
  const std::vector<std::string> names = links->names();
  std::set<std::string> now(names.begin(), names.end());
  bool lost = false;
  {
    MutexLock lock(mutex_);
    lost = !std::includes(now.begin(), now.end(), gateways_.begin(), gateways_.end());
    gateways_ = now;
  }
  if (!lost) return;
  for (const auto& [link_name, targets] : LocalTargets()) {
    if (!now.contains(link_name)) NoteSuspects(link_name, targets);
  }
}

template <typename Key>
void LoginSender<Key>::CheckSuspects() {
  NoteLostGateways();
  const std::chrono::nanoseconds now = environment_.application->options().clock->Now();
  std::map<std::string, Targets> by_link;
  std::vector<std::pair<Key, std::int64_t>> given_up;
  {
    MutexLock lock(mutex_);
    for (auto at = suspects_.begin(); at != suspects_.end();) {
      const auto& [key, suspect] = *at;
      if (now - suspect.since >= environment_.options.logout_delay) {
        given_up.emplace_back(key, suspect.version);
        at = suspects_.erase(at);
        continue;
      }
      by_link[suspect.link.link_name].push_back(
          {.key = key, .version = suspect.version, .sid = suspect.link.link_sid, .here = true});
      ++at;
    }
  }
  for (const auto& [key, version] : given_up) {
    environment_.RunUntilDone("gateway lost", [this, lost = key, of_login = version](auto& tx) {
      book_.GiveUp(tx, lost, of_login);
      return result_code::kSuccess;
    });
  }
  Ask(by_link);
}

template <typename Key>
std::size_t LoginSender<Key>::suspect_count() const {
  MutexLock lock(mutex_);
  return suspects_.size();
}

template class LoginSender<AccountKey>;
template class LoginSender<RoleId>;

}  // namespace zeze::arch::internal
