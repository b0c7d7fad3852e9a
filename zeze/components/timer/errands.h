// Errands: work that must be done some time, tried again until it is; one after the other on a
// thread of its own.
//
//   Errands errands({.name = "timer ring", .clock = &clock});
//   errands.Add([&] { return LoadNode(id); });       // False: not now, later again.
//   errands.AddUnhurried([&] { return Unlink(id); });

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "zeze/base/activity.h"
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

  // For what nobody waits for: one after the other, with rests that leave the core to others. When
  // thousands come together, whoever shares the core hardly notices.
  void AddUnhurried(Attempt attempt) {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    if (unhurried_.empty()) changed_.NotifyAll();  // Otherwise the thread rests, or is at work.
    unhurried_.push_back({.attempt = std::move(attempt), .due = clock_.Now()});
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
    unhurried_.clear();
  }

  bool stopped() const {
    const MutexLock lock(mutex_);
    return stopped_;
  }

  // False: patience ended before everything was done.
  bool AwaitIdle(std::chrono::nanoseconds patience) {
    const auto until = clock_.Now() + patience;
    const MutexLock lock(mutex_);
    while (!pending_.empty() || !unhurried_.empty()) {
      if (!clock_.WaitUntil(changed_, mutex_, until)) return pending_.empty() && unhurried_.empty();
    }
    return true;
  }

 private:
  static constexpr auto kNever = std::chrono::nanoseconds::max();
  static constexpr std::chrono::nanoseconds kDelayMin = std::chrono::milliseconds(50);
  static constexpr std::chrono::nanoseconds kDelayMax = std::chrono::seconds(1);
  // A rest is so many times as long as the attempt before it, but not longer than kRestMax.
  // With more errands than kUnhurriedMax it is as long: their number has a bound.
  static constexpr int kRest = 50;
  static constexpr std::size_t kUnhurriedMax = 4096;
  static constexpr std::chrono::nanoseconds kRestMax = std::chrono::milliseconds(20);

  struct Errand {
    Attempt attempt;
    std::chrono::nanoseconds due;
    std::chrono::nanoseconds delay = kDelayMin;
  };

  void Run() {
    SetThreadName("timer-errands");
    const MutexLock lock(mutex_);
    while (!stopped_) {
      const auto now = clock_.Now();
      const auto next = std::min_element(pending_.begin(), pending_.end(), EarlierDue);
      if (next != pending_.end() && next->due <= now) {
        RunAttempt(pending_, next);
        continue;
      }
      const auto idle = unhurried_.begin();
      const auto idle_due = idle == unhurried_.end() ? kNever : std::max(idle->due, rest_until_);
      if (idle_due <= now) {
        RunAttempt(unhurried_, idle);
        const auto end = clock_.Now();
        const int rest = unhurried_.size() < kUnhurriedMax ? kRest : 1;
        rest_until_ = end + std::min(rest * (end - now), kRestMax);
        continue;
      }
      const auto until = std::min(idle_due, next == pending_.end() ? kNever : next->due);
      if (until == kNever) {
        changed_.Wait(mutex_);
      } else {
        clock_.WaitUntil(changed_, mutex_, until);
      }
    }
  }

  void RunAttempt(std::list<Errand>& list, std::list<Errand>::iterator next) ZEZE_REQUIRES(mutex_) {
    mutex_.Unlock();
    const bool done = next->attempt();
    mutex_.Lock();
    if (done) {
      list.erase(next);
    } else {
      next->due = clock_.Now() + next->delay;
      next->delay = std::min(2 * next->delay, kDelayMax);
      list.splice(list.end(), list, next);  // The others need not wait for it.
    }
    changed_.NotifyAll();
  }

  static bool EarlierDue(const Errand& a, const Errand& b) { return a.due < b.due; }

  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopped_ ZEZE_GUARDED_BY(mutex_) = false;
  // Lists: addresses stay while one of them runs.
  std::list<Errand> pending_ ZEZE_GUARDED_BY(mutex_);
  std::list<Errand> unhurried_ ZEZE_GUARDED_BY(mutex_);
  std::chrono::nanoseconds rest_until_ ZEZE_GUARDED_BY(mutex_){0};
  std::thread thread_;
};

}  // namespace zeze
