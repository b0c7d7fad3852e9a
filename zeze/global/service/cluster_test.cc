// Several servers, in one process but with connections, over one database and one Global.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/lease.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/global_service.h"
#include "zeze/global/service/testing/small_cluster.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/patient_call.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze::global {
namespace {

using testing::Global;
using testing::Server;

constexpr std::chrono::nanoseconds kNoWait(0);

// The database becomes another copy as soon as it has given somebody an epoch or a term.
class FailingOver final : public Fence {
 public:
  FailingOver(Fence& behind, std::shared_ptr<MemoryDatabase> database)
      : behind_(behind), database_(std::move(database)) {}

  Result<FenceStart> Start(const FenceStartOptions& options) override {
    Result<FenceStart> started = behind_.Start(options);
    BecomeAnotherCopy(*database_);
    return started;
  }
  Result<std::int64_t> RaiseTerm(const GlobalStart& start) override {
    Result<std::int64_t> raised = behind_.RaiseTerm(start);
    BecomeAnotherCopy(*database_);
    return raised;
  }
  Result<void> Share() override { return behind_.Share(); }
  Result<std::vector<LiveServer>> InTheWay(const FenceStartOptions& options) override {
    return behind_.InTheWay(options);
  }
  Result<bool> EvictSilent(const LiveServer& seen) override { return behind_.EvictSilent(seen); }
  Result<TermRow> ReadTerm(std::int32_t shard) override { return behind_.ReadTerm(shard); }
  Result<std::optional<ClusterRow>> Cluster() override { return behind_.Cluster(); }
  Result<std::map<std::string, std::int32_t>> TableIds() override { return behind_.TableIds(); }
  Result<void> Change(const ClusterChange& change) override { return behind_.Change(change); }
  Result<void> Renew() override { return behind_.Renew(); }
  Result<void> Finish() override { return behind_.Finish(); }
  Result<std::vector<LiveServer>> ListLive() override { return behind_.ListLive(); }
  Result<EvictOutcome> Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                             std::int64_t term, const EvictUnless& unless) override {
    return behind_.Evict(server_id, epoch, shard, term, unless);
  }
  Result<std::map<std::int32_t, std::int64_t>> Wanted() override { return behind_.Wanted(); }
  Result<void> Yield(std::int32_t shard, const YieldMark& mark) override {
    return behind_.Yield(shard, mark);
  }
  Result<bool> Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                    std::int64_t term) override {
    return behind_.Want(server_id, epoch, shard, term);
  }
  Result<void> Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                      std::int64_t term) override {
    return behind_.Unwant(server_id, epoch, shard, term);
  }
  Result<std::vector<YieldedServer>> Yields(std::int32_t shard) override {
    return behind_.Yields(shard);
  }
  Result<void> LeaseOver(std::int32_t server_id, std::int64_t epoch) override {
    return behind_.LeaseOver(server_id, epoch);
  }
  Result<ServerRow> Read(std::int32_t server_id) override { return behind_.Read(server_id); }
  Result<std::map<std::int32_t, std::int64_t>> Terms() override { return behind_.Terms(); }
  Result<std::string> History() override { return behind_.History(); }

 private:
  Fence& behind_;
  const std::shared_ptr<MemoryDatabase> database_;
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

// Hole 10. Each server has what the other one wants next. If rights were kept in no order each
// would wait for the other until the moment is over for which they are kept.
TEST(Cluster, Hole10ServersThatWantRecordsCrosswiseGoOn) {
  constexpr int kRounds = 20;
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  Server b(database, 2, global.port());
  std::barrier together(2);
  std::atomic<int> runs = 0;
  std::vector<std::chrono::nanoseconds> took;
  {
    const auto move = [&](Server& server, std::int64_t from, std::int64_t to) {
      bool first = true;
      EXPECT_EQ(0, server.MoveThen(from, to, 1, [&] {
        ++runs;
        if (std::exchange(first, false)) together.arrive_and_wait();
      }));
    };
    std::jthread other([&] {
      for (int i = 0; i < kRounds; ++i) move(b, 2 * i + 1, 2 * i);
    });
    for (int i = 0; i < kRounds; ++i) {
      const auto begin = SystemClock().Now();
      move(a, 2 * i, 2 * i + 1);
      took.push_back(SystemClock().Now() - begin);
    }
  }
  // Of most of them: the machine itself may stand still now and then.
  std::nth_element(took.begin(), took.begin() + kRounds / 2, took.end());
  EXPECT_LT(took[kRounds / 2], std::chrono::milliseconds(25)) << "half of how long a right is kept";
  EXPECT_LE(runs, kRounds * 4);
  for (std::int64_t key = 0; key < 2 * kRounds; ++key) EXPECT_EQ(0, a.Read(key));
}

