// FirePace: how many timers may run at a time when very many are due.
//
//   FirePace pace(cores, 32);
//   pace.Note(cpu, wall, waited);      // What a batch of them took.
//   if (running < pace.limit()) Start();
//
// Timers that compute get half of the cores, so that everything else has its half. Timers that wait
// (for records, for a service) cost no core while they do, and may be more.

#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

namespace zeze {

// Not thread-safe.
class FirePace {
 public:
  FirePace(std::size_t cores, std::size_t limit_max)
      : share_(std::max(1.0, static_cast<double>(cores) / 2)),
        limit_max_(static_cast<double>(std::max<std::size_t>(limit_max, 1))),
        limit_(static_cast<std::size_t>(std::min(share_, limit_max_))) {}

  std::size_t limit() const { return limit_; }

  // `waited`: it gave its core away of its own accord. Others may take it away, too, and that is no
  // reason to be more.
  void Note(std::chrono::nanoseconds cpu, std::chrono::nanoseconds wall, bool waited) {
    double busy = 1;
    if (waited && wall.count() > 0) {
      busy = std::clamp(static_cast<double>(cpu.count()) / static_cast<double>(wall.count()), 0.01,
                        1.0);
    }
    busy_ = 0.8 * busy_ + 0.2 * busy;
    limit_ = static_cast<std::size_t>(std::clamp(std::floor(share_ / busy_), 1.0, limit_max_));
  }

 private:
  const double share_;
  const double limit_max_;
  double busy_ = 1;
  std::size_t limit_;
};

}  // namespace zeze
