#include "zeze/storage/mariadb/mariadb_dialect.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_rows.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/sql/table_name.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

SqlWords MariaDbWords() {
  SqlWords words;
  words.engine = "mariadb";
  words.layout = "an InnoDB table with the columns id varbinary, value longblob";
  words.names = kMariaDbNames;
  words.quote = '`';
  words.reads_again = true;
  words.keys_per_read = 128;

  words.list_relations =
      "SELECT t.TABLE_NAME, COALESCE(t.TABLE_COMMENT, ''), (SELECT COUNT(*) FROM"
      " information_schema.COLUMNS c WHERE c.TABLE_SCHEMA = t.TABLE_SCHEMA"
      " AND c.TABLE_NAME = t.TABLE_NAME AND (c.COLUMN_NAME = 'id' AND c.DATA_TYPE = 'varbinary'"
      " OR c.COLUMN_NAME = 'value' AND c.DATA_TYPE IN ('longblob', 'mediumblob'))) = 2,"
      " COALESCE(t.ENGINE, '') = 'InnoDB'"
      " FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = DATABASE()";
  words.and_name_is = " AND t.TABLE_NAME = $1";
  words.load_versioned = fmt::format("SELECT data, CAST(version AS CHAR) FROM {} WHERE id = ?",
                                     kStorageVersionedTable);
  words.make_home =
      "INSERT IGNORE INTO zeze_home (one, home, home_number, frozen, marker)"
      " VALUES (1, $1, 1, 0, '')";

  words.shares_guard = false;
  words.share_lock = " LOCK IN SHARE MODE";
  words.lock_guard = "UPDATE zeze_global SET uses = uses + 1 WHERE shard = -1";
  words.share_guard = words.lock_guard;
  words.hold_term = "UPDATE zeze_global SET uses = uses + 1 WHERE shard = $1 AND term = $2";
  words.hold_live =
      "SELECT 1 FROM zeze_fence WHERE server_id = $1 AND epoch = $2 AND live = 1"
      " AND lane = 0 FOR UPDATE";
  // A change of the row, not only a lock: locks do not reach the other nodes of a Galera cluster.
  words.hold_renewals =
      "UPDATE zeze_fence SET yields = yields + 1 WHERE server_id = $1 AND epoch = $2"
      " AND live = 1 AND lane = 1";
  words.and_lock_yield = " FOR UPDATE";
  words.write_cluster =
      "INSERT INTO zeze_cluster (one, cluster, protocol, shards, alone_server, alone_epoch)"
      " VALUES (1, $1, $2, $3, $4, $5) ON DUPLICATE KEY UPDATE cluster = VALUES(cluster),"
      " protocol = VALUES(protocol), shards = VALUES(shards),"
      " alone_server = VALUES(alone_server), alone_epoch = VALUES(alone_epoch)";
  words.make_cluster = words.write_cluster;
  words.add_table_id = "INSERT INTO zeze_table (name, id) VALUES ($1, $2)";
  // UNION leaves out what is in both.
  words.list_live =
      "SELECT listed.server_id, listed.epoch, holder, fenced, COALESCE(lease_ms, 0), renew_seq"
      " FROM (SELECT server_id, epoch, '' AS holder, 1 AS fenced, renew_seq FROM zeze_fenced UNION"
      " SELECT server_id, epoch_lost, '', 1, seq_lost FROM zeze_fence WHERE lane = 1"
      " AND epoch_lost > 0 UNION SELECT server_id, epoch, holder, 0, flush_seq FROM zeze_fence"
      " WHERE lane = 1 AND live = 1"
      ") AS listed LEFT JOIN zeze_lease USING (server_id, epoch) ORDER BY 1, 2";
  words.note_lease =
      "INSERT INTO zeze_lease (server_id, epoch, lease_ms) VALUES ($1, $2, $3)"
      " ON DUPLICATE KEY UPDATE lease_ms = VALUES(lease_ms)";
  // Assignments are made from left to right: `term` sees the old number.
  words.note_yield =
      "INSERT INTO zeze_yield (server_id, epoch, shard, number, term)"
      " VALUES ($1, $2, $3, $4, $5) ON DUPLICATE KEY UPDATE"
      " term = IF(number < VALUES(number), VALUES(term), term),"
      " number = GREATEST(number, VALUES(number))";
  words.want =
      "INSERT INTO zeze_wanted (server_id, epoch, shard, term) SELECT server_id, epoch, $3, $4"
      " FROM zeze_fence WHERE server_id = $1 AND epoch = $2 AND live = 1 AND lane = 0"
      " ON DUPLICATE KEY UPDATE term = VALUES(term)";
  words.lease_over = {
      "DELETE FROM zeze_fenced WHERE server_id = $1 AND epoch = $2",
      "DELETE FROM zeze_lease WHERE server_id = $1 AND epoch = $2",
      "UPDATE zeze_fence SET epoch_lost = 0 WHERE server_id = $1 AND epoch_lost = $2"};
  return words;
}

