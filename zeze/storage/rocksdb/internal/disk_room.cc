#include "zeze/storage/rocksdb/internal/disk_room.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <linux/falloc.h>
#include <rocksdb/file_system.h>
#include <rocksdb/io_status.h>
#include <rocksdb/slice.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "zeze/base/mutex.h"
#include "zeze/storage/rocksdb/internal/rocksdb_directory.h"

namespace zeze {
namespace {

// Headers that the log puts around the fragments of a record: 7 bytes in each 32 KB, and the rest
// of a block that is too short for a header.
std::size_t RecordBytes(std::size_t batch_bytes) {
  return batch_bytes + batch_bytes / 2048 + (std::size_t{64} << 10);
}

// Disk space is asked for in steps, so that small flushes seldom ask.
constexpr std::uint64_t kLogStepBytes = std::uint64_t{4} << 20;

// An entry has some hundred bytes, and there is one for each file that is written or merged.
constexpr std::uint64_t kManifestAheadBytes = std::uint64_t{256} << 10;

// A spare that grew beyond this for a large flush is given back to the disk afterwards.
constexpr std::uint64_t kSpareKeptBytes = std::uint64_t{16} << 20;

std::string_view FileName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

class DiskRoom::TrackedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  TrackedFile(DiskRoom& room, Tail& tail, std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), room_(room), tail_(tail) {}

  ~TrackedFile() override { Leave(); }

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    return Appended(data, target()->Append(data, options, debug));
  }

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* debug) override {
    return Appended(data, target()->Append(data, options, verification, debug));
  }

  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    return Checked(target()->Sync(options, debug), LogFailure::kUnknown);
  }

  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    return Checked(target()->Fsync(options, debug), LogFailure::kUnknown);
  }

  // RocksDB gives the allocated rest of a finished file back to the disk itself.
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    Leave();
    return target()->Close(options, debug);
  }

 private:
  rocksdb::IOStatus Appended(const rocksdb::Slice& data, rocksdb::IOStatus status) {
    if (!status.ok()) {
      const LogFailure failure = status.IsNoSpace() ? LogFailure::kTorn : LogFailure::kUnknown;
      return Checked(std::move(status), failure);
    }
    MutexLock lock(room_.mutex_);
    if (tail_.file == this) tail_.appended += data.size();
    return status;
  }

  rocksdb::IOStatus Checked(rocksdb::IOStatus status, LogFailure failure) {
    if (!status.ok() && &tail_ == &room_.log_) {
      LogFailure none = LogFailure::kNone;
      room_.log_failure_.compare_exchange_strong(none, failure);
    }
    return status;
  }

  void Leave() {
    MutexLock lock(room_.mutex_);
    if (tail_.file == this) tail_ = {};
  }

  DiskRoom& room_;
  Tail& tail_;  // Guarded by room_.mutex_.
};

DiskRoom::DiskRoom(const std::shared_ptr<rocksdb::FileSystem>& base, std::string directory)
    : FileSystemWrapper(base),
      directory_(std::move(directory)),
      spare_path_(directory_ + "/" + std::string(kRocksDbSpareFile)) {
  ::unlink(spare_path_.c_str());  // Of a process that was killed.
}

DiskRoom::~DiskRoom() {
  ::unlink(spare_path_.c_str());
}

DiskRoom::Reservation::~Reservation() {
  if (room_ != nullptr) room_->Release(bytes_);
}

DiskRoom::Reservation DiskRoom::Reserve(std::size_t batch_bytes) {
  const std::size_t bytes = RecordBytes(batch_bytes);
  MutexLock lock(mutex_);
  promised_ += bytes;
  if (EnsureRoom()) return {this, bytes};
  promised_ -= bytes;
  return {nullptr, 0};
}

