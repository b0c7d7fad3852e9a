#include "zeze/storage/mariadb/mariadb_fence_rows.h"

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
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/table_name.h"

namespace zeze::mariadb_rows {

Error FenceError(ErrorCode code, std::string_view what, std::string_view message) {
  return {code, fmt::format("cannot {}: {}", what, message)};
}

std::map<std::int32_t, std::int64_t> TermsIn(const MariaDbAnswer& answer) {
  std::map<std::int32_t, std::int64_t> terms;
  for (std::size_t row = 0; row < answer.rows.size(); ++row) {
    terms.emplace(static_cast<std::int32_t>(answer.number(row, 0)), answer.number(row, 1));
  }
  return terms;
}

MariaDbAnswer LockGuard(MariaDbConnection& connection) {
  MariaDbAnswer answer =
      connection.Query("UPDATE zeze_global SET uses = uses + 1 WHERE shard = -1");
  if (answer.ok() && answer.affected_rows == 0) {
    answer.failure = MariaDbFailure::kError;
    answer.message =
        "the row of shard -1 is missing in zeze_global; open the storage again to restore it";
  }
  return answer;
}

std::string Bytes(std::string_view bytes) {
  return fmt::format("x'{}'", FormatClusterId(bytes));
}

std::string LaneRows(std::int32_t server_id, std::int64_t epoch, bool live,
                     const std::string& quoted_holder, std::string_view secret,
                     std::string_view incarnation) {
  std::string rows;
  for (std::size_t lane = 0; lane < kFenceLaneCount; ++lane) {
    rows +=
        fmt::format("{}({}, {}, {}, 0, {}, {}, 0, {}, {})", lane == 0 ? "" : ", ", server_id, lane,
                    epoch, live ? 1 : 0, quoted_holder, Bytes(secret), Bytes(incarnation));
  }
  return rows;
}

MariaDbAnswer NoteLostEpoch(MariaDbConnection& connection, std::int32_t server_id) {
  return connection.Query(
      fmt::format("INSERT INTO zeze_fenced (server_id, epoch, renew_seq) SELECT server_id,"
                  " epoch_lost, seq_lost FROM zeze_fence WHERE server_id = {} AND lane = 1"
                  " AND epoch_lost > 0 ON DUPLICATE KEY UPDATE epoch = VALUES(epoch)",
                  server_id));
}

MariaDbAnswer ForgetYields(MariaDbConnection& connection, std::int32_t server_id,
                           std::int64_t epoch_max) {
  MariaDbAnswer answer;
  for (const char* table : {"zeze_wanted", "zeze_yield"}) {
    answer = connection.Query(fmt::format("DELETE FROM {} WHERE server_id = {} AND epoch <= {}",
                                          table, server_id, epoch_max));
    if (!answer.ok()) return answer;
  }
  return answer;
}

MariaDbAnswer HoldTerm(MariaDbConnection& connection, std::int32_t shard, std::int64_t term) {
  return connection.Query(fmt::format(
      "UPDATE zeze_global SET uses = uses + 1 WHERE shard = {} AND term = {}", shard, term));
}

MariaDbAnswer LookForReprieve(MariaDbConnection& connection, std::int32_t server_id,
                              std::int64_t epoch, std::int32_t shard, const EvictUnless& unless,
                              std::string_view lock, EvictOutcome& outcome) {
  MariaDbAnswer lanes =
      connection.Query(fmt::format("SELECT flush_seq FROM zeze_fence WHERE server_id = {}"
                                   " AND lane = 1 AND epoch = {} AND live = 1 {}",
                                   server_id, epoch, lock));
  if (!lanes.ok() || lanes.rows.empty()) return lanes;
  MariaDbAnswer answer = connection.Query(
      fmt::format("SELECT number, term FROM zeze_yield WHERE server_id = {} AND epoch = {}"
                  " AND shard = {} {}",
                  server_id, epoch, shard, lock));
  if (!answer.ok()) return answer;
  if (!answer.rows.empty() &&
      Saves(unless, {.number = answer.number(0, 0), .term = answer.number(0, 1)})) {
    outcome = EvictOutcome::kYielded;
  } else if (unless.renewed_since.has_value() && *unless.renewed_since != lanes.number(0, 0)) {
    outcome = EvictOutcome::kRenewed;
  }
  return answer;
}

MariaDbAnswer ForgetLease(MariaDbConnection& connection, std::int32_t server_id,
                          std::int64_t epoch) {
  return connection.Query(
      fmt::format("DELETE FROM zeze_lease WHERE server_id = {} AND epoch = {}", server_id, epoch));
}

std::string AndHasNotEnded(const FenceStartOptions& options) {
  std::string list;
  for (const std::string& ended : options.ended) {
    if (!ended.empty()) list += fmt::format("{}{}", list.empty() ? "" : ", ", Bytes(ended));
  }
  return list.empty() ? "" : fmt::format(" AND incarnation NOT IN ({})", list);
}

std::string EvictSql(std::int32_t server_id, std::int64_t epoch) {
  // Assignments are made from left to right: all but the last see the old epoch.
  return fmt::format(
      "{}{} ON DUPLICATE KEY UPDATE"
      " seq_lost = IF(live AND epoch < VALUES(epoch), flush_seq, seq_lost),"
      " epoch_lost = IF(live AND epoch < VALUES(epoch), epoch, epoch_lost),"
      " live = IF(epoch < VALUES(epoch), 0, live), epoch = GREATEST(epoch, VALUES(epoch))",
      kInsertLanes, LaneRows(server_id, epoch + 1, false, "''", "", ""));
}

MariaDbAnswer AddColumn(MariaDbConnection& connection, std::string_view table,
                        std::string_view column, std::string_view type) {
  const std::string exists = fmt::format(
      "SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()"
      " AND TABLE_NAME = '{}' AND COLUMN_NAME = '{}'",
      table, column);
  RetryPause pause(std::chrono::seconds(10));
  while (true) {
    MariaDbAnswer answer = connection.Query(exists);
    if (!answer.ok() || !answer.rows.empty()) return answer;
    // Several processes may do it at the same time; a flush may hold the table for a moment.
    answer = connection.Query(fmt::format("ALTER TABLE {} ADD COLUMN {} {}", table, column, type));
    if (!answer.ok() && !pause.Wait()) return answer;
  }
}

std::vector<LiveServer> LiveIn(const MariaDbAnswer& answer) {
  std::vector<LiveServer> live;
  live.reserve(answer.rows.size());
  for (std::size_t row = 0; row < answer.rows.size(); ++row) {
    live.push_back({.server_id = static_cast<std::int32_t>(answer.number(row, 0)),
                    .epoch = answer.number(row, 1),
                    .holder = answer.text(row, 2),
                    .fenced = answer.number(row, 3) != 0,
                    .lease = std::chrono::milliseconds(answer.number(row, 4)),
                    .renew_seq = answer.number(row, 5)});
  }
  return live;
}

std::optional<ClusterRow> ClusterIn(const MariaDbAnswer& answer) {
  if (answer.rows.empty()) return std::nullopt;
  return ClusterRow{.cluster = answer.text(0, 0),
                    .protocol = static_cast<std::int32_t>(answer.number(0, 1)),
                    .shards = static_cast<std::int32_t>(answer.number(0, 2)),
                    .alone_server = static_cast<std::int32_t>(answer.number(0, 3)),
                    .alone_epoch = answer.number(0, 4)};
}

MariaDbAnswer ReadCluster(MariaDbConnection& connection, std::optional<ClusterRow>& row) {
  MariaDbAnswer answer = connection.Query(std::string(kClusterSql));
  if (answer.ok()) row = ClusterIn(answer);
  return answer;
}

MariaDbAnswer WriteCluster(MariaDbConnection& connection, const ClusterRow& row) {
  return connection.Query(fmt::format(
      "INSERT INTO zeze_cluster (one, cluster, protocol, shards, alone_server, alone_epoch)"
      " VALUES (1, {}, {}, {}, {}, {}) ON DUPLICATE KEY UPDATE cluster = VALUES(cluster),"
      " protocol = VALUES(protocol), shards = VALUES(shards),"
      " alone_server = VALUES(alone_server), alone_epoch = VALUES(alone_epoch)",
      Bytes(row.cluster), row.protocol, row.shards, row.alone_server, row.alone_epoch));
}

std::map<std::string, std::int32_t> TableIdsIn(const MariaDbAnswer& answer) {
  std::map<std::string, std::int32_t> ids;
  for (std::size_t row = 0; row < answer.rows.size(); ++row) {
    ids.emplace(answer.text(row, 0), static_cast<std::int32_t>(answer.number(row, 1)));
  }
  return ids;
}

Result<std::string> Relation(const std::string& table, bool folds) {
  Result<std::string> relation = SqlRelationName(table, kMariaDbNames);
  if (!relation.ok() || !folds) return relation;
  std::string folded = relation.value();
  for (char& c : folded) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return folded;
}

MariaDbAnswer ReadFolding(MariaDbConnection& connection, bool& folds) {
  MariaDbAnswer answer = connection.Query("SELECT @@lower_case_table_names");
  if (answer.ok()) folds = answer.number(0, 0) != 0;
  return answer;
}

MariaDbAnswer Refused(const Error& error, std::optional<Error>& refused) {
  refused = error;
  MariaDbAnswer answer;
  answer.failure = MariaDbFailure::kError;
  answer.message = error.message();
  return answer;
}

MariaDbAnswer CompareCluster(MariaDbConnection& connection, const FenceStartOptions& options,
                             std::optional<ClusterRow>& cluster, std::optional<Error>& refused) {
  MariaDbAnswer answer = ReadCluster(connection, cluster);
  if (!answer.ok()) return answer;
  if (Result<void> fits = CheckCluster(cluster, options); !fits.ok()) {
    return Refused(fits.error(), refused);
  }
  if (options.shards.has_value() && (!cluster.has_value() || cluster->shards < *options.shards)) {
    if (!cluster.has_value()) cluster = FirstClusterRow(options);
    cluster->shards = *options.shards;
    answer = WriteCluster(connection, *cluster);
    if (!answer.ok()) return answer;
  }
  bool folds = false;
  if (answer = ReadFolding(connection, folds); !answer.ok()) return answer;
  answer = connection.Query(std::string(kTableIdsSql));
  if (!answer.ok()) return answer;
  const std::map<std::string, std::int32_t> ids = TableIdsIn(answer);
  for (const StoredTable& table : options.tables) {
    const Result<std::string> relation = Relation(table.name, folds);
    if (!relation.ok()) return Refused(relation.error(), refused);
    if (Result<void> same = CheckTableId(ids, relation.value(), table); !same.ok()) {
      return Refused(same.error(), refused);
    }
    if (ids.contains(relation.value())) continue;
    answer = connection.Query(fmt::format("INSERT INTO zeze_table (name, id) VALUES ({}, {})",
                                          Bytes(relation.value()), table.id));
    if (!answer.ok()) return answer;
  }
  answer = connection.Query(std::string(kListLiveSql));
  if (!answer.ok()) return answer;
  const std::vector<LiveServer> others = ServersInTheWay(cluster, LiveIn(answer), options);
  return others.empty() ? std::move(answer) : Refused(InTheWayError(others, options), refused);
}

MariaDbAnswer RequireNotFrozen(MariaDbConnection& connection) {
  MariaDbAnswer answer = connection.Query("SELECT frozen FROM zeze_home LOCK IN SHARE MODE");
  if (!answer.ok() || answer.rows.empty() || answer.number(0, 0) == 0) return answer;
  return {.failure = MariaDbFailure::kCollision,
          .message = "the database is frozen for a planned switch-over: waiting for its end"};
}

}  // namespace zeze::mariadb_rows
