// Servers under a Global of Zeze 1.6, and servers that log in as those of Zeze 1.6 do.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/testing/old_global.h"
#include "zeze/global/service/testing/small_cluster.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/faulty_storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze::global {
namespace {

using testing::Global;
using testing::OldGlobal;
using testing::Server;
using testing::Unfenced;

constexpr Unfenced kAllowed{.allowed = true};
constexpr Unfenced kOldPeer{.allowed = true, .as_old_peer = true};
constexpr auto kLongestUpgrade = std::chrono::seconds(3);

void AwaitAdd(Server& server, std::int64_t key, std::int64_t amount) {
  while (server.Add(key, amount) != 0) std::this_thread::yield();
}

std::int64_t AwaitRead(Server& server, std::int64_t key) {
  std::optional<std::int64_t> seen;
  while (!(seen = server.Read(key))) std::this_thread::yield();
  return *seen;
}

// Works from several servers on few records; what all of them added to key 100.
std::int64_t Contend(const std::vector<Server*>& servers, std::atomic<std::int64_t>& failed) {
  constexpr int kThreads = 2;
  constexpr int kMoves = 150;
  constexpr std::uint64_t kKeys = 10;
  std::atomic<std::int64_t> added = 0;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < servers.size() * kThreads; ++i) {
    threads.emplace_back([&, i] {
      Server& server = *servers[i % servers.size()];
      std::uint64_t random = i + 1;
      for (int n = 0; n < kMoves; ++n) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        const auto from = static_cast<std::int64_t>((random >> 33) % kKeys);
        const auto to = static_cast<std::int64_t>((random >> 40) % kKeys);
        if (from != to && server.Move(from, to, 1) != 0) ++failed;
        (server.Add(100, 1) == 0 ? added : failed)++;
      }
    });
  }
  threads.clear();
  return added;
}

TEST(UnfencedGlobal, IsNotUsedUnlessThatIsAllowed) {
  const auto database = NewMemoryDatabase();
  OldGlobal global;
  const std::unique_ptr<Storage> storage = OpenMemoryStorage(database);
  IoThreads io({.name = "io"});
  GlobalClient client(io, *storage->fence(),
                      {.server_id = 1,
                       .shards = {{.host = "127.0.0.1", .port = global.port()}},
                       .holder = "test",
                       .lease = testing::kLease,
                       .connect_timeout = std::chrono::seconds(2)});
  Engine engine({.storage = storage.get(), .coherence = &client});

  EXPECT_FALSE(client.Start(engine).ok());
  EXPECT_FALSE(client.unfenced());
  EXPECT_EQ(0, global.counts().logins);
  client.Abandon();
}

TEST(UnfencedGlobal, GivesRightsAndTakesThemBack) {
  const auto database = NewMemoryDatabase();
  OldGlobal global;
  {
    Server a(database, 1, global.port(), kAllowed);
    Server b(database, 2, global.port(), kAllowed);
    EXPECT_TRUE(a.client().unfenced());
    EXPECT_EQ(0, a.Add(1, 5));
    EXPECT_EQ(5, b.Read(1));
    EXPECT_EQ(0, b.Add(1, 6));
    EXPECT_EQ(11, a.Read(1));
  }
  EXPECT_EQ(2, global.counts().normal_closes);
  EXPECT_EQ(0U, global.counts().keys) << "an orderly stop gives everything back";
}

TEST(UnfencedGlobal, LosesNothingUnderContention) {
  const auto database = NewMemoryDatabase();
  OldGlobal global;
  Server a(database, 1, global.port(), kAllowed);
  Server b(database, 2, global.port(), kAllowed);
  std::atomic<std::int64_t> failed = 0;

  const std::int64_t added = Contend({&a, &b}, failed);

  EXPECT_EQ(0, failed);
  for (Server* server : {&a, &b}) {
    std::int64_t sum = 0;
    for (std::int64_t key = 0; key < 10; ++key) sum += server->Read(key).value_or(1'000'000);
    EXPECT_EQ(0, sum);
    EXPECT_EQ(added, server->Read(100));
  }
}

