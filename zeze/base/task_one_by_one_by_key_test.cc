// Two kinds of test: with a ManualExecutor, where the test chooses what runs when, for everything
// that can be said exactly; with real threads for what only threads can show. The latter are the
// ones that the tsan preset is for.

#include "zeze/base/task_one_by_one_by_key.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <latch>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_executor.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/usage_error.h"

namespace zeze {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ManualExecutor;
using Pending = TaskOneByOneByKey::Pending;

template <typename Key>
void MustPost(TaskOneByOneByKey& serial, const Key& key, Task task) {
  const auto posted = serial.Post(key, std::move(task));
  ASSERT_TRUE(posted.ok()) << posted.error().message();
}

TEST(TaskOneByOneByKey, RunsTasksOfOneKeyInOrder) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});
  const std::string account = "alice";
  std::vector<int> ran;

  for (int i = 1; i <= 3; ++i) MustPost(serial, account, [&ran, i] { ran.push_back(i); });
  executor.RunAll();

  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

TEST(TaskOneByOneByKey, OccupiesOneThreadPerBusyKey) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});

  for (int i = 0; i < 100; ++i) MustPost(serial, 7, [] {});

  EXPECT_EQ(executor.size(), 1u);
  executor.RunAll();
}

TEST(TaskOneByOneByKey, TaskPostedByATaskRunsAfterItAndAfterOtherKeys) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});
  std::vector<std::string> ran;

  MustPost(serial, 1, [&] {
    ran.emplace_back("first");
    MustPost(serial, 1, [&] { ran.emplace_back("follow-up"); });
  });
  MustPost(serial, 2, [&] { ran.emplace_back("other key"); });
  executor.RunAll();

  EXPECT_THAT(ran, ElementsAre("first", "other key", "follow-up"));
}

TEST(TaskOneByOneByKey, TaskCanOwnMoveOnlyState) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});
  int seen = 0;

  MustPost(serial, 1, [value = std::make_unique<int>(42), &seen] { seen = *value; });
  executor.RunAll();

  EXPECT_EQ(seen, 42);
}

TEST(TaskOneByOneByKey, ThrowingTaskIsReportedAndDoesNotStopItsLane) {
  ManualExecutor executor;
  int errors = 0;
  TaskOneByOneByKey serial(executor,
                           {.on_task_error = [&](const char*, const auto&) { ++errors; }});
  bool ran = false;

  MustPost(serial, 1, [] { throw std::runtime_error("boom"); });
  MustPost(serial, 1, [&] { ran = true; });
  executor.RunAll();

  EXPECT_EQ(errors, 1);
  EXPECT_TRUE(ran);
}

TEST(TaskOneByOneByKey, RejectsTasksBeyondTheLaneLimitAndRecovers) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {.lane_length_max = 2});
  MustPost(serial, 1, [] {});
  MustPost(serial, 1, [] {});

  const auto third = serial.Post(1, [] { FAIL() << "a rejected task ran"; });

  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code(), ErrorCode::kOverloaded);
  executor.RunAll();
  MustPost(serial, 1, [] {});
  executor.RunAll();
}

TEST(TaskOneByOneByKey, RejectsTasksAfterShutdown) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});

  serial.Shutdown(Pending::kRun);

  const auto posted = serial.Post(1, [] { FAIL() << "ran after shutdown"; });
  ASSERT_FALSE(posted.ok());
  EXPECT_EQ(posted.error().code(), ErrorCode::kShuttingDown);
}

TEST(TaskOneByOneByKey, ShutdownRunsPendingTasksIfAsked) {
  std::atomic<int> ran = 0;
  ThreadPool pool({.thread_count = 4});
  TaskOneByOneByKey serial(pool, {});
  for (int i = 0; i < 1000; ++i) MustPost(serial, i % 10, [&] { ++ran; });

  serial.Shutdown(Pending::kRun);

  EXPECT_EQ(ran, 1000);
}

