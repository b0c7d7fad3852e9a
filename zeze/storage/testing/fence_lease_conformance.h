// The part of fence_conformance.h about leases: how long an epoch that has lost its rights is
// listed, and what each epoch said of its lease (holes 26 and 31).

#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/fence.h"
#include "zeze/storage/testing/fenced_home.h"

namespace zeze {

// Hole 26.
TEST_P(FenceConformanceTest, ListsFencedEpochsUntilTheirLeaseIsOver) {
  Open()->Start(7);
  auto second = Open();
  second->Start(7);
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  ASSERT_TRUE(global->fence().Evict(7, 2, 0, term, {}).ok());
  ASSERT_TRUE(global->fence().Evict(7, 2, 0, term, {}).ok());
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "", true}, {7, 2, "", true}}));

  EXPECT_TRUE(global->fence().LeaseOver(7, 1).ok());
  EXPECT_EQ(global->fence().ListLive().value(), (std::vector<LiveServer>{{7, 2, "", true}}));
  EXPECT_TRUE(global->fence().LeaseOver(7, 2).ok());
  EXPECT_TRUE(global->fence().LeaseOver(7, 2).ok());
  EXPECT_TRUE(global->fence().ListLive().value().empty());
}

// Hole 31. Each epoch has its own: processes of one id are not always started alike, and some do
// not say theirs.
TEST_P(FenceConformanceTest, ListsTheLeaseThatEachEpochSaid) {
  constexpr std::chrono::milliseconds kLong(20'000);
  constexpr std::chrono::milliseconds kShort(3'000);
  constexpr std::chrono::milliseconds kUnsaid(0);
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  Open()->Start(7, kLong);
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "holder 7", false, kLong}}));

  Open()->Start(7, kShort);
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "", true, kLong}, {7, 2, "holder 7", false, kShort}}));

  ASSERT_TRUE(global->fence().Evict(7, 2, 0, term, {}).ok());
  auto unsaid = Open();
  unsaid->Start(7);
  EXPECT_EQ(
      global->fence().ListLive().value(),
      (std::vector<LiveServer>{
          {7, 1, "", true, kLong}, {7, 2, "", true, kShort}, {7, 4, "holder 7", false, kUnsaid}}));

  EXPECT_TRUE(global->fence().LeaseOver(7, 1).ok());
  EXPECT_TRUE(unsaid->fence().Finish().ok());
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 2, "", true, kShort}}));
}

TEST_P(FenceConformanceTest, KeepsTheLeaseOfAFencedEpochThatWantsToFinish) {
  constexpr std::chrono::milliseconds kLease(20'000);
  auto server = Open();
  server->Start(7, kLease);
  auto global = Open();
  ASSERT_TRUE(global->fence().Evict(7, 1, 0, global->RaiseTerm(0), {}).ok());

  EXPECT_EQ(FencedProcess::Outcome(server->fence().Finish()), "fenced");
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "", true, kLease}}));
}

TEST_P(FenceConformanceTest, GoesOnWithWhatAnEarlierBuildMade) {
  constexpr std::chrono::milliseconds kLease(20'000);
  auto of_earlier_build = Open();
  of_earlier_build->Start(7);
  auto fenced = Open();
  fenced->Start(8);
  ASSERT_TRUE(fenced->fence().Evict(8, 1, 0, fenced->RaiseTerm(0), {}).ok());
  if (!home_->BecomeOld()) GTEST_SKIP() << "this database has nothing of an earlier build";

  auto server = Open();
  server->Start(9, kLease);
  EXPECT_EQ(server->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "holder 7", false},
                                     {8, 1, "", true, std::chrono::milliseconds(0), -1},
                                     {9, 1, "holder 9", false, kLease}}));
  EXPECT_EQ(of_earlier_build->FlushOutcome("k", "v"), "ok");
  EXPECT_TRUE(of_earlier_build->fence().Renew().ok());
  EXPECT_TRUE(server->fence().LeaseOver(8, 1).ok());
  EXPECT_TRUE(server->fence().Finish().ok());
  EXPECT_EQ(of_earlier_build->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "holder 7", false, std::chrono::milliseconds(0), 1}}));
}

}  // namespace zeze
