// ServiceList: what a subscriber knows about a service: at every moment one consistent list.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/registry/messages.h"

namespace zeze::registry {

// Immutable: keep it as long as you like.
struct ServiceList {
  std::string name = {};
  std::uint64_t revision = 0;  // Grows with every change; only of this agent.
  ServicesByVersion versions = {};

  // Of all versions.
  std::size_t size() const;
  // The one with this identity, of any version; null if there is none.
  const ServiceInfo* Find(std::string_view identity) const;
};
using ServiceListPtr = std::shared_ptr<const ServiceList>;

// How one list came from another.
struct ServiceChange {
  std::vector<ServiceInfo> added = {};
  std::vector<ServiceInfo> updated = {};  // As they are now.
  std::vector<ServiceInfo> removed = {};

  bool empty() const { return added.empty() && updated.empty() && removed.empty(); }
};
// A service that has changed its version was removed and added.
ServiceChange Difference(const ServiceList& from, const ServiceList& to);

// The list of one subscription, kept up to date. Without I/O, threads or clocks.
//
// When the connection was lost and is back, the new answer replaces the list, but services that it
// does not name stay for a while: a service manager that has lost its memory names nobody until all
// servers have registered again.
class SubscribedList {
 public:
  using Time = std::chrono::nanoseconds;

  SubscribedList(Subscription subscription, Time hold)
      : subscription_(std::move(subscription)), hold_(hold) {}

  const Subscription& subscription() const { return subscription_; }
  void set_version(std::int64_t version) { subscription_.version = version; }

  // Null before the first answer: nothing is known.
  const ServiceListPtr& list() const { return list_; }

  void OnAnswer(Time now, const ServicesByVersion& services);
  void OnEdit(const ServiceEdit& edit);

  // Drops what nobody has named in time.
  void Tick(Time now);
  // When Tick has something to do.
  std::optional<Time> NextTick() const;

 private:
  struct Entry {
    ServiceInfo info;
    std::optional<Time> doubtful_until;
  };
  // In the order of the lists.
  struct KeyLess {
    bool operator()(const std::pair<std::int64_t, std::string>& left,
                    const std::pair<std::int64_t, std::string>& right) const {
      if (left.first != right.first) return left.first < right.first;
      return IdentityLess()(left.second, right.second);
    }
  };

  bool Concerns(const ServiceInfo& info) const {
    return info.name == subscription_.name &&
           (subscription_.version == 0 || subscription_.version == info.version);
  }
  void Publish();

  Subscription subscription_;
  const Time hold_;
  // By version and identity: peers list an identity under several versions.
  std::map<std::pair<std::int64_t, std::string>, Entry, KeyLess> entries_;
  ServiceListPtr list_;
};

}  // namespace zeze::registry
