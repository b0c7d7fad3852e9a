#include "zeze/transaction/internal/change_queue.h"

#include <exception>
#include <mutex>
#include <string>

#include "zeze/base/function_ref.h"
#include "zeze/base/log.h"

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

void CallListener(const std::string& table, FunctionRef<void()> call) {
  try {
    call();
  } catch (const std::exception& e) {
    ZEZE_LOG_ERROR("a change listener of table {} threw: {}", table, e.what());
  } catch (...) {
    ZEZE_LOG_ERROR("a change listener of table {} threw", table);
  }
}

}  // namespace zeze::internal
