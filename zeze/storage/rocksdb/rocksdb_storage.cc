#include "zeze/storage/rocksdb/rocksdb_storage.h"

#include <atomic>
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
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/iterator.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/write_batch.h>

#include "zeze/base/check.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/rocksdb/internal/disk_room.h"
#include "zeze/storage/rocksdb/internal/rocksdb_directory.h"
#include "zeze/storage/rocksdb/internal/rocksdb_log.h"
#include "zeze/storage/rocksdb/internal/rocksdb_options.h"
#include "zeze/storage/rocksdb/internal/rocksdb_status.h"
#include "zeze/storage/rocksdb/internal/rocksdb_storage_impl.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

constexpr std::size_t kValueBytesMax = std::size_t{256} << 20;
constexpr std::size_t kRenameBatchBytes = std::size_t{4} << 20;

// Rows of the default column family, which holds nothing else: key = this + new name, value = old
// name. Part of the stored format.
constexpr std::string_view kRenamePrefix = "rename ";

rocksdb::Slice ToSlice(std::string_view view) {
  return {view.data(), view.size()};
}
std::string_view ToView(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

}  // namespace

// RocksDB stops writing after an error in the background; this remembers to resume it.
class RocksDbStorage::BackgroundErrors final : public rocksdb::EventListener {
 public:
  bool pending() const { return pending_.load(); }
  void set_pending(bool pending) { pending_.store(pending); }

  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* /*error*/) override {
    pending_.store(true);
  }

  // RocksDB's own recovery looks at the disk every five seconds, wants room for a whole memtable
  // and cannot be hurried. The next flush resumes instead.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* automatic) override {
    *automatic = false;
  }

 private:
  std::atomic<bool> pending_ = false;
};

RocksDbTable::RocksDbTable(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family,
                           const std::string& directory)
    : database_(database),
      family_(family),
      directory_(directory),
      name_(family->GetName()),
      find_options_(MakeRocksDbFindOptions()) {}

RocksDbTable::~RocksDbTable() {
  database_.DestroyColumnFamilyHandle(family_).PermitUncheckedError();
}

Result<bool> RocksDbTable::Find(std::string_view key, FunctionRef<void(std::string_view)> found) {
  rocksdb::PinnableSlice value;
  const rocksdb::Status status = database_.Get(find_options_, family_, ToSlice(key), &value);
  if (status.ok()) {
    found(ToView(value));
    return true;
  }
  if (status.IsNotFound()) return false;
  return ReadError(status);
}

Result<std::size_t> RocksDbTable::Walk(const StorageWalk& walk,
                                       FunctionRef<bool(std::string_view, std::string_view)> row) {
  if (walk.limit == 0) return std::size_t{0};
  const rocksdb::ReadOptions options = MakeRocksDbWalkOptions(walk.limit);
  const std::unique_ptr<rocksdb::Iterator> it(database_.NewIterator(options, family_));
  auto step = [&] { walk.descending ? it->Prev() : it->Next(); };
  if (!walk.after) {
    walk.descending ? it->SeekToLast() : it->SeekToFirst();
  } else {
    const rocksdb::Slice after = *walk.after;
    walk.descending ? it->SeekForPrev(after) : it->Seek(after);
    if (it->Valid() && it->key() == after) step();
  }
  std::size_t given = 0;
  for (; it->Valid(); step()) {
    ++given;
    const std::string_view value = walk.keys_only ? std::string_view() : ToView(it->value());
    if (!row(ToView(it->key()), value) || given == walk.limit) return given;
  }
  if (!it->status().ok()) return ReadError(it->status());
  return given;
}

Result<std::uint64_t> RocksDbTable::SizeApprox() {
  std::uint64_t count = 0;
  database_.GetIntProperty(family_, rocksdb::DB::Properties::kEstimateNumKeys, &count);
  return count;
}

Error RocksDbTable::ReadError(const rocksdb::Status& status) const {
  return ToError(status, RocksDbAttempt::kRead, fmt::format("read table '{}'", name_), directory_);
}

