// HashRing: which server a hash belongs to, so that all processes agree without asking each other,
// and few hashes move when a server comes or goes.
//
//   HashRing ring("Game.Server.Module#11013", {"1", "2", "3"});
//   const std::string* server = ring.LookupText(account);          // Null: nobody is there.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zeze {

// Bit-identical with Zeze 1.6: servers of both kinds must choose the same. Immutable.
class HashRing {
 public:
  HashRing() = default;
  // Identities are those of the servers that offer the service, each once.
  HashRing(std::string_view service_name, std::vector<std::string> identities);

  // Identities in the order in which they were given.
  const std::vector<std::string>& identities() const { return identities_; }
  bool empty() const { return identities_.empty(); }

  // Null if the ring is empty.
  const std::string* Lookup(std::int64_t hash) const;
  // An account, by its name.
  const std::string* LookupText(std::string_view text) const;
  // One of the groups 0, 1 ... into which data is cut.
  const std::string* LookupGroup(std::uint32_t group) const;

 private:
  struct Point {
    std::int32_t position;
    std::uint32_t index;  // Among those of its server.
    std::uint32_t server;
  };

  std::vector<std::string> identities_;
  std::vector<Point> points_;  // Ascending, each position once.
};

// The group of a hash when data is cut into `level` of them.
constexpr std::uint32_t HashGroup(std::int32_t hash, std::uint32_t level) {
  return static_cast<std::uint32_t>(hash) % level;
}

}  // namespace zeze
