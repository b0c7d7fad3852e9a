#include "zeze/storage/postgres/postgres_storage.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_fence.h"
#include "zeze/storage/postgres/postgres_flush.h"
#include "zeze/storage/postgres/postgres_storage_impl.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/table_name.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

constexpr std::size_t kValueBytesMax = std::size_t{256} << 20;

// An entry of a B-tree index takes 2,704 bytes with its header; longer keys go in only if they
// happen to compress well.
constexpr std::size_t kKeyBytesMax = 2692;

constexpr std::string_view kVersionedRelation = "_zezedatawithversion_";

using Parameter = PostgresParameter;

std::string Literal(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + "'";
}

// Names of relations have no quotes in them.
std::string Quoted(std::string_view relation) {
  return fmt::format("\"{}\"", relation);
}

std::string CommentSql(std::string_view relation, std::string_view table) {
  // Standard-conforming strings are forced: a backslash is a backslash.
  return fmt::format("COMMENT ON TABLE {} IS {}", Quoted(relation), Literal(table));
}

Error SqlError(ErrorCode code, std::string_view what, std::string_view message) {
  return {code, fmt::format("cannot {}: {}", what, message)};
}

}  // namespace

Result<PostgresAnswer> PostgresRead(PostgresPool& pool, const StorageTable* table,
                                    std::string_view what, const std::string& sql,
                                    std::span<const PostgresParameter> parameters,
                                    PostgresFormat format) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    Result<PostgresPool::Lease> lease = pool.Take(table);
    if (!lease.ok()) return lease.error();
    PostgresAnswer answer = lease.value()->Execute(sql, parameters, format);
    if (answer.ok()) return answer;
    if (answer.failure() != PostgresFailure::kLost || tries == kTries) {
      return SqlError(ErrorCode::kUnavailable, what, answer.message());
    }
  }
}

PostgresStorage::PostgresStorage(const PostgresOptions& options)
    : options_(options),
      limits_{.key_bytes_max = kKeyBytesMax,
              .value_bytes_max = std::min(kValueBytesMax, options.flush_bytes_max),
              .flush_bytes_max = options.flush_bytes_max},
      pool_(
          [this] {
            return PostgresConnection::Connect(options_,
                                               {.application_name = "zeze reader",
                                                .statement_timeout = options_.statement_timeout},
                                               copy_);
          },
          options.connections_max, options.statement_timeout),
      flush_lane_(FenceLane::kFlush,
                  [this](const std::optional<FenceOwner>& owner) {
                    return PostgresFlushConnection::Connect(options_, copy_, FenceLane::kFlush,
                                                            owner);
                  },
                  {.retry_for = options.retry_for}),
      renew_lane_(FenceLane::kRenew,
                  [this](const std::optional<FenceOwner>& owner) {
                    return PostgresFlushConnection::Connect(options_, copy_, FenceLane::kRenew,
                                                            owner);
                  },
                  {.retry_for = options.renew_timeout}),
      fence_(pool_, copy_, flush_lane_, renew_lane_, options.retry_for) {}

PostgresStorage::~PostgresStorage() = default;

Result<void> PostgresStorage::Prepare() {
  Result<PostgresPool::Lease> lease = pool_.Take();
  if (!lease.ok()) return lease.error();
  PostgresConnection& connection = *lease.value();
  place_ = connection.Place();
  const PostgresAnswer state = connection.ExecuteOnce(
      fmt::format("SELECT to_regclass('_zezedatawithversion_') IS NOT NULL AND {},"
                  " current_setting('fsync'), current_setting('full_page_writes'),"
                  " current_setting('server_encoding')",
                  PostgresFence::kTablesExistSql));
  if (!state.ok()) return SqlError(ErrorCode::kUnavailable, "open the database", state.message());
  if (state.bytes(0, 3) != "UTF8") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the database {} has the encoding {}: create it with UTF8", place_,
                             state.bytes(0, 3)));
  }
  if (state.bytes(0, 1) != "on" || state.bytes(0, 2) != "on") {
    ZEZE_LOG_WARNING(
        "the database {} runs without fsync or full_page_writes: what it acknowledges may be lost "
        "or damaged when the machine fails",
        place_);
  }
  if (state.bytes(0, 0) != "t") {
    Result<void> made =
        Define("make the framework's tables",
               {"CREATE TABLE IF NOT EXISTS _ZezeDataWithVersion_ (id bytea NOT NULL PRIMARY KEY,"
                " data bytea NOT NULL, version bigint NOT NULL)",
                PostgresFence::kCreateTablesSql});
    if (!made.ok()) return made;
  }
  const PostgresAnswer guard = connection.ExecuteOnce(PostgresFence::kGuardRowSql);
  if (!guard.ok()) return SqlError(ErrorCode::kUnavailable, "open the database", guard.message());
  return MakeHome(connection);
}

