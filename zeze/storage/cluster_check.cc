#include "zeze/storage/cluster_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"

namespace zeze {

namespace {

std::string ShardCount(std::int32_t shards) {
  return shards == 1 ? "1 shard of Global" : fmt::format("{} shards of Global", shards);
}

std::string GlobalCount(std::int32_t shards) {
  return shards == 1 ? "1 Global" : fmt::format("{} Globals", shards);
}

std::string Name(const LiveServer& server) {
  std::string name = fmt::format("server {}", server.server_id);
  if (!server.holder.empty()) name += fmt::format(" ({})", server.holder);
  if (server.fenced) name += fmt::format(" (epoch {}, evicted, its lease is open)", server.epoch);
  return name;
}

Error ProtocolError(std::int32_t protocol) {
  return {ErrorCode::kIncompatible,
          fmt::format("the cluster in this database has protocol {}, and this build speaks {}: use "
                      "a build that speaks it, or stop all servers and run \"zeze cluster protocol "
                      "{}\"",
                      protocol, kClusterProtocol, kClusterProtocol)};
}

}  // namespace

std::string NewClusterId() {
  std::random_device random;
  std::string id;
  while (id.size() < 16) {
    const std::uint32_t bits = random();
    for (int shift = 0; shift < 32; shift += 8) id += static_cast<char>(bits >> shift);
  }
  return id;
}

std::string FormatClusterId(std::string_view cluster) {
  std::string text;
  for (const char c : cluster) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

bool IsExclusive(const FenceStartOptions& options) {
  return options.exclusive || options.shards == 0;
}

Result<void> CheckCluster(const std::optional<ClusterRow>& row, const FenceStartOptions& options) {
  if (!options.shards.has_value()) return {};
  const std::int32_t shards = *options.shards;
  if (!row.has_value()) {
    if (shards == 0 || options.makes_cluster) return {};
    return Error(ErrorCode::kUnavailable,
                 "no Global of this build has served this database yet: start one (zeze global "
                 "--database ...)");
  }
  if (row->protocol != kClusterProtocol) return ProtocolError(row->protocol);
  if (shards == 0 || shards == row->shards) return {};
  if (row->shards == 0 && options.makes_cluster) return {};
  return Error(ErrorCode::kIncompatible,
               fmt::format("this server is configured with {}, but the cluster in this database "
                           "has {}: list all of them in GlobalCacheManagerHostNameOrAddress, shard "
                           "0 first, or stop all servers and run \"zeze cluster shards {}\"",
                           GlobalCount(shards), ShardCount(row->shards), shards));
}

ClusterRow FirstClusterRow(const FenceStartOptions& options) {
  return {.cluster = NewClusterId(), .shards = options.shards.value_or(0)};
}

Result<void> CheckTableId(const std::map<std::string, std::int32_t>& stored,
                          const std::string& folded, const StoredTable& table) {
  const auto at = stored.find(folded);
  if (at == stored.end() || at->second == table.id) return {};
  return Error(ErrorCode::kIncompatible,
               fmt::format("table {} has id {} in this program and id {} in this database. The id "
                           "names the locks of its records, so all servers must have the same: "
                           "restore id {} in the schema, or stop all servers and run \"zeze "
                           "cluster table {} --id {}\"",
                           table.name, table.id, at->second, at->second, table.name, table.id));
}

std::vector<LiveServer> ServersInTheWay(const std::optional<ClusterRow>& row,
                                        const std::vector<LiveServer>& live,
                                        const FenceStartOptions& options) {
  const std::int32_t alone = row.has_value() ? row->alone_server : 0;
  const std::int64_t alone_epoch = row.has_value() ? row->alone_epoch : 0;
  std::vector<LiveServer> servers;
  for (const LiveServer& server : live) {
    const bool was_alone = server.server_id == alone && server.epoch <= alone_epoch;
    // A server that was alone and starts again need not wait for itself: only it has seen its data.
    const bool predecessor = was_alone && server.server_id == options.server_id;
    const bool blocks = IsExclusive(options) ? !(predecessor && options.shards == 0) : was_alone;
    if (blocks) servers.push_back(server);
  }
  return servers;
}

Error InTheWayError(const std::vector<LiveServer>& servers, const FenceStartOptions& options) {
  constexpr std::size_t kNamesMax = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(servers.size(), kNamesMax); ++i) {
    names += (i == 0 ? "" : ", ") + Name(servers[i]);
  }
  if (servers.size() > kNamesMax) names += fmt::format(" and {} more", servers.size() - kNamesMax);
  std::string text;
  if (!options.exclusive_for.empty()) {
    text = fmt::format(
        "{}, which is done only while no other server lives, but the database is in "
        "use by {}: stop them first",
        options.exclusive_for, names);
  } else if (IsExclusive(options)) {
    text = fmt::format(
        "this server is configured without a Global and needs the database for "
        "itself, but it is in use by {}: stop them, or let all servers share the "
        "database through a Global (GlobalCacheManagerHostNameOrAddress)",
        names);
  } else {
    text = fmt::format(
        "this server is configured with {}, but {} has the database to itself, "
        "without a Global: stop it, or configure it with the same Globals",
        GlobalCount(options.shards.value_or(1)), names);
  }
  return {ErrorCode::kInUse, text};
}

Result<std::int32_t> CheckShards(const std::optional<ClusterRow>& row, std::int32_t shard_max,
                                 const GlobalStart& start) {
  if (row.has_value() && row->protocol != kClusterProtocol) return ProtocolError(row->protocol);
  const bool known = row.has_value() && row->shards > 0;
  // A database of an earlier build does not say it: its terms do.
  const std::int32_t guess = start.shards > 0 ? start.shards : std::max(shard_max + 1, 1);
  const std::int32_t shards = known ? row->shards : guess;
  if (known && start.shards > 0 && start.shards != shards) {
    return Error(ErrorCode::kIncompatible,
                 fmt::format("this Global was started with --shards {}, but the cluster in this "
                             "database has {}: start it with --shards {}, or stop all servers and "
                             "run \"zeze cluster shards {}\"",
                             start.shards, ShardCount(shards), shards, start.shards));
  }
  if (start.shard >= shards) {
    return Error(
        ErrorCode::kIncompatible,
        known ? fmt::format("this Global was started with --shard {}, but the cluster in this "
                            "database has {}, numbered from 0: stop all servers and run \"zeze "
                            "cluster shards {}\" if it shall have more",
                            start.shard, ShardCount(shards), start.shard + 1)
              : fmt::format("this Global was started with --shard {} on a database whose cluster "
                            "does not know its number of shards yet: start all Globals of a new "
                            "cluster with --shards {} (or how many there will be)",
                            start.shard, start.shard + 1));
  }
  return shards;
}

Result<ClusterRow> ChangedCluster(const std::optional<ClusterRow>& row,
                                  const ClusterChange& change) {
  if (!row.has_value()) {
    return Error(ErrorCode::kNotFound,
                 "no Global and no server has used this database yet: there is nothing to change");
  }
  ClusterRow changed = *row;
  if (change.shards.has_value()) {
    if (*change.shards < 1) {
      return Error(ErrorCode::kInvalidArgument, "a cluster has at least 1 shard of Global");
    }
    changed.shards = *change.shards;
  }
  if (change.protocol.has_value()) {
    if (*change.protocol != kClusterProtocol) {
      return Error(ErrorCode::kIncompatible,
                   fmt::format("this build speaks protocol {}: run the command of a build that "
                               "speaks {}",
                               kClusterProtocol, *change.protocol));
    }
    changed.protocol = *change.protocol;
  }
  if (change.new_identity) changed.cluster = NewClusterId();
  changed.alone_server = 0;
  changed.alone_epoch = 0;
  return changed;
}

FenceStartOptions ChangeOptions() {
  return {.server_id = -1,
          .shards = std::nullopt,
          .exclusive = true,
          .exclusive_for = "this is a change of the whole cluster"};
}

Error UnknownTableError(const std::string& name) {
  return {ErrorCode::kNotFound,
          fmt::format("no server has started with a table {}: \"zeze cluster show\" lists those "
                      "that are known",
                      name)};
}

}  // namespace zeze
