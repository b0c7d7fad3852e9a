#include "zeze/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "zeze/base/activity.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/address_space_limit.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/usage_error.h"
#include "zeze/base/wait_group.h"
#include "zeze/base/watchdog.h"

namespace zeze {
namespace {

using testing::AddressSpaceLimit;
using testing::CanLimitAddressSpace;
using testing::CapturedLog;
using ::testing::Contains;
using testing::CountThreads;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ManualClock;
using ::testing::SizeIs;
using Pending = ThreadPool::Pending;

TEST(ThreadPool, RunsEveryTask) {
  ThreadPool pool({.thread_count = 3});
  std::atomic<int> ran = 0;
  WaitGroup group(1000);

  for (int i = 0; i < 1000; ++i) {
    pool.Post([&] {
      ++ran;
      group.Done();
    });
  }
  group.Wait();

  EXPECT_EQ(ran, 1000);
}

TEST(ThreadPool, OneThreadKeepsTheOrder) {
  ThreadPool pool({.thread_count = 1});
  std::vector<int> ran;
  std::latch start(1);

  pool.Post([&] { start.wait(); });
  // More than the ring holds, so that some overflow.
  for (int i = 0; i < 5000; ++i) pool.Post([&ran, i] { ran.push_back(i); });
  start.count_down();
  pool.Shutdown(Pending::kRun);

  ASSERT_THAT(ran, SizeIs(5000));
  EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
}

TEST(ThreadPool, BlockedTasksDoNotStopOthersAsLongAsAThreadIsLeft) {
  // Each of eight tasks waits for all: with only the eager thread they would never finish.
  constexpr std::size_t kThreads = 8;
  ThreadPool pool({.thread_count = kThreads, .eager_thread_count = 1});
  std::latch all_running(kThreads);

  for (std::size_t i = 0; i < kThreads; ++i) pool.Post([&] { all_running.arrive_and_wait(); });

  pool.Shutdown(Pending::kRun);
}

// Holds up whoever moves it for the second time: into the overflow list, after the test whether
// the ring has room.
class HeldUpOnItsWay {
 public:
  struct State {
    std::atomic<bool> armed = false;
    int moves = 0;
    std::latch arrived{1};
    std::latch release{1};
    std::latch ran{1};
  };

  explicit HeldUpOnItsWay(State& state) : state_(&state) {}
  HeldUpOnItsWay(HeldUpOnItsWay&& other) noexcept : state_(other.state_) {
    if (!state_->armed || ++state_->moves != 2) return;
    state_->arrived.count_down();
    state_->release.wait();
  }
  void operator()() const { state_->ran.count_down(); }

