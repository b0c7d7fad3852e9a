// Several servers, in one process but with connections, over one database and one Global.

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

#include "zeze/base/thread_pool.h"
#include "zeze/global/lease.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze::global {
namespace {

using zeze::testing::BAccount;

constexpr LeaseOptions kLease{.duration = std::chrono::seconds(2),
                              .clock_rate_error = 0.01,
                              .scheduling = std::chrono::milliseconds(50)};

class Global {
 public:
  explicit Global(const std::shared_ptr<MemoryDatabase>& database, std::string holder,
                  std::uint16_t port = 0)
      : storage_(OpenMemoryStorage(database)),
        pool_({.name = "global", .thread_count = 2}),
        io_({.name = "global-io"}),
        service_(io_, *storage_->fence(), pool_,
                 {.shard = 0,
                  .acceptor = {.ip = "127.0.0.1", .port = port},
                  .machine = {.lease = kLease, .silence_max = std::chrono::milliseconds(300)},
                  .holder = std::move(holder)}) {
    const Result<void> started = service_.Start();
    EXPECT_TRUE(started.ok()) << started.error().message();
  }
  ~Global() { service_.Stop(); }

  std::uint16_t port() const { return service_.address().port(); }
  GlobalService& service() { return service_; }
  void AwaitServing() {
    while (!service_.GetStatus().serving) std::this_thread::yield();
  }

 private:
  std::unique_ptr<Storage> storage_;
  ThreadPool pool_;
  IoThreads io_;
  GlobalService service_;
};

class Server {
 public:
  Server(const std::shared_ptr<MemoryDatabase>& database, std::int32_t server_id,
         std::uint16_t port)
      : storage_(OpenMemoryStorage(database)),
        io_({.name = "server-io"}),
        client_(io_, *storage_->fence(),
                {.server_id = server_id,
                 .shards = {{.host = "127.0.0.1", .port = port}},
                 .holder = "test",
                 .lease = kLease,
                 .on_fenced = [this](const std::string&) { fenced_ = true; }}),
        engine_({.storage = storage_.get(),
                 .coherence = &client_,
                 .checkpoint_period = std::chrono::milliseconds(200),
                 .on_fenced = [this](const std::string&) { fenced_ = true; }}) {
    EXPECT_TRUE(engine_.AddTable(accounts_).ok());
    const Result<void> started = client_.Start(engine_);
    EXPECT_TRUE(started.ok()) << started.error().message();
    EXPECT_TRUE(engine_.Start().ok());
  }
  ~Server() {
    if (ended_) return;
    EXPECT_TRUE(engine_.Stop().ok());
    const Result<void> stopped = client_.Stop();
    EXPECT_TRUE(stopped.ok()) << stopped.error().message();
  }

  // As if it were killed.
  void Crash() {
    ended_ = true;
    engine_.Abandon();
    client_.Abandon();
  }

  std::int64_t Add(std::int64_t key, std::int64_t amount) {
    return engine_.Call("add", [&](Transaction& tx) {
      accounts_.GetOrAdd(tx, key)->balance += amount;
      return 0;
    });
  }
  std::int64_t Move(std::int64_t from, std::int64_t to, std::int64_t amount) {
    return engine_.Call("move", [&](Transaction& tx) {
      accounts_.GetOrAdd(tx, from)->balance -= amount;
      accounts_.GetOrAdd(tx, to)->balance += amount;
      return 0;
    });
  }
  std::optional<std::int64_t> Read(std::int64_t key) {
    std::optional<std::int64_t> balance;
    const std::int64_t code = engine_.Call("read", [&](Transaction& tx) {
      const BAccount* account = accounts_.Get(tx, key);
      balance = account == nullptr ? 0 : account->balance;
      return 0;
    });
    if (code != 0) return std::nullopt;
    return balance;
  }

  Engine& engine() { return engine_; }
  bool fenced() const { return fenced_; }

 private:
  std::unique_ptr<Storage> storage_;
  IoThreads io_;
  std::atomic<bool> fenced_ = false;
  bool ended_ = false;
  Table<std::int64_t, BAccount> accounts_{TableDescriptor{.id = 7, .name = "accounts"}};
  GlobalClient client_;
  Engine engine_;
};

TEST(Cluster, WhatOneServerWritesTheOtherReads) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  Server b(database, 2, global.port());

