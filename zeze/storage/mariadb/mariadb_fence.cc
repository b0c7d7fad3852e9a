#include "zeze/storage/mariadb/mariadb_fence.h"

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

#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_flush.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/table_name.h"

namespace zeze {
namespace {

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

// A literal of any bytes.
std::string Bytes(std::string_view bytes) {
  return fmt::format("x'{}'", FormatClusterId(bytes));
}

// A row of zeze_fence for each lane: "(7, 0, 3, 0, 1, 'holder', 0, x'', x''), (7, 1, ...)".
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

constexpr std::string_view kInsertLanes =
    "INSERT INTO zeze_fence (server_id, lane, epoch, flush_seq, live, holder, epoch_lost, secret,"
    " incarnation) VALUES ";

// Moves the epoch that an eviction or a start has taken away from its process to the list of those
// whose lease may not be over. Until the next start the row itself keeps it.
MariaDbAnswer NoteLostEpoch(MariaDbConnection& connection, std::int32_t server_id) {
  return connection.Query(
      fmt::format("INSERT INTO zeze_fenced (server_id, epoch, renew_seq) SELECT server_id,"
                  " epoch_lost, seq_lost FROM zeze_fence WHERE server_id = {} AND lane = 1"
                  " AND epoch_lost > 0 ON DUPLICATE KEY UPDATE epoch = VALUES(epoch)",
                  server_id));
}

// What a Global wants of epochs up to `epoch_max`, and what they have yielded, is over with them.
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

// No row affected: the term has passed. Nobody raises it before this transaction has ended.
MariaDbAnswer HoldTerm(MariaDbConnection& connection, std::int32_t shard, std::int64_t term) {
  return connection.Query(fmt::format(
      "UPDATE zeze_global SET uses = uses + 1 WHERE shard = {} AND term = {}", shard, term));
}

// Whether something saves the live server from its eviction. `lock`: empty, or FOR UPDATE.
MariaDbAnswer LookForReprieve(MariaDbConnection& connection, std::int32_t server_id,
                              std::int64_t epoch, std::int32_t shard, const EvictUnless& unless,
                              std::string_view lock, EvictOutcome& outcome) {
  const MariaDbAnswer lanes =
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

// " AND incarnation NOT IN (x'..', x'..')", or nothing.
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

// To a table of an earlier build. Rows that are there have it empty, or 0.
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

constexpr std::string_view kListLiveSql =
    // UNION leaves out what is in both.
    "SELECT listed.server_id, listed.epoch, holder, fenced, COALESCE(lease_ms, 0), renew_seq"
    " FROM (SELECT server_id, epoch, '' AS holder, 1 AS fenced, renew_seq FROM zeze_fenced UNION"
    " SELECT server_id, epoch_lost, '', 1, seq_lost FROM zeze_fence WHERE lane = 1"
    " AND epoch_lost > 0 UNION SELECT server_id, epoch, holder, 0, flush_seq FROM zeze_fence"
    " WHERE lane = 1 AND live = 1"
    ") AS listed LEFT JOIN zeze_lease USING (server_id, epoch) ORDER BY 1, 2";

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

constexpr std::string_view kClusterSql =
    "SELECT cluster, protocol, shards, alone_server, alone_epoch FROM zeze_cluster";

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

constexpr std::string_view kTableIdsSql = "SELECT name, id FROM zeze_table";

std::map<std::string, std::int32_t> TableIdsIn(const MariaDbAnswer& answer) {
  std::map<std::string, std::int32_t> ids;
  for (std::size_t row = 0; row < answer.rows.size(); ++row) {
    ids.emplace(answer.text(row, 0), static_cast<std::int32_t>(answer.number(row, 1)));
  }
  return ids;
}

// As the engine finds it: on some systems it folds the names of tables.
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

// Under the guard: whether this start fits the cluster (rules 52 to 54). Makes what it is the first
// to know of.
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

// A switch-over (rule 74) changes this row first, and waits for every transaction that has read it.
MariaDbAnswer RequireNotFrozen(MariaDbConnection& connection) {
  MariaDbAnswer answer = connection.Query("SELECT frozen FROM zeze_home LOCK IN SHARE MODE");
  if (!answer.ok() || answer.rows.empty() || answer.number(0, 0) == 0) return answer;
  return {.failure = MariaDbFailure::kCollision,
          .message = "the database is frozen for a planned switch-over: waiting for its end"};
}

}  // namespace

MariaDbAnswer MariaDbFence::MakeTables(MariaDbConnection& connection) {
  for (const char* sql : {
           "CREATE TABLE IF NOT EXISTS zeze_fence (server_id INT NOT NULL, lane TINYINT NOT NULL,"
           " epoch BIGINT NOT NULL, flush_seq BIGINT NOT NULL, live TINYINT NOT NULL,"
           " holder TEXT CHARACTER SET utf8mb4 NOT NULL, epoch_lost BIGINT NOT NULL,"
           " changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
           " secret VARBINARY(16) NOT NULL, frozen BIGINT NOT NULL DEFAULT 0,"
           " incarnation VARBINARY(16) NOT NULL DEFAULT '', seq_lost BIGINT NOT NULL DEFAULT -1,"
           " yields BIGINT NOT NULL DEFAULT 0,"
           " PRIMARY KEY (server_id, lane)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_fenced (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " renew_seq BIGINT NOT NULL DEFAULT -1, PRIMARY KEY (server_id, epoch)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_lease (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " lease_ms BIGINT NOT NULL, PRIMARY KEY (server_id, epoch)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_global (shard INT NOT NULL PRIMARY KEY,"
           " term BIGINT NOT NULL, holder VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
           " NOT NULL, uses BIGINT NOT NULL, secret VARBINARY(16) NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_cluster (one INT NOT NULL PRIMARY KEY,"
           " cluster VARBINARY(16) NOT NULL, protocol INT NOT NULL, shards INT NOT NULL,"
           " alone_server INT NOT NULL, alone_epoch BIGINT NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_table (name VARBINARY(64) NOT NULL PRIMARY KEY,"
           " id INT NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_home (one TINYINT NOT NULL PRIMARY KEY,"
           " home VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,"
           " home_number BIGINT NOT NULL, frozen BIGINT NOT NULL,"
           " marker VARCHAR(64) NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_wanted (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " shard INT NOT NULL, term BIGINT NOT NULL,"
           " PRIMARY KEY (server_id, epoch, shard)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_yield (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " shard INT NOT NULL, number BIGINT NOT NULL, term BIGINT NOT NULL,"
           " PRIMARY KEY (server_id, epoch, shard)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_session (name VARBINARY(64) NOT NULL PRIMARY KEY,"
           " server_id INT NOT NULL, lane TINYINT NOT NULL, epoch BIGINT NOT NULL,"
           " node VARBINARY(255) NOT NULL) ENGINE=InnoDB",
       }) {
    MariaDbAnswer answer = connection.Query(sql);
    if (!answer.ok()) return answer;
  }
  for (const char* table : {"zeze_fence", "zeze_global"}) {
    MariaDbAnswer answer = AddColumn(connection, table, "secret", "VARBINARY(16) NOT NULL");
    if (!answer.ok()) return answer;
  }
  struct Column {
    const char* table;
    const char* name;
    const char* type;
  };
  for (const Column& column :
       {Column{"zeze_fence", "frozen", "BIGINT NOT NULL DEFAULT 0"},
        Column{"zeze_fence", "incarnation", "VARBINARY(16) NOT NULL DEFAULT ''"},
        Column{"zeze_fence", "seq_lost", "BIGINT NOT NULL DEFAULT -1"},
        Column{"zeze_fence", "yields", "BIGINT NOT NULL DEFAULT 0"},
        Column{"zeze_fenced", "renew_seq", "BIGINT NOT NULL DEFAULT -1"}}) {
    MariaDbAnswer answer = AddColumn(connection, column.table, column.name, column.type);
    if (!answer.ok()) return answer;
  }
  // Read first: several servers start at once, and only the first has something to write.
  MariaDbAnswer guard = connection.Query("SELECT 1 FROM zeze_global WHERE shard = -1");
  if (!guard.ok() || !guard.rows.empty()) return guard;
  return connection.Query(
      "INSERT IGNORE INTO zeze_global (shard, term, holder, uses, secret)"
      " VALUES (-1, 0, '', 0, '')");
}

Result<void> MariaDbFence::InTransaction(std::string_view what, const Body& body) {
  RetryPause pause(retry_for_);
  for (;;) {
    Result<ConnectionPool<MariaDbConnection>::Lease> lease = pool_.Take();
    if (!lease.ok()) {
      if (lease.error().code() == ErrorCode::kFenced || !pause.Wait()) return lease.error();
      continue;
    }
    MariaDbConnection& connection = *lease.value();
    MariaDbAnswer answer = connection.Query("START TRANSACTION");
    if (answer.ok()) answer = RequireNotFrozen(connection);
    if (answer.ok()) answer = body(connection);
    const bool committing = answer.ok();
    if (committing) answer = connection.Query("COMMIT");
    if (answer.ok()) return {};
    connection.RollBack();
    // Only a collision is a COMMIT that did not happen for sure.
    if (committing && answer.failure != MariaDbFailure::kCollision) {
      return FenceError(ErrorCode::kUnknownOutcome, what, answer.message);
    }
    const bool again =
        answer.failure == MariaDbFailure::kCollision || answer.failure == MariaDbFailure::kLost;
    if (!again || !pause.Wait()) {
      return FenceError(ErrorCode::kUnavailable, what, answer.message);
    }
  }
}

Result<MariaDbAnswer> MariaDbFence::Query(const std::string& sql) {
  constexpr int kTries = 3;  // A connection from before a restart of the database is no reason.
  for (int tries = 1;; ++tries) {
    Result<ConnectionPool<MariaDbConnection>::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    MariaDbAnswer answer = lease.value()->Query(sql);
    if (answer.ok()) return answer;
    if (answer.failure == MariaDbFailure::kError || tries == kTries) {
      return FenceError(ErrorCode::kUnavailable, "read the fence rows", answer.message);
    }
  }
}

Result<FenceStart> MariaDbFence::Start(const FenceStartOptions& options) {
  MutexLock lock(mutex_);
  ZEZE_CHECK(owner_.epoch == 0);  // Once in the life of a storage.
  FenceStart started;
  std::optional<Error> refused;
  bool collided = false;
  const Result<void> done = InTransaction("start the server", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = LockGuard(connection);
    if (!answer.ok()) return answer;
    std::optional<ClusterRow> cluster;
    answer = CompareCluster(connection, options, cluster, refused);
    if (!answer.ok()) return answer;
    started.cluster = cluster.has_value() ? cluster->cluster : std::string();
    // A process of the same id may hang inside a flush.
    if (collided) answer = EndMariaDbSessions(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    collided = true;
    answer = connection.Query("SELECT shard, term FROM zeze_global WHERE shard >= 0");
    if (!answer.ok()) return answer;
    started.terms = TermsIn(answer);
    answer = NoteLostEpoch(connection, options.server_id);
    if (!answer.ok()) return answer;
    // Assignments are made from left to right: the first see the old epoch. A process that has
    // ended for certain loses nothing that anybody waits for (rule 62).
    answer = connection.Query(
        fmt::format("{}{} ON DUPLICATE KEY UPDATE seq_lost = flush_seq,"
                    " epoch_lost = IF(live{}, epoch, 0), epoch = epoch + 1,"
                    " flush_seq = 0, live = 1, holder = VALUES(holder), secret = VALUES(secret),"
                    " incarnation = VALUES(incarnation)",
                    kInsertLanes,
                    LaneRows(options.server_id, 1, true, connection.Quoted(options.holder),
                             options.secret, options.incarnation),
                    AndHasNotEnded(options)));
    if (answer.ok()) answer = ForgetYields(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    answer = NoteLostEpoch(connection, options.server_id);
    if (!answer.ok()) return answer;
    answer = connection.Query(
        fmt::format("SELECT MAX(epoch) FROM zeze_fence WHERE server_id = {}", options.server_id));
    if (!answer.ok()) return answer;
    started.epoch = answer.number(0, 0);
    if (cluster.has_value() && IsExclusive(options)) {
      cluster->alone_server = options.server_id;
      cluster->alone_epoch = started.epoch;
      answer = WriteCluster(connection, *cluster);
    }
    if (!answer.ok() || options.lease.count() == 0) return answer;
    return connection.Query(
        fmt::format("INSERT INTO zeze_lease (server_id, epoch, lease_ms) VALUES ({}, {}, {})"
                    " ON DUPLICATE KEY UPDATE lease_ms = VALUES(lease_ms)",
                    options.server_id, started.epoch, options.lease.count()));
  });
  if (refused.has_value()) return *refused;
  if (!done.ok()) return done.error();
  owner_ = {.server_id = options.server_id, .epoch = started.epoch};
  flush_lane_.SetOwner(owner_);
  renew_lane_.SetOwner(owner_);
  return started;
}

Result<void> MariaDbFence::Share() {
  const FenceOwner owner = Owner();
  bool fenced = false;
  Result<void> done = InTransaction("share the database", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = LockGuard(connection);
    if (!answer.ok()) return answer;
    answer = connection.Query(
        fmt::format("SELECT 1 FROM zeze_fence WHERE server_id = {} AND epoch = {} AND live = 1"
                    " AND lane = 0 FOR UPDATE",
                    owner.server_id, owner.epoch));
    fenced = answer.ok() && answer.rows.empty();
    if (!answer.ok() || fenced) return answer;
    return connection.Query(
        fmt::format("UPDATE zeze_cluster SET alone_epoch = 0 WHERE alone_server = {}"
                    " AND alone_epoch = {}",
                    owner.server_id, owner.epoch));
  });
  if (!done.ok() || !fenced) return done;
  return SayFenced(owner);
}

Result<std::vector<LiveServer>> MariaDbFence::InTheWay(const FenceStartOptions& options) {
  const Result<std::optional<ClusterRow>> cluster = Cluster();
  if (!cluster.ok()) return cluster.error();
  const Result<std::vector<LiveServer>> live = ListLive();
  if (!live.ok()) return live.error();
  return ServersInTheWay(cluster.value(), live.value(), options);
}

Result<bool> MariaDbFence::EvictSilent(const LiveServer& seen) {
  bool evicted = false;
  const Result<void> done =
      InTransaction("evict a silent server", [&](MariaDbConnection& connection) {
        MariaDbAnswer answer = EndMariaDbSessions(connection, seen.server_id, seen.epoch);
        if (!answer.ok()) return answer;
        answer = connection.Query(
            fmt::format("SELECT flush_seq FROM zeze_fence WHERE server_id = {} AND epoch = {}"
                        " AND live = 1 ORDER BY lane FOR UPDATE",
                        seen.server_id, seen.epoch));
        evicted = answer.ok() && answer.rows.size() == kFenceLaneCount &&
                  answer.number(static_cast<std::size_t>(FenceLane::kRenew), 0) == seen.renew_seq;
        if (!evicted) return answer;
        answer = connection.Query(
            fmt::format("UPDATE zeze_fence SET epoch = epoch + 1, live = 0 WHERE server_id = {}",
                        seen.server_id));
        if (answer.ok()) answer = ForgetYields(connection, seen.server_id, seen.epoch);
        return answer.ok() ? ForgetLease(connection, seen.server_id, seen.epoch) : answer;
      });
  if (!done.ok()) return done.error();
  return evicted;
}

Result<void> MariaDbFence::Renew() {
  return renew_lane_.Renew();
}

Result<void> MariaDbFence::Finish() {
  const FenceOwner owner = Owner();
  std::uint64_t met = 0;
  Result<void> done = InTransaction("end the server", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = connection.Query(
        fmt::format("UPDATE zeze_fence SET live = 0 WHERE server_id = {} AND epoch = {}",
                    owner.server_id, owner.epoch));
    met = answer.affected_rows;
    // Who was fenced meanwhile stays listed, and so does its lease.
    if (!answer.ok() || met == 0) return answer;
    answer = ForgetYields(connection, owner.server_id, owner.epoch);
    return answer.ok() ? ForgetLease(connection, owner.server_id, owner.epoch) : answer;
  });
  if (!done.ok()) return done;
  return met > 0 ? Result<void>() : SayFenced(owner);
}

FenceOwner MariaDbFence::Owner() {
  MutexLock lock(mutex_);
  ZEZE_CHECK(owner_.epoch != 0);
  return owner_;
}

Error MariaDbFence::SayFenced(const FenceOwner& owner) {
  const Result<ServerRow> row = Read(owner.server_id);
  if (!row.ok()) return row.error();
  return FencedError(owner.server_id, owner.epoch,
                     {.epoch = row.value().epoch, .flush_seq = 0, .live = row.value().live});
}

Result<std::int64_t> MariaDbFence::RaiseTerm(const GlobalStart& start) {
  ZEZE_CHECK(start.shard >= 0);
  std::int64_t term = 0;
  std::optional<Error> refused;
  const Result<void> done = InTransaction("raise the term", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = LockGuard(connection);
    if (!answer.ok()) return answer;
    std::optional<ClusterRow> cluster;
    answer = ReadCluster(connection, cluster);
    if (!answer.ok()) return answer;
    answer = connection.Query("SELECT MAX(shard) FROM zeze_global");
    if (!answer.ok()) return answer;
    const Result<std::int32_t> shards =
        CheckShards(cluster, static_cast<std::int32_t>(answer.number(0, 0)), start);
    if (!shards.ok()) return Refused(shards.error(), refused);
    if (!cluster.has_value() || cluster->shards != shards.value()) {
      if (!cluster.has_value()) cluster = ClusterRow{.cluster = NewClusterId()};
      cluster->shards = shards.value();
      answer = WriteCluster(connection, *cluster);
      if (!answer.ok()) return answer;
    }
    // A term that is the holder's already stays: the call before has done it, and nobody heard.
    // Assignments are made from left to right: `term` sees the old holder.
    answer = connection.Query(
        fmt::format("INSERT INTO zeze_global (shard, term, holder, uses, secret)"
                    " VALUES ({}, 1, {}, 0, {})"
                    " ON DUPLICATE KEY UPDATE term = term + IF(holder = VALUES(holder), 0, 1),"
                    " holder = VALUES(holder), secret = VALUES(secret)",
                    start.shard, connection.Quoted(start.holder), Bytes(start.secret)));
    if (!answer.ok()) return answer;
    answer =
        connection.Query(fmt::format("SELECT term FROM zeze_global WHERE shard = {}", start.shard));
    if (answer.ok()) term = answer.number(0, 0);
    return answer;
  });
  if (refused.has_value()) return *refused;
  if (!done.ok()) return done.error();
  return term;
}

Result<std::vector<LiveServer>> MariaDbFence::ListLive() {
  Result<MariaDbAnswer> answer = Query(std::string(kListLiveSql));
  if (!answer.ok()) return answer.error();
  return LiveIn(answer.value());
}

Result<EvictOutcome> MariaDbFence::Evict(std::int32_t server_id, std::int64_t epoch,
                                         std::int32_t shard, std::int64_t term,
                                         const EvictUnless& unless) {
  RetryPause pause(retry_for_);
  for (;;) {
    EvictOutcome outcome = EvictOutcome::kEvicted;
    bool alone = false;
    const Result<void> checked = InTransaction("evict", [&](MariaDbConnection& connection) {
      outcome = EvictOutcome::kEvicted;
      MariaDbAnswer answer = HoldTerm(connection, shard, term);
      if (!answer.ok()) return answer;
      if (answer.affected_rows == 0) {
        outcome = EvictOutcome::kTermPassed;
        return answer;
      }
      // First without a lock, which a transaction that hangs may have.
      answer = LookForReprieve(connection, server_id, epoch, shard, unless, "", outcome);
      if (!answer.ok() || outcome != EvictOutcome::kEvicted) return answer;
      // Only now that the term is held: who was deposed ends nobody's sessions.
      answer = EndMariaDbSessions(connection, server_id, epoch);
      alone = connection.is_galera();
      if (!answer.ok() || alone) return answer;
      answer = LookForReprieve(connection, server_id, epoch, shard, unless, "FOR UPDATE", outcome);
      if (!answer.ok() || outcome != EvictOutcome::kEvicted) return answer;
      answer = connection.Query(EvictSql(server_id, epoch));
      return answer.ok() ? ForgetYields(connection, server_id, epoch) : answer;
    });
    if (!checked.ok()) return checked.error();
    if (!alone || outcome != EvictOutcome::kEvicted) return outcome;
    const Result<void> raised = RaiseEpochAlone(server_id, epoch);
    if (raised.ok()) return outcome;
    // It does no harm twice, so an unknown end is a reason to repeat it too.
    const bool collided = raised.error().code() == ErrorCode::kConflict;
    const bool again = collided || raised.error().code() == ErrorCode::kUnknownOutcome;
    if (!again || !pause.Wait()) {
      if (!collided) return raised.error();
      return Error(ErrorCode::kUnavailable, raised.error().message());
    }
  }
}

Result<void> MariaDbFence::RaiseEpochAlone(std::int32_t server_id, std::int64_t epoch) {
  {
    Result<ConnectionPool<MariaDbConnection>::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    const MariaDbAnswer answer = lease.value()->Query(EvictSql(server_id, epoch));
    switch (answer.failure) {
      case MariaDbFailure::kNone:
        break;
      case MariaDbFailure::kCollision:
        return FenceError(ErrorCode::kConflict, "evict", answer.message);
      case MariaDbFailure::kError:
        return FenceError(ErrorCode::kUnavailable, "evict", answer.message);
      case MariaDbFailure::kLost:
        return FenceError(ErrorCode::kUnknownOutcome, "evict", answer.message);
    }
  }
  // Seen rather than believed: everything that follows stands on it.
  const Result<ServerRow> row = Read(server_id);
  if (!row.ok()) return FenceError(ErrorCode::kUnknownOutcome, "evict", row.error().message());
  if (row.value().epoch > epoch) return {};
  return FenceError(ErrorCode::kConflict, "evict", "another node's changes came first");
}

Result<std::map<std::int32_t, std::int64_t>> MariaDbFence::Wanted() {
  const FenceOwner owner = Owner();
  Result<MariaDbAnswer> answer =
      Query(fmt::format("SELECT shard, term FROM zeze_wanted WHERE server_id = {} AND epoch = {}",
                        owner.server_id, owner.epoch));
  if (!answer.ok()) return answer.error();
  return TermsIn(answer.value());
}

Result<void> MariaDbFence::Yield(std::int32_t shard, const YieldMark& mark) {
  const FenceOwner owner = Owner();
  bool fenced = false;
  Result<void> done = InTransaction("yield a shard", [&](MariaDbConnection& connection) {
    // A change of the row, not only a lock: locks do not reach the other nodes of a Galera cluster.
    MariaDbAnswer answer = connection.Query(
        fmt::format("UPDATE zeze_fence SET yields = yields + 1 WHERE server_id = {} AND epoch = {}"
                    " AND live = 1 AND lane = 1",
                    owner.server_id, owner.epoch));
    fenced = answer.ok() && answer.affected_rows == 0;
    if (!answer.ok() || fenced) return answer;
    // Assignments are made from left to right: `term` sees the old number.
    return connection.Query(
        fmt::format("INSERT INTO zeze_yield (server_id, epoch, shard, number, term)"
                    " VALUES ({}, {}, {}, {}, {}) ON DUPLICATE KEY UPDATE"
                    " term = IF(number < VALUES(number), VALUES(term), term),"
                    " number = GREATEST(number, VALUES(number))",
                    owner.server_id, owner.epoch, shard, mark.number, mark.term));
  });
  if (!done.ok() || !fenced) return done;
  return SayFenced(owner);
}

Result<bool> MariaDbFence::Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                                std::int64_t term) {
  bool current = false;
  const Result<void> done = InTransaction("want a shard", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = HoldTerm(connection, shard, term);
    current = answer.ok() && answer.affected_rows > 0;
    if (!current) return answer;
    return connection.Query(fmt::format(
        "INSERT INTO zeze_wanted (server_id, epoch, shard, term) SELECT server_id, epoch, {}, {}"
        " FROM zeze_fence WHERE server_id = {} AND epoch = {} AND live = 1 AND lane = 0"
        " ON DUPLICATE KEY UPDATE term = VALUES(term)",
        shard, term, server_id, epoch));
  });
  if (!done.ok()) return done.error();
  return current;
}

