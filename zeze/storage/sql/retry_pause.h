// RetryPause: the pauses between the tries of one call to a database, growing, until the caller's
// patience is over.
//
//   RetryPause pause(options.retry_for);
//   while (!Try(error)) {
//     if (!pause.Wait()) return error;
//   }

#pragma once

#include <algorithm>
#include <chrono>

#include "zeze/base/clock.h"

namespace zeze {

class RetryPause {
 public:
  explicit RetryPause(std::chrono::nanoseconds patience, Clock& clock = SystemClock())
      : clock_(clock), deadline_(clock.Now() + patience) {}

  // False, without a pause: the time would be over after it.
  bool Wait() {
    if (clock_.Now() + pause_ >= deadline_) return false;
    clock_.SleepFor(pause_);
    pause_ = std::min<std::chrono::nanoseconds>(pause_ * 2, kPauseMax);
    return true;
  }

 private:
  static constexpr std::chrono::milliseconds kPauseMax = std::chrono::milliseconds(200);

  Clock& clock_;
  const std::chrono::nanoseconds deadline_;
  std::chrono::nanoseconds pause_ = std::chrono::milliseconds(5);
};

}  // namespace zeze
