// The classes behind OpenMariaDbStorage.

#pragma once

#include <cstddef>
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
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_fence.h"
#include "zeze/storage/mariadb/mariadb_nodes.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/storage.h"

namespace zeze {

using MariaDbPool = ConnectionPool<MariaDbConnection>;

// Runs a statement that only reads on a connection of the pool, again if the connection turns out
// to be from before a restart of the database. `table` is the table it reads, nullptr for the
// framework's own. `what` completes the sentence "cannot ...".
Result<MariaDbAnswer> MariaDbRead(MariaDbPool& pool, const StorageTable* table,
                                  std::string_view what,
                                  const std::function<MariaDbAnswer(MariaDbConnection&)>& read);

class MariaDbTable final : public StorageTable {
 public:
  MariaDbTable(MariaDbPool& pool, std::string name, std::string_view relation);

  const std::string& name() const override { return name_; }
  Result<bool> Find(std::string_view key, FunctionRef<void(std::string_view)> found) override;
  Result<void> FindMany(std::span<const std::string_view> keys,
                        FunctionRef<void(std::size_t, std::string_view)> found) override;
  Result<std::size_t> Walk(const StorageWalk& walk,
                           FunctionRef<bool(std::string_view, std::string_view)> row) override;
  Result<std::uint64_t> SizeApprox() override;

  const std::string& relation() const { return relation_; }  // Quoted.
  const std::string& put_sql() const { return put_sql_; }
  const std::string& remove_sql() const { return remove_sql_; }

 private:
  Error InTable(const Error& error) const;

  MariaDbPool& pool_;
  const std::string name_;
  const std::string bare_relation_;
  const std::string relation_;
  const std::string find_sql_;
  const std::string put_sql_;
  const std::string remove_sql_;
};

class MariaDbStorage final : public Storage {
 public:
  explicit MariaDbStorage(const MariaDbOptions& options);
  ~MariaDbStorage() override;

  // Connects for the first time; makes the framework's tables.
  Result<void> Prepare();

  std::string Description() const override { return "mariadb " + place_; }
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
  using Tables = std::map<std::string, std::unique_ptr<MariaDbTable>, std::less<>>;

  // What stands in the database under the name of a relation.
  struct Relation {
    bool exists = false;
    bool is_table = false;  // With our columns.
    bool is_safe = false;   // Of an engine with transactions.
    std::string table;      // The name it is known by, see SqlTableName.
    bool named = false;     // By a comment of ours.
  };
  Result<Relation> FindRelation(std::string_view relation);
  Result<std::string> FindTable(std::string_view attempt, std::string_view name);
  Result<void> MakeHome(MariaDbConnection& connection);
  Result<void> Define(std::string_view what, const std::string& statement);
  Result<bool> HasRows(std::string_view relation);
  void Forget(std::string_view name) ZEZE_REQUIRES(tables_mutex_);

  const MariaDbOptions options_;
  StorageLimits limits_;  // Constant after Prepare, as is the next.
  std::string place_;

  MariaDbNodes nodes_;
  MariaDbPool pool_;
  FlushLane flush_lane_;
  FlushLane renew_lane_;
  MariaDbFence fence_;

  Mutex tables_mutex_;
  Tables tables_ ZEZE_GUARDED_BY(tables_mutex_);
  bool closed_ ZEZE_GUARDED_BY(tables_mutex_) = false;
};

}  // namespace zeze