TEST(TaskOneByOneByKey, ShutdownWaitsForTheRunningTaskAndDiscardsTheRest) {
  std::latch running(1);
  std::atomic<bool> finished = false;
  ThreadPool pool({.thread_count = 2});
  TaskOneByOneByKey serial(pool, {});
  const auto shutdown_has_begun = [&] {
    const auto posted = serial.Post(2, [] {});
    return !posted.ok() && posted.error().code() == ErrorCode::kShuttingDown;
  };
  MustPost(serial, 1, [&] {
    running.count_down();
    while (!shutdown_has_begun()) std::this_thread::yield();
    finished = true;
  });
  MustPost(serial, 1, [] { FAIL() << "a discarded task ran"; });
  running.wait();

  serial.Shutdown(Pending::kDiscard);

  EXPECT_TRUE(finished);
}

TEST(TaskOneByOneByKey, DifferentKeysRunInParallel) {
  // Each task waits for the other to start: run one after the other, they would never finish.
  // Keys 0 and 1 fall into different lanes.
  std::latch both_running(2);
  ThreadPool pool({.thread_count = 2});
  TaskOneByOneByKey serial(pool, {});

  for (int key : {0, 1}) MustPost(serial, key, [&] { both_running.arrive_and_wait(); });

  serial.Shutdown(Pending::kRun);
}

// Many threads post to few keys. Per key, no two tasks overlap, and the tasks of one poster run in
// the order it posted them. The state is plain, not atomic: an overlap is a data race for tsan.
TEST(TaskOneByOneByKey, KeepsOrderAndExclusionUnderContention) {
  constexpr std::size_t kPosters = 4;
  constexpr std::size_t kKeys = 5;
  constexpr int kTasksPerPoster = 5000;
  struct PerKey {
    std::array<int, kPosters> last_seen{};
    int ran = 0;
  };
  std::array<PerKey, kKeys> state;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  ThreadPool pool({.thread_count = 4});
  TaskOneByOneByKey serial(pool, {.lane_count = 2});  // So that some keys share a lane.

  std::vector<std::thread> posters;
  posters.reserve(kPosters);
  for (std::size_t poster = 0; poster < kPosters; ++poster) {
    posters.emplace_back([&, poster] {
      std::minstd_rand random(seed + static_cast<unsigned>(poster));
      for (int i = 1; i <= kTasksPerPoster; ++i) {
        const std::size_t key = random() % kKeys;
        MustPost(serial, key, [&state, key, poster, i] {
          EXPECT_LT(std::exchange(state[key].last_seen[poster], i), i);
          ++state[key].ran;
        });
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
  serial.Shutdown(Pending::kRun);

  std::size_t ran = 0;
  for (const PerKey& key : state) ran += static_cast<std::size_t>(key.ran);
  EXPECT_EQ(ran, kPosters * kTasksPerPoster);
}

// Batches.

TEST(TaskOneByOneByKey, BatchRunsAfterEarlierAndBeforeLaterTasksOfAllItsKeys) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});
  std::vector<std::string> ran;
  const auto log = [&ran](const char* text) { return [&ran, text] { ran.emplace_back(text); }; };

  MustPost(serial, 1, log("1 before"));
  MustPost(serial, 2, log("2 before"));
  ASSERT_TRUE(serial.PostBatch({1, 2, 1}, log("batch")).ok());
  MustPost(serial, 1, log("1 after"));
  MustPost(serial, 2, log("2 after"));
  executor.RunAll();

  EXPECT_THAT(ran, ElementsAre("1 before", "2 before", "batch", "2 after", "1 after"));
}

TEST(TaskOneByOneByKey, BatchHoldsNoThreadWhileItWaits) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});
  bool ran = false;
  MustPost(serial, 1, [] {});
  ASSERT_TRUE(serial.PostBatch({1, 2}, [&] { ran = true; }).ok());

  executor.RunOne();  // Lane of 1: its task, and it comes to the batch.
  EXPECT_FALSE(ran);
  executor.RunOne();  // Lane of 2 comes to the batch.

  EXPECT_TRUE(ran);
  EXPECT_EQ(executor.size(), 0u);
}

