// AlarmClock: says when something is due, by the wall clock: the timers of a process, in memory.
//
//   AlarmClock alarms({.clock = &clock}, [](std::vector<Alarm>&& due) { ... });
//   alarms.Set({.key = 7, .serial = 1, ...}, unix_ms);
//   alarms.Clear(7);
//
// A wheel under a mutex, and a thread that sleeps until its next moment.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/timer_wheel.h"

namespace zeze {

// One moment of one timer.
struct Alarm {
  std::int64_t key = 0;     // Of one registration of a timer; local ones have keys of their own.
  std::int64_t serial = 0;  // Of a key only the latest counts.
  std::string timer_id = {};
  std::int64_t node_id = 0;
  std::string one_by_one_key = {};
  int attempts = 0;  // That failed for reasons that are not the timer's.
  Task local = {};   // If this is set, that is all of it.
  bool is_local = false;
};

// Thread-safe.
class AlarmClock {
 public:
  // Called on the thread of this object, with what is due, in order, some at a time. If it blocks,
  // the rest waits.
  using Due = std::function<void(std::vector<Alarm>&& due)>;

  struct Options {
    Clock* clock = &SystemClock();
    std::string name = "timer";
    // The wall clock was set back by a second or more. Called on the thread of this object.
    std::function<void()> on_set_back = nullptr;
  };

  AlarmClock(const Options& options, Due due);
  ~AlarmClock();  // Stops.
  AlarmClock(const AlarmClock&) = delete;
  AlarmClock& operator=(const AlarmClock&) = delete;

  // Replaces the one of the same key, unless that has a higher serial. A moment that has passed is
  // due at once.
  void Set(Alarm alarm, std::int64_t unix_ms);
  // The same after a while, whatever becomes of the wall clock.
  void SetIn(Alarm alarm, std::chrono::milliseconds delay);
  void SetAll(std::vector<std::pair<Alarm, std::int64_t>> alarms);
  // True if that kept it from being due.
  bool Clear(std::int64_t key, bool is_local = false);

  // Nothing is due any more when this has returned.
  void Stop();

  std::size_t size() const;
  std::int64_t UnixNow() const;

 private:
  struct Key {
    std::int64_t key;
    bool is_local;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::int64_t>()(key.key) * 2 + (key.is_local ? 1 : 0);
    }
  };
  struct Armed {
    Alarm alarm;
    std::optional<std::int64_t> unix_ms;  // None: the tick counts.
    std::uint64_t tick = 0;
  };
  using Wheel = TimerWheel<Key>;

  void SetLocked(Alarm alarm, std::optional<std::int64_t> unix_ms, std::uint64_t tick)
      ZEZE_REQUIRES(mutex_);
  bool IsDue(const Armed& armed) const;
  std::uint64_t TickNow() const;
  std::uint64_t TickOf(std::int64_t unix_ms) const ZEZE_REQUIRES(mutex_);
  void FollowWallClock() ZEZE_REQUIRES(mutex_);
  void Rebuild() ZEZE_REQUIRES(mutex_);
  void TakeDue(std::vector<Alarm>& due) ZEZE_REQUIRES(mutex_);
  bool TellSetBack();
  void Run();

  const Options options_;
  const Due due_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopped_ ZEZE_GUARDED_BY(mutex_) = false;
  std::int64_t unix_at_tick_0_ ZEZE_GUARDED_BY(mutex_) = 0;  // As of the last look.
  Wheel wheel_ ZEZE_GUARDED_BY(mutex_);
  // What counts of the wheel's entries is here.
  std::unordered_map<Key, Armed, KeyHash> armed_ ZEZE_GUARDED_BY(mutex_);
  std::deque<Key> overdue_ ZEZE_GUARDED_BY(mutex_);  // To be told, some at a time.
  bool set_back_ ZEZE_GUARDED_BY(mutex_) = false;
  std::uint64_t sleeps_until_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace zeze
