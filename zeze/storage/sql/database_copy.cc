#include "zeze/storage/sql/database_copy.h"

#include <optional>
#include <string>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze {

CopyVerdict JudgeCopy(std::optional<KnownCopy>& known, const std::string& here,
                      const HomeRow& row) {
  if (!known) {
    if (row.home != here) return CopyVerdict::kForeign;
    known = KnownCopy{.identity = here, .number = row.number};
  }
  if (here == known->identity) {
    if (row.home != here || row.number != known->number) return CopyVerdict::kForeign;
    return row.frozen == 0 ? CopyVerdict::kUse : CopyVerdict::kFrozen;
  }
  if (row.number < known->number) return CopyVerdict::kOld;
  // Only a copy that has the marker is made the next home, and the marker is the last write of the
  // one before.
  if (row.home == here && row.number == known->number + 1) {
    known = KnownCopy{.identity = here, .number = row.number};
    return row.frozen == 0 ? CopyVerdict::kUse : CopyVerdict::kFrozen;
  }
  const bool has_marker =
      row.home == known->identity && row.number == known->number && row.frozen == known->number + 1;
  return has_marker ? CopyVerdict::kFrozen : CopyVerdict::kForeign;
}

Result<void> DatabaseCopy::Check(const std::string& place, const std::string& here,
                                 const HomeRow& row) {
  const MutexLock lock(mutex_);
  const std::optional<KnownCopy> before = known_;
  const CopyVerdict verdict = JudgeCopy(known_, here, row);
  if (!before && known_) first_ = here;
  if (before && known_ != before) {
    ZEZE_LOG_WARNING("the database has switched over from {} to {} ({}), as planned",
                     before->identity, here, place);
  }
  switch (verdict) {
    case CopyVerdict::kUse:
      return {};
    case CopyVerdict::kFrozen:
      return Error(ErrorCode::kUnavailable,
                   fmt::format("{} is frozen for a planned switch-over: waiting for \"zeze cluster "
                               "switch-over finish\" (or \"cancel\")",
                               place));
    case CopyVerdict::kOld:
      return Error(ErrorCode::kUnavailable,
                   fmt::format("{} is the copy before the last switch-over", place));
    case CopyVerdict::kForeign:
      break;
  }
  if (!before) {
    return Error(
        ErrorCode::kUnavailable,
        fmt::format("{} ({}) is not the copy of the database that counts, which is {}. After a "
                    "planned switch-over: \"zeze cluster switch-over finish MARKER\". If the other "
                    "copy is lost, and with it perhaps what it had acknowledged: \"zeze cluster "
                    "adopt\".",
                    place, here, row.home));
  }
  return Error(ErrorCode::kFenced,
               fmt::format("the database is another copy than before ({} at {}, not {}): what was "
                           "acknowledged may be gone",
                           here, place, before->identity));
}

std::string DatabaseCopy::first() const {
  const MutexLock lock(mutex_);
  return first_;
}

}  // namespace zeze
