// TimerRetry: what becomes of a timer whose run did not succeed.
//
//   if (IsPassing(code)) return SetAgain(PutOffDelay(attempts++));      // Nobody's fault.
//   if (++failed <= retries) return SetAgain(RetryDelay(failed, 1s, 5min));

#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "zeze/base/function_ref.h"

namespace zeze {

// Result codes that say nothing about the timer: it is run again until it can be.
bool IsPassing(std::int64_t code);

// Before the next try, after so many that could not be, for other reasons than the timer's.
std::chrono::milliseconds PutOffDelay(int attempts);

// Before the next try, after so many failures of the handler: the first delay, then twice that, and
// so on.
std::chrono::milliseconds RetryDelay(std::int32_t failed_times, std::chrono::milliseconds first,
                                     std::chrono::milliseconds longest);

// Calls a handler, so that what it throws names the timer and the handler. `kind` is what the timer
// is called in messages.
std::int64_t CallTimerHandler(const char* kind, std::string_view id, std::string_view handler,
                              FunctionRef<std::int64_t()> call);

}  // namespace zeze
