// KeepAlive: when a connection is given up, and when it must be told that we are still here.
//
//   switch (keep_alive.Check(now, last_received, last_sent)) ...   // At NextCheck().

#pragma once

#include <chrono>
#include <cstdint>

#include "zeze/net/service_options.h"

namespace zeze::internal {

class KeepAlive {
 public:
  enum class Action : std::uint8_t { kNothing, kSend, kClose };

  // The first check comes after a random part of a period, so that connections made at the same
  // moment are not all checked at the same moment.
  KeepAlive(const KeepAliveOptions& options, bool opened_here, std::chrono::nanoseconds now,
            std::uint64_t random)
      : options_(options), opened_here_(opened_here) {
    if (!enabled()) return;
    const auto period = static_cast<std::uint64_t>(options.check_period.count());
    next_check_ = now + std::chrono::nanoseconds(1 + random % period);
  }

  bool enabled() const { return options_.check_period.count() > 0; }

  std::chrono::nanoseconds next_check() const { return next_check_; }

  // Nothing before next_check().
  Action Check(std::chrono::nanoseconds now, std::chrono::nanoseconds last_received,
               std::chrono::nanoseconds last_sent) {
    if (!enabled() || now < next_check_) return Action::kNothing;
    next_check_ = now + options_.check_period;
    if (IsOver(options_.receive_timeout, now - last_received)) return Action::kClose;
    if (opened_here_ && IsOver(options_.answer_timeout, now - last_received)) return Action::kClose;
    if (opened_here_ && (IsOver(options_.send_timeout, now - last_sent) ||
                         IsOver(options_.send_timeout, now - last_received))) {
      return Action::kSend;
    }
    return Action::kNothing;
  }

 private:
  static bool IsOver(std::chrono::nanoseconds limit, std::chrono::nanoseconds passed) {
    return limit.count() > 0 && passed > limit;
  }

  KeepAliveOptions options_;
  bool opened_here_;
  std::chrono::nanoseconds next_check_{0};
};

}  // namespace zeze::internal
