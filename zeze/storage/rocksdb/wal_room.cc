#include "zeze/storage/rocksdb/wal_room.h"

#include <string_view>
#include <utility>

#include <sys/statvfs.h>

namespace zeze {
namespace {

// Headers that the log puts around the fragments of a record: 7 bytes in each 32 KB, and the rest
// of a block that is too short for a header.
std::size_t RecordBytes(std::size_t batch_bytes) {
  return batch_bytes + batch_bytes / 2048 + (std::size_t{64} << 10);
}

// Space is taken from the file system in steps, so that small flushes seldom ask for it.
constexpr std::uint64_t kStepBytes = std::uint64_t{4} << 20;

bool IsLog(std::string_view path) {
  return path.ends_with(".log");
}

}  // namespace

class WalRoom::LogFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  LogFile(WalRoom& room, std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), room_(room) {}

  ~LogFile() override { Leave(); }

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    return Counted(data, target()->Append(data, options, debug));
  }

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* debug) override {
    return Counted(data, target()->Append(data, options, verification, debug));
  }

  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->Sync(options, debug);
    return status.ok() ? status : Failed(status, /*torn=*/false);
  }

  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->Fsync(options, debug);
    return status.ok() ? status : Failed(status, /*torn=*/false);
  }

  rocksdb::IOStatus Close(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    Leave();
    return target()->Close(options, debug);
  }

 private:
  rocksdb::IOStatus Counted(const rocksdb::Slice& data, rocksdb::IOStatus status) {
    if (!status.ok()) return Failed(status, /*torn=*/status.IsNoSpace());
    MutexLock lock(room_.mutex_);
    if (room_.log_ == this) room_.appended_ += data.size();
    return status;
  }

  rocksdb::IOStatus Failed(rocksdb::IOStatus status, bool torn) {
    LogFailure none = LogFailure::kNone;
    room_.log_failure_.compare_exchange_strong(none,
                                               torn ? LogFailure::kTorn : LogFailure::kUnknown);
    return status;
  }

  // RocksDB gives the allocated rest of a finished log back to the disk itself, when it closes it.
  void Leave() {
    MutexLock lock(room_.mutex_);
    if (room_.log_ == this) room_.log_ = nullptr;
  }

  WalRoom& room_;
};

WalRoom::WalRoom(const std::shared_ptr<rocksdb::FileSystem>& base, std::string directory)
    : FileSystemWrapper(base), directory_(std::move(directory)) {}

WalRoom::~WalRoom() = default;

WalRoom::Reservation::~Reservation() {
  if (room_ != nullptr) room_->Release(bytes_);
}

WalRoom::Reservation WalRoom::Reserve(std::size_t batch_bytes) {
  const std::size_t bytes = RecordBytes(batch_bytes);
  MutexLock lock(mutex_);
  promised_ += bytes;
  if (EnsureRoom()) return {this, bytes};
  promised_ -= bytes;
  return {nullptr, 0};
}

void WalRoom::Release(std::size_t bytes) {
  MutexLock lock(mutex_);
  promised_ -= bytes;
}

rocksdb::IOStatus WalRoom::NewWritableFile(const std::string& path,
                                           const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                                           rocksdb::IODebugContext* debug) {
  rocksdb::IOStatus status = target()->NewWritableFile(path, options, result, debug);
  if (!status.ok() || !IsLog(path)) return status;
  auto log = std::make_unique<LogFile>(*this, std::move(*result));
  {
    MutexLock lock(mutex_);
    LogFile* const old_log = std::exchange(log_, log.get());
    const std::uint64_t old_appended = std::exchange(appended_, 0);
    const std::uint64_t old_allocated = std::exchange(allocated_, 0);
    if (EnsureRoom()) {
      *result = std::move(log);
      return status;
    }
    log_ = old_log;
    appended_ = old_appended;
    allocated_ = old_allocated;
  }
  log.reset();
  target()->DeleteFile(path, options.io_options, debug).PermitUncheckedError();
  return rocksdb::IOStatus::NoSpace("no room for a new log", path);
}

bool WalRoom::EnsureRoom() {
  const std::uint64_t needed = appended_ + promised_;
  if (promised_ == 0 || needed <= allocated_) return true;
  // RocksDB opens its first log before anything is reserved, and begins another one whenever it
  // likes: without a current log only the disk itself can be asked.
  if (log_ == nullptr) return HasFreeBytes(promised_);
  rocksdb::IOStatus status = rocksdb::IOStatus::OK();
  for (const std::uint64_t until : {needed + kStepBytes, needed}) {
    status = log_->Allocate(allocated_, until - allocated_, rocksdb::IOOptions(), nullptr);
    if (status.ok()) {
      allocated_ = until;
      return true;
    }
  }
  if (status.IsNoSpace()) return false;
  // This file system cannot allocate ahead.
  return HasFreeBytes(needed - allocated_);
}

bool WalRoom::HasFreeBytes(std::uint64_t bytes) const {
  struct statvfs info = {};
  if (::statvfs(directory_.c_str(), &info) != 0) return true;  // The write itself will tell.
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize >= bytes;
}

}  // namespace zeze
