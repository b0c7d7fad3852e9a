#include "zeze/storage/postgres/postgres_dialect.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
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
#include "zeze/storage/postgres/bytea_array.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/sql/table_name.h"
#include "zeze/storage/storage.h"

namespace zeze {

const char* const kPostgresTablesSql =
    "CREATE TABLE IF NOT EXISTS zeze_fence (server_id int NOT NULL, lane smallint NOT NULL,"
    " epoch bigint NOT NULL, flush_seq bigint NOT NULL, live boolean NOT NULL,"
    " holder text NOT NULL, changed timestamptz NOT NULL DEFAULT now(),"
    " secret bytea NOT NULL, PRIMARY KEY (server_id, lane));"
    "CREATE TABLE IF NOT EXISTS zeze_fenced (server_id int, epoch bigint,"
    " PRIMARY KEY (server_id, epoch));"
    "CREATE TABLE IF NOT EXISTS zeze_lease (server_id int, epoch bigint,"
    " lease_ms bigint NOT NULL, PRIMARY KEY (server_id, epoch));"
    "CREATE TABLE IF NOT EXISTS zeze_global (shard int PRIMARY KEY, term bigint NOT NULL,"
    " holder text NOT NULL, secret bytea NOT NULL);"
    "CREATE TABLE IF NOT EXISTS zeze_cluster (one int PRIMARY KEY CHECK (one = 1),"
    " cluster bytea NOT NULL, protocol int NOT NULL, shards int NOT NULL,"
    " alone_server int NOT NULL, alone_epoch bigint NOT NULL);"
    "CREATE TABLE IF NOT EXISTS zeze_table (name text PRIMARY KEY, id int NOT NULL);"
    "CREATE TABLE IF NOT EXISTS zeze_home (one int PRIMARY KEY CHECK (one = 1),"
    " home text NOT NULL, home_number bigint NOT NULL, frozen bigint NOT NULL,"
    " marker text NOT NULL);"
    "CREATE TABLE IF NOT EXISTS zeze_wanted (server_id int, epoch bigint, shard int,"
    " term bigint NOT NULL, PRIMARY KEY (server_id, epoch, shard));"
    "CREATE TABLE IF NOT EXISTS zeze_yield (server_id int, epoch bigint, shard int,"
    " number bigint NOT NULL, term bigint NOT NULL, PRIMARY KEY (server_id, epoch, shard));"
    // Of earlier builds. Rows that are there have no secret; no row without one can be added.
    "ALTER TABLE zeze_fence ADD COLUMN IF NOT EXISTS secret bytea NOT NULL DEFAULT '';"
    "ALTER TABLE zeze_fence ALTER COLUMN secret DROP DEFAULT;"
    "ALTER TABLE zeze_fence ADD COLUMN IF NOT EXISTS frozen bigint NOT NULL DEFAULT 0;"
    "ALTER TABLE zeze_fence ADD COLUMN IF NOT EXISTS incarnation bytea NOT NULL DEFAULT '';"
    "ALTER TABLE zeze_fenced ADD COLUMN IF NOT EXISTS renew_seq bigint NOT NULL DEFAULT -1;"
    "ALTER TABLE zeze_global ADD COLUMN IF NOT EXISTS secret bytea NOT NULL DEFAULT '';"
    "ALTER TABLE zeze_global ALTER COLUMN secret DROP DEFAULT;";

const char* const kPostgresTablesExistSql =
    "to_regclass('zeze_fenced') IS NOT NULL AND to_regclass('zeze_lease') IS NOT NULL"
    " AND to_regclass('zeze_cluster') IS NOT NULL AND to_regclass('zeze_table') IS NOT NULL"
    " AND to_regclass('zeze_home') IS NOT NULL AND to_regclass('zeze_wanted') IS NOT NULL"
    " AND to_regclass('zeze_yield') IS NOT NULL"
    " AND (SELECT count(*) FROM pg_attribute WHERE attname = 'secret' AND NOT atthasdef"
    " AND attrelid IN (to_regclass('zeze_fence'), to_regclass('zeze_global'))) = 2"
    " AND (SELECT count(*) FROM pg_attribute WHERE attname IN ('frozen', 'incarnation')"
    " AND attrelid = to_regclass('zeze_fence')) = 2"
    " AND EXISTS (SELECT 1 FROM pg_attribute WHERE attname = 'renew_seq'"
    " AND attrelid = to_regclass('zeze_fenced'))";

namespace {

constexpr std::string_view kVersionedRelation = "_zezedatawithversion_";
constexpr std::int64_t kLastLane = static_cast<std::int64_t>(kFenceLaneCount) - 1;

SqlWords PostgresWords() {
  SqlWords words;
  words.engine = "postgresql";
  words.layout = "a table with the columns id bytea, value bytea";
  words.names = kPostgresNames;
  words.quote = '"';
  words.keys_per_read = SIZE_MAX;  // In one array.

  words.list_relations =
      "SELECT c.relname, coalesce(obj_description(c.oid, 'pg_class'), ''),"
      " c.relkind IN ('r', 'p') AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid"
      " AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'bytea'::regtype"
      " AND a.attname IN ('id', 'value')) = 2, true"
      " FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace";
  words.and_name_is = " AND c.relname = $1::text";
  words.load_versioned =
      fmt::format("SELECT data, version FROM {} WHERE id = $1::bytea", kVersionedRelation);
  words.make_home =
      "INSERT INTO zeze_home (one, home, home_number, frozen, marker)"
      " VALUES (1, $1::text, 1, 0, '') ON CONFLICT DO NOTHING";

  words.shares_guard = true;
  words.share_lock = " FOR SHARE";
  words.lock_guard = "SELECT 1 FROM zeze_global WHERE shard = -1 FOR UPDATE";
  words.share_guard = "SELECT 1 FROM zeze_global WHERE shard = -1 FOR SHARE";
  words.hold_term =
      "SELECT 1 FROM zeze_global WHERE shard = $1::int AND term = $2::bigint FOR SHARE";
  words.hold_live =
      "SELECT 1 FROM zeze_fence WHERE server_id = $1::int AND epoch = $2::bigint AND live"
      " AND lane = 0 FOR SHARE";
  words.hold_renewals =
      "SELECT 1 FROM zeze_fence WHERE server_id = $1::int AND epoch = $2::bigint AND live"
      " AND lane = 1 FOR UPDATE";
  words.write_cluster =
      "INSERT INTO zeze_cluster (one, cluster, protocol, shards, alone_server, alone_epoch)"
      " VALUES (1, $1::bytea, $2::int, $3::int, $4::int, $5::bigint) ON CONFLICT (one) DO UPDATE"
      " SET cluster = excluded.cluster, protocol = excluded.protocol, shards = excluded.shards,"
      " alone_server = excluded.alone_server, alone_epoch = excluded.alone_epoch";
  words.make_cluster =
      "INSERT INTO zeze_cluster AS old (one, cluster, protocol, shards, alone_server, alone_epoch)"
      " VALUES (1, $1::bytea, $2::int, $3::int, $4::int, $5::bigint) ON CONFLICT (one) DO UPDATE"
      " SET shards = excluded.shards WHERE old.shards = 0";
  words.add_table_id =
      "INSERT INTO zeze_table (name, id) VALUES ($1::text, $2::int) ON CONFLICT DO NOTHING";
  words.list_live =
      "SELECT server_id, epoch, '', 1, coalesce(lease_ms, 0), renew_seq"
      " FROM zeze_fenced LEFT JOIN zeze_lease USING (server_id, epoch) UNION ALL"
      " SELECT server_id, epoch, holder, 0, coalesce(lease_ms, 0),"
      " coalesce((SELECT flush_seq FROM zeze_fence renewed WHERE renewed.lane = 1"
      " AND renewed.server_id = zeze_fence.server_id), 0)"
      " FROM zeze_fence LEFT JOIN zeze_lease USING (server_id, epoch) WHERE lane = 0 AND live"
      " ORDER BY 1, 2";
  words.note_lease =
      "INSERT INTO zeze_lease (server_id, epoch, lease_ms) VALUES ($1::int, $2::bigint, $3::bigint)"
      " ON CONFLICT (server_id, epoch) DO UPDATE SET lease_ms = excluded.lease_ms";
  words.note_yield =
      "INSERT INTO zeze_yield AS old (server_id, epoch, shard, number, term)"
      " VALUES ($1::int, $2::bigint, $3::int, $4::bigint, $5::bigint)"
      " ON CONFLICT (server_id, epoch, shard) DO UPDATE SET number = excluded.number,"
      " term = excluded.term WHERE old.number < excluded.number";
  words.want =
      "INSERT INTO zeze_wanted (server_id, epoch, shard, term)"
      " SELECT server_id, epoch, $3::int, $4::bigint FROM zeze_fence"
      " WHERE server_id = $1::int AND epoch = $2::bigint AND live AND lane = 0"
      " ON CONFLICT (server_id, epoch, shard) DO UPDATE SET term = excluded.term";
  words.lease_over = {"DELETE FROM zeze_fenced WHERE server_id = $1::int AND epoch = $2::bigint",
                      "DELETE FROM zeze_lease WHERE server_id = $1::int AND epoch = $2::bigint"};
  return words;
}

std::string Literal(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + "'";
}

// Standard-conforming strings are forced: a backslash is a backslash.
std::string CommentSql(const std::string& relation, std::string_view table) {
  return fmt::format("COMMENT ON TABLE {} IS {}", relation, Literal(table));
}

// The rows of all lanes in one order, so that two transactions never wait for each other: epoch,
// number of the last flush, live or not, incarnation in hexadecimal digits.
SqlAnswer ReadLanes(SqlConnection& connection, std::int32_t server_id, std::string_view lock) {
  return connection.Run(
      fmt::format("SELECT epoch, flush_seq, live::int, encode(incarnation, 'hex') FROM zeze_fence"
                  " WHERE server_id = $1::int ORDER BY lane {}",
                  lock),
      {server_id});
}

SqlAnswer LockLanes(SqlConnection& connection, std::int32_t server_id) {
  return ReadLanes(connection, server_id, "FOR UPDATE");
}

// `lanes` is the answer of LockLanes.
bool PredecessorHasEnded(const SqlAnswer& lanes, const FenceStartOptions& options) {
  return lanes.row_count() > 0 &&
         std::any_of(options.ended.begin(), options.ended.end(), [&](const std::string& ended) {
           return !ended.empty() && FormatClusterId(ended) == lanes.bytes(0, 3);
         });
}

// Notes the process that loses its epoch, up to `epoch_max`, if it was live.
SqlAnswer NoteFenced(SqlConnection& connection, std::int32_t server_id, std::int64_t epoch_max) {
  return connection.Run(
      "INSERT INTO zeze_fenced (server_id, epoch, renew_seq) SELECT server_id, epoch, flush_seq"
      " FROM zeze_fence WHERE server_id = $1::int AND lane = 1 AND live AND epoch <= $2::bigint"
      " ON CONFLICT DO NOTHING",
      {server_id, epoch_max});
}

class PostgresDialect final : public SqlDialect {
 public:
  PostgresDialect() : SqlDialect(PostgresWords()) {}

