// The statements of PostgresFence on its rows, each inside a transaction of the caller.

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
#include "zeze/storage/postgres/postgres_connection.h"

namespace zeze::postgres_rows {

using Parameter = PostgresParameter;

Error FenceError(ErrorCode code, std::string_view what, std::string_view message);

std::map<std::int32_t, std::int64_t> TermsIn(const PostgresAnswer& answer);

PostgresAnswer LockGuard(PostgresConnection& connection, std::string_view mode);

// The rows of all lanes in one order, so that two of us never wait for each other: epoch, number of
// the last flush, live or not, incarnation in hexadecimal digits.
PostgresAnswer ReadLanes(PostgresConnection& connection, std::int32_t server_id,
                         std::string_view lock);

PostgresAnswer LockLanes(PostgresConnection& connection, std::int32_t server_id);

// What a Global wants of epochs up to `epoch_max`, and what they have yielded, is over with them.
PostgresAnswer ForgetYields(PostgresConnection& connection, std::int32_t server_id,
                            std::int64_t epoch_max);

// Notes the process that loses its epoch, up to `epoch_max`, if it was live.
PostgresAnswer NoteFenced(PostgresConnection& connection, std::int32_t server_id,
                          std::int64_t epoch_max);

// No row: the term has passed. Nobody raises it before this transaction has ended.
PostgresAnswer ShareTerm(PostgresConnection& connection, std::int32_t shard, std::int64_t term);

// Whether something saves the live server from its eviction, by its lanes as they were read.
PostgresAnswer LookForReprieve(PostgresConnection& connection, PostgresAnswer lanes,
                               std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                               const EvictUnless& unless, EvictOutcome& outcome);

// `lanes` is the answer of LockLanes.
bool PredecessorHasEnded(const PostgresAnswer& lanes, const FenceStartOptions& options);

PostgresAnswer RaiseEpoch(PostgresConnection& connection, const FenceStartOptions& options,
                          std::int64_t& epoch);

PostgresAnswer NoteLease(PostgresConnection& connection, const FenceStartOptions& options,
                         std::int64_t epoch);

PostgresAnswer ForgetLease(PostgresConnection& connection, std::int32_t server_id,
                           std::int64_t epoch);

inline const std::string kListLiveSql =
    "SELECT server_id, epoch, '', 1, coalesce(lease_ms, 0), renew_seq"
    " FROM zeze_fenced LEFT JOIN zeze_lease USING (server_id, epoch) UNION ALL"
    " SELECT server_id, epoch, holder, 0, coalesce(lease_ms, 0),"
    " coalesce((SELECT flush_seq FROM zeze_fence renewed WHERE renewed.lane = 1"
    " AND renewed.server_id = zeze_fence.server_id), 0)"
    " FROM zeze_fence LEFT JOIN zeze_lease USING (server_id, epoch) WHERE lane = 0 AND live"
    " ORDER BY 1, 2";

std::vector<LiveServer> LiveIn(const PostgresAnswer& answer);

// Read as binary: the numbers come as text within.
inline const std::string kClusterSql =
    "SELECT cluster, protocol::text, shards::text, alone_server::text, alone_epoch::text"
    " FROM zeze_cluster";

std::optional<ClusterRow> ClusterIn(const PostgresAnswer& answer);

PostgresAnswer ReadCluster(PostgresConnection& connection, std::optional<ClusterRow>& row);

PostgresAnswer WriteCluster(PostgresConnection& connection, const ClusterRow& row);

std::map<std::string, std::int32_t> TableIdsIn(const PostgresAnswer& answer);

inline const std::string kTableIdsSql = "SELECT name, id FROM zeze_table";

PostgresAnswer Refused(const Error& error, std::optional<Error>& refused);

// Under the guard: whether this start fits the cluster (rules 52 to 54). Makes what it is the first
// to know of.
PostgresAnswer CompareCluster(PostgresConnection& connection, const FenceStartOptions& options,
                              std::optional<ClusterRow>& cluster, std::optional<Error>& refused);

// A switch-over (rule 74) changes this row first, and waits for every transaction that has read it.
PostgresAnswer RequireNotFrozen(PostgresConnection& connection);

}  // namespace zeze::postgres_rows
