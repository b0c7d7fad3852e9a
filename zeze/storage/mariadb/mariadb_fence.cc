#include "zeze/storage/mariadb/mariadb_fence.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
#include "zeze/storage/mariadb/mariadb_fence_rows.h"
#include "zeze/storage/mariadb/mariadb_flush.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"

namespace zeze {

using mariadb_rows::AddColumn;
using mariadb_rows::AndHasNotEnded;
using mariadb_rows::Bytes;
using mariadb_rows::ClusterIn;
using mariadb_rows::CompareCluster;
using mariadb_rows::EvictSql;
using mariadb_rows::FenceError;
using mariadb_rows::ForgetLease;
using mariadb_rows::ForgetYields;
using mariadb_rows::HoldTerm;
using mariadb_rows::kClusterSql;
using mariadb_rows::kInsertLanes;
using mariadb_rows::kListLiveSql;
using mariadb_rows::kTableIdsSql;
using mariadb_rows::LaneRows;
using mariadb_rows::LiveIn;
using mariadb_rows::LockGuard;
using mariadb_rows::LookForReprieve;
using mariadb_rows::NoteLostEpoch;
using mariadb_rows::ReadCluster;
using mariadb_rows::ReadFolding;
using mariadb_rows::Refused;
using mariadb_rows::Relation;
using mariadb_rows::RequireNotFrozen;
using mariadb_rows::TableIdsIn;
using mariadb_rows::TermsIn;
using mariadb_rows::WriteCluster;

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
  yielded.reserve(answer.value().rows.size());
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
