// AcceptRamp: how many clients a second are let in after a start, and when the others should come
// again. Without I/O and clocks.
//
//   AcceptRamp ramp({.first = 200, .last = 5000}, started_at);
//   if (std::optional<std::chrono::milliseconds> later = ramp.Refuse(now)) Tell(*later);

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace zeze::arch {

struct RampOptions {
  // Connections a second, at the start and after `duration`; it grows evenly. Without a first (0)
  // it is the last at once, without a last there is no limit.
  double first = 200;
  double last = 5000;
  std::chrono::nanoseconds duration = std::chrono::seconds(60);

  // Who would have to wait longer is told this.
  std::chrono::nanoseconds wait_max = std::chrono::seconds(60);
};

// When everybody comes back at once each one that is sent away gets a moment of its own at which
// there is room, instead of trying at will. Not thread-safe.
class AcceptRamp {
 public:
  using Time = std::chrono::nanoseconds;

  AcceptRamp(const RampOptions& options, Time start) : options_(options), start_(start) {}

  // None: let it in.
  std::optional<std::chrono::milliseconds> Refuse(Time now) {
    const double rate = RateAt(now);
    if (rate <= 0) return std::nullopt;
    const auto each = static_cast<std::int64_t>(1e9 / rate);
    // A tenth of a second's worth may come at once.
    const std::int64_t burst = std::max<std::int64_t>(100'000'000, each);
    const std::int64_t next = std::max(admitted_until_, now.count()) + each;
    if (next - now.count() <= burst) {
      admitted_until_ = next;
      return std::nullopt;
    }
    promised_until_ = std::max(promised_until_, now.count() + burst) + each;
    const std::int64_t wait = std::min(promised_until_ - now.count(), options_.wait_max.count());
    if (wait == options_.wait_max.count()) promised_until_ = now.count() + wait;
    return std::chrono::milliseconds(wait / 1'000'000 + 1);
  }

  double RateAt(Time now) const {
    if (options_.last <= 0) return 0;
    const Time age = now - start_;
    if (options_.first <= 0 || age >= options_.duration) return options_.last;
    const double share =
        static_cast<double>(age.count()) / static_cast<double>(options_.duration.count());
    return options_.first + (options_.last - options_.first) * share;
  }

 private:
  const RampOptions options_;
  const Time start_;
  std::int64_t admitted_until_ = 0;  // When those who were let in are paid for.
  std::int64_t promised_until_ = 0;  // The last moment that somebody was told.
};

}  // namespace zeze::arch
