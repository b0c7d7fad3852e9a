// Trouble: something that fails and is tried again. Says when to try next, twice as long after each
// failure up to a maximum, and writes to the log once when it begins, once a minute while it lasts,
// and once when it is over.
//
//   Trouble trouble({.what = "the database does not take checkpoints",
//                    .over = "the database takes checkpoints again"});
//   while (!Flush(message)) clock.SleepFor(trouble.Failed(message, clock.Now()));
//   trouble.Over(clock.Now());      // Nothing, if there was none.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace zeze {

// Thread-compatible.
class Trouble {
 public:
  struct Options {
    std::string what;
    std::string over;
    std::chrono::nanoseconds first_delay = std::chrono::milliseconds(100);
    std::chrono::nanoseconds delay_max = std::chrono::seconds(5);
  };

  explicit Trouble(Options options);

  // Notes a failure; returns how long to wait before the next try. `began`: when this try began, if
  // it may have taken long.
  std::chrono::nanoseconds Failed(std::string_view message, std::chrono::nanoseconds now,
                                  std::chrono::nanoseconds began);
  std::chrono::nanoseconds Failed(std::string_view message, std::chrono::nanoseconds now) {
    return Failed(message, now, now);
  }
  void Over(std::chrono::nanoseconds now);

  bool active() const { return tries_ != 0; }
  // The beginning of the first try that failed, failures since then, the last message, the moment
  // of the next try; only while active.
  std::chrono::nanoseconds since() const { return since_; }
  std::uint64_t tries() const { return tries_; }
  const std::string& message() const { return message_; }
  std::chrono::nanoseconds next_try() const { return next_try_; }

 private:
  const Options options_;
  std::uint64_t tries_ = 0;
  std::chrono::nanoseconds since_{0};
  std::chrono::nanoseconds delay_;
  std::chrono::nanoseconds next_try_{0};
  std::chrono::nanoseconds next_line_{0};
  std::string message_;
};

}  // namespace zeze
