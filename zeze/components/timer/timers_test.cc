// Timers of one server: scheduling, running, ending.

#include "zeze/components/timer/timers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/AutoKey.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/timer/testing/timers_fixture.h"
#include "zeze/components/timer/timer_plan.h"

namespace zeze {
namespace {

using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(TimersTest, Seed002ADelayRunsOnce) {
  TimerServer& s = Open();
  const std::string id = s.Schedule(TimerSpec::After("count", 5s));
  EXPECT_THAT(id, StartsWith("@"));
  EXPECT_EQ(s.Find(id)->next_time_ms, Now() + 5000);
  clock.Advance(4990ms);
  EXPECT_TRUE(s.Find(id));
  clock.Advance(20ms);
  EXPECT_THAT(s.told.Await(1), ElementsAre(id));
  EXPECT_EQ(s.Effects(id), 1);
  EXPECT_FALSE(s.Find(id));
  EXPECT_FALSE(s.timers.tIndexs.ReadCopy(id).value());
}

TEST_F(TimersTest, Seed002APeriodRunsAgainAndAgainAfterTheDelay) {
  TimerServer& s = Open();
  const std::string id = s.Schedule(TimerSpec::Every("count", 1s, 10s));
  clock.Advance(1010ms);
  s.told.Await(1);
  EXPECT_EQ(s.Find(id)->next_time_ms, Now() - 10 + 10000);
  for (std::size_t i = 2; i < 6; ++i) {
    clock.Advance(10s);
    s.told.Await(i);
  }
  EXPECT_EQ(s.Effects(id), 5);
  EXPECT_EQ(s.Find(id)->happened_times, 5);
}

TEST_F(TimersTest, Seed002ACronExpressionInItsTimeZone) {
  TimerServer& s = Open();  // At midnight UTC.
  const std::string id = s.Schedule(TimerSpec::Cron("count", "0 30 9 * * ?", "Asia/Shanghai"));
  EXPECT_EQ(s.Find(id)->next_time_ms, Now() + 90 * 60 * 1000);
  clock.Advance(90min + 10ms);
  s.told.Await(1);
  EXPECT_EQ(s.Find(id)->next_time_ms, Now() - 10 + 24 * 60 * 60 * 1000);
}

TEST_F(TimersTest, TimesAndEndTimeEndIt) {
  TimerServer& s = Open();
  TimerSpec thrice = TimerSpec::Every("count", 1s, 1s);
  thrice.times = 3;
  TimerSpec until = TimerSpec::Every("count", 1s, 1s);
  until.end_time_ms = Now() + 2500;
  const std::string a = s.Schedule(thrice);
  const std::string b = s.Schedule(until);
  for (std::size_t i = 0; i < 6; ++i) {
    clock.Advance(1001ms);
    s.told.Await(std::min<std::size_t>(2 * i + 2, i < 2 ? 4 : 5));
  }
  EXPECT_EQ(s.Effects(a), 3);
  EXPECT_EQ(s.Effects(b), 2);
  EXPECT_FALSE(s.Find(a));
  EXPECT_FALSE(s.Find(b));
}

TEST_F(TimersTest, Seed002EachCallSchedulesANewOneWhoseNameBeginsWithAnAtSign) {
  TimerServer& s = Open();
  std::set<std::string> ids;
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {
    for (int i = 0; i < 500; ++i) {
      const std::string id = s.timers.Schedule(tx, TimerSpec::After("count", 1s)).value();
      EXPECT_TRUE(id.starts_with('@')) << id;
      ids.insert(id);
    }
  }));
  EXPECT_EQ(ids.size(), 500U);
  EXPECT_EQ(s.timers.tNodes.WalkCache([](auto, const auto&) { return true; }), 10U);
  clock.Advance(1010ms);
  s.told.Await(500);
  for (const std::string& id : ids) EXPECT_EQ(s.Effects(id), 1);
}

