// Kills a process with SIGKILL again and again while it changes, clears and walks linked maps on
// RocksDB, and looks at what is stored then: every map whole, with what belongs together.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/collections/linked_map/testing/linked_map_server.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

using testing::BValueLong;
using testing::Long;
using testing::MapNode;
using testing::MapNodeKey;
using testing::MapServer;

constexpr int kMaps = 3;
constexpr std::int64_t kPinned = 10;
constexpr const char* kDirectoryVariable = "ZEZE_LINKED_MAP_CRASH_DIRECTORY";

std::string MapName(std::int64_t i) {
  return "map" + std::to_string(i);
}

MapServer::Options CrashOptions() {
  return {.checkpoint_period = std::chrono::milliseconds(5),
          .removal = {.delay = std::chrono::milliseconds(300), .batch = 10}};
}

std::unique_ptr<Storage> OpenDirectory(const std::string& directory) {
  Result<std::unique_ptr<Storage>> opened = OpenRocksDbStorage({.directory = directory});
  ZEZE_CHECK(opened.ok());
  return std::move(opened).value();
}

// In each map values -1 that stay, and others that come, go and move. Map 0 is cleared as well, and
// has none that stay. Queue entries and map entries that belong together are written together.
void Change(MapServer& server, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto log = server.queues.Open<BValueLong>("log").value();
  while (true) {
    const auto which = static_cast<std::int64_t>(random() % kMaps);
    LinkedMap<BValueLong> map = server.Open(MapName(which), 4);
    const std::string id = "x" + std::to_string(random() % 50);
    const MapEnd end = random() % 2 == 0 ? MapEnd::kHead : MapEnd::kTail;
    const std::uint64_t what = random() % 100;
    const bool rolls_back = random() % 10 == 0;
    server.engine.Call("change", [&](Transaction& tx) -> std::int64_t {
      if (what < 45) {
        map.Put(tx, id, Long(1), end);
      } else if (what < 75) {
        map.Remove(tx, id);
      } else if (what < 92) {
        map.any().Move(tx, id, end);
      } else if (what < 94 && which == 0) {
        map.Clear(tx);
        map.Put(tx, id, Long(1));
      } else {
        // The queue is as long as the last map's "count" says.
        LinkedMap<BValueLong> last = server.Open(MapName(kMaps - 1), 4);
        const bool adds = random() % 2 == 0;
        const bool changed = adds || log.Poll(tx).has_value();
        if (adds) log.Add(tx, Long(7));
        if (changed) {
          const BValueLong count = last.GetOrAdd(tx, "count", Long(0), MapEnd::kTail);
          last.Put(tx, "count", Long(count.Value + (adds ? 1 : -1)));
        }
      }
      return rolls_back ? 1 : 0;
    });
  }
}

// Ends the process if a walk misses a value that stays.
void WalkForEver(MapServer& server) {
  std::mt19937_64 random(1);
  while (true) {
    const auto which = static_cast<std::int64_t>(1 + random() % (kMaps - 1));
    std::set<std::string> pinned;
    const Result<std::size_t> walked = server.Open(MapName(which), 4)
                                           .Walk(
                                               [&](const std::string& id, const BValueLong& value) {
                                                 if (value.Value == -1 && !pinned.insert(id).second)
                                                   std::_Exit(3);
                                                 return true;
                                               },
                                               random() % 2 == 0 ? MapEnd::kHead : MapEnd::kTail);
    if (walked.ok() && pinned.size() != static_cast<std::size_t>(kPinned)) std::_Exit(4);
  }
}