 private:
  State* state_;
};

bool AwaitLatch(const std::latch& latch) {
  const auto deadline = SystemClock().Now() + std::chrono::minutes(1);
  while (!latch.try_wait() && SystemClock().Now() < deadline) std::this_thread::yield();
  return latch.try_wait();
}

// A task reaches the overflow list after the only free thread has emptied the ring and gone to
// sleep.
TEST(ThreadPool, BlockedTasksDoNotStrandWhatOverflowed) {
  ThreadPool pool({.thread_count = 3, .queue_length_max = 2, .eager_thread_count = 2});
  std::latch all_blocked(3);
  std::latch release_two(1);
  std::latch release_one(1);
  for (std::latch* release : {&release_two, &release_two, &release_one}) {
    pool.Post([&all_blocked, release] {
      all_blocked.count_down();
      release->wait();
    });
  }
  all_blocked.wait();
  std::latch ring_ran(2);
  for (int i = 0; i < 2; ++i) pool.Post([&] { ring_ran.count_down(); });
  HeldUpOnItsWay::State late;
  Task task{HeldUpOnItsWay(late)};
  late.armed = true;
  std::thread poster([&] { pool.Post(std::move(task)); });
  late.arrived.wait();
  release_one.count_down();
  ring_ran.wait();
  while (pool.GetStatistics().busy_threads > 2) std::this_thread::yield();

  late.release.count_down();
  poster.join();

  EXPECT_TRUE(AwaitLatch(late.ran)) << "it waits although a thread sleeps";
  release_two.count_down();
  pool.Shutdown(Pending::kRun);
}

// The same by luck, in many ways.
TEST(ThreadPool, ManyPostersRunEverythingBesideBlockedTasks) {
  constexpr int kPosters = 4;
  constexpr int kTasksEach = 5000;
  ThreadPool pool({.thread_count = 60, .eager_thread_count = 2});
  std::latch release(1);
  for (int i = 0; i < 2; ++i) pool.Post([&] { release.wait(); });
  std::latch left(kPosters * kTasksEach);
  std::vector<std::thread> posters;
  for (int t = 0; t < kPosters; ++t) {
    posters.emplace_back([&] {
      for (int i = 0; i < kTasksEach; ++i) pool.Post([&] { left.count_down(); });
    });
  }
  for (std::thread& poster : posters) poster.join();

  EXPECT_TRUE(AwaitLatch(left));
  release.count_down();
  pool.Shutdown(Pending::kRun);
}

TEST(ThreadPool, TheSmallestBoundLosesNoTask) {
  ThreadPool pool({.thread_count = 1, .queue_length_max = 1});
  std::atomic<int> ran = 0;
  std::latch release(1);
  pool.Post([&] { release.wait(); });

  for (int i = 0; i < 10; ++i) pool.Post([&] { ++ran; });
  release.count_down();
  pool.Shutdown(Pending::kRun);

  EXPECT_EQ(ran, 10);
}

TEST(ThreadPool, TaskPostedByABlockedTaskRuns) {
  ThreadPool pool({.thread_count = 2, .eager_thread_count = 1});
  WaitGroup group(1);

  pool.Post([&] {
    std::latch inner_ran(1);
    pool.Post([&] { inner_ran.count_down(); });
    inner_ran.wait();
    group.Done();
  });
  group.Wait();
}

TEST(ThreadPool, RefusesTasksBeyondItsBoundAndRecovers) {
  ThreadPool pool({.name = "small", .thread_count = 1, .queue_length_max = 2});
  std::latch running(1);
  std::latch release(1);
  pool.Post([&] {
    running.count_down();
    release.wait();
  });
  running.wait();

  ASSERT_TRUE(pool.TryPost([] {}).ok());
  ASSERT_TRUE(pool.TryPost([] {}).ok());
  const Result<void> third = pool.TryPost(Task("third", [] { FAIL() << "a refused task ran"; }));
  WaitGroup continuation(1);
  pool.Post([&] { continuation.Done(); });  // Not new work: accepted beyond the bound.
  release.count_down();
  continuation.Wait();

  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code(), ErrorCode::kOverloaded);
  EXPECT_THAT(third.error().message(),
              HasSubstr("thread pool small has 2 tasks waiting, so \"third\""));
  EXPECT_TRUE(pool.TryPost([] {}).ok());
  EXPECT_EQ(pool.GetStatistics().rejected_tasks, 1u);
}

TEST(ThreadPool, RefusesTasksBeyondALargeBound) {
  ThreadPool pool({.thread_count = 1, .queue_length_max = 3000});
  std::latch release(1);
  pool.Post([&] { release.wait(); });

  std::size_t accepted = 0;
  while (accepted < 10'000 && pool.TryPost([] {}).ok()) ++accepted;
  release.count_down();

  EXPECT_GE(accepted, 2900u);
  EXPECT_LE(accepted, 3001u);
}

TEST(ThreadPool, ThrowingTaskIsReportedByNameAndDoesNoHarm) {
  CapturedLog log;
  std::atomic<bool> ran = false;
  {
    ThreadPool pool({.name = "worker", .thread_count = 1});
    pool.Post(Task("trade", [] { throw std::runtime_error("no gold"); }));
    pool.Post([&] { ran = true; });
    pool.Shutdown(Pending::kRun);
  }

  EXPECT_TRUE(ran);
  EXPECT_THAT(log.lines(), Contains("error: task \"trade\" of thread pool worker threw: no gold"));
}

TEST(ThreadPool, ShutdownRunsWhatTasksStillPost) {
  ThreadPool pool({.thread_count = 2});
  std::atomic<int> ran = 0;
  std::function<void(int)> chain = [&](int left) {
    ++ran;
    if (left > 0) pool.Post([&, left] { chain(left - 1); });
  };

  pool.Post([&] { chain(99); });
  pool.Shutdown(Pending::kRun);

  EXPECT_EQ(ran, 100);
}

TEST(ThreadPool, ShutdownReportsEveryTaskItDiscards) {
  CapturedLog log;
  std::vector<std::string> discarded;
  std::latch running(1);
  ThreadPool pool({.name = "worker", .thread_count = 1, .on_discard = [&](const char* name) {
                     discarded.emplace_back(name);
                   }});
  std::atomic<bool> finished = false;
  const auto shutdown_has_begun = [&] { return !pool.TryPost([] {}).ok(); };
  pool.Post([&] {
    running.count_down();
    while (pool.GetStatistics().discarded_tasks < 2) std::this_thread::yield();
    EXPECT_TRUE(shutdown_has_begun());
    finished = true;
  });
  running.wait();
  pool.Post(Task("one", [] { FAIL() << "a discarded task ran"; }));
  pool.Post(Task("two", [] { FAIL() << "a discarded task ran"; }));

  pool.Shutdown(Pending::kDiscard);
  pool.Post(Task("late", [] { FAIL() << "a discarded task ran"; }));

  EXPECT_TRUE(finished);
  EXPECT_THAT(discarded, ElementsAre("one", "two", "late"));
  EXPECT_THAT(
      log.lines(),
      Contains("warning: thread pool worker discarded 2 waiting tasks without running them"));
  const Result<void> refused = pool.TryPost([] {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kShuttingDown);
}

TEST(ThreadPool, ShutdownNamesTheTaskThatDoesNotEnd) {
  ThreadPool pool({.name = "stuck", .thread_count = 2});
  std::latch running(1);
  std::latch release(1);
  pool.Post(Task("endless", [&] {
    running.count_down();
    release.wait();
  }));
  running.wait();

  const Result<void> stopped = pool.ShutdownWithin(std::chrono::milliseconds(5), Pending::kRun);
  release.count_down();

  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(stopped.error().message(), HasSubstr("\"endless\" on thread stuck-"));
  pool.Shutdown(Pending::kRun);
}

// Posters, some of them tasks, race with Shutdown: every task runs or is reported, none twice.
TEST(ThreadPool, LosesNoTaskWhenPostersRaceWithShutdown) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ran = 0;
    std::atomic<int> discarded = 0;
    std::atomic<int> refused = 0;
    constexpr int kPosters = 3;
    constexpr int kTasks = 200;
    {
      ThreadPool pool({.thread_count = 3,
                       .eager_thread_count = 1 + random() % 3,
                       .on_discard = [&](const char*) { ++discarded; }});
      std::vector<std::thread> posters;
      for (int p = 0; p < kPosters; ++p) {
        posters.emplace_back([&] {
          for (int i = 0; i < kTasks; ++i) {
            if (i % 2 == 0) {
              pool.Post([&] { ++ran; });
            } else if (!pool.TryPost([&] { ++ran; }).ok()) {
              ++refused;
            }
          }
        });
      }
      const auto pending = random() % 2 == 0 ? Pending::kRun : Pending::kDiscard;
      for (auto i = random() % 2000; i > 0; --i) std::this_thread::yield();
      pool.Shutdown(pending);
      for (std::thread& poster : posters) poster.join();
    }

    EXPECT_EQ(ran + discarded + refused, kPosters * kTasks);
  }
}

TEST(ThreadPool, DestroysWhatATaskOwnsBeforeShutdownReturns) {
  const auto witness = std::make_shared<int>(1);
  ThreadPool pool({.thread_count = 2});
  for (int i = 0; i < 100; ++i) pool.Post([witness] {});

  pool.Shutdown(Pending::kRun);

  EXPECT_EQ(witness.use_count(), 1);
}

TEST(ThreadPool, RefusesWhatNoPoolCanDo) {
  EXPECT_THROW(ThreadPool({.thread_count = 1, .queue_length_max = 0}), UsageError);
  EXPECT_THROW(ThreadPool({.thread_count = 1, .wake_delay = std::chrono::nanoseconds(0)}),
               UsageError);
  ThreadPool pool({.thread_count = 1});
  EXPECT_THROW(static_cast<void>(pool.TryPost({}).ok()), UsageError);
  EXPECT_THROW(pool.Post({}), UsageError);
  std::atomic<bool> ran = false;
  pool.Post([&] { ran = true; });
  pool.Shutdown(Pending::kRun);
  EXPECT_TRUE(ran);
  EXPECT_THROW(static_cast<void>(pool.TryPost({}).ok()), UsageError) << "whatever its state";
}

TEST(ThreadPool, SaysHowManyThreadsTheMachineGave) {
  if (!CanLimitAddressSpace()) GTEST_SKIP() << "a sanitizer needs the address space";
  const std::size_t threads = CountThreads();
  const AddressSpaceLimit limit(std::size_t{256} << 20);
  try {
    const ThreadPool pool({.name = "many", .thread_count = 10'000});
    FAIL() << "10,000 stacks fit into 256 MiB";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), ::testing::MatchesRegex(
                                  "only [1-9][0-9]* of 10000 threads of thread pool many could be "
                                  "started: .*"));
  }
  EXPECT_EQ(CountThreads(), threads) << "none is left";
}

TEST(ThreadPoolDeathTest, ShutdownFromATaskIsCaught) {
  EXPECT_DEATH(
      {
        ThreadPool pool({.thread_count = 1});
        pool.Post([&] { pool.Shutdown(Pending::kRun); });
        pool.Shutdown(Pending::kRun);
      },
      "check failed: !OnOwnThread");
}

// From here on: what the watchdog sees of running tasks.

TEST(Activity, NamesAreInterned) {
  const std::string made = std::string("made ") + "at run time";

  EXPECT_EQ(InternName(made), InternName("made at run time"));
  EXPECT_STREQ(InternName(made), "made at run time");
}

TEST(Activity, ShowsOuterAndInnermostName) {
  const auto of_this_thread = [] {
    std::vector<std::string> names;
    for (const Activity& activity : RunningActivities()) {
      if (activity.thread_id == gettid()) names = {activity.outer, activity.inner};
    }
    return names;
  };
  EXPECT_THAT(of_this_thread(), IsEmpty());

  const ScopedActivity outer("handle message");
  {
    const ScopedActivity inner("Trade");
    EXPECT_THAT(of_this_thread(), ElementsAre("handle message", "Trade"));
  }

  EXPECT_THAT(of_this_thread(), ElementsAre("handle message", "handle message"));
}

TEST(Watchdog, NamesATaskThatDoesNotEndAndSaysMoreOnlyWhenItDoubles) {
  CapturedLog log;
  ManualClock clock;
  std::vector<LongRunning> reports;
  Watchdog watchdog({.limit = std::chrono::seconds(10),
                     .on_long_running = [&](const LongRunning& r) { reports.push_back(r); },
                     .clock = &clock,
                     .start_thread = false});
  ThreadPool pool({.name = "dog", .thread_count = 1});
  std::latch running(1);
  std::latch release(1);
  pool.Post(Task("handle message", [&] {
    const ScopedActivity procedure("Trade");
    running.count_down();
    release.wait();
  }));
  running.wait();

  watchdog.Look();
  for (int second = 1; second <= 30; ++second) {
    clock.Advance(std::chrono::seconds(1));
    watchdog.Look();
  }
  release.count_down();
  pool.Shutdown(Pending::kRun);

  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_EQ(reports[0].activity, "handle message, now in Trade");
  EXPECT_EQ(reports[0].thread_name, "dog-1");
  EXPECT_EQ(reports[0].duration, std::chrono::seconds(10));
  EXPECT_EQ(reports[1].duration, std::chrono::seconds(20));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("\"handle message, now in Trade\" has been running "
                                              "for 10.0 s on thread dog-1 (id ")));
}

TEST(Watchdog, SaysNothingAboutManyShortTasks) {
  ManualClock clock;
  int reports = 0;
  Watchdog watchdog({.limit = std::chrono::seconds(10),
                     .on_long_running = [&](const LongRunning&) { ++reports; },
                     .clock = &clock,
                     .start_thread = false});

  for (int i = 0; i < 100; ++i) {
    const ScopedActivity activity("short");
    watchdog.Look();
    clock.Advance(std::chrono::seconds(5));
  }

  EXPECT_EQ(reports, 0);
}

TEST(Watchdog, LooksByItselfOnItsOwnThread) {
  WaitGroup reported(1);
  std::atomic<bool> first = true;
  const ScopedActivity activity("slow");

  Watchdog watchdog({.limit = std::chrono::milliseconds(2),
                     .period = std::chrono::milliseconds(1),
                     .on_long_running = [&](const LongRunning& report) {
                       if (report.thread_id == gettid()) return;
                       if (first.exchange(false)) reported.Done();
                     }});

  reported.Wait();
}

}  // namespace
}  // namespace zeze
