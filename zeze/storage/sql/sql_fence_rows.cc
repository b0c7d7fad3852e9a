#include "zeze/storage/sql/sql_fence_rows.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/sql/table_name.h"

namespace zeze::sql_rows {

std::map<std::int32_t, std::int64_t> TermsIn(const SqlAnswer& answer) {
  std::map<std::int32_t, std::int64_t> terms;
  for (std::size_t row = 0; row < answer.row_count(); ++row) {
    terms.emplace(static_cast<std::int32_t>(answer.number(row, 0)), answer.number(row, 1));
  }
  return terms;
}

std::vector<LiveServer> LiveIn(const SqlAnswer& answer) {
  std::vector<LiveServer> live;
  live.reserve(answer.row_count());
  for (std::size_t row = 0; row < answer.row_count(); ++row) {
    live.push_back({.server_id = static_cast<std::int32_t>(answer.number(row, 0)),
                    .epoch = answer.number(row, 1),
                    .holder = answer.text(row, 2),
                    .fenced = answer.number(row, 3) != 0,
                    .lease = std::chrono::milliseconds(answer.number(row, 4)),
                    .renew_seq = answer.number(row, 5)});
  }
  return live;
}

std::optional<ClusterRow> ClusterIn(const SqlAnswer& answer) {
  if (answer.row_count() == 0) return std::nullopt;
  return ClusterRow{.cluster = answer.text(0, 0),
                    .protocol = static_cast<std::int32_t>(answer.number(0, 1)),
                    .shards = static_cast<std::int32_t>(answer.number(0, 2)),
                    .alone_server = static_cast<std::int32_t>(answer.number(0, 3)),
                    .alone_epoch = answer.number(0, 4)};
}

std::map<std::string, std::int32_t> TableIdsIn(const SqlAnswer& answer) {
  std::map<std::string, std::int32_t> ids;
  for (std::size_t row = 0; row < answer.row_count(); ++row) {
    ids.emplace(answer.text(row, 0), static_cast<std::int32_t>(answer.number(row, 1)));
  }
  return ids;
}

SqlAnswer HoldGuard(SqlConnection& connection, const std::string& sql) {
  SqlAnswer answer = connection.Run(sql);
  if (answer.ok() && answer.met_rows() == 0) {
    return {SqlFailure::kError,
            "the row of shard -1 is missing in zeze_global; open the storage again to restore it"};
  }
  return answer;
}

SqlAnswer ReadCluster(SqlConnection& connection, std::optional<ClusterRow>& row) {
  SqlAnswer answer = connection.Run(kClusterSql);
  if (answer.ok()) row = ClusterIn(answer);
  return answer;
}

SqlAnswer WriteCluster(SqlConnection& connection, const std::string& sql, const ClusterRow& row) {
  return connection.Run(sql, {SqlParameter::Bytes(row.cluster), row.protocol, row.shards,
                              row.alone_server, row.alone_epoch});
}

SqlAnswer Refused(const Error& error, std::optional<Error>& refused) {
  refused = error;
  return {SqlFailure::kError, error.message()};
}

namespace {

// The number of shards, by a start that is the first to know it.
SqlAnswer MakeCluster(SqlConnection& connection, const SqlDialect& dialect,
                      const FenceStartOptions& options, std::optional<ClusterRow>& cluster,
                      std::optional<Error>& refused) {
  if (!cluster.has_value()) cluster = FirstClusterRow(options);
  cluster->shards = *options.shards;
  SqlAnswer answer = WriteCluster(connection, dialect.words().make_cluster, *cluster);
  if (!answer.ok() || !dialect.words().shares_guard) return answer;
  // Another start may do the same beside this one; then its row counts.
  answer = ReadCluster(connection, cluster);
  if (!answer.ok()) return answer;
  const Result<void> fits = CheckCluster(cluster, options);
  return fits.ok() ? std::move(answer) : Refused(fits.error(), refused);
}

SqlAnswer CompareTableIds(SqlConnection& connection, const SqlDialect& dialect,
                          const FenceStartOptions& options, std::optional<Error>& refused) {
  SqlNameRules rules;
  SqlAnswer answer = dialect.ReadNameRules(connection, rules);
  if (answer.ok()) answer = connection.Run(kTableIdsSql);
  if (!answer.ok()) return answer;
  std::map<std::string, std::int32_t> ids = TableIdsIn(answer);
  for (const StoredTable& table : options.tables) {
    const Result<std::string> relation = SqlRelationName(table.name, rules);
    if (!relation.ok()) return Refused(relation.error(), refused);
    if (!ids.contains(relation.value())) {
      answer = connection.Run(dialect.words().add_table_id, {relation.value(), table.id});
      if (!answer.ok()) return answer;
      if (!dialect.words().shares_guard) continue;
      // Another start may do the same beside this one; the second waits for the first.
      answer = connection.Run(kTableIdsSql);
      if (!answer.ok()) return answer;
      ids = TableIdsIn(answer);
    }
    if (Result<void> same = CheckTableId(ids, relation.value(), table); !same.ok()) {
      return Refused(same.error(), refused);
    }
  }
  return answer;
}

}  // namespace

SqlAnswer CompareCluster(SqlConnection& connection, const SqlDialect& dialect,
                         const FenceStartOptions& options, std::optional<ClusterRow>& cluster,
                         std::optional<Error>& refused) {
  SqlAnswer answer = ReadCluster(connection, cluster);
  if (!answer.ok()) return answer;
  if (Result<void> fits = CheckCluster(cluster, options); !fits.ok()) {
    return Refused(fits.error(), refused);
  }
  if (options.shards.has_value() && (!cluster.has_value() || cluster->shards < *options.shards)) {
    answer = MakeCluster(connection, dialect, options, cluster, refused);
    if (!answer.ok()) return answer;
  }
  answer = CompareTableIds(connection, dialect, options, refused);
  if (answer.ok()) answer = connection.Run(dialect.words().list_live);
  if (!answer.ok()) return answer;
  const std::vector<LiveServer> others = ServersInTheWay(cluster, LiveIn(answer), options);
  return others.empty() ? std::move(answer) : Refused(InTheWayError(others, options), refused);
}

SqlAnswer LookForReprieve(SqlConnection& connection, const SqlDialect& dialect,
                          std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                          const EvictUnless& unless, bool lock, EvictOutcome& outcome) {
  std::optional<std::int64_t> renewals;
  SqlAnswer answer = dialect.ReadRenewals(connection, server_id, epoch, lock, renewals);
  if (!answer.ok() || !renewals.has_value()) return answer;
  std::string sql =
      "SELECT number, term FROM zeze_yield WHERE server_id = $1 AND epoch = $2 AND shard = $3";
  if (lock) sql += dialect.words().and_lock_yield;
  answer = connection.Run(sql, {server_id, epoch, shard});
  if (!answer.ok()) return answer;
  if (answer.row_count() > 0 &&
      Saves(unless, {.number = answer.number(0, 0), .term = answer.number(0, 1)})) {
    outcome = EvictOutcome::kYielded;
  } else if (unless.renewed_since.has_value() && *unless.renewed_since != *renewals) {
    outcome = EvictOutcome::kRenewed;
  }
  return answer;
}

SqlAnswer RequireNotFrozen(SqlConnection& connection, const SqlDialect& dialect) {
  SqlAnswer answer =
      connection.RunOnce("SELECT frozen FROM zeze_home" + dialect.words().share_lock);
  if (!answer.ok() || answer.row_count() == 0 || answer.number(0, 0) == 0) return answer;
  return {SqlFailure::kCollision,
          "the database is frozen for a planned switch-over: waiting for its end"};
}

}  // namespace zeze::sql_rows
