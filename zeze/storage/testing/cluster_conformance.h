// The part of fence_conformance.h about the cluster that a database describes: what a start
// compares, and that a start that does not fit raises and fences nothing (rules 51 to 55).

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/testing/fenced_home.h"

namespace zeze {

inline FenceStartOptions ClusterStart(std::int32_t server_id, std::int32_t shards,
                                      std::vector<StoredTable> tables = {}) {
  return {.server_id = server_id,
          .holder = "holder " + std::to_string(server_id),
          .lease = std::chrono::milliseconds(3000),
          .secret = "0123456789abcdef",
          .shards = shards,
          .tables = std::move(tables)};
}

inline void ExpectRefused(const Result<FenceStart>& started, ErrorCode code,
                          std::initializer_list<std::string_view> words) {
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(ToString(started.error().code()), ToString(code));
  for (const std::string_view word : words) {
    EXPECT_NE(started.error().message().find(word), std::string::npos)
        << "\"" << word << "\" is not in: " << started.error().message();
  }
}

TEST_P(FenceConformanceTest, TheFirstGlobalMakesTheCluster) {
  auto global = Open();
  EXPECT_FALSE(global->fence().Cluster().value().has_value());

  ASSERT_TRUE(global->fence().RaiseTerm({.shard = 1, .holder = "g1", .shards = 2}).ok());
  const ClusterRow made = global->fence().Cluster().value().value();
  EXPECT_EQ(made.cluster.size(), 16U);
  EXPECT_EQ(made.protocol, kClusterProtocol);
  EXPECT_EQ(made.shards, 2);

  EXPECT_TRUE(global->fence().RaiseTerm({.shard = 0, .holder = "g2"}).ok());
  EXPECT_EQ(global->fence().Cluster().value(), made);
  // Another number, or a shard that does not exist, raises nothing.
  for (const GlobalStart& wrong : {GlobalStart{.shard = 0, .holder = "g3", .shards = 3},
                                   GlobalStart{.shard = 2, .holder = "g3"}}) {
    const Result<std::int64_t> refused = global->fence().RaiseTerm(wrong);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), ErrorCode::kIncompatible);
    EXPECT_NE(refused.error().message().find("zeze cluster shards 3"), std::string::npos)
        << refused.error().message();
  }
  EXPECT_EQ(global->fence().Terms().value(),
            (std::map<std::int32_t, std::int64_t>{{0, 1}, {1, 1}}));
  EXPECT_EQ(global->fence().Cluster().value(), made);
}

TEST_P(FenceConformanceTest, RefusesAStartWithAnotherNumberOfGlobals) {
  auto global = Open();
  ASSERT_TRUE(global->fence().RaiseTerm({.shard = 0, .holder = "g1", .shards = 2}).ok());
  auto server = Open();
  ASSERT_TRUE(server->fence().Start(ClusterStart(7, 2)).ok());

  // Under its own id: it would fence itself.
  ExpectRefused(Open()->fence().Start(ClusterStart(7, 1)), ErrorCode::kIncompatible,
                {"with 1 Global,", "has 2 shards", "GlobalCacheManagerHostNameOrAddress",
                 "zeze cluster shards 1"});

  EXPECT_EQ(server->fence().Read(7).value().epoch, 1);
  EXPECT_EQ(server->FlushOutcome("k", "v"), "ok");
}

TEST_P(FenceConformanceTest, AServerWithGlobalsStartsOnlyAfterAGlobal) {
  ExpectRefused(Open()->fence().Start(ClusterStart(7, 1)), ErrorCode::kUnavailable,
                {"zeze global"});

  FenceStartOptions under_old_global = ClusterStart(7, 1);
  under_old_global.makes_cluster = true;
  auto server = Open();
  const Result<FenceStart> started = server->fence().Start(under_old_global);
  ASSERT_TRUE(started.ok()) << started.error().message();
  EXPECT_EQ(started.value().cluster.size(), 16U);
  EXPECT_EQ(server->fence().Cluster().value()->shards, 1);
}

TEST_P(FenceConformanceTest, RefusesAStartWithAnotherIdOfATable) {
  ASSERT_TRUE(Open()->fence().RaiseTerm({.shard = 0, .holder = "g1"}).ok());
  auto server = Open();
  ASSERT_TRUE(
      server->fence().Start(ClusterStart(7, 1, {{"Game_tRole", 4}, {"Game_tItem", 5}})).ok());

  ExpectRefused(Open()->fence().Start(ClusterStart(7, 1, {{"Game_tItem", 5}, {"Game_tRole", 6}})),
                ErrorCode::kIncompatible,
                {"table Game_tRole", "id 6 in this program", "id 4 in this database",
                 "zeze cluster table Game_tRole --id 6"});

  EXPECT_EQ(server->FlushOutcome("k", "v"), "ok");
  // A new table beside others is no change of theirs; two names may have one id.
  EXPECT_TRUE(Open()->fence().Start(ClusterStart(8, 1, {{"Game_tRole", 4}, {"tNew", 4}})).ok());
  ExpectRefused(Open()->fence().Start(ClusterStart(9, 1, {{"tNew", 7}})), ErrorCode::kIncompatible,
                {"table tNew"});
}

