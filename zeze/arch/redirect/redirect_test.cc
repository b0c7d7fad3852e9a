// Calls between three servers of one process, over real connections.

#include "zeze/arch/redirect/redirect.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/arch/redirect/testing/redirect_cluster.h"
#include "zeze/arch/ring/hash_ring.h"
#include "zeze/base/result_code.h"
#include "zeze/base/wait_group.h"

namespace zeze::arch {
namespace {

using testing::kPatience;
using testing::ModuleBank;
using testing::Place;
using testing::RedirectCluster;
using testing::RedirectServer;

class RedirectTest : public ::testing::Test {
 protected:
  Redirect& redirect(std::int32_t server_id) { return cluster_->redirect(server_id); }
  ModuleBank& bank(std::int32_t server_id) { return cluster_->bank(server_id); }
  Application& application(std::int32_t server_id) { return *cluster_->at(server_id).application; }
  std::int32_t HashOf(std::int32_t server_id, std::uint32_t level = 0) {
    return cluster_->HashOf(server_id, level);
  }

  const std::unique_ptr<RedirectCluster> cluster_ = RedirectCluster::Of(3);
};

TEST_F(RedirectTest, AllServersAgreeWhereAHashBelongs) {
  std::set<std::int32_t> owners;
  for (std::int32_t hash = -300; hash < 300; ++hash) {
    for (const std::uint32_t level : {0U, 1U, 16U, 128U}) {
      const std::optional<std::int32_t> owner = redirect(1).OwnerOf(bank(1), {hash, level});
      ASSERT_TRUE(owner.has_value());
      EXPECT_EQ(owner, redirect(2).OwnerOf(bank(2), {hash, level}));
      EXPECT_EQ(owner, redirect(3).OwnerOf(bank(3), {hash, level}));
      owners.insert(*owner);
    }
  }
  EXPECT_EQ((std::set<std::int32_t>{1, 2, 3}), owners);
}

TEST_F(RedirectTest, TheRingIsThePeers) {
  const HashRing peers("Test.Server.Module#77", {"1", "2", "3"});
  for (std::int32_t hash = 0; hash < 100; ++hash) {
    EXPECT_EQ(*peers.Lookup(hash), std::to_string(*redirect(2).OwnerOf(bank(2), hash)));
    EXPECT_EQ(*peers.LookupGroup(HashGroup(hash, 16)),
              std::to_string(*redirect(2).OwnerOf(bank(2), {hash, 16})));
  }
}

TEST_F(RedirectTest, Seed001ACallRunsWhereItsHashBelongs) {
  for (const std::int32_t target : {1, 2, 3}) {
    for (const std::int32_t caller : {1, 2, 3}) {
      const auto reply =
          redirect(caller).ToHash<&ModuleBank::Where>(HashOf(target), "hello").Wait();
      EXPECT_TRUE(reply.ok()) << reply.code;
      EXPECT_EQ(RedirectOutcome::kDone, reply.outcome);
      EXPECT_EQ(target, reply.server_id);
      EXPECT_EQ((Place{target, "hello"}), reply.result);
    }
  }
}

TEST_F(RedirectTest, AMethodsTransactionHasCommittedWhenTheAnswerComes) {
  const std::int32_t hash = HashOf(3, 16);
  for (int i = 1; i <= 20; ++i) {
    const auto reply = redirect(1 + i % 3).ToHash<&ModuleBank::Deposit>({hash, 16}, 7, 10).Wait();
    EXPECT_TRUE(reply.ok()) << reply.code;
    EXPECT_EQ(i * 10, reply.result);
    EXPECT_EQ(i * 10, bank(3).BalanceOf(7));
  }
  EXPECT_EQ(0, bank(1).BalanceOf(7));
}

TEST_F(RedirectTest, ACallToAServerRunsThere) {
  for (const std::int32_t target : {1, 2, 3}) {
    for (const std::int32_t caller : {1, 2, 3}) {
      const auto reply = redirect(caller).ToServer<&ModuleBank::Where>(target, "x").Wait();
      EXPECT_EQ((Place{target, "x"}), reply.result);
    }
  }
}

TEST_F(RedirectTest, ThenTellsExactlyOnceOnAWorker) {
  WaitGroup group(30);
  std::atomic<int> done = 0;
  for (int i = 0; i < 30; ++i) {
    redirect(1).ToServer<&ModuleBank::Where>(1 + i % 3, "x").Then([&](RedirectReply<Place> reply) {
      if (reply.ok() && reply.result.server_id == reply.server_id) ++done;
      group.Done();
    });
  }
  EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
  EXPECT_EQ(30, done);
}

TEST_F(RedirectTest, AMethodThatFailsRollsBackAndItsCodeComesBack) {
  for (const std::int32_t target : {1, 2}) {
    const auto reply = redirect(1).ToServer<&ModuleBank::Fails>(target, 5).Wait();
    EXPECT_EQ(ModuleBank::kNoMoney, reply.code);
    EXPECT_EQ(RedirectOutcome::kNotDone, reply.outcome);
    EXPECT_EQ("", reply.result);
    EXPECT_EQ(0, bank(target).BalanceOf(5));
    EXPECT_EQ(redirect_code::kException,
              redirect(1).ToServer<&ModuleBank::Throws>(target).Wait().code);
  }
}

TEST_F(RedirectTest, Seed001CallsOfOneHashGroupRunInTheirOrder) {
  const std::int32_t hash = HashOf(2, 16);
  constexpr std::int64_t kCalls = 500;
  ModuleBank::Story expected;
  for (std::int64_t i = 0; i < kCalls; ++i) {
    redirect(1).ToHash<&ModuleBank::Slow>({hash, 16}, i).Send();
    expected.emplace_back(hash, i);
  }
  EXPECT_EQ(expected, bank(2).AwaitStory(kCalls));
}

TEST_F(RedirectTest, CallsOfOneGroupNeverOverlapWhoeverMakesThem) {
  const std::int32_t hash = HashOf(2, 16);
  WaitGroup group;
  std::atomic<int> most = 0;
  for (int i = 0; i < 300; ++i) {
    group.Add();
    // The same group, by hashes that differ.
    const std::int32_t other = hash + 16 * (i % 3);
    redirect(1 + i % 3)
        .ToHash<&ModuleBank::Overlap>({other, 16})
        .Then([&](const RedirectReply<std::int32_t>& reply) {
          EXPECT_TRUE(reply.ok());
          if (reply.result > most) most = reply.result;
          group.Done();
        });
  }
  group.Wait();
  EXPECT_EQ(1, most);
}

TEST_F(RedirectTest, ALoopBackWaitsForTheSameGroupAsACallFromElsewhere) {
  const std::int32_t hash = HashOf(2);
  bank(2).door.Close();
  redirect(1).ToHash<&ModuleBank::Slow>(hash, 1).Send();
  ASSERT_TRUE(bank(2).door.AwaitArrived(1));
  redirect(2).ToHash<&ModuleBank::Slow>(hash, 2).Send();
  // Others go on.
  EXPECT_TRUE(redirect(2).ToServer<&ModuleBank::Where>(2, "x").Wait().ok());
  EXPECT_TRUE(redirect(1).ToServer<&ModuleBank::Where>(2, "x").Wait().ok());
  EXPECT_EQ(0U, bank(2).AwaitStory(0).size());
  bank(2).door.Open();
  EXPECT_EQ((ModuleBank::Story{{hash, 1}, {hash, 2}}), bank(2).AwaitStory(2));
}

TEST_F(RedirectTest, AnUnorderedCallOvertakesAndAnOrderedOneDoesNot) {
  bank(2).door.Close();
  redirect(1).ToServer<&ModuleBank::Slow>(2, 1).Send();
  ASSERT_TRUE(bank(2).door.AwaitArrived(1));
  EXPECT_EQ(redirect_code::kRequestTimeout, redirect(1)
                                                .ToServer<&ModuleBank::Where>(2, "behind it")
                                                .Within(std::chrono::milliseconds(30))
                                                .Wait()
                                                .code);
  EXPECT_TRUE(redirect(1).ToServer<&ModuleBank::Where>(2, "beside").Unordered().Wait().ok());
  EXPECT_TRUE(redirect(1).ToServer<&ModuleBank::Where>(2, "other").OrderedBy(5).Wait().ok());
  EXPECT_TRUE(redirect(3).ToServer<&ModuleBank::Where>(2, "of another server").Wait().ok());
  bank(2).door.Open();
}

TEST_F(RedirectTest, ANestedCallIsPartOfItsCallersTransaction) {
  const std::int32_t hash = HashOf(2);  // Elsewhere: a nested call runs here all the same.
  RedirectReply<std::int64_t> nested;
  const auto transfer = [&](std::int64_t code) {
    return application(1).Call("transfer", [&](Transaction& tx) {
      bank(1).accounts.GetOrAdd(tx, 1)->balance += 5;
      nested = redirect(1).ToHash<&ModuleBank::Deposit>(hash, 2, 10).Nested(tx);
      return code;
    });
  };

  EXPECT_EQ(-77, transfer(-77));
  EXPECT_TRUE(nested.ok());
  EXPECT_EQ(0, bank(1).BalanceOf(1));
  EXPECT_EQ(0, bank(1).BalanceOf(2)) << "rolled back with its caller";

  EXPECT_EQ(0, transfer(0));
  EXPECT_EQ(10, nested.result);
  EXPECT_EQ(1, nested.server_id);
  EXPECT_EQ(5, bank(1).BalanceOf(1));
  EXPECT_EQ(10, bank(1).BalanceOf(2));
  EXPECT_EQ((ModuleBank::Story{{hash, 2}}), bank(1).AwaitStory(1));
  EXPECT_EQ(0U, redirect(1).GetStatistics().remote_calls);
}

TEST_F(RedirectTest, ANestedCallThatFailsUndoesItselfOnly) {
  RedirectReply<std::int64_t> nested;
  const std::int64_t code = application(1).Call("overdraw", [&](Transaction& tx) {
    bank(1).accounts.GetOrAdd(tx, 1)->balance += 5;
    nested = redirect(1).ToHash<&ModuleBank::Deposit>(1, 1, -100).Nested(tx);
    return 0;
  });
  EXPECT_EQ(0, code);
  EXPECT_EQ(ModuleBank::kNoMoney, nested.code);
  EXPECT_EQ(RedirectOutcome::kNotDone, nested.outcome);
  EXPECT_EQ(5, bank(1).BalanceOf(1));
}

TEST_F(RedirectTest, ACallAfterCommitGoesOutOnceAndOnlyThen) {
  const std::int32_t hash = HashOf(3);
  EXPECT_EQ(-5, application(1).Call("rolls back", [&](Transaction& tx) {
    redirect(1).ToHash<&ModuleBank::Slow>(hash, 1).AfterCommit(tx);
    return -5;
  }));

  int attempts = 0;
  EXPECT_EQ(0, application(1).Call("loses a race", [&](Transaction& tx) {
    ++attempts;
    auto account = bank(1).accounts.GetOrAdd(tx, 1);
    if (attempts == 1) {
      std::thread([&] {
        application(1).Call("wins it", [&](Transaction& other) {
          bank(1).accounts.GetOrAdd(other, 1)->balance += 1;
          return 0;
        });
      }).join();
    }
    account->balance += 1;
    redirect(1).ToHash<&ModuleBank::Slow>(hash, 2).AfterCommit(tx);
    return 0;
  }));
  EXPECT_EQ(2, attempts);

  // Behind all others.
  EXPECT_TRUE(redirect(1).ToHash<&ModuleBank::Slow>(hash, 3).Wait().ok());
  EXPECT_EQ((ModuleBank::Story{{hash, 2}, {hash, 3}}), bank(3).AwaitStory(2));
}

TEST_F(RedirectTest, ACallbackAfterCommitHasTheResult) {
  WaitGroup group(1);
  std::int64_t balance = 0;
  EXPECT_EQ(0, application(1).Call("pays", [&](Transaction& tx) {
    redirect(1)
        .ToHash<&ModuleBank::Deposit>(HashOf(2), 9, 42)
        .AfterCommit(tx, [&](const RedirectReply<std::int64_t>& reply) {
          balance = reply.result;
          group.Done();
        });
    return 0;
  }));
  EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
  EXPECT_EQ(42, balance);
}

TEST_F(RedirectTest, ACallbackThatThrowsHarmsNobody) {
  WaitGroup group(4);
  for (const std::int32_t target : {1, 2}) {
    redirect(1).ToServer<&ModuleBank::Where>(target, "x").Then([&](const RedirectReply<Place>&) {
      group.Done();
      throw std::runtime_error("as the test wants it");
    });
    redirect(1).ToAll<&ModuleBank::GroupName>(4, "g").Then([&](const auto&) {
      group.Done();
      throw std::runtime_error("as the test wants it");
    });
  }
  EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
  EXPECT_TRUE(redirect(1).ToServer<&ModuleBank::Where>(1, "x").Wait().ok());
  EXPECT_TRUE(RedirectCluster::AwaitTrue(
      [&] { return redirect(1).GetStatistics().executions_waiting == 0; }));
  const std::chrono::nanoseconds before = SystemClock().Now();
  redirect(1).Stop();
  EXPECT_LT(SystemClock().Now() - before, RedirectOptions().drain_timeout)
      << "nothing is left to wait for";
}

TEST(RedirectRemoteTest, AServerWithoutTheModuleCallsItElsewhere) {
  const auto cluster = RedirectCluster::Of(2);
  RedirectServer& caller = cluster->Prepare(3, RedirectCluster::Options(), true);
  ASSERT_TRUE(caller.redirect->Start().ok());
  ASSERT_TRUE(caller.redirect->AwaitReady(kPatience).ok());
  for (std::int32_t hash = 0; hash < 50; ++hash) {
    const auto reply = caller.redirect->ToHash<&ModuleBank::Where>(hash, "x").Wait();
    EXPECT_TRUE(reply.ok());
    EXPECT_EQ(cluster->redirect(1).OwnerOf(ModuleBank::kModuleId, hash), reply.server_id);
  }
  EXPECT_TRUE(caller.redirect->ToAll<&ModuleBank::GroupName>(16, "g").Wait().ok());
  const auto here = caller.redirect->ToServer<&ModuleBank::Where>(3, "x").Wait();
  EXPECT_EQ(redirect_code::kMethodNotFound, here.code);
  EXPECT_EQ(RedirectOutcome::kNotDone, here.outcome);
}

// Components whose parameters are not known here.
TEST(RedirectEncodedTest, AMethodInEncodedFormIsCalledByItsName) {
  RedirectCluster cluster;
  for (const std::int32_t id : {1, 2}) {
    RedirectServer& server = cluster.Prepare(id);
    server.redirect->AddEncoded(
        {.module_id = 11015,
         .full_name = "Zeze.Game.Rank:updateRank",
         .run = [&server](Transaction& tx, std::int32_t hash, std::string_view parameters,
                          std::string& result) -> std::int64_t {
           if (parameters.empty()) return redirect_code::kError;
           server.bank.accounts.GetOrAdd(tx, hash)->balance += 1;
           result = std::string(parameters) + "!";
           return 0;
         }});
    EXPECT_TRUE(server.redirect->Start().ok());
  }
  cluster.AwaitReady();
  for (const std::int32_t target : {1, 2}) {
    std::int32_t hash = 0;
    while (cluster.redirect(1).OwnerOf(11015, {hash, 64}) != target) ++hash;
    WaitGroup group(2);
    cluster.redirect(1).ToHashEncoded("Zeze.Game.Rank:updateRank", {hash, 64}, "bytes",
                                      [&](const RedirectReply<Binary>& reply) {
                                        EXPECT_TRUE(reply.ok());
                                        EXPECT_EQ("bytes!", reply.result.bytes);
                                        EXPECT_EQ(target, reply.server_id);
                                        group.Done();
                                      });
    cluster.redirect(1).ToServerEncoded("Zeze.Game.Rank:updateRank", target, "",
                                        [&](const RedirectReply<Binary>& reply) {
                                          EXPECT_EQ(redirect_code::kError, reply.code);
                                          group.Done();
                                        });
    EXPECT_TRUE(group.WaitUntil(SystemClock(), SystemClock().Now() + kPatience));
    EXPECT_EQ(1, cluster.bank(target).BalanceOf(hash));
  }
}

}  // namespace
}  // namespace zeze::arch