RocksDbStorage::RocksDbStorage(const RocksDbOptions& options, std::string directory,
                               const std::shared_ptr<rocksdb::FileSystem>& files)
    : directory_(std::move(directory)),
      read_only_(options.read_only),
      limits_{.key_bytes_max = kStorageKeyBytesMax,
              .value_bytes_max = kValueBytesMax,
              .flush_bytes_max = options.flush_bytes_max},
      room_(std::make_shared<DiskRoom>(files, directory_)),
      env_(rocksdb::NewCompositeEnv(room_)),
      background_errors_(std::make_shared<BackgroundErrors>()),
      options_(MakeRocksDbOptions(options)) {
  options_.env = env_.get();
  options_.info_log = OpenRocksDbLog(directory_);
  options_.listeners.push_back(background_errors_);
}

RocksDbStorage::~RocksDbStorage() {
  // Whoever wants to know how it went calls Close.
  Result<void> closed = Close();
  static_cast<void>(closed.ok());
}

Result<std::unique_ptr<Storage>> RocksDbStorage::Open(
    const RocksDbOptions& options, const std::shared_ptr<rocksdb::FileSystem>& files) {
  if (options.flush_bytes_max >= std::size_t{4} << 30) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("flush_bytes_max is {}: RocksDB takes less than 4 GB at once",
                             options.flush_bytes_max));
  }
  Result<RocksDbDirectory> directory = PrepareRocksDbDirectory(options);
  if (!directory.ok()) return directory.error();
  std::unique_ptr<RocksDbStorage> storage(
      new RocksDbStorage(options, std::move(directory.value().path), files));
  if (Result<void> opened = storage->OpenDatabase(directory.value().has_database); !opened.ok()) {
    return opened.error();
  }
  if (options.read_only) return std::unique_ptr<Storage>(std::move(storage));
  if (Result<void> finished = storage->FinishRenames(); !finished.ok()) return finished.error();
  return std::unique_ptr<Storage>(std::move(storage));
}

Result<void> RocksDbStorage::OpenDatabase(bool exists) {
  std::vector<std::string> names = {rocksdb::kDefaultColumnFamilyName};
  rocksdb::Status status;
  if (exists) {
    names.clear();
    status = rocksdb::DB::ListColumnFamilies(options_, directory_, &names);
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string& name : names) families.emplace_back(name, options_);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* database = nullptr;
  if (status.ok()) {
    status = read_only_
                 ? rocksdb::DB::OpenForReadOnly(options_, directory_, families, &handles, &database)
                 : rocksdb::DB::Open(options_, directory_, families, &handles, &database);
  }
  if (!status.ok()) {
    if (IsRocksDbLockMessage(status.ToString())) return RocksDbInUse(directory_, status.ToString());
    return ToError(status, RocksDbAttempt::kOpen, "open the database", directory_);
  }
  database_.reset(database);
  MutexLock lock(tables_mutex_);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    if (handle->GetName() == rocksdb::kDefaultColumnFamilyName) {
      // The database keeps a handle of its own for it.
      database_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    } else {
      tables_.emplace(handle->GetName(),
                      std::make_unique<RocksDbTable>(*database_, handle, directory_));
    }
  }
  return {};
}

Result<StorageTable*> RocksDbStorage::OpenTable(std::string_view name) {
  if (Result<void> valid = CheckStorageTableName(name); !valid.ok()) return valid.error();
  if (name == rocksdb::kDefaultColumnFamilyName) {
    return Error(ErrorCode::kInvalidArgument,
                 "'default' cannot be the name of a table: RocksDB keeps it for itself");
  }
  MutexLock lock(tables_mutex_);
  Result<RocksDbTable*> table = CreateTable(name);
  if (!table.ok()) return table.error();
  return static_cast<StorageTable*>(table.value());
}

