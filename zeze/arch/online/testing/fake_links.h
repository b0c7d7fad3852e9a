// FakeLinks: gateways in memory: what servers would have sent to clients, in order.
//
//   FakeLinks links;
//   LinkAddress ann = links.Connect("g1");                  // A client of gateway g1.
//   ...
//   EXPECT_THAT(links.Story(ann), ElementsAre("state 7", "frame 11011.918874807"));
//   links.Disconnect(ann);                                   // Sends to it are answered: lost.
//   links.SetReachable("g1", false);                         // Sends to it fail.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/frame.h"

namespace zeze::arch::testing {

// All servers of a test share one. Thread-safe. Completions run before Send returns.
class FakeLinks final : public Links {
 public:
  LinkAddress Connect(const std::string& gateway) {
    MutexLock lock(mutex_);
    const std::int64_t sid = ++last_sid_;
    gateways_[gateway].sids.insert(sid);
    return {.link_name = gateway, .link_sid = sid};
  }
  void Disconnect(const LinkAddress& client) {
    MutexLock lock(mutex_);
    gateways_[client.link_name].sids.erase(client.link_sid);
  }
  bool IsConnected(const LinkAddress& client) {
    MutexLock lock(mutex_);
    return gateways_[client.link_name].sids.contains(client.link_sid);
  }
  void SetReachable(const std::string& gateway, bool reachable) {
    MutexLock lock(mutex_);
    gateways_[gateway].reachable = reachable;
  }
  bool IsReachable(const std::string& gateway) {
    MutexLock lock(mutex_);
    return gateways_[gateway].reachable;
  }
  // What messages of a client carry.
  std::string Context(const LinkAddress& client) {
    MutexLock lock(mutex_);
    return contexts_[client.link_sid];
  }
  // Takes everything, answers nothing.
  void SetSilent(const std::string& gateway, bool silent) {
    MutexLock lock(mutex_);
    gateways_[gateway].silent = silent;
  }

  // What happened to a client, in order: "frame MODULE.PROTOCOL", "state CONTEXT", "kick CODE".
  std::vector<std::string> Story(const LinkAddress& client) const {
    MutexLock lock(mutex_);
    const auto at = stories_.find(client.link_sid);
    return at == stories_.end() ? std::vector<std::string>() : at->second;
  }
  std::vector<std::string> Frames(const LinkAddress& client) const {
    MutexLock lock(mutex_);
    const auto at = frames_.find(client.link_sid);
    return at == frames_.end() ? std::vector<std::string>() : at->second;
  }
  void Forget() {
    MutexLock lock(mutex_);
    stories_.clear();
    frames_.clear();
    send_count_ = 0;
  }
  // Messages to gateways, however many clients each was for; without checks.
  std::size_t send_count() const {
    MutexLock lock(mutex_);
    return send_count_;
  }
  std::size_t broadcast_count() const {
    MutexLock lock(mutex_);
    return broadcast_count_;
  }

  using Links::Send;
  Result<void> Send(std::string_view link_name, std::span<const std::int64_t> link_sids,
                    std::string_view frame, SendCompletion done) override {
    SendOutcome outcome{.answered = true};
    {
      MutexLock lock(mutex_);
      Gateway& gateway = gateways_[std::string(link_name)];
      if (!gateway.reachable) return NotReached(link_name);
      std::string_view stream = frame;
      const RawFrame raw = *TakeFrame(stream, 1 << 20).value();
      using Check = Zeze::Builtin::Provider::CheckLinkSession;
      const bool check = raw.module_id == Check::kModuleId && raw.protocol_id == Check::kProtocolId;
      if (!check) ++send_count_;
      for (const std::int64_t sid : link_sids) {
        if (!gateway.sids.contains(sid)) {
          outcome.lost_sids.push_back(sid);
        } else if (!check) {
          stories_[sid].push_back(fmt::format("frame {}.{}", raw.module_id, raw.protocol_id));
          frames_[sid].emplace_back(frame);
        }
      }
      if (gateway.silent) outcome = {};
    }
    if (done) done(outcome);
    return {};
  }

  void Broadcast(std::string_view, bool) override {
    MutexLock lock(mutex_);
    ++broadcast_count_;
  }

  Result<void> Kick(const LinkAddress& to, std::int32_t code, std::string_view,
                    std::int32_t) override {
    return Note(to, fmt::format("kick {}", code));
  }

  Result<void> SetUserState(const LinkAddress& to,
                            const Zeze::Builtin::Provider::BUserState& state) override {
    const std::string set = state.onlineSetName.empty() ? "" : " in " + state.onlineSetName;
    const Result<void> noted = Note(to, fmt::format("state {}{}", state.context, set));
    MutexLock lock(mutex_);
    if (noted.ok()) contexts_[to.link_sid] = state.context;
    return noted;
  }

  Result<void> Bind(const LinkAddress&, std::span<const std::int32_t>,
                    std::function<void(const Result<void>&)>) override {
    return Error(ErrorCode::kUnavailable, "not here");
  }
  Result<void> Unbind(const LinkAddress&, std::span<const std::int32_t>,
                      std::function<void(const Result<void>&)>) override {
    return Error(ErrorCode::kUnavailable, "not here");
  }
  Result<void> CheckSession(const LinkAddress& to, SendCompletion done) override {
    return Send(to, EncodeOneWayFrame<Zeze::Builtin::Provider::CheckLinkSession>({}),
                std::move(done));
  }

  std::vector<std::string> names() const override {
    MutexLock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, gateway] : gateways_) {
      if (gateway.reachable) names.push_back(name);
    }
    return names;
  }

 private:
  struct Gateway {
    bool reachable = true;
    bool silent = false;
    std::set<std::int64_t> sids;
  };

  static Error NotReached(std::string_view link_name) {
    return {ErrorCode::kUnavailable, fmt::format("gateway {} is not connected", link_name)};
  }

  Result<void> Note(const LinkAddress& to, std::string what) {
    MutexLock lock(mutex_);
    Gateway& gateway = gateways_[to.link_name];
    if (!gateway.reachable) return NotReached(to.link_name);
    stories_[to.link_sid].push_back(std::move(what));
    return {};
  }

  mutable Mutex mutex_;
  std::map<std::string, Gateway> gateways_ ZEZE_GUARDED_BY(mutex_);
  std::int64_t last_sid_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::map<std::int64_t, std::string> contexts_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::int64_t, std::vector<std::string>> stories_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::int64_t, std::vector<std::string>> frames_ ZEZE_GUARDED_BY(mutex_);
  std::size_t send_count_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::size_t broadcast_count_ ZEZE_GUARDED_BY(mutex_) = 0;
};

}  // namespace zeze::arch::testing
