// What becomes of calls when servers, connections, time or room are lacking.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
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
using testing::Place;
using testing::RedirectCluster;

TEST(RedirectFailure, NobodyOffersTheModule) {
  RedirectCluster cluster;
  RedirectOptions options = RedirectCluster::Options();
  options.register_modules = false;
  cluster.Add(1, options);
  EXPECT_TRUE(cluster.redirect(1).AwaitReady(kPatience).ok());
  const auto reply = cluster.redirect(1).ToHash<&ModuleBank::Where>(1, "x").Wait();
  EXPECT_EQ(redirect_code::kNoProvider, reply.code);
  EXPECT_EQ(RedirectOutcome::kNotDone, reply.outcome);
}

TEST(RedirectFailure, AServerThatDoesNotAppearInTime) {
  const auto cluster = RedirectCluster::Of(1);
  const auto reply =
      cluster->redirect(1).ToServer<&ModuleBank::Where>(9, "x").Within(milliseconds(30)).Wait();
  EXPECT_TRUE(reply.code == redirect_code::kLinkTimeout ||
              reply.code == redirect_code::kRequestTimeout)
      << reply.code;
  EXPECT_EQ(0U, cluster->redirect(1).links().GetStatistics().connected);
}

TEST(RedirectFailure, CallsWaitForAServerThatComesAndKeepTheirOrder) {
  for (const std::int32_t late : {3, 1}) {
    SCOPED_TRACE(late);
    RedirectCluster cluster;
    cluster.Add(2);
    cluster.AwaitReady();
    for (int i = 0; i < 100; ++i) {
      cluster.redirect(2).ToServer<&ModuleBank::Slow>(late, i).Send();
    }
    EXPECT_EQ(100U, cluster.redirect(2).links().GetStatistics().waiting);
    cluster.Add(late);
    for (int i = 100; i < 200; ++i) {
      cluster.redirect(2).ToServer<&ModuleBank::Slow>(late, i).Send();
    }
    const ModuleBank::Story story = cluster.bank(late).AwaitStory(200);
    ASSERT_EQ(200U, story.size());
    std::int64_t next = 0;
    for (const auto& line : story) EXPECT_EQ(std::pair(late, next++), line);
  }
}

TEST(RedirectFailure, NotTooManyCallsWaitForAServer) {
  RedirectCluster cluster;
  RedirectOptions options = RedirectCluster::Options();
  options.direct.waiting_max = 2;
  cluster.Add(1, options);
  cluster.AwaitReady();
  for (int i = 0; i < 2; ++i) cluster.redirect(1).ToServer<&ModuleBank::Slow>(9, i).Send();
  const auto reply = cluster.redirect(1).ToServer<&ModuleBank::Slow>(9, 3).Wait();
  EXPECT_EQ(result_code::kBusy, reply.code);
  EXPECT_EQ(RedirectOutcome::kNotDone, reply.outcome);
}

TEST(RedirectFailure, OrOtherTakesAnotherServerAtOnce) {
  const auto cluster = RedirectCluster::Of(3);
  EXPECT_EQ(2, cluster->redirect(1).ToServerOrOther<&ModuleBank::Where>(2, "x").Wait().server_id);
  EXPECT_EQ(1, cluster->redirect(1).ToServerOrOther<&ModuleBank::Where>(1, "x").Wait().server_id);
  const auto other = cluster->redirect(1).ToServerOrOther<&ModuleBank::Where>(9, "x").Wait();
  EXPECT_TRUE(other.ok());
  EXPECT_EQ(cluster->redirect(1).OwnerOf(cluster->bank(1), 9), other.server_id);
}

TEST(RedirectFailure, ACallWhoseConnectionBreaksFailsAtOnceAndItsOutcomeIsUnknown) {
  const auto cluster = RedirectCluster::Of(2);
  for (const auto& [caller, target] : {std::pair(1, 2), std::pair(2, 1)}) {
    cluster->bank(target).door.Close();
    WaitGroup group(1);
    RedirectReply<RedirectNothing> reply;
    cluster->redirect(caller).ToServer<&ModuleBank::Slow>(target, 1).Then(
        [&](const RedirectReply<RedirectNothing>& told) {
          reply = told;
          group.Done();
        });
    ASSERT_TRUE(cluster->bank(target).door.AwaitArrived(1));
    cluster->Cut(target, caller);
    EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
    EXPECT_EQ(RedirectOutcome::kUnknown, reply.outcome);
    EXPECT_EQ(result_code::kClosed, reply.code);
    cluster->bank(target).door.Open();
    EXPECT_EQ(1U, cluster->bank(target).AwaitStory(1).size()) << "it has run nevertheless";
    // They connect again, and calls wait for that.
    EXPECT_TRUE(cluster->redirect(caller).ToServer<&ModuleBank::Where>(target, "x").Wait().ok());
  }
}

