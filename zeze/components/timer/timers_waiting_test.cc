// Handlers that wait, beside timers that must be on time.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/timer/testing/timers_fixture.h"
#include "zeze/components/timer/timers.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/testing/gate.h"

namespace zeze {
namespace {

using std::chrono_literals::operator""h;
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
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
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

// Handlers of timers of one node that wait, and end together.
class TimersThatEndTogetherTest : public WaitingTimersTest {
 protected:
  // Each handler waits until all of them do.
  TimerServer& Open(bool memory) {
    const auto wait = [this](Transaction&, TimerContext& timer) -> std::int64_t {
      if (timer.id() == "quick") return result_code::kSuccess;
      calls.Add(std::string(timer.id()));
      gate.Pass();
      return result_code::kSuccess;
    };
    server = std::make_unique<TimerServer>(directory.path(), SystemClock(),
                                           TimerSetup{.memory = memory, .extra = wait});
    server->Start();
    return *server;
  }
  void ScheduleInOneNode(std::size_t count, bool keyed) {
    EXPECT_EQ(0, server->Call([&](Transaction& tx) {
      ids.clear();
      for (std::size_t i = 0; i < count; ++i) {
        TimerSpec spec = TimerSpec::After("count", 10ms);
        if (keyed) spec.one_by_one_key = "clan " + std::to_string(i);
        ids.push_back(server->timers.Schedule(tx, spec).value());
      }
    }));
  }
  void EndTogether() {
    gate.AwaitArrivals(ids.size());
    gate.Open();
    server->told.Await(ids.size());
  }
  void ExpectOnce() {
    EXPECT_EQ(calls.count(), ids.size());
    for (const std::string& id : ids) {
      EXPECT_EQ(server->Effects(id), 1);
      EXPECT_FALSE(server->Find(id));
    }
    server->Stop();
    EXPECT_EQ(server->timers.statistics().fired, ids.size());
  }

