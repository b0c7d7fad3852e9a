// DueRunner: runs timers that are due, a bounded number at a time. A handler that waits costs only
// its own place: no other timer waits for it, unless both have the same key.
//
//   DueRunner runner({.running_max = 128}, pool, lanes, {.run = [](Alarm& alarm) { ... }});
//   runner.Add(std::move(due));        // Blocks while very many wait.
//   runner.Stop();
//
// Timers without a key run on the threads of the pool, in batches. Timers with a key stand in the
// lane of their key, one of each key at a time; one that stands there has no thread.
//
// So many places are in use as keep half of the cores busy (FirePace). A thread of its own looks
// after them: a place whose handler sleeps, or computes for long, is set aside. It does not count
// any more, the rest of its batch runs elsewhere, and the next timer gets a place. While other
// threads want the same cores, timers rest between short slices of work (FireRest).

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/task_one_by_one_by_key.h"
#include "zeze/base/thread_pool.h"
#include "zeze/components/timer/alarm_clock.h"
#include "zeze/components/timer/fire_pace.h"
#include "zeze/components/timer/fire_rest.h"

namespace zeze {

// Thread-safe.
class DueRunner {
 public:
  struct Options {
    std::size_t running_max = 128;  // Threads of the pool that may be in use.
    Clock* clock = &SystemClock();
  };
  struct Callbacks {
    std::function<void(Alarm& alarm)> run;  // Must not throw.
    // Before a batch runs: everything that it needs, in one go.
    std::function<void(const std::deque<Alarm>& batch)> fetch;
    // The lane of its key is full.
    std::function<void(Alarm alarm)> put_off;
  };

  // The pool has running_max threads, all of them eager. Pool and lanes outlive this object's Stop
  // or have been shut down before.
  DueRunner(const Options& options, ThreadPool& pool, TaskOneByOneByKey& lanes,
            Callbacks callbacks);
  ~DueRunner();  // Stops.
  DueRunner(const DueRunner&) = delete;
  DueRunner& operator=(const DueRunner&) = delete;

  // Blocks while more than a thousand timers without a key wait.
  void Add(std::vector<Alarm>&& due);

  // Nothing is started any more. Does not wait for what runs: that is up to the pool and the lanes.
  void Stop();

  std::size_t waiting() const;
  std::size_t running() const;  // Batches and turns of keys.

 private:
  // A batch that runs, or the timer whose turn it is in the lane of its key.
  struct Place {
    std::deque<Alarm> batch;            // What has not begun.
    std::string key;                    // Of a lane.
    std::chrono::nanoseconds begin{0};  // Of the timer that runs; before the first, of the place.
    pid_t thread = 0;                   // 0: none yet.
    bool set_aside = false;
    bool fetching = false;
  };
  using Places = std::list<Place>;

  void StartMore() ZEZE_REQUIRES(mutex_);
  bool StartBatch() ZEZE_REQUIRES(mutex_);
  bool StartKeyed() ZEZE_REQUIRES(mutex_);
  void RunBatch(Places::iterator place);
  bool TakeNext(Places::iterator place, Alarm& alarm);
  void RunKeyed(Places::iterator place);
  void End(Places::iterator place) ZEZE_REQUIRES(mutex_);
  void LeaveKey(const std::string& key) ZEZE_REQUIRES(mutex_);
  void LookAfter();
  void SetAside(Places::iterator place) ZEZE_REQUIRES(mutex_);
  bool SomethingWaits() const ZEZE_REQUIRES(mutex_);

  const Options options_;
  ThreadPool& pool_;
  TaskOneByOneByKey& lanes_;
  const Callbacks callbacks_;

  mutable Mutex mutex_;
  CondVar room_;     // In due_.
  CondVar blocked_;  // Something waits, and no place is free.
  bool looks_ ZEZE_GUARDED_BY(mutex_) = false;
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;
  std::deque<Alarm> due_ ZEZE_GUARDED_BY(mutex_);  // Without a key.
  // With a key: no more than are armed. The first of a key that is not ready has a place.
  std::unordered_map<std::string, std::deque<Alarm>> keyed_ ZEZE_GUARDED_BY(mutex_);
  std::deque<std::string> ready_ ZEZE_GUARDED_BY(mutex_);
  bool keyed_was_last_ ZEZE_GUARDED_BY(mutex_) = false;
  Places places_ ZEZE_GUARDED_BY(mutex_);
  Places aside_ ZEZE_GUARDED_BY(mutex_);             // Those that do not count.
  std::size_t batches_ ZEZE_GUARDED_BY(mutex_) = 0;  // Places of both lists that have a thread.
  std::size_t batched_ ZEZE_GUARDED_BY(mutex_) = 0;  // Timers in their batches.
  FirePace pace_ ZEZE_GUARDED_BY(mutex_);
  FireRest rest_ ZEZE_GUARDED_BY(mutex_);
  std::thread looker_;
};

}  // namespace zeze