TEST_P(FenceConformanceTest, OfStartsAtTheSameTimeThatDisagreeOneIsRefused) {
  constexpr int kRounds = 6;
  ASSERT_TRUE(Open()->fence().RaiseTerm({.shard = 0, .holder = "g1"}).ok());
  for (int round = 0; round < kRounds; ++round) {
    const std::string table = "t" + std::to_string(round);
    std::vector<std::unique_ptr<FencedProcess>> processes;
    std::vector<std::optional<Result<FenceStart>>> results(2);
    for (int i = 0; i < 2; ++i) processes.push_back(Open());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        const auto id = static_cast<std::int32_t>(i);
        results[i] = processes[i]->fence().Start(ClusterStart(id, 1, {{table, id}}));
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::size_t winner = results[0]->ok() ? 0 : 1;
    EXPECT_TRUE(results[winner]->ok()) << results[winner]->error().message();
    ExpectRefused(*results[1 - winner], ErrorCode::kIncompatible, {"table " + table});
    EXPECT_TRUE(processes[winner]->fence().Finish().ok());
  }
}

TEST_P(FenceConformanceTest, AServerWithoutGlobalStartsOnlyAlone) {
  ASSERT_TRUE(Open()->fence().RaiseTerm({.shard = 0, .holder = "g1"}).ok());
  auto server = Open();
  ASSERT_TRUE(server->fence().Start(ClusterStart(7, 1)).ok());

  auto alone = Open();
  for (const std::int32_t id : {7, 8}) {
    ExpectRefused(
        alone->fence().Start(ClusterStart(id, 0)), ErrorCode::kInUse,
        {"without a Global", "server 7 (holder 7)", "GlobalCacheManagerHostNameOrAddress"});
  }
  const std::vector<LiveServer> in_the_way = alone->fence().InTheWay(ClusterStart(8, 0)).value();
  ASSERT_EQ(in_the_way.size(), 1U);
  EXPECT_EQ(in_the_way[0].server_id, 7);
  EXPECT_EQ(server->FlushOutcome("k", "v"), "ok");

  ASSERT_TRUE(server->fence().Finish().ok());
  ASSERT_TRUE(alone->fence().Start(ClusterStart(8, 0)).ok());
  ExpectRefused(Open()->fence().Start(ClusterStart(7, 1)), ErrorCode::kInUse,
                {"with 1 Global,", "server 8 (holder 8)", "without a Global"});
  EXPECT_EQ(alone->FlushOutcome("k", "v"), "ok");
  // It crashes and starts again, which needs nobody's consent.
  auto again = Open();
  ASSERT_TRUE(again->fence().Start(ClusterStart(8, 0)).ok());
  EXPECT_EQ(alone->FlushOutcome("k", "zombie"), "fenced");
  ASSERT_TRUE(again->fence().Finish().ok());
  ASSERT_TRUE(again->fence().LeaseOver(8, 1).ok());
  EXPECT_TRUE(Open()->fence().Start(ClusterStart(7, 1)).ok());
}

TEST_P(FenceConformanceTest, EvictsOnlyAServerThatIsSilentSinceItWasSeen) {
  auto alone = Open();
  ASSERT_TRUE(alone->fence().Start(ClusterStart(8, 0)).ok());
  ASSERT_TRUE(alone->fence().Renew().ok());
  auto other = Open();
  const FenceStartOptions start = ClusterStart(9, 0);
  const LiveServer seen = other->fence().InTheWay(start).value().at(0);
  EXPECT_EQ(seen.renew_seq, 1);

  ASSERT_TRUE(alone->fence().Renew().ok());
  EXPECT_EQ(other->fence().EvictSilent(seen).value(), false);
  EXPECT_EQ(alone->FlushOutcome("k", "v"), "ok");
  EXPECT_EQ(other->fence().EvictSilent(other->fence().InTheWay(start).value().at(0)).value(), true);

  EXPECT_EQ(alone->FlushOutcome("k", "zombie"), "fenced");
  EXPECT_TRUE(other->fence().ListLive().value().empty());
  EXPECT_TRUE(other->fence().Start(start).ok());
}

