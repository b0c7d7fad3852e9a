#include "zeze/transaction/internal/durable_actions.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/thread_pool.h"

namespace zeze::internal {

ThreadPool* DurableActions::Pool(bool make) {
  const MutexLock lock(mutex_);
  if (make && pool_ == nullptr) {
    pool_ = std::make_unique<ThreadPool>(
        ThreadPool::Options{.name = "after-durable", .thread_count = 1});
  }
  return pool_.get();
}

void DurableActions::Post(std::vector<Task> actions) {
  ThreadPool* const runner = Pool(true);
  for (Task& action : actions) {
    const char* const name = action.name();
    runner->Post(Task(name, [this, action = std::move(action)]() mutable {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      action();
    }));
  }
}

void DurableActions::Stop(ThreadPool::Pending pending) {
  if (ThreadPool* const runner = Pool(false)) runner->Shutdown(pending);
}

bool DurableActions::OnOwnThread() const {
  const MutexLock lock(mutex_);
  return pool_ != nullptr && pool_->OnOwnThread();
}

}  // namespace zeze::internal
