#include "zeze/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/activity.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/internal/task_queue.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"

namespace zeze {

namespace {

// How often a thread without work looks again before it goes to sleep: about as long as waking it
// would take.
constexpr int kSpins = 100;

constexpr std::size_t kRingCapacityMin = 2;
constexpr std::size_t kRingCapacityMax = 1024;

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::size_t CoreCount() {
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace

// How threads sleep and wake:
//   - searching_ counts threads that have no task and look for one. Who posts while there is a
//     searcher need not wake anybody: the searcher will find the task, or look once more after it
//     has announced that it sleeps.
//   - The last searcher that finds a task wakes another thread if more tasks wait.
//   - If eager_thread_count threads are awake, no more are woken at once. Instead one sleeping
//     thread becomes the sentinel: it looks every wake_delay, and joins in when a task has waited
//     from one look to the next.
// So a task is never left while a thread sleeps longer than two wake_delay.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what is written often stands apart.
class ThreadPool::Impl {
 public:
  explicit Impl(Options options);
  ~Impl();

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> TryPost(Task&& task);
  void Post(Task&& task);
  Result<void> Shutdown(Pending pending, std::chrono::nanoseconds patience);
  Statistics GetStatistics() const;
  const std::string& name() const { return options_.name; }
  bool OnOwnThread() const { return current_pool == this; }

 private:
  enum class State : std::uint8_t { kOpen, kClosing, kStopped };

  struct Worker {
    std::size_t index = 0;
    CondVar wake_up;
    bool woken = false;  // Guarded by idle_mutex_, as is every other use of wake_up.
    std::thread thread;
  };

  // Of a pool that cannot have all its threads. Returns how many there were.
  std::size_t EndStartedThreads();
  void Run(Worker& worker);
  bool Search(Task& task, bool counted);
  void CheckTask(const Task& task) const {
    ZEZE_REQUIRE(static_cast<bool>(task),
                 fmt::format("an empty task was posted to thread pool {}", options_.name));
  }
  void RunTask(Task& task);

  // Sleeps until woken; false if the thread shall end. Woken threads are counted as searching.
  bool Sleep(Worker& worker);
  void WaitAsleep(Worker& worker) ZEZE_REQUIRES(idle_mutex_);
  void LookAsSentinel(Worker& worker) ZEZE_REQUIRES(idle_mutex_);

  void WakeIfNeeded();
  // The caller notifies the worker.
  void Wake(std::size_t idle_index) ZEZE_REQUIRES(idle_mutex_);
  void Leave(std::size_t idle_index) ZEZE_REQUIRES(idle_mutex_);

  bool Finished() const ZEZE_REQUIRES(idle_mutex_) {
    return idle_.size() == workers_.size() && queue_.Empty();
  }
  std::string DescribeRunning() const;
  void Discard(Task task);
  void DiscardQueued();

  static thread_local const Impl* current_pool;

  const Options options_;
  const std::size_t eager_thread_count_;
  internal::TaskQueue queue_;
  std::vector<std::unique_ptr<Worker>> workers_;  // Constant after construction.

  std::atomic<State> state_ = State::kOpen;
  std::atomic<bool> discarding_ = false;
  std::atomic<std::uint64_t> rejected_ = 0;
  std::atomic<std::uint64_t> discarded_ = 0;

  alignas(64) std::atomic<std::size_t> searching_ = 0;
  std::atomic<std::size_t> idle_count_ = 0;  // Always idle_.size(), to be read without the mutex.
  std::atomic<bool> has_sentinel_ = false;   // Always sentinel_ != nullptr.

  mutable Mutex idle_mutex_;
  CondVar all_idle_;
  std::vector<Worker*> idle_ ZEZE_GUARDED_BY(idle_mutex_);  // The last to sleep wakes first.
  Worker* sentinel_ ZEZE_GUARDED_BY(idle_mutex_) = nullptr;
  std::uint64_t sentinel_saw_posted_ ZEZE_GUARDED_BY(idle_mutex_) = 0;

  Mutex join_mutex_;  // Held while threads are joined.
};

thread_local const ThreadPool::Impl* ThreadPool::Impl::current_pool = nullptr;

ThreadPool::Impl::Impl(Options options)
    : options_(std::move(options)),
      eager_thread_count_(options_.eager_thread_count > 0 ? options_.eager_thread_count
                                                          : CoreCount()),
      queue_(std::clamp(std::bit_ceil(options_.queue_length_max), kRingCapacityMin,
                        kRingCapacityMax)) {
  ZEZE_REQUIRE(options_.queue_length_max > 0,
               fmt::format("thread pool {}: queue_length_max is 0, so it would accept no task: set "
                           "at least 1",
                           options_.name));
  ZEZE_REQUIRE(options_.wake_delay > std::chrono::nanoseconds::zero(),
               fmt::format("thread pool {}: wake_delay is {} ns: it must be greater than zero",
                           options_.name, options_.wake_delay.count()));
  const std::size_t count = options_.thread_count > 0 ? options_.thread_count : CoreCount();
  for (std::size_t i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->index = i;
  }
  try {
    for (const auto& worker : workers_) {
      worker->thread = std::thread([this, &worker = *worker] { Run(worker); });
    }
  } catch (const std::system_error& error) {
    const std::size_t started = EndStartedThreads();
    throw std::system_error(error.code(),
                            fmt::format("only {} of {} threads of thread pool {} could be started",
                                        started, count, options_.name));
  }
}

std::size_t ThreadPool::Impl::EndStartedThreads() {
  {
    MutexLock lock(idle_mutex_);
    state_.store(State::kStopped);
    for (const auto& worker : workers_) worker->wake_up.NotifyAll();
  }
  std::size_t started = 0;
  for (const auto& worker : workers_) {
    if (!worker->thread.joinable()) continue;
    worker->thread.join();
    ++started;
  }
  return started;
}

ThreadPool::Impl::~Impl() {
  while (true) {
    const Result<void> stopped = Shutdown(Pending::kDiscard, std::chrono::seconds(10));
    if (stopped.ok()) return;
    ZEZE_LOG_WARNING("{}", stopped.error().message());
  }
}

Result<void> ThreadPool::Impl::TryPost(Task&& task) {
  CheckTask(task);
  if (state_.load(std::memory_order_relaxed) != State::kOpen &&
      (!OnOwnThread() || discarding_.load())) {
    return Error(ErrorCode::kShuttingDown,
                 fmt::format("thread pool {} is shut down, so \"{}\" was not accepted",
                             options_.name, task.name()));
  }
  // Exact sizes only for small limits: they cost a cache line that the workers write.
  const std::size_t size = options_.queue_length_max <= queue_.ring_capacity()
                               ? queue_.SizeApprox()
                               : queue_.OverflowSizeApprox() + queue_.ring_capacity();
  const bool small_or_overflowing =
      options_.queue_length_max <= queue_.ring_capacity() || queue_.OverflowSizeApprox() > 0;
  if (small_or_overflowing && size >= options_.queue_length_max) {
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return Error(ErrorCode::kOverloaded,
                 fmt::format("thread pool {} has {} tasks waiting, so \"{}\" was not accepted; try "
                             "again later",
                             options_.name, size, task.name()));
  }
  Post(std::move(task));
  return {};
}

void ThreadPool::Impl::Post(Task&& task) {
  CheckTask(task);
  if (state_.load(std::memory_order_relaxed) != State::kOpen &&
      (!OnOwnThread() || discarding_.load())) {
    Discard(std::move(task));
    return;
  }
  queue_.Push(std::move(task));
  WakeIfNeeded();
  // Shutdown began, and may have ended, after the test above: then nobody else would see the task.
  if (state_.load() == State::kStopped) DiscardQueued();
}

void ThreadPool::Impl::WakeIfNeeded() {
  if (searching_.load() > 0) return;
  const std::size_t idle = idle_count_.load();
  if (idle == 0) return;
  if (workers_.size() - idle >= eager_thread_count_ && has_sentinel_.load()) return;

  Worker* notified = nullptr;
  {
    MutexLock lock(idle_mutex_);
    if (idle_.empty() || searching_.load() > 0) return;
    // The threads have ended, or will: one that was counted as awake again would be waited for for
    // ever. What was posted too late is discarded by Post.
    if (state_.load() == State::kStopped) return;
    if (workers_.size() - idle_.size() < eager_thread_count_) {
      notified = idle_.back();
      Wake(idle_.size() - 1);
    } else if (sentinel_ == nullptr) {
      notified = sentinel_ = idle_.back();
      has_sentinel_.store(true);
      sentinel_saw_posted_ = queue_.posted();
    }
  }
  // Without the mutex, which the woken thread needs first.
  if (notified != nullptr) notified->wake_up.NotifyOne();
}

void ThreadPool::Impl::Wake(std::size_t idle_index) {
  Worker& worker = *idle_[idle_index];
  Leave(idle_index);
  searching_.fetch_add(1);
  worker.woken = true;
}

void ThreadPool::Impl::Leave(std::size_t idle_index) {
  if (idle_[idle_index] == sentinel_) {
    sentinel_ = nullptr;
    has_sentinel_.store(false);
  }
  idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(idle_index));
  idle_count_.store(idle_.size());
}

void ThreadPool::Impl::Run(Worker& worker) {
  SetThreadName(fmt::format("{}-{}", options_.name, worker.index + 1));
  current_pool = this;
  Task task;
  bool counted_as_searching = false;
  while (true) {
    if ((!counted_as_searching && queue_.Pop(task)) || Search(task, counted_as_searching)) {
      counted_as_searching = false;
      RunTask(task);
      continue;
    }
    if (!Sleep(worker)) return;
    counted_as_searching = true;
  }
}

// Leaves the thread uncounted if it found a task, and counted if not: Sleep goes on from there.
bool ThreadPool::Impl::Search(Task& task, bool counted) {
  if (!counted) searching_.fetch_add(1);
  for (int i = 0; i < kSpins; ++i) {
    if (queue_.Pop(task)) {
      if (searching_.fetch_sub(1) == 1 && !queue_.Empty()) WakeIfNeeded();
      return true;
    }
    Relax();
  }
  return false;
}

bool ThreadPool::Impl::Sleep(Worker& worker) {
  MutexLock lock(idle_mutex_);
  worker.woken = false;
  idle_.push_back(&worker);
  idle_count_.store(idle_.size());
  searching_.fetch_sub(1);
  // Announced first, then looked once more: see TaskQueue::Empty.
  if (!queue_.Empty()) {
    Leave(idle_.size() - 1);
    searching_.fetch_add(1);
    return true;
  }
  if (Finished()) all_idle_.NotifyAll();
  WaitAsleep(worker);
  return worker.woken;
}

void ThreadPool::Impl::WaitAsleep(Worker& worker) {
  while (!worker.woken && state_.load() != State::kStopped) {
    if (sentinel_ != &worker) {
      worker.wake_up.Wait(idle_mutex_);
    } else if (!worker.wake_up.WaitFor(idle_mutex_, options_.wake_delay) && sentinel_ == &worker) {
      LookAsSentinel(worker);
    }
  }
}

void ThreadPool::Impl::LookAsSentinel(Worker& worker) {
  if (!queue_.Empty() && queue_.taken() < sentinel_saw_posted_) {
    const auto self = std::find(idle_.begin(), idle_.end(), &worker);
    Wake(static_cast<std::size_t>(self - idle_.begin()));
    return;
  }
  sentinel_saw_posted_ = queue_.posted();
  if (!queue_.Empty()) return;
  // Retires, then looks once more, as in Sleep.
  sentinel_ = nullptr;
  has_sentinel_.store(false);
  if (queue_.Empty()) return;
  sentinel_ = &worker;
  has_sentinel_.store(true);
}

void ThreadPool::Impl::RunTask(Task& task) {
  const char* const name = task.name();
  const ScopedActivity activity(name);
  try {
    task();
  } catch (const std::exception& error) {
    if (options_.on_task_error) {
      options_.on_task_error(name, std::current_exception());
    } else {
      ZEZE_LOG_ERROR("task \"{}\" of thread pool {} threw: {}", name, options_.name, error.what());
    }
  } catch (...) {
    if (options_.on_task_error) {
      options_.on_task_error(name, std::current_exception());
    } else {
      ZEZE_LOG_ERROR("task \"{}\" of thread pool {} threw something that is not a std::exception",
                     name, options_.name);
    }
  }
  task = Task();  // What it captured is gone before anybody can learn that it is done.
}

void ThreadPool::Impl::Discard(Task task) {
  discarded_.fetch_add(1, std::memory_order_relaxed);
  if (options_.on_discard) options_.on_discard(task.name());
  ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1),
                         "thread pool {} is shut down and discarded \"{}\" without running it",
                         options_.name, task.name());
}