// Hole 10, the other half: what was just granted is not taken away before it was used once. A
// machine that stands still for longer than rights are kept shows nothing, and it is tried again.
TEST(Cluster, Hole10AFreshRightLastsForOneCommit) {
  constexpr std::chrono::milliseconds kQuestionComes(30);
  constexpr std::chrono::milliseconds kCertainlyKept(45);
  constexpr std::int64_t kTries = 100;
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  Server b(database, 2, global.port());
  for (std::int64_t key = 0; key < 2 * kTries; key += 2) {
    int runs = 0;
    std::jthread other;
    const auto begin = SystemClock().Now();
    EXPECT_EQ(0, a.MoveThen(key, key + 1, 1, [&] {
      if (++runs > 1) return;
      other = std::jthread([&] { EXPECT_EQ(0, b.Add(key, 1)); });
      SystemClock().SleepFor(kQuestionComes);
    }));
    const bool in_time = SystemClock().Now() - begin < kCertainlyKept;
    other.join();
    EXPECT_EQ(0, a.Read(key));
    if (!in_time) continue;
    EXPECT_EQ(1, runs);
    return;
  }
  FAIL() << "the machine was never fast enough for this test";
}

TEST(Cluster, AnnouncedRecordsComeTogether) {
  constexpr std::int64_t kKeys = 200;
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  Server b(database, 2, global.port());
  for (std::int64_t key = 0; key < kKeys; ++key) EXPECT_EQ(0, a.Add(key, key));

  EXPECT_EQ(kKeys * (kKeys - 1) / 2, b.Sum(kKeys, Right::kModify));
  const std::uint64_t loads = b.engine().statistics().loads;
  EXPECT_EQ(0, b.Add(7, 1)) << "it has the right to write already";
  EXPECT_EQ(loads, b.engine().statistics().loads);
  EXPECT_EQ(8, a.Read(7));
}

// More than a connection has calls.
TEST(Cluster, VeryManyRecordsMayBeAnnounced) {
  constexpr std::int64_t kKeys = 100'000;
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());

  EXPECT_EQ(0, a.Sum(kKeys, Right::kShare));
  EXPECT_EQ(static_cast<std::size_t>(kKeys), global.service().GetStatus().keys);
}

// One of them is kept by another server for a while: whoever wants only the other gets it.
TEST(Cluster, AnnouncedRecordsDoNotWaitForEachOther) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  Server b(database, 2, std::vector{global.port()}, {}, std::chrono::seconds(10));
  EXPECT_EQ(0, b.Add(1, 1));
  std::atomic<bool> announced = false;
  std::jthread other;

  EXPECT_EQ(0, b.MoveThen(0, 5, 1, [&] {
    if (other.joinable()) return;
    other = std::jthread([&] {
      EXPECT_TRUE(a.Sum(2, Right::kModify));
      announced = true;
    });
    while (b.ReadCached(1)) std::this_thread::yield();
    EXPECT_EQ(0, a.Add(1, 1));
    EXPECT_FALSE(announced);
  }));
}

