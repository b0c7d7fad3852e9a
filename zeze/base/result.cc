#include "zeze/base/result.h"

#include <string_view>

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

}  // namespace zeze