// A literal of any bytes.
std::string Bytes(std::string_view bytes) {
  return fmt::format("x'{}'", FormatClusterId(bytes));
}

// Inserts a row of zeze_fence for each lane: "(7, 0, 3, 0, 1, 'holder', 0, x'', x''), (7, 1, ...)".
std::string InsertLanes(std::int32_t server_id, std::int64_t epoch, bool live,
                        std::string_view holder, std::string_view secret,
                        std::string_view incarnation) {
  std::string sql =
      "INSERT INTO zeze_fence (server_id, lane, epoch, flush_seq, live, holder, epoch_lost, secret,"
      " incarnation) VALUES ";
  for (std::size_t lane = 0; lane < kFenceLaneCount; ++lane) {
    sql += fmt::format("{}({}, {}, {}, 0, {}, {}, 0, {}, {})", lane == 0 ? "" : ", ", server_id,
                       lane, epoch, live ? 1 : 0, holder, Bytes(secret), Bytes(incarnation));
  }
  return sql + " ON DUPLICATE KEY UPDATE";
}

// Moves the epoch that an eviction or a start has taken away from its process to the list of those
// whose lease may not be over. Until the next start the row itself keeps it.
SqlAnswer NoteLostEpoch(SqlConnection& connection, std::int32_t server_id) {
  return connection.Run(
      "INSERT INTO zeze_fenced (server_id, epoch, renew_seq) SELECT server_id,"
      " epoch_lost, seq_lost FROM zeze_fence WHERE server_id = $1 AND lane = 1"
      " AND epoch_lost > 0 ON DUPLICATE KEY UPDATE epoch = VALUES(epoch)",
      {server_id});
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
  return InsertLanes(server_id, epoch + 1, false, "''", "", "") +
         " seq_lost = IF(live AND epoch < VALUES(epoch), flush_seq, seq_lost),"
         " epoch_lost = IF(live AND epoch < VALUES(epoch), epoch, epoch_lost),"
         " live = IF(epoch < VALUES(epoch), 0, live), epoch = GREATEST(epoch, VALUES(epoch))";
}

class MariaDbDialect final : public SqlDialect {
 public:
  MariaDbDialect() : SqlDialect(MariaDbWords()) {}

  // --- rows ---

  SqlTableWords TableWords(const std::string& relation) const override {
    return {.find = fmt::format("SELECT value FROM {} WHERE id = ?", relation),
            .put = fmt::format("INSERT INTO {} (id, value) VALUES (?, ?)"
                               " ON DUPLICATE KEY UPDATE value = VALUES(value)",
                               relation),
            .remove = fmt::format("DELETE FROM {} WHERE id = ?", relation)};
  }

  // A power of two, the last key again and again: few texts to prepare.
  SqlAnswer ReadRows(SqlConnection& connection, const std::string& relation,
                     std::span<const std::string_view> keys) const override {
    std::vector<SqlParameter> parameters;
    parameters.reserve(std::bit_ceil(keys.size()));
    for (const std::string_view key : keys) parameters.push_back(SqlParameter::Bytes(key));
    parameters.resize(std::bit_ceil(keys.size()), parameters.back());
    std::string sql = fmt::format("SELECT id, value FROM {} WHERE id IN (?", relation);
    for (std::size_t i = 1; i < parameters.size(); ++i) sql += ",?";
    return connection.Execute(sql + ')', parameters);
  }

  // The limit is a power of two in most pages: few texts to prepare.
  SqlAnswer ReadPage(SqlConnection& connection, const std::string& relation,
                     const StorageWalk& walk, const std::optional<std::string>& after,
                     std::size_t rows) const override {
    std::vector<SqlParameter> parameters;
    if (after) parameters.push_back(SqlParameter::Bytes(*after));
    return connection.Execute(fmt::format("SELECT id{} FROM {}{} ORDER BY id{} LIMIT {}",
                                          walk.keys_only ? "" : ", value", relation,
                                          !after            ? ""
                                          : walk.descending ? " WHERE id < ?"
                                                            : " WHERE id > ?",
                                          walk.descending ? " DESC" : "", rows),
                              parameters);
  }

  // What InnoDB guesses from some of its pages.
  SqlAnswer GuessRows(SqlConnection& connection, std::string_view bare_relation,
                      std::int64_t& rows) const override {
    SqlAnswer guessed = connection.Run(
        "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE"
        " TABLE_SCHEMA = DATABASE() AND TABLE_NAME = $1",
        {std::string(bare_relation)});
    if (guessed.row_count() > 0 && !guessed.IsNull(0, 0)) rows = guessed.number(0, 0);
    return guessed;
  }

