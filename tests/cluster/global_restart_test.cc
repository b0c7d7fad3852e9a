// Global is killed and started again while servers have many rights (rules 59 and 61): announcing
// them takes long, and that is not a reason to evict anybody.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/cluster/commanded_cluster.h"

namespace zeze::cluster {
namespace {

constexpr int kServers = 5;
constexpr int kRestarts = 5;
constexpr auto kLongPatience = std::chrono::minutes(4);

// ZEZE_RIGHTS: how many in all; 1000000 for a full run.
TEST(GlobalRestart, ServersWithManyRightsAreNotEvicted) {
  const char* wanted = std::getenv("ZEZE_RIGHTS");  // NOLINT(concurrency-mt-unsafe)
  const std::int64_t rights = (wanted == nullptr ? 50'000 : std::stoll(wanted)) / kServers;
  CommandedCluster cluster;
  for (int id = 1; id <= kServers; ++id) cluster.AddServer(id);
  std::vector<int> orders;
  std::int64_t first = 0;
  for (const auto& server : cluster.servers()) {
    orders.push_back(server->Begin(fmt::format("take {} {}", first, rights)));
    first += rights;
  }
  for (std::size_t i = 0; i < kServers; ++i) {
    EXPECT_EQ(rights, cluster.server(i).Await(orders[i], kLongPatience).done);
  }

  std::chrono::milliseconds longest{0};
  for (int restart = 0; restart < kRestarts && !HasFailure(); ++restart) {
    SCOPED_TRACE(fmt::format("restart {}", restart));
    cluster.global().Kill();
    // Everybody wants a record of its neighbour, and gets it as soon as all have announced.
    orders.clear();
    first = 0;
    for (const auto& server : cluster.servers()) {
      first = (first + rights) % (rights * kServers);
      orders.push_back(server->Begin(fmt::format("add {} 1", first + restart)));
    }
    const Stopwatch away;
    cluster.StartGlobal();
    for (std::size_t i = 0; i < kServers; ++i) {
      EXPECT_EQ(1, cluster.server(i).Await(orders[i], kLongPatience).done)
          << cluster.server(i).said() << cluster.global().said();
    }
    longest = std::max(longest, away.elapsed());
    EXPECT_FALSE(cluster.ToldOfEvictions()) << cluster.global().said();
    for (const auto& server : cluster.servers()) {
      EXPECT_TRUE(server->process().running()) << server->said();
    }
  }
  std::cout << fmt::format("{} rights: new ones are granted at most {} ms after a restart\n",
                           rights * kServers, longest.count());
}

// It renews its lease all the time; only what it has to say takes longer than others like to wait.
TEST(GlobalRestart, ServerThatAnnouncesSlowlyIsNotEvicted) {
  CommandedCluster cluster;
  CommandedServer& slow = cluster.AddServer(1);
  CommandedServer& other = cluster.AddServer(2);
  ASSERT_EQ(200'000, slow.Do("take 0 200000").done) << slow.said();
  ASSERT_EQ(100, slow.Do("add 0 100").done) << slow.said();

  cluster.global().Kill();
  slow.global().proxy().LimitRate(600'000);
  const Stopwatch announcing;
  const int order = other.Begin("add 0 100");
  cluster.StartGlobal();
  EXPECT_EQ(100, other.Await(order).done) << other.said() << cluster.global().said();
  EXPECT_GT(announcing.elapsed(), std::chrono::seconds(3)) << "slow enough to be a test";
  EXPECT_EQ(200, other.Do("sum 0 100").sum);
  EXPECT_FALSE(cluster.ToldOfEvictions()) << cluster.global().said();
  EXPECT_TRUE(slow.process().running()) << slow.said();
}

}  // namespace
}  // namespace zeze::cluster
