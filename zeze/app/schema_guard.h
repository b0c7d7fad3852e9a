// CheckAndSaveSchema: keeps the schema beside the data, and refuses a program that does not fit it.
//
//   auto fits = CheckAndSaveSchema(storage, tables, {});
//   if (!fits.ok()) return fits;   // Do not start.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/table_base.h"

namespace zeze {

// Where the schema is kept among the storage's versioned data.
inline constexpr std::string_view kSchemaId = "zeze.schema";

struct SchemaOptions {
  // A deleted variable id may come back with the same or a wider type.
  bool reuse_variable_ids = true;
  // Rows may be set aside: no other server uses the database (rule 55 of docs/architecture.md).
  bool exclusive = true;
  // Asked immediately before a table is renamed, whether that still holds. Null: it does.
  std::function<Result<void>()> still_exclusive = nullptr;
};

// Whether CheckAndSaveSchema would have to set rows aside, which needs a database that no other
// server uses: what for, as the beginning of a sentence; empty if not. Changes nothing.
// Errors: as CheckAndSaveSchema.
Result<std::string> ExclusiveSchemaChange(Storage& storage, const std::vector<TableBase*>& tables,
                                          const SchemaOptions& options);

// Compares the stored schema with that of the tables. Compatible: stores the union of both, so that
// what was removed stays known. A table whose version was raised is set aside: its rows are kept
// under the name zeze_backup_<name>_<old version> and the table begins empty.
// Errors: kIncompatible, naming every problem and what to do; kConflict if others change it all the
// time, or if rows must be set aside and the start is not exclusive; those of the storage.
Result<void> CheckAndSaveSchema(Storage& storage, const std::vector<TableBase*>& tables,
                                const SchemaOptions& options);

}  // namespace zeze
