#include "zeze/storage/rocksdb/internal/rocksdb_status.h"

#include <string>
#include <string_view>

#include <fmt/core.h>
#include <rocksdb/status.h>

#include "zeze/base/result.h"

namespace zeze {
namespace {

bool IsNoRoom(const rocksdb::Status& status) {
  return status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit;
}

bool Contains(const rocksdb::Status& status, std::string_view text) {
  return status.ToString().find(text) != std::string::npos;
}

ErrorCode CodeOf(const rocksdb::Status& status, RocksDbAttempt attempt) {
  if (status.IsCorruption()) return ErrorCode::kCorrupt;
  if (status.IsPathNotFound() && attempt == RocksDbAttempt::kRead) return ErrorCode::kCorrupt;
  if (status.IsInvalidArgument() || status.IsNotSupported()) return ErrorCode::kInvalidArgument;
  if (status.IsShutdownInProgress()) return ErrorCode::kShuttingDown;
  if (attempt == RocksDbAttempt::kWriteUnknown) return ErrorCode::kUnknownOutcome;
  return ErrorCode::kUnavailable;
}

std::string_view Advice(const rocksdb::Status& status, RocksDbAttempt attempt, ErrorCode code) {
  if (attempt == RocksDbAttempt::kWriteTorn) {
    return "Nothing was written, and nothing can be until the server is started again. Make room "
           "on that disk first.";
  }
  if (IsNoRoom(status) && attempt != RocksDbAttempt::kWriteUnknown) {
    return attempt == RocksDbAttempt::kOpen
               ? "Make room on that disk and start again; nothing was lost."
               : "Make room on that disk; the server goes on by itself then.";
  }
  switch (code) {
    case ErrorCode::kCorrupt:
      return "The database is damaged. Stop, keep a copy of the directory, check the disk, and "
             "restore the last backup.";
    case ErrorCode::kUnknownOutcome:
      return "It is not known whether it was written. Check the disk, then start the server again.";
    case ErrorCode::kUnavailable:
      if (Contains(status, "Permission denied") || Contains(status, "Read-only file system")) {
        return "Give the server's user the right to write there, or choose another directory.";
      }
      return "Check the disk and try again.";
    default:
      return "";
  }
}

}  // namespace

Error ToError(const rocksdb::Status& status, RocksDbAttempt attempt, std::string_view what,
              std::string_view directory) {
  const ErrorCode code = CodeOf(status, attempt);
  return {code, fmt::format("cannot {} in '{}': {}. {}", what, directory, status.ToString(),
                            Advice(status, attempt, code))};
}

}  // namespace zeze
