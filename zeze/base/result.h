// Error and Result<T>: how a function reports a failure that its caller must deal with.
//
// CONTRIBUTING.md says when to return a Result, when to throw and when to ZEZE_CHECK.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "zeze/base/usage_error.h"

namespace zeze {

// A code exists only if some caller can react to it differently; everything else a reader needs is
// in the message. The numbers travel in protocols and logs: append, never renumber.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument = 1,
  kOverloaded = 2,    // Try again later, after backing off.
  kShuttingDown = 3,  // Do not try again here.
  kNotFound = 4,
  kUnavailable = 5,     // Definitely not done; may succeed later (disk full, server gone).
  kUnknownOutcome = 6,  // May or may not have been done: ask before repeating it.
  kCorrupt = 7,         // Bytes that cannot be what was written.
  kIncompatible = 8,    // The stored schema and the program's do not fit.
  kInUse = 9,           // Another process holds it.
  kConflict = 10,       // Somebody else changed it first.
  kFenced = 11,         // This process has lost its rights for ever: discard everything and end.
};

std::string_view ToString(ErrorCode code);

class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

namespace internal {

[[noreturn]] void ThrowNoValue(const Error& error);

}  // namespace internal

// Either a T or an Error. Reading the side that is not there throws UsageError.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }

  T& value() & { return CheckedValue(); }
  const T& value() const& {
    if (!ok()) [[unlikely]]
      internal::ThrowNoValue(error());
    return *std::get_if<0>(&state_);
  }
  T&& value() && { return std::move(CheckedValue()); }

  const Error& error() const {
    ZEZE_REQUIRE(!ok(), "the error of a Result that has none was read: test ok() first");
    return *std::get_if<1>(&state_);
  }

 private:
  T& CheckedValue() {
    if (!ok()) [[unlikely]]
      internal::ThrowNoValue(error());
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }

  const Error& error() const {
    ZEZE_REQUIRE(!ok(), "the error of a Result that has none was read: test ok() first");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace zeze
