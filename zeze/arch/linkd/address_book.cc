#include "zeze/arch/linkd/address_book.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/net/net_address.h"

namespace zeze::arch {

namespace {

// A customer of a provider has a whole network of IPv6 addresses.
constexpr std::size_t kNetworkBytes = 8;

std::string KeyOf(const NetAddress& address) {
  const std::string_view bytes = address.bytes();
  return std::string(bytes.size() > kNetworkBytes ? bytes.substr(0, kNetworkBytes) : bytes);
}

}  // namespace

AddressBook::AddressBook(AddressLimits limits)
    : limits_(std::move(limits)),
      attempt_rate_(limits_.attempts),
      message_rate_(limits_.messages),
      strike_rate_(limits_.strikes) {}

AddressBook::Admission AddressBook::Admit(const NetAddress& peer, Time now) {
  std::string key = KeyOf(peer);
  const MutexLock lock(mutex_);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= limits_.addresses_max) Forget(now);
    if (entries_.size() >= limits_.addresses_max) {
      return {.verdict = AddressVerdict::kTooManyAttempts};
    }
    auto entry = std::make_shared<Entry>();
    entry->key = key;
    entry->address = peer;
    entry->exempt = limits_.exempt.contains(peer.IpText());
    found = entries_.emplace(std::move(key), std::move(entry)).first;
  }
  Entry& entry = *found->second;
  if (!entry.exempt) {
    if (now < entry.banned_until_) return {.verdict = AddressVerdict::kBanned};
    if (!entry.attempts_.Take(attempt_rate_, now)) {
      return {.verdict = AddressVerdict::kTooManyAttempts};
    }
    if (limits_.connections_max != 0 && entry.connections_ >= limits_.connections_max) {
      return {.verdict = AddressVerdict::kTooManyConnections};
    }
  }
  ++entry.connections_;
  return {.entry = found->second};
}

void AddressBook::Leave(Entry& entry) {
  const MutexLock lock(mutex_);
  --entry.connections_;
}

bool AddressBook::Strike(Entry& entry, Time now) {
  const MutexLock lock(mutex_);
  if (entry.exempt || entry.strikes_.Take(strike_rate_, now)) return false;
  const bool is_new = now >= entry.banned_until_;
  entry.banned_until_ = now + limits_.ban;
  return is_new;
}

std::vector<AddressBook::Ban> AddressBook::Bans(Time now) const {
  std::vector<Ban> bans;
  const MutexLock lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    if (now < entry->banned_until_) {
      bans.push_back({.address = entry->address, .remaining = entry->banned_until_ - now});
    }
  }
  return bans;
}

void AddressBook::Sweep(Time now) {
  const MutexLock lock(mutex_);
  Forget(now);
}

void AddressBook::Forget(Time now) {
  std::erase_if(entries_, [now](const auto& one) {
    const Entry& entry = *one.second;
    return entry.connections_ == 0 && now >= entry.banned_until_ && entry.attempts_.IsFull(now) &&
           entry.strikes_.IsFull(now) && entry.messages.IsFull(now);
  });
}

std::size_t AddressBook::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace zeze::arch