TEST(Cluster, AnnouncedRecordsMayBeTakenAwayAtOnce) {
  constexpr std::int64_t kKeys = 50;
  constexpr int kServers = 3;
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  std::vector<std::unique_ptr<Server>> servers;
  for (int i = 0; i < kServers; ++i) {
    servers.push_back(std::make_unique<Server>(database, i, global.port()));
  }
  std::atomic<std::int64_t> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kServers; ++i) {
      threads.emplace_back([&, i] {
        Server& server = *servers[static_cast<std::size_t>(i)];
        for (int n = 0; n < 20; ++n) {
          if (server.Sum(kKeys, n % 2 == 0 ? Right::kModify : Right::kShare) != 0) ++wrong;
          if (server.Move((i + n) % kKeys, (i + n + 1) % kKeys, 1) != 0) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(0, wrong);
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

// More rights than a connection takes at once: a login that lacks some of them must not count.
TEST(Cluster, AServerWithManyRightsAnnouncesAllOfThem) {
  constexpr std::size_t kRecords = 56'000;  // Of 1200 bytes each: more than 64 MiB.
  const auto database = NewMemoryDatabase();
  auto global = std::make_unique<Global>(database, "g1");
  const std::uint16_t port = global->port();
  const std::unique_ptr<Storage> storage = OpenMemoryStorage(database);
  IoThreads io({.name = "server-io"});
  GlobalClient client(io, *storage->fence(),
                      {.server_id = 1,
                       .shards = {{.host = "127.0.0.1", .port = port}},
                       .holder = "test",
                       .lease = testing::kLease});
  Table<std::string, zeze::testing::BAccount> records{TableDescriptor{.id = 8, .name = "records"}};
  Engine engine({.storage = storage.get(), .coherence = &client});
  ASSERT_TRUE(engine.AddTable(records).ok());
  ASSERT_TRUE(client.Start(engine).ok());
  ASSERT_TRUE(engine.Start().ok());
  for (std::size_t begin = 0; begin < kRecords; begin += 1000) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < 1000; ++i) {
      keys.push_back(std::to_string(begin + i) + std::string(1200, 'k'));
    }
    // A busy machine loses its connection or its lease now and then. Prefetch is only a hint:
    // without a connection it does nothing, while Get waits for the right.
    ASSERT_EQ(0, PatientCall(engine, "announce", [&](Transaction& tx) {
                records.Prefetch(tx, keys, Right::kModify);
                for (const std::string& key : keys) static_cast<void>(records.Get(tx, key));
                return 0;
              }));
  }
  ASSERT_EQ(kRecords, global->service().GetStatus().keys);

  global = nullptr;
  global = std::make_unique<Global>(database, "g2", port);
  global->AwaitServing();

  EXPECT_EQ(kRecords, global->service().GetStatus().keys);
  EXPECT_TRUE(engine.Stop().ok());
  EXPECT_TRUE(client.Stop().ok());
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

TEST(Cluster, ServersEndWhenTheDatabaseBecomesAnotherCopy) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  EXPECT_EQ(0, a.Add(1, 5));

  BecomeAnotherCopy(*database);
  while (!a.fenced()) std::this_thread::yield();

  EXPECT_NE(0, a.Add(1, 1));
  a.Crash();
}

TEST(Cluster, AnEpochOrTermOfAnotherCopyIsNone) {
  const auto database = NewMemoryDatabase();
  const std::unique_ptr<Storage> storage = OpenMemoryStorage(database);
  FailingOver fence(*storage->fence(), database);
  IoThreads io({.name = "io"});
  ThreadPool pool({.name = "pool", .thread_count = 1});
  std::atomic<bool> deposed = false;
  GlobalServiceOptions options;
  options.acceptor = {.ip = "127.0.0.1", .port = 0};
  options.holder = "g1";
  options.deposed = [&] { deposed = true; };
  GlobalService global(io, fence, pool, options);
  ASSERT_TRUE(global.Start().ok());
  const auto deadline = SystemClock().Now() + std::chrono::seconds(10);
  while (!deposed && SystemClock().Now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(deposed);
  global.Stop();

  GlobalClient client(io, fence, {.server_id = 1, .holder = "test", .lease = testing::kLease});
  Engine engine({.storage = storage.get(), .coherence = &client});
  const Result<void> started = client.Start(engine);
  EXPECT_FALSE(started.ok());
  EXPECT_EQ(ErrorCode::kFenced, started.error().code());
}

// Hole 31. Global was started with a shorter lease than the server: it waits for the server's all
// the same, whether it heard of it at a login or found it in the database.
TEST(Cluster, ALeaseLastsAsLongAsItsServerSays) {
  constexpr LeaseOptions kShort{.duration = kLeaseMin, .scheduling = std::chrono::milliseconds(50)};
  for (const bool restarted : {false, true}) {
    const auto database = NewMemoryDatabase();
    auto global = std::make_unique<Global>(database, "g1", 0, 0, kNoWait, kShort);
    const std::uint16_t port = global->port();
    Server survivor(database, 2, port);
    auto gone = std::make_unique<Server>(database, 1, port);
    ASSERT_EQ(0, gone->Add(1, 5));
    ASSERT_TRUE(gone->engine().CheckpointNow().ok());
    const auto began = SystemClock().Now();
    gone->Crash();
    if (restarted) {
      global.reset();
      global = std::make_unique<Global>(database, "g2", port, 0, kNoWait, kShort);
    }
    std::optional<std::int64_t> seen;
    while (!(seen = survivor.Read(1))) std::this_thread::yield();
    EXPECT_EQ(5, seen);
    EXPECT_GE(SystemClock().Now() - began, testing::kLease.duration) << restarted;
  }
}

TEST(Cluster, AServerWithALeaseThatNoGlobalWaitsForDoesNotStart) {
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  IoThreads io({.name = "io"});
  for (const std::chrono::nanoseconds lease :
       {std::chrono::nanoseconds(kLeaseMin) - std::chrono::nanoseconds(1),
        kLeaseMax + std::chrono::nanoseconds(1)}) {
    GlobalClient client(io, *storage->fence(),
                        {.server_id = 1, .holder = "test", .lease = {.duration = lease}});
    Engine engine({.storage = storage.get(), .coherence = &client});
    const Result<void> started = client.Start(engine);
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(ErrorCode::kInvalidArgument, started.error().code());
  }
  EXPECT_EQ(0, storage->fence()->Read(1).value().epoch);
}

// With the Globals in another order two servers would ask different ones for the same record.
TEST(Cluster, AServerThatListsTheGlobalsInAnotherOrderDoesNotStart) {
  const auto database = NewMemoryDatabase();
  constexpr std::chrono::nanoseconds kRefused(0);
  Global zero(database, "g0", 0, 0, kRefused, testing::kLease, 2);
  Global one(database, "g1", 0, 1, kRefused, testing::kLease, 2);
  Server a(database, 1, {zero.port(), one.port()});
  for (std::int64_t key = 0; key < 10; ++key) EXPECT_EQ(0, a.Add(key, 1));
  const std::unique_ptr<Storage> storage = OpenMemoryStorage(database);
  IoThreads io({.name = "io"});
  GlobalClient client(io, *storage->fence(),
                      {.server_id = 2,
                       .shards = {{.host = "127.0.0.1", .port = one.port()},
                                  {.host = "127.0.0.1", .port = zero.port()}},
                       .holder = "test",
                       .lease = testing::kLease,
                       .connect_timeout = std::chrono::minutes(1)});
  Engine engine({.storage = storage.get(), .coherence = &client});

  const Result<void> started = client.Start(engine);

  ASSERT_FALSE(started.ok());
  EXPECT_NE(std::string::npos,
            started.error().message().find("is shard 1, but this server lists it in place 0"))
      << started.error().message();
  for (std::int64_t key = 0; key < 10; ++key) EXPECT_EQ(0, a.Add(key, 1));
  const Result<std::vector<LiveServer>> live = storage->fence()->ListLive();
  ASSERT_TRUE(live.ok());
  EXPECT_EQ(1U, live.value().size()) << "it has left nothing that others would wait for";
}

TEST(Cluster, TwoServersWithOneIdAreBothTold) {
  const auto database = NewMemoryDatabase();
  const zeze::testing::CapturedLog log;
  Global global(database, "g1");
  Server older(database, 1, global.port());
  const auto said = [&log](std::string_view what) {
    return std::ranges::any_of(log.lines(), [what](const std::string& line) {
      return line.find(what) != std::string::npos;
    });
  };
  EXPECT_FALSE(said("server id 1 is in use"));

  Server newer(database, 1, global.port());

  EXPECT_TRUE(said("warning: server id 1 is in use: test (epoch 1)"));
  while (!older.fenced()) std::this_thread::yield();
  // Whether Global tells it first, a flush or a renewal: it names the newer process.
  EXPECT_TRUE(said("another process has started with the same server id: test")) << [&log] {
    std::string all;
    for (const std::string& line : log.lines()) all += line + "\n";
    return all;
  }();
  older.Crash();
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
