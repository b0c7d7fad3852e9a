#include "zeze/storage/sql/sql_storage.h"

#include <algorithm>
#include <array>
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
#include "zeze/base/function_ref.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/sql/sql_driver.h"
#include "zeze/storage/sql/table_name.h"
#include "zeze/storage/storage.h"

namespace zeze {

SqlStorage::SqlStorage(std::unique_ptr<SqlDriver> driver, const SqlOptions& options)
    : options_(options),
      driver_(std::move(driver)),
      dialect_(driver_->dialect()),
      pool_([this] { return driver_->Connect(); }, options.connections_max,
            options.statement_timeout),
      flush_lane_(FenceLane::kFlush,
                  [this](const std::optional<FenceOwner>& owner) {
                    return driver_->ConnectLane(FenceLane::kFlush, owner);
                  },
                  {.retry_for = options.retry_for}),
      renew_lane_(FenceLane::kRenew,
                  [this](const std::optional<FenceOwner>& owner) {
                    return driver_->ConnectLane(FenceLane::kRenew, owner);
                  },
                  {.retry_for = options.renew_timeout}),
      fence_(pool_, *driver_, flush_lane_, renew_lane_, options.retry_for) {}

SqlStorage::~SqlStorage() = default;

Result<SqlAnswer> SqlStorage::Read(std::string_view what,
                                   FunctionRef<SqlAnswer(SqlConnection&)> read) {
  return SqlRead(pool_, dialect_, nullptr, what, read);
}

Result<void> SqlStorage::Prepare() {
  Result<SqlPool::Lease> lease = pool_.Take();
  if (!lease.ok()) return lease.error();
  place_ = lease.value()->Place();
  const Result<StorageLimits> limits = driver_->Prepare(*lease.value(), pool_);
  if (!limits.ok()) return limits.error();
  limits_ = limits.value();
  return MakeHome(*lease.value());
}

// The first process makes its copy the one that counts; the others compare with it.
Result<void> SqlStorage::MakeHome(SqlConnection& connection) {
  Result<CopyFacts> facts = connection.ReadCopy();
  RetryPause pause(options_.retry_for);
  while (facts.ok() && !facts.value().row) {
    const SqlAnswer made = connection.Run(dialect_.words().make_home, {facts.value().identity});
    const bool again = made.failure() == SqlFailure::kCollision && pause.Wait();
    if (!made.ok() && !again) {
      return SqlError(ErrorCode::kUnavailable, "open the database", made.message());
    }
    facts = connection.ReadCopy();
  }
  if (!facts.ok()) return facts.error();
  return driver_->copy().Check(place_, facts.value().identity, *facts.value().row);
}

Result<void> SqlStorage::Define(std::string_view what, std::vector<std::string> statements) {
  return SqlDefine(pool_, dialect_, what, std::move(statements), options_.retry_for);
}

Result<SqlStorage::Relation> SqlStorage::FindRelation(const std::string& relation) {
  const Result<SqlAnswer> answer = Read("look up a table", [&](SqlConnection& connection) {
    return connection.Run(dialect_.words().list_relations + dialect_.words().and_name_is,
                          {relation});
  });
  if (!answer.ok()) return answer.error();
  Relation found;
  if (answer.value().row_count() == 0) return found;
  const std::string comment = answer.value().text(0, 1);
  found.exists = true;
  found.is_table = answer.value().number(0, 2) != 0;
  found.is_safe = answer.value().number(0, 3) != 0;
  found.table = SqlTableName(relation, comment, dialect_.words().names);
  found.named = !comment.empty();
  return found;
}

Result<StorageTable*> SqlStorage::OpenTable(std::string_view name) {
  const Result<std::string> relation = SqlRelationName(name, dialect_.words().names);
  if (!relation.ok()) return relation.error();
  const std::string quoted = dialect_.Quoted(relation.value());
  MutexLock lock(tables_mutex_);
  ZEZE_CHECK(!closed_);
  if (auto it = tables_.find(name); it != tables_.end()) return it->second.get();
  Result<Relation> found = FindRelation(relation.value());
  if (found.ok() && !found.value().exists) {
    Result<void> made =
        Define(fmt::format("create table '{}'", name), dialect_.CreateTable(quoted, name));
    if (!made.ok()) return Error(ErrorCode::kUnavailable, made.error().message());
    found = FindRelation(relation.value());
  }
  if (!found.ok()) return found.error();
  if (!found.value().is_table || !found.value().is_safe) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot open table '{}': '{}' exists in the database and is not {}",
                             name, relation.value(), dialect_.words().layout));
  }
  if (found.value().named && found.value().table != name) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot open table '{}': its name in the database is '{}', which is "
                             "table '{}' already. Rename one of them.",
                             name, relation.value(), found.value().table));
  }
  if (!found.value().named) {
    // Made by the Java peer. The name is for ListTables, which gives the relation's without it.
    Result<void> named = Define("name a table", dialect_.NameTable(quoted, name));
    if (!named.ok()) ZEZE_LOG_INFO("table '{}': {}", name, named.error().message());
  }
  auto table = std::make_unique<SqlTable>(pool_, dialect_, std::string(name), relation.value());
  return tables_.emplace(name, std::move(table)).first->second.get();
}

