// Tests of TimerWheel, most of them beside a sorted map.

#include "zeze/base/timer_wheel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace zeze {
namespace {

using Tick = std::uint64_t;
using Fired = std::vector<std::pair<int, Tick>>;

Fired FireAll(TimerWheel<int>& wheel, Tick now) {
  Fired fired;
  wheel.Advance(now, [&](int value, Tick deadline) { fired.emplace_back(value, deadline); });
  return fired;
}

TEST(TimerWheel, FiresEachOnceAtItsTick) {
  TimerWheel<int> wheel(1000);
  wheel.Add(1001, 1);
  wheel.Add(1256, 2);
  wheel.Add(70'000, 3);
  wheel.Add(std::numeric_limits<Tick>::max(), 4);
  EXPECT_EQ(wheel.NextWake(), 1001u);
  EXPECT_EQ(FireAll(wheel, 1000), Fired());
  EXPECT_EQ(FireAll(wheel, 1001), (Fired{{1, 1001}}));
  EXPECT_EQ(FireAll(wheel, 1255), Fired());
  EXPECT_EQ(FireAll(wheel, 69'999), (Fired{{2, 1256}}));
  EXPECT_EQ(FireAll(wheel, 70'000), (Fired{{3, 70'000}}));
  EXPECT_EQ(FireAll(wheel, std::numeric_limits<Tick>::max() - 1), Fired());
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(FireAll(wheel, std::numeric_limits<Tick>::max()).size(), 1u);
  EXPECT_EQ(wheel.size(), 0u);
}

TEST(TimerWheel, WhatIsLateIsDueAtTheNextTick) {
  TimerWheel<int> wheel(1000);
  wheel.Add(5, 1);
  wheel.Add(1000, 2);
  EXPECT_EQ(FireAll(wheel, 1000), Fired());
  EXPECT_EQ(FireAll(wheel, 1001), (Fired{{1, 1001}, {2, 1001}}));
}

TEST(TimerWheel, WhatIsNotWantedIsTakenOut) {
  TimerWheel<int> wheel(0);
  for (int i = 0; i < 10'000; ++i) {
    const auto tick = static_cast<Tick>(i);
    wheel.Add(tick * tick * tick, i);
  }
  wheel.EraseIf([](int value) { return value % 10 != 0; });
  EXPECT_EQ(wheel.size(), 1000u);
  const Fired fired = FireAll(wheel, 1'000'000'000'000);
  EXPECT_EQ(fired.size(), 1000u);
  for (const auto& [value, deadline] : fired) EXPECT_EQ(value % 10, 0);
  EXPECT_FALSE(wheel.NextWake().has_value());
}

TEST(TimerWheel, ACallbackMayAdd) {
  TimerWheel<int> wheel(0);
  wheel.Add(10, 0);
  Fired fired;
  wheel.Advance(100, [&](int value, Tick deadline) {
    fired.emplace_back(value, deadline);
    if (value < 5) wheel.Add(deadline + 10, value + 1);
    if (value == 5) wheel.Add(deadline, 6);  // Late: with the next tick.
  });
  EXPECT_EQ(fired, (Fired{{0, 10}, {1, 20}, {2, 30}, {3, 40}, {4, 50}, {5, 60}, {6, 61}}));
}

// Added in the last tick of a turn: it is in the first wheel before what is due with it moves down.
TEST(TimerWheel, WhatMovesDownIsNotPassedOver) {
  TimerWheel<int> wheel(0);
  wheel.Add(0xEFF, 1);
  wheel.Add(0xF00, 2);
  Fired fired;
  wheel.Advance(0x2000, [&](int value, Tick deadline) {
    fired.emplace_back(value, deadline);
    if (value == 1) wheel.Add(0xF05, 3);
  });
  EXPECT_EQ(fired, (Fired{{1, 0xEFF}, {2, 0xF00}, {3, 0xF05}}));
}

TEST(TimerWheel, AgreesWithASortedMap) {
  for (int seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    Tick now = random() >> random() % 40;
    if (now > std::numeric_limits<Tick>::max() / 4) now /= 4;
    TimerWheel<int> wheel(now);
    std::map<int, Tick> model;  // When each is due.
    int next = 0;
    for (int step = 0; step < 2000; ++step) {
      switch (random() % 4) {
        case 0:
        case 1: {
          const Tick deadline = now + (random() >> (24 + random() % 40));
          wheel.Add(deadline, next);
          model[next] = std::max(deadline, now + 1);
          ++next;
          break;
        }
        case 2: {
          const int divisor = 2 + static_cast<int>(random() % 50);
          const auto unwanted = [divisor](int value) { return value % divisor == 0; };
          wheel.EraseIf(unwanted);
          std::erase_if(model, [&](const auto& entry) { return unwanted(entry.first); });
          break;
        }
        default: {
          const std::optional<Tick> wake = wheel.NextWake();
          Tick first = std::numeric_limits<Tick>::max();
          for (const auto& [value, due] : model) first = std::min(first, due);
          if (!model.empty()) {
            ASSERT_TRUE(wake.has_value());
            ASSERT_LE(*wake, first);
          }
          now += random() >> (24 + random() % 40);
          Fired fired;
          // Some come again, as periodic timers do.
          wheel.Advance(now, [&](int value, Tick deadline) {
            fired.emplace_back(value, deadline);
            if (random() % 2 != 0) return;
            const Tick again = deadline + 1 + (random() >> (24 + random() % 40));
            wheel.Add(again, next);
            model[next] = again;
            ++next;
          });
          ASSERT_TRUE(std::is_sorted(fired.begin(), fired.end(), [](const auto& a, const auto& b) {
            return a.second < b.second;
          }));
          for (const auto& [value, deadline] : fired) {
            ASSERT_EQ(model.at(value), deadline);
            ASSERT_LE(deadline, now);
            model.erase(value);
          }
          for (const auto& [value, due] : model) ASSERT_GT(due, now);
          break;
        }
      }
      ASSERT_EQ(wheel.size(), model.size());
    }
  }
}

}  // namespace
}  // namespace zeze
