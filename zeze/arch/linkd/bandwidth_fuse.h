// BandwidthFuse: how much of its outgoing bandwidth a gateway uses, and what it discards when that
// is too much.
//
//   if (!fuse.Admit(type, bytes)) return;      // Discarded.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "zeze/net/protocol.h"

namespace zeze::arch {

struct BandwidthOptions {
  double bytes_per_second = 0;  // To all clients together. 0: no limit.
  double fuse_ratio = 1.0;      // Above it everything is discarded,
  double warn_ratio = 0.7;      // below it nothing, and in between what the application says:

  // True: send it. Called on network threads. Null: everything but what may be shed.
  std::function<bool(std::int64_t type, CriticalLevel level, double ratio)> decide = nullptr;
};

// Thread-safe, except Tick.
class BandwidthFuse {
 public:
  explicit BandwidthFuse(BandwidthOptions options) : options_(std::move(options)) {}

  bool enabled() const { return options_.bytes_per_second > 0; }

  bool Admit(std::int64_t type, CriticalLevel level, std::size_t bytes) {
    if (!enabled()) return true;
    const double ratio = ratio_.load(std::memory_order_relaxed);
    if (ratio > options_.fuse_ratio) return false;
    if (ratio >= options_.warn_ratio) {
      const bool send = options_.decide ? options_.decide(type, level, ratio)
                                        : level != CriticalLevel::kSheddable;
      if (!send) return false;
    }
    sent_.fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }

  // Some times a second.
  void Tick(std::chrono::nanoseconds now) {
    if (!enabled()) return;
    const std::uint64_t sent = sent_.load(std::memory_order_relaxed);
    const std::chrono::duration<double> passed = now - ticked_at_;
    if (ticked_at_.count() != 0 && passed.count() > 0) {
      const double bytes_per_second = static_cast<double>(sent - sent_before_) / passed.count();
      ratio_.store(bytes_per_second / options_.bytes_per_second, std::memory_order_relaxed);
    }
    ticked_at_ = now;
    sent_before_ = sent;
  }

  double ratio() const { return ratio_.load(std::memory_order_relaxed); }

 private:
  const BandwidthOptions options_;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<double> ratio_ = 0;
  std::chrono::nanoseconds ticked_at_{0};
  std::uint64_t sent_before_ = 0;
};

}  // namespace zeze::arch
