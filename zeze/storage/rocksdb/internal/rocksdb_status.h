// Translates rocksdb::Status, the only place that does.

#pragma once

#include <string_view>

#include <rocksdb/status.h>

#include "zeze/base/result.h"

namespace zeze {

// What was being done decides what a failure means.
enum class RocksDbAttempt {
  kOpen,
  kRead,
  kWriteRefused,  // RocksDB said no before it touched its log.
  kWriteTorn,     // The log is damaged at its end, and the batch is not whole in it.
  kWriteUnknown,  // The batch may be in the log.
};

// `what` completes the sentence "cannot ...", `directory` says where.
Error ToError(const rocksdb::Status& status, RocksDbAttempt attempt, std::string_view what,
              std::string_view directory);

}  // namespace zeze
