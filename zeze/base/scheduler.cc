#include "zeze/base/scheduler.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "zeze/base/activity.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/usage_error.h"

namespace zeze {

using std::chrono::nanoseconds;
using SystemTime = std::chrono::system_clock::time_point;

namespace {

// How soon a daily task learns that the wall clock was set.
constexpr nanoseconds kWallClockCheck = std::chrono::minutes(1);

nanoseconds AddUpTo(nanoseconds moment, nanoseconds delay) {
  if (delay < nanoseconds::zero()) return moment;
  return delay > nanoseconds::max() - moment ? nanoseconds::max() : moment + delay;
}

// The next moment after `now` with this local time. Where a change to summer time leaves it out,
// the C library chooses a moment nearby.
SystemTime NextOccurrence(SystemTime now, Scheduler::TimeOfDay time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  for (int days = 0;; ++days) {
    std::tm candidate = local;
    candidate.tm_mday += days;
    candidate.tm_hour = time.hour;
    candidate.tm_min = time.minute;
    candidate.tm_sec = time.second;
    candidate.tm_isdst = -1;
    const SystemTime moment = std::chrono::system_clock::from_time_t(std::mktime(&candidate));
    if (moment > now) return moment;
  }
}

}  // namespace

// All but the constants is guarded by the mutex of the state.
struct ScheduledTask::Job {
  enum class Kind : std::uint8_t { kOnce, kPeriodic, kDaily };

  std::shared_ptr<Scheduler::State> state;
  Kind kind = Kind::kOnce;
  nanoseconds period{};
  Scheduler::TimeOfDay time_of_day;

  // Set while it is in the list of the state. A job is there, or posted, or running, or finished.
  nanoseconds due{};
  bool listed = false;
  SystemTime wall_due;
  bool canceled = false;
  bool finished = false;
  Task task;
};

struct Scheduler::State {
  using Job = ScheduledTask::Job;

  State(Executor& job_executor, Options job_options)
      : executor(job_executor), options(std::move(job_options)) {}

  std::shared_ptr<Job> Add(std::shared_ptr<State> self, std::shared_ptr<Job> job);
  void List(const std::shared_ptr<Job>& job) ZEZE_REQUIRES(mutex);
  void Unlist(Job& job) ZEZE_REQUIRES(mutex);
  std::vector<std::shared_ptr<Job>> TakeDue();
  std::size_t PostDue();
  void PlanNext(Job& job) const ZEZE_REQUIRES(mutex);
  bool Start(Job& job);
  void RunJob(const std::shared_ptr<Job>& job);
  bool Cancel(const std::shared_ptr<Job>& job);
  void RunThread();
  void Stop();

  Executor& executor;
  const Options options;
  std::thread thread;