Result<RocksDbTable*> RocksDbStorage::CreateTable(std::string_view name) {
  ZEZE_CHECK(database_ != nullptr);
  auto it = tables_.find(name);
  if (it != tables_.end()) return it->second.get();
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  rocksdb::Status status = Resume();
  if (status.ok()) status = database_->CreateColumnFamily(options_, std::string(name), &handle);
  if (!status.ok()) {
    return ToError(status, RocksDbAttempt::kWriteRefused, fmt::format("create table '{}'", name),
                   directory_);
  }
  auto table = std::make_unique<RocksDbTable>(*database_, handle, directory_);
  return tables_.emplace(name, std::move(table)).first->second.get();
}

Result<std::vector<std::string>> RocksDbStorage::ListTables() {
  MutexLock lock(tables_mutex_);
  std::vector<std::string> names;
  names.reserve(tables_.size());
  for (const auto& [name, table] : tables_) {
    if (name != kStorageVersionedTable) names.push_back(name);
  }
  return names;
}

Result<void> RocksDbStorage::Flush(std::span<const StorageWrite> writes, bool sync) {
  if (Result<void> valid = CheckStorageWrites(writes, limits_); !valid.ok()) return valid;
  if (writes.empty()) return {};
  std::size_t bytes = 0;
  for (const StorageWrite& write : writes) {
    bytes += write.key.size() + write.value.size() + kStorageWriteOverheadBytes;
  }
  rocksdb::WriteBatch batch(bytes);
  rocksdb::Status status;
  for (const StorageWrite& write : writes) {
    rocksdb::ColumnFamilyHandle* family = static_cast<RocksDbTable*>(write.table)->family();
    status = write.remove ? batch.Delete(family, ToSlice(write.key))
                          : batch.Put(family, ToSlice(write.key), ToSlice(write.value));
    if (!status.ok()) break;
  }
  if (!status.ok()) return ToError(status, RocksDbAttempt::kWriteRefused, "flush", directory_);
  return Write(batch, sync, "flush");
}

Result<void> RocksDbStorage::Write(rocksdb::WriteBatch& batch, bool sync, std::string_view what) {
  ZEZE_CHECK(database_ != nullptr);
  rocksdb::WriteOptions options;
  options.sync = sync;
  // The second attempt is for a background job that failed when there was no room, and whose error
  // is only met now that there is.
  rocksdb::Status status;
  for (int attempt = 0; attempt < 2; ++attempt) {
    status = Resume();
    if (!status.ok()) return ToError(status, RocksDbAttempt::kWriteRefused, what, directory_);
    const DiskRoom::Reservation reservation = room_->Reserve(batch.GetDataSize());
    if (!reservation.ok()) {
      return ToError(rocksdb::Status::NoSpace("no room for the log"), RocksDbAttempt::kWriteRefused,
                     what, directory_);
    }
    status = database_->Write(options, &batch);
    if (status.ok()) return {};
    if (!background_errors_->pending() || room_->log_failure() != DiskRoom::LogFailure::kNone)
      break;
  }
  return WriteError(status, what);
}

Error RocksDbStorage::WriteError(const rocksdb::Status& status, std::string_view what) const {
  RocksDbAttempt attempt = RocksDbAttempt::kWriteRefused;
  switch (room_->log_failure()) {
    case DiskRoom::LogFailure::kNone:
      // A background error: RocksDB refuses before it writes. Anything else is not known to be so.
      if (!status.IsIOError() && !status.IsNoSpace()) attempt = RocksDbAttempt::kWriteUnknown;
      break;
    case DiskRoom::LogFailure::kTorn:
      attempt = RocksDbAttempt::kWriteTorn;
      break;
    case DiskRoom::LogFailure::kUnknown:
      attempt = RocksDbAttempt::kWriteUnknown;
      break;
  }
  return ToError(status, attempt, what, directory_);
}

rocksdb::Status RocksDbStorage::Resume() {
  BackgroundErrors& errors = *background_errors_;
  if (!errors.pending()) return rocksdb::Status::OK();
  MutexLock lock(resume_mutex_);
  if (!errors.pending()) return rocksdb::Status::OK();
  // With a damaged log only a new start helps; the write that follows will say so.
  if (room_->log_failure() != DiskRoom::LogFailure::kNone) return rocksdb::Status::OK();
  errors.set_pending(false);  // First, so that an error during the attempt is seen.
  rocksdb::Status status = database_->Resume();
  if (!status.ok()) errors.set_pending(true);
  return status;
}