TEST(TaskOneByOneByKey, KeysOfABatchMayShareALane) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {.lane_count = 1});
  int ran = 0;

  ASSERT_TRUE(serial.PostBatch({1, 2, 3}, [&] { ++ran; }).ok());
  executor.RunAll();

  EXPECT_EQ(ran, 1);
}

TEST(TaskOneByOneByKey, BatchIsRejectedAsAWhole) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {.lane_length_max = 1});
  MustPost(serial, 2, [] {});

  const auto full = serial.PostBatch({1, 2}, [] { FAIL() << "a rejected batch ran"; });
  const auto empty = serial.PostBatch(std::vector<int>(), [] { FAIL() << "a rejected batch ran"; });

  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), ErrorCode::kOverloaded);
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(serial.PendingCountApprox(), 1u);
  executor.RunAll();
}

// Random batches over few keys in few lanes, posted by several threads in any order of keys. Every
// task must be alone in its keys (plain state, for tsan), in order per poster, and the whole must
// come to an end, which it would not if two batches waited for each other.
TEST(TaskOneByOneByKey, BatchesOverlapInAnyOrderWithoutDeadlock) {
  constexpr std::size_t kPosters = 3;
  constexpr std::size_t kKeys = 6;
  constexpr int kTasksPerPoster = 3000;
  struct PerKey {
    std::array<int, kPosters> last_seen{};
    int ran = 0;
  };
  std::array<PerKey, kKeys> state;
  std::atomic<int> expected = 0;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  ThreadPool pool({.thread_count = 3});
  TaskOneByOneByKey serial(pool, {.lane_count = 4});

  std::vector<std::thread> posters;
  for (std::size_t poster = 0; poster < kPosters; ++poster) {
    posters.emplace_back([&, poster] {
      std::minstd_rand random(seed + static_cast<unsigned>(poster));
      for (int i = 1; i <= kTasksPerPoster; ++i) {
        std::vector<std::size_t> keys(1 + random() % 3);
        for (std::size_t& key : keys) key = random() % kKeys;
        std::vector<std::size_t> distinct = keys;
        std::sort(distinct.begin(), distinct.end());
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        expected += static_cast<int>(distinct.size());
        const auto posted = serial.PostBatch(keys, [&state, distinct, poster, i] {
          for (const std::size_t key : distinct) {
            EXPECT_LT(std::exchange(state[key].last_seen[poster], i), i);
            ++state[key].ran;
          }
        });
        ASSERT_TRUE(posted.ok()) << posted.error().message();
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
  serial.Shutdown(Pending::kRun);

  int ran = 0;
  for (const PerKey& key : state) ran += key.ran;
  EXPECT_EQ(ran, expected);
}

// Cancelling.

TEST(TaskOneByOneByKey, CancelDestroysTheWaitingTasksOfOneKey) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {.lane_count = 1});  // So that both keys share it.
  const auto witness = std::make_shared<int>(0);
  int others = 0;
  for (int i = 0; i < 3; ++i) {
    MustPost(serial, 1, [witness] { FAIL() << "a canceled task ran"; });
    MustPost(serial, 2, [&] { ++others; });
  }
  ASSERT_TRUE(serial.PostBatch({1, 2}, [witness] { FAIL() << "a canceled batch ran"; }).ok());

  EXPECT_EQ(serial.Cancel(1), 4u);
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_EQ(serial.Cancel(1), 0u);
  executor.RunAll();

  EXPECT_EQ(others, 3);
}

TEST(TaskOneByOneByKey, CanceledBatchThatALaneStandsAtLetsTheLaneGoOn) {
  for (const int canceled : {1, 2}) {
    ManualExecutor executor;
    TaskOneByOneByKey serial(executor, {});
    bool ran = false;
    ASSERT_TRUE(serial.PostBatch({1, 2}, [] { FAIL() << "a canceled batch ran"; }).ok());
    MustPost(serial, 3 - canceled, [&] { ran = true; });
    executor.RunOne();

    EXPECT_EQ(serial.Cancel(canceled), 1u);
    executor.RunAll();

    EXPECT_TRUE(ran);
  }
}

TEST(TaskOneByOneByKey, CanceledAndRunTasksAddUp) {
  constexpr int kTasks = 20000;
  std::atomic<int> ran = 0;
  std::size_t canceled = 0;
  ThreadPool pool({.thread_count = 2});
  TaskOneByOneByKey serial(pool, {.lane_count = 4});

  for (int i = 0; i < kTasks; ++i) {
    if (i % 3 == 0) {
      ASSERT_TRUE(serial.PostBatch({i % 5, i % 7}, [&] { ++ran; }).ok());
    } else {
      MustPost(serial, i % 5, [&] { ++ran; });
    }
    if (i % 10 == 0) canceled += serial.Cancel(i % 5);
  }
  serial.Shutdown(Pending::kRun);

  EXPECT_EQ(static_cast<std::size_t>(ran) + canceled, static_cast<std::size_t>(kTasks));
}

// Reports.

TEST(TaskOneByOneByKey, ShutdownReportsEveryTaskItDiscards) {
  testing::CapturedLog log;
  std::vector<std::string> discarded;
  ThreadPool pool({.thread_count = 1});
  TaskOneByOneByKey serial(pool,
                           {.on_discard = [&](const char* name) { discarded.emplace_back(name); }});
  std::latch running(1);
  std::latch release(1);
  MustPost(serial, 1, [&] {
    running.count_down();
    release.wait();
  });
  MustPost(serial, 1, Task("move", [] { FAIL() << "a discarded task ran"; }));
  ASSERT_TRUE(serial.PostBatch({1, 2}, Task("trade", [] { FAIL() << "it ran"; })).ok());
  running.wait();

  const auto stopped = serial.ShutdownWithin(std::chrono::milliseconds(2), Pending::kDiscard);
  release.count_down();
  serial.Shutdown(Pending::kDiscard);

  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().message(), HasSubstr("\"unnamed task\" with 2 tasks behind it"));
  EXPECT_THAT(discarded, ElementsAre("move", "trade"));
  EXPECT_THAT(log.lines(),
              Contains("warning: one-by-one queues discarded 2 waiting tasks at shutdown"));
}

TEST(TaskOneByOneByKey, ThrowingTaskIsLoggedByName) {
  testing::CapturedLog log;
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});

  MustPost(serial, 1, Task("trade", [] { throw std::runtime_error("no gold"); }));
  executor.RunAll();

  EXPECT_THAT(log.lines(), Contains("error: task \"trade\" threw: no gold"));
}

