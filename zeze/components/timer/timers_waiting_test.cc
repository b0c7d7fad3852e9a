// Handlers that wait, beside timers that must be on time.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/components/timer/timers.h"
#include "zeze/components/timer/timers_for_test.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/result_code.h"
#include "zeze/transaction/testing/gate.h"

namespace zeze {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

constexpr std::size_t kWaiting = 32;

class WaitingTimersTest : public ::testing::Test {
 protected:
  // Timers that are called "quick" run; all others wait at the gate.
  TimerServer& Open(TimersOptions options = {}) {
    const auto wait = [this](Transaction&, TimerContext& timer) -> std::int64_t {
      if (timer.id() != "quick") gate.Pass();
      return result_code::kSuccess;
    };
    server = std::make_unique<TimerServer>(
        directory.path(), SystemClock(),
        TimerSetup{.timers = std::move(options), .memory = true, .extra = wait});
    server->Start();
    return *server;
  }
  void StartQuick() {
    EXPECT_EQ(0, server->Call([&](Transaction& tx) {
      const TimerSpec spec = TimerSpec::Every("count", 100ms, 100ms);
      EXPECT_TRUE(server->timers.ScheduleNamed(tx, "quick", spec).value());
    }));
  }

  void TearDown() override { gate.Open(); }

  TempDirectory directory;
  testing::Gate gate;
  std::unique_ptr<TimerServer> server;
};

TEST_F(WaitingTimersTest, HandlersAndLocalTasksThatWaitHoldUpNoOtherTimer) {
  TimerServer& s = Open();
  for (std::size_t i = 0; i < kWaiting; ++i) {
    s.Schedule(TimerSpec::After("count", 10ms));
    s.timers.ScheduleLocal(10ms, Task("wait", [this] { gate.Pass(); }));
  }
  StartQuick();
  s.told.Await(5);
  if (HasFailure()) return;
  gate.AwaitArrivals(2 * kWaiting);
  const std::size_t before = s.told.count();
  s.told.Await(before + 5);
  gate.Open();
  s.told.Await(before + 5 + kWaiting);
  s.Stop();
}

// The workers, which run what has a key, are fewer than the keys.
TEST_F(WaitingTimersTest, TimersOfBusyKeysHoldUpOnlyTheirKeys) {
  TimerServer& s = Open();
  for (std::size_t i = 0; i < 3 * kWaiting; ++i) {
    TimerSpec spec = TimerSpec::After("count", 10ms);
    spec.one_by_one_key = "clan " + std::to_string(i % kWaiting);
    s.Schedule(spec);
  }
  StartQuick();
  s.told.Await(5);
  if (HasFailure()) return;
  gate.AwaitArrivals(4);
  EXPECT_GE(s.timers.statistics().waiting, 3 * kWaiting - 4);
  gate.Open();
  s.told.Await(5 + 3 * kWaiting);
  s.Stop();
}

// Larger: ZEZE_TIMER_RATE timers a second (30000), for ZEZE_TIMER_SECONDS.
TEST_F(WaitingTimersTest, TimersThatAreLateLoseNoOccurrence) {
  const auto number = [](const char* name, std::int64_t usual) {
    const char* text = std::getenv(name);
    return text == nullptr ? usual : std::stoll(text);
  };
  const std::int64_t seconds = number("ZEZE_TIMER_SECONDS", 1);
  const std::int64_t timers = number("ZEZE_TIMER_RATE", 2000) / 10;
  gate.Open();
  TimerServer& s = Open({.misfire_after = 60s});
  const std::int64_t begin = s.timers.UnixNow() + 1000;
  std::vector<std::string> ids;
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {
    ids.clear();
    for (std::int64_t i = 0; i < timers; ++i) {
      const std::int64_t first = begin + i % 100;
      TimerSpec spec = TimerSpec::Every("count", 1ms * (first - s.timers.UnixNow()), 100ms);
      spec.end_time_ms = first + 1000 * seconds - 50;
      ids.push_back(s.timers.Schedule(tx, spec).value());
    }
  }));
  s.told.Await(static_cast<std::size_t>(10 * timers * seconds));
  for (const std::string& id : ids) EXPECT_EQ(s.Effects(id), 10 * seconds);
  s.Stop();
}

// The node of both changes more often than the handler ends.
TEST_F(WaitingTimersTest, AHandlerThatTakesLongCommitsAlthoughItsNodeChanges) {
  std::atomic<int> runs = 0;
  const auto wait = [&](Transaction&, TimerContext& timer) -> std::int64_t {
    if (timer.id() == "quick") return result_code::kSuccess;
    ++runs;
    server->told.Await(server->told.count() + 3);
    return result_code::kSuccess;
  };
  server = std::make_unique<TimerServer>(directory.path(), SystemClock(),
                                         TimerSetup{.memory = true, .extra = wait});
  server->Start();
  StartQuick();
  const std::string slow = server->Schedule(TimerSpec::After("count", 10ms));
  for (std::size_t count = 1; server->Effects(slow) == 0; ++count) {
    ASSERT_LE(runs, 3);
    server->told.Await(count);
  }
  EXPECT_EQ(server->Effects(slow), 1);
  EXPECT_FALSE(server->Find(slow));
  server->Stop();
}

}  // namespace
}  // namespace zeze
