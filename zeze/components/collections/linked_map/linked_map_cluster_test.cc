// Two servers with rights from a Global change, walk and collect the same maps and queues.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/collections/linked_map/testing/linked_map_server.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/testing/small_cluster.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/memory/memory_storage.h"

namespace zeze {
namespace {

using testing::BValueLong;
using testing::Long;
using testing::MapServer;

class ClusterServer {
 public:
  ClusterServer(const std::shared_ptr<MemoryDatabase>& database, std::int32_t id,
                std::uint16_t port, DelayRemoveOptions removal)
      : storage_(OpenMemoryStorage(database)),
        io_({.name = "server-io"}),
        client_(io_, *storage_->fence(),
                {.server_id = id,
                 .shards = {{.host = "127.0.0.1", .port = port}},
                 .holder = "test",
                 .lease = global::testing::kLease,
                 .hold = std::chrono::milliseconds(5)}),
        server(*storage_, {.coherence = &client_,
                           .checkpoint_period = std::chrono::milliseconds(50),
                           .removal = removal}) {
    // Roots of maps stand for any records that are written again.
    server.delay_remove.Serve(server.maps.tLinkedMaps);
    const Result<void> started = client_.Start(server.engine);
    EXPECT_TRUE(started.ok()) << started.error().message();
    server.Start(id);
  }
  ~ClusterServer() {
    if (crashed_) return;
    EXPECT_TRUE(server.engine.Stop().ok());
    EXPECT_TRUE(client_.Stop().ok());
  }
  void Crash() {
    crashed_ = true;
    server.engine.Abandon();
    client_.Abandon();
  }

 private:
  bool crashed_ = false;
  std::unique_ptr<Storage> storage_;
  IoThreads io_;
  global::GlobalClient client_;

 public:
  MapServer server;
};

TEST(LinkedMapClusterTest, TwoServersChangeWalkAndCollectOneMap) {
  const auto database = NewMemoryDatabase();
  global::testing::Global global(database, "g1");
  const DelayRemoveOptions removal{.delay = std::chrono::milliseconds(500), .batch = 5};
  ClusterServer a(database, 1, global.port(), removal);
  ClusterServer b(database, 2, global.port(), removal);
  constexpr std::int64_t kPinned = 5;
  for (std::int64_t i = 0; i < kPinned; ++i) {
    ASSERT_EQ(0, a.server.Do([&](Transaction& tx) {
      auto map = a.server.Open("m", 2);
      map.Put(tx, "pinned" + std::to_string(i), Long(-1), MapEnd::kTail);
      map.Put(tx, "x" + std::to_string(i), Long(1), MapEnd::kTail);
    }));
  }
  std::atomic<int> writing = 2;
  std::atomic<std::int64_t> added = 0;
  std::atomic<std::int64_t> taken = 0;
  std::vector<std::thread> threads;
  for (ClusterServer* at : {&a, &b}) {
    threads.emplace_back([&, at] {
      MapServer& server = at->server;
      auto map = server.Open("m", 2);
      auto queue = server.queues.Open<BValueLong>("q", {.node_size = 2}).value();
      std::mt19937_64 random(std::random_device{}());
      for (int n = 0; n < 120; ++n) {
        const std::string id = "x" + std::to_string(random() % 12);
        const MapEnd end = random() % 2 == 0 ? MapEnd::kHead : MapEnd::kTail;
        const std::uint64_t what = random() % 4;
        std::optional<BValueLong> polled;
        const std::int64_t code = server.Do([&](Transaction& tx) {
          if (what == 0) map.any().Move(tx, id, end);
          if (what == 1) map.Put(tx, id, Long(n), end);
          if (what >= 2) map.Remove(tx, id);
          if (what % 2 == 0) queue.Add(tx, Long(n));
          if (what % 2 == 1) polled = queue.Poll(tx);
        });
        EXPECT_EQ(0, code);
        if (code == 0 && what % 2 == 0) ++added;
        if (code == 0 && polled && what % 2 == 1) ++taken;
      }
      --writing;
    });
    threads.emplace_back([&, at] {
      while (writing > 0) {
        std::multiset<std::string> pinned;
        const Result<std::size_t> walked =
            at->server.Open("m", 2).Walk([&](const std::string& id, const BValueLong& value) {
              if (value.Value == -1) pinned.insert(id);
              return true;
            });
        EXPECT_TRUE(walked.ok()) << walked.error().message();
        EXPECT_EQ(static_cast<std::size_t>(kPinned), pinned.size());
        EXPECT_TRUE(at->server.delay_remove.Step(at->server.engine).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  auto map = b.server.Open("m", 2);
  auto queue = b.server.queues.Open<BValueLong>("q").value();
  ASSERT_EQ(0, b.server.Do([&](Transaction& tx) {
    EXPECT_EQ(added - taken, queue.Size(tx));
    EXPECT_EQ(static_cast<std::int64_t>(MapServer::Walk(map).size()), map.Count(tx));
  }));
}

// The record is removed by A, written by B, and A is gone when it would be due: B leaves it alone,
// and removes the other.
TEST(LinkedMapClusterTest, AWriteOnAnotherServerCancelsARemoval) {
  const auto database = NewMemoryDatabase();
  global::testing::Global global(database, "g1");
  const DelayRemoveOptions removal{.delay = std::chrono::milliseconds(200),
                                   .take_over_after = std::chrono::milliseconds(100)};
  ClusterServer b(database, 2, global.port(), removal);
  {
    ClusterServer a(database, 1, global.port(), removal);
    ASSERT_EQ(0, a.server.Do([&](Transaction& tx) {
      for (const char* name : {"kept", "gone"}) {
        a.server.maps.tLinkedMaps.Put(tx, name, {.Count = 5});
        a.server.maps.tLinkedMaps.DelayRemove(tx, name);
      }
    }));
    ASSERT_EQ(0, b.server.Do([&](Transaction& tx) {
      b.server.maps.tLinkedMaps.Put(tx, "kept", {.Count = 5});
    }));
    ASSERT_TRUE(a.server.engine.CheckpointNow().ok());
  }
  // Until the first server's time is over: a moment of real time, nothing else is waited for.
  while (b.server.maps.tLinkedMaps.ReadCopy("gone").value()) {
    const Result<std::size_t> done = b.server.delay_remove.StepForOthers(b.server.engine);
    ASSERT_TRUE(done.ok()) << done.error().message();
  }
  EXPECT_TRUE(b.server.maps.tLinkedMaps.ReadCopy("kept").value());
  EXPECT_EQ(1u, b.server.delay_remove.statistics().cancelled);
}

TEST(LinkedMapClusterTest, AServerThatDiedStartsAgainWhileItsRightsLast) {
  const auto database = NewMemoryDatabase();
  global::testing::Global global(database, "g1");
  auto before = std::make_unique<ClusterServer>(database, 1, global.port(), DelayRemoveOptions{});
  before->Crash();
  const ClusterServer after(database, 1, global.port(), {});  // Expects that it starts.
}

}  // namespace
}  // namespace zeze
