// SqlDriver: how SqlStorage reaches the database of one driver. SqlRead: reading over its pool.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/sql/sql_options.h"
#include "zeze/storage/storage.h"

namespace zeze {

using SqlPool = ConnectionPool<SqlConnection>;

// Thread-safe. Outlives its connections.
class SqlDriver {
 public:
  SqlDriver(const SqlDriver&) = delete;
  SqlDriver& operator=(const SqlDriver&) = delete;
  virtual ~SqlDriver() = default;

  virtual const SqlDialect& dialect() const = 0;

  // The judgement of every connection about the copy it has reached.
  DatabaseCopy& copy() { return copy_; }

  // For readers and the calls of a fence. Errors: kUnavailable, kInvalidArgument, kFenced (there is
  // only a copy that may lack what was acknowledged).
  virtual Result<std::unique_ptr<SqlConnection>> Connect() = 0;

  // For the flushes of a lane. The session is named after its owner, or by chance if it has none.
  virtual Result<std::unique_ptr<FlushConnection>> ConnectLane(
      FenceLane lane, const std::optional<FenceOwner>& owner) = 0;

  // Checks how the database is set, and makes the framework's tables, the guard row among them.
  virtual Result<StorageLimits> Prepare(SqlConnection& connection, SqlPool& pool) = 0;

 protected:
  SqlDriver() = default;

 private:
  DatabaseCopy copy_;
};

// Reads on a connection of the pool, again if the connection turns out to be from before a restart
// of the database. `table` is the table it reads, nullptr for the framework's own. `what` completes
// the sentence "cannot ...".
Result<SqlAnswer> SqlRead(SqlPool& pool, const SqlDialect& dialect, const StorageTable* table,
                          std::string_view what, FunctionRef<SqlAnswer(SqlConnection&)> read);

// Runs definitions, again when another process does the same meanwhile.
Result<void> SqlDefine(SqlPool& pool, const SqlDialect& dialect, std::string_view what,
                       std::vector<std::string> statements, std::chrono::nanoseconds retry_for);

}  // namespace zeze