  // --- rows ---

  SqlTableWords TableWords(const std::string& relation) const override {
    return {
        .find = fmt::format("SELECT value FROM {} WHERE id = $1::bytea", relation),
        .put = fmt::format("INSERT INTO {} (id, value) SELECT * FROM unnest($1::bytea[],"
                           " $2::bytea[]) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                           relation),
        .remove = fmt::format("DELETE FROM {} WHERE id = ANY($1::bytea[])", relation)};
  }

  SqlAnswer ReadRows(SqlConnection& connection, const std::string& relation,
                     std::span<const std::string_view> keys) const override {
    std::size_t bytes = 0;
    for (const std::string_view key : keys) bytes += key.size();
    ByteaArray array(keys.size(), bytes);
    for (const std::string_view key : keys) array.Add(key);
    const std::array<SqlParameter, 1> parameters = {array.parameter()};
    return connection.Execute(
        fmt::format("SELECT id, value FROM {} WHERE id = ANY($1::bytea[])", relation), parameters);
  }

  SqlAnswer ReadPage(SqlConnection& connection, const std::string& relation,
                     const StorageWalk& walk, const std::optional<std::string>& after,
                     std::size_t rows) const override {
    std::vector<SqlParameter> parameters = {rows};
    if (after) parameters.push_back(SqlParameter::Bytes(*after));
    return connection.Execute(fmt::format("SELECT id{} FROM {}{} ORDER BY id{} LIMIT $1::bigint",
                                          walk.keys_only ? "" : ", value", relation,
                                          !after            ? ""
                                          : walk.descending ? " WHERE id < $2::bytea"
                                                            : " WHERE id > $2::bytea",
                                          walk.descending ? " DESC" : ""),
                              parameters);
  }

  // What the planner guesses from the size of the file.
  SqlAnswer GuessRows(SqlConnection& connection, std::string_view bare_relation,
                      std::int64_t& rows) const override {
    SqlAnswer plan = connection.Run(fmt::format("EXPLAIN SELECT 1 FROM {}", Quoted(bare_relation)));
    if (!plan.ok()) return plan;
    // "Seq Scan on t  (cost=0.00..1.01 rows=123 width=4)"
    const std::string_view line = plan.bytes(0, 0);
    if (const std::size_t at = line.find("rows="); at != std::string_view::npos) {
      std::from_chars(line.data() + at + 5, line.data() + line.size(), rows);
    }
    return plan;
  }

  // The Java peer stores the version 0 with what it saves for the first time.
  SqlAnswer WriteVersioned(SqlConnection& connection, std::string_view id, std::string_view data,
                           std::int64_t version) const override {
    std::vector<SqlParameter> parameters = {SqlParameter::Bytes(id), SqlParameter::Bytes(data)};
    if (version != 0) parameters.emplace_back(version);
    return connection.Execute(
        version == 0 ? fmt::format("INSERT INTO {} AS stored (id, data, version)"
                                   " VALUES ($1::bytea, $2::bytea, 1) ON CONFLICT (id) DO UPDATE"
                                   " SET data = excluded.data, version = 1"
                                   " WHERE stored.version = 0",
                                   kVersionedRelation)
                     : fmt::format("UPDATE {} SET data = $2::bytea, version = version + 1"
                                   " WHERE id = $1::bytea AND version = $3::bigint",
                                   kVersionedRelation),
        parameters);
  }

  // --- definitions ---

  std::vector<std::string> CreateTable(const std::string& relation,
                                       std::string_view table) const override {
    return {fmt::format("CREATE TABLE IF NOT EXISTS {} (id bytea NOT NULL PRIMARY KEY,"
                        " value bytea NOT NULL)",
                        relation),
            CommentSql(relation, table)};
  }

  std::vector<std::string> NameTable(const std::string& relation,
                                     std::string_view table) const override {
    return {CommentSql(relation, table)};
  }

  std::vector<std::string> RenameTable(const std::string& from, const std::string& to,
                                       std::string_view table) const override {
    if (from == to) return {CommentSql(to, table)};
    return {fmt::format("ALTER TABLE {} RENAME TO {}", from, to), CommentSql(to, table)};
  }

  std::vector<std::string> Scripts(std::vector<std::string> statements) const override {
    std::string script = "BEGIN;";
    for (const std::string& statement : statements) script += statement + ";";
    return {script + "COMMIT"};
  }

  // Two processes that create or comment the same table meet in the catalog: unique violation,
  // duplicate table or row type, or "tuple concurrently updated".
  bool DefinitionCollided(const SqlAnswer& answer) const override {
    const std::string& state = answer.code();
    return SqlDialect::DefinitionCollided(answer) || state == "23505" || state == "42P07" ||
           state == "42710" || state == "XX000";
  }

  // --- the fence ---

  SqlAnswer EndSessions(SqlConnection& connection, std::int32_t server_id,
                        std::int64_t epoch) const override {
    SqlAnswer answer = connection.RunOnce("SAVEPOINT sessions");
    if (!answer.ok()) return answer;
    answer = connection.Run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE substring(application_name FROM $1::text)::bigint <= $2::bigint"
        " AND datname = current_database() AND pid <> pg_backend_pid()",
        {fmt::format("^zeze server {} epoch ([0-9]{{1,18}}) ", server_id), epoch});
    if (!answer.ok()) {
      ZEZE_LOG_WARNING("cannot end the database sessions of server {}: {}", server_id,
                       answer.message());
    }
    return connection.RunOnce("ROLLBACK TO SAVEPOINT sessions");
  }