TEST_P(FenceConformanceTest, AnExclusiveStartKeepsOthersOutUntilItShares) {
  ASSERT_TRUE(Open()->fence().RaiseTerm({.shard = 0, .holder = "g1"}).ok());
  auto other = Open();
  ASSERT_TRUE(other->fence().Start(ClusterStart(7, 1)).ok());
  FenceStartOptions options = ClusterStart(8, 1);
  options.exclusive = true;
  options.exclusive_for = "table tRole goes from version 1 to 2";
  auto server = Open();
  ExpectRefused(server->fence().Start(options), ErrorCode::kInUse,
                {"table tRole goes from version 1 to 2", "server 7 (holder 7)", "stop"});
  ASSERT_TRUE(other->fence().Finish().ok());
  ASSERT_TRUE(server->fence().Start(options).ok());

  ExpectRefused(Open()->fence().Start(ClusterStart(7, 1)), ErrorCode::kInUse, {"server 8"});
  ASSERT_TRUE(server->fence().Share().ok());

  auto late = Open();
  EXPECT_TRUE(late->fence().Start(ClusterStart(7, 1)).ok());
  EXPECT_EQ(server->FlushOutcome("k", "v"), "ok");
  ASSERT_TRUE(Open()->fence().Start(ClusterStart(8, 1)).ok());
  EXPECT_EQ(FencedProcess::Outcome(server->fence().Share()), "fenced");
}

TEST_P(FenceConformanceTest, ChangesTheClusterWhileNobodyLives) {
  ASSERT_TRUE(Open()->fence().RaiseTerm({.shard = 0, .holder = "g1"}).ok());
  auto server = Open();
  ASSERT_TRUE(server->fence().Start(ClusterStart(7, 1, {{"Game_tRole", 4}, {"old", 5}})).ok());
  const ClusterRow before = server->fence().Cluster().value().value();
  const ClusterChange change{
      .shards = 2, .new_identity = true, .tables = {{"Game_tRole", 6}, {"old", std::nullopt}}};

  const Result<void> refused = Open()->fence().Change(change);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kInUse);
  EXPECT_NE(refused.error().message().find("server 7 (holder 7)"), std::string::npos);
  EXPECT_EQ(server->fence().Cluster().value(), before);
  ASSERT_TRUE(server->fence().Finish().ok());
  ASSERT_FALSE(Open()->fence().Change({.tables = {{"never seen", 6}}}).ok());
  const Result<void> changed = Open()->fence().Change(change);
  ASSERT_TRUE(changed.ok()) << changed.error().message();

  const ClusterRow after = server->fence().Cluster().value().value();
  EXPECT_EQ(after.shards, 2);
  EXPECT_NE(after.cluster, before.cluster);
  EXPECT_EQ(server->fence().TableIds().value().size(), 1U);
  EXPECT_EQ(server->fence().TableIds().value().begin()->second, 6);
  ExpectRefused(Open()->fence().Start(ClusterStart(7, 2, {{"Game_tRole", 4}})),
                ErrorCode::kIncompatible, {"id 6 in this database"});
  EXPECT_TRUE(Open()->fence().Start(ClusterStart(7, 2, {{"Game_tRole", 6}, {"old", 9}})).ok());
}

TEST_P(FenceConformanceTest, KeepsTheSecretsOfEpochsAndTerms) {
  auto global = Open();
  ASSERT_TRUE(
      global->fence().RaiseTerm({.shard = 0, .holder = "g1", .secret = "fedcba9876543210"}).ok());
  ASSERT_TRUE(Open()->fence().Start(ClusterStart(7, 1)).ok());

  EXPECT_EQ(global->fence().ReadTerm(0).value().term, 1);
  EXPECT_EQ(global->fence().ReadTerm(0).value().secret, "fedcba9876543210");
  EXPECT_EQ(global->fence().ReadTerm(1).value().term, 0);
  EXPECT_EQ(global->fence().Read(7).value().secret, "0123456789abcdef");
}

// Servers of earlier builds go on beside; the rows are made from what is there.
TEST_P(FenceConformanceTest, MakesTheClusterOfADatabaseOfAnEarlierBuild) {
  auto of_earlier_build = Open();
  of_earlier_build->Start(7);
  ASSERT_TRUE(of_earlier_build->fence().RaiseTerm({.shard = 1, .holder = "g1", .shards = 2}).ok());
  if (!home_->BecomeOld()) GTEST_SKIP() << "this database has nothing of an earlier build";

  auto global = Open();
  ASSERT_TRUE(global->fence().RaiseTerm({.shard = 0, .holder = "g2"}).ok());

  EXPECT_EQ(global->fence().Cluster().value()->shards, 2);
  EXPECT_EQ(global->fence().Read(7).value().secret, "");
  EXPECT_EQ(of_earlier_build->FlushOutcome("k", "v"), "ok");
  EXPECT_TRUE(of_earlier_build->fence().Renew().ok());
  EXPECT_TRUE(Open()->fence().Start(ClusterStart(8, 2, {{"tRole", 4}})).ok());
}

}  // namespace zeze