  EXPECT_EQ(0, a.Add(1, 5));
  EXPECT_EQ(5, b.Read(1));
  EXPECT_EQ(0, b.Add(1, 6));
  EXPECT_EQ(11, a.Read(1));
  EXPECT_EQ(11, b.Read(1));
}

TEST(Cluster, MovesBetweenRandomRecordsFromAllServersSumToZero) {
  constexpr int kServers = 3;
  constexpr int kThreads = 2;
  constexpr int kMoves = 500;
  constexpr std::int64_t kKeys = 20;
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  std::vector<std::unique_ptr<Server>> servers;
  for (int i = 0; i < kServers; ++i) {
    servers.push_back(std::make_unique<Server>(database, i, global.port()));
  }
  std::atomic<std::int64_t> failed = 0;
  std::atomic<std::int64_t> added = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kServers * kThreads; ++i) {
      threads.emplace_back([&, i] {
        Server& server = *servers[static_cast<std::size_t>(i) % kServers];
        std::uint64_t random = static_cast<std::uint64_t>(i) + 1;
        for (int n = 0; n < kMoves; ++n) {
          random = random * 6364136223846793005U + 1442695040888963407U;
          const auto from = static_cast<std::int64_t>((random >> 33) % kKeys);
          const auto to = static_cast<std::int64_t>((random >> 40) % kKeys);
          if (from != to && server.Move(from, to, 1) != 0) ++failed;
          if (server.Add(100, 1) == 0) {
            ++added;
          } else {
            ++failed;
          }
        }
      });
    }
  }
  EXPECT_EQ(0, failed);
  for (const auto& server : servers) {
    std::int64_t sum = 0;
    for (std::int64_t key = 0; key < kKeys; ++key) sum += server->Read(key).value_or(1'000'000);
    EXPECT_EQ(0, sum);
    EXPECT_EQ(added, server->Read(100));
  }
}

TEST(Cluster, ARestartedGlobalGrantsWhatIsAnnouncedToItsHoldersOnly) {
  const auto database = NewMemoryDatabase();
  auto global = std::make_unique<Global>(database, "g1");
  const std::uint16_t port = global->port();
  Server a(database, 1, port);
  Server b(database, 2, port);
  EXPECT_EQ(0, a.Add(1, 5));

  global = nullptr;
  EXPECT_EQ(0, a.Add(1, 1)) << "it has the right and a lease";
  EXPECT_EQ(std::nullopt, b.Read(1)) << "nobody can give it the right";
  global = std::make_unique<Global>(database, "g2", port);
  global->AwaitServing();

  EXPECT_EQ(0, a.Add(1, 1));
  std::optional<std::int64_t> seen;
  while (!(seen = b.Read(1))) std::this_thread::yield();
  EXPECT_EQ(7, seen);
}

TEST(Cluster, ACrashedServersRecordsAreFreeWhenItsLeaseIsOver) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  Server b(database, 2, global.port());
  EXPECT_EQ(0, a.Add(1, 5));
  EXPECT_TRUE(a.engine().CheckpointNow().ok());
  EXPECT_EQ(0, a.Add(1, 100));  // Not saved: lost with it.
  a.Crash();

  std::optional<std::int64_t> seen;
  while (!(seen = b.Read(1))) std::this_thread::yield();
  EXPECT_EQ(5, seen);
  EXPECT_EQ(0, b.Add(1, 1));
}

TEST(Cluster, AServerThatAnOperatorCleansUpStopsItself) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  Server b(database, 2, global.port());
  EXPECT_EQ(0, a.Add(1, 5));
  EXPECT_TRUE(a.engine().CheckpointNow().ok());

  EXPECT_TRUE(global.service().CleanUp(1));
  while (!a.fenced()) std::this_thread::yield();

  EXPECT_NE(0, a.Add(1, 1));
  std::optional<std::int64_t> seen;
  while (!(seen = b.Read(1))) std::this_thread::yield();
  EXPECT_EQ(5, seen);
  a.Crash();
}

}  // namespace
}  // namespace zeze::global