  SqlAnswer RaiseEpoch(SqlConnection& connection, const FenceStartOptions& options,
                       std::int64_t& epoch) const override {
    SqlAnswer answer = LockLanes(connection, options.server_id);
    if (!answer.ok()) return answer;
    if (!PredecessorHasEnded(answer, options)) {
      answer = NoteFenced(connection, options.server_id, INT64_MAX);
    }
    if (answer.ok()) answer = ForgetYields(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    answer = connection.Run(
        "INSERT INTO zeze_fence AS old"
        " (server_id, lane, epoch, flush_seq, live, holder, secret, incarnation)"
        " SELECT $1::int, lane, 1, 0, true, $2::text, $4::bytea, $5::bytea"
        " FROM generate_series(0, $3::int) AS lane"
        " ON CONFLICT (server_id, lane) DO UPDATE SET epoch = old.epoch + 1, flush_seq = 0,"
        " live = true, holder = excluded.holder, secret = excluded.secret,"
        " incarnation = excluded.incarnation, changed = now()"
        " RETURNING epoch",
        {options.server_id, options.holder, kLastLane, SqlParameter::Bytes(options.secret),
         SqlParameter::Bytes(options.incarnation)});
    if (!answer.ok()) return answer;
    epoch = 0;
    for (std::size_t row = 0; row < answer.row_count(); ++row) {
      epoch = std::max(epoch, answer.number(row, 0));
    }
    // They differ only if a lane is new to this database.
    return connection.Run(
        "UPDATE zeze_fence SET epoch = $2::bigint WHERE server_id = $1::int AND epoch <> "
        "$2::bigint",
        {options.server_id, epoch});
  }

  SqlAnswer EndEpoch(SqlConnection& connection, const FenceOwner& owner) const override {
    SqlAnswer answer = LockLanes(connection, owner.server_id);
    if (!answer.ok()) return answer;
    return connection.Run(
        "UPDATE zeze_fence SET live = false, changed = now()"
        " WHERE server_id = $1::int AND epoch = $2::bigint",
        {owner.server_id, owner.epoch});
  }

  SqlAnswer TakeSilentEpoch(SqlConnection& connection, const LiveServer& seen,
                            bool& taken) const override {
    SqlAnswer answer = LockLanes(connection, seen.server_id);
    if (!answer.ok()) return answer;
    answer = connection.Run(
        "UPDATE zeze_fence SET epoch = epoch + 1, live = false, changed = now()"
        " WHERE server_id = $1::int AND epoch = $2::bigint AND live AND EXISTS"
        " (SELECT 1 FROM zeze_fence renewed WHERE renewed.server_id = $1::int"
        " AND renewed.lane = 1 AND renewed.flush_seq = $3::bigint)",
        {seen.server_id, seen.epoch, seen.renew_seq});
    taken = answer.ok() && answer.met_rows() > 0;
    return answer;
  }

  SqlAnswer TakeEpoch(SqlConnection& connection, std::int32_t server_id,
                      std::int64_t epoch) const override {
    SqlAnswer answer = NoteFenced(connection, server_id, epoch);
    if (answer.ok()) answer = ForgetYields(connection, server_id, epoch);
    if (!answer.ok()) return answer;
    return connection.Run(
        "INSERT INTO zeze_fence AS old (server_id, lane, epoch, flush_seq, live, holder, secret)"
        " SELECT $1::int, lane, $2::bigint, 0, false, '', ''"
        " FROM generate_series(0, $3::int) AS lane"
        " ON CONFLICT (server_id, lane) DO UPDATE SET epoch = excluded.epoch, live = false,"
        " changed = now() WHERE old.epoch < excluded.epoch",
        {server_id, epoch + 1, kLastLane});
  }

  SqlAnswer ReadRenewals(SqlConnection& connection, std::int32_t server_id, std::int64_t epoch,
                         bool lock, std::optional<std::int64_t>& renewals) const override {
    constexpr auto kRenew = static_cast<std::size_t>(FenceLane::kRenew);
    SqlAnswer lanes =
        lock ? LockLanes(connection, server_id) : ReadLanes(connection, server_id, "");
    const bool live = lanes.ok() && lanes.row_count() > kRenew &&
                      lanes.number(kRenew, 0) == epoch && lanes.number(kRenew, 2) != 0;
    if (live) renewals = lanes.number(kRenew, 1);
    return lanes;
  }

  // A term that is the holder's already stays: the call before has done it, and its answer was
  // lost.
  SqlAnswer RaiseTerm(SqlConnection& connection, const GlobalStart& start,
                      std::int64_t& term) const override {
    SqlAnswer answer = connection.Run(
        "INSERT INTO zeze_global AS old (shard, term, holder, secret)"
        " VALUES ($1::int, 1, $2::text, $3::bytea)"
        " ON CONFLICT (shard) DO UPDATE SET holder = excluded.holder, secret = excluded.secret,"
        " term = old.term + CASE WHEN old.holder = excluded.holder THEN 0 ELSE 1 END"
        " RETURNING term",
        {start.shard, start.holder, SqlParameter::Bytes(start.secret)});
    if (answer.ok()) term = answer.number(0, 0);
    return answer;
  }

  SqlAnswer ChangeTableId(SqlConnection& connection, const std::string& relation,
                          const std::optional<std::int32_t>& id) const override {
    if (!id) return connection.Run("DELETE FROM zeze_table WHERE name = $1::text", {relation});
    return connection.Run("UPDATE zeze_table SET id = $2::int WHERE name = $1::text",
                          {relation, *id});
  }

  // --- copies ---

  // Those that were there when the freeze was written. Later ones compare, and find it.
  Result<void> EndAllSessions(SqlConnection& connection) const override {
    const SqlAnswer frozen = connection.RunOnce("SELECT clock_timestamp()::text");
    if (!frozen.ok()) return Error(ErrorCode::kUnavailable, frozen.message());
    RetryPause pause(std::chrono::minutes(1));
    for (;;) {
      const SqlAnswer ended = connection.Run(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE"
          " 'zeze %' AND datname = current_database() AND pid <> pg_backend_pid()"
          " AND backend_start <= $1::timestamptz",
          {frozen.text(0, 0)});
      if (!ended.ok()) return Error(ErrorCode::kUnavailable, ended.message());
      if (ended.row_count() == 0) return {};
      if (!pause.Wait()) {
        return Error(ErrorCode::kUnavailable,
                     "the switch-over has begun, but sessions do not end: repeat it");
      }
    }
  }

  std::string BytesLiteral(std::string_view digits) const override {
    return fmt::format("'\\x{}'::bytea", digits);
  }
};

}  // namespace

const SqlDialect& GetPostgresDialect() {
  static const PostgresDialect dialect;
  return dialect;
}

}  // namespace zeze
