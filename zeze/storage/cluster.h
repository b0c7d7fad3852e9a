// What the processes that share a database must agree on, as the database has it: the rows
// zeze_cluster and zeze_table. Rules 51 to 55 of docs/architecture.md.
//
//   const Result<std::optional<ClusterRow>> row = storage.fence()->Cluster();
//   storage.fence()->Change({.shards = 2});        // Only while no server lives.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace zeze {

// The number of the rules by which servers and Globals share a database. Raised by a change that
// processes of an earlier build must not meet.
inline constexpr std::int32_t kClusterProtocol = 1;

// Made once, by the first Global or by the first server without one.
struct ClusterRow {
  std::string cluster;  // 16 random bytes: tells one database from another.
  std::int32_t protocol = kClusterProtocol;
  std::int32_t shards = 0;  // How many Globals share the keys. 0: none has ever served.
  // The process that has the database to itself, as long as this epoch is live. Epoch 0: none.
  std::int32_t alone_server = 0;
  std::int64_t alone_epoch = 0;

  bool operator==(const ClusterRow&) const = default;
};

// A table as the storage names it, and its id in the names of locks.
struct StoredTable {
  std::string name;
  std::int32_t id = 0;

  bool operator==(const StoredTable&) const = default;
};

// A change that is made only while no server lives (rule 55).
struct ClusterChange {
  std::optional<std::int32_t> shards = std::nullopt;
  std::optional<std::int32_t> protocol = std::nullopt;
  bool new_identity = false;  // For a copy of a database that is to live beside the original.
  // By name; absent: forget the table, the next server that has it says its id anew.
  std::map<std::string, std::optional<std::int32_t>> tables = {};
};

// 16 random bytes.
std::string NewClusterId();

// "3f2a90c1..." for people.
std::string FormatClusterId(std::string_view cluster);

}  // namespace zeze