TEST(RedirectFailure, HashesOfADeadServerMoveAndComeBackWithIt) {
  const auto cluster = RedirectCluster::Of(3);
  const std::int32_t hash = cluster->HashOf(3);
  EXPECT_EQ(3, cluster->redirect(1).ToHash<&ModuleBank::Where>(hash, "x").Wait().server_id);

  cluster->Kill(3);
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster->at(1), 2));
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster->at(2), 2));
  const auto moved = cluster->redirect(1).ToHash<&ModuleBank::Where>(hash, "x").Wait();
  EXPECT_TRUE(moved.ok());
  EXPECT_NE(3, moved.server_id);
  EXPECT_EQ(moved.server_id,
            cluster->redirect(2).ToHash<&ModuleBank::Where>(hash, "x").Wait().server_id);

  cluster->Add(3);
  cluster->AwaitReady();
  EXPECT_EQ(3, cluster->redirect(1).ToHash<&ModuleBank::Where>(hash, "x").Wait().server_id);
}

TEST(RedirectFailure, AServerThatStopsEndsWhatItHasAccepted) {
  const auto cluster = RedirectCluster::Of(2);
  cluster->bank(2).door.Close();
  std::atomic<int> done = 0;
  WaitGroup group(5);
  for (int i = 0; i < 5; ++i) {
    cluster->redirect(1).ToServer<&ModuleBank::Slow>(2, i).Then(
        [&](const RedirectReply<RedirectNothing>& reply) {
          if (reply.outcome == RedirectOutcome::kDone) ++done;
          group.Done();
        });
  }
  ASSERT_TRUE(cluster->bank(2).door.AwaitArrived(1));
  EXPECT_TRUE(RedirectCluster::AwaitTrue(
      [&] { return cluster->redirect(2).GetStatistics().executions_waiting == 5; }));
  std::thread stopping([&] { cluster->redirect(2).Stop(); });
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster->at(1), 1)) << "it is not chosen any more";
  cluster->bank(2).door.Open();
  stopping.join();
  EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
  EXPECT_EQ(5, done);
}

TEST(RedirectFailure, CallsOfAServerThatStopsFailAtOnce) {
  RedirectCluster cluster;
  RedirectOptions options = RedirectCluster::Options();
  options.drain_timeout = milliseconds(200);
  cluster.Add(1, options);
  cluster.Add(2);
  cluster.AwaitReady();
  cluster.bank(2).door.Close();
  std::vector<RedirectReply<RedirectNothing>> replies(2);
  WaitGroup group(2);
  for (const std::int32_t target : {2, 9}) {
    cluster.redirect(1).ToServer<&ModuleBank::Slow>(target, 1).Then(
        [&, target](const RedirectReply<RedirectNothing>& reply) {
          replies[target == 2 ? 0 : 1] = reply;
          group.Done();
        });
  }
  ASSERT_TRUE(cluster.bank(2).door.AwaitArrived(1));

  cluster.redirect(1).Stop();

  EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
  EXPECT_EQ(result_code::kClosed, replies[0].code);
  EXPECT_EQ(RedirectOutcome::kUnknown, replies[0].outcome) << "it is running";
  EXPECT_EQ(result_code::kClosed, replies[1].code);
  EXPECT_EQ(RedirectOutcome::kNotDone, replies[1].outcome) << "it was never sent";
  const auto later = cluster.redirect(1).ToServer<&ModuleBank::Where>(1, "x").Wait();
  EXPECT_EQ(result_code::kClosed, later.code);
  EXPECT_EQ(result_code::kClosed, cluster.redirect(1).ToAll<&ModuleBank::Large>(4).Wait().code);
}

TEST(RedirectFailure, ACallThatTakesTooLongIsUnknownToItsCaller) {
  const auto cluster = RedirectCluster::Of(2);
  for (const std::int32_t target : {1, 2}) {
    cluster->bank(target).door.Close();
    const auto reply =
        cluster->redirect(1).ToServer<&ModuleBank::Slow>(target, 1).Within(milliseconds(30)).Wait();
    EXPECT_EQ(redirect_code::kRequestTimeout, reply.code);
    EXPECT_EQ(RedirectOutcome::kUnknown, reply.outcome);
    cluster->bank(target).door.Open();
  }
}

TEST(RedirectFailure, ALocalCallWhoseTimeIsOverDoesNotBegin) {
  const auto cluster = RedirectCluster::Of(1);
  cluster->bank(1).door.Close();
  cluster->redirect(1).ToServer<&ModuleBank::Slow>(1, 1).Send();
  ASSERT_TRUE(cluster->bank(1).door.AwaitArrived(1));
  EXPECT_EQ(
      redirect_code::kRequestTimeout,
      cluster->redirect(1).ToServer<&ModuleBank::Slow>(1, 2).Within(milliseconds(30)).Wait().code);
  cluster->bank(1).door.Open();
  EXPECT_TRUE(cluster->redirect(1).ToServer<&ModuleBank::Slow>(1, 3).Wait().ok());
  EXPECT_EQ((ModuleBank::Story{{1, 1}, {1, 3}}), cluster->bank(1).AwaitStory(2));
}

