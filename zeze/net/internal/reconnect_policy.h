// ReconnectPolicy: how long to wait before the next attempt to connect.
//
//   const std::chrono::nanoseconds delay = policy.NextDelay(random);
//   policy.Reset();   // There was a connection with a peer that spoke.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace zeze::internal {

// Twice as long each time, up to a maximum. Of each delay the last fifth is left to chance, so that
// the clients of a server that was restarted do not all come back at the same moment.
class ReconnectPolicy {
 public:
  ReconnectPolicy(std::chrono::nanoseconds first_delay, std::chrono::nanoseconds delay_max)
      : first_delay_(std::max(first_delay, std::chrono::nanoseconds(1))),
        delay_max_(std::max(delay_max, first_delay_)),
        delay_(first_delay_) {}

  // `random` is any number, equally distributed.
  std::chrono::nanoseconds NextDelay(std::uint64_t random) {
    const std::chrono::nanoseconds delay = delay_;
    delay_ = std::min(2 * delay_, delay_max_);
    const auto jitter = static_cast<std::uint64_t>(delay.count() / 5) + 1;
    return delay - std::chrono::nanoseconds(random % jitter);
  }

  void Reset() { delay_ = first_delay_; }

 private:
  std::chrono::nanoseconds first_delay_;
  std::chrono::nanoseconds delay_max_;
  std::chrono::nanoseconds delay_;
};

}  // namespace zeze::internal