// The first process makes its copy the one that counts; the others compare with it.
Result<void> PostgresStorage::MakeHome(PostgresConnection& connection) {
  Result<PostgresConnection::Facts> facts = connection.ReadFacts();
  if (facts.ok() && !facts.value().row) {
    const std::array<Parameter, 1> parameters = {Parameter::Text(facts.value().identity)};
    const PostgresAnswer made = connection.Execute(
        "INSERT INTO zeze_home (one, home, home_number, frozen, marker)"
        " VALUES (1, $1::text, 1, 0, '') ON CONFLICT DO NOTHING",
        parameters);
    if (!made.ok()) return SqlError(ErrorCode::kUnavailable, "open the database", made.message());
    facts = connection.ReadFacts();
  }
  if (!facts.ok()) return facts.error();
  return copy_.Check(place_, facts.value().identity, *facts.value().row);
}

Result<void> PostgresStorage::Define(std::string_view what,
                                     const std::vector<std::string>& statements) {
  std::string script = "BEGIN;";
  for (const std::string& statement : statements) script += statement + ";";
  script += "COMMIT";
  RetryPause pause(options_.retry_for);
  for (;;) {
    Result<PostgresPool::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    const PostgresAnswer answer = lease.value()->ExecuteOnce(script);
    if (answer.ok()) return {};
    lease.value()->RollBack();
    if (answer.failure() == PostgresFailure::kLost) {
      return SqlError(ErrorCode::kUnknownOutcome, what, answer.message());
    }
    // Two processes that create or comment the same table meet in the catalog: unique violation,
    // duplicate table or row type, or "tuple concurrently updated".
    const bool again = answer.failure() == PostgresFailure::kCollision ||
                       answer.state() == "23505" || answer.state() == "42P07" ||
                       answer.state() == "42710" || answer.state() == "XX000";
    if (!again || !pause.Wait()) {
      return SqlError(ErrorCode::kUnavailable, what, answer.message());
    }
  }
}

Result<PostgresStorage::Relation> PostgresStorage::FindRelation(std::string_view relation) {
  const std::array<Parameter, 1> parameters = {Parameter::Text(std::string(relation))};
  Result<PostgresAnswer> answer = PostgresRead(
      pool_, nullptr, "look up a table",
      "SELECT coalesce(obj_description(c.oid, 'pg_class'), ''),"
      " c.relkind IN ('r', 'p') AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid"
      " AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'bytea'::regtype"
      " AND a.attname IN ('id', 'value')) = 2"
      " FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace"
      " AND c.relname = $1::text",
      parameters);
  if (!answer.ok()) return answer.error();
  Relation found;
  if (answer.value().row_count() == 0) return found;
  const std::string comment(answer.value().bytes(0, 0));
  found.exists = true;
  found.is_table = answer.value().bytes(0, 1) == "t";
  found.table = SqlTableName(relation, comment, kPostgresNames);
  found.named = !comment.empty();
  return found;
}

