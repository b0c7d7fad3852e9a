#include "zeze/app/schema_guard.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/bean/schema.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/table_base.h"

namespace zeze {

namespace {

Result<void> RefuseProblems(const std::vector<std::string>& problems) {
  if (problems.empty()) return {};
  std::string text = fmt::format(
      "the schema of this program does not fit the stored data ({} problem{}); nothing was "
      "changed:",
      problems.size(), problems.size() == 1 ? "" : "s");
  for (const std::string& problem : problems) text += "\n  - " + problem;
  return Error(ErrorCode::kIncompatible, text);
}

// "table Game_tRole goes from version 1 to 2", for each whose rows are to be set aside.
std::vector<std::string> NewVersions(const DatabaseSchema& stored, const DatabaseSchema& current) {
  std::vector<std::string> names;
  for (const auto& [name, table] : current.tables) {
    const TableSchema* old = stored.tables.Find(name);
    if (old == nullptr || old->version >= table.version || table.memory) continue;
    names.push_back(name);
  }
  return names;
}

std::string SayNewVersion(const std::string& name, const DatabaseSchema& stored,
                          const DatabaseSchema& current) {
  return fmt::format("table {} goes from version {} to {}", name, stored.tables.Find(name)->version,
                     current.tables.Find(name)->version);
}

// Rows of an older version of a table are kept under another name. Done before the new schema is
// stored: if the process ends in between, the next start does it again.
Result<void> SetAsideOldVersions(Storage& storage, const DatabaseSchema& stored,
                                 const DatabaseSchema& current, const SchemaOptions& options) {
  for (const std::string& name : NewVersions(stored, current)) {
    const std::string what = SayNewVersion(name, stored, current);
    if (!options.exclusive) {
      return Error(ErrorCode::kConflict,
                   what + ", which another process has changed meanwhile: start again");
    }
    if (options.still_exclusive) {
      if (Result<void> still = options.still_exclusive(); !still.ok()) return still;
    }
    const std::string backup =
        fmt::format("zeze_backup_{}_{}", name, stored.tables.Find(name)->version);
    Result<void> renamed = storage.RenameTable(name, backup);
    if (!renamed.ok() && renamed.error().code() != ErrorCode::kNotFound) return renamed;
    ZEZE_LOG_WARNING("{}: its rows are kept as {}", what, backup);
  }
  return {};
}

struct Schemas {
  std::optional<VersionedData> before;
  DatabaseSchema stored;
  DatabaseSchema current;
};

// The stored schema and the program's, if they are compatible.
Result<Schemas> Compare(Storage& storage, const std::vector<TableBase*>& tables,
                        const SchemaOptions& options) {
  Schemas schemas;
  for (const TableBase* table : tables) schemas.current.Add(table->Describe());
  Result<std::optional<VersionedData>> loaded = storage.LoadVersioned(kSchemaId);
  if (!loaded.ok()) return loaded.error();
  schemas.before = std::move(loaded).value();
  if (schemas.before) {
    Result<DatabaseSchema> parsed = DatabaseSchema::Parse(schemas.before->data);
    if (!parsed.ok()) {
      return Error(parsed.error().code(),
                   fmt::format("the stored schema cannot be read: {}", parsed.error().message()));
    }
    schemas.stored = std::move(parsed).value();
  }
  Result<void> fits =
      RefuseProblems(CheckCompatible(schemas.stored, schemas.current,
                                     {.forbid_reuse_of_removed_ids = !options.reuse_variable_ids}));
  if (!fits.ok()) return fits.error();
  return schemas;
}

}  // namespace

Result<std::string> ExclusiveSchemaChange(Storage& storage, const std::vector<TableBase*>& tables,
                                          const SchemaOptions& options) {
  const Result<Schemas> schemas = Compare(storage, tables, options);
  if (!schemas.ok()) return schemas.error();
  const std::vector<std::string> names =
      NewVersions(schemas.value().stored, schemas.value().current);
  if (names.empty()) return std::string();
  return SayNewVersion(names.front(), schemas.value().stored, schemas.value().current) +
         " and its rows are set aside";
}

Result<void> CheckAndSaveSchema(Storage& storage, const std::vector<TableBase*>& tables,
                                const SchemaOptions& options) {
  // Each conflict is the success of another process.
  constexpr int kTriesMax = 1000;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    const Result<Schemas> compared = Compare(storage, tables, options);
    if (!compared.ok()) return compared.error();
    const Schemas& schemas = compared.value();
    Result<void> kept = SetAsideOldVersions(storage, schemas.stored, schemas.current, options);
    if (!kept.ok()) return kept;
    const std::string merged = MergeSchemas(schemas.stored, schemas.current).Serialize();
    if (schemas.before && merged == schemas.before->data) return {};
    const Result<std::int64_t> saved =
        storage.SaveVersioned(kSchemaId, merged, schemas.before ? schemas.before->version : 0);
    if (saved.ok()) return {};
    if (saved.error().code() != ErrorCode::kConflict) return saved.error();
    if (tries > 0) {
      ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1),
                             "the schema could not be saved {} times, and is tried again: {}",
                             tries + 1, saved.error().message());
    }
  }
  return Error(ErrorCode::kConflict,
               fmt::format("the schema could not be saved: {} times another process had changed "
                           "'{}' meanwhile",
                           kTriesMax, kSchemaId));
}

}  // namespace zeze
