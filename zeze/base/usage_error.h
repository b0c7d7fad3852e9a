// UsageError and ZEZE_REQUIRE: the caller broke the contract of a function.
//
//   ZEZE_REQUIRE(index < size(), fmt::format("index {} of a list of {}", index, size()));
//
// A slip of user code ends the work in hand, not the process: the exception rolls the procedure
// back, and its message names the place. A broken invariant of the library itself is a ZEZE_CHECK
// (check.h); a failure that a correct caller must expect is an Error (result.h).

#pragma once

#include <stdexcept>
#include <string>

namespace zeze {

class UsageError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace internal {

[[noreturn]] void ThrowUsageError(const std::string& message);

}  // namespace internal

}  // namespace zeze

// The message is made only if the condition does not hold.
#define ZEZE_REQUIRE(condition, message) \
  ((condition) ? static_cast<void>(0) : ::zeze::internal::ThrowUsageError(message))
