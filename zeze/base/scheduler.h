// Scheduler: runs tasks later: after a delay, again and again, or at a time of day.
//
//   Scheduler scheduler(pool, {});
//   ScheduledTask saving = scheduler.Every(std::chrono::minutes(1), Task("save", [&] { Save(); }));
//   scheduler.After(std::chrono::seconds(5), [&] { Remind(); });
//   scheduler.Daily({.hour = 3, .minute = 30}, Task("clean up", [&] { CleanUp(); }));
//   saving.Cancel();

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "zeze/base/clock.h"
#include "zeze/base/executor.h"

namespace zeze {

// Refers to a task of a Scheduler. Copies refer to the same task; dropping them all changes
// nothing.
class ScheduledTask {
 public:
  ScheduledTask() = default;  // Refers to nothing.

  // No run starts after this has returned; one that is running runs on. True if that kept a run
  // from happening. May be called from the task itself.
  bool Cancel();

  // False once it has been canceled, or has started for the last time.
  bool IsPending() const;

 private:
  friend class Scheduler;
  struct Job;
  explicit ScheduledTask(std::shared_ptr<Job> job) : job_(std::move(job)) {}

  std::shared_ptr<Job> job_;
};

// The tasks run on the executor, not on the scheduler's own thread, so none delays the others. A
// task never starts early, and starts late by what the executor takes. A repeated task never
// overlaps itself: moments that pass while it waits or runs are left out.
//
// Thread-safe.
class Scheduler {
 public:
  struct Options {
    std::string name = "scheduler";  // Of its thread.

    Clock* clock = &SystemClock();

    // Without a thread nothing happens until RunDue is called.
    bool start_thread = true;

    // Called by Shutdown for each task that was to run once and now never will. Must neither throw
    // nor schedule. The log says how many there were, whether this is set or not.
    std::function<void(const char* task_name)> on_discard = nullptr;
  };

  // In the time zone of the machine.
  struct TimeOfDay {
    int hour = 0;
    int minute = 0;
    int second = 0;
  };

  Scheduler(Executor& executor, Options options);

  // Calls Shutdown.
  ~Scheduler();

  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Once. A delay of zero or less means: now. Every way to schedule throws UsageError for an empty
  // task.
  ScheduledTask After(std::chrono::nanoseconds delay, Task task);

  // First after a period, then at every further one, counted from the call: what a run takes does
  // not add up. The period is positive; otherwise UsageError is thrown.
  ScheduledTask Every(std::chrono::nanoseconds period, Task task);
  ScheduledTask Every(std::chrono::nanoseconds first_delay, std::chrono::nanoseconds period,
                      Task task);

  // Once a day, by the wall clock, also after somebody has set it (noticed within a minute).
  ScheduledTask Daily(TimeOfDay time, Task task);

  // Nothing starts after this has returned, and nothing runs any more. Tasks scheduled later are
  // discarded. Must not be called from a task of this scheduler.
  void Shutdown();

  // Hands everything that is due to the executor and returns how much that was. For schedulers
  // without a thread.
  std::size_t RunDue();

  std::size_t PendingCount() const;

 private:
  friend class ScheduledTask;
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace zeze