Result<StorageTable*> PostgresStorage::OpenTable(std::string_view name) {
  const Result<std::string> relation = SqlRelationName(name, kPostgresNames);
  if (!relation.ok()) return relation.error();
  MutexLock lock(tables_mutex_);
  ZEZE_CHECK(!closed_);
  if (auto it = tables_.find(name); it != tables_.end()) return it->second.get();
  Result<Relation> found = FindRelation(relation.value());
  if (found.ok() && !found.value().exists) {
    Result<void> made =
        Define(fmt::format("create table '{}'", name),
               {fmt::format("CREATE TABLE IF NOT EXISTS {} (id bytea NOT NULL PRIMARY KEY,"
                            " value bytea NOT NULL)",
                            Quoted(relation.value())),
                CommentSql(relation.value(), name)});
    if (!made.ok()) return Error(ErrorCode::kUnavailable, made.error().message());
    found = FindRelation(relation.value());
  }
  if (!found.ok()) return found.error();
  if (!found.value().is_table) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot open table '{}': '{}' exists in the database and has not the "
                             "columns id bytea, value bytea",
                             name, relation.value()));
  }
  if (found.value().named && found.value().table != name) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot open table '{}': PostgreSQL folds its name to '{}', which is "
                             "table '{}' already. Rename one of them.",
                             name, relation.value(), found.value().table));
  }
  if (!found.value().named) {
    // Made by the Java peer. The comment is for ListTables; without it the folded name is given.
    Result<void> named = Define("name a table", {CommentSql(relation.value(), name)});
    if (!named.ok()) ZEZE_LOG_INFO("table '{}': {}", name, named.error().message());
  }
  auto table = std::make_unique<PostgresTable>(pool_, std::string(name), relation.value());
  return tables_.emplace(name, std::move(table)).first->second.get();
}

