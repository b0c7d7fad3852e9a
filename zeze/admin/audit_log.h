// AuditLog: what operators did, in a file that shows when somebody changed it.
//
//   Result<std::unique_ptr<AuditLog>> log = AuditLog::Open({.path = "audit.log"});
//   if (!log.value()->Append("alice", "approve", "request 3f...").ok()) return Refuse();
//   Act();                                        // Only now: the line is on the disk.
//
// The format, kept for ever: a line is six fields between tabs: number, UTC time, actor, action,
// details, hash. The hash is SHA-256, in hexadecimal, of the previous line's hash (64 zeros for the
// first), a newline, and this line up to the tab before its hash. So a line cannot be changed, left
// out or put in without changing all hashes behind it. That lines at the end are missing shows only
// to somebody who has noted the number or the hash of a later one: alerts and the process's own log
// carry them.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze::admin {

struct AuditLogOptions {
  std::string path;
  Clock* clock = &SystemClock();
};

struct AuditLogSummary {
  std::uint64_t lines = 0;
  std::string hash;              // Of the last line.
  std::uint64_t good_bytes = 0;  // Up to the end of the last whole line.
  std::uint64_t torn_bytes = 0;  // Of a last line that a crash left without its end.
};

// Reads the whole file. Error: kCorrupt with the number of the first line that does not fit.
Result<AuditLogSummary> VerifyAuditLog(const std::string& path);

// Thread-safe; Append blocks for the disk.
class AuditLog {
 public:
  // Makes the file, or verifies the one that is there and goes on with it. A torn last line is cut
  // off, which the next line says: nobody acted on it. Errors: kCorrupt as above, kInUse (another
  // process writes to it), kUnavailable.
  static Result<std::unique_ptr<AuditLog>> Open(AuditLogOptions options);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // On success the line is on the disk. After an error it is not in the file; if even that is not
  // certain (the disk failed to say what it has), all later calls fail too, until the log is opened
  // again.
  Result<void> Append(std::string_view actor, std::string_view action, std::string_view details);

  AuditLogSummary summary() const;
  const std::string& path() const { return options_.path; }

 private:
  AuditLog(AuditLogOptions options, int descriptor, AuditLogSummary summary);

  const AuditLogOptions options_;
  const int descriptor_;
  mutable Mutex mutex_;
  AuditLogSummary summary_ ZEZE_GUARDED_BY(mutex_);
  std::string broken_ ZEZE_GUARDED_BY(mutex_);  // Why nothing can be appended any more.
};

}  // namespace zeze::admin