Result<std::vector<std::string>> SqlStorage::ListTables() {
  const Result<SqlAnswer> answer = Read("list the tables", [&](SqlConnection& connection) {
    return connection.Run(dialect_.words().list_relations);
  });
  if (!answer.ok()) return answer.error();
  std::vector<std::string> names;
  for (std::size_t row = 0; row < answer.value().row_count(); ++row) {
    if (answer.value().number(row, 2) == 0) continue;
    names.push_back(SqlTableName(answer.value().bytes(row, 0), answer.value().bytes(row, 1),
                                 dialect_.words().names));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Always synced, as far as the database is set to: one that forgets an acknowledged flush when it
// crashes, while the servers' caches remember it, is worse than a slow one.
Result<void> SqlStorage::Flush(std::span<const StorageWrite> writes, bool /*sync*/) {
  if (Result<void> valid = CheckStorageWrites(writes, limits_); !valid.ok()) return valid;
  return flush_lane_.Flush(writes);
}

Result<std::optional<VersionedData>> SqlStorage::LoadVersioned(std::string_view id) {
  const std::array<SqlParameter, 1> parameters = {SqlParameter::Bytes(id)};
  const Result<SqlAnswer> answer =
      Read(fmt::format("load versioned data '{}'", id), [&](SqlConnection& connection) {
        return connection.Execute(dialect_.words().load_versioned, parameters);
      });
  if (!answer.ok()) return answer.error();
  if (answer.value().row_count() == 0) return std::optional<VersionedData>();
  return std::optional<VersionedData>(
      {.data = answer.value().text(0, 0), .version = answer.value().number(0, 1)});
}

Result<std::int64_t> SqlStorage::SaveVersioned(std::string_view id, std::string_view data,
                                               std::int64_t version) {
  if (Result<void> valid = CheckStorageVersioned(id, data, limits_); !valid.ok()) {
    return valid.error();
  }
  const std::string what = fmt::format("save versioned data '{}'", id);
  {
    Result<SqlPool::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    const SqlAnswer answer = dialect_.WriteVersioned(*lease.value(), id, data, version);
    if (answer.failure() == SqlFailure::kLost) {
      return SqlError(ErrorCode::kUnknownOutcome, what, answer.message());
    }
    if (!answer.ok()) return SqlError(ErrorCode::kUnavailable, what, answer.message());
    if (answer.met_rows() == 1) return version + 1;
  }
  const Result<std::optional<VersionedData>> stored = LoadVersioned(id);
  if (!stored.ok()) return stored.error();
  return StorageVersionConflict(id, version, stored.value() ? stored.value()->version : 0);
}

Result<std::string> SqlStorage::FindTable(std::string_view attempt, std::string_view name) {
  const Result<std::string> relation = SqlRelationName(name, dialect_.words().names);
  if (!relation.ok()) return StorageTableNotFound(attempt, name);
  Result<Relation> found = FindRelation(relation.value());
  if (!found.ok()) return found.error();
  const bool ours = found.value().is_table && (found.value().table == name || !found.value().named);
  if (!ours) return StorageTableNotFound(attempt, name);
  return relation.value();
}

Result<void> SqlStorage::DropTable(std::string_view name) {
  MutexLock lock(tables_mutex_);
  const Result<std::string> relation = FindTable("drop", name);
  if (!relation.ok()) return relation.error();
  Result<void> dropped =
      Define(fmt::format("drop table '{}'", name),
             {fmt::format("DROP TABLE IF EXISTS {}", dialect_.Quoted(relation.value()))});
  if (!dropped.ok()) return dropped;
  Forget(name);
  return {};
}

Result<bool> SqlStorage::HasRows(std::string_view relation) {
  const Result<SqlAnswer> answer = Read("look into a table", [&](SqlConnection& connection) {
    return connection.Run(fmt::format("SELECT 1 FROM {} LIMIT 1", dialect_.Quoted(relation)));
  });
  if (!answer.ok()) return answer.error();
  return answer.value().row_count() > 0;
}

// Where definitions are no transactions, the empty table of the new name is dropped first; whoever
// repeats the call after a crash finds it gone and goes on.
Result<void> SqlStorage::RenameTable(std::string_view from, std::string_view to) {
  const Result<std::string> target = SqlRelationName(to, dialect_.words().names);
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
      statements.push_back(fmt::format("DROP TABLE {}", dialect_.Quoted(target.value())));
    }
  }
  for (std::string& statement :
       dialect_.RenameTable(dialect_.Quoted(source.value()), dialect_.Quoted(target.value()), to)) {
    statements.push_back(std::move(statement));
  }
  Result<void> renamed = Define(fmt::format("rename table '{}' to '{}'", from, to), statements);
  if (!renamed.ok()) return renamed;
  Forget(from);
  Forget(to);
  return {};
}

void SqlStorage::Forget(std::string_view name) {
  if (auto it = tables_.find(name); it != tables_.end()) tables_.erase(it);
}

Result<void> SqlStorage::Close() {
  MutexLock lock(tables_mutex_);
  closed_ = true;
  flush_lane_.Disconnect();
  renew_lane_.Disconnect();
  pool_.Clear();
  return {};
}

Result<std::unique_ptr<Storage>> OpenSqlStorage(std::unique_ptr<SqlDriver> driver,
                                                const SqlOptions& options) {
  if (options.connections_max == 0) {
    return Error(ErrorCode::kInvalidArgument, "connections_max must be at least 1");
  }
  auto storage = std::make_unique<SqlStorage>(std::move(driver), options);
  if (Result<void> prepared = storage->Prepare(); !prepared.ok()) return prepared.error();
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace zeze
