// TimerRetry: what becomes of a timer whose run did not succeed.
//
//   if (IsPassing(code)) return SetAgain(PutOffDelay(attempts++));      // Nobody's fault.
//   if (++failed <= retries) return SetAgain(RetryDelay(failed, 1s, 5min));

#pragma once

#include <chrono>
#include <cstdint>

namespace zeze {

// Result codes that say nothing about the timer: it is run again until it can be.
bool IsPassing(std::int64_t code);

// Before the next try, after so many that could not be, for other reasons than the timer's.
std::chrono::milliseconds PutOffDelay(int attempts);

// Before the next try, after so many failures of the handler: the first delay, then twice that, and
// so on.
std::chrono::milliseconds RetryDelay(std::int32_t failed_times, std::chrono::milliseconds first,
                                     std::chrono::milliseconds longest);

}  // namespace zeze
