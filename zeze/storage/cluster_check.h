// For drivers: whether a process fits the cluster that its database describes, and what it is told
// if not. Plain functions on rows that were read under the guard; every driver decides and says the
// same.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"

namespace zeze {

// Whether this start needs the guard exclusively, and every other server gone.
bool IsExclusive(const FenceStartOptions& options);

// Protocol and number of shards (rule 52). Errors: kIncompatible; kUnavailable if there is no row
// and this start may not make it.
Result<void> CheckCluster(const std::optional<ClusterRow>& row, const FenceStartOptions& options);

// The row that this start makes because there is none.
ClusterRow FirstClusterRow(const FenceStartOptions& options);

// Names that are not in `stored` are new (rule 53). `folded` is the name as the engine has it.
Result<void> CheckTableId(const std::map<std::string, std::int32_t>& stored,
                          const std::string& folded, const StoredTable& table);

// Which of the servers that may use their rights keep this one from starting (rule 54).
std::vector<LiveServer> ServersInTheWay(const std::optional<ClusterRow>& row,
                                        const std::vector<LiveServer>& live,
                                        const FenceStartOptions& options);
// kInUse, naming them.
Error InTheWayError(const std::vector<LiveServer>& servers, const FenceStartOptions& options);

// The number of shards after this Global has started. `shard_max`: the highest shard that has ever
// had a term, -1 if none. Errors: kIncompatible.
Result<std::int32_t> CheckShards(const std::optional<ClusterRow>& row, std::int32_t shard_max,
                                 const GlobalStart& start);

// What the change makes of the row. Errors: kIncompatible, kNotFound, kInvalidArgument.
Result<ClusterRow> ChangedCluster(const std::optional<ClusterRow>& row,
                                  const ClusterChange& change);
// For whom ServersInTheWay is asked before a change: for no server.
FenceStartOptions ChangeOptions();
Error UnknownTableError(const std::string& name);

}  // namespace zeze