TEST_F(TimersTest, NotArmedBeforeTheCommitAndNotAfterARollback) {
  TimerServer& s = Open();
  s.application->Call("roll back", [&](Transaction& tx) -> std::int64_t {
    EXPECT_TRUE(s.timers.Schedule(tx, TimerSpec::After("count", 0s)).ok());
    EXPECT_EQ(s.timers.statistics().armed, 0U);
    return result_code::kLogicError;
  });
  EXPECT_EQ(s.timers.statistics().armed, 0U);
}

TEST_F(TimersTest, DataComesToTheHandlerAndCanChange) {
  TimerServer& s = Open({.extra = [](Transaction&, TimerContext& t) {
    const std::optional<BCount> data = t.data().As<BCount>();
    EXPECT_TRUE(data);
    t.SetData(AnyBean::Of(BCount{.NextId = data->NextId + 1}));
    return result_code::kSuccess;
  }});
  const std::string id =
      s.Schedule(TimerSpec::Every("count", 1s, 1s, AnyBean::Of(BCount{.NextId = 7})));
  for (std::size_t i = 1; i <= 3; ++i) {
    clock.Advance(1001ms);
    s.told.Await(i);
  }
  EXPECT_EQ(s.Find(id)->data.As<BCount>()->NextId, 10);
}

