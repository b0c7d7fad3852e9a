// RecordingOutput: remembers what a state machine of the service manager did.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"
#include "zeze/registry/registry_server.h"

namespace zeze::registry {

struct RecordingOutput final : RegistryOutput {
  struct Ask {
    SessionId to = kNoSession;
    std::uint64_t ask = 0;
    OfflineNotice notice;
  };
  struct SavedLimit {
    IdKind kind = IdKind::k64;
    std::string name;
    Id128 limit;
  };

  void SendEdit(SessionId to, const ServiceEdit& edit) override {
    edits.emplace_back(to, edit);
    Apply(to, edit);
  }
  void SendLoad(SessionId to, const ServerLoad& load) override { loads.emplace_back(to, load); }
  void SendOfflineNotify(SessionId to, std::uint64_t ask, const OfflineNotice& notice) override {
    asks.push_back({.to = to, .ask = ask, .notice = notice});
  }
  void GrantIds(std::uint64_t request, const IdBlock& block) override { grants[request] = block; }
  void RefuseIds(std::uint64_t request, const std::string& why) override {
    refusals[request] = why;
  }
  void SaveService(const ServiceInfo& info, SessionId owner) override {
    services[info.key()] = {info, owner};
  }
  void EraseService(const ServiceKey& key) override { services.erase(key); }
  void SaveOffline(const OfflineNotice& notice, SessionId owner) override {
    offline[{notice.server_id, notice.notify_id}] = {notice, owner};
  }
  void EraseOffline(std::int32_t server_id, std::string_view notify_id) override {
    offline.erase({server_id, std::string(notify_id)});
  }
  void SaveIdLimit(IdKind kind, const std::string& name, const Id128& limit) override {
    limits.push_back({.kind = kind, .name = name, .limit = limit});
  }

  // What a restart would find.
  RegistryState Saved() const {
    RegistryState state;
    for (const auto& [key, one] : services) state.services.push_back({one.first, one.second});
    for (const auto& [key, one] : offline) state.offline.push_back({one.first, one.second});
    return state;
  }

  // What a subscriber that began with nothing sees, if it does as Zeze 1.6 does.
  void Apply(SessionId to, const ServiceEdit& edit) {
    auto& list = seen[to];
    for (const ServiceInfo& info : edit.remove) list.erase({info.version, info.key()});
    for (const ServiceInfo& info : edit.add) list[{info.version, info.key()}] = info;
  }

  std::vector<std::pair<SessionId, ServiceEdit>> edits;
  std::vector<std::pair<SessionId, ServerLoad>> loads;
  std::vector<Ask> asks;
  std::map<std::uint64_t, IdBlock> grants;
  std::map<std::uint64_t, std::string> refusals;
  std::vector<SavedLimit> limits;
  std::map<ServiceKey, std::pair<ServiceInfo, SessionId>> services;
  std::map<std::pair<std::int32_t, std::string>, std::pair<OfflineNotice, SessionId>> offline;
  std::map<SessionId, std::map<std::pair<std::int64_t, ServiceKey>, ServiceInfo>> seen;
};

}  // namespace zeze::registry