  SqlAnswer WriteVersioned(SqlConnection& connection, std::string_view id, std::string_view data,
                           std::int64_t version) const override {
    const std::array<SqlParameter, 2> insert = {SqlParameter::Bytes(id), SqlParameter::Bytes(data)};
    const std::array<SqlParameter, 2> update = {SqlParameter::Bytes(data), SqlParameter::Bytes(id)};
    SqlAnswer answer = connection.Execute(
        fmt::format("UPDATE {} SET data = ?, version = version + 1 WHERE id = ? AND version = {}",
                    kStorageVersionedTable, version),
        update);
    // Absent data has version 0, and so has what the Java peer saves for the first time.
    if (version == 0 && answer.ok() && answer.met_rows() == 0) {
      answer = connection.Execute(
          fmt::format("INSERT IGNORE INTO {} (id, data, version) VALUES (?, ?, 1)",
                      kStorageVersionedTable),
          insert);
    }
    // On a cluster a collision is somebody else's newer version.
    if (answer.failure() == SqlFailure::kCollision) return {};
    return answer;
  }

  // --- definitions, which are no transactions here ---

  std::vector<std::string> CreateTable(const std::string& relation,
                                       std::string_view table) const override {
    return {
        fmt::format("CREATE TABLE IF NOT EXISTS {} (id VARBINARY(2712) NOT NULL PRIMARY KEY,"
                    " value LONGBLOB NOT NULL) ENGINE=InnoDB COMMENT={}",
                    relation, QuotedForMariaDb(table))};
  }

  std::vector<std::string> RenameTable(const std::string& from, const std::string& to,
                                       std::string_view table) const override {
    return {
        fmt::format("ALTER TABLE {} COMMENT={}, RENAME TO {}", from, QuotedForMariaDb(table), to)};
  }

  // --- the fence ---

  SqlAnswer ReadNameRules(SqlConnection& connection, SqlNameRules& rules) const override {
    rules = kMariaDbNames;
    SqlAnswer answer = connection.Run("SELECT @@lower_case_table_names");
    if (answer.ok()) rules.folds_case = answer.number(0, 0) != 0;
    return answer;
  }

  // Those on this node.
  SqlAnswer EndSessions(SqlConnection& connection, std::int32_t server_id,
                        std::int64_t epoch) const override {
    SqlAnswer sessions = connection.Run(
        "SELECT IS_USED_LOCK(name) FROM zeze_session WHERE server_id = $1 AND epoch <= $2",
        {server_id, epoch});
    if (!sessions.ok()) return sessions;
    for (std::size_t row = 0; row < sessions.row_count(); ++row) {
      if (sessions.IsNull(row, 0)) continue;  // Ended already, or on another node.
      SqlAnswer killed = connection.RunOnce("KILL " + sessions.text(row, 0));
      if (killed.failure() == SqlFailure::kLost) return killed;
      if (!killed.ok()) {
        ZEZE_LOG_WARNING("cannot end database session {} of server {}: {}", sessions.text(row, 0),
                         server_id, killed.message());
      }
    }
    return {};
  }

  SqlAnswer RaiseEpoch(SqlConnection& connection, const FenceStartOptions& options,
                       std::int64_t& epoch) const override {
    SqlAnswer answer = NoteLostEpoch(connection, options.server_id);
    if (!answer.ok()) return answer;
    // Assignments are made from left to right: the first see the old epoch. A process that has
    // ended for certain loses nothing that anybody waits for (rule 62).
    answer = connection.RunOnce(
        InsertLanes(options.server_id, 1, true, QuotedForMariaDb(options.holder), options.secret,
                    options.incarnation) +
        fmt::format(" seq_lost = flush_seq, epoch_lost = IF(live{}, epoch, 0), epoch = epoch + 1,"
                    " flush_seq = 0, live = 1, holder = VALUES(holder), secret = VALUES(secret),"
                    " incarnation = VALUES(incarnation)",
                    AndHasNotEnded(options)));
    if (answer.ok()) answer = ForgetYields(connection, options.server_id, INT64_MAX);
    if (answer.ok()) answer = NoteLostEpoch(connection, options.server_id);
    if (!answer.ok()) return answer;
    answer = connection.Run("SELECT MAX(epoch) FROM zeze_fence WHERE server_id = $1",
                            {options.server_id});
    if (answer.ok()) epoch = answer.number(0, 0);
    return answer;
  }

