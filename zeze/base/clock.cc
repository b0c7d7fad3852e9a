#include "zeze/base/clock.h"

#include <cerrno>
#include <chrono>

#include <time.h>  // NOLINT(modernize-deprecated-headers): the clocks are those of POSIX.

#include "zeze/base/check.h"
#include "zeze/base/mutex.h"

namespace zeze {

namespace {

// NOLINTBEGIN(misc-include-cleaner): it looks for the clocks of <time.h> in headers of glibc's own.

std::chrono::nanoseconds Read(clockid_t id) {
  timespec now{};
  ZEZE_CHECK(clock_gettime(id, &now) == 0);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

class OperatingSystemClock final : public Clock {
 public:
  std::chrono::nanoseconds Now() const override { return Read(CLOCK_BOOTTIME); }

  std::chrono::system_clock::time_point SystemNow() const override {
    return std::chrono::system_clock::now();
  }

  bool WaitUntil(CondVar& condition, Mutex& mutex, std::chrono::nanoseconds deadline)
      ZEZE_REQUIRES(mutex) override {
    const std::chrono::nanoseconds now = Now();
    if (now >= deadline) return false;
    // In slices, because the wait itself counts CLOCK_MONOTONIC, which stops during a suspend, and
    // because deadlines like nanoseconds::max() would overflow inside the wait.
    constexpr std::chrono::nanoseconds kSlice = std::chrono::hours(1);
    const std::chrono::nanoseconds left = deadline - now;
    condition.WaitFor(mutex, left < kSlice ? left : kSlice);
    return Now() < deadline;
  }

  void SleepFor(std::chrono::nanoseconds duration) override {
    if (duration <= std::chrono::nanoseconds::zero()) return;
    const std::chrono::nanoseconds until = Now() + duration;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(until);
    timespec wake_up{};
    wake_up.tv_sec = static_cast<time_t>(seconds.count());
    wake_up.tv_nsec = static_cast<long>((until - seconds).count());
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &wake_up, nullptr) == EINTR) {
    }
  }
};

// NOLINTEND(misc-include-cleaner)

}  // namespace

Clock& SystemClock() {
  static auto& clock = *new OperatingSystemClock();  // Never destroyed: threads may outlive main.
  return clock;
}

}  // namespace zeze
