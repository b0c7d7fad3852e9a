// OutputQueue: the encoded frames of a connection that have not been written yet, up to a bound.
//
//   if (!queue.Append([&](ByteWriter& out) { EncodeFrame(frame, out); })) return Overloaded();
//   std::unique_ptr<ByteWriter> batch = queue.Take();    // Everything appended so far.
//   queue.GiveBack(std::move(batch), unwritten_bytes);   // The rest is the caller's to write.
//
// Frames are encoded into one piece of memory that is used again and again: no allocation for each
// frame, and one system call for all that were appended since the last one.

#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

// Not thread-safe, except bytes().
class OutputQueue {
 public:
  // `pause`: whether AboveHighWater is ever true.
  explicit OutputQueue(std::size_t bytes_max, bool pause = true)
      : bytes_max_(bytes_max),
        high_water_(pause ? bytes_max / 2 : std::numeric_limits<std::size_t>::max()),
        pending_(std::make_unique<ByteWriter>()),
        spare_(std::make_unique<ByteWriter>()) {}

  // False, and nothing is appended, if more than the bound would then wait. What fits alone into an
  // empty queue always fits. Nothing is appended either if `write` throws.
  template <typename Write>
  bool Append(Write&& write) {
    const std::size_t before = pending_->size();
    try {
      write(*pending_);
    } catch (...) {
      pending_->Truncate(before);
      throw;
    }
    if (before + in_flight_ > 0 && pending_->size() + in_flight_ > bytes_max_) [[unlikely]] {
      pending_->Truncate(before);
      return false;
    }
    Publish();
    return true;
  }

  bool HasPending() const { return pending_->size() > 0; }

  std::unique_ptr<ByteWriter> Take() {
    in_flight_ += pending_->size();
    std::unique_ptr<ByteWriter> batch = std::exchange(pending_, std::move(spare_));
    if (pending_ == nullptr) pending_ = std::make_unique<ByteWriter>();
    return batch;
  }

  // `in_flight_bytes`: of everything taken, what is not written yet.
  void GiveBack(std::unique_ptr<ByteWriter> batch, std::size_t in_flight_bytes) {
    SetInFlight(in_flight_bytes);
    // An idle connection should not keep the memory of its largest burst.
    if (batch != nullptr && batch->size() <= kKeepBytes) {
      batch->Clear();
      spare_ = std::move(batch);
    }
  }

  void SetInFlight(std::size_t bytes) {
    in_flight_ = bytes;
    Publish();
  }

  // Everything that is not written yet. Any thread.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // Beyond the first the connection should not be read from, until below the second.
  bool AboveHighWater() const { return bytes() > high_water_; }
  bool BelowLowWater() const { return bytes() <= bytes_max_ / 4; }

 private:
  static constexpr std::size_t kKeepBytes = 32 << 10;

  void Publish() { bytes_.store(pending_->size() + in_flight_, std::memory_order_relaxed); }

  const std::size_t bytes_max_;
  const std::size_t high_water_;
  std::unique_ptr<ByteWriter> pending_;
  std::unique_ptr<ByteWriter> spare_;
  std::size_t in_flight_ = 0;
  std::atomic<std::size_t> bytes_ = 0;  // A copy for other threads to look at.
};

}  // namespace zeze::internal
