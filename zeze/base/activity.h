// ScopedActivity: says what this thread is doing, so that a task that never ends can be named.
//
//   ScopedActivity activity("Trade");        // Until the end of the scope.
//   for (const Activity& a : RunningActivities()) ...
//
// Costs two stores to memory that only this thread writes: cheap enough for every task. See
// watchdog.h for who reads it.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zeze {

// The same text, kept until the process ends; equal texts give the same pointer. For names made at
// run time: make them once, when a procedure or a table is set up, not for each task.
const char* InternName(std::string_view name);

// Names the calling thread, in the reports of the watchdog and for the operating system, which
// keeps the first 15 characters.
void SetThreadName(std::string_view name);

// What one thread was doing at the moment of the call to RunningActivities.
struct Activity {
  std::string thread_name;
  std::int64_t thread_id = 0;  // As the operating system knows it.

  // Identifies this activity among all of the thread: the same number later means that it has not
  // ended in between.
  std::uint64_t sequence = 0;

  const char* outer = nullptr;  // The activity that the thread began with,
  const char* inner = nullptr;  // and the innermost one inside it. Often the same.
};

// Of all threads that are inside a ScopedActivity. A thread that ends one and begins another during
// the call may show names of both.
std::vector<Activity> RunningActivities();

namespace internal {

// Written by its own thread only, read by any.
struct ActivitySlot {
  std::atomic<std::uint64_t> sequence = 0;  // Odd while something runs.
  std::atomic<const char*> outer = nullptr;
  std::atomic<const char*> inner = nullptr;
};

extern constinit thread_local ActivitySlot* activity_slot;

ActivitySlot& RegisterActivitySlot();

inline ActivitySlot& CurrentActivitySlot() {
  return activity_slot != nullptr ? *activity_slot : RegisterActivitySlot();
}

}  // namespace internal

// May be nested. The name is not copied: pass a literal, or text from InternName.
class ScopedActivity {
 public:
  explicit ScopedActivity(const char* name)
      : slot_(internal::CurrentActivitySlot()), previous_(Load(slot_.inner)) {
    slot_.inner.store(name, std::memory_order_relaxed);
    if (previous_ != nullptr) return;
    slot_.outer.store(name, std::memory_order_relaxed);
    // Release: who sees the number sees the names stored before it.
    slot_.sequence.store(Load(slot_.sequence) + 1, std::memory_order_release);
  }

  ~ScopedActivity() {
    slot_.inner.store(previous_, std::memory_order_relaxed);
    if (previous_ != nullptr) return;
    slot_.sequence.store(Load(slot_.sequence) + 1, std::memory_order_release);
  }

  ScopedActivity(const ScopedActivity&) = delete;
  ScopedActivity& operator=(const ScopedActivity&) = delete;

 private:
  template <typename T>
  static T Load(const std::atomic<T>& value) {
    return value.load(std::memory_order_relaxed);  // This thread wrote it.
  }

  internal::ActivitySlot& slot_;
  const char* const previous_;
};

}  // namespace zeze
