#include "zeze/components/timer/due_runner.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include "zeze/base/activity.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/task_one_by_one_by_key.h"
#include "zeze/base/thread_pool.h"
#include "zeze/components/timer/alarm_clock.h"

namespace zeze {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Long enough that one round trip for all of their records pays, short enough that others get their
// turn soon.
constexpr std::size_t kBatch = 128;
// The rest stays where it is, and may still be canceled. Not more: handing them over takes the core
// from others, too.
constexpr std::size_t kDueMax = 256;

// Waits of a batch that rested by which one knows that its handlers wait, too.
constexpr long kWaitsMin = 16;

// How long a handler that sleeps, or one that computes, may hold up the timers that wait for its
// place.
constexpr nanoseconds kSleepMax = milliseconds(5);
constexpr nanoseconds kComputeMax = milliseconds(50);

// What the calling thread has used.
struct Usage {
  nanoseconds cpu{0};
  long waits = 0;
  long interruptions = 0;  // Another thread got its core; a yield counts only then.

  static Usage Now() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto time = [](const timeval& value) {
      return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
    };
    return {.cpu = time(usage.ru_utime) + time(usage.ru_stime),
            .waits = usage.ru_nvcsw,
            .interruptions = usage.ru_nivcsw};
  }
};

// Gives the core to a thread that was woken on it meanwhile, so that this thread waits for one
// timer, not for a batch of them. A thread that computes all the time, of this process or another
// one, keeps the core for long: then no more is given away than a quarter of what is used. One
// object for each thread.
class Courtesy {
 public:
  // After a timer that began then.
  void Yield(const Clock& clock, nanoseconds begin) {
    const nanoseconds now = clock.Now();
    used_ += now - begin;
    if (4 * given_ > used_) return;
    std::this_thread::yield();
    given_ += clock.Now() - now;
    if (used_ < kMemory) return;
    used_ /= 2;
    given_ /= 2;
  }

 private:
  static constexpr nanoseconds kMemory = milliseconds(100);

  nanoseconds used_{0};
  nanoseconds given_{0};
};

// Rests so long after each slice of work that the work takes its share of the time. One object for
// each batch. Like Usage it is about the cores, whatever clock the timers have.
class Rests {
 public:
  explicit Rests(double share) : share_(share) {}

  long count() const { return count_; }
  nanoseconds sum() const { return sum_; }

  void TimerBegins() { begin_ = SystemClock().Now(); }
  void TimerEnded() {
    if (share_ >= 1) return;
    const nanoseconds now = SystemClock().Now();
    used_ += now - begin_;
    if (used_ < kSlice) return;
    const auto wanted = std::chrono::duration_cast<nanoseconds>(used_ * (1 / share_ - 1));
    WakeOnTime();
    SystemClock().SleepFor(std::min<nanoseconds>(wanted, kRestMax));
    sum_ += SystemClock().Now() - now;
    ++count_;
    used_ = nanoseconds(0);
  }

 private:
  // Without it the kernel lets a thread sleep for 50 us longer, several times of a slice.
  static void WakeOnTime() {
    thread_local const int done = prctl(PR_SET_TIMERSLACK, 1000UL);
    static_cast<void>(done);
  }

  static constexpr nanoseconds kSlice = std::chrono::microseconds(8);
  static constexpr nanoseconds kRestMax = milliseconds(1);

  const double share_;
  nanoseconds begin_{0};
  nanoseconds used_{0};
  nanoseconds sum_{0};
  long count_ = 0;
};

// Whether a thread of this process waits for something other than a core.
bool Sleeps(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  std::string line;
  if (!std::getline(file, line)) return true;
  const std::size_t name_end = line.rfind(')');  // The name before it may contain anything.
  return name_end == std::string::npos || name_end + 2 >= line.size() || line[name_end + 2] != 'R';
}

std::size_t Cores() {
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

DueRunner::DueRunner(const Options& options, ThreadPool& pool, TaskOneByOneByKey& lanes,
                     Callbacks callbacks)
    : options_(options),
      pool_(pool),
      lanes_(lanes),
      callbacks_(std::move(callbacks)),
      pace_(Cores(), options.running_max),
      looker_([this] { LookAfter(); }) {}

DueRunner::~DueRunner() {
  Stop();
}

void DueRunner::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    room_.NotifyAll();
    blocked_.NotifyAll();
  }
  if (looker_.joinable()) looker_.join();
}

std::size_t DueRunner::waiting() const {
  const MutexLock lock(mutex_);
  std::size_t sum = due_.size() + batched_;
  for (const auto& [key, alarms] : keyed_) sum += alarms.size();
  return sum;
}

std::size_t DueRunner::running() const {
  const MutexLock lock(mutex_);
  return places_.size() + aside_.size();
}

void DueRunner::Add(std::vector<Alarm>&& due) {
  const MutexLock lock(mutex_);
  for (Alarm& alarm : due) {
    if (alarm.one_by_one_key.empty()) {
      due_.push_back(std::move(alarm));
      continue;
    }
    const auto [at, added] = keyed_.try_emplace(alarm.one_by_one_key);
    at->second.push_back(std::move(alarm));
    if (added) ready_.push_back(at->first);
  }
  StartMore();
  while (due_.size() > kDueMax && !stopping_) room_.Wait(mutex_);
}

