#include "zeze/registry/service/service_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/registry/messages.h"

namespace zeze::registry {

namespace {

using ByKey = std::map<std::pair<std::int64_t, std::string_view>, const ServiceInfo*>;

ByKey Index(const ServiceList& list) {
  ByKey index;
  for (const auto& [version, services] : list.versions) {
    for (const ServiceInfo& info : services) index[{version, info.identity}] = &info;
  }
  return index;
}

}  // namespace

std::size_t ServiceList::size() const {
  std::size_t count = 0;
  for (const auto& [version, services] : versions) count += services.size();
  return count;
}

const ServiceInfo* ServiceList::Find(std::string_view identity) const {
  for (const auto& [version, services] : versions) {
    for (const ServiceInfo& info : services) {
      if (info.identity == identity) return &info;
    }
  }
  return nullptr;
}

ServiceChange Difference(const ServiceList& from, const ServiceList& to) {
  const ByKey before = Index(from);
  const ByKey after = Index(to);
  ServiceChange change;
  for (const auto& [key, info] : before) {
    if (!after.contains(key)) change.removed.push_back(*info);
  }
  for (const auto& [key, info] : after) {
    const auto old = before.find(key);
    if (old == before.end()) {
      change.added.push_back(*info);
    } else if (*old->second != *info) {
      change.updated.push_back(*info);
    }
  }
  return change;
}

void SubscribedList::OnAnswer(Time now, const ServicesByVersion& services) {
  std::set<std::pair<std::int64_t, std::string>, KeyLess> named;
  for (const auto& [version, list] : services) {
    for (const ServiceInfo& info : list) {
      if (!Concerns(info)) continue;
      named.insert({info.version, info.identity});
      entries_[{info.version, info.identity}] = {.info = info, .doubtful_until = std::nullopt};
    }
  }
  for (auto at = entries_.begin(); at != entries_.end();) {
    const bool known = named.contains(at->first);
    if (!known && (!Concerns(at->second.info) || hold_.count() == 0)) {
      at = entries_.erase(at);
      continue;
    }
    if (!known) at->second.doubtful_until = now + hold_;
    ++at;
  }
  Publish();
}

void SubscribedList::OnEdit(const ServiceEdit& edit) {
  if (list_ == nullptr) return;  // Of an earlier subscription; the answer will have it.
  for (const ServiceInfo& info : edit.remove) {
    if (Concerns(info)) entries_.erase({info.version, info.identity});
  }
  for (const ServiceInfo& info : edit.add) {
    if (!Concerns(info)) continue;
    entries_[{info.version, info.identity}] = {.info = info, .doubtful_until = std::nullopt};
    // It was perhaps known with another version, from before the connection was lost.
    // NOLINTNEXTLINE(misc-include-cleaner): of <map>.
    std::erase_if(entries_, [&info](const auto& one) {
      return one.second.doubtful_until.has_value() && one.second.info.identity == info.identity;
    });
  }
  Publish();
}

void SubscribedList::Tick(Time now) {
  // NOLINTNEXTLINE(misc-include-cleaner): of <map>.
  std::erase_if(entries_, [now](const auto& one) {
    return one.second.doubtful_until.has_value() && *one.second.doubtful_until <= now;
  });
  Publish();
}

std::optional<SubscribedList::Time> SubscribedList::NextTick() const {
  std::optional<Time> next;
  for (const auto& [key, entry] : entries_) {
    if (!entry.doubtful_until.has_value()) continue;
    next = next.has_value() ? std::min(*next, *entry.doubtful_until) : *entry.doubtful_until;
  }
  return next;
}

void SubscribedList::Publish() {
  auto list = std::make_shared<ServiceList>();
  list->name = subscription_.name;
  for (const auto& [key, entry] : entries_) list->versions[key.first].push_back(entry.info);
  if (list_ != nullptr && list_->versions == list->versions) return;
  list->revision = list_ == nullptr ? 1 : list_->revision + 1;
  list_ = std::move(list);
}

}  // namespace zeze::registry