Result<void> MariaDbFence::Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                                  std::int64_t term) {
  return InTransaction("want a shard no longer", [&](MariaDbConnection& connection) {
    return connection.Query(
        fmt::format("DELETE FROM zeze_wanted WHERE server_id = {} AND epoch = {} AND shard = {}"
                    " AND term = {}",
                    server_id, epoch, shard, term));
  });
}

Result<std::vector<YieldedServer>> MariaDbFence::Yields(std::int32_t shard) {
  Result<MariaDbAnswer> answer =
      Query(fmt::format("SELECT server_id, epoch, number, term FROM zeze_yield WHERE shard = {}"
                        " ORDER BY server_id",
                        shard));
  if (!answer.ok()) return answer.error();
  std::vector<YieldedServer> yielded;
  for (std::size_t row = 0; row < answer.value().rows.size(); ++row) {
    yielded.push_back(
        {.server_id = static_cast<std::int32_t>(answer.value().number(row, 0)),
         .epoch = answer.value().number(row, 1),
         .mark = {.number = answer.value().number(row, 2), .term = answer.value().number(row, 3)}});
  }
  return yielded;
}

Result<void> MariaDbFence::LeaseOver(std::int32_t server_id, std::int64_t epoch) {
  return InTransaction("note the end of a lease", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = connection.Query(fmt::format(
        "DELETE FROM zeze_fenced WHERE server_id = {} AND epoch = {}", server_id, epoch));
    if (!answer.ok()) return answer;
    answer = ForgetLease(connection, server_id, epoch);
    if (!answer.ok()) return answer;
    return connection.Query(
        fmt::format("UPDATE zeze_fence SET epoch_lost = 0 WHERE server_id = {} AND epoch_lost = {}",
                    server_id, epoch));
  });
}