TEST_F(TimersTest, AHandlerMaySayWhenItIsNext) {
  TimerServer& s = Open({.extra = [](Transaction&, TimerContext& t) {
    t.SetNextTime(t.now_ms() + 77'000);
    return result_code::kSuccess;
  }});
  const std::string id = s.Schedule(TimerSpec::Every("count", 1s, 1s));
  clock.Advance(1010ms);
  s.told.Await(1);
  EXPECT_EQ(s.Find(id)->next_time_ms, Now() + 77'000);
}

TEST_F(TimersTest, CancelEndsIt) {
  TimerServer& s = Open();
  const std::string a = s.Schedule(TimerSpec::After("count", 1s));
  const std::string b = s.Schedule(TimerSpec::After("count", 1s));
  s.Call([&](Transaction& tx) {
    EXPECT_TRUE(s.timers.Cancel(tx, a));
    EXPECT_FALSE(s.timers.Cancel(tx, a));
    EXPECT_FALSE(s.timers.Cancel(tx, "nobody"));
  });
  EXPECT_EQ(s.timers.statistics().armed, 1U);
  clock.Advance(1010ms);
  EXPECT_THAT(s.told.Await(1), ElementsAre(b));
  EXPECT_EQ(s.Effects(a), 0);
}

TEST_F(TimersTest, AHandlerMayCancelOrReplaceItsOwn) {
  TimerServer* self = nullptr;
  TimerServer& s = Open({.extra = [&](Transaction& tx, TimerContext& t) {
    if (t.happened_times() == 1) {
      EXPECT_TRUE(self->timers.Cancel(tx, std::string(t.id())));
    }
    if (t.id() == "named") {
      EXPECT_TRUE(self->timers
                      .ScheduleNamed(tx, "named", TimerSpec::After("count", 60s),
                                     Timers::Existing::kReplaceHere)
                      .value());
    }
    return result_code::kSuccess;
  }});
  self = &s;
  const std::string id = s.Schedule(TimerSpec::Every("count", 1s, 1s));
  s.Call([&](Transaction& tx) {
    EXPECT_TRUE(s.timers.ScheduleNamed(tx, "named", TimerSpec::Every("count", 1s, 1s)).value());
  });
  clock.Advance(1010ms);
  s.told.Await(2);
  EXPECT_EQ(s.Find("named")->next_time_ms, Now() + 60'000);
  EXPECT_EQ(s.Find("named")->happened_times, 0);
  clock.Advance(1000ms);
  s.told.Await(3);
  EXPECT_FALSE(s.Find(id));
}

TEST_F(TimersTest, Seed002OfANameThereIsOneAndTheSecondIsRefused) {
  TimerServer& s = Open();
  s.Call([&](Transaction& tx) {
    const TimerSpec spec = TimerSpec::After("count", 10s);
    EXPECT_TRUE(s.timers.ScheduleNamed(tx, "reset", spec).value());
    EXPECT_FALSE(s.timers.ScheduleNamed(tx, "reset", spec).value());
    EXPECT_TRUE(s.timers
                    .ScheduleNamed(tx, "reset", TimerSpec::After("count", 20s),
                                   Timers::Existing::kReplaceHere)
                    .value());
  });
  EXPECT_EQ(s.Find("reset")->next_time_ms, Now() + 20'000);
  EXPECT_EQ(s.timers.statistics().armed, 1U);
}

TEST_F(TimersTest, TheSameCronTimerIsLeftAlone) {
  TimerServer& s = Open();
  const auto schedule = [&](const std::string& cron) {
    s.Call([&](Transaction& tx) {
      EXPECT_TRUE(s.timers
                      .ScheduleNamed(tx, "reset", TimerSpec::Cron("count", cron),
                                     Timers::Existing::kReplaceHere)
                      .value());
    });
    return s.timers.tIndexs.ReadCopy("reset").value()->SerialId;
  };
  const std::int64_t first = schedule("0 0 5 * * ?");
  EXPECT_EQ(schedule("0 0 5 * * ?"), first);
  EXPECT_NE(schedule("0 0 6 * * ?"), first);
}

// The peer's helper for weeks makes an expression that it rejects itself.
TEST_F(TimersTest, PeerDefect27AWeeklyExpressionWithoutAQuestionMarkWorks) {
  TimerServer& s = Open();
  const std::string id = s.Schedule(TimerSpec::Cron("count", "0 0 5 * * 2", "UTC"));
  EXPECT_EQ(s.Find(id)->next_time_ms, Now() + 5 * 3'600'000);  // 2024-01-01 was a Monday.
}

TEST_F(TimersTest, RefusesWhatCannotBe) {
  TimerServer& s = Open();
  s.Call([&](Transaction& tx) {
    const auto why = [&](const TimerSpec& spec) {
      const Result<std::string> scheduled = s.timers.Schedule(tx, spec);
      return scheduled.ok() ? "" : scheduled.error().message();
    };
    EXPECT_THAT(why(TimerSpec::After("nobody", 1s)), HasSubstr("no handler \"nobody\""));
    EXPECT_THAT(why(TimerSpec::After("count", -1s)), HasSubstr("a delay of -1000 ms"));
    EXPECT_THAT(why(TimerSpec::Every("count", 1s, -1s)), HasSubstr("a period of -1000 ms"));
    EXPECT_THAT(why(TimerSpec::Every("count", 1s, 0s)), HasSubstr("a period of 0 ms"));
    EXPECT_THAT(why(TimerSpec::Cron("count", "0 0 0 1 1 ? 1999")), HasSubstr("never happens"));
    EXPECT_NE(why(TimerSpec::Cron("count", "what")), "");
    TimerSpec spec = TimerSpec::After("count", 1s);
    spec.times = 0;
    EXPECT_THAT(why(spec), HasSubstr("0 times"));
    spec.times = 1;
    spec.end_time_ms = 1;
    EXPECT_THAT(why(spec), HasSubstr("it ends at 1"));
    spec = TimerSpec::Cron("count", "0 0 5 * * ?");
    spec.period = 1s;
    EXPECT_THAT(why(spec), HasSubstr("only one of the two"));
    EXPECT_FALSE(s.timers.ScheduleNamed(tx, "@x", TimerSpec::After("count", 1s)).ok());
    EXPECT_FALSE(s.timers.ScheduleNamed(tx, "", TimerSpec::After("count", 1s)).ok());
  });
  EXPECT_EQ(s.timers.statistics().armed, 0U);
}

TEST_F(TimersTest, AHandlerThatFailsIsTriedAgainThenParked) {
  std::atomic<int> runs = 0;
  Told parked;
  TimersOptions options{.retries = 2, .retry_delay = 1s};
  options.on_parked = [&](const TimerInfo& timer, std::int64_t code) {
    parked.Add(timer.id + " " + std::to_string(code));
  };
  std::atomic<bool> works = false;
  Told tried;
  TimerServer& s = Open({.timers = options, .extra = [&](Transaction& tx, TimerContext& t) {
                           ++runs;
                           tx.AfterRollback([&] { tried.Add("tried"); });
                           if (!works && t.failed_times() == 1) throw std::runtime_error("broken");
                           return works ? result_code::kSuccess : result_code::kLogicError;
                         }});
  testing::CapturedLog log;
  const std::string id = s.Schedule(TimerSpec::Every("count", 1s, 60s));
  const std::int64_t planned = s.Find(id)->next_time_ms;
  clock.Advance(1010ms);
  tried.Await(1);
  while (s.Find(id)->failed_times != 1) {
  }
  EXPECT_EQ(s.Find(id)->next_time_ms, Now() + 1000);
  while (s.timers.statistics().armed == 0) {
  }
  clock.Advance(1010ms);
  tried.Await(2);
  while (s.timers.statistics().armed == 0) {
  }
  EXPECT_EQ(s.Find(id)->next_time_ms, Now() + 2000);
  clock.Advance(2010ms);
  EXPECT_THAT(parked.Await(1), ElementsAre(id + " -6"));
  EXPECT_TRUE(s.Find(id)->parked);
  EXPECT_EQ(s.Effects(id), 0);  // What it did was undone.
  EXPECT_EQ(runs, 3);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("is parked: its handler \"count\" failed 3 times")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("timer " + id + ", handler \"count\": broken")));

  works = true;
  s.Call([&](Transaction& tx) {
    EXPECT_TRUE(s.timers.Resume(tx, id));
    EXPECT_FALSE(s.timers.Resume(tx, id));
  });
  s.told.Await(1);
  EXPECT_EQ(s.Effects(id), 1);
  EXPECT_EQ(s.Find(id)->next_time_ms, planned + 60'000);
}

// Whoever was not there when it was parked finds it.
TEST_F(TimersTest, AWalkGivesEveryTimerAlsoThoseThatAreParked) {
  std::atomic<bool> works = false;
  const TimerSetup setup{.timers = {.retries = 0}, .extra = [&](Transaction&, TimerContext& t) {
                           const bool fails = !works && t.id() == "broken";
                           return fails ? result_code::kLogicError : result_code::kSuccess;
                         }};
  TimerServer* s = &Open(setup);
  for (int i = 0; i < 120; ++i) s->Schedule(TimerSpec::After("count", 1h));  // Several nodes.
  s->Call([&](Transaction& tx) {
    EXPECT_TRUE(s->timers.ScheduleNamed(tx, "broken", TimerSpec::After("count", 1s)).value());
  });
  clock.Advance(1010ms);
  while (s->timers.statistics().parked == 0) std::this_thread::yield();
  s->Stop();
  s = &Open(setup);

  works = true;
  std::vector<std::string> parked;
  const Result<std::size_t> walked = s->timers.Walk([&](const TimerInfo& timer) {
    EXPECT_EQ(timer.handler, "count");
    EXPECT_EQ(timer.server_id, 1);
    if (!timer.parked) return true;
    parked.push_back(timer.id);
    s->Call([&](Transaction& tx) { EXPECT_TRUE(s->timers.Resume(tx, timer.id)); });
    return true;
  });
  EXPECT_EQ(walked.value(), 121U);
  EXPECT_THAT(parked, ElementsAre("broken"));
  s->told.Await(1);
  EXPECT_EQ(s->Effects("broken"), 1);
  EXPECT_EQ(s->timers.Walk([](const TimerInfo&) { return false; }).value(), 1U);
}

// The peer cancels a timer whose transaction fails, whatever the reason.
TEST_F(TimersTest, PeerDefect27AnInfrastructureFailureCancelsNothing) {
  std::atomic<int> runs = 0;
  TimerServer& s = Open({.extra = [&](Transaction& tx, TimerContext&) -> std::int64_t {
    switch (runs++) {
      case 0:
        return result_code::kBusy;
      case 1:
        tx.AbortFailed(result_code::kAbortException, "the lease of this server has expired");
      case 2:
        return result_code::kTimeout;
      default:
        return result_code::kSuccess;
    }
  }});
  const std::string id = s.Schedule(TimerSpec::After("count", 1s));
  clock.Advance(1010ms);
  while (s.told.count() == 0) {
    clock.Advance(10ms);
    std::this_thread::yield();
  }
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(s.Effects(id), 1);
  EXPECT_EQ(s.timers.statistics().failed, 0U);
  EXPECT_EQ(s.timers.statistics().put_off, 3U);
}

// That of a call to somebody whose connection broke, as a handler may return it.
TEST_F(TimersTest, AHandlerThatSaysClosedIsTriedAgain) {
  std::atomic<int> runs = 0;
  TimerServer& s = Open({.extra = [&](Transaction&, TimerContext&) -> std::int64_t {
    return runs++ == 0 ? result_code::kClosed : result_code::kSuccess;
  }});
  const std::string id = s.Schedule(TimerSpec::After("count", 1s));
  clock.Advance(1010ms);
  for (int i = 0; s.told.count() == 0 && i < 100'000; ++i) {
    clock.Advance(1ms);
    std::this_thread::yield();
  }
  EXPECT_EQ(s.Effects(id), 1);
  EXPECT_EQ(s.timers.statistics().put_off, 1U);
}

// Two alarms of one occurrence, as of a server that has loaded its ring anew, or of one that has
// taken it over: one of them counts.
TEST_F(TimersTest, AnOccurrenceThatIsDueTwiceRunsOnce) {
  Mutex mutex;
  CondVar changed;
  int entered = 0;
  bool released = false;
  TimerServer& s = Open({.extra = [&](Transaction&, TimerContext&) {
    const MutexLock lock(mutex);
    ++entered;
    changed.NotifyAll();
    while (!released) changed.Wait(mutex);
    return result_code::kSuccess;
  }});
  const std::string id = s.Schedule(TimerSpec::Every("count", 10s, 10s));
  clock.Advance(10010ms);
  {
    const MutexLock lock(mutex);
    while (entered == 0) changed.Wait(mutex);
  }
  // The first run has seen the timer, and waits. The second one is faster.
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {
    s.effects.GetOrAdd(tx, id)->NextId += 1;
    s.timers.tNodes.Edit(tx, s.timers.tIndexs.Get(tx, id)->NodeId)
        ->Timers.Update(id, [&](TimerBean& timer) {
          EXPECT_TRUE(AdvanceTimer(timer, Now(), 1000));
          timer.ConcurrentFireSerialNo += 1;
        });
  }));
  {
    const MutexLock lock(mutex);
    released = true;
    changed.NotifyAll();
  }
  while (s.timers.statistics().armed == 0) std::this_thread::yield();  // It has ended.
  EXPECT_EQ(entered, 1);
  EXPECT_EQ(s.Effects(id), 1);
  EXPECT_EQ(s.Find(id)->happened_times, 1);
}

TEST_F(TimersTest, OneByOneOfAKey) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  TimerServer& s = Open({.extra = [&](Transaction&, TimerContext&) {
    const int now = ++running;
    if (now > most) most = now;
    std::this_thread::yield();
    --running;
    return result_code::kSuccess;
  }});
  TimerSpec spec = TimerSpec::After("count", 1s);
  spec.one_by_one_key = "clan 7";
  for (int i = 0; i < 200; ++i) s.Schedule(spec);
  clock.Advance(1010ms);
  s.told.Await(200);
  EXPECT_EQ(most, 1);
}