  SqlAnswer EndEpoch(SqlConnection& connection, const FenceOwner& owner) const override {
    return connection.Run("UPDATE zeze_fence SET live = 0 WHERE server_id = $1 AND epoch = $2",
                          {owner.server_id, owner.epoch});
  }

  SqlAnswer TakeSilentEpoch(SqlConnection& connection, const LiveServer& seen,
                            bool& taken) const override {
    SqlAnswer answer = connection.Run(
        "SELECT flush_seq FROM zeze_fence WHERE server_id = $1 AND epoch = $2"
        " AND live = 1 ORDER BY lane FOR UPDATE",
        {seen.server_id, seen.epoch});
    taken = answer.ok() && answer.row_count() == kFenceLaneCount &&
            answer.number(static_cast<std::size_t>(FenceLane::kRenew), 0) == seen.renew_seq;
    if (!taken) return answer;
    return connection.Run("UPDATE zeze_fence SET epoch = epoch + 1, live = 0 WHERE server_id = $1",
                          {seen.server_id});
  }

  SqlAnswer TakeEpoch(SqlConnection& connection, std::int32_t server_id,
                      std::int64_t epoch) const override {
    SqlAnswer answer = connection.RunOnce(EvictSql(server_id, epoch));
    return answer.ok() ? ForgetYields(connection, server_id, epoch) : std::move(answer);
  }

  std::optional<std::string> TakeEpochAlone(SqlConnection& connection, std::int32_t server_id,
                                            std::int64_t epoch) const override {
    if (!static_cast<const MariaDbConnection&>(connection).is_galera()) return std::nullopt;
    return EvictSql(server_id, epoch);
  }

  SqlAnswer ReadRenewals(SqlConnection& connection, std::int32_t server_id, std::int64_t epoch,
                         bool lock, std::optional<std::int64_t>& renewals) const override {
    SqlAnswer lanes =
        connection.Run(fmt::format("SELECT flush_seq FROM zeze_fence WHERE server_id = $1"
                                   " AND lane = 1 AND epoch = $2 AND live = 1 {}",
                                   lock ? "FOR UPDATE" : ""),
                       {server_id, epoch});
    if (lanes.ok() && lanes.row_count() > 0) renewals = lanes.number(0, 0);
    return lanes;
  }

  // A term that is the holder's already stays: the call before has done it, and its answer was
  // lost. Assignments are made from left to right: `term` sees the old holder.
  SqlAnswer RaiseTerm(SqlConnection& connection, const GlobalStart& start,
                      std::int64_t& term) const override {
    SqlAnswer answer = connection.Run(
        "INSERT INTO zeze_global (shard, term, holder, uses, secret) VALUES ($1, 1, $2, 0, $3)"
        " ON DUPLICATE KEY UPDATE term = term + IF(holder = VALUES(holder), 0, 1),"
        " holder = VALUES(holder), secret = VALUES(secret)",
        {start.shard, start.holder, SqlParameter::Bytes(start.secret)});
    if (!answer.ok()) return answer;
    answer = connection.Run("SELECT term FROM zeze_global WHERE shard = $1", {start.shard});
    if (answer.ok()) term = answer.number(0, 0);
    return answer;
  }

  SqlAnswer ChangeTableId(SqlConnection& connection, const std::string& relation,
                          const std::optional<std::int32_t>& id) const override {
    SqlAnswer answer = connection.Run("SELECT 1 FROM zeze_table WHERE name = $1", {relation});
    if (!answer.ok() || answer.row_count() == 0) return answer;
    if (!id) return connection.Run("DELETE FROM zeze_table WHERE name = $1", {relation});
    return connection.Run("UPDATE zeze_table SET id = $2 WHERE name = $1", {relation, *id});
  }

  // --- copies ---

  // All of this user in this database: servers and Globals have no names here.
  Result<void> EndAllSessions(SqlConnection& connection) const override {
    const SqlAnswer sessions = connection.RunOnce(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE()"
        " AND USER = SUBSTRING_INDEX(CURRENT_USER(), '@', 1) AND ID <> CONNECTION_ID()");
    if (!sessions.ok()) return Error(ErrorCode::kUnavailable, sessions.message());
    for (std::size_t row = 0; row < sessions.row_count(); ++row) {
      // An error: it is gone already.
      const SqlAnswer killed = connection.RunOnce("KILL " + sessions.text(row, 0));
      if (killed.failure() == SqlFailure::kLost) {
        return Error(ErrorCode::kUnavailable, killed.message());
      }
    }
    return {};
  }

  std::string BytesLiteral(std::string_view digits) const override {
    return fmt::format("X'{}'", digits);
  }
};

}  // namespace

const SqlDialect& GetMariaDbDialect() {
  static const MariaDbDialect dialect;
  return dialect;
}

}  // namespace zeze