Result<std::map<std::int32_t, std::int64_t>> MariaDbFence::Terms() {
  Result<MariaDbAnswer> answer = Query("SELECT shard, term FROM zeze_global WHERE shard >= 0");
  if (!answer.ok()) return answer.error();
  return TermsIn(answer.value());
}

Result<Fence::TermRow> MariaDbFence::ReadTerm(std::int32_t shard) {
  Result<MariaDbAnswer> answer =
      Query(fmt::format("SELECT term, holder, secret FROM zeze_global WHERE shard = {}", shard));
  if (!answer.ok()) return answer.error();
  if (answer.value().rows.empty()) return TermRow{};
  return TermRow{.term = answer.value().number(0, 0),
                 .holder = answer.value().text(0, 1),
                 .secret = answer.value().text(0, 2)};
}

Result<Fence::ServerRow> MariaDbFence::Read(std::int32_t server_id) {
  Result<MariaDbAnswer> answer = Query(fmt::format(
      "SELECT epoch, live, secret FROM zeze_fence WHERE server_id = {} AND lane = 0", server_id));
  if (!answer.ok()) return answer.error();
  if (answer.value().rows.empty()) return ServerRow{};
  return ServerRow{.epoch = answer.value().number(0, 0),
                   .live = answer.value().number(0, 1) != 0,
                   .secret = answer.value().text(0, 2)};
}

