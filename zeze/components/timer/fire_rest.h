// FireRest: what share of a core timers use while they disturb others.
//
//   FireRest rest;
//   rest.Note(now, disturbed, more_wait);      // After a batch.
//   Sleep(used * (1 / rest.Share(now) - 1));
//
// A thread that computes without a pause delays every thread that is woken on its core, even if it
// offers the core after each timer. So timers that find others on their core work in short slices
// and rest in between. Nobody needs these rests but the others: without them there are none, and
// while timers keep waiting the rests become shorter, so that timers cannot fall behind for long.

#pragma once

#include <algorithm>
#include <chrono>

namespace zeze {

// Not thread-safe.
class FireRest {
 public:
  static constexpr double kShareMin = 0.12;
  // By how much the share rises in a second in which timers waited all the time; else it falls.
  static constexpr double kRise = 0.12;
  // One that was disturbed may come back.
  static constexpr std::chrono::nanoseconds kMemory = std::chrono::milliseconds(200);

  // `disturbed`: another thread got the core while timers would have gone on. `more_wait`: there is
  // more to do.
  void Note(std::chrono::nanoseconds now, bool disturbed, bool more_wait) {
    if (disturbed) disturbed_at_ = now;
    const std::chrono::duration<double> passed =
        std::clamp<std::chrono::nanoseconds>(now - noted_at_, std::chrono::nanoseconds(0), kMemory);
    noted_at_ = now;
    share_ = std::clamp(share_ + (more_wait ? kRise : -kRise) * passed.count(), kShareMin, 1.0);
  }

  double Share(std::chrono::nanoseconds now) const {
    return now - disturbed_at_ < kMemory ? share_ : 1;
  }

 private:
  std::chrono::nanoseconds disturbed_at_ = -kMemory;
  std::chrono::nanoseconds noted_at_{0};
  double share_ = kShareMin;
};

}  // namespace zeze
