// DiskRoom: a file system for RocksDB that can promise that what it must write next will find room
// on the disk: the next record of its log, also if it begins a new log for it, and the entries of
// its manifest.
//
// RocksDB gets over a lack of room when it writes or merges sorted files, but not when a record of
// its log fails or a new log cannot be made: from then on it refuses everything until it is opened
// again. So room is reserved first, and a flush that cannot have it is refused while RocksDB is
// still well.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "zeze/base/mutex.h"

namespace zeze {

class DiskRoom final : public rocksdb::FileSystemWrapper {
 public:
  enum class LogFailure : std::uint8_t { kNone, kTorn, kUnknown };

  // Room for one write batch, given back when this goes out of scope.
  class Reservation {
   public:
    Reservation(DiskRoom* room, std::size_t bytes) : room_(room), bytes_(bytes) {}
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    ~Reservation();

    bool ok() const { return room_ != nullptr; }

   private:
    DiskRoom* const room_;
    const std::size_t bytes_;
  };

  // One database in `directory`, opened once.
  DiskRoom(const std::shared_ptr<rocksdb::FileSystem>& base, std::string directory);
  ~DiskRoom() override;

  const char* Name() const override { return "ZezeDiskRoom"; }

  // Not ok if the disk has no room.
  Reservation Reserve(std::size_t batch_bytes);

  // Whether a log could not be written all the same (the disk broke, or cannot reserve). RocksDB
  // must not be asked to go on then. kTorn: the last record is not whole in the log. kUnknown: it
  // may be.
  LogFailure log_failure() const { return log_failure_.load(); }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;

 private:
  class TrackedFile;

  // A file that RocksDB appends to, and how much of the disk it owns from its start.
  struct Tail {
    TrackedFile* file = nullptr;  // Null between two files.
    std::uint64_t appended = 0;
    std::uint64_t allocated = 0;
  };

  rocksdb::IOStatus NewLog(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           rocksdb::IODebugContext* debug);
  void Track(Tail& tail, std::uint64_t allocated, std::unique_ptr<rocksdb::FSWritableFile>* result)
      ZEZE_REQUIRES(mutex_);
  void Release(std::size_t bytes);
  bool EnsureRoom() ZEZE_REQUIRES(mutex_);
  bool Extend(Tail& tail, std::uint64_t ahead, std::uint64_t step) ZEZE_REQUIRES(mutex_);
  bool ExtendSpare() ZEZE_REQUIRES(mutex_);
  bool HasFreeBytes(std::uint64_t bytes) const;

  const std::string directory_;
  const std::string spare_path_;
  std::atomic<LogFailure> log_failure_ = LogFailure::kNone;  // Set once, by the first failure.

  Mutex mutex_;
  Tail log_ ZEZE_GUARDED_BY(mutex_);
  Tail manifest_ ZEZE_GUARDED_BY(mutex_);
  std::uint64_t promised_ ZEZE_GUARDED_BY(mutex_) = 0;  // Sum of the reservations.
  // An empty file that owns this much of the disk and becomes the next log.
  std::uint64_t spare_allocated_ ZEZE_GUARDED_BY(mutex_) = 0;
};

}  // namespace zeze