// Runs in the child until it is killed.
TEST(LinkedMapCrashWorkload, DISABLED_Run) {
  const char* directory = std::getenv(kDirectoryVariable);  // NOLINT(concurrency-mt-unsafe)
  ASSERT_NE(nullptr, directory);
  const std::unique_ptr<Storage> storage = OpenDirectory(directory);
  MapServer server(*storage, CrashOptions());
  server.Start(1);
  for (std::int64_t i = 0; i < kPinned; ++i) {
    ASSERT_EQ(0, server.Do([&](Transaction& tx) {
      for (std::int64_t map = 1; map < kMaps; ++map) {
        server.Open(MapName(map), 4).GetOrAdd(tx, "pinned" + std::to_string(i), Long(-1));
      }
    }));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] { Change(server, std::random_device{}()); });
  }
  threads.emplace_back([&] { WalkForEver(server); });
  threads.emplace_back([&] {
    while (true) ZEZE_CHECK(server.delay_remove.Step(server.engine).ok());
  });
  for (std::thread& thread : threads) thread.join();
}

pid_t StartWorkload(const std::string& directory) {
  const pid_t pid = ::fork();
  ZEZE_CHECK(pid >= 0);
  if (pid == 0) {
    ::setenv(kDirectoryVariable, directory.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    ::execl("/proc/self/exe", "workload", "--gtest_also_run_disabled_tests",
            "--gtest_filter=LinkedMapCrashWorkload.DISABLED_Run", "--gtest_brief=1", nullptr);
    std::_Exit(127);
  }
  return pid;
}

// The chain from both ends, the index and the count say the same.
void VerifyMap(MapServer& server, const std::string& name,
               std::map<std::string, std::int64_t>& all) {
  SCOPED_TRACE(name);
  LinkedMap<BValueLong> map = server.Open(name, 4);
  const MapServer::Walked forward = MapServer::Walk(map);
  MapServer::Walked backward = MapServer::Walk(map, MapEnd::kTail);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  all = {forward.begin(), forward.end()};
  EXPECT_EQ(forward.size(), all.size());
  ASSERT_EQ(0, server.Do([&](Transaction& tx) {
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), map.Count(tx));
    for (const auto& [id, value] : all) EXPECT_EQ(Long(value), map.Get(tx, id));
  }));
}

void Verify(const std::string& directory) {
  const std::unique_ptr<Storage> storage = OpenDirectory(directory);
  MapServer server(*storage, CrashOptions());
  server.Start(1);
  std::size_t values = 0;
  for (std::int64_t i = 0; i < kMaps; ++i) {
    std::map<std::string, std::int64_t> all;
    VerifyMap(server, MapName(i), all);
    values += all.size();
    std::int64_t pinned = 0;
    for (const auto& [id, value] : all) pinned += value == -1 ? 1 : 0;
    EXPECT_EQ(i > 0 ? kPinned : 0, pinned);
    if (i != kMaps - 1) continue;
    auto log = server.queues.Open<BValueLong>("log").value();
    const auto count = all.find("count");
    EXPECT_EQ(count == all.end() ? 0 : count->second,
              static_cast<std::int64_t>(log.Walk([](const BValueLong&) { return true; }).value()));
  }
  // When all is collected nothing is left over: no node, no index of what is not there.
  SystemClock().SleepFor(std::chrono::milliseconds(310));
  while (server.delay_remove.Step(server.engine).value() > 0) {
  }
  EXPECT_EQ(values, server.IndexCount());
  EXPECT_LE(server.NodeCount(), values);
  ASSERT_EQ(0,
            server.Do([&](Transaction& tx) { EXPECT_EQ(0, server.delay_remove.Pending(tx, 1)); }));
  ASSERT_TRUE(server.engine.Stop().ok());
}

TEST(LinkedMapCrashTest, NoMapIsBrokenWhereverTheProcessIsKilled) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const TempDirectory directory;
  for (int life = 0; life < 12; ++life) {
    const pid_t pid = StartWorkload(directory.File("db"));
    // The moment of death is what is random here, not a synchronisation. The first life gets time
    // to put in what stays.
    const auto moment = static_cast<std::int64_t>(random() % 700);
    SystemClock().SleepFor(std::chrono::milliseconds((life == 0 ? 1500 : 300) + moment));
    ASSERT_EQ(0, ::kill(pid, SIGKILL));
    int status = 0;
    ASSERT_EQ(pid, ::waitpid(pid, &status, 0));
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
    Verify(directory.File("db"));
  }
}

}  // namespace
}  // namespace zeze