// Starts as many as may run now.
void DueRunner::StartMore() {
  while (!stopping_ && places_.size() < pace_.limit()) {
    // Both kinds take turns.
    const bool started =
        keyed_was_last_ ? StartBatch() || StartKeyed() : StartKeyed() || StartBatch();
    if (!started) break;
  }
  if (!looks_ && SomethingWaits()) blocked_.NotifyAll();
}

bool DueRunner::StartBatch() {
  if (due_.empty() || batches_ >= options_.running_max) return false;
  const auto place = places_.emplace(places_.end());
  while (place->batch.size() < kBatch && !due_.empty()) {
    place->batch.push_back(std::move(due_.front()));
    due_.pop_front();
    if (due_.size() == kDueMax / 2) room_.NotifyAll();
  }
  place->begin = options_.clock->Now();
  batched_ += place->batch.size();
  ++batches_;
  keyed_was_last_ = false;
  if (pool_.TryPost(Task("fire timers", [this, place] { RunBatch(place); })).ok()) return true;
  End(place);  // The application stops.
  return false;
}

bool DueRunner::StartKeyed() {
  if (ready_.empty()) return false;
  const auto place = places_.emplace(places_.end());
  place->key = std::move(ready_.front());
  ready_.pop_front();
  place->begin = options_.clock->Now();
  keyed_was_last_ = true;
  const Result<void> posted =
      lanes_.Post(place->key, Task("fire timer", [this, place] { RunKeyed(place); }));
  if (posted.ok()) return true;
  if (posted.error().code() != ErrorCode::kShuttingDown) {
    for (Alarm& alarm : keyed_[place->key]) callbacks_.put_off(std::move(alarm));
  }
  keyed_.erase(place->key);
  End(place);
  return false;
}

void DueRunner::End(Places::iterator place) {
  if (place->key.empty()) --batches_;
  batched_ -= place->batch.size();
  (place->set_aside ? aside_ : places_).erase(place);
}

void DueRunner::RunBatch(Places::iterator place) {
  thread_local Courtesy courtesy;
  const Usage before = Usage::Now();
  const nanoseconds begin = options_.clock->Now();
  double share = 1;
  {
    const MutexLock lock(mutex_);
    share = rest_.Share(begin);
    place->thread = gettid();
    place->fetching = place->batch.size() > 1;
  }
  if (place->fetching) callbacks_.fetch(place->batch);
  Alarm alarm;
  Rests rests(share);
  while (TakeNext(place, alarm)) {
    rests.TimerBegins();
    callbacks_.run(alarm);
    courtesy.Yield(*options_.clock, place->begin);
    rests.TimerEnded();
  }
  const Usage after = Usage::Now();
  const nanoseconds now = options_.clock->Now();
  const MutexLock lock(mutex_);
  if (!place->set_aside) {
    pace_.Note(after.cpu - before.cpu, now - begin - rests.sum(),
               after.waits - before.waits - rests.count() > (rests.count() > 0 ? kWaitsMin : 0));
  }
  End(place);
  rest_.Note(now, after.interruptions != before.interruptions, SomethingWaits());
  StartMore();
}

// False: the batch has ended.
bool DueRunner::TakeNext(Places::iterator place, Alarm& alarm) {
  const MutexLock lock(mutex_);
  place->fetching = false;
  if (stopping_ || place->batch.empty()) return false;
  if (place->set_aside) {  // It waited for its records only.
    place->set_aside = false;
    places_.splice(places_.end(), aside_, place);
  }
  alarm = std::move(place->batch.front());
  place->batch.pop_front();
  --batched_;
  place->begin = options_.clock->Now();
  return true;
}

void DueRunner::RunKeyed(Places::iterator place) {
  Alarm alarm;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    place->thread = gettid();
    if (!place->set_aside) place->begin = options_.clock->Now();
    alarm = std::move(keyed_[place->key].front());
  }
  callbacks_.run(alarm);
  const MutexLock lock(mutex_);
  LeaveKey(place->key);
  End(place);
  StartMore();
}

void DueRunner::LeaveKey(const std::string& key) {
  const auto at = keyed_.find(key);
  at->second.pop_front();
  if (at->second.empty()) {
    keyed_.erase(at);
  } else {
    ready_.push_back(key);
  }
}

bool DueRunner::SomethingWaits() const {
  return !due_.empty() || !ready_.empty() || batched_ > 0;
}

void DueRunner::LookAfter() {
  SetThreadName("timer-looker");
  const MutexLock lock(mutex_);
  while (!stopping_) {
    looks_ = SomethingWaits();
    if (!looks_) {
      blocked_.Wait(mutex_);
      continue;
    }
    const nanoseconds now = options_.clock->Now();
    for (auto at = places_.begin(); at != places_.end();) {
      const auto place = at++;
      if (now - place->begin >= kSleepMax) SetAside(place);
    }
    StartMore();
    options_.clock->WaitUntil(blocked_, mutex_, now + kSleepMax);
  }
}

void DueRunner::SetAside(Places::iterator place) {
  const bool sleeps = place->thread == 0 || Sleeps(place->thread);
  if (!sleeps && options_.clock->Now() - place->begin < kComputeMax) return;
  place->set_aside = true;
  aside_.splice(aside_.end(), places_, place);
  if (sleeps) pace_.Note({}, kSleepMax, true);
  if (place->fetching) return;  // It needs its batch.
  batched_ -= place->batch.size();
  due_.insert(due_.begin(), std::make_move_iterator(place->batch.begin()),
              std::make_move_iterator(place->batch.end()));
  place->batch.clear();
}

}  // namespace zeze
