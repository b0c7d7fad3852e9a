// OverloadMeter and LoadSchedule: how busy this server is, and when that is worth saying.
//
// Without I/O, threads or clocks.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/protocol.h"

namespace zeze::arch::internal {

// The numbers travel.
enum class LoadLevel : std::int32_t {
  kFine = Zeze::Builtin::Provider::BLoad::eWorkFine,
  kThreshold = Zeze::Builtin::Provider::BLoad::eThreshold,
  kOverload = Zeze::Builtin::Provider::BLoad::eOverload,
};

// What is refused at a level of load.
constexpr bool IsShed(CriticalLevel importance, LoadLevel load) {
  if (load == LoadLevel::kFine) return false;
  if (load == LoadLevel::kThreshold) return importance == CriticalLevel::kSheddable;
  return importance != CriticalLevel::kCriticalPlus;
}

// How long a probe has waited in the queue of the workers. Probes do not overlap: one that waits
// counts by its age, so the level rises without waiting for it to end.
//
// Thread-safe.
class OverloadMeter {
 public:
  using Time = std::chrono::nanoseconds;

  OverloadMeter(Time threshold, Time overload) : threshold_(threshold), overload_(overload) {}

  // False if one waits already.
  bool TryBegin(Time now) {
    Time::rep none = kNone;
    return posted_.compare_exchange_strong(none, now.count());
  }
  void End(Time now) {
    const Time::rep posted = posted_.load();
    if (posted != kNone) last_delay_ = now.count() - posted;
    posted_ = kNone;
  }
  // The queue is full: it does not get worse than that.
  void Refused() {
    last_delay_ = overload_.count();
    posted_ = kNone;
  }

  LoadLevel Level(Time now) const {
    Time delay(last_delay_.load());
    const Time::rep posted = posted_.load();
    if (posted != kNone) delay = std::max(delay, now - Time(posted));
    if (delay >= overload_) return LoadLevel::kOverload;
    return delay >= threshold_ ? LoadLevel::kThreshold : LoadLevel::kFine;
  }

 private:
  static constexpr Time::rep kNone = -1;

  const Time threshold_;
  const Time overload_;
  std::atomic<Time::rep> posted_ = kNone;
  std::atomic<Time::rep> last_delay_ = 0;
};

// When to report: at once when the level of overload changes; otherwise the sooner the more there
// is to tell. Asked about once a second.
//
// Not thread-safe.
class LoadSchedule {
 public:
  using Time = std::chrono::nanoseconds;

  LoadSchedule(Time period, std::int32_t online_max, std::int32_t online_new_max)
      : period_(period), online_max_(online_max), online_new_max_(std::max(online_new_max, 1)) {}

  // True: report now. `online_new` came in the last second.
  bool Due(Time now, LoadLevel level, std::int32_t online, std::int32_t online_new) {
    const bool changed = level != reported_level_;
    if (!changed && now < next_) return false;
    reported_level_ = level;
    if (online_new > online_new_max_) {
      // Gateways have stopped sending new users on hearing this; give what came time to settle.
      next_ = now + std::chrono::seconds(online_new / online_new_max_ + 1);
    } else if (level != LoadLevel::kFine || online > online_max_) {
      next_ = now + std::min<Time>(period_, std::chrono::seconds(1));
    } else {
      next_ = now + period_;
    }
    return true;
  }

 private:
  const Time period_;
  const std::int32_t online_max_;
  const std::int32_t online_new_max_;
  LoadLevel reported_level_ = LoadLevel::kFine;
  Time next_{0};
};

}  // namespace zeze::arch::internal
