// Pins: the records that a running transaction uses. The cleaner looks at them and leaves those
// records in the cache.

#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace zeze::internal {

struct Record;

// One thread adds and clears, any thread looks. Adding costs two plain stores and no fence: whoever
// looks may miss what was added in the last moment. A record may be there twice.
class Pins {
 public:
  Pins() = default;
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  void Add(Record* record) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == capacity_) [[unlikely]]
      Resize(2 * capacity_);
    slots_[count].store(record, std::memory_order_relaxed);
    count_.store(count + 1, std::memory_order_release);
  }

  void Clear() { count_.store(0, std::memory_order_release); }

  // The same, and gives back the memory that many of them needed.
  void Free() {
    Clear();
    Resize(kCapacityMin);
  }

  std::size_t count() const { return count_.load(std::memory_order_relaxed); }

  // Addresses to compare with: a record that was unpinned meanwhile may not exist any more.
  void AppendTo(std::vector<const Record*>& records) const;

 private:
  using Slots = std::unique_ptr<std::atomic<Record*>[]>;

  static constexpr std::size_t kCapacityMin = 64;

  void Resize(std::size_t capacity);

  std::atomic<std::size_t> count_ = 0;
  std::size_t capacity_ = kCapacityMin;
  Slots slots_ = std::make_unique<std::atomic<Record*>[]>(kCapacityMin);
  // Held while others look, and while the owner replaces the slots.
  mutable std::mutex mutex_;
};

}  // namespace zeze::internal
