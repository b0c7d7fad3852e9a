// ArrivalQueue: what has arrived on one connection and is to be handled on an executor, in order.
//
//   if (queue.Push(std::move(arrival))) executor.Post(drain);    // Nobody is draining yet.
//   while (queue.TakeBatch(batch)) for (Arrival& arrival : batch) Handle(arrival);
//
// Unlike TaskOneByOneByKey no two connections share anything, so a handler may wait for what
// arrives on another connection.

#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/net/frame.h"
#include "zeze/net/rpc.h"

namespace zeze::internal {

struct HandlerEntry;

// One of: a message for a handler, the end of a call, or a task (open and close).
struct Arrival {
  HandlerEntry* handler = nullptr;
  Frame frame = {};

  RawCompletion completion = {};
  RawReply reply = {};

  Task task = {};

  std::shared_ptr<const std::string> bytes = nullptr;  // What the views above point into.
  std::size_t cost = 0;                                // Bytes, for the limit.
};

// Thread-safe.
class ArrivalQueue {
 public:
  // True if the caller must have somebody drain the queue.
  bool Push(Arrival arrival) {
    MutexLock lock(mutex_);
    arrivals_.push_back(std::move(arrival));
    return !std::exchange(draining_, true);
  }

  // Swaps everything that waits into `batch`. False, and the drain has ended, if there is nothing.
  bool TakeBatch(std::vector<Arrival>& batch) {
    batch.clear();
    MutexLock lock(mutex_);
    if (arrivals_.empty()) {
      draining_ = false;
      return false;
    }
    batch.swap(arrivals_);
    return true;
  }

 private:
  Mutex mutex_;
  std::vector<Arrival> arrivals_ ZEZE_GUARDED_BY(mutex_);
  bool draining_ ZEZE_GUARDED_BY(mutex_) = false;
};

// How much of one connection's input is being handled elsewhere. Thread-safe.
class DispatchedCount {
 public:
  DispatchedCount(std::size_t messages_max, std::size_t bytes_max)
      : messages_max_(messages_max), bytes_max_(bytes_max) {}

  void Add(std::size_t bytes) {
    messages_.fetch_add(1);
    bytes_.fetch_add(bytes);
  }
  void Remove(std::size_t bytes) {
    bytes_.fetch_sub(bytes);
    messages_.fetch_sub(1);
  }

  bool Full() const { return messages_.load() >= messages_max_ || bytes_.load() >= bytes_max_; }

  // Low enough to read on: not at once below the limit, or reading would start and stop with each
  // message.
  bool Drained() const {
    return messages_.load() <= messages_max_ / 2 && bytes_.load() <= bytes_max_ / 2;
  }

 private:
  const std::size_t messages_max_;
  const std::size_t bytes_max_;
  std::atomic<std::size_t> messages_ = 0;
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace zeze::internal
