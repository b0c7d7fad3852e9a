#include "zeze/base/watchdog.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "zeze/base/activity.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/usage_error.h"

namespace zeze {

namespace {

std::string Describe(const Activity& activity) {
  if (std::strcmp(activity.outer, activity.inner) == 0) return activity.outer;
  return fmt::format("{}, now in {}", activity.outer, activity.inner);
}

}  // namespace

class Watchdog::State {
 public:
  explicit State(Options options) : options_(std::move(options)) {
    ZEZE_REQUIRE(options_.period > std::chrono::nanoseconds::zero(),
                 "the period of a watchdog must be greater than zero");
    if (options_.start_thread) thread_ = std::thread([this] { Run(); });
  }

  ~State() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void Look() {
    const std::chrono::nanoseconds now = options_.clock->Now();
    std::map<std::int64_t, Seen> still_running;
    for (const Activity& activity : RunningActivities()) {
      const auto before = seen_.find(activity.thread_id);
      Seen seen{.sequence = activity.sequence, .since = now, .report_at = options_.limit};
      if (before != seen_.end() && before->second.sequence == seen.sequence) seen = before->second;
      const std::chrono::nanoseconds duration = now - seen.since;
      if (duration >= seen.report_at) {
        seen.report_at = 2 * duration;
        Report(activity, duration);
      }
      still_running.emplace(activity.thread_id, seen);
    }
    seen_ = std::move(still_running);
  }

 private:
  struct Seen {
    std::uint64_t sequence = 0;
    std::chrono::nanoseconds since{};
    std::chrono::nanoseconds report_at{};  // A duration, not a moment.
  };

  void Run() {
    SetThreadName("watchdog");
    std::chrono::nanoseconds next = options_.clock->Now();
    while (true) {
      next += options_.period;
      {
        MutexLock lock(mutex_);
        while (!stopping_ && options_.clock->WaitUntil(changed_, mutex_, next)) {
        }
        if (stopping_) return;
      }
      Look();
    }
  }

  void Report(const Activity& activity, std::chrono::nanoseconds duration) {
    const LongRunning report{.activity = Describe(activity),
                             .thread_name = activity.thread_name,
                             .thread_id = activity.thread_id,
                             .duration = duration};
    ZEZE_LOG_WARNING(
        "\"{}\" has been running for {:.1f} s on thread {} (id {}): it loops, or waits for "
        "something "
        "that does not come; its stack shows where (gdb -p {} -batch -ex 'thread apply all bt')",
        report.activity, std::chrono::duration<double>(duration).count(), report.thread_name,
        report.thread_id, getpid());
    if (options_.on_long_running) options_.on_long_running(report);
  }

  const Options options_;
  std::map<std::int64_t, Seen> seen_;  // By thread id. Used by the looking thread alone.
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

Watchdog::Watchdog(Options options) : state_(std::make_unique<State>(std::move(options))) {}

Watchdog::~Watchdog() = default;

void Watchdog::Look() {
  state_->Look();
}

}  // namespace zeze
