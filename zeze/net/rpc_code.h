// rpc_code: the result codes that the network layer itself gives. They are numbers of the common
// list of result codes and travel on the wire: never renumber.

#pragma once

#include <cstdint>

namespace zeze::rpc_code {

inline constexpr std::int64_t kSuccess = 0;
inline constexpr std::int64_t kException = -1;       // The handler threw.
inline constexpr std::int64_t kNotImplemented = -3;  // Nobody handles this protocol.
inline constexpr std::int64_t kTimeout = -10;        // No answer in time.
inline constexpr std::int64_t kCanceled = -11;       // The handler gave the request up.
inline constexpr std::int64_t kClosed = -18;         // The connection closed before the answer.

}  // namespace zeze::rpc_code