TEST(TaskOneByOneByKey, RefusesEmptyTasksAndQueuesWithoutLanes) {
  ManualExecutor executor;
  EXPECT_THROW(TaskOneByOneByKey(executor, {.lane_count = 0}), UsageError);
  EXPECT_THROW(TaskOneByOneByKey(executor, {.lane_count = ~std::size_t{0}}), UsageError);
  EXPECT_THROW(TaskOneByOneByKey(executor, {.lane_length_max = 0}), UsageError);
  TaskOneByOneByKey serial(executor, {});
  EXPECT_THROW(static_cast<void>(serial.Post(1, {}).ok()), UsageError);
  EXPECT_THROW(static_cast<void>(serial.PostBatch({1, 2}, {}).ok()), UsageError);
  EXPECT_EQ(serial.PendingCountApprox(), 0U);
}

TEST(TaskOneByOneByKeyDeathTest, ShutdownFromATaskIsCaught) {
  ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});
  bool misbehave = false;
  MustPost(serial, 1, [&] {
    if (misbehave) serial.Shutdown(Pending::kRun);
  });

  EXPECT_DEATH(
      {
        misbehave = true;
        executor.RunAll();
      },
      "check failed: running_on_this_thread != this");
  executor.RunAll();
}

}  // namespace
}  // namespace zeze