  mutable Mutex mutex;
  CondVar changed;  // An earlier job was listed, a job stopped running, or stopping was set.
  std::multimap<nanoseconds, std::shared_ptr<Job>> jobs ZEZE_GUARDED_BY(mutex);  // By due.
  std::size_t running ZEZE_GUARDED_BY(mutex) = 0;
  bool stopping ZEZE_GUARDED_BY(mutex) = false;
};

std::shared_ptr<ScheduledTask::Job> Scheduler::State::Add(std::shared_ptr<State> self,
                                                          std::shared_ptr<Job> job) {
  ZEZE_REQUIRE(static_cast<bool>(job->task), options.name + " was given an empty task");
  job->state = std::move(self);
  bool discarded = false;
  {
    MutexLock lock(mutex);
    discarded = stopping;
    if (discarded) {
      job->finished = true;
    } else {
      List(job);
    }
  }
  if (discarded) {
    ZEZE_LOG_WARNING("{} is shut down, so \"{}\" was not scheduled", options.name,
                     job->task.name());
    if (options.on_discard) options.on_discard(job->task.name());
  }
  return job;
}

void Scheduler::State::List(const std::shared_ptr<Job>& job) {
  const auto at = jobs.emplace(job->due, job);
  job->listed = true;
  if (at == jobs.begin()) changed.NotifyAll();
}

void Scheduler::State::Unlist(Job& job) {
  if (!std::exchange(job.listed, false)) return;
  const auto [begin, end] = jobs.equal_range(job.due);
  const auto at =
      std::find_if(begin, end, [&job](const auto& entry) { return entry.second.get() == &job; });
  ZEZE_CHECK(at != end);
  jobs.erase(at);
}

std::vector<std::shared_ptr<ScheduledTask::Job>> Scheduler::State::TakeDue() {
  std::vector<std::shared_ptr<Job>> due;
  const nanoseconds now = options.clock->Now();
  MutexLock lock(mutex);
  while (!stopping && !jobs.empty() && jobs.begin()->first <= now) {
    std::shared_ptr<Job> job = jobs.begin()->second;
    jobs.erase(jobs.begin());
    job->listed = false;
    if (job->kind == Job::Kind::kDaily) {
      const SystemTime wall_now = options.clock->SystemNow();
      // The clock may have been set: back, so that it is not yet time, or so that an earlier
      // occurrence now lies ahead.
      job->wall_due = std::min(job->wall_due, NextOccurrence(wall_now, job->time_of_day));
      if (wall_now < job->wall_due) {
        job->due = AddUpTo(now, std::min<nanoseconds>(job->wall_due - wall_now, kWallClockCheck));
        List(job);
        continue;
      }
    }
    due.push_back(std::move(job));
  }
  return due;
}

std::size_t Scheduler::State::PostDue() {
  const std::vector<std::shared_ptr<Job>> due = TakeDue();
  for (const auto& job : due) {
    executor.Post(Task(job->task.name(), [job] { job->state->RunJob(job); }));
  }
  return due.size();
}

bool Scheduler::State::Start(Job& job) {
  bool discarded = false;
  {
    MutexLock lock(mutex);
    if (!job.canceled && !stopping) {
      if (job.kind == Job::Kind::kOnce) job.finished = true;
      ++running;
      return true;
    }
    job.finished = true;
    discarded = !job.canceled && job.kind == Job::Kind::kOnce;
  }
  if (discarded) {
    ZEZE_LOG_WARNING("{} was shut down before \"{}\" could run", options.name, job.task.name());
    if (options.on_discard) options.on_discard(job.task.name());
  }
  return false;
}

void Scheduler::State::RunJob(const std::shared_ptr<Job>& job) {
  if (!Start(*job)) return;
  const char* const name = job->task.name();
  try {
    const ScopedActivity activity(name);
    job->task();
  } catch (const std::exception& error) {
    ZEZE_LOG_ERROR("scheduled task \"{}\" threw: {}", name, error.what());
  } catch (...) {
    ZEZE_LOG_ERROR("scheduled task \"{}\" threw something that is not a std::exception", name);
  }
  Task done;  // Destroyed without the lock, but before Shutdown can return.
  {
    MutexLock lock(mutex);
    if (job->kind == Job::Kind::kOnce || job->canceled || stopping) {
      job->finished = true;
      done = std::move(job->task);
    } else {
      PlanNext(*job);
      List(job);
    }
  }
  done = Task();
  MutexLock lock(mutex);
  --running;
  changed.NotifyAll();
}

void Scheduler::State::PlanNext(Job& job) const {
  const nanoseconds now = options.clock->Now();
  if (job.kind == Job::Kind::kPeriodic) {
    const nanoseconds late = std::max(nanoseconds::zero(), now - job.due);
    job.due = AddUpTo(job.due, (late / job.period + 1) * job.period);
    return;
  }
  const SystemTime wall_now = options.clock->SystemNow();
  job.wall_due = NextOccurrence(wall_now, job.time_of_day);
  job.due = AddUpTo(now, std::min<nanoseconds>(job.wall_due - wall_now, kWallClockCheck));
}

bool Scheduler::State::Cancel(const std::shared_ptr<Job>& job) {
  Task canceled;  // Destroyed without the lock.
  MutexLock lock(mutex);
  const bool prevented = !job->finished && !job->canceled;
  job->canceled = true;
  if (job->listed) {
    Unlist(*job);
    job->finished = true;
    canceled = std::move(job->task);
  }
  return prevented;
}

void Scheduler::State::RunThread() {
  SetThreadName(options.name);
  while (true) {
    {
      MutexLock lock(mutex);
      while (!stopping && (jobs.empty() || jobs.begin()->first > options.clock->Now())) {
        const nanoseconds next = jobs.empty() ? nanoseconds::max() : jobs.begin()->first;
        options.clock->WaitUntil(changed, mutex, next);
      }
      if (stopping) return;
    }
    PostDue();
  }
}

void Scheduler::State::Stop() {
  std::multimap<nanoseconds, std::shared_ptr<Job>> dropped;
  {
    MutexLock lock(mutex);
    stopping = true;
    dropped.swap(jobs);
    for (const auto& [due, job] : dropped) {
      job->listed = false;
      job->finished = true;
    }
    changed.NotifyAll();
    while (running > 0) changed.Wait(mutex);
  }
  if (thread.joinable()) thread.join();
  std::size_t once = 0;
  for (const auto& [due, job] : dropped) {
    if (job->kind == Job::Kind::kOnce) {
      ++once;
      if (options.on_discard) options.on_discard(job->task.name());
    }
    job->task = Task();
  }
  if (once > 0) {
    ZEZE_LOG_WARNING("{} was shut down before {} scheduled tasks were due", options.name, once);
  }
}

bool ScheduledTask::Cancel() {
  return job_ != nullptr && job_->state->Cancel(job_);
}

bool ScheduledTask::IsPending() const {
  if (job_ == nullptr) return false;
  MutexLock lock(job_->state->mutex);
  return !job_->finished && !job_->canceled;
}

Scheduler::Scheduler(Executor& executor, Options options)
    : state_(std::make_shared<State>(executor, std::move(options))) {
  if (state_->options.start_thread) {
    state_->thread = std::thread([state = state_.get()] { state->RunThread(); });
  }
}

Scheduler::~Scheduler() {
  Shutdown();
}

ScheduledTask Scheduler::After(nanoseconds delay, Task task) {
  auto job = std::make_shared<ScheduledTask::Job>();
  job->due = AddUpTo(state_->options.clock->Now(), delay);
  job->task = std::move(task);
  return ScheduledTask(state_->Add(state_, std::move(job)));
}

ScheduledTask Scheduler::Every(nanoseconds period, Task task) {
  return Every(period, period, std::move(task));
}

ScheduledTask Scheduler::Every(nanoseconds first_delay, nanoseconds period, Task task) {
  ZEZE_REQUIRE(period > nanoseconds::zero(), "the period of a task must be longer than zero");
  auto job = std::make_shared<ScheduledTask::Job>();
  job->kind = ScheduledTask::Job::Kind::kPeriodic;
  job->period = period;
  job->due = AddUpTo(state_->options.clock->Now(), first_delay);
  job->task = std::move(task);
  return ScheduledTask(state_->Add(state_, std::move(job)));
}

ScheduledTask Scheduler::Daily(TimeOfDay time, Task task) {
  const bool valid = time.hour >= 0 && time.hour < 24 && time.minute >= 0 && time.minute < 60 &&
                     time.second >= 0 && time.second < 60;
  ZEZE_REQUIRE(valid, "the time of a daily task is not a time of day");
  auto job = std::make_shared<ScheduledTask::Job>();
  job->kind = ScheduledTask::Job::Kind::kDaily;
  job->time_of_day = time;
  job->task = std::move(task);
  {
    MutexLock lock(state_->mutex);
    state_->PlanNext(*job);
  }
  return ScheduledTask(state_->Add(state_, std::move(job)));
}

void Scheduler::Shutdown() {
  state_->Stop();
}

std::size_t Scheduler::RunDue() {
  return state_->PostDue();
}

std::size_t Scheduler::PendingCount() const {
  MutexLock lock(state_->mutex);
  return state_->jobs.size();
}

}  // namespace zeze
