// The part of fence_conformance.h about servers that are silent, have ended or have yielded a shard
// (rules 59 to 66).

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/fence.h"
#include "zeze/storage/testing/fenced_home.h"

namespace zeze {

// Rule 60: whoever frees the rights of an epoch compares its renewals with those it has seen.
TEST_P(FenceConformanceTest, ListsTheRenewalsOfFencedEpochs) {
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  auto first = Open();
  first->Start(7);
  ASSERT_TRUE(first->fence().Renew().ok());
  ASSERT_TRUE(first->fence().Renew().ok());
  auto second = Open();
  second->Start(7);
  ASSERT_TRUE(second->fence().Renew().ok());
  ASSERT_EQ(global->fence().Evict(7, 2, 0, term, {}).value(), EvictOutcome::kEvicted);
  constexpr std::chrono::milliseconds kUnsaid(0);
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "", true, kUnsaid, 2}, {7, 2, "", true, kUnsaid, 1}}));

  Open()->Start(7);
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "", true, kUnsaid, 2},
                                     {7, 2, "", true, kUnsaid, 1},
                                     {7, 4, "holder 7", false, kUnsaid, 0}}));
}

// Rule 62.
TEST_P(FenceConformanceTest, NobodyWaitsForAProcessThatHasEndedForCertain) {
  const std::string first(16, '\1');
  const std::string second(16, '\2');
  const auto start = [this](const std::string& incarnation, const std::vector<std::string>& ended) {
    return Open()->fence().Start({.server_id = 7, .incarnation = incarnation, .ended = ended});
  };
  ASSERT_TRUE(start(first, {second}).ok());
  ASSERT_TRUE(start(second, {std::string(16, '\3'), first}).ok());
  auto observer = Open();
  ASSERT_EQ(observer->fence().ListLive().value().size(), 1U);
  EXPECT_EQ(observer->fence().ListLive().value().at(0).epoch, 2);

  // Another process came between.
  ASSERT_TRUE(start("", {first, ""}).ok());
  ASSERT_TRUE(start(first, {first, second, ""}).ok());
  const std::vector<LiveServer> listed = observer->fence().ListLive().value();
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_TRUE(listed.at(0).fenced);
  EXPECT_EQ(listed.at(0).epoch, 2);
  EXPECT_TRUE(listed.at(1).fenced);
  EXPECT_EQ(listed.at(1).epoch, 3);
}

// Rule 61: a server that was only slow is not evicted.
TEST_P(FenceConformanceTest, EvictsNobodyThatHasRenewedItsLease) {
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  auto server = Open();
  const std::int64_t epoch = server->Start(7);
  ASSERT_TRUE(server->fence().Renew().ok());
  ASSERT_TRUE(server->fence().Renew().ok());

  EXPECT_EQ(global->fence().Evict(7, epoch, 0, term, {.renewed_since = 1}).value(),
            EvictOutcome::kRenewed);
  EXPECT_EQ(server->FlushOutcome("k", "v"), "ok");
  EXPECT_EQ(global->fence().Evict(7, epoch, 0, term, {.renewed_since = 2}).value(),
            EvictOutcome::kEvicted);
  EXPECT_EQ(server->FlushOutcome("k", "w"), "fenced");
  EXPECT_EQ(global->fence().Evict(7, epoch, 0, term, {.renewed_since = 1}).value(),
            EvictOutcome::kEvicted);
}

// Rules 64 and 65.
TEST_P(FenceConformanceTest, AServerIsAskedToYieldAndSaysWhenItHas) {
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(2);
  auto server = Open();
  const std::int64_t epoch = server->Start(7);
  EXPECT_TRUE(server->fence().Wanted().value().empty());

  EXPECT_EQ(global->fence().Want(7, epoch, 2, term).value(), true);
  EXPECT_EQ(global->fence().Want(7, epoch + 1, 2, term).value(), true);
  EXPECT_EQ(global->fence().Want(7, epoch, 2, term + 1).value(), false);
  EXPECT_EQ(server->fence().Wanted().value(), (std::map<std::int32_t, std::int64_t>{{2, term}}));

  EXPECT_TRUE(global->fence().Yields(2).value().empty());
  const YieldMark first{.number = 1, .term = term};
  const YieldMark second{.number = 2, .term = term + 1};
  EXPECT_TRUE(server->fence().Yield(2, first).ok());
  EXPECT_EQ(global->fence().Yields(2).value(), (std::vector<YieldedServer>{{7, epoch, first}}));
  EXPECT_TRUE(global->fence().Yields(1).value().empty());
  EXPECT_TRUE(server->fence().Yield(2, second).ok());
  EXPECT_TRUE(server->fence().Yield(2, first).ok());  // A copy that was stuck.
  EXPECT_EQ(global->fence().Yields(2).value(), (std::vector<YieldedServer>{{7, epoch, second}}));

  EXPECT_TRUE(global->fence().Unwant(7, epoch, 2, term - 1).ok());  // Of the Global before.
  EXPECT_EQ(server->fence().Wanted().value().size(), 1U);
  EXPECT_TRUE(global->fence().Unwant(7, epoch, 2, term).ok());
  EXPECT_TRUE(server->fence().Wanted().value().empty());
}

// Rule 66.
TEST_P(FenceConformanceTest, EvictsNobodyThatHasYielded) {
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  auto server = Open();
  const std::int64_t epoch = server->Start(7);
  ASSERT_TRUE(server->fence().Yield(0, {.number = 3, .term = term}).ok());
  const auto evict = [&](std::int64_t number, std::int64_t least_term) {
    return global->fence()
        .Evict(7, epoch, 0, term,
               {.yielded_since = YieldMark{.number = number, .term = least_term}})
        .value();
  };
  EXPECT_EQ(evict(2, 0), EvictOutcome::kYielded);
  EXPECT_EQ(evict(-1, term), EvictOutcome::kYielded);
  EXPECT_EQ(server->FlushOutcome("k", "v"), "ok");
  EXPECT_EQ(evict(-1, term + 1), EvictOutcome::kEvicted);
  EXPECT_EQ(FencedProcess::Outcome(server->fence().Yield(0, {.number = 4, .term = term})),
            "fenced");
}

TEST_P(FenceConformanceTest, AMarkThatSavesNobodyAnyMoreIsForgotten) {
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  auto first = Open();
  const std::int64_t epoch = first->Start(7);
  ASSERT_TRUE(global->fence().Want(7, epoch, 0, term).value());
  ASSERT_TRUE(first->fence().Yield(0, {.number = 3, .term = term}).ok());
  EXPECT_EQ(global->fence()
                .Evict(7, epoch, 0, term, {.yielded_since = YieldMark{.number = 3, .term = 0}})
                .value(),
            EvictOutcome::kEvicted);
  auto second = Open();
  second->Start(7);
  EXPECT_TRUE(second->fence().Wanted().value().empty());
  EXPECT_TRUE(global->fence().Yields(0).value().empty());
  ASSERT_TRUE(second->fence().Yield(0, {.number = 1, .term = term}).ok());
  ASSERT_TRUE(second->fence().Finish().ok());
  EXPECT_TRUE(global->fence().Yields(0).value().empty());
}

}  // namespace zeze
