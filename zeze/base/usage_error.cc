#include "zeze/base/usage_error.h"

#include <string>

namespace zeze::internal {

void ThrowUsageError(const std::string& message) {
  throw UsageError(message);
}

}  // namespace zeze::internal
