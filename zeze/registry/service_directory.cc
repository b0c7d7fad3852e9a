#include "zeze/registry/service_directory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"

namespace zeze::registry {

namespace {

bool Sees(std::int64_t subscribed, std::int64_t version) {
  return subscribed == 0 || subscribed == version;
}

bool HasAddress(const ServiceInfo& info) {
  return !info.passive_ip.empty() && info.passive_port != 0;
}

}  // namespace

Result<void> ServiceDirectory::CheckText(const ServiceInfo& info) const {
  if (std::max({info.name.size(), info.identity.size(), info.passive_ip.size()}) >
          limits_.text_bytes_max ||
      info.extra_info.size() > limits_.extra_bytes_max) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a service with a name of {} bytes, an identity of {} and extra "
                             "information of {} is too long",
                             info.name.size(), info.identity.size(), info.extra_info.size()));
  }
  return {};
}

Result<void> ServiceDirectory::Check(SessionId session, const ServiceEdit& edit) const {
  for (const ServiceInfo& info : edit.add) {
    if (Result<void> checked = CheckText(info); !checked.ok()) return checked;
  }
  const auto own = sessions_.find(session);
  const std::size_t has = own == sessions_.end() ? 0 : own->second.services.size();
  std::set<ServiceKey> added;  // New ones only: an agent repeats everything when it reconnects.
  std::size_t gained = 0;
  for (const ServiceInfo& info : edit.add) {
    const Entry* entry = Find(info.key());
    if ((entry == nullptr || entry->owner != session) && added.insert(info.key()).second) {
      gained += entry == nullptr ? 1 : 0;
    }
  }
  if (has + added.size() > limits_.services_per_session_max ||
      service_count_ + gained > limits_.services_max) {
    return Error(ErrorCode::kOverloaded,
                 fmt::format("{} services are too many: this server has {}, all have {}",
                             edit.add.size(), has, service_count_));
  }
  return {};
}

const ServiceDirectory::Entry* ServiceDirectory::Find(const ServiceKey& key) const {
  const auto name = names_.find(key.name);
  if (name == names_.end()) return nullptr;
  const auto entry = name->second.entries.find(key.identity);
  return entry == name->second.entries.end() ? nullptr : &entry->second;
}

void ServiceDirectory::DetachFromSession(const Entry& entry) {
  const auto owner = sessions_.find(entry.owner);
  if (owner != sessions_.end()) owner->second.services.erase(entry.info.key());
}

void ServiceDirectory::DetachFromAddress(const ServiceInfo& info) {
  if (!HasAddress(info)) return;
  const auto server = servers_.find({info.passive_ip, info.passive_port});
  server->second.services.erase(info.key());
  if (server->second.services.empty()) servers_.erase(server);
}

void ServiceDirectory::Put(const ServiceInfo& info, SessionId owner, Changes& changes) {
  const ServiceKey key = info.key();
  const auto [at, is_new] = names_[key.name].entries.try_emplace(key.identity);
  const auto [change, first] = changes.try_emplace(key);
  if (is_new) {
    ++service_count_;
  } else {
    if (first) change->second.before = at->second.info;
    const Entry old = at->second;
    const bool same_address =
        old.info.passive_ip == info.passive_ip && old.info.passive_port == info.passive_port;
    DetachFromSession(old);
    // The load of an address stays known if it is the same.
    if (!same_address) DetachFromAddress(old.info);
  }
  at->second = {.info = info, .owner = owner};
  sessions_[owner].services.insert(key);
  if (HasAddress(info)) servers_[{info.passive_ip, info.passive_port}].services.insert(key);
  change->second.after = info;
}

void ServiceDirectory::Remove(const ServiceKey& key, Changes& changes) {
  Name& name = names_.at(key.name);
  const auto at = name.entries.find(key.identity);
  const auto [change, first] = changes.try_emplace(key);
  if (first) change->second.before = at->second.info;
  change->second.after.reset();
  const Entry old = at->second;
  name.entries.erase(at);
  --service_count_;
  DetachFromSession(old);
  DetachFromAddress(old.info);
  output_.EraseService(key);
}

Result<void> ServiceDirectory::Edit(SessionId session, const ServiceEdit& edit) {
  if (Result<void> checked = Check(session, edit); !checked.ok()) return checked;
  Changes changes;
  for (const ServiceInfo& info : edit.remove) {
    const Entry* entry = Find(info.key());
    if (entry != nullptr && entry->owner == session) Remove(info.key(), changes);
  }
  for (const ServiceInfo& info : edit.add) {
    Put(info, session, changes);
    output_.SaveService(info, session);
  }
  Publish(changes);
  return {};
}

void ServiceDirectory::Publish(const Changes& changes) {
  struct Edits {
    ServiceEdit moved;  // Removals from the old version of services that have a new one.
    ServiceEdit rest;
  };
  std::map<SessionId, Edits> edits;
  for (const auto& [key, change] : changes) {
    if (change.before == change.after) continue;
    for (const auto& [subscriber, version] : names_.at(key.name).subscribers) {
      const bool saw = change.before.has_value() && Sees(version, change.before->version);
      const bool sees = change.after.has_value() && Sees(version, change.after->version);
      if (saw && !sees) edits[subscriber].rest.remove.push_back(*change.before);
      if (sees) edits[subscriber].rest.add.push_back(*change.after);
      // Agents of Zeze 1.6 drop a removal that stands beside an addition of the same identity.
      if (saw && sees && change.before->version != change.after->version) {
        edits[subscriber].moved.remove.push_back(*change.before);
      }
    }
  }
  for (const auto& [subscriber, one] : edits) {
    if (!one.moved.empty()) output_.SendEdit(subscriber, one.moved);
    if (!one.rest.empty()) output_.SendEdit(subscriber, one.rest);
  }
  PublishLoads(changes);
  for (const auto& [key, change] : changes) {
    if (!change.after.has_value()) ForgetIfEmpty(key.name);
  }
}

