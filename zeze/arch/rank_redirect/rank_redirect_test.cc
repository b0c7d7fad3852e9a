// Two servers with a board, each in this process, over real connections.

#include "zeze/arch/rank_redirect/rank_redirect.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/arch/redirect/testing/redirect_cluster.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/thread_pool.h"
#include "zeze/components/rank/rank.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using testing::kPatience;
using testing::RedirectCluster;

constexpr std::uint32_t kLevel = 16;
constexpr const char* kService = "Test.Server.Module#11015";
const RankBoard kBoard = RankBoard::Total(1);

// Each has a database of its own, so that it shows where an update ran.
struct Server {
  Server(RedirectCluster& cluster, std::int32_t id)
      : rank({.concurrent_level = kLevel, .router = &router}),
        application(std::move(Application::Open("rank", {.server_id = id,
                                                         .storage = {.url = "memory:"},
                                                         .worker_threads = 4,
                                                         .liveness = {.period = {}}}))
                        .value()),
        io({.name = "io"}),
        callbacks({.name = "callbacks", .thread_count = 1}),
        agent(io, callbacks, cluster.AgentOptions()) {
    application->AddModule(rank);
    EXPECT_TRUE(application->Start().ok());
    EXPECT_TRUE(agent.Start().ok());
    redirect.emplace(*application, io, agent, RedirectCluster::Options());
    router.Connect(*redirect, rank);
    EXPECT_TRUE(redirect->Start().ok());
  }
  ~Server() {
    redirect.reset();
    agent.Abandon();
    EXPECT_TRUE(application->Stop().ok());
    io.Stop();
  }

  std::int64_t UpdateAndWait(std::int64_t role, std::int64_t score) {
    std::promise<std::int64_t> code;
    rank.UpdateAsync(kBoard, role, RankLong(score),
                     [&code](std::int64_t result) { code.set_value(result); });
    auto result = code.get_future();
    if (result.wait_for(kPatience) != std::future_status::ready) return -1;
    return result.get();
  }
  std::set<std::int64_t> Roles() {
    std::set<std::int64_t> roles;
    const LongRank::ViewPointer view = rank.Read(kBoard).value();  // Keeps what is shown.
    for (const auto& entry : view->Shown()) roles.insert(entry.role);
    return roles;
  }

  RankRedirect router;
  LongRank rank;
  std::unique_ptr<Application> application;
  IoThreads io;
  ThreadPool callbacks;
  registry::RegistryAgent agent;
  std::optional<Redirect> redirect;
};

void AwaitConnected(const std::vector<Server*>& servers) {
  for (Server* server : servers) {
    ASSERT_TRUE(RedirectCluster::AwaitTrue([server] {
      const auto ring = server->redirect->links().Ring(kService);
      return ring != nullptr && ring->identities().size() == 2;
    }));
    ASSERT_TRUE(server->redirect->AwaitReady(kPatience).ok());
    ASSERT_TRUE(server->redirect->links().AwaitConnected(kPatience, {kService}).ok());
  }
}

TEST(RankRedirectTest, AnUpdateRunsAtTheOwnerOfItsGroup) {
  RedirectCluster registry;
  Server one(registry, 1);
  Server two(registry, 2);
  AwaitConnected({&one, &two});

  std::set<std::int64_t> of_one;
  std::set<std::int64_t> of_two;
  for (std::int64_t role = 1; role <= 60; ++role) {
    Server& asked = role % 2 == 0 ? one : two;
    ASSERT_EQ(asked.UpdateAndWait(role, role), 0);
    const auto group = static_cast<std::int32_t>(RoutingHash(role) % kLevel);
    const auto owner = one.redirect->OwnerOf(one.rank, {group, kLevel});
    (owner == 1 ? of_one : of_two).insert(role);
  }

  EXPECT_FALSE(of_one.empty());
  EXPECT_FALSE(of_two.empty());
  EXPECT_EQ(one.Roles(), of_one);
  EXPECT_EQ(two.Roles(), of_two);
}

TEST(RankRedirectTest, AnUpdateAfterTheCommitIsDeliveredToTheOwnerOfItsGroup) {
  RedirectCluster registry;
  Server one(registry, 1);
  Server two(registry, 2);
  AwaitConnected({&one, &two});
  std::set<std::int64_t> of_one;
  std::set<std::int64_t> of_two;
  for (std::int64_t role = 1; role <= 60; ++role) {
    EXPECT_EQ(one.application->Call("update",
                                    [&](Transaction& tx) -> std::int64_t {
                                      one.rank.UpdateAfterCommit(tx, kBoard, role, RankLong(role));
                                      return 0;
                                    }),
              0);
    const auto group = static_cast<std::int32_t>(RoutingHash(role) % kLevel);
    (one.redirect->OwnerOf(one.rank, {group, kLevel}) == 1 ? of_one : of_two).insert(role);
  }
  EXPECT_TRUE(RedirectCluster::AwaitTrue([&] { return one.rank.GetStatistics().waiting == 0; }));
  EXPECT_EQ(one.Roles(), of_one);
  EXPECT_EQ(two.Roles(), of_two);
  EXPECT_EQ(one.rank.GetStatistics().delivered, of_two.size());
  EXPECT_EQ(one.rank.pending().Walk([](const auto&, const auto&) { return true; }).value(), 0U);
}

TEST(RankRedirectTest, WhileNobodyIsKnownUpdatesRunHere) {
  RankRedirect router;
  EXPECT_TRUE(router.OwnsGroup(3, kLevel));
}

}  // namespace
}  // namespace zeze::arch
