// The statements of SqlFence on its rows, each inside a transaction of the caller.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"

namespace zeze::sql_rows {

inline const std::string kTermsSql = "SELECT shard, term FROM zeze_global WHERE shard >= 0";
inline const std::string kClusterSql =
    "SELECT cluster, protocol, shards, alone_server, alone_epoch FROM zeze_cluster";
inline const std::string kTableIdsSql = "SELECT name, id FROM zeze_table";
inline const std::string kForgetLeaseSql =
    "DELETE FROM zeze_lease WHERE server_id = $1 AND epoch = $2";

std::map<std::int32_t, std::int64_t> TermsIn(const SqlAnswer& answer);
std::vector<LiveServer> LiveIn(const SqlAnswer& answer);
std::optional<ClusterRow> ClusterIn(const SqlAnswer& answer);
std::map<std::string, std::int32_t> TableIdsIn(const SqlAnswer& answer);

// `sql` is words().lock_guard or words().share_guard.
SqlAnswer HoldGuard(SqlConnection& connection, const std::string& sql);

SqlAnswer ReadCluster(SqlConnection& connection, std::optional<ClusterRow>& row);

// `sql` is words().write_cluster or words().make_cluster.
SqlAnswer WriteCluster(SqlConnection& connection, const std::string& sql, const ClusterRow& row);

SqlAnswer Refused(const Error& error, std::optional<Error>& refused);

// Under the guard: whether this start fits the cluster (rules 52 to 54). Makes what it is the first
// to know of.
SqlAnswer CompareCluster(SqlConnection& connection, const SqlDialect& dialect,
                         const FenceStartOptions& options, std::optional<ClusterRow>& cluster,
                         std::optional<Error>& refused);

// Whether something saves the live server from its eviction. `lock`: and nothing will any more.
SqlAnswer LookForReprieve(SqlConnection& connection, const SqlDialect& dialect,
                          std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                          const EvictUnless& unless, bool lock, EvictOutcome& outcome);

// A switch-over (rule 74) changes this row first, and waits for every transaction that has read it.
SqlAnswer RequireNotFrozen(SqlConnection& connection, const SqlDialect& dialect);

}  // namespace zeze::sql_rows