Result<std::optional<VersionedData>> RocksDbStorage::LoadVersioned(std::string_view id) {
  RocksDbTable* table = nullptr;
  {
    MutexLock lock(tables_mutex_);
    auto it = tables_.find(kStorageVersionedTable);
    if (it == tables_.end()) return std::optional<VersionedData>();
    table = it->second.get();
  }
  VersionedData result;
  bool intact = true;
  Result<bool> found = table->Find(id, [&](std::string_view row) {
    ByteReader reader(row);
    result.data = reader.ReadBytes();
    result.version = reader.ReadLong();
    intact = reader.ok() && reader.remaining() == 0;
  });
  if (!found.ok()) return found.error();
  if (!found.value()) return std::optional<VersionedData>();
  if (!intact) {
    return ToError(rocksdb::Status::Corruption("the row is not what was written"),
                   RocksDbAttempt::kRead, fmt::format("read the versioned data '{}'", id),
                   directory_);
  }
  return std::optional<VersionedData>(std::move(result));
}

Result<std::int64_t> RocksDbStorage::SaveVersioned(std::string_view id, std::string_view data,
                                                   std::int64_t version) {
  if (Result<void> valid = CheckStorageVersioned(id, data, limits_); !valid.ok()) {
    return valid.error();
  }
  rocksdb::ColumnFamilyHandle* family = nullptr;
  {
    MutexLock lock(tables_mutex_);
    Result<RocksDbTable*> table = CreateTable(kStorageVersionedTable);
    if (!table.ok()) return table.error();
    family = table.value()->family();
  }
  MutexLock lock(versioned_mutex_);
  Result<std::optional<VersionedData>> stored = LoadVersioned(id);
  if (!stored.ok()) return stored.error();
  const std::int64_t stored_version = stored.value() ? stored.value()->version : 0;
  if (stored_version != version) return StorageVersionConflict(id, version, stored_version);
  ByteWriter row;
  row.WriteBytes(data);
  row.WriteLong(version + 1);
  rocksdb::WriteBatch batch;
  batch.Put(family, ToSlice(id), ToSlice(row.view())).PermitUncheckedError();
  Result<void> written = Write(batch, /*sync=*/true, fmt::format("save versioned data '{}'", id));
  if (!written.ok()) return written.error();
  return version + 1;
}

Result<void> RocksDbStorage::DropTable(std::string_view name) {
  MutexLock lock(tables_mutex_);
  if (name == kStorageVersionedTable || !tables_.contains(name)) {
    return StorageTableNotFound("drop", name);
  }
  return DropFamily(name);
}

Result<void> RocksDbStorage::DropFamily(std::string_view name) {
  auto it = tables_.find(name);
  if (it == tables_.end()) return {};
  rocksdb::Status status = Resume();
  if (status.ok()) status = database_->DropColumnFamily(it->second->family());
  if (!status.ok()) {
    return ToError(status, RocksDbAttempt::kWriteRefused, fmt::format("drop table '{}'", name),
                   directory_);
  }
  tables_.erase(it);
  return {};
}

// RocksDB cannot rename a column family, so the rows are copied. A marker is synced first: from
// then on, opening the database finishes the work, so nobody ever sees a part of the new table.
Result<void> RocksDbStorage::RenameTable(std::string_view from, std::string_view to) {
  if (Result<void> valid = CheckStorageTableName(to); !valid.ok()) return valid;
  if (to == rocksdb::kDefaultColumnFamilyName) return StorageRenameConflict(from, to);
  MutexLock lock(tables_mutex_);
  if (from == kStorageVersionedTable || !tables_.contains(from)) {
    return StorageTableNotFound("rename", from);
  }
  if (from == to) return {};
  if (auto target = tables_.find(to); target != tables_.end()) {
    Result<std::size_t> rows =
        target->second->Walk({.limit = 1}, [](std::string_view, std::string_view) { return true; });
    if (!rows.ok()) return rows.error();
    if (rows.value() > 0) return StorageRenameConflict(from, to);
  }
  const std::string marker = fmt::format("{}{}", kRenamePrefix, to);
  rocksdb::WriteBatch batch;
  batch.Put(marker, ToSlice(from)).PermitUncheckedError();
  Result<void> marked = Write(batch, /*sync=*/true, fmt::format("rename table '{}'", from));
  if (!marked.ok()) return marked;
  return FinishRename(from, to);
}

