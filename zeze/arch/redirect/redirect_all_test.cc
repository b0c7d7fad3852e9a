// Calls to all groups of three servers.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/arch/redirect/redirect.h"
#include "zeze/arch/redirect/testing/redirect_cluster.h"
#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/base/wait_group.h"

namespace zeze::arch {
namespace {

using std::chrono::milliseconds;
using testing::kPatience;
using testing::ModuleBank;
using testing::RedirectCluster;

constexpr std::uint32_t kLevel = 16;

std::int32_t OwnerOf(RedirectCluster& cluster, std::uint32_t group) {
  return cluster.redirect(1)
      .OwnerOf(cluster.bank(1), {static_cast<std::int32_t>(group), kLevel})
      .value_or(-1);
}

TEST(RedirectAll, EveryGroupAnswersFromTheServerThatOwnsIt) {
  const auto cluster = RedirectCluster::Of(3);
  for (const std::int32_t caller : {1, 2, 3}) {
    const auto all = cluster->redirect(caller).ToAll<&ModuleBank::GroupName>(kLevel, "g").Wait();
    ASSERT_TRUE(all.ok());
    ASSERT_EQ(kLevel, all.groups.size());
    for (std::uint32_t group = 0; group < kLevel; ++group) {
      const std::int32_t owner = OwnerOf(*cluster, group);
      EXPECT_EQ(group, all.groups[group].group);
      EXPECT_EQ(owner, all.groups[group].server_id);
      EXPECT_EQ("g" + std::to_string(group) + "@" + std::to_string(owner),
                all.groups[group].result);
    }
  }
}

TEST(RedirectAll, EachGroupIsToldOnceAndTheEndLast) {
  const auto cluster = RedirectCluster::Of(3);
  std::vector<std::uint32_t> told;  // One at a time: no lock.
  WaitGroup group(1);
  bool complete = false;
  cluster->redirect(2)
      .ToAll<&ModuleBank::GroupName>(kLevel, "g")
      .ForEach([&](const RedirectGroupReply<std::string>& reply) { told.push_back(reply.group); })
      .Then([&](const RedirectAllReply<std::string>& all) {
        complete = all.ok() && told.size() == kLevel;
        group.Done();
      });
  EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
  EXPECT_TRUE(complete);
  EXPECT_EQ(kLevel, std::set<std::uint32_t>(told.begin(), told.end()).size());
  EXPECT_EQ(0U, cluster->redirect(2).GetStatistics().all_calls);
}

TEST(RedirectAll, LargeResultsComeInSeveralMessages) {
  const auto cluster = RedirectCluster::Of(2);
  const auto all = cluster->redirect(1).ToAll<&ModuleBank::Large>(kLevel).Wait();
  ASSERT_TRUE(all.ok());
  for (const auto& reply : all.groups) EXPECT_EQ(ModuleBank::kLarge, reply.result.size());
}

TEST(RedirectAll, ResultsBeyondTheLimitAreLeftOut) {
  RedirectCluster cluster;
  RedirectOptions options = RedirectCluster::Options();
  options.all_result_bytes_max = 3 * ModuleBank::kLarge;
  for (const std::int32_t id : {1, 2}) cluster.Add(id, options);
  cluster.AwaitReady();
  const auto all = cluster.redirect(1).ToAll<&ModuleBank::Large>(kLevel).Wait();
  std::size_t good = 0;
  for (const auto& reply : all.groups) {
    good += reply.ok() ? 1 : 0;
    EXPECT_EQ(reply.ok() ? 0 : result_code::kBusy, reply.code);
  }
  EXPECT_EQ(3U, good);
}

TEST(RedirectAll, GroupsOfAServerThatCannotBeReachedFailAtOnceTheOthersDoNot) {
  const auto cluster = RedirectCluster::Of(2);
  // Listed, but nobody is there: as after a crash that the service manager has not noticed.
  registry::RegistryAgent& agent = cluster->at(1).agent;
  EXPECT_TRUE(agent
                  .Register({.name = "Test.Server.Module#77",
                             .identity = "9",
                             .passive_ip = "127.0.0.1",
                             .passive_port = 1})
                  .ok());
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster->at(1), 3));
  const auto all = cluster->redirect(1).ToAll<&ModuleBank::GroupName>(kLevel, "g").Wait();
  std::set<std::int32_t> failed;
  for (const auto& reply : all.groups) {
    const bool dead = OwnerOf(*cluster, reply.group) == 9;
    EXPECT_EQ(!dead, reply.ok());
    if (!dead) continue;
    EXPECT_EQ(redirect_code::kNoProvider, reply.message_code);
    EXPECT_EQ(result_code::kProviderNotExist, reply.code);
    EXPECT_EQ(RedirectOutcome::kNotDone, reply.outcome);
    failed.insert(reply.server_id);
  }
  EXPECT_EQ((std::set<std::int32_t>{9}), failed);
}

