// Watchdog: names tasks that run for too long, whatever thread they run on.
//
//   Watchdog watchdog({.limit = std::chrono::seconds(10)});
//   // Log: "Trade" has been running for 10.2 s on thread worker-3 (id 4711) ...

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "zeze/base/clock.h"

namespace zeze {

struct LongRunning {
  std::string activity;     // "Trade", or "handle message, now in Trade".
  std::string thread_name;  // As given to SetThreadName.
  std::int64_t thread_id = 0;

  // At least: counted from when the watchdog first saw it, so up to a period less than in truth.
  std::chrono::nanoseconds duration{};
};

// Watches every ScopedActivity in the process (see activity.h): tasks of thread pools, procedures,
// and what the application marks so itself. The watched threads pay nothing for it.
class Watchdog {
 public:
  struct Options {
    std::chrono::nanoseconds limit = std::chrono::seconds(10);

    // Between two looks.
    std::chrono::nanoseconds period = std::chrono::seconds(1);

    // Called in addition to the log line, on the watchdog's thread: after the limit, and again each
    // time the duration has doubled. Must not throw.
    std::function<void(const LongRunning&)> on_long_running = nullptr;

    Clock* clock = &SystemClock();

    // Without a thread nothing happens until Look is called.
    bool start_thread = true;
  };

  explicit Watchdog(Options options);
  ~Watchdog();

  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Looks once, now. Not together with a thread of its own.
  void Look();

 private:
  class State;
  const std::unique_ptr<State> state_;
};

}  // namespace zeze