Result<std::vector<std::string>> PostgresStorage::ListTables() {
  Result<PostgresAnswer> answer = PostgresRead(
      pool_, nullptr, "list the tables",
      "SELECT c.relname, coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c"
      " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')"
      " AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0"
      " AND NOT a.attisdropped AND a.atttypid = 'bytea'::regtype"
      " AND a.attname IN ('id', 'value')) = 2",
      {});
  if (!answer.ok()) return answer.error();
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(answer.value().row_count()));
  for (int row = 0; row < answer.value().row_count(); ++row) {
    names.push_back(
        SqlTableName(answer.value().bytes(row, 0), answer.value().bytes(row, 1), kPostgresNames));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Always synced: a database that forgets an acknowledged flush when it crashes, while the servers'
// caches remember it, is worse than a slow one.
Result<void> PostgresStorage::Flush(std::span<const StorageWrite> writes, bool /*sync*/) {
  if (Result<void> valid = CheckStorageWrites(writes, limits_); !valid.ok()) return valid;
  return flush_lane_.Flush(writes);
}

Result<std::optional<VersionedData>> PostgresStorage::LoadVersioned(std::string_view id) {
  const std::array<Parameter, 1> parameters = {Parameter::Bytes(id)};
  // The version as text within the binary answer, so that one format fits all.
  Result<PostgresAnswer> answer = PostgresRead(
      pool_, nullptr, fmt::format("load versioned data '{}'", id),
      fmt::format("SELECT data, version::text FROM {} WHERE id = $1::bytea", kVersionedRelation),
      parameters, PostgresFormat::kBinary);
  if (!answer.ok()) return answer.error();
  if (answer.value().row_count() == 0) return std::optional<VersionedData>();
  return std::optional<VersionedData>(
      {.data = std::string(answer.value().bytes(0, 0)), .version = answer.value().number(0, 1)});
}

Result<std::int64_t> PostgresStorage::SaveVersioned(std::string_view id, std::string_view data,
                                                    std::int64_t version) {
  if (Result<void> valid = CheckStorageVersioned(id, data, limits_); !valid.ok()) {
    return valid.error();
  }
  const std::string what = fmt::format("save versioned data '{}'", id);
  std::int64_t changed = 0;
  {
    Result<PostgresPool::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    std::vector<Parameter> parameters = {Parameter::Bytes(id), Parameter::Bytes(data)};
    if (version != 0) parameters.push_back(Parameter::Number(version));
    const PostgresAnswer answer = lease.value()->Execute(
        // The Java peer stores the version 0 with what it saves for the first time.
        version == 0 ? fmt::format("INSERT INTO {} AS stored (id, data, version)"
                                   " VALUES ($1::bytea, $2::bytea, 1) ON CONFLICT (id) DO UPDATE"
                                   " SET data = excluded.data, version = 1"
                                   " WHERE stored.version = 0",
                                   kVersionedRelation)
                     : fmt::format("UPDATE {} SET data = $2::bytea, version = version + 1"
                                   " WHERE id = $1::bytea AND version = $3::bigint",
                                   kVersionedRelation),
        parameters);
    if (answer.failure() == PostgresFailure::kLost) {
      return SqlError(ErrorCode::kUnknownOutcome, what, answer.message());
    }
    if (!answer.ok()) return SqlError(ErrorCode::kUnavailable, what, answer.message());
    changed = answer.affected_rows();
  }
  if (changed == 1) return version + 1;
  const Result<std::optional<VersionedData>> stored = LoadVersioned(id);
  if (!stored.ok()) return stored.error();
  return StorageVersionConflict(id, version, stored.value() ? stored.value()->version : 0);
}

Result<std::string> PostgresStorage::FindTable(std::string_view attempt, std::string_view name) {
  const Result<std::string> relation = SqlRelationName(name, kPostgresNames);
  if (!relation.ok()) return StorageTableNotFound(attempt, name);
  Result<Relation> found = FindRelation(relation.value());
  if (!found.ok()) return found.error();
  const bool ours = found.value().is_table && (found.value().table == name || !found.value().named);
  if (!ours) return StorageTableNotFound(attempt, name);
  return relation.value();
}

Result<void> PostgresStorage::DropTable(std::string_view name) {
  MutexLock lock(tables_mutex_);
  const Result<std::string> relation = FindTable("drop", name);
  if (!relation.ok()) return relation.error();
  Result<void> dropped = Define(fmt::format("drop table '{}'", name),
                                {fmt::format("DROP TABLE IF EXISTS {}", Quoted(relation.value()))});
  if (!dropped.ok()) return dropped;
  Forget(name);
  return {};
}

Result<bool> PostgresStorage::HasRows(std::string_view relation) {
  Result<PostgresAnswer> answer =
      PostgresRead(pool_, nullptr, "look into a table",
                   fmt::format("SELECT 1 FROM {} LIMIT 1", Quoted(relation)), {});
  if (!answer.ok()) return answer.error();
  return answer.value().row_count() > 0;
}

Result<void> PostgresStorage::RenameTable(std::string_view from, std::string_view to) {
  const Result<std::string> target = SqlRelationName(to, kPostgresNames);
  if (!target.ok()) return target.error();
  MutexLock lock(tables_mutex_);
  const Result<std::string> source = FindTable("rename", from);
  if (!source.ok()) return source.error();
  if (from == to) return {};
  std::vector<std::string> statements;
  if (source.value() != target.value()) {
    Result<Relation> found = FindRelation(target.value());
    if (!found.ok()) return found.error();
    if (found.value().exists) {
      if (!found.value().is_table) return StorageRenameConflict(from, to);
      Result<bool> rows = HasRows(target.value());
      if (!rows.ok()) return rows.error();
      if (rows.value()) return StorageRenameConflict(from, to);
      statements.push_back(fmt::format("DROP TABLE {}", Quoted(target.value())));
    }
    statements.push_back(
        fmt::format("ALTER TABLE {} RENAME TO {}", Quoted(source.value()), Quoted(target.value())));
  }
  statements.push_back(CommentSql(target.value(), to));
  Result<void> renamed = Define(fmt::format("rename table '{}' to '{}'", from, to), statements);
  if (!renamed.ok()) return renamed;
  Forget(from);
  Forget(to);
  return {};
}

void PostgresStorage::Forget(std::string_view name) {
  if (auto it = tables_.find(name); it != tables_.end()) tables_.erase(it);
}

Result<void> PostgresStorage::Close() {
  MutexLock lock(tables_mutex_);
  closed_ = true;
  flush_lane_.Disconnect();
  renew_lane_.Disconnect();
  pool_.Clear();
  return {};
}

Result<std::unique_ptr<Storage>> OpenPostgresStorage(const PostgresOptions& options) {
  if (options.connections_max == 0) {
    return Error(ErrorCode::kInvalidArgument, "connections_max must be at least 1");
  }
  auto storage = std::make_unique<PostgresStorage>(options);
  if (Result<void> prepared = storage->Prepare(); !prepared.ok()) return prepared.error();
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace zeze