TEST_F(TimersTest, EmptyNodesAreUsedAgainOrLeaveTheRing) {
  TimersOptions options{.timers_per_node = 3};
  TimerServer& s = Open({.timers = options});
  for (int i = 0; i < 600; ++i) s.Schedule(TimerSpec::After("count", 1s));
  clock.Advance(1010ms);
  s.told.Await(600);
  ASSERT_TRUE(s.timers.AwaitLoaded(20s));
  const auto nodes = [&] {
    std::size_t count = 0;
    EXPECT_TRUE(s.timers.tNodes.Walk([&](auto, const auto&) { return ++count > 0; }).ok());
    return count;
  };
  EXPECT_LE(nodes(), 70U);
  const std::size_t before = nodes();
  for (int i = 0; i < 60; ++i) s.Schedule(TimerSpec::After("count", 1s));
  EXPECT_EQ(nodes(), before);
}

TEST_F(TimersTest, EmptyNodesAreUsedAgainAfterARestart) {
  for (int life = 0; life < 3; ++life) {
    Open({.timers = {.timers_per_node = 3}});
    for (int i = 0; i < 60; ++i) server->Schedule(TimerSpec::After("count", 1s));
    clock.Advance(1010ms);
    server->told.Await(60);
    std::size_t nodes = 0;
    EXPECT_TRUE(server->timers.tNodes.Walk([&](auto, const auto&) { return ++nodes > 0; }).ok());
    EXPECT_LE(nodes, 20U);
    server->Stop();
  }
}

