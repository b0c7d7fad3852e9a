// ThreadPool: runs tasks on a fixed number of threads.
//
//   ThreadPool pool({.name = "worker", .thread_count = 8});
//   const Result<void> posted = pool.TryPost(Task("save player", [=] { Save(player); }));
//   if (!posted.ok()) return posted.error();   // Overloaded, or shutting down.
//   ...
//   pool.Shutdown(ThreadPool::Pending::kRun);
//
// An application has two: the worker pool for the work of players, and the critical pool for the
// short work that others wait for and that must go on when all workers are blocked.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"

namespace zeze {

// Guarantees:
//   - Every accepted task is run once, or reported as discarded (on_discard and a log line).
//   - A task that throws is reported and does no harm to the others.
//   - A task may post, and may block: others go on as long as a thread is left.
//
// Tasks are started in about the order in which they were posted. Few threads run at first, because
// waking one costs more than most tasks: see Options::eager_thread_count.
class ThreadPool final : public Executor {
 public:
  // What Shutdown does with tasks that have not started.
  enum class Pending { kRun, kDiscard };

  struct Options {
    std::string name = "pool";  // Threads are called name-1, name-2 ...

    std::size_t thread_count = 0;  // 0: as many as the machine has cores.

    // TryPost fails with kOverloaded when about so many tasks wait.
    std::size_t queue_length_max = 1 << 20;

    // So many threads are woken as soon as there is work for them (0: one for each core). Further
    // ones only when a task has waited for wake_delay, that is, when the others seem to be blocked.
    std::size_t eager_thread_count = 0;
    std::chrono::nanoseconds wake_delay = std::chrono::milliseconds(1);

    // Called with what a task threw, on its thread. Must not throw. Empty: a log line.
    std::function<void(const char* task_name, const std::exception_ptr& error)> on_task_error =
        nullptr;

    // Called for each task that is discarded instead of run, before it is destroyed. Must neither
    // throw nor post. The log says how many there were, whether this is set or not.
    std::function<void(const char* task_name)> on_discard = nullptr;
  };

  struct Statistics {
    std::size_t threads = 0;
    std::size_t busy_threads = 0;  // Running a task or looking for one.
    std::size_t queued_tasks = 0;
    std::uint64_t rejected_tasks = 0;  // By TryPost, since the start.
    std::uint64_t discarded_tasks = 0;
  };

  // Throws UsageError for an option that no pool can have, std::system_error if the machine does
  // not give so many threads: the message says how many, and none is left.
  explicit ThreadPool(Options options);

  // Calls Shutdown(Pending::kDiscard) and waits for running tasks as long as it takes, with a log
  // line that names them every ten seconds.
  ~ThreadPool() override;

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // For new work from outside, which can be refused: fails with kOverloaded when the queue is full,
  // with kShuttingDown after Shutdown began. The task is then destroyed and never runs. Both ways
  // to post throw UsageError for an empty task.
  Result<void> TryPost(Task task);

  // For the next step of work already accepted: not limited by queue_length_max. Once Shutdown has
  // begun only tasks of this pool may still post (and with kDiscard not even they); what others
  // post is reported as discarded.
  void Post(Task task) override;

  // Accepts nothing more from outside, then blocks until every task has run or been discarded and
  // the threads have ended. May be called again. Must not be called from a task of this pool.
  void Shutdown(Pending pending);

  // The same, but fails with kUnavailable, naming the tasks that still run, if that takes longer
  // than patience. The pool stays closed then; call either again to wait on.
  Result<void> ShutdownWithin(std::chrono::nanoseconds patience, Pending pending);

  // Whether a task of this pool runs on the calling thread.
  bool OnOwnThread() const;

  Statistics GetStatistics() const;

  const std::string& name() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace zeze
