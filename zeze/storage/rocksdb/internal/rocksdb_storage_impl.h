// The class behind OpenRocksDbStorage.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/options.h>

#include "zeze/base/mutex.h"
#include "zeze/storage/rocksdb/internal/disk_room.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"

namespace zeze {

class RocksDbTable final : public StorageTable {
 public:
  RocksDbTable(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family,
               const std::string& directory);
  ~RocksDbTable() override;

  const std::string& name() const override { return name_; }
  Result<bool> Find(std::string_view key, FunctionRef<void(std::string_view)> found) override;
  Result<std::size_t> Walk(const StorageWalk& walk,
                           FunctionRef<bool(std::string_view, std::string_view)> row) override;
  Result<std::uint64_t> SizeApprox() override;

  rocksdb::ColumnFamilyHandle* family() const { return family_; }

 private:
  Error ReadError(const rocksdb::Status& status) const;

  rocksdb::DB& database_;
  rocksdb::ColumnFamilyHandle* const family_;
  const std::string& directory_;
  const std::string name_;
  const rocksdb::ReadOptions find_options_;
};

class RocksDbStorage final : public Storage {
 public:
  // `files` is the operating system, or what a test puts in its place.
  static Result<std::unique_ptr<Storage>> Open(
      const RocksDbOptions& options,
      const std::shared_ptr<rocksdb::FileSystem>& files = rocksdb::FileSystem::Default());
  ~RocksDbStorage() override;

  std::string Description() const override { return "rocksdb " + directory_; }
  StorageLimits limits() const override { return limits_; }
  Result<StorageTable*> OpenTable(std::string_view name) override;
  Result<std::vector<std::string>> ListTables() override;
  Result<void> Flush(std::span<const StorageWrite> writes, bool sync) override;
  Result<std::optional<VersionedData>> LoadVersioned(std::string_view id) override;
  Result<std::int64_t> SaveVersioned(std::string_view id, std::string_view data,
                                     std::int64_t version) override;
  Result<void> DropTable(std::string_view name) override;
  Result<void> RenameTable(std::string_view from, std::string_view to) override;
  Result<void> Close() override;

 private:
  class BackgroundErrors;
  using Tables = std::map<std::string, std::unique_ptr<RocksDbTable>, std::less<>>;

  RocksDbStorage(const RocksDbOptions& options, std::string directory,
                 const std::shared_ptr<rocksdb::FileSystem>& files);

  Result<void> OpenDatabase(bool exists);

  // Every write of rows goes through here.
  Result<void> Write(rocksdb::WriteBatch& batch, bool sync, std::string_view what);
  // Clears what a background error (no room for a file) has left behind; fails while it lasts.
  rocksdb::Status Resume();
  Error WriteError(const rocksdb::Status& status, std::string_view what) const;

  Result<RocksDbTable*> CreateTable(std::string_view name) ZEZE_REQUIRES(tables_mutex_);
  Result<void> DropFamily(std::string_view name) ZEZE_REQUIRES(tables_mutex_);

  // See RenameTable in the .cc for the steps.
  Result<void> FinishRenames();
  Result<void> FinishRename(std::string_view from, std::string_view to)
      ZEZE_REQUIRES(tables_mutex_);
  Result<void> CopyRows(RocksDbTable& from, RocksDbTable& to);

  const std::string directory_;
  const bool read_only_;
  const StorageLimits limits_;
  const std::shared_ptr<DiskRoom> room_;
  const std::unique_ptr<rocksdb::Env> env_;
  const std::shared_ptr<BackgroundErrors> background_errors_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> database_;  // Null after Close.

  Mutex tables_mutex_;
  Tables tables_ ZEZE_GUARDED_BY(tables_mutex_);  // Every column family on disk but the default.

  Mutex versioned_mutex_;  // Held between reading a version and writing the next.

  Mutex resume_mutex_;
};

}  // namespace zeze
