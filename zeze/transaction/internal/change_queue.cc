#include "zeze/transaction/internal/change_queue.h"

#include <mutex>

#include "zeze/base/function_ref.h"

namespace zeze::internal {

void ChangeQueue::Push(const Change& change) {
  const std::lock_guard lock(mutex_);
  changes_.push_back(change);
}

void ChangeQueue::Deliver(FunctionRef<void(const Change&)> notify) {
  const std::lock_guard delivery(delivery_mutex_);
  while (true) {
    Change change{};
    {
      const std::lock_guard lock(mutex_);
      if (changes_.empty()) return;
      change = changes_.front();
      changes_.pop_front();
    }
    notify(change);
  }
}

}  // namespace zeze::internal