// A megabyte each would make records of 50 MB, which each run of each of them writes.
TEST_F(TimersTest, NodesAreBoundedInBytes) {
  const auto data = [](std::size_t bytes) {
    return AnyBean::Of(Zeze::Builtin::AutoKey::BSeedKey{.KeyName = std::string(bytes, 'x')});
  };
  std::atomic<bool> grows = false;
  TimerServer* s = &Open({.extra = [&](Transaction&, TimerContext& timer) {
    if (grows) timer.SetData(data(1'000'000));
    return result_code::kSuccess;
  }});
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(s->Schedule(TimerSpec::Every("count", 1h, 1h, data(1'000'000))));
    ids.push_back(s->Schedule(TimerSpec::Every("count", 1h, 1h, data(5000))));
    ids.push_back(s->Schedule(TimerSpec::Every("count", 1s, 1s, data(10))));
  }
  const auto check = [&] {
    std::size_t most = 0;
    s->timers.tNodes.WalkCache([&](auto, const auto& node) {
      std::size_t bytes = 0;
      for (const auto& [id, timer] : node.Timers) bytes += timer.CustomData.bytes().size();
      if (node.Timers.size() > 1) most = std::max(most, bytes);
      return true;
    });
    EXPECT_LE(most, 64U * 1024);
  };
  check();
  grows = true;
  clock.Advance(1010ms);
  s->told.Await(20);
  check();
  for (const std::string& id : ids) {
    s->Call([&](Transaction& tx) { EXPECT_TRUE(s->timers.SetData(tx, id, data(40'000))); });
  }
  check();
  s->Stop();
  s = &Open();
  EXPECT_EQ(s->timers.statistics().armed, ids.size());
  for (const std::string& id : ids) EXPECT_GT(s->Find(id)->data.bytes().size(), 40'000U);
}

// What the handler called, or what is inside of the timer, is not there yet: that may change.
TEST_F(TimersTest, AHandlerThatSaysNotImplementedIsTriedAgain) {
  std::atomic<int> runs = 0;
  TimerServer& s = Open({.extra = [&](Transaction&, TimerContext&) -> std::int64_t {
    return runs++ < 3 ? result_code::kNotImplement : result_code::kSuccess;
  }});
  const std::string id = s.Schedule(TimerSpec::After("count", 1s));
  clock.Advance(1010ms);
  for (int i = 0; s.told.count() == 0 && i < 100'000; ++i) {
    clock.Advance(10ms);
    std::this_thread::yield();
  }
  EXPECT_EQ(s.Effects(id), 1);
  EXPECT_EQ(s.timers.statistics().put_off, 3U);
  EXPECT_EQ(s.timers.statistics().failed, 0U);
}

TEST_F(TimersTest, LocalTimersAreInMemoryOnly) {
  TimerServer& s = Open();
  Told told;
  const std::int64_t canceled = s.timers.ScheduleLocal(1s, [&] { told.Add("no"); });
  s.timers.ScheduleLocal(1s, [&] { told.Add("yes"); });
  EXPECT_TRUE(s.timers.CancelLocal(canceled));
  EXPECT_FALSE(s.timers.CancelLocal(canceled));
  clock.Advance(1010ms);
  EXPECT_THAT(told.Await(1), ElementsAre("yes"));
}

TEST_F(TimersTest, ALocalTimerThatThrowsHoldsNothingUp) {
  TimerServer& s = Open({.timers = {.running_max = 1}});
  testing::CapturedLog log;
  for (int i = 0; i < 3; ++i) {
    s.timers.ScheduleLocal(1s, Task([] { throw std::runtime_error("no good"); }));
  }
  s.Schedule(TimerSpec::After("count", 1s));
  clock.Advance(1010ms);
  s.told.Await(1);
  clock.Advance(1s);
  s.Schedule(TimerSpec::After("count", 1s));
  clock.Advance(1010ms);
  s.told.Await(2);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("no good")));
}

TEST_F(TimersTest, ALocalTimerThatIsSetAgainCountsOnce) {
  TimerServer& s = Open();
  Told told;
  const std::int64_t local_timer = s.timers.NewLocal();
  s.timers.SetLocal(local_timer, Now() + 1000, [&] { told.Add("first"); });
  s.timers.SetLocal(local_timer, Now() + 2000, [&] { told.Add("second"); });
  clock.Advance(2010ms);
  EXPECT_THAT(told.Await(1), ElementsAre("second"));
}

TEST_F(TimersTest, DataCanBeReplaced) {
  std::atomic<std::int64_t> seen = 0;
  TimerServer& s = Open({.extra = [&](Transaction&, TimerContext& timer) -> std::int64_t {
    seen = timer.data().As<BCount>()->NextId;
    return 0;
  }});
  const std::string id = s.Schedule(TimerSpec::After("count", 1s, AnyBean::Of(BCount{})));
  EXPECT_EQ(0, s.Call([&](Transaction& tx) {
    EXPECT_TRUE(s.timers.SetData(tx, id, AnyBean::Of(BCount{.NextId = 7})));
    EXPECT_FALSE(s.timers.SetData(tx, "@none", {}));
  }));
  clock.Advance(1010ms);
  s.told.Await(1);
  EXPECT_EQ(seen, 7);
}

TEST_F(TimersTest, AHandlerKnowsTheLastTime) {
  Told lasts;
  TimerServer& s = Open({.extra = [&](Transaction& tx, TimerContext& timer) -> std::int64_t {
    tx.AfterCommit([&, last = timer.last_time()] { lasts.Add(last ? "last" : "more"); });
    return 0;
  }});
  TimerSpec spec = TimerSpec::Every("count", 1s, 1s);
  spec.times = 2;
  s.Schedule(spec);
  clock.Advance(1010ms);
  lasts.Await(1);
  clock.Advance(1s);
  EXPECT_THAT(lasts.Await(2), ElementsAre("more", "last"));
}

TEST_F(TimersTest, ThreadsScheduleAndCancelWhileOthersRun) {
  TimerServer& s = Open({.timers = {.timers_per_node = 5}});
  std::vector<std::thread> threads;
  std::atomic<int> kept = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const std::string id = s.Schedule(TimerSpec::After("count", std::chrono::milliseconds(i)));
        if (i % 3 == 0) {
          bool cancelled = false;
          EXPECT_EQ(0, s.Call([&](Transaction& tx) { cancelled = s.timers.Cancel(tx, id); }));
          if (cancelled) continue;
        }
        ++kept;
        if (i % 10 == 0) clock.Advance(1ms);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  clock.Advance(1s);
  const std::vector<std::string> ran = s.told.Await(static_cast<std::size_t>(kept));
  EXPECT_EQ(std::set<std::string>(ran.begin(), ran.end()).size(), ran.size());
  EXPECT_EQ(ran.size(), static_cast<std::size_t>(kept));
}

TEST(TimersSetUp, SlipsAreRefusedWithASentence) {
  AutoKeys keys;
  Timers timers(keys);
  const TimerHandler nothing = [](Transaction&, TimerContext&) { return result_code::kSuccess; };
  EXPECT_THROW(timers.RegisterHandler("", nothing), UsageError);
  EXPECT_THROW(timers.RegisterHandler("empty", {}), UsageError);
  timers.RegisterHandler("once", nothing);
  EXPECT_THROW(timers.RegisterHandler("once", nothing), UsageError);
  EXPECT_THROW(timers.ScheduleLocal(1s, [] {}), UsageError);
  EXPECT_THROW(timers.SetLocal(1, 1, [] {}), UsageError);
  EXPECT_THROW(timers.CancelLocal(1), UsageError);
  EXPECT_THROW(timers.AwaitLoaded(1s), UsageError);

  auto application = Application::Open("timers", {.storage = {.url = "memory:"}}).value();
  application->AddModule(keys);
  ASSERT_TRUE(application->Start().ok());
  testing::CapturedLog log;
  EXPECT_EQ(result_code::kException,
            application->Call("the module was never added", [&](Transaction& tx) -> std::int64_t {
              static_cast<void>(timers.Schedule(tx, TimerSpec::After("once", 1s)).ok());
              return result_code::kSuccess;
            }));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("the timers have not started: add the module")));
}

TEST(TimersSetUp, StartNamesAnOptionThatIsOutOfRange) {
  const auto refused = [](TimersOptions options) {
    AutoKeys keys;
    Timers timers(keys, std::move(options));
    auto application = Application::Open("timers", {.storage = {.url = "memory:"}}).value();
    application->AddModule(keys);
    application->AddModule(timers);
    const Result<void> started = application->Start();
    return started.ok() ? "started" : started.error().message();
  };
  EXPECT_THAT(refused({.timers_per_node = 0}), HasSubstr("timers_per_node is 0: set at least 1"));
  EXPECT_THAT(refused({.node_bytes_max = 0}), HasSubstr("node_bytes_max is 0: set at least 1"));
  EXPECT_THAT(refused({.retries = -1}), HasSubstr("retries is -1: set 0 or more"));
  EXPECT_THAT(refused({.running_max = 0}), HasSubstr("running_max is 0: set at least 1"));
}

TEST_F(TimersTest, WhatComesTooLateOrIsEmptyIsRefused) {
  Open();
  EXPECT_THROW(
      server->timers.RegisterHandler("late", [](Transaction&, TimerContext&) { return 0; }),
      UsageError);
  EXPECT_THROW(server->timers.ScheduleLocal(1s, {}), UsageError);
}

TEST_F(TimersTest, NeedsAutoKeys) {
  AutoKeys keys;
  Timers timers(keys);
  auto opened = Application::Open("test", {.storage = {.url = "memory:"}});
  opened.value()->AddModule(timers);
  EXPECT_THAT(opened.value()->Start().error().message(), HasSubstr("need the module AutoKeys"));
}

}  // namespace
}  // namespace zeze
