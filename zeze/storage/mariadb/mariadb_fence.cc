#include "zeze/storage/mariadb/mariadb_fence.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_flush.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"

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

// A row of zeze_fence for each lane: "(7, 0, 3, 0, 1, 'holder'), (7, 1, ...)".
std::string LaneRows(std::int32_t server_id, std::int64_t epoch, bool live,
                     const std::string& quoted_holder) {
  std::string rows;
  for (std::size_t lane = 0; lane < kFenceLaneCount; ++lane) {
    rows += fmt::format("{}({}, {}, {}, 0, {}, {}, 0)", lane == 0 ? "" : ", ", server_id, lane,
                        epoch, live ? 1 : 0, quoted_holder);
  }
  return rows;
}

constexpr std::string_view kInsertLanes =
    "INSERT INTO zeze_fence (server_id, lane, epoch, flush_seq, live, holder, epoch_lost) VALUES ";

// Moves the epoch that an eviction or a start has taken away from its process to the list of those
// whose lease may not be over. Until the next start the row itself keeps it.
MariaDbAnswer NoteLostEpoch(MariaDbConnection& connection, std::int32_t server_id) {
  return connection.Query(
      fmt::format("INSERT INTO zeze_fenced (server_id, epoch) SELECT server_id, epoch_lost FROM"
                  " zeze_fence WHERE server_id = {} AND lane = 0 AND epoch_lost > 0"
                  " ON DUPLICATE KEY UPDATE epoch = VALUES(epoch)",
                  server_id));
}

MariaDbAnswer ForgetLease(MariaDbConnection& connection, std::int32_t server_id,
                          std::int64_t epoch) {
  return connection.Query(
      fmt::format("DELETE FROM zeze_lease WHERE server_id = {} AND epoch = {}", server_id, epoch));
}

std::string EvictSql(std::int32_t server_id, std::int64_t epoch) {
  // Assignments are made from left to right: all but the last see the old epoch.
  return fmt::format(
      "{}{} ON DUPLICATE KEY UPDATE"
      " epoch_lost = IF(live AND epoch < VALUES(epoch), epoch, epoch_lost),"
      " live = IF(epoch < VALUES(epoch), 0, live), epoch = GREATEST(epoch, VALUES(epoch))",
      kInsertLanes, LaneRows(server_id, epoch + 1, false, "''"));
}

}  // namespace

