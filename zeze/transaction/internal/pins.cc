#include "zeze/transaction/internal/pins.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace zeze::internal {

void Pins::AppendTo(std::vector<const Record*>& records) const {
  const std::lock_guard lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    records.push_back(slots_[i].load(std::memory_order_relaxed));
  }
}

void Pins::Resize(std::size_t capacity) {
  Slots slots = std::make_unique<std::atomic<Record*>[]>(capacity);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    slots[i].store(slots_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  const std::lock_guard lock(mutex_);
  slots_ = std::move(slots);
  capacity_ = capacity;
}

}  // namespace zeze::internal