void ThreadPool::Impl::DiscardQueued() {
  std::size_t count = 0;
  Task task;
  for (; queue_.Pop(task); ++count) Discard(std::move(task));
  if (count > 1) {
    ZEZE_LOG_WARNING("thread pool {} discarded {} waiting tasks without running them",
                     options_.name, count);
  }
}

std::string ThreadPool::Impl::DescribeRunning() const {
  std::string text;
  for (const Activity& activity : RunningActivities()) {
    if (!activity.thread_name.starts_with(options_.name + "-")) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("\"{}\" on thread {} (id {})", activity.inner, activity.thread_name,
                        activity.thread_id);
  }
  return text.empty() ? "nothing that has a name" : text;
}

Result<void> ThreadPool::Impl::Shutdown(Pending pending, std::chrono::nanoseconds patience) {
  ZEZE_CHECK(!OnOwnThread());
  if (pending == Pending::kDiscard) discarding_.store(true);
  State open = State::kOpen;
  state_.compare_exchange_strong(open, State::kClosing);
  if (pending == Pending::kDiscard) DiscardQueued();

  const std::chrono::nanoseconds now = SystemClock().Now();
  const std::chrono::nanoseconds deadline = patience > std::chrono::nanoseconds::max() - now
                                                ? std::chrono::nanoseconds::max()
                                                : now + patience;
  {
    MutexLock lock(idle_mutex_);
    while (!Finished()) {
      if (SystemClock().WaitUntil(all_idle_, idle_mutex_, deadline) || Finished()) continue;
      return Error(ErrorCode::kUnavailable,
                   fmt::format("thread pool {} did not stop in time; still running: {}; {} waiting",
                               options_.name, DescribeRunning(), queue_.SizeApprox()));
    }
    state_.store(State::kStopped);
    for (const auto& worker : workers_) worker->wake_up.NotifyAll();
  }
  {
    MutexLock lock(join_mutex_);
    for (const auto& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
  }
  DiscardQueued();
  return {};
}

ThreadPool::Statistics ThreadPool::Impl::GetStatistics() const {
  return {.threads = workers_.size(),
          .busy_threads = workers_.size() - idle_count_.load(),
          .queued_tasks = queue_.SizeApprox(),
          .rejected_tasks = rejected_.load(),
          .discarded_tasks = discarded_.load()};
}

ThreadPool::ThreadPool(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}

ThreadPool::~ThreadPool() = default;

Result<void> ThreadPool::TryPost(Task task) {
  return impl_->TryPost(std::move(task));
}

void ThreadPool::Post(Task task) {
  impl_->Post(std::move(task));
}

bool ThreadPool::OnOwnThread() const {
  return impl_->OnOwnThread();
}

void ThreadPool::Shutdown(Pending pending) {
  const Result<void> stopped = impl_->Shutdown(pending, std::chrono::nanoseconds::max());
  ZEZE_CHECK(stopped.ok());
}

Result<void> ThreadPool::ShutdownWithin(std::chrono::nanoseconds patience, Pending pending) {
  return impl_->Shutdown(pending, patience);
}

ThreadPool::Statistics ThreadPool::GetStatistics() const {
  return impl_->GetStatistics();
}

const std::string& ThreadPool::name() const {
  return impl_->name();
}

}  // namespace zeze
