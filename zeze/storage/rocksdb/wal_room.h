// WalRoom: a file system for RocksDB that can promise that the next record of the log will find
// room on the disk.
//
// RocksDB does not get over a log record that failed for want of room: the log stays unusable, and
// a library built with assertions ends the process at the next write. So room is reserved first,
// and a flush that cannot have it is refused while RocksDB is still well.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "zeze/base/mutex.h"

namespace zeze {

class WalRoom final : public rocksdb::FileSystemWrapper {
 public:
  enum class LogFailure : std::uint8_t { kNone, kTorn, kUnknown };

  // Room for one write batch, given back when this goes out of scope.
  class Reservation {
   public:
    Reservation(WalRoom* room, std::size_t bytes) : room_(room), bytes_(bytes) {}
    Reservation(Reservation&& other) noexcept : room_(other.room_), bytes_(other.bytes_) {
      other.room_ = nullptr;
    }
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation();

    bool ok() const { return room_ != nullptr; }

   private:
    WalRoom* room_;
    const std::size_t bytes_;
  };

  WalRoom(const std::shared_ptr<rocksdb::FileSystem>& base, std::string directory);
  ~WalRoom() override;

  const char* Name() const override { return "ZezeWalRoom"; }

  // Not ok if the disk has no room. If RocksDB begins a new log meanwhile, the reservation moves
  // there, or the new log is refused.
  Reservation Reserve(std::size_t batch_bytes);

  // Whether a log could not be written although room was reserved. RocksDB must not be asked to go
  // on then. kTorn: the last record is not whole in the log. kUnknown: it may be.
  LogFailure log_failure() const { return log_failure_.load(); }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;

 private:
  class LogFile;

  void Release(std::size_t bytes);
  bool EnsureRoom() ZEZE_REQUIRES(mutex_);
  bool HasFreeBytes(std::uint64_t bytes) const;

  const std::string directory_;
  std::atomic<LogFailure> log_failure_ = LogFailure::kNone;  // Set once, by the first failure.

  Mutex mutex_;
  LogFile* log_ ZEZE_GUARDED_BY(mutex_) = nullptr;       // The one RocksDB writes to now.
  std::uint64_t appended_ ZEZE_GUARDED_BY(mutex_) = 0;   // Its length.
  std::uint64_t allocated_ ZEZE_GUARDED_BY(mutex_) = 0;  // Disk space it owns, from its start.
  std::uint64_t promised_ ZEZE_GUARDED_BY(mutex_) = 0;   // Sum of the reservations.
};

}  // namespace zeze
