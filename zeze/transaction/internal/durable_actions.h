// DurableActions: runs AfterDurable actions on a thread of their own, "after-durable-1", in the
// order in which the checkpoint posts them.

#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/thread_pool.h"

namespace zeze::internal {

// Thread-safe. The thread is made for the first action.
class DurableActions {
 public:
  explicit DurableActions(std::size_t max) : max_(max) {}

  // True while `max` actions are committed and have not run.
  bool full() const { return waiting_.load(std::memory_order_relaxed) >= max_; }
  std::size_t max() const { return max_; }

  // A commit has registered so many actions. Each is posted once, when that commit is saved.
  void Expect(std::size_t count) { waiting_.fetch_add(count, std::memory_order_relaxed); }
  void Post(std::vector<Task> actions);

  // Ends the thread. Must not be called on it.
  void Stop(ThreadPool::Pending pending);

  // Whether the calling thread is the one that runs actions.
  bool OnOwnThread() const;

 private:
  ThreadPool* Pool(bool make);

  const std::size_t max_;
  alignas(64) std::atomic<std::size_t> waiting_ = 0;  // Apart from what every commit reads.
  mutable Mutex mutex_;
  std::unique_ptr<ThreadPool> pool_ ZEZE_GUARDED_BY(mutex_);  // One thread, which keeps the order.
};

}  // namespace zeze::internal
