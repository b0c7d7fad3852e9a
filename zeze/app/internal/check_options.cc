#include "zeze/app/internal/check_options.h"

#include <fmt/core.h>

#include "zeze/app/application.h"
#include "zeze/base/result.h"

namespace zeze::internal {

Result<void> CheckApplicationOptions(const ApplicationOptions& options) {
  const bool in_memory = options.storage == StorageKind::kMemory;
  if (!options.globals.empty() && (in_memory || options.storage == StorageKind::kRocksDb)) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} belongs to one process, but a Global is configured: use PostgreSQL "
                    "or MariaDB, or remove GlobalCacheManagerHostNameOrAddress",
                    in_memory ? "a database in memory" : "RocksDB"));
  }
  if (options.server_id < 0 && !in_memory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("ServerId is {}: a negative one is for processes without a database; "
                             "give this server a number of its own, from 0 to 16383",
                             options.server_id));
  }
  if (!options.global_tls && !options.global_tls_name.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "global_tls_name is set, but global_tls is missing: what is said to Global would "
                 "not be encrypted");
  }
  return {};
}

}  // namespace zeze::internal