TEST(UnfencedGlobal, ThatRemembersTheSessionLeavesTheServerItsRights) {
  const auto database = NewMemoryDatabase();
  OldGlobal global;
  Server a(database, 1, global.port(), kAllowed);
  EXPECT_EQ(0, a.Add(1, 5));
  const std::uint64_t loads = a.engine().statistics().loads;

  global.CutAll();
  while (global.counts().relogins == 0) std::this_thread::yield();
  AwaitAdd(a, 1, 1);

  EXPECT_EQ(loads, a.engine().statistics().loads);
  EXPECT_EQ(1, global.counts().logins);
  EXPECT_EQ(6, a.Read(1));
}

TEST(UnfencedGlobal, OutOfSightEverythingIsSavedAndNothingIsUsed) {
  const auto database = NewMemoryDatabase();
  auto global = std::make_unique<OldGlobal>();
  Server a(database, 1, global->port(), kAllowed);
  EXPECT_EQ(0, a.Add(1, 5));

  global = nullptr;
  while (a.Read(1)) std::this_thread::yield();  // Its connection has closed.
  EXPECT_NE(0, a.Add(1, 1));
  const std::unique_ptr<Storage> storage = OpenMemoryStorage(database);
  StorageTable* table = storage->OpenTable("accounts").value();
  std::string value;
  while (!table->Find("\1", value).value()) std::this_thread::yield();
  EXPECT_FALSE(a.fenced());
}

TEST(UnfencedGlobal, ThatWasRestartedIsAskedForEverythingAnew) {
  const auto database = NewMemoryDatabase();
  auto global = std::make_unique<OldGlobal>();
  const std::uint16_t port = global->port();
  Server a(database, 1, port, kAllowed);
  Server b(database, 2, port, kAllowed);
  for (std::int64_t round = 1; round <= 5; ++round) {
    AwaitAdd(a, 1, 1);
    AwaitAdd(b, 2, 1);
    global = nullptr;
    global = std::make_unique<OldGlobal>(port);
    EXPECT_EQ(round, AwaitRead(b, 1));
    EXPECT_EQ(round, AwaitRead(a, 2));
    EXPECT_EQ(0, global->counts().relogins) << "it knows nobody";
    EXPECT_EQ(2, global->counts().logins);
  }
}

// What could not be saved in time may be somebody else's by now.
TEST(UnfencedGlobal, OutOfSightForTooLongWithUnsavedRecordsEndsTheServer) {
  const auto database = NewMemoryDatabase();
  auto global = std::make_unique<OldGlobal>(0, wire::LoginResult{.server_release_timeout = 300});
  const std::unique_ptr<Storage> storage = OpenMemoryStorage(database);
  FaultyStorage faulty(*storage);
  IoThreads io({.name = "io"});
  std::atomic<bool> fenced = false;
  GlobalClient client(io, *storage->fence(),
                      {.server_id = 1,
                       .shards = {{.host = "127.0.0.1", .port = global->port()}},
                       .holder = "test",
                       .lease = testing::kLease,
                       .allow_unfenced_global = true,
                       .unfenced_silence_max = std::chrono::milliseconds(500),
                       .on_fenced = [&fenced](const std::string&) { fenced = true; }});
  Table<std::int64_t, testing::BAccount> accounts{TableDescriptor{.id = 7, .name = "accounts"}};
  Engine engine(
      {.storage = &faulty, .coherence = &client, .checkpoint_period = std::chrono::nanoseconds(0)});
  ASSERT_TRUE(engine.AddTable(accounts).ok());
  ASSERT_TRUE(client.Start(engine).ok());
  ASSERT_TRUE(engine.Start().ok());
  ASSERT_EQ(0, engine.Call("add", [&](Transaction& tx) {
    accounts.GetOrAdd(tx, 1)->balance += 5;
    return 0;
  }));
  faulty.FailFlushes(1'000'000, ErrorCode::kUnavailable);

  global = nullptr;
  while (!fenced) std::this_thread::yield();

  engine.Abandon();
  client.Abandon();
}

