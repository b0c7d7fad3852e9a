// SqlStorage: the tables of an SQL database that several servers share, over any SqlDriver.
//
//   Result<std::unique_ptr<Storage>> opened =
//       OpenSqlStorage(std::make_unique<MyDriver>(options), options);
//
// A flush is one database transaction whose first statement is the fence. What is promised, and
// what the database must be set to, is in docs/storage.md.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/sql_driver.h"
#include "zeze/storage/sql/sql_fence.h"
#include "zeze/storage/sql/sql_options.h"
#include "zeze/storage/sql/sql_table.h"
#include "zeze/storage/storage.h"

namespace zeze {

// Connects, and makes the framework's own tables if they are not there.
// Errors: kInvalidArgument (malformed url, option or server setting), kUnavailable (not reachable,
// password refused, no right to make tables: the message says which).
Result<std::unique_ptr<Storage>> OpenSqlStorage(std::unique_ptr<SqlDriver> driver,
                                                const SqlOptions& options);

class SqlStorage final : public Storage {
 public:
  SqlStorage(std::unique_ptr<SqlDriver> driver, const SqlOptions& options);
  ~SqlStorage() override;

  // Connects for the first time; makes the framework's tables.
  Result<void> Prepare();

  std::string Description() const override { return dialect_.words().engine + " " + place_; }
  StorageLimits limits() const override { return limits_; }
  Result<StorageTable*> OpenTable(std::string_view name) override;
  Result<std::vector<std::string>> ListTables() override;
  Result<void> Flush(std::span<const StorageWrite> writes, bool sync) override;
  Fence* fence() override { return &fence_; }
  Result<std::optional<VersionedData>> LoadVersioned(std::string_view id) override;
  Result<std::int64_t> SaveVersioned(std::string_view id, std::string_view data,
                                     std::int64_t version) override;
  Result<void> DropTable(std::string_view name) override;
  Result<void> RenameTable(std::string_view from, std::string_view to) override;
  Result<void> Close() override;

 private:
  // What stands in the database under the name of a relation.
  struct Relation {
    bool exists = false;
    bool is_table = false;  // With our columns.
    bool is_safe = false;   // Of an engine with transactions.
    std::string table;      // The name it is known by, see SqlTableName.
    bool named = false;     // By a comment of ours.
  };
  Result<Relation> FindRelation(const std::string& relation);
  // The relation of an existing table of that name; kNotFound.
  Result<std::string> FindTable(std::string_view attempt, std::string_view name);

  Result<SqlAnswer> Read(std::string_view what, FunctionRef<SqlAnswer(SqlConnection&)> read);
  Result<void> MakeHome(SqlConnection& connection);
  Result<void> Define(std::string_view what, std::vector<std::string> statements);
  Result<bool> HasRows(std::string_view relation);
  void Forget(std::string_view name) ZEZE_REQUIRES(tables_mutex_);

  const SqlOptions options_;
  const std::unique_ptr<SqlDriver> driver_;
  const SqlDialect& dialect_;
  StorageLimits limits_;  // Constant after Prepare, as is the next.
  std::string place_;

  SqlPool pool_;
  FlushLane flush_lane_;
  FlushLane renew_lane_;
  SqlFence fence_;

  Mutex tables_mutex_;
  std::map<std::string, std::unique_ptr<SqlTable>, std::less<>> tables_
      ZEZE_GUARDED_BY(tables_mutex_);
  bool closed_ ZEZE_GUARDED_BY(tables_mutex_) = false;
};

}  // namespace zeze
