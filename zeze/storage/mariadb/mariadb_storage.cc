#include "zeze/storage/mariadb/mariadb_storage.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_fence.h"
#include "zeze/storage/mariadb/mariadb_flush.h"
#include "zeze/storage/mariadb/mariadb_storage_impl.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/table_name.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

constexpr std::size_t kValueBytesMax = std::size_t{256} << 20;

Error SqlError(ErrorCode code, std::string_view what, std::string_view message) {
  return {code, fmt::format("cannot {}: {}", what, message)};
}

// Names of relations have no quotes in them.
std::string Quoted(std::string_view relation) {
  return fmt::format("`{}`", relation);
}

// Relations that have the columns of a table.
constexpr std::string_view kTableSql =
    "SELECT t.TABLE_NAME, t.TABLE_COMMENT, t.ENGINE, (SELECT COUNT(*) FROM"
    " information_schema.COLUMNS c WHERE c.TABLE_SCHEMA = t.TABLE_SCHEMA"
    " AND c.TABLE_NAME = t.TABLE_NAME AND (c.COLUMN_NAME = 'id' AND c.DATA_TYPE = 'varbinary'"
    " OR c.COLUMN_NAME = 'value' AND c.DATA_TYPE IN ('longblob', 'mediumblob'))) = 2"
    " FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = DATABASE()";

}  // namespace

Result<MariaDbAnswer> MariaDbRead(MariaDbPool& pool, const StorageTable* table,
                                  std::string_view what,
                                  const std::function<MariaDbAnswer(MariaDbConnection&)>& read) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    Result<MariaDbPool::Lease> lease = pool.Take(table);
    if (!lease.ok()) return lease.error();
    MariaDbAnswer answer = read(*lease.value());
    if (answer.ok()) return answer;
    if (answer.failure == MariaDbFailure::kError || tries == kTries) {
      return SqlError(ErrorCode::kUnavailable, what, answer.message);
    }
  }
}

MariaDbStorage::MariaDbStorage(const MariaDbOptions& options)
    : options_(options),
      nodes_(options),
      pool_([this] { return nodes_.Connect({.statement_timeout = options_.statement_timeout}); },
            options.connections_max, options.statement_timeout),
      flush_lane_(FenceLane::kFlush,
                  [this](const std::optional<FenceOwner>& owner) {
                    return MariaDbFlushConnection::Connect(nodes_, options_, FenceLane::kFlush,
                                                           owner);
                  },
                  {.retry_for = options.retry_for}),
      renew_lane_(FenceLane::kRenew,
                  [this](const std::optional<FenceOwner>& owner) {
                    return MariaDbFlushConnection::Connect(nodes_, options_, FenceLane::kRenew,
                                                           owner);
                  },
                  {.retry_for = options.renew_timeout}),
      fence_(pool_, nodes_.copy(), flush_lane_, renew_lane_, options.retry_for) {}

MariaDbStorage::~MariaDbStorage() = default;

Result<void> MariaDbStorage::Prepare() {
  Result<MariaDbPool::Lease> lease = pool_.Take();
  if (!lease.ok()) return lease.error();
  MariaDbConnection& connection = *lease.value();
  place_ = connection.place();
  const MariaDbAnswer settings = connection.Query("SELECT @@innodb_flush_log_at_trx_commit");
  if (!settings.ok()) {
    return SqlError(ErrorCode::kUnavailable, "open the database", settings.message);
  }
  // A cluster keeps what it acknowledged on its other nodes.
  if (settings.number(0, 0) != 1 && !connection.is_galera()) {
    ZEZE_LOG_WARNING(
        "the database {} runs with innodb_flush_log_at_trx_commit = {}: what it acknowledges may "
        "be lost when the machine fails",
        place_, settings.number(0, 0));
  }
  const std::size_t packet = connection.packet_bytes_max();
  if (packet < 4 * kMariaDbPacketRestBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the database {} has max_allowed_packet = {}: set it to 64M or more",
                             place_, packet));
  }
  const std::size_t room = packet - kMariaDbPacketRestBytes;
  std::size_t flush_bytes_max = options_.flush_bytes_max;
  // Beside the rows a write set has their keys once more, and what the fence changes.
  if (connection.is_galera()) {
    flush_bytes_max = std::min(flush_bytes_max, connection.write_set_bytes_max() / 2);
  }
  limits_ = {.key_bytes_max = kStorageKeyBytesMax,
             .value_bytes_max = std::min(
                 {kValueBytesMax, flush_bytes_max, connection.takes_arrays() ? room : room / 2}),
             .flush_bytes_max = flush_bytes_max};
  MariaDbAnswer made;
  RetryPause pause(options_.retry_for);
  do {
    made = connection.Query(fmt::format(
        "CREATE TABLE IF NOT EXISTS {} (id VARBINARY(2712) NOT NULL PRIMARY KEY, data LONGBLOB NOT "
        "NULL, version BIGINT NOT NULL) ENGINE=InnoDB",
        kStorageVersionedTable));
    if (made.ok()) made = MariaDbFence::MakeTables(connection);
  } while (made.failure == MariaDbFailure::kCollision && pause.Wait());
  if (!made.ok()) {
    return SqlError(ErrorCode::kUnavailable, "make the framework's tables", made.message);
  }
  return MakeHome(connection);
}

