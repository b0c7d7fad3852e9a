// TaskQueue: the queue of a thread pool. Many threads push, many pop, mostly without a lock.
//
// A ring of slots, each with a number that says whose turn it is: position p may be written when
// the slot's number is p, read when it is p + 1, and becomes p + capacity for the next round.
// Positions are claimed by compare-and-exchange. When the ring is full, tasks go to an overflow
// list under a mutex, and are moved into the ring when there is room.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"

namespace zeze::internal {

class TaskQueue {
 public:
  // The capacity is a power of two, and at least 2: with one slot "readable at p" and "writable at
  // p + 1" would be the same number.
  explicit TaskQueue(std::size_t ring_capacity)
      : mask_(ring_capacity - 1),
        turns_(std::make_unique<std::atomic<std::uint64_t>[]>(ring_capacity)),
        tasks_(std::make_unique<Task[]>(ring_capacity)) {
    for (std::size_t i = 0; i < ring_capacity; ++i) turns_[i].store(i, std::memory_order_relaxed);
  }

  void Push(Task&& task) {
    // Behind what overflowed before, to keep the order roughly.
    if (overflow_size_.load(std::memory_order_relaxed) == 0 && PushToRing(std::move(task))) return;
    MutexLock lock(overflow_mutex_);
    overflow_.push_back(
        std::move(task));  // NOLINT(bugprone-use-after-move): a full ring moves nothing.
    overflow_size_.store(overflow_.size());
  }

  bool Pop(Task& task) {
    if (overflow_size_.load(std::memory_order_relaxed) != 0) Refill();
    return PopFromRing(task);
  }

  // Sequentially consistent, like the stores that publish a task: if a thread first announces
  // that it goes to sleep and then finds the queue empty here, then whoever pushes later sees the
  // announcement after Push.
  bool Empty() const {
    const std::uint64_t position = head_.load();
    return turns_[position & mask_].load() != position + 1 && head_.load() == position &&
           overflow_size_.load() == 0;
  }

  std::size_t SizeApprox() const {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    return (tail > head ? tail - head : 0) + OverflowSizeApprox();
  }

  std::size_t OverflowSizeApprox() const { return overflow_size_.load(std::memory_order_relaxed); }

  // How many tasks have ever come in, the overflow list included, and how many have gone out. Tasks
  // go out in order, so a task that was there when posted() was read has gone once taken() reaches
  // it. A task on its way from the overflow list into the ring may be counted twice.
  std::uint64_t posted() const {
    const std::size_t overflow = OverflowSizeApprox();
    return pushed() + overflow;
  }
  std::uint64_t taken() const { return popped(); }

  std::size_t ring_capacity() const { return mask_ + 1; }

 private:
  // How many tasks have ever gone through the ring: in, and out.
  std::uint64_t pushed() const { return tail_.load(std::memory_order_relaxed); }
  std::uint64_t popped() const { return head_.load(std::memory_order_relaxed); }

  bool PushToRing(Task&& task) {
    std::uint64_t position = tail_.load(std::memory_order_relaxed);
    while (true) {
      const std::uint64_t turn = turns_[position & mask_].load(std::memory_order_acquire);
      if (turn == position) {
        if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) break;
      } else if (turn < position) {
        return false;  // Full: the slot still holds a task of the previous round.
      } else {
        position = tail_.load(std::memory_order_relaxed);
      }
    }
    tasks_[position & mask_] = std::move(task);
    turns_[position & mask_].store(position + 1);
    return true;
  }

  bool PopFromRing(Task& task) {
    std::uint64_t position = head_.load(std::memory_order_relaxed);
    while (true) {
      const std::uint64_t turn = turns_[position & mask_].load(std::memory_order_acquire);
      if (turn == position + 1) {
        if (head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) break;
      } else if (turn < position + 1) {
        return false;
      } else {
        position = head_.load(std::memory_order_relaxed);
      }
    }
    task = std::move(tasks_[position & mask_]);
    turns_[position & mask_].store(position + mask_ + 1, std::memory_order_release);
    return true;
  }

  void Refill() {
    if (pushed() - popped() > ring_capacity() / 2) return;
    MutexLock lock(overflow_mutex_);
    while (!overflow_.empty() && PushToRing(std::move(overflow_.front()))) overflow_.pop_front();
    overflow_size_.store(overflow_.size());
  }

  const std::size_t mask_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> turns_;
  const std::unique_ptr<Task[]> tasks_;

  // Apart, because different threads write them.
  alignas(64) std::atomic<std::uint64_t> tail_ = 0;
  alignas(64) std::atomic<std::uint64_t> head_ = 0;

  alignas(64) std::atomic<std::size_t> overflow_size_ = 0;
  Mutex overflow_mutex_;
  std::deque<Task> overflow_ ZEZE_GUARDED_BY(overflow_mutex_);
};

}  // namespace zeze::internal
