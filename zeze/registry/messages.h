// What servers tell the service manager, and what it tells them: plain values, without bytes and
// sockets.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zeze::registry {

// One connection of an agent. Never used again, not even after a restart of the service manager.
using SessionId = std::int64_t;
inline constexpr SessionId kNoSession = 0;

// Ids order: empty ones first, then those with '#', numbers by their value, those with '@', others.
// This is the order of Zeze 1.6 for everything that it can compare.
struct IdentityLess {
  bool operator()(std::string_view left, std::string_view right) const;
};

// Whether a server may call itself so: "@ip_port", "#anything" or a decimal number.
bool IsValidIdentity(std::string_view identity);

// Who offers a service: at any moment one registration for each key.
struct ServiceKey {
  std::string name;
  std::string identity;

  auto operator<=>(const ServiceKey&) const = default;
};

struct ServiceInfo {
  std::string name = {};
  std::string identity = {};
  std::int64_t version = 0;
  std::string passive_ip = {};
  std::int32_t passive_port = 0;
  std::string extra_info = {};

  ServiceKey key() const { return {name, identity}; }

  bool operator==(const ServiceInfo&) const = default;
};

// The removals first.
struct ServiceEdit {
  std::vector<ServiceInfo> remove = {};
  std::vector<ServiceInfo> add = {};  // Registers, or replaces the one with the same key.

  bool empty() const { return remove.empty() && add.empty(); }
  bool operator==(const ServiceEdit&) const = default;
};

struct Subscription {
  std::string name = {};
  std::int64_t version = 0;  // 0: all versions.
};

// The services of a name, by version, in the order of their identities.
using ServicesByVersion = std::map<std::int64_t, std::vector<ServiceInfo>>;
// The answer to subscriptions: every name that was asked for is there.
using ServicesByName = std::map<std::string, ServicesByVersion>;

// How busy the server at an address is, in its own words.
struct ServerLoad {
  std::string ip = {};
  std::int32_t port = 0;
  std::string param = {};

  bool operator==(const ServerLoad&) const = default;
};

// What another server shall take over when this one is gone.
struct OfflineNotice {
  std::int32_t server_id = 0;  // Below 0: nobody; its end is told at once.
  std::string notify_id = {};  // Who can take it over: those that registered the same.
  std::int64_t serial = 0;     // Whoever takes over compares it with what it finds.
  std::string context = {};

  bool operator==(const OfflineNotice&) const = default;
};

// A server that starts, and the servers that it knows of and that may be gone.
struct Announcement {
  struct Watched {
    std::int32_t server_id = 0;
    std::int64_t serial = 0;
  };

  std::string notify_id = {};
  std::int32_t server_id = 0;
  std::vector<Watched> watched = {};
};

// An unsigned number of 128 bits.
struct Id128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Id128&) const = default;
};

// Wraps around; see IdAllocator for who prevents that.
Id128 operator+(const Id128& left, std::uint64_t right);

// The ids from start on, as many as count.
struct IdBlock {
  Id128 start;
  std::uint32_t count = 0;

  bool operator==(const IdBlock&) const = default;
};

}  // namespace zeze::registry
