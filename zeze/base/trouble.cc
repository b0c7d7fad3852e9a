#include "zeze/base/trouble.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "zeze/base/log.h"

namespace zeze {
namespace {

constexpr std::chrono::nanoseconds kLinePeriod = std::chrono::minutes(1);

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Trouble::Trouble(Options options) : options_(std::move(options)), delay_(options_.first_delay) {}

std::chrono::nanoseconds Trouble::Failed(std::string_view message, std::chrono::nanoseconds now,
                                         std::chrono::nanoseconds began) {
  message_ = message;
  if (++tries_ == 1) {
    since_ = began;
    next_line_ = now + kLinePeriod;
    ZEZE_LOG_ERROR("{}: {}. It is tried again until it works.", options_.what, message_);
  } else if (now >= next_line_) {
    next_line_ = now + kLinePeriod;
    ZEZE_LOG_ERROR("{} for {:.0f} s now, {} tries: {}", options_.what, Seconds(now - since_),
                   tries_, message_);
  }
  const std::chrono::nanoseconds delay = delay_;
  delay_ = std::min(2 * delay_, options_.delay_max);
  next_try_ = now + delay;
  return delay;
}

void Trouble::Over(std::chrono::nanoseconds now) {
  if (tries_ == 0) return;
  ZEZE_LOG_WARNING("{} after {:.1f} s, {} tries that failed", options_.over, Seconds(now - since_),
                   tries_);
  tries_ = 0;
  delay_ = options_.first_delay;
}

}  // namespace zeze