TEST(RedirectAll, GroupsOfAServerThatIsLostMeanwhileFailAtOnce) {
  const auto cluster = RedirectCluster::Of(3);
  cluster->bank(2).door.Close();
  WaitGroup group(1);
  RedirectAllReply<RedirectNothing> all;
  cluster->redirect(1).ToAll<&ModuleBank::Slow>(kLevel, 1).Then(
      [&](const RedirectAllReply<RedirectNothing>& reply) {
        all = reply;
        group.Done();
      });
  ASSERT_TRUE(cluster->bank(2).door.AwaitArrived(1));
  cluster->Cut(2, 1);
  EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
  for (const auto& reply : all.groups) {
    const bool lost = OwnerOf(*cluster, reply.group) == 2;
    EXPECT_EQ(lost ? RedirectOutcome::kUnknown : RedirectOutcome::kDone, reply.outcome);
    EXPECT_EQ(lost ? result_code::kClosed : 0, reply.code);
  }
  cluster->bank(2).door.Open();
}

TEST(RedirectAll, LateResultsAreIgnored) {
  const auto cluster = RedirectCluster::Of(2);
  cluster->bank(2).door.Close();
  const auto all =
      cluster->redirect(1).ToAll<&ModuleBank::Slow>(kLevel, 1).Within(milliseconds(200)).Wait();
  std::size_t late = 0;
  for (const auto& reply : all.groups) {
    if (OwnerOf(*cluster, reply.group) == 1) {
      EXPECT_TRUE(reply.ok());
      continue;
    }
    EXPECT_EQ(redirect_code::kRequestTimeout, reply.code);
    EXPECT_EQ(RedirectOutcome::kUnknown, reply.outcome);
    ++late;
  }
  cluster->bank(2).door.Open();
  EXPECT_TRUE(RedirectCluster::AwaitTrue(
      [&] { return cluster->redirect(1).GetStatistics().ignored_results == late; }));
}

// A group of another server that has others besides.
std::uint32_t SlowGroupOf(RedirectCluster& cluster, std::int32_t server_id) {
  std::vector<std::uint32_t> groups;
  for (std::uint32_t group = 0; group < kLevel; ++group) {
    if (OwnerOf(cluster, group) == server_id) groups.push_back(group);
  }
  EXPECT_GE(groups.size(), 2U);
  return groups.front();
}

TEST(RedirectAll, ASlowGroupCostsOnlyItsOwnAnswer) {
  const auto cluster = RedirectCluster::Of(2);
  const std::uint32_t slow = SlowGroupOf(*cluster, 2);
  cluster->bank(2).door.Close();
  const auto all = cluster->redirect(1)
                       .ToAll<&ModuleBank::SlowIn>(kLevel, static_cast<std::int32_t>(slow))
                       .Within(milliseconds(500))
                       .Wait();
  for (const auto& reply : all.groups) {
    const bool late = reply.group == slow;
    EXPECT_EQ(late ? redirect_code::kRequestTimeout : 0, reply.code) << reply.group;
    EXPECT_EQ(late ? RedirectOutcome::kUnknown : RedirectOutcome::kDone, reply.outcome);
    EXPECT_EQ(late ? 0 : OwnerOf(*cluster, reply.group), reply.result);
  }
  cluster->bank(2).door.Open();
}