// The first process makes its copy the one that counts; the others compare with it.
Result<void> MariaDbStorage::MakeHome(MariaDbConnection& connection) {
  Result<MariaDbConnection::Facts> facts = connection.ReadFacts();
  RetryPause pause(options_.retry_for);
  while (facts.ok() && !facts.value().row) {
    const MariaDbAnswer made = connection.Query(
        fmt::format("INSERT IGNORE INTO zeze_home (one, home, home_number, frozen, marker)"
                    " VALUES (1, {}, 1, 0, '')",
                    connection.Quoted(facts.value().identity)));
    const bool again = made.failure == MariaDbFailure::kCollision && pause.Wait();
    if (!made.ok() && !again) {
      return SqlError(ErrorCode::kUnavailable, "open the database", made.message);
    }
    facts = connection.ReadFacts();
  }
  if (!facts.ok()) return facts.error();
  return nodes_.copy().Check(place_, facts.value().identity, *facts.value().row);
}

Result<void> MariaDbStorage::Define(std::string_view what, const std::string& statement) {
  RetryPause pause(options_.retry_for);
  for (;;) {
    Result<MariaDbPool::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    const MariaDbAnswer answer = lease.value()->Query(statement);
    if (answer.ok()) return {};
    if (answer.failure == MariaDbFailure::kLost) {
      return SqlError(ErrorCode::kUnknownOutcome, what, answer.message);
    }
    // With another definition, or with a transaction that uses the table: it did not happen.
    if (answer.failure != MariaDbFailure::kCollision || !pause.Wait()) {
      return SqlError(ErrorCode::kUnavailable, what, answer.message);
    }
  }
}

Result<MariaDbStorage::Relation> MariaDbStorage::FindRelation(std::string_view relation) {
  const Result<MariaDbAnswer> answer =
      MariaDbRead(pool_, nullptr, "look up a table", [&](MariaDbConnection& connection) {
        return connection.Query(fmt::format("{} AND t.TABLE_NAME = '{}'", kTableSql, relation));
      });
  if (!answer.ok()) return answer.error();
  Relation found;
  if (answer.value().rows.empty()) return found;
  const std::vector<MariaDbAnswer::Cell>& row = answer.value().rows[0];
  found.exists = true;
  found.is_safe = row[2] == "InnoDB";
  found.is_table = row[3] == "1";
  found.table = SqlTableName(relation, row[1].value_or(""), kMariaDbNames);
  found.named = row[1].has_value() && !row[1]->empty();
  return found;
}

