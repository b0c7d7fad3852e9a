#include "zeze/app/schema_guard.h"

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

// Rows of an older version of a table are kept under another name. Done before the new schema is
// stored: if the process ends in between, the next start does it again.
Result<void> SetAsideOldVersions(Storage& storage, const DatabaseSchema& stored,
                                 const DatabaseSchema& current) {
  for (const auto& [name, table] : current.tables) {
    const TableSchema* old = stored.tables.Find(name);
    if (old == nullptr || old->version >= table.version || table.memory) continue;
    const std::string backup = fmt::format("zeze_backup_{}_{}", name, old->version);
    Result<void> renamed = storage.RenameTable(name, backup);
    if (!renamed.ok() && renamed.error().code() != ErrorCode::kNotFound) return renamed;
    ZEZE_LOG_WARNING("table {} went from version {} to {}: its rows are kept as {}", name,
                     old->version, table.version, backup);
  }
  return {};
}

}  // namespace

Result<void> CheckAndSaveSchema(Storage& storage, const std::vector<TableBase*>& tables,
                                const SchemaOptions& options) {
  DatabaseSchema current;
  for (const TableBase* table : tables) current.Add(table->Describe());
  while (true) {
    Result<std::optional<VersionedData>> loaded = storage.LoadVersioned(kSchemaId);
    if (!loaded.ok()) return loaded.error();
    const std::optional<VersionedData> before = std::move(loaded).value();
    DatabaseSchema stored;
    if (before) {
      Result<DatabaseSchema> parsed = DatabaseSchema::Parse(before->data);
      if (!parsed.ok()) {
        return Error(parsed.error().code(),
                     fmt::format("the stored schema cannot be read: {}", parsed.error().message()));
      }
      stored = std::move(parsed).value();
    }
    Result<void> fits = RefuseProblems(CheckCompatible(
        stored, current, {.forbid_reuse_of_removed_ids = !options.reuse_variable_ids}));
    if (!fits.ok()) return fits;
    if (Result<void> kept = SetAsideOldVersions(storage, stored, current); !kept.ok()) return kept;
    const std::string merged = MergeSchemas(stored, current).Serialize();
    if (before && merged == before->data) return {};
    const Result<std::int64_t> saved =
        storage.SaveVersioned(kSchemaId, merged, before ? before->version : 0);
    if (saved.ok()) return {};
    if (saved.error().code() != ErrorCode::kConflict) return saved.error();
  }
}

}  // namespace zeze