void DiskRoom::Release(std::size_t bytes) {
  MutexLock lock(mutex_);
  promised_ -= bytes;
  if (promised_ == 0 && spare_allocated_ > kSpareKeptBytes) {
    ::unlink(spare_path_.c_str());
    spare_allocated_ = 0;
  }
}

rocksdb::IOStatus DiskRoom::NewWritableFile(const std::string& path,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* result,
                                            rocksdb::IODebugContext* debug) {
  if (path.ends_with(".log")) return NewLog(path, options, result, debug);
  rocksdb::IOStatus status = target()->NewWritableFile(path, options, result, debug);
  if (status.ok() && FileName(path).starts_with("MANIFEST-")) {
    MutexLock lock(mutex_);
    Track(manifest_, 0, result);
    Extend(manifest_, kManifestAheadBytes, 0);
  }
  return status;
}

rocksdb::IOStatus DiskRoom::NewLog(const std::string& path, const rocksdb::FileOptions& options,
                                   std::unique_ptr<rocksdb::FSWritableFile>* result,
                                   rocksdb::IODebugContext* debug) {
  MutexLock lock(mutex_);
  const std::uint64_t allocated = std::exchange(spare_allocated_, 0);
  const bool use_spare = allocated > 0 && ::rename(spare_path_.c_str(), path.c_str()) == 0;
  // The spare is opened as it is: opened anew, it would lose what it owns.
  rocksdb::IOStatus status;
  if (use_spare) {
    status = target()->ReopenWritableFile(path, options, result, debug);
  } else {
    status = target()->NewWritableFile(path, options, result, debug);
  }
  if (status.ok()) {
    Track(log_, use_spare ? allocated : 0, result);
    EnsureRoom();  // For the next new log; this one has what it needs.
  }
  return status;
}

void DiskRoom::Track(Tail& tail, std::uint64_t allocated,
                     std::unique_ptr<rocksdb::FSWritableFile>* result) {
  auto file = std::make_unique<TrackedFile>(*this, tail, std::move(*result));
  tail = {.file = file.get(), .appended = 0, .allocated = allocated};
  *result = std::move(file);
}

bool DiskRoom::EnsureRoom() {
  return Extend(manifest_, kManifestAheadBytes, 0) && Extend(log_, promised_, kLogStepBytes) &&
         ExtendSpare();
}

bool DiskRoom::Extend(Tail& tail, std::uint64_t ahead, std::uint64_t step) {
  const std::uint64_t needed = tail.appended + ahead;
  if (needed <= tail.allocated) return true;
  if (tail.file == nullptr) return HasFreeBytes(ahead);
  rocksdb::IOStatus status = rocksdb::IOStatus::OK();
  for (const std::uint64_t until : {needed + step, needed}) {
    status =
        tail.file->Allocate(tail.allocated, until - tail.allocated, rocksdb::IOOptions(), nullptr);
    if (status.ok()) {
      tail.allocated = until;
      return true;
    }
  }
  // Other errors: this file system cannot allocate ahead.
  return !status.IsNoSpace() && HasFreeBytes(needed - tail.allocated);
}

bool DiskRoom::ExtendSpare() {
  if (promised_ <= spare_allocated_) return true;
  const int file = ::open(spare_path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return errno != ENOSPC && HasFreeBytes(promised_);
  bool allocated = false;
  int error = 0;
  for (const std::uint64_t until : {promised_ + kLogStepBytes, promised_}) {
    // Beyond the end of the file, which stays empty.
    allocated = ::fallocate(file, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(until)) == 0;
    error = errno;
    if (allocated) {
      spare_allocated_ = until;
      break;
    }
  }
  ::close(file);
  return allocated || (error != ENOSPC && HasFreeBytes(promised_));
}

bool DiskRoom::HasFreeBytes(std::uint64_t bytes) const {
  struct statvfs info = {};
  if (::statvfs(directory_.c_str(), &info) != 0) return true;  // The write itself will tell.
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize >= bytes;
}

}  // namespace zeze
