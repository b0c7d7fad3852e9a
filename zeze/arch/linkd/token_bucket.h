// TokenBucket: so much a second on average, and so much at once; eight bytes.
//
//   const BucketRate rate(RateLimit{.per_second = 100, .burst = 200});
//   if (!bucket.Take(rate, now)) return Refuse();

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace zeze::arch {

struct RateLimit {
  double per_second = 0;  // 0: no limit.
  double burst = 0;       // At once, after a pause; at least 1.
};

// A limit, ready to be used.
class BucketRate {
 public:
  BucketRate() = default;
  explicit BucketRate(const RateLimit& limit)
      : nanoseconds_each_(limit.per_second > 0 ? 1e9 / limit.per_second : 0),
        burst_nanoseconds_(
            static_cast<std::int64_t>(std::max(limit.burst, 1.0) * nanoseconds_each_)) {}

  bool unlimited() const { return nanoseconds_each_ == 0; }

 private:
  friend class TokenBucket;
  double nanoseconds_each_ = 0;
  std::int64_t burst_nanoseconds_ = 0;
};

// Thread-safe. Full at first.
class TokenBucket {
 public:
  // False, and nothing is taken, if there is not so much.
  bool Take(const BucketRate& rate, std::chrono::nanoseconds now, double tokens = 1) {
    if (rate.unlimited()) return true;
    const auto cost = static_cast<std::int64_t>(tokens * rate.nanoseconds_each_);
    std::int64_t empty_until = empty_until_.load(std::memory_order_relaxed);
    while (true) {
      const std::int64_t next = std::max<std::int64_t>(empty_until, now.count()) + cost;
      if (next - now.count() > rate.burst_nanoseconds_) return false;
      if (empty_until_.compare_exchange_weak(empty_until, next, std::memory_order_relaxed)) {
        return true;
      }
    }
  }

  // As if nothing had ever been taken.
  bool IsFull(std::chrono::nanoseconds now) const {
    return empty_until_.load(std::memory_order_relaxed) <= now.count();
  }

 private:
  // When everything that was taken has flowed back.
  std::atomic<std::int64_t> empty_until_ = 0;
};

}  // namespace zeze::arch
