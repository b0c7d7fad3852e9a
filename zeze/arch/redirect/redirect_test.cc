// Calls between three servers of one process, over real connections.

#include "zeze/arch/redirect/redirect.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/arch/redirect/testing/redirect_cluster.h"
#include "zeze/arch/ring/hash_ring.h"
#include "zeze/base/wait_group.h"
#include "zeze/transaction/result_code.h"

namespace zeze::arch {
namespace {

using testing::kPatience;
using testing::ModuleBank;
using testing::Place;
using testing::RedirectCluster;
using testing::RedirectServer;

class RedirectTest : public ::testing::Test {
 protected:
  RedirectTest() {
    for (const std::int32_t id : {1, 2, 3}) cluster_.Add(id);
    cluster_.AwaitReady();
  }
  Redirect& redirect(std::int32_t server_id) { return *cluster_.at(server_id).redirect; }
  ModuleBank& bank(std::int32_t server_id) { return cluster_.at(server_id).bank; }
  // A hash that belongs to a server.
  std::int32_t HashOf(std::int32_t server_id, std::uint32_t level = 0) {
    for (std::int32_t hash = 0;; ++hash) {
      if (redirect(1).OwnerOf(bank(1), {hash, level}) == server_id) return hash;
    }
  }

  RedirectCluster cluster_;
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

TEST_F(RedirectTest, ACallRunsWhereItsHashBelongs) {
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

}  // namespace
}  // namespace zeze::arch
