#include "zeze/storage/postgres/postgres_fence_rows.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/sql/table_name.h"

namespace zeze::postgres_rows {

Error FenceError(ErrorCode code, std::string_view what, std::string_view message) {
  return {code, fmt::format("cannot {}: {}", what, message)};
}

std::map<std::int32_t, std::int64_t> TermsIn(const PostgresAnswer& answer) {
  std::map<std::int32_t, std::int64_t> terms;
  for (int row = 0; row < answer.row_count(); ++row) {
    terms.emplace(static_cast<std::int32_t>(answer.number(row, 0)), answer.number(row, 1));
  }
  return terms;
}

PostgresAnswer LockGuard(PostgresConnection& connection, std::string_view mode) {
  PostgresAnswer answer =
      connection.Execute(fmt::format("SELECT 1 FROM zeze_global WHERE shard = -1 {}", mode));
  if (answer.ok() && answer.row_count() == 0) {
    return {PostgresFailure::kError, "",
            "the row of shard -1 is missing in zeze_global; open the storage again to restore it"};
  }
  return answer;
}

PostgresAnswer ReadLanes(PostgresConnection& connection, std::int32_t server_id,
                         std::string_view lock) {
  const std::array<Parameter, 1> parameters = {Parameter::Number(server_id)};
  return connection.Execute(
      fmt::format("SELECT epoch, flush_seq, live::int, encode(incarnation, 'hex') FROM zeze_fence"
                  " WHERE server_id = $1::int ORDER BY lane {}",
                  lock),
      parameters);
}

PostgresAnswer LockLanes(PostgresConnection& connection, std::int32_t server_id) {
  return ReadLanes(connection, server_id, "FOR UPDATE");
}

PostgresAnswer ForgetYields(PostgresConnection& connection, std::int32_t server_id,
                            std::int64_t epoch_max) {
  const std::array<Parameter, 2> parameters = {Parameter::Number(server_id),
                                               Parameter::Number(epoch_max)};
  for (const char* sql :
       {"DELETE FROM zeze_wanted WHERE server_id = $1::int AND epoch <= $2::bigint",
        "DELETE FROM zeze_yield WHERE server_id = $1::int AND epoch <= $2::bigint"}) {
    PostgresAnswer answer = connection.Execute(sql, parameters);
    if (!answer.ok()) return answer;
  }
  return {};
}

PostgresAnswer NoteFenced(PostgresConnection& connection, std::int32_t server_id,
                          std::int64_t epoch_max) {
  const std::array<Parameter, 2> parameters = {Parameter::Number(server_id),
                                               Parameter::Number(epoch_max)};
  return connection.Execute(
      "INSERT INTO zeze_fenced (server_id, epoch, renew_seq) SELECT server_id, epoch, flush_seq"
      " FROM zeze_fence WHERE server_id = $1::int AND lane = 1 AND live AND epoch <= $2::bigint"
      " ON CONFLICT DO NOTHING",
      parameters);
}

PostgresAnswer ShareTerm(PostgresConnection& connection, std::int32_t shard, std::int64_t term) {
  const std::array<Parameter, 2> parameters = {Parameter::Number(shard), Parameter::Number(term)};
  return connection.Execute(
      "SELECT 1 FROM zeze_global WHERE shard = $1::int AND term = $2::bigint FOR SHARE",
      parameters);
}

PostgresAnswer LookForReprieve(PostgresConnection& connection, PostgresAnswer lanes,
                               std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                               const EvictUnless& unless, EvictOutcome& outcome) {
  constexpr auto kRenew = static_cast<int>(FenceLane::kRenew);
  const bool live = lanes.ok() && lanes.row_count() > kRenew && lanes.number(kRenew, 0) == epoch &&
                    lanes.number(kRenew, 2) != 0;
  if (!live) return lanes;
  const std::array<Parameter, 3> parameters = {Parameter::Number(server_id),
                                               Parameter::Number(epoch), Parameter::Number(shard)};
  PostgresAnswer answer = connection.Execute(
      "SELECT number, term FROM zeze_yield WHERE server_id = $1::int AND epoch = $2::bigint"
      " AND shard = $3::int",
      parameters);
  if (!answer.ok()) return answer;
  if (answer.row_count() > 0 &&
      Saves(unless, {.number = answer.number(0, 0), .term = answer.number(0, 1)})) {
    outcome = EvictOutcome::kYielded;
  } else if (unless.renewed_since.has_value() && *unless.renewed_since != lanes.number(kRenew, 1)) {
    outcome = EvictOutcome::kRenewed;
  }
  return answer;
}

bool PredecessorHasEnded(const PostgresAnswer& lanes, const FenceStartOptions& options) {
  return lanes.row_count() > 0 &&
         std::any_of(options.ended.begin(), options.ended.end(), [&](const std::string& ended) {
           return !ended.empty() && FormatClusterId(ended) == lanes.bytes(0, 3);
         });
}

PostgresAnswer RaiseEpoch(PostgresConnection& connection, const FenceStartOptions& options,
                          std::int64_t& epoch) {
  const std::array<Parameter, 5> parameters = {
      Parameter::Number(options.server_id), Parameter::Text(options.holder),
      Parameter::Number(static_cast<std::int64_t>(kFenceLaneCount) - 1),
      Parameter::Bytes(options.secret), Parameter::Bytes(options.incarnation)};
  PostgresAnswer answer = connection.Execute(
      "INSERT INTO zeze_fence AS old"
      " (server_id, lane, epoch, flush_seq, live, holder, secret, incarnation)"
      " SELECT $1::int, lane, 1, 0, true, $2::text, $4::bytea, $5::bytea"
      " FROM generate_series(0, $3::int) AS lane"
      " ON CONFLICT (server_id, lane) DO UPDATE SET epoch = old.epoch + 1, flush_seq = 0,"
      " live = true, holder = excluded.holder, secret = excluded.secret,"
      " incarnation = excluded.incarnation, changed = now()"
      " RETURNING epoch",
      parameters);
  if (!answer.ok()) return answer;
  epoch = 0;
  for (int row = 0; row < answer.row_count(); ++row) {
    epoch = std::max(epoch, answer.number(row, 0));
  }
  // They differ only if a lane is new to this database.
  const std::array<Parameter, 2> level = {Parameter::Number(options.server_id),
                                          Parameter::Number(epoch)};
  return connection.Execute(
      "UPDATE zeze_fence SET epoch = $2::bigint WHERE server_id = $1::int AND epoch <> $2::bigint",
      level);
}

PostgresAnswer NoteLease(PostgresConnection& connection, const FenceStartOptions& options,
                         std::int64_t epoch) {
  const std::array<Parameter, 3> parameters = {Parameter::Number(options.server_id),
                                               Parameter::Number(epoch),
                                               Parameter::Number(options.lease.count())};
  return connection.Execute(
      "INSERT INTO zeze_lease (server_id, epoch, lease_ms) VALUES ($1::int, $2::bigint, $3::bigint)"
      " ON CONFLICT (server_id, epoch) DO UPDATE SET lease_ms = excluded.lease_ms",
      parameters);
}

PostgresAnswer ForgetLease(PostgresConnection& connection, std::int32_t server_id,
                           std::int64_t epoch) {
  const std::array<Parameter, 2> parameters = {Parameter::Number(server_id),
                                               Parameter::Number(epoch)};
  return connection.Execute(
      "DELETE FROM zeze_lease WHERE server_id = $1::int AND epoch = $2::bigint", parameters);
}

std::vector<LiveServer> LiveIn(const PostgresAnswer& answer) {
  std::vector<LiveServer> live;
  live.reserve(static_cast<std::size_t>(answer.row_count()));
  for (int row = 0; row < answer.row_count(); ++row) {
    live.push_back({.server_id = static_cast<std::int32_t>(answer.number(row, 0)),
                    .epoch = answer.number(row, 1),
                    .holder = std::string(answer.bytes(row, 2)),
                    .fenced = answer.number(row, 3) != 0,
                    .lease = std::chrono::milliseconds(answer.number(row, 4)),
                    .renew_seq = answer.number(row, 5)});
  }
  return live;
}

std::optional<ClusterRow> ClusterIn(const PostgresAnswer& answer) {
  if (answer.row_count() == 0) return std::nullopt;
  return ClusterRow{.cluster = std::string(answer.bytes(0, 0)),
                    .protocol = static_cast<std::int32_t>(answer.number(0, 1)),
                    .shards = static_cast<std::int32_t>(answer.number(0, 2)),
                    .alone_server = static_cast<std::int32_t>(answer.number(0, 3)),
                    .alone_epoch = answer.number(0, 4)};
}

PostgresAnswer ReadCluster(PostgresConnection& connection, std::optional<ClusterRow>& row) {
  PostgresAnswer answer = connection.Execute(kClusterSql, {}, PostgresFormat::kBinary);
  if (answer.ok()) row = ClusterIn(answer);
  return answer;
}

PostgresAnswer WriteCluster(PostgresConnection& connection, const ClusterRow& row) {
  const std::array<Parameter, 5> parameters = {
      Parameter::Bytes(row.cluster), Parameter::Number(row.protocol), Parameter::Number(row.shards),
      Parameter::Number(row.alone_server), Parameter::Number(row.alone_epoch)};
  return connection.Execute(
      "INSERT INTO zeze_cluster (one, cluster, protocol, shards, alone_server, alone_epoch)"
      " VALUES (1, $1::bytea, $2::int, $3::int, $4::int, $5::bigint) ON CONFLICT (one) DO UPDATE"
      " SET cluster = excluded.cluster, protocol = excluded.protocol, shards = excluded.shards,"
      " alone_server = excluded.alone_server, alone_epoch = excluded.alone_epoch",
      parameters);
}

std::map<std::string, std::int32_t> TableIdsIn(const PostgresAnswer& answer) {
  std::map<std::string, std::int32_t> ids;
  for (int row = 0; row < answer.row_count(); ++row) {
    ids.emplace(answer.bytes(row, 0), static_cast<std::int32_t>(answer.number(row, 1)));
  }
  return ids;
}

PostgresAnswer Refused(const Error& error, std::optional<Error>& refused) {
  refused = error;
  return {PostgresFailure::kError, "", error.message()};
}

PostgresAnswer CompareCluster(PostgresConnection& connection, const FenceStartOptions& options,
                              std::optional<ClusterRow>& cluster, std::optional<Error>& refused) {
  PostgresAnswer answer = ReadCluster(connection, cluster);
  if (!answer.ok()) return answer;
  if (Result<void> fits = CheckCluster(cluster, options); !fits.ok()) {
    return Refused(fits.error(), refused);
  }
  if (options.shards.has_value() && (!cluster.has_value() || cluster->shards < *options.shards)) {
    // Another start may do the same beside this one; then its row counts.
    const ClusterRow first = FirstClusterRow(options);
    const std::array<Parameter, 3> parameters = {Parameter::Bytes(first.cluster),
                                                 Parameter::Number(first.protocol),
                                                 Parameter::Number(first.shards)};
    answer = connection.Execute(
        "INSERT INTO zeze_cluster AS old (one, cluster, protocol, shards, alone_server, "
        "alone_epoch)"
        " VALUES (1, $1::bytea, $2::int, $3::int, 0, 0) ON CONFLICT (one) DO UPDATE"
        " SET shards = excluded.shards WHERE old.shards = 0",
        parameters);
    if (answer.ok()) answer = ReadCluster(connection, cluster);
    if (!answer.ok()) return answer;
    if (Result<void> fits = CheckCluster(cluster, options); !fits.ok()) {
      return Refused(fits.error(), refused);
    }
  }
  answer = connection.Execute(kTableIdsSql);
  if (!answer.ok()) return answer;
  std::map<std::string, std::int32_t> ids = TableIdsIn(answer);
  for (const StoredTable& table : options.tables) {
    const Result<std::string> relation = SqlRelationName(table.name, kPostgresNames);
    if (!relation.ok()) return Refused(relation.error(), refused);
    if (!ids.contains(relation.value())) {
      // Another start may do the same beside this one; the second waits for the first.
      const std::array<Parameter, 2> parameters = {Parameter::Text(relation.value()),
                                                   Parameter::Number(table.id)};
      answer = connection.Execute(
          "INSERT INTO zeze_table (name, id) VALUES ($1::text, $2::int) ON CONFLICT DO NOTHING",
          parameters);
      if (answer.ok()) answer = connection.Execute(kTableIdsSql);
      if (!answer.ok()) return answer;
      ids = TableIdsIn(answer);
    }
    if (Result<void> same = CheckTableId(ids, relation.value(), table); !same.ok()) {
      return Refused(same.error(), refused);
    }
  }
  answer = connection.Execute(kListLiveSql);
  if (!answer.ok()) return answer;
  const std::vector<LiveServer> others = ServersInTheWay(cluster, LiveIn(answer), options);
  return others.empty() ? std::move(answer) : Refused(InTheWayError(others, options), refused);
}

PostgresAnswer RequireNotFrozen(PostgresConnection& connection) {
  PostgresAnswer answer = connection.ExecuteOnce("SELECT frozen FROM zeze_home FOR SHARE");
  if (!answer.ok() || answer.row_count() == 0 || answer.number(0, 0) == 0) return answer;
  return {PostgresFailure::kCollision, "",
          "the database is frozen for a planned switch-over: waiting for its end"};
}

}  // namespace zeze::postgres_rows