MariaDbAnswer MariaDbFence::MakeTables(MariaDbConnection& connection) {
  for (const char* sql : {
           "CREATE TABLE IF NOT EXISTS zeze_fence (server_id INT NOT NULL, lane TINYINT NOT NULL,"
           " epoch BIGINT NOT NULL, flush_seq BIGINT NOT NULL, live TINYINT NOT NULL,"
           " holder TEXT CHARACTER SET utf8mb4 NOT NULL, epoch_lost BIGINT NOT NULL,"
           " changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
           " PRIMARY KEY (server_id, lane)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_fenced (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " PRIMARY KEY (server_id, epoch)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_lease (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " lease_ms BIGINT NOT NULL, PRIMARY KEY (server_id, epoch)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_global (shard INT NOT NULL PRIMARY KEY,"
           " term BIGINT NOT NULL, holder VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
           " NOT NULL, uses BIGINT NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_session (name VARBINARY(64) NOT NULL PRIMARY KEY,"
           " server_id INT NOT NULL, lane TINYINT NOT NULL, epoch BIGINT NOT NULL,"
           " node VARBINARY(255) NOT NULL) ENGINE=InnoDB",
       }) {
    MariaDbAnswer answer = connection.Query(sql);
    if (!answer.ok()) return answer;
  }
  // Read first: several servers start at once, and only the first has something to write.
  MariaDbAnswer guard = connection.Query("SELECT 1 FROM zeze_global WHERE shard = -1");
  if (!guard.ok() || !guard.rows.empty()) return guard;
  return connection.Query(
      "INSERT IGNORE INTO zeze_global (shard, term, holder, uses) VALUES (-1, 0, '', 0)");
}

Result<void> MariaDbFence::InTransaction(std::string_view what, const Body& body) {
  RetryPause pause(retry_for_);
  for (;;) {
    Result<ConnectionPool<MariaDbConnection>::Lease> lease = pool_.Take();
    if (!lease.ok()) {
      if (!pause.Wait()) return lease.error();
      continue;
    }
    MariaDbConnection& connection = *lease.value();
    MariaDbAnswer answer = connection.Query("START TRANSACTION");
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
  bool collided = false;
  const Result<void> done = InTransaction("start the server", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = LockGuard(connection);
    if (!answer.ok()) return answer;
    // A process of the same id may hang inside a flush.
    if (collided) answer = EndMariaDbSessions(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    collided = true;
    answer = connection.Query("SELECT shard, term FROM zeze_global WHERE shard >= 0");
    if (!answer.ok()) return answer;
    started.terms = TermsIn(answer);
    answer = NoteLostEpoch(connection, options.server_id);
    if (!answer.ok()) return answer;
    // Assignments are made from left to right: the first sees the old epoch.
    answer = connection.Query(fmt::format(
        "{}{} ON DUPLICATE KEY UPDATE epoch_lost = IF(live, epoch, 0), epoch = epoch + 1,"
        " flush_seq = 0, live = 1, holder = VALUES(holder)",
        kInsertLanes, LaneRows(options.server_id, 1, true, connection.Quoted(options.holder))));
    if (!answer.ok()) return answer;
    answer = NoteLostEpoch(connection, options.server_id);
    if (!answer.ok()) return answer;
    answer = connection.Query(
        fmt::format("SELECT MAX(epoch) FROM zeze_fence WHERE server_id = {}", options.server_id));
    if (!answer.ok()) return answer;
    started.epoch = answer.number(0, 0);
    if (options.lease.count() == 0) return answer;
    return connection.Query(
        fmt::format("INSERT INTO zeze_lease (server_id, epoch, lease_ms) VALUES ({}, {}, {})"
                    " ON DUPLICATE KEY UPDATE lease_ms = VALUES(lease_ms)",
                    options.server_id, started.epoch, options.lease.count()));
  });
  if (!done.ok()) return done.error();
  owner_ = {.server_id = options.server_id, .epoch = started.epoch};
  flush_lane_.SetOwner(owner_);
  renew_lane_.SetOwner(owner_);
  return started;
}

Result<void> MariaDbFence::Renew() {
  return renew_lane_.Flush({});
}

Result<void> MariaDbFence::Finish() {
  MutexLock lock(mutex_);
  const FenceOwner owner = owner_;
  ZEZE_CHECK(owner.epoch != 0);
  std::uint64_t met = 0;
  Result<void> done = InTransaction("end the server", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = connection.Query(
        fmt::format("UPDATE zeze_fence SET live = 0 WHERE server_id = {} AND epoch = {}",
                    owner.server_id, owner.epoch));
    met = answer.affected_rows;
    // Who was fenced meanwhile stays listed, and so does its lease.
    if (!answer.ok() || met == 0) return answer;
    return ForgetLease(connection, owner.server_id, owner.epoch);
  });
  if (!done.ok()) return done;
  if (met > 0) return {};
  const Result<ServerRow> row = Read(owner.server_id);
  if (!row.ok()) return row.error();
  return FencedError(owner.server_id, owner.epoch,
                     {.epoch = row.value().epoch, .flush_seq = 0, .live = row.value().live});
}

Result<std::int64_t> MariaDbFence::RaiseTerm(std::int32_t shard, const std::string& holder) {
  ZEZE_CHECK(shard >= 0);
  std::int64_t term = 0;
  const Result<void> done = InTransaction("raise the term", [&](MariaDbConnection& connection) {
    MariaDbAnswer answer = LockGuard(connection);
    if (!answer.ok()) return answer;
    // A term that is the holder's already stays: the call before has done it, and nobody heard.
    // Assignments are made from left to right: `term` sees the old holder.
    answer = connection.Query(
        fmt::format("INSERT INTO zeze_global (shard, term, holder, uses) VALUES ({}, 1, {}, 0)"
                    " ON DUPLICATE KEY UPDATE term = term + IF(holder = VALUES(holder), 0, 1),"
                    " holder = VALUES(holder)",
                    shard, connection.Quoted(holder)));
    if (!answer.ok()) return answer;
    answer = connection.Query(fmt::format("SELECT term FROM zeze_global WHERE shard = {}", shard));
    if (answer.ok()) term = answer.number(0, 0);
    return answer;
  });
  if (!done.ok()) return done.error();
  return term;
}

Result<std::vector<LiveServer>> MariaDbFence::ListLive() {
  // UNION leaves out what is in both.
  Result<MariaDbAnswer> answer = Query(
      "SELECT listed.*, COALESCE(lease_ms, 0) FROM ("
      "SELECT server_id, epoch, '' AS holder, 1 AS fenced FROM zeze_fenced UNION"
      " SELECT server_id, epoch_lost, '', 1 FROM zeze_fence WHERE lane = 0 AND epoch_lost > 0 UNION"
      " SELECT server_id, epoch, holder, 0 FROM zeze_fence WHERE lane = 0 AND live = 1"
      ") AS listed LEFT JOIN zeze_lease USING (server_id, epoch) ORDER BY 1, 2");
  if (!answer.ok()) return answer.error();
  std::vector<LiveServer> live;
  live.reserve(answer.value().rows.size());
  for (std::size_t row = 0; row < answer.value().rows.size(); ++row) {
    live.push_back({.server_id = static_cast<std::int32_t>(answer.value().number(row, 0)),
                    .epoch = answer.value().number(row, 1),
                    .holder = answer.value().text(row, 2),
                    .fenced = answer.value().number(row, 3) != 0,
                    .lease = std::chrono::milliseconds(answer.value().number(row, 4))});
  }
  return live;
}

Result<EvictOutcome> MariaDbFence::Evict(std::int32_t server_id, std::int64_t epoch,
                                         std::int32_t shard, std::int64_t term) {
  RetryPause pause(retry_for_);
  for (;;) {
    EvictOutcome outcome = EvictOutcome::kEvicted;
    bool alone = false;
    const Result<void> checked = InTransaction("evict", [&](MariaDbConnection& connection) {
      outcome = EvictOutcome::kEvicted;
      MariaDbAnswer answer = connection.Query(fmt::format(
          "UPDATE zeze_global SET uses = uses + 1 WHERE shard = {} AND term = {}", shard, term));
      if (!answer.ok()) return answer;
      if (answer.affected_rows == 0) {
        outcome = EvictOutcome::kTermPassed;
        return answer;
      }
      // Only now that the term is held: who was deposed ends nobody's sessions.
      answer = EndMariaDbSessions(connection, server_id, epoch);
      alone = connection.is_galera();
      if (!answer.ok() || alone) return answer;
      return connection.Query(EvictSql(server_id, epoch));
    });
    if (!checked.ok()) return checked.error();
    if (!alone || outcome == EvictOutcome::kTermPassed) return outcome;
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

Result<Fence::ServerRow> MariaDbFence::Read(std::int32_t server_id) {
  Result<MariaDbAnswer> answer = Query(fmt::format(
      "SELECT epoch, live FROM zeze_fence WHERE server_id = {} AND lane = 0", server_id));
  if (!answer.ok()) return answer.error();
  if (answer.value().rows.empty()) return ServerRow{};
  return ServerRow{.epoch = answer.value().number(0, 0), .live = answer.value().number(0, 1) != 0};
}

// A Galera cluster has one id for its history, whichever node answers. A server of its own has
// server_uuid (MySQL) or server_uid (MariaDB 10.10 and newer), and server_id with the domain of its
// transaction ids (all): they change when another server takes over. A copy of the files put back
// changes none of them; epochs and flush numbers show that (FlushFate::kHistoryLost).
Result<std::string> MariaDbFence::History() {
  const Result<MariaDbAnswer> cluster = Query("SHOW STATUS LIKE 'wsrep_cluster_state_uuid'");
  if (!cluster.ok()) return cluster.error();
  if (!cluster.value().rows.empty() && !cluster.value().text(0, 1).empty()) {
    return "galera " + cluster.value().text(0, 1);
  }
  const Result<MariaDbAnswer> facts = Query(
      "SHOW VARIABLES WHERE Variable_name IN"
      " ('server_uuid', 'server_uid', 'server_id', 'gtid_domain_id')");
  if (!facts.ok()) return facts.error();
  std::string history = "mariadb";
  for (std::size_t row = 0; row < facts.value().rows.size(); ++row) {
    history += fmt::format(" {} {}", facts.value().text(row, 0), facts.value().text(row, 1));
  }
  return history;
}

}  // namespace zeze