TEST(RedirectAll, ResultsOfOtherServersAreGivenAsTheyCome) {
  const auto cluster = RedirectCluster::Of(2);
  const std::uint32_t slow = SlowGroupOf(*cluster, 2);
  cluster->bank(2).door.Close();
  std::atomic<std::uint32_t> told = 0;
  WaitGroup others(kLevel - 1);
  WaitGroup end(1);
  cluster->redirect(1)
      .ToAll<&ModuleBank::SlowIn>(kLevel, static_cast<std::int32_t>(slow))
      .Within(kPatience)
      .ForEach([&](const RedirectGroupReply<std::int32_t>& reply) {
        EXPECT_TRUE(reply.ok()) << reply.group;
        if (++told < kLevel) others.Done();
      })
      .Then([&](const RedirectAllReply<std::int32_t>& all) {
        EXPECT_TRUE(all.ok());
        end.Done();
      });
  EXPECT_TRUE(others.WaitUntil(SystemClock(), SystemClock().Now() + kPatience / 2));
  EXPECT_EQ(kLevel - 1, told);  // The slow group still waits at the door.
  cluster->bank(2).door.Open();
  EXPECT_TRUE(end.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
}

TEST(RedirectAll, AGroupsCallsAndCallsToAllNeverOverlap) {
  const auto cluster = RedirectCluster::Of(2);
  std::atomic<int> most = 0;
  WaitGroup group;
  for (int i = 0; i < 50; ++i) {
    group.Add(2);
    cluster->redirect(1 + i % 2)
        .ToAll<&ModuleBank::Overlap>(kLevel)
        .ForEach([&](const RedirectGroupReply<std::int32_t>& reply) {
          EXPECT_TRUE(reply.ok());
          if (reply.result > most) most = reply.result;
        })
        .Then([&](const auto&) { group.Done(); });
    cluster->redirect(1 + i % 2)
        .ToHash<&ModuleBank::Overlap>({i % 16, kLevel})
        .Then([&](const RedirectReply<std::int32_t>& reply) {
          if (reply.result > most) most = reply.result;
          group.Done();
        });
  }
  group.Wait();
  EXPECT_EQ(1, most);
}

TEST(RedirectAll, TooManyAtATimeAndNonsenseLevelsDoNotBegin) {
  RedirectCluster cluster;
  RedirectOptions options = RedirectCluster::Options();
  options.all_calls_max = 1;
  options.level_max = kLevel;
  cluster.Add(1, options);
  cluster.AwaitReady();
  EXPECT_EQ(redirect_code::kError, cluster.redirect(1).ToAll<&ModuleBank::Large>(0).Wait().code);
  EXPECT_EQ(redirect_code::kError,
            cluster.redirect(1).ToAll<&ModuleBank::Large>(kLevel + 1).Wait().code);
  cluster.bank(1).door.Close();
  cluster.redirect(1).ToAll<&ModuleBank::Slow>(kLevel, 1).Send();
  const auto second = cluster.redirect(1).ToAll<&ModuleBank::Large>(kLevel).Wait();
  EXPECT_EQ(result_code::kBusy, second.code);
  EXPECT_FALSE(second.ok());
  cluster.bank(1).door.Open();
  EXPECT_TRUE(RedirectCluster::AwaitTrue(
      [&] { return cluster.redirect(1).ToAll<&ModuleBank::Large>(kLevel).Wait().ok(); }));
}

TEST(RedirectAll, AfterCommitGoesOutOnlyIfTheTransactionCommits) {
  const auto cluster = RedirectCluster::Of(2);
  WaitGroup group(1);
  std::atomic<int> told = 0;
  for (const std::int64_t code : {-1, 0}) {
    cluster->at(1).application->Call("asks all", [&](Transaction& tx) -> std::int64_t {
      cluster->redirect(1)
          .ToAll<&ModuleBank::GroupName>(kLevel, "g")
          .AfterCommit(tx, [&](const RedirectAllReply<std::string>& all) {
            EXPECT_TRUE(all.ok());
            ++told;
            group.Done();
          });
      return code;
    });
  }
  EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
  EXPECT_EQ(1, told);
}

}  // namespace
}  // namespace zeze::arch