Result<std::optional<ClusterRow>> MariaDbFence::Cluster() {
  Result<MariaDbAnswer> answer = Query(std::string(kClusterSql));
  if (!answer.ok()) return answer.error();
  return ClusterIn(answer.value());
}

Result<std::map<std::string, std::int32_t>> MariaDbFence::TableIds() {
  Result<MariaDbAnswer> answer = Query(std::string(kTableIdsSql));
  if (!answer.ok()) return answer.error();
  return TableIdsIn(answer.value());
}

Result<void> MariaDbFence::Change(const ClusterChange& change) {
  std::optional<Error> refused;
  const Result<void> done = InTransaction("change the cluster", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = LockGuard(connection);
    if (!answer.ok()) return answer;
    std::optional<ClusterRow> cluster;
    answer = ReadCluster(connection, cluster);
    if (!answer.ok()) return answer;
    const Result<ClusterRow> changed = ChangedCluster(cluster, change);
    if (!changed.ok()) return Refused(changed.error(), refused);
    answer = connection.Query(std::string(kListLiveSql));
    if (!answer.ok()) return answer;
    const std::vector<LiveServer> others =
        ServersInTheWay(cluster, LiveIn(answer), ChangeOptions());
    if (!others.empty()) return Refused(InTheWayError(others, ChangeOptions()), refused);
    bool folds = false;
    answer = ReadFolding(connection, folds);
    if (answer.ok()) answer = WriteCluster(connection, changed.value());
    for (const auto& [name, id] : change.tables) {
      if (!answer.ok()) return answer;
      const Result<std::string> relation = Relation(name, folds);
      if (!relation.ok()) return Refused(relation.error(), refused);
      const std::string row = Bytes(relation.value());
      answer = connection.Query(fmt::format("SELECT 1 FROM zeze_table WHERE name = {}", row));
      if (answer.ok() && answer.rows.empty()) return Refused(UnknownTableError(name), refused);
      if (!answer.ok()) return answer;
      answer = connection.Query(
          id.has_value() ? fmt::format("UPDATE zeze_table SET id = {} WHERE name = {}", *id, row)
                         : fmt::format("DELETE FROM zeze_table WHERE name = {}", row));
    }
    return answer;
  });
  return refused.has_value() ? Result<void>(*refused) : done;
}

// Every connection compares the copy (DatabaseCopy). A planned switch-over is not a change of
// history.
Result<std::string> MariaDbFence::History() {
  const Result<MariaDbAnswer> answer = Query("SELECT 1");
  if (answer.ok()) return copy_.first();
  if (answer.error().code() == ErrorCode::kFenced) return answer.error().message();
  return answer.error();
}

}  // namespace zeze
