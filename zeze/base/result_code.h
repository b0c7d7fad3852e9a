// Result codes of procedures and rpcs, as they travel on the wire. A procedure that returns 0
// commits, everything else rolls back. This is the one list: the names are those of the Java peer,
// the TypeScript client's ResultCode is tested to be equal.
//
//   if (gold < price) return zeze::ModuleErrorCode(kModuleId, kNotEnoughGold);
//   return zeze::result_code::kSuccess;

#pragma once

#include <cstdint>

namespace zeze {

// The numbers are part of the protocol: append, never renumber.
namespace result_code {

inline constexpr std::int64_t kSuccess = 0;
inline constexpr std::int64_t kException = -1;  // The handler or the procedure threw.
inline constexpr std::int64_t kTooManyTry = -2;
inline constexpr std::int64_t kNotImplement = -3;  // Nobody handles this protocol.
inline constexpr std::int64_t kUnknown = -4;
inline constexpr std::int64_t kErrorSavepoint = -5;
inline constexpr std::int64_t kLogicError = -6;
inline constexpr std::int64_t kRedoAndRelease = -7;
inline constexpr std::int64_t kAbortException = -8;
inline constexpr std::int64_t kProviderNotExist = -9;
inline constexpr std::int64_t kTimeout = -10;          // No answer in time.
inline constexpr std::int64_t kCancelException = -11;  // The handler gave the request up.
inline constexpr std::int64_t kDuplicateRequest = -12;
inline constexpr std::int64_t kErrorRequestId = -13;
inline constexpr std::int64_t kErrorSendFail = -14;
inline constexpr std::int64_t kRaftRetry = -15;
inline constexpr std::int64_t kRaftApplied = -16;
inline constexpr std::int64_t kRaftExpired = -17;
inline constexpr std::int64_t kClosed = -18;  // The connection closed before the answer.
inline constexpr std::int64_t kBusy = -19;
inline constexpr std::int64_t kAuthFail = -20;

}  // namespace result_code

// A module's own code, unique in the solution: module id above, code below.
constexpr std::int64_t ModuleErrorCode(std::int32_t module_id, std::int32_t code) {
  return (std::int64_t{module_id} << 32) | static_cast<std::uint32_t>(code);
}

constexpr std::int32_t ModuleOfErrorCode(std::int64_t code) {
  return static_cast<std::int32_t>(code >> 32);
}

constexpr std::int32_t CodeOfErrorCode(std::int64_t code) {
  return static_cast<std::int32_t>(code & 0xffffffff);
}

}  // namespace zeze