void ServiceDirectory::PublishLoads(const Changes& changes) {
  for (const auto& [key, change] : changes) {
    if (!change.after.has_value() || change.before == change.after) continue;
    const auto server = servers_.find({change.after->passive_ip, change.after->passive_port});
    if (server == servers_.end() || !server->second.load.has_value()) continue;
    for (const auto& [subscriber, version] : names_.at(key.name).subscribers) {
      if (Sees(version, change.after->version)) {
        output_.SendLoad(subscriber, *server->second.load);
      }
    }
  }
}

Result<ServicesByName> ServiceDirectory::Subscribe(SessionId session,
                                                   const std::vector<Subscription>& wanted) {
  const auto own = sessions_.find(session);
  std::size_t count = own == sessions_.end() ? 0 : own->second.subscriptions.size();
  for (const Subscription& one : wanted) {
    if (one.name.size() > limits_.text_bytes_max) {
      return Error(ErrorCode::kInvalidArgument, "the name of a service is too long");
    }
    const bool known = own != sessions_.end() && own->second.subscriptions.contains(one.name);
    count += known ? 0 : 1;
  }
  if (count > limits_.subscriptions_per_session_max) {
    return Error(ErrorCode::kOverloaded, fmt::format("{} subscriptions are too many", count));
  }
  ServicesByName answer;
  for (const Subscription& one : wanted) {
    Name& name = names_[one.name];
    name.subscribers[session] = one.version;
    sessions_[session].subscriptions.insert(one.name);
    ServicesByVersion& services = answer[one.name];
    services.clear();  // A name twice: the last one counts.
    for (const auto& [identity, entry] : name.entries) {
      if (Sees(one.version, entry.info.version)) {
        services[entry.info.version].push_back(entry.info);
      }
    }
  }
  return answer;
}

void ServiceDirectory::SendLoadsTo(SessionId session, const std::vector<Subscription>& wanted) {
  std::set<Address> sent;
  for (const Subscription& one : wanted) {
    const auto name = names_.find(one.name);
    if (name == names_.end()) continue;
    for (const auto& [identity, entry] : name->second.entries) {
      if (!Sees(one.version, entry.info.version)) continue;
      const auto server = servers_.find({entry.info.passive_ip, entry.info.passive_port});
      if (server == servers_.end() || !server->second.load.has_value()) continue;
      if (sent.insert(server->first).second) output_.SendLoad(session, *server->second.load);
    }
  }
}

void ServiceDirectory::Unsubscribe(SessionId session, const std::vector<std::string>& names) {
  const auto own = sessions_.find(session);
  if (own == sessions_.end()) return;
  for (const std::string& name : names) {
    if (own->second.subscriptions.erase(name) == 0) continue;
    names_.at(name).subscribers.erase(session);
    ForgetIfEmpty(name);
  }
}

void ServiceDirectory::SetLoad(const ServerLoad& load) {
  const auto server = servers_.find({load.ip, load.port});
  if (server == servers_.end() || load.param.size() > limits_.extra_bytes_max) return;
  server->second.load = load;
  std::set<SessionId> hearers;
  for (const ServiceKey& key : server->second.services) {
    const Name& name = names_.at(key.name);
    const std::int64_t version = name.entries.at(key.identity).info.version;
    for (const auto& [subscriber, subscribed] : name.subscribers) {
      if (Sees(subscribed, version)) hearers.insert(subscriber);
    }
  }
  for (const SessionId hearer : hearers) output_.SendLoad(hearer, load);
}

void ServiceDirectory::Close(SessionId session) {
  const auto own = sessions_.find(session);
  if (own == sessions_.end()) return;
  const std::vector<std::string> subscriptions(own->second.subscriptions.begin(),
                                               own->second.subscriptions.end());
  Unsubscribe(session, subscriptions);
  Changes changes;
  for (const ServiceKey& key : ServicesOf(session)) Remove(key, changes);
  sessions_.erase(session);
  Publish(changes);
}

void ServiceDirectory::Restore(const ServiceInfo& info, SessionId owner) {
  Changes changes;
  Put(info, owner, changes);
}

SessionId ServiceDirectory::OwnerOf(const ServiceKey& key) const {
  const Entry* entry = Find(key);
  return entry == nullptr ? kNoSession : entry->owner;
}

std::vector<ServiceKey> ServiceDirectory::ServicesOf(SessionId session) const {
  const auto own = sessions_.find(session);
  if (own == sessions_.end()) return {};
  return {own->second.services.begin(), own->second.services.end()};
}

void ServiceDirectory::ForgetIfEmpty(const std::string& name) {
  const auto at = names_.find(name);
  if (at == names_.end()) return;
  if (at->second.entries.empty() && at->second.subscribers.empty()) names_.erase(at);
}

}  // namespace zeze::registry
