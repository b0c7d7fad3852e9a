#include "zeze/app/internal/check_options.h"

#include <fmt/core.h>

#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/storage/storage_driver.h"

namespace zeze::internal {

Result<void> CheckApplicationOptions(const ApplicationOptions& options) {
  const Result<StorageDriver> driver = FindStorageDriver(options.storage.url);
  if (!driver.ok()) return driver.error();
  if (!options.globals.empty() && !driver.value().shared) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("a {} database belongs to one process, but a Global is configured: use a "
                    "database that several processes may share, or remove "
                    "GlobalCacheManagerHostNameOrAddress",
                    driver.value().name));
  }
  if (options.server_id < 0 && driver.value().durable) {
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
