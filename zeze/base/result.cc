#include "zeze/base/result.h"

#include <string_view>

#include <fmt/core.h>

#include "zeze/base/usage_error.h"

namespace zeze {

std::string_view ToString(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kOverloaded:
      return "overloaded";
    case ErrorCode::kShuttingDown:
      return "shutting down";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kUnknownOutcome:
      return "unknown outcome";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kIncompatible:
      return "incompatible";
    case ErrorCode::kInUse:
      return "in use";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kFenced:
      return "fenced";
  }
  return "unknown";  // A newer peer may send a code that this build does not know.
}

void internal::ThrowNoValue(const Error& error) {
  ThrowUsageError(
      fmt::format("the value of a failed Result was read, test ok() first; it failed because: {}",
                  error.message()));
}

}  // namespace zeze
