// Errands: work that must be done some time, tried again until it is; one after the other on a
// thread of its own.
//
//   Errands errands({.name = "timer ring", .clock = &clock});
//   errands.Add([&] { return LoadNode(id); });       // False: not now, later again.

#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"

namespace zeze {

// Thread-safe.
class Errands {
 public:
  using Attempt = std::function<bool()>;

  explicit Errands(Clock& clock) : clock_(clock), thread_([this] { Run(); }) {}
  ~Errands() { Stop(); }
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  void Add(Attempt attempt) {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    pending_.push_back({.attempt = std::move(attempt), .due = clock_.Now()});
    changed_.NotifyAll();
  }

  // Waits for the attempt that runs; what is not done then never is. Not from attempts.
  void Stop() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
    const MutexLock lock(mutex_);
    pending_.clear();
  }

  bool stopped() const {
    const MutexLock lock(mutex_);
    return stopped_;
  }

  // False: patience ended before everything was done.
  bool AwaitIdle(std::chrono::nanoseconds patience) {
    const auto until = clock_.Now() + patience;
    const MutexLock lock(mutex_);
    while (!pending_.empty()) {
      if (!clock_.WaitUntil(changed_, mutex_, until)) return pending_.empty();
    }
    return true;
  }

 private:
  static constexpr std::chrono::nanoseconds kDelayMin = std::chrono::milliseconds(50);
  static constexpr std::chrono::nanoseconds kDelayMax = std::chrono::seconds(1);

  struct Errand {
    Attempt attempt;
    std::chrono::nanoseconds due;
    std::chrono::nanoseconds delay = kDelayMin;
  };

  void Run() {
    const MutexLock lock(mutex_);
    while (!stopped_) {
      const auto next = std::min_element(pending_.begin(), pending_.end(), EarlierDue);
      const auto now = clock_.Now();
      if (next == pending_.end()) {
        changed_.Wait(mutex_);
      } else if (next->due > now) {
        clock_.WaitUntil(changed_, mutex_, next->due);
      } else {
        mutex_.Unlock();
        const bool done = next->attempt();
        mutex_.Lock();
        if (done) {
          pending_.erase(next);
        } else {
          next->due = clock_.Now() + next->delay;
          next->delay = std::min(2 * next->delay, kDelayMax);
        }
        changed_.NotifyAll();
      }
    }
  }

  static bool EarlierDue(const Errand& a, const Errand& b) { return a.due < b.due; }

  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopped_ ZEZE_GUARDED_BY(mutex_) = false;
  std::list<Errand> pending_ ZEZE_GUARDED_BY(mutex_);  // Addresses stay while one of them runs.
  std::thread thread_;
};

}  // namespace zeze
