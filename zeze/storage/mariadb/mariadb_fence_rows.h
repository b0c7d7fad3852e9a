// The statements of MariaDbFence on its rows, each inside a transaction of the caller.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/mariadb/mariadb_connection.h"

namespace zeze::mariadb_rows {

Error FenceError(ErrorCode code, std::string_view what, std::string_view message);

std::map<std::int32_t, std::int64_t> TermsIn(const MariaDbAnswer& answer);

MariaDbAnswer LockGuard(MariaDbConnection& connection);

// A literal of any bytes.
std::string Bytes(std::string_view bytes);

// A row of zeze_fence for each lane: "(7, 0, 3, 0, 1, 'holder', 0, x'', x''), (7, 1, ...)".
std::string LaneRows(std::int32_t server_id, std::int64_t epoch, bool live,
                     const std::string& quoted_holder, std::string_view secret,
                     std::string_view incarnation);

inline constexpr std::string_view kInsertLanes =
    "INSERT INTO zeze_fence (server_id, lane, epoch, flush_seq, live, holder, epoch_lost, secret,"
    " incarnation) VALUES ";

// Moves the epoch that an eviction or a start has taken away from its process to the list of those
// whose lease may not be over. Until the next start the row itself keeps it.
MariaDbAnswer NoteLostEpoch(MariaDbConnection& connection, std::int32_t server_id);

// What a Global wants of epochs up to `epoch_max`, and what they have yielded, is over with them.
MariaDbAnswer ForgetYields(MariaDbConnection& connection, std::int32_t server_id,
                           std::int64_t epoch_max);

// No row affected: the term has passed. Nobody raises it before this transaction has ended.
MariaDbAnswer HoldTerm(MariaDbConnection& connection, std::int32_t shard, std::int64_t term);

// Whether something saves the live server from its eviction. `lock`: empty, or FOR UPDATE.
MariaDbAnswer LookForReprieve(MariaDbConnection& connection, std::int32_t server_id,
                              std::int64_t epoch, std::int32_t shard, const EvictUnless& unless,
                              std::string_view lock, EvictOutcome& outcome);

MariaDbAnswer ForgetLease(MariaDbConnection& connection, std::int32_t server_id,
                          std::int64_t epoch);

// " AND incarnation NOT IN (x'..', x'..')", or nothing.
std::string AndHasNotEnded(const FenceStartOptions& options);

std::string EvictSql(std::int32_t server_id, std::int64_t epoch);

// To a table of an earlier build. Rows that are there have it empty, or 0.
MariaDbAnswer AddColumn(MariaDbConnection& connection, std::string_view table,
                        std::string_view column, std::string_view type);

inline constexpr std::string_view kListLiveSql =
    // UNION leaves out what is in both.
    "SELECT listed.server_id, listed.epoch, holder, fenced, COALESCE(lease_ms, 0), renew_seq"
    " FROM (SELECT server_id, epoch, '' AS holder, 1 AS fenced, renew_seq FROM zeze_fenced UNION"
    " SELECT server_id, epoch_lost, '', 1, seq_lost FROM zeze_fence WHERE lane = 1"
    " AND epoch_lost > 0 UNION SELECT server_id, epoch, holder, 0, flush_seq FROM zeze_fence"
    " WHERE lane = 1 AND live = 1"
    ") AS listed LEFT JOIN zeze_lease USING (server_id, epoch) ORDER BY 1, 2";

std::vector<LiveServer> LiveIn(const MariaDbAnswer& answer);

inline constexpr std::string_view kClusterSql =
    "SELECT cluster, protocol, shards, alone_server, alone_epoch FROM zeze_cluster";

std::optional<ClusterRow> ClusterIn(const MariaDbAnswer& answer);

MariaDbAnswer ReadCluster(MariaDbConnection& connection, std::optional<ClusterRow>& row);

MariaDbAnswer WriteCluster(MariaDbConnection& connection, const ClusterRow& row);

inline constexpr std::string_view kTableIdsSql = "SELECT name, id FROM zeze_table";

std::map<std::string, std::int32_t> TableIdsIn(const MariaDbAnswer& answer);

// As the engine finds it: on some systems it folds the names of tables.
Result<std::string> Relation(const std::string& table, bool folds);

MariaDbAnswer ReadFolding(MariaDbConnection& connection, bool& folds);

MariaDbAnswer Refused(const Error& error, std::optional<Error>& refused);

// Under the guard: whether this start fits the cluster (rules 52 to 54). Makes what it is the first
// to know of.
MariaDbAnswer CompareCluster(MariaDbConnection& connection, const FenceStartOptions& options,
                             std::optional<ClusterRow>& cluster, std::optional<Error>& refused);

// A switch-over (rule 74) changes this row first, and waits for every transaction that has read it.
MariaDbAnswer RequireNotFrozen(MariaDbConnection& connection);

}  // namespace zeze::mariadb_rows
