#include "zeze/base/asymmetric_fence.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace zeze {
namespace {

constexpr int kRounds = 10'000;

struct alignas(64) Party {
  std::atomic<int> round = 0;  // Begun; one more than the last when all are done.
  std::atomic<int> wrote = 0;
  std::atomic<int> missed = 0;  // The last round in which it did not see the other's store.

  void Play(int now, const Party& other, void (*fence)()) {
    round.store(now);
    other.Await(now);
    wrote.store(now, std::memory_order_release);
    fence();
    if (other.wrote.load(std::memory_order_acquire) < now) missed.store(now);
  }
  void Await(int now) const {
    while (round.load() < now) std::this_thread::yield();
  }
};

// Both write and then look; in no round may both miss the other.
TEST(AsymmetricFence, OneOfTheTwoPartiesSeesTheOther) {
  Party often;
  Party rare;
  int both_missed = 0;
  {
    const std::jthread thread([&] {
      for (int now = 1; now <= kRounds; ++now) rare.Play(now, often, HeavyFence);
      rare.round.store(kRounds + 1);
    });
    for (int now = 1; now <= kRounds; ++now) {
      often.Play(now, rare, LightFence);
      rare.Await(now + 1);
      if (often.missed.load() == now && rare.missed.load() == now) ++both_missed;
    }
  }
  EXPECT_EQ(0, both_missed);
}

}  // namespace
}  // namespace zeze