Result<StorageTable*> MariaDbStorage::OpenTable(std::string_view name) {
  const Result<std::string> relation = SqlRelationName(name, kMariaDbNames);
  if (!relation.ok()) return relation.error();
  MutexLock lock(tables_mutex_);
  ZEZE_CHECK(!closed_);
  if (auto it = tables_.find(name); it != tables_.end()) return it->second.get();
  Result<Relation> found = FindRelation(relation.value());
  if (found.ok() && !found.value().exists) {
    std::string comment;
    {
      Result<MariaDbPool::Lease> lease = pool_.Take();
      if (!lease.ok()) return lease.error();
      comment = lease.value()->Quoted(name);
    }
    Result<void> made =
        Define(fmt::format("create table '{}'", name),
               fmt::format("CREATE TABLE IF NOT EXISTS {} (id VARBINARY(2712) NOT NULL PRIMARY KEY,"
                           " value LONGBLOB NOT NULL) ENGINE=InnoDB COMMENT={}",
                           Quoted(relation.value()), comment));
    if (!made.ok()) return Error(ErrorCode::kUnavailable, made.error().message());
    found = FindRelation(relation.value());
  }
  if (!found.ok()) return found.error();
  if (!found.value().is_table || !found.value().is_safe) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot open table '{}': '{}' exists in the database and is no InnoDB "
                             "table of the columns id varbinary, value longblob",
                             name, relation.value()));
  }
  if (found.value().named && found.value().table != name) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot open table '{}': under its name '{}' the database has table "
                             "'{}' already. Rename one of them.",
                             name, relation.value(), found.value().table));
  }
  auto table = std::make_unique<MariaDbTable>(pool_, std::string(name), relation.value());
  return tables_.emplace(name, std::move(table)).first->second.get();
}