  Told calls;
  std::vector<std::string> ids;
};

TEST_F(TimersThatEndTogetherTest, EachHandlerIsCalledOnce) {
  Open(true);
  ScheduleInOneNode(48, false);
  EndTogether();
  ExpectOnce();
}

TEST_F(TimersThatEndTogetherTest, EachHandlerIsCalledOnceOverADatabase) {
  Open(false);
  ScheduleInOneNode(48, false);
  EndTogether();
  ExpectOnce();
}

// As many as there are workers.
TEST_F(TimersThatEndTogetherTest, EachHandlerWithAKeyIsCalledOnce) {
  Open(true);
  ScheduleInOneNode(4, true);
  EndTogether();
  ExpectOnce();
}

// Procedures that schedule and cancel change the same node while the handlers end.
TEST_F(TimersThatEndTogetherTest, EachHandlerIsCalledOnceWhileProceduresChangeTheNode) {
  Open(true);
  ScheduleInOneNode(32, false);
  gate.AwaitArrivals(ids.size());
  std::atomic<bool> ended = false;
  std::thread other([&] {
    while (!ended) {
      const std::string id = server->Schedule(TimerSpec::After("count", 1h));
      EXPECT_EQ(0, server->Call([&](Transaction& tx) { server->timers.Cancel(tx, id); }));
    }
  });
  gate.Open();
  server->told.Await(ids.size());
  ended = true;
  other.join();
  ExpectOnce();
}

// The node of both changes more often than the handler ends.
TEST_F(TimersThatEndTogetherTest, AHandlerIsCalledOnceAlthoughItsNodeChangesAllTheTime) {
  Open(true);
  StartQuick();
  ScheduleInOneNode(1, false);
  gate.AwaitArrivals(1);
  server->told.Await(server->told.count() + 3);
  gate.Open();
  while (server->Find(ids[0])) server->told.Await(server->told.count() + 1);
  EXPECT_EQ(calls.count(), 1U);
  EXPECT_EQ(server->Effects(ids[0]), 1);
  server->Stop();
}

// What others do to the timer itself while its handler runs counts.
class TimerThatIsChangedTest : public TimersThatEndTogetherTest {
 protected:
  void Begin() {
    Open(true);
    ScheduleInOneNode(1, false);
    gate.AwaitArrivals(1);
  }
  template <typename Change>
  void ChangeIt(const Change& change) {
    EXPECT_EQ(0, server->Call([&](Transaction& tx) { change(server->timers, tx, ids[0]); }));
  }
  // Whatever is under way has ended then.
  void AwaitIdle() {
    while (server->timers.statistics().running > 0) SystemClock().SleepFor(1ms);
  }
};

TEST_F(TimerThatIsChangedTest, CanceledItHasNoEffect) {
  Begin();
  ChangeIt([](Timers& timers, Transaction& tx, const std::string& id) {
    EXPECT_TRUE(timers.Cancel(tx, id));
  });
  gate.Open();
  AwaitIdle();
  EXPECT_EQ(server->Effects(ids[0]), 0);
  EXPECT_EQ(calls.count(), 1U);
  server->Stop();
  EXPECT_EQ(server->timers.statistics().fired, 0U);
}

TEST_F(TimerThatIsChangedTest, WithOtherDataItRunsWithThem) {
  Begin();
  ChangeIt([](Timers& timers, Transaction& tx, const std::string& id) {
    EXPECT_TRUE(timers.SetData(tx, id, AnyBean::Of(BCount{.NextId = 7})));
  });
  gate.Open();
  server->told.Await(1);
  EXPECT_EQ(server->Effects(ids[0]), 1);
  EXPECT_EQ(calls.count(), 2U);
  EXPECT_FALSE(server->Find(ids[0]));
  server->Stop();
}

TEST_F(TimerThatIsChangedTest, RegisteredAnewOnlyTheNewOneRuns) {
  Open(true);
  const auto schedule = [&](Transaction& tx, Timers::Existing existing) {
    const TimerSpec spec = TimerSpec::After("count", 10ms);
    EXPECT_TRUE(server->timers.ScheduleNamed(tx, "reset", spec, existing).value());
  };
  EXPECT_EQ(0, server->Call([&](Transaction& tx) { schedule(tx, Timers::Existing::kKeep); }));
  gate.AwaitArrivals(1);
  EXPECT_EQ(0,
            server->Call([&](Transaction& tx) { schedule(tx, Timers::Existing::kReplaceHere); }));
  gate.Open();
  server->told.Await(1);
  AwaitIdle();
  EXPECT_EQ(server->Effects("reset"), 1);
  EXPECT_EQ(calls.count(), 2U);
  EXPECT_FALSE(server->Find("reset"));
  server->Stop();
  EXPECT_EQ(server->timers.statistics().fired, 1U);
}

// Its own timer, by its handler: the last word is the handler's.
TEST_F(TimerThatIsChangedTest, ByItsOwnHandler) {
  const auto change = [this](Transaction& tx, TimerContext& timer) -> std::int64_t {
    const std::string id(timer.id());
    if (id == "cancels") server->timers.Cancel(tx, id);
    if (id == "sets data") server->timers.SetData(tx, id, AnyBean::Of(BCount{.NextId = 7}));
    if (id == "replaces" && timer.happened_times() == 0) {
      const TimerSpec spec = TimerSpec::After("count", 1h);
      EXPECT_TRUE(
          server->timers.ScheduleNamed(tx, id, spec, Timers::Existing::kReplaceHere).value());
    }
    return result_code::kSuccess;
  };
  server = std::make_unique<TimerServer>(directory.path(), SystemClock(),
                                         TimerSetup{.memory = true, .extra = change});
  server->Start();
  EXPECT_EQ(0, server->Call([&](Transaction& tx) {
    for (const char* name : {"cancels", "sets data", "replaces"}) {
      const TimerSpec spec = TimerSpec::Every("count", 10ms, 1h);
      EXPECT_TRUE(server->timers.ScheduleNamed(tx, name, spec).value());
    }
  }));
  server->told.Await(3);
  AwaitIdle();
  EXPECT_FALSE(server->Find("cancels"));
  EXPECT_EQ(server->Find("sets data")->happened_times, 1);
  EXPECT_EQ(server->Find("replaces")->happened_times, 0);
  for (const char* name : {"cancels", "sets data", "replaces"}) {
    EXPECT_EQ(server->Effects(name), 1) << name;
  }
  server->Stop();
}

}  // namespace
}  // namespace zeze
