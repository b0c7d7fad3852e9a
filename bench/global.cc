// Global as its clients see it, beside a bare echo, redis and etcd: other processes, one client
// program, in turns.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "bench/beans.h"
#include "bench/bench.h"
#include "bench/contest.h"
#include "bench/conversations.h"
#include "bench/etcd_client.h"
#include "bench/fixtures.h"
#include "bench/load_client.h"
#include "bench/measure.h"
#include "bench/serve.h"
#include "bench/work_directory.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/process_resources.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"

namespace zeze::bench {
namespace {

using zeze::testing::RawClient;

constexpr std::int64_t kKeys = 100'000;

// --- rates --------------------------------------------------------------------------------------

void AcquirePipelined(Run& run) {
  constexpr std::size_t kConnections = 8;
  constexpr std::size_t kDepth = 64;
  ServedProcess global({"global"});
  ServedProcess echo({"echo"});
  const std::unique_ptr<PeerServer> redis = StartRedis();
  GlobalConversation rights({.connections = kConnections, .depth = kDepth, .keys = kKeys});
  EchoConversation bytes(kDepth);
  RedisConversation sets(kDepth, kKeys);
  LoadClient to_global(global.port(), kConnections, rights);
  LoadClient to_echo(echo.port(), kConnections, bytes);
  LoadClient to_redis(redis->port(), kConnections, sets);
  std::vector<Contest> contests = {{.client = &to_global, .process = global.id()},
                                   {.client = &to_redis, .process = redis->id()},
                                   {.client = &to_echo, .process = echo.id()}};
  RunInTurns(contests, 3 * run.settings().seconds);
  Figure figure{.name = "global.acquire_pipelined",
                .value = Median(contests[0].rates),
                .unit = "requests/s",
                .peer = "redis SET",
                .peer_value = Median(contests[1].rates),
                .ratio = MedianRatio(contests[0].rates, contests[1].rates),
                .goal = Goal::RatioAtLeast(4)};
  run.Report(figure);
  figure.name = "global.acquire_vs_echo";
  figure.peer = "raw epoll echo";
  figure.peer_value = Median(contests[2].rates);
  figure.ratio = MedianRatio(contests[0].rates, contests[2].rates);
  figure.goal = Goal::RatioAtLeast(0.4);
  run.Report(figure);
  run.Report({.name = "global.acquire_cpu",
              .value = Median(contests[0].cpu_us),
              .unit = "us",
              .peer = "redis SET",
              .peer_value = Median(contests[1].cpu_us),
              .ratio = MedianRatio(contests[0].cpu_us, contests[1].cpu_us),
              .goal = Goal::ValueAtMost(0.3),
              .note = fmt::format("of the server, for each request; the echo's {:.3f}",
                                  Median(contests[2].cpu_us))});
}

void AcquireSingle(Run& run) {
  ServedProcess global({"global"});
  ServedProcess echo({"echo"});
  const std::unique_ptr<PeerServer> redis = StartRedis();
  GlobalConversation rights({.keys = kKeys});
  EchoConversation bytes(1);
  RedisConversation sets(1, kKeys);
  LoadClient to_global(global.port(), 1, rights);
  LoadClient to_echo(echo.port(), 1, bytes);
  LoadClient to_redis(redis->port(), 1, sets);
  PinProcess(0, kServerCore);
  for (const int process : {global.id(), echo.id(), redis->id()}) PinProcess(process, kServerCore);
  std::vector<double> ours;
  std::vector<double> echoes;
  std::vector<double> redises;
  const double end = WallSeconds() + 3 * run.settings().seconds;
  while (WallSeconds() < end) {
    ours.push_back(Median(to_global.Latencies(0.2)) * 1e6);
    echoes.push_back(Median(to_echo.Latencies(0.2)) * 1e6);
    redises.push_back(Median(to_redis.Latencies(0.2)) * 1e6);
  }
  UnpinProcess(0);
  Figure figure{.name = "global.acquire_single",
                .value = Median(ours),
                .unit = "us",
                .peer = "raw epoll echo",
                .peer_value = Median(echoes),
                .ratio = MedianRatio(ours, echoes),
                .goal = Goal::RatioAtMost(1.35)};
  run.Report(figure);
  figure.name = "global.acquire_vs_redis";
  figure.peer = "redis SET";
  figure.peer_value = Median(redises);
  figure.ratio = MedianRatio(ours, redises);
  figure.goal = Goal::RatioAtMost(1.1);
  run.Report(figure);
}

// A constant of another day is no peer of this run, but it is the goal that was set.
void Fight(Run& run, std::size_t servers, double java_per_second, double own_again) {
  ServedProcess global({"global"});
  GlobalConversation rights({.kind = GlobalConversation::Kind::kFight,
                             .connections = servers,
                             .depth = 64,
                             .keys = 9'984,  // A multiple of the depth.
                             .own_again = own_again});
  LoadClient client(global.port(), servers, rights);
  client.Run(0.5);  // Until all keys are held by somebody.
  const std::uint64_t before = rights.reduced();
  PinProcess(0, kClientCore);
  PinProcess(global.id(), kServerCore);
  const Load load = client.Run(run.settings().seconds);
  UnpinProcess(0);
  const double reduced =
      static_cast<double>(rights.reduced() - before) / static_cast<double>(load.done);
  run.Report({.name = fmt::format("global.fight_{}", servers),
              .value = load.per_second(),
              .unit = "acquires/s",
              .peer = "Zeze 1.6 (measured before)",
              .peer_value = java_per_second,
              .ratio = load.per_second() / java_per_second,
              .goal = Goal::RatioAtLeast(2),
              .note = fmt::format("{:.2f} Reduces for each acquire, none refused", reduced)});
}

void Fight2(Run& run) {
  Fight(run, 2, 143'000, 0);
}

void Fight4(Run& run) {
  Fight(run, 4, 167'000, 1.0 / 3);
}

void KeyBytes(Run& run) {
  constexpr std::uint64_t kRights = 1'000'000;
  ServedProcess global({"global"});
  GlobalConversation rights({.kind = GlobalConversation::Kind::kHold, .depth = 64});
  LoadClient client(global.port(), 1, rights);
  client.RunUntil(1000);
  const double before = ResidentBytes(global.id());
  const Load load = client.RunUntil(kRights);
  const double bytes = (ResidentBytes(global.id()) - before) / static_cast<double>(load.done);
  run.Report({.name = "global.key_bytes",
              .value = bytes,
              .unit = "B",
              .peer = "Zeze 1.6 (measured before)",
              .peer_value = 506,
              .ratio = bytes / 506,
              .goal = Goal::ValueAtMost(120)});
}

// --- etcd ---------------------------------------------------------------------------------------

void VsEtcd(Run& run) {
  const WorkDirectory directory(run.settings().directory);
  const auto port = static_cast<std::uint16_t>(FreePort());
  const std::string url = fmt::format("http://127.0.0.1:{}", port);
  const std::string peer_url = fmt::format("http://127.0.0.1:{}", FreePort());
  const PeerServer etcd(
      {ProgramPath("etcd", "etcd-server"), "--data-dir", directory.Sub("etcd"),
       "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peer_url,
       "--initial-advertise-peer-urls", peer_url, "--initial-cluster", "default=" + peer_url},
      port, "serving insecure client requests");
  ServedProcess global({"global"});
  std::int64_t epoch = 0;
  // All clients over one connection on both sides, as the threads of a server are. Each asks when
  // it has its answer.
  for (const auto& [clients, goal] : {std::pair<std::size_t, double>{1, 5}, {64, 20}}) {
    GlobalConversation rights({.depth = clients, .keys = kKeys, .epoch = ++epoch});
    LoadClient to_global(global.port(), 1, rights);
    EtcdClient to_etcd(port, clients);
    std::vector<double> ours;
    std::vector<double> theirs;
    for (int round = 0; round < 5; ++round) {
      ours.push_back(to_global.Run(run.settings().seconds / 5).per_second() / 2);
      theirs.push_back(to_etcd.LockPairsPerSecond(run.settings().seconds / 5));
    }
    run.Report({.name = fmt::format("global.vs_etcd_{}", clients),
                .value = Median(ours),
                .unit = "pairs/s",
                .peer = "etcd lock+unlock",
                .peer_value = Median(theirs),
                .ratio = MedianRatio(ours, theirs),
                .goal = Goal::RatioAtLeast(goal)});
  }
}

// --- strangers ----------------------------------------------------------------------------------

// At a port, until the end of the scope: ten thousand connections that say nothing or half a
// header, some that claim messages of 2 GB, some that ask and do not read, and twenty a second that
// send noise.
class Strangers {
 public:
  explicit Strangers(std::uint16_t port)
      : address_(NetAddress::FromText("127.0.0.1", port).value()) {
    zeze::testing::RaiseOpenFiles();
    for (std::size_t i = 0; i < kIdle; ++i) {
      idle_.push_back(std::make_unique<RawClient>(address_));
      if (i % 3 == 0) idle_.back()->Send(std::string(7, '\0'));
      if (i % 100 == 1) idle_.back()->Send(Claim());
      if (i % 1000 == 2) idle_.back()->Send(Questions());
    }
    noise_ = std::jthread([this](const std::stop_token& stop) {
      FastRandom random(1);
      while (!stop.stop_requested()) {
        std::string bytes(64, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
        RawClient(address_).Send(bytes);
        SystemClock().SleepFor(std::chrono::milliseconds(50));
      }
    });
  }

 private:
  static constexpr std::size_t kIdle = 10'000;

  static std::string Claim() {
    ByteWriter header;
    header.WriteInt4(0);
    header.WriteInt4(global::wire::Acquire::kDescriptor.protocol_id);
    header.WriteInt4(0x7fffffff);
    return std::string(header.view());
  }
  static std::string Questions() {
    std::string many;
    const std::string one = RawClient::RequestFrame<global::wire::Acquire>(
        1, {.key = std::string_view("0123456789012345678901234567890123456789"), .state = 1});
    for (int i = 0; i < 1000; ++i) many += one;
    return many;
  }

  const NetAddress address_;
  std::vector<std::unique_ptr<RawClient>> idle_;
  std::jthread noise_;
};

void BesideStrangers(Run& run) {
  constexpr std::size_t kConnections = 2;
  ServedProcess global({"global"});
  GlobalConversation rights({.connections = kConnections, .depth = 64, .keys = kKeys});
  LoadClient honest(global.port(), kConnections, rights);
  PinProcess(0, kClientCore);
  PinProcess(global.id(), kServerCore);
  std::vector<double> alone;
  std::vector<double> beside;
  const double before = ResidentBytes(global.id());
  double after = before;
  honest.Run(0.2);
  for (int round = 0; round < 5; ++round) {
    alone.push_back(honest.Run(run.settings().seconds / 5).per_second());
    const Strangers strangers(global.port());
    honest.Run(0.1);
    beside.push_back(honest.Run(run.settings().seconds / 5).per_second());
    after = std::max(after, ResidentBytes(global.id()));
  }
  UnpinProcess(0);
  run.Report({.name = "global.beside_strangers",
              .value = Median(beside),
              .unit = "requests/s",
              .peer = "without them",
              .peer_value = Median(alone),
              .ratio = MedianRatio(beside, alone),
              .goal = Goal::RatioAtLeast(0.9),
              .note = fmt::format("10,000 connections; {:.0f} MB more", (after - before) / 1e6)});
}

// --- recovery -----------------------------------------------------------------------------------

constexpr std::size_t kServers = 5;
constexpr std::int64_t kRightsOfEach = 200'000;

// A server of the cluster: its records are in memory, its epoch and lease in the shared database.
class ClusterServer {
 public:
  ClusterServer(const std::string& url, std::int32_t server_id, std::uint16_t port)
      : records_(OpenMemoryStorage()),
        shared_(Must(OpenStorage({.url = url}))),
        io_({.name = "server-io"}),
        client_(io_, *shared_->fence(),
                {.server_id = server_id,
                 .shards = {{.host = "127.0.0.1", .port = port}},
                 .holder = "bench",
                 .lease = {}}),
        engine_({.storage = records_.get(),
                 .coherence = &client_,
                 .checkpoint_period = std::chrono::nanoseconds(0)}),
        first_key_(server_id * 10'000'000) {
    CheckDone(engine_.AddTable(table_, {.cache_capacity = 0}));
    CheckDone(client_.Start(engine_));
    CheckDone(engine_.Start());
  }
  ClusterServer(const ClusterServer&) = delete;
  ClusterServer& operator=(const ClusterServer&) = delete;
  ~ClusterServer() {
    engine_.Abandon();
    client_.Abandon();
  }

  // Reads so many records of its own, each for the first time.
  void Hold(std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kStep = 100;
    for (std::int64_t key = begin; key < end; key += kStep) {
      const auto hold = [&](Transaction& tx) {
        for (std::int64_t i = key; i < std::min(end, key + kStep); ++i) {
          (void)table_.Get(tx, first_key_ + i);
        }
        return result_code::kSuccess;
      };
      while (engine_.Call("hold", hold) != result_code::kSuccess) std::this_thread::yield();
    }
  }
  bool TryOne(std::int64_t number) {
    return engine_.Call("try", [&](Transaction& tx) {
      (void)table_.Get(tx, first_key_ + number);
      return result_code::kSuccess;
    }) == result_code::kSuccess;
  }

 private:
  template <typename T>
  static T Must(Result<T> result) {
    if (!result.ok()) throw std::runtime_error(result.error().message());
    return std::move(result).value();
  }

  std::unique_ptr<Storage> records_;
  std::unique_ptr<Storage> shared_;
  IoThreads io_;
  global::GlobalClient client_;
  Table<std::int64_t, BSmall> table_{kTable};
  Engine engine_;
  const std::int64_t first_key_;
};

void Recovery(Run& run) {
  Result<std::unique_ptr<DatabaseServer>> database = StartPostgresServer({});
  if (!database.ok()) throw std::runtime_error(database.error().message());
  const std::string url = database.value()->NewDatabase();
  auto global = std::make_unique<ServedProcess>(std::vector<std::string>{"global", url});
  const std::uint16_t port = global->port();
  std::vector<std::unique_ptr<ClusterServer>> servers;
  for (std::size_t i = 0; i < kServers; ++i) {
    servers.push_back(std::make_unique<ClusterServer>(url, static_cast<std::int32_t>(i + 1), port));
  }
  const double filling = WallSeconds();
  std::vector<std::thread> threads;
  for (const auto& server : servers) {
    constexpr std::int64_t kThreads = 8;
    for (std::int64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&server, i] {
        server->Hold(i * kRightsOfEach / kThreads, (i + 1) * kRightsOfEach / kThreads);
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  const double filled = WallSeconds();
  global->process().Kill();
  const double killed = WallSeconds();
  global.reset();
  global = std::make_unique<ServedProcess>(
      std::vector<std::string>{"global", url, std::to_string(port)});
  const double started = WallSeconds();
  for (const auto& server : servers) {
    while (!server->TryOne(kRightsOfEach + 1)) std::this_thread::yield();
  }
  const double seconds = WallSeconds() - killed;
  run.Report({.name = "global.recovery",
              .value = seconds,
              .unit = "s",
              .peer = "the lease",
              .peer_value = 6,
              .ratio = seconds / 6,
              .goal = Goal::ValueAtMost(5),
              .note = fmt::format("{} rights of {} servers, asked for in {:.1f} s; the new process "
                                  "listened after {:.2f} s",
                                  kRightsOfEach * static_cast<std::int64_t>(kServers), kServers,
                                  filled - filling, started - killed)});
}

constexpr Benchmark kBenchmarks[] = {
    {"global.acquire_pipelined", "Modify, then release, 8 connections x 64, 100,000 keys",
     &AcquirePipelined},
    {"global.acquire_single", "the same, one at a time, both ends on one core", &AcquireSingle},
    {"global.fight_2", "2 servers for 10,000 keys, half of the acquires need a Reduce", &Fight2},
    {"global.fight_4", "the same with 4 servers", &Fight4},
    {"global.key_bytes", "resident bytes for each held right, keys of 12 bytes", &KeyBytes},
    {"global.vs_etcd", "acquire and release, 1 and 64 clients", &VsEtcd},
    {"global.beside_strangers", "honest servers beside 10,000 hostile connections",
     &BesideStrangers},
    {"global.recovery", "Global killed and restarted while 5 servers hold 1,000,000 rights",
     &Recovery},
};

}  // namespace

std::span<const Benchmark> GlobalBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