TEST(UnfencedGlobal, IsLeftWhenAFencingGlobalServesTheDatabase) {
  const auto database = NewMemoryDatabase();
  OldGlobal old_global;
  Server a(database, 1, old_global.port(), kAllowed);
  EXPECT_EQ(0, a.Add(1, 5));

  const Global global(database, "g1");
  while (a.Read(1)) std::this_thread::yield();
  EXPECT_NE(0, a.Add(1, 1));
}

TEST(OldPeer, WorksBesideFencedServersUnderOurGlobal) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1", 0, 0, std::chrono::milliseconds(500));
  Server a(database, 1, global.port());
  Server b(database, 2, global.port());
  Server old_peer(database, 3, global.port(), kOldPeer);
  std::atomic<std::int64_t> failed = 0;
  EXPECT_EQ(0, AwaitRead(old_peer, 100));
  EXPECT_TRUE(global.service().GetStatus().unfenced);
  EXPECT_TRUE(old_peer.client().unfenced());
  EXPECT_FALSE(a.client().unfenced());

  const std::int64_t added = Contend({&a, &b, &old_peer}, failed);

  EXPECT_EQ(0, failed);
  for (Server* server : {&a, &b, &old_peer}) EXPECT_EQ(added, server->Read(100));
}

// Both read one record, then both write it: each is asked for its right to read while it waits for
// the right to write. Returns the longest round.
std::chrono::nanoseconds LongestRoundOfUpgrades(Server& a, Server& b) {
  constexpr int kRounds = 100;
  std::chrono::nanoseconds longest{0};
  for (int round = 1; round <= kRounds; ++round) {
    const auto begin = SystemClock().Now();
    for (Server* server : {&a, &b}) AwaitRead(*server, 1);
    {
      const std::jthread other([&b] { EXPECT_EQ(0, b.Add(1, 1)); });
      EXPECT_EQ(0, a.Add(1, 1));
    }
    longest = std::max(longest, SystemClock().Now() - begin);
    if (longest > kLongestUpgrade) break;
    EXPECT_EQ(2 * round, a.Read(1));
  }
  return longest;
}

// Rule 68. The peer holds the lock of its record while it upgrades, and cannot answer meanwhile.
TEST(OldPeer, TwoThatUpgradeOneRecordDoNotBlockEachOther) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1", 0, 0, std::chrono::milliseconds(500));
  global
      .AwaitServing();  // The stand-ins have epochs too, and a Global that starts would list them.
  Server a(database, 1, global.port(), kOldPeer);
  Server b(database, 2, global.port(), kOldPeer);
  EXPECT_LE(LongestRoundOfUpgrades(a, b), kLongestUpgrade);
}

TEST(OldPeer, OneThatUpgradesARecordWithOneOfOursDoesNotBlockIt) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1", 0, 0, std::chrono::milliseconds(500));
  Server ours(database, 1, global.port());
  Server old_peer(database, 2, global.port(), kOldPeer);
  EXPECT_LE(LongestRoundOfUpgrades(ours, old_peer), kLongestUpgrade);
}

TEST(OldPeer, IsRefusedUnlessOurGlobalAllowsIt) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  const std::unique_ptr<Storage> storage = OpenMemoryStorage(database);
  IoThreads io({.name = "io"});
  GlobalClient client(io, *storage->fence(),
                      {.server_id = 1,
                       .shards = {{.host = "127.0.0.1", .port = global.port()}},
                       .holder = "test",
                       .lease = testing::kLease,
                       .connect_timeout = std::chrono::seconds(1),
                       .allow_unfenced_global = true,
                       .log_in_as_old_peer = true});
  Engine engine({.storage = storage.get(), .coherence = &client});

  EXPECT_FALSE(client.Start(engine).ok());
  client.Abandon();
}

}  // namespace
}  // namespace zeze::global