TEST(RedirectFailure, AServerAtItsLimitsSaysThatItIsBusy) {
  RedirectCluster cluster;
  cluster.Add(1);
  RedirectOptions options = RedirectCluster::Options();
  options.executions_max = 2;
  options.execution_bytes_max = 1000;
  cluster.Add(2, options);
  cluster.AwaitReady();
  const auto large =
      cluster.redirect(1).ToServer<&ModuleBank::Where>(2, std::string(2000, 'x')).Wait();
  EXPECT_EQ(result_code::kBusy, large.code);
  cluster.bank(2).door.Close();
  cluster.redirect(1).ToServer<&ModuleBank::Slow>(2, 1).Send();
  cluster.redirect(2).ToServer<&ModuleBank::Slow>(2, 2).Send();
  EXPECT_TRUE(RedirectCluster::AwaitTrue(
      [&] { return cluster.redirect(2).GetStatistics().executions_waiting == 2; }));
  for (const std::int32_t caller : {1, 2}) {
    const auto reply = cluster.redirect(caller).ToServer<&ModuleBank::Where>(2, "x").Wait();
    EXPECT_EQ(result_code::kBusy, reply.code);
    EXPECT_EQ(RedirectOutcome::kNotDone, reply.outcome);
  }
  cluster.bank(2).door.Open();
  cluster.bank(2).AwaitStory(2);
  EXPECT_TRUE(RedirectCluster::AwaitTrue(
      [&] { return cluster.redirect(1).ToServer<&ModuleBank::Where>(2, "x").Wait().ok(); }));
  EXPECT_GE(cluster.redirect(2).GetStatistics().refused_busy, 3U);
}

TEST(RedirectFailure, ParametersThatNoMessageCanHoldAreRefusedHere) {
  RedirectCluster cluster;
  RedirectOptions options = RedirectCluster::Options();
  options.direct.service.frame_bytes_max = 1 << 20;
  for (const std::int32_t id : {1, 2}) cluster.Add(id, options);
  cluster.AwaitReady();
  const auto reply =
      cluster.redirect(1).ToServer<&ModuleBank::Where>(2, std::string(1 << 20, 'x')).Wait();
  EXPECT_EQ(redirect_code::kError, reply.code);
  EXPECT_EQ(RedirectOutcome::kNotDone, reply.outcome);
  EXPECT_TRUE(cluster.redirect(1).ToServer<&ModuleBank::Where>(2, "x").Wait().ok());
}

TEST(RedirectFailure, ServersOfAnotherMainVersionDoNotExist) {
  RedirectCluster cluster;
  RedirectOptions newer = RedirectCluster::Options();
  newer.app_version = (std::int64_t{1} << 48) | 5;
  cluster.Add(1);
  cluster.Add(2);
  cluster.Add(3, newer);
  for (const std::int32_t id : {1, 2, 3}) {
    EXPECT_TRUE(cluster.redirect(id).AwaitReady(kPatience).ok());
  }
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster.at(1), 2));
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster.at(2), 2));
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster.at(3), 1));
  EXPECT_EQ(nullptr, cluster.redirect(1).links().Find(3));
  for (std::int32_t hash = 0; hash < 50; ++hash) {
    EXPECT_NE(3, cluster.redirect(1).OwnerOf(cluster.bank(1), hash));
    EXPECT_EQ(3, cluster.redirect(3).OwnerOf(cluster.bank(3), hash));
  }
}

TEST(RedirectFailure, StartSaysWhatIsWrong) {
  RedirectCluster cluster;
  RedirectOptions no_prefix = RedirectCluster::Options();
  no_prefix.name_prefix = "Test.Server.";
  EXPECT_FALSE(cluster.Prepare(1, no_prefix).redirect->Start().ok());

  RedirectOptions any_ip = RedirectCluster::Options();
  any_ip.direct.ip = "0.0.0.0";
  const Result<void> started = cluster.Prepare(2, any_ip).redirect->Start();
  ASSERT_FALSE(started.ok());
  EXPECT_NE(std::string::npos, started.error().message().find("advertised")) << "says what to do";

  RedirectOptions no_ip = RedirectCluster::Options();
  no_ip.direct.ip = "";
  Redirect& on_loopback = *cluster.Prepare(4, no_ip).redirect;
  ASSERT_TRUE(on_loopback.Start().ok());
  EXPECT_EQ("127.0.0.1", on_loopback.links().ip());

  testing::RedirectServer& twice = cluster.Prepare(3);
  twice.redirect->AddModule(twice.bank);
  EXPECT_FALSE(twice.redirect->Start().ok());
}

}  // namespace
}  // namespace zeze::arch