Result<void> RocksDbStorage::FinishRename(std::string_view from, std::string_view to) {
  auto source = tables_.find(from);
  if (source != tables_.end()) {
    // What an interrupted attempt has copied is thrown away.
    if (Result<void> dropped = DropFamily(to); !dropped.ok()) return dropped;
    Result<RocksDbTable*> target = CreateTable(to);
    if (!target.ok()) return target.error();
    if (Result<void> copied = CopyRows(*source->second, *target.value()); !copied.ok()) {
      return copied;
    }
    if (Result<void> dropped = DropFamily(from); !dropped.ok()) return dropped;
  }
  rocksdb::WriteBatch batch;
  batch.Delete(fmt::format("{}{}", kRenamePrefix, to)).PermitUncheckedError();
  return Write(batch, /*sync=*/true, fmt::format("rename table '{}'", from));
}

Result<void> RocksDbStorage::CopyRows(RocksDbTable& from, RocksDbTable& to) {
  Result<void> written;
  const std::string what = fmt::format("copy table '{}' to '{}'", from.name(), to.name());
  rocksdb::WriteBatch batch;
  Result<std::size_t> walked = from.Walk({}, [&](std::string_view key, std::string_view value) {
    batch.Put(to.family(), ToSlice(key), ToSlice(value)).PermitUncheckedError();
    if (batch.GetDataSize() >= kRenameBatchBytes) {
      written = Write(batch, /*sync=*/false, what);
      batch.Clear();
    }
    return written.ok();
  });
  if (!walked.ok()) return walked.error();
  if (!written.ok()) return written;
  // Synced before the source is dropped; it covers the batches before it.
  return Write(batch, /*sync=*/true, what);
}

Result<void> RocksDbStorage::FinishRenames() {
  std::vector<std::pair<std::string, std::string>> pending;
  rocksdb::Status status;
  {
    const std::unique_ptr<rocksdb::Iterator> it(database_->NewIterator(rocksdb::ReadOptions()));
    for (it->Seek(ToSlice(kRenamePrefix)); it->Valid(); it->Next()) {
      if (!it->key().starts_with(ToSlice(kRenamePrefix))) break;
      pending.emplace_back(it->value().ToString(),
                           it->key().ToString().substr(kRenamePrefix.size()));
    }
    status = it->status();
  }
  if (!status.ok()) {
    return ToError(status, RocksDbAttempt::kRead, "read unfinished renames", directory_);
  }
  MutexLock lock(tables_mutex_);
  for (const auto& [from, to] : pending) {
    if (Result<void> finished = FinishRename(from, to); !finished.ok()) return finished;
  }
  return {};
}

Result<void> RocksDbStorage::Close() {
  if (database_ == nullptr) return {};
  {
    MutexLock lock(tables_mutex_);
    tables_.clear();
  }
  // Flushes without sync are in the hands of the operating system; an orderly end makes them safe.
  rocksdb::Status status = !read_only_ && room_->log_failure() == DiskRoom::LogFailure::kNone
                               ? database_->SyncWAL()
                               : rocksdb::Status::OK();
  const rocksdb::Status closed = database_->Close();
  if (status.ok()) status = closed;
  database_.reset();
  if (status.ok()) return {};
  return ToError(status, RocksDbAttempt::kWriteUnknown, "close the database", directory_);
}

Result<std::unique_ptr<Storage>> OpenRocksDbStorage(const RocksDbOptions& options) {
  return RocksDbStorage::Open(options);
}

}  // namespace zeze
