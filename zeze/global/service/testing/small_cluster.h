// Global and Server: a small cluster in one process, with connections, over one database in memory.
//
//   const auto database = NewMemoryDatabase();
//   Global global(database, "g1");
//   Server a(database, 1, global.port());
//   a.Add(1, 5);

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/lease.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze::global::testing {

using zeze::testing::BAccount;

inline constexpr LeaseOptions kLease{.duration = std::chrono::seconds(2),
                                     .clock_rate_error = 0.01,
                                     .scheduling = std::chrono::milliseconds(50)};

class Global {
 public:
  explicit Global(const std::shared_ptr<MemoryDatabase>& database, std::string holder,
                  std::uint16_t port = 0, std::int32_t shard = 0,
                  std::chrono::nanoseconds unfenced_wait = std::chrono::nanoseconds(0),
                  const LeaseOptions& lease = kLease, std::int32_t shards = 0)
      : storage_(OpenMemoryStorage(database)),
        pool_({.name = "global", .thread_count = 2}),
        io_({.name = "global-io"}),
        service_(io_, *storage_->fence(), pool_,
                 {.shard = shard,
                  .shards = shards,
                  .acceptor = {.ip = "127.0.0.1", .port = port},
                  .machine = {.lease = lease,
                              .silence_max = std::chrono::milliseconds(300),
                              .unfenced_wait = unfenced_wait},
                  .announced_bytes_max = 256'000'000,
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

struct Unfenced {
  bool allowed = false;
  bool as_old_peer = false;
};

class Server {
 public:
  // With the Globals of all shards.
  Server(const std::shared_ptr<MemoryDatabase>& database, std::int32_t server_id,
         const std::vector<std::uint16_t>& ports, Unfenced unfenced = {},
         std::chrono::nanoseconds hold = std::chrono::milliseconds(50))
      : storage_(OpenMemoryStorage(database)),
        io_({.name = "server-io"}),
        client_(io_, *storage_->fence(),
                {.server_id = server_id,
                 .shards = Shards(ports),
                 .holder = "test",
                 .lease = kLease,
                 .hold = hold,
                 .allow_unfenced_global = unfenced.allowed,
                 .log_in_as_old_peer = unfenced.as_old_peer,
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
  Server(const std::shared_ptr<MemoryDatabase>& database, std::int32_t server_id,
         std::uint16_t port, Unfenced unfenced = {})
      : Server(database, server_id, std::vector{port}, unfenced) {}
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
  // Does something when it has the first record and not the second.
  std::int64_t MoveThen(std::int64_t from, std::int64_t to, std::int64_t amount,
                        const std::function<void()>& between) {
    return engine_.Call("move", [&](Transaction& tx) {
      accounts_.GetOrAdd(tx, from)->balance -= amount;
      between();
      accounts_.GetOrAdd(tx, to)->balance += amount;
      return 0;
    });
  }
  // Of keys 0 to count-1, announced together.
  std::optional<std::int64_t> Sum(std::int64_t count, Right wanted) {
    std::vector<std::int64_t> keys;
    for (std::int64_t key = 0; key < count; ++key) keys.push_back(key);
    std::int64_t sum = 0;
    const std::int64_t code = engine_.Call("sum", [&](Transaction& tx) {
      sum = 0;
      accounts_.Prefetch(tx, keys, wanted);
      for (const std::int64_t key : keys) {
        const BAccount* account = accounts_.Get(tx, key);
        sum += account == nullptr ? 0 : account->balance;
      }
      return 0;
    });
    return code == 0 ? std::optional(sum) : std::nullopt;
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

  // Asks nobody.
  bool ReadCached(std::int64_t key) { return accounts_.ReadCached(key).has_value(); }

  Engine& engine() { return engine_; }
  GlobalClient& client() { return client_; }
  bool fenced() const { return fenced_; }

 private:
  static std::vector<GlobalClientOptions::Shard> Shards(const std::vector<std::uint16_t>& ports) {
    std::vector<GlobalClientOptions::Shard> shards;
    for (const std::uint16_t port : ports) shards.push_back({.host = "127.0.0.1", .port = port});
    return shards;
  }

  std::unique_ptr<Storage> storage_;
  IoThreads io_;
  std::atomic<bool> fenced_ = false;
  bool ended_ = false;
  Table<std::int64_t, BAccount> accounts_{TableDescriptor{.id = 7, .name = "accounts"}};
  GlobalClient client_;
  Engine engine_;
};

}  // namespace zeze::global::testing