Result<std::vector<std::string>> MariaDbStorage::ListTables() {
  const Result<MariaDbAnswer> answer = MariaDbRead(
      pool_, nullptr, "list the tables",
      [&](MariaDbConnection& connection) { return connection.Query(std::string(kTableSql)); });
  if (!answer.ok()) return answer.error();
  std::vector<std::string> names;
  for (const std::vector<MariaDbAnswer::Cell>& row : answer.value().rows) {
    if (row[3] == "1") {
      names.push_back(SqlTableName(*row[0], row[1].value_or(""), kMariaDbNames));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Always synced, as far as the database is set to: one that forgets an acknowledged flush when it
// crashes, while the servers' caches remember it, is worse than a slow one.
Result<void> MariaDbStorage::Flush(std::span<const StorageWrite> writes, bool /*sync*/) {
  if (Result<void> valid = CheckStorageWrites(writes, limits_); !valid.ok()) return valid;
  return flush_lane_.Flush(writes);
}

Result<std::optional<VersionedData>> MariaDbStorage::LoadVersioned(std::string_view id) {
  const std::array<std::string_view, 1> parameters = {id};
  const Result<MariaDbAnswer> answer =
      MariaDbRead(pool_, nullptr, fmt::format("load versioned data '{}'", id),
                  [&](MariaDbConnection& connection) {
                    return connection.Execute(
                        fmt::format("SELECT data, CAST(version AS CHAR) FROM {} WHERE id = ?",
                                    kStorageVersionedTable),
                        parameters);
                  });
  if (!answer.ok()) return answer.error();
  if (answer.value().rows.empty()) return std::optional<VersionedData>();
  return std::optional<VersionedData>(
      {.data = answer.value().text(0, 0), .version = answer.value().number(0, 1)});
}

Result<std::int64_t> MariaDbStorage::SaveVersioned(std::string_view id, std::string_view data,
                                                   std::int64_t version) {
  if (Result<void> valid = CheckStorageVersioned(id, data, limits_); !valid.ok()) {
    return valid.error();
  }
  const std::string what = fmt::format("save versioned data '{}'", id);
  std::uint64_t changed = 0;
  {
    Result<MariaDbPool::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    const std::array<std::string_view, 2> insert = {id, data};
    const std::array<std::string_view, 2> update = {data, id};
    MariaDbAnswer answer = lease.value()->Execute(
        fmt::format("UPDATE {} SET data = ?, version = version + 1 WHERE id = ? AND version = {}",
                    kStorageVersionedTable, version),
        update);
    // Absent data has version 0, and so has what the Java peer saves for the first time.
    if (version == 0 && answer.ok() && answer.affected_rows == 0) {
      answer = lease.value()->Execute(
          fmt::format("INSERT IGNORE INTO {} (id, data, version) VALUES (?, ?, 1)",
                      kStorageVersionedTable),
          insert);
    }
    if (answer.failure == MariaDbFailure::kLost) {
      return SqlError(ErrorCode::kUnknownOutcome, what, answer.message);
    }
    // On a cluster a collision is somebody else's newer version.
    if (!answer.ok() && answer.failure != MariaDbFailure::kCollision) {
      return SqlError(ErrorCode::kUnavailable, what, answer.message);
    }
    changed = answer.ok() ? answer.affected_rows : 0;
  }
  if (changed == 1) return version + 1;
  const Result<std::optional<VersionedData>> stored = LoadVersioned(id);
  if (!stored.ok()) return stored.error();
  return StorageVersionConflict(id, version, stored.value() ? stored.value()->version : 0);
}

Result<std::string> MariaDbStorage::FindTable(std::string_view attempt, std::string_view name) {
  const Result<std::string> relation = SqlRelationName(name, kMariaDbNames);
  if (!relation.ok()) return StorageTableNotFound(attempt, name);
  Result<Relation> found = FindRelation(relation.value());
  if (!found.ok()) return found.error();
  const bool ours = found.value().is_table && (found.value().table == name || !found.value().named);
  if (!ours) return StorageTableNotFound(attempt, name);
  return relation.value();
}

Result<void> MariaDbStorage::DropTable(std::string_view name) {
  MutexLock lock(tables_mutex_);
  const Result<std::string> relation = FindTable("drop", name);
  if (!relation.ok()) return relation.error();
  Result<void> dropped = Define(fmt::format("drop table '{}'", name),
                                fmt::format("DROP TABLE IF EXISTS {}", Quoted(relation.value())));
  if (!dropped.ok()) return dropped;
  Forget(name);
  return {};
}

Result<bool> MariaDbStorage::HasRows(std::string_view relation) {
  const Result<MariaDbAnswer> answer =
      MariaDbRead(pool_, nullptr, "look into a table", [&](MariaDbConnection& connection) {
        return connection.Query(fmt::format("SELECT 1 FROM {} LIMIT 1", Quoted(relation)));
      });
  if (!answer.ok()) return answer.error();
  return !answer.value().rows.empty();
}

// Definition statements are no transactions here. The empty table of the new name is dropped first;
// whoever repeats the call after a crash finds it gone and goes on.
Result<void> MariaDbStorage::RenameTable(std::string_view from, std::string_view to) {
  const Result<std::string> target = SqlRelationName(to, kMariaDbNames);
  if (!target.ok()) return target.error();
  MutexLock lock(tables_mutex_);
  const Result<std::string> source = FindTable("rename", from);
  if (!source.ok()) return source.error();
  if (from == to) return {};
  const std::string what = fmt::format("rename table '{}' to '{}'", from, to);
  Result<Relation> found = FindRelation(target.value());
  if (!found.ok()) return found.error();
  if (found.value().exists && source.value() != target.value()) {
    if (!found.value().is_table) return StorageRenameConflict(from, to);
    Result<bool> rows = HasRows(target.value());
    if (!rows.ok()) return rows.error();
    if (rows.value()) return StorageRenameConflict(from, to);
    Result<void> dropped = Define(what, fmt::format("DROP TABLE {}", Quoted(target.value())));
    if (!dropped.ok()) return dropped;
  }
  std::string comment;
  {
    Result<MariaDbPool::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    comment = lease.value()->Quoted(to);
  }
  Result<void> renamed =
      Define(what, fmt::format("ALTER TABLE {} COMMENT={}, RENAME TO {}", Quoted(source.value()),
                               comment, Quoted(target.value())));
  if (!renamed.ok()) return renamed;
  Forget(from);
  Forget(to);
  return {};
}

void MariaDbStorage::Forget(std::string_view name) {
  if (auto it = tables_.find(name); it != tables_.end()) tables_.erase(it);
}

Result<void> MariaDbStorage::Close() {
  MutexLock lock(tables_mutex_);
  closed_ = true;
  flush_lane_.Disconnect();
  renew_lane_.Disconnect();
  pool_.Clear();
  return {};
}

Result<std::unique_ptr<Storage>> OpenMariaDbStorage(const MariaDbOptions& options) {
  if (options.connections_max == 0) {
    return Error(ErrorCode::kInvalidArgument, "connections_max must be at least 1");
  }
  auto storage = std::make_unique<MariaDbStorage>(options);
  if (Result<void> prepared = storage->Prepare(); !prepared.ok()) return prepared.error();
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace zeze
