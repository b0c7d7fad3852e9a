// Real processes: a Global, servers and a database; work from all of them, and then trouble.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/cluster/cluster_tables.h"
#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/recorder.h"
#include "zeze/base/clock.h"
#include "zeze/bean/codec.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/loopback_proxy.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::cluster {
namespace {

constexpr int kFencedStatus = 86;
constexpr auto kPatience = std::chrono::seconds(60);

struct Engine {
  std::string name;
  std::function<DatabaseServer&()> server;
};

// What processes took along when they ended. Others went on from what was saved, so that a list may
// have had other elements at the same places. What survived is found by going back from the end.
std::vector<history::TransactionId> LostTransactions(
    const history::History& all, const std::map<history::Key, history::ListState>& final_state) {
  using State = std::tuple<history::Key, std::uint64_t, std::uint64_t>;  // Key, length, hash.
  const auto state_of = [](history::Key key, const history::ListState& state) {
    return State(key, state.length, state.hash);
  };
  std::map<State, history::ListState> before;  // By the state after an append.
  for (const history::Transaction& one : all.transactions()) {
    if (one.outcome == history::Outcome::kAborted) continue;
    std::map<history::Key, history::ListState> read;
    for (const history::Operation& operation : all.operations(one)) {
      if (operation.kind == history::OperationKind::kReadState) {
        read[operation.key] = {
            .length = operation.length, .last = operation.element, .hash = operation.detail};
      } else {
        const history::ListState was = read.at(operation.key);
        before[state_of(operation.key, was.Extended(operation.element))] = was;
      }
    }
  }
  std::set<State> there;
  for (const auto& [key, state] : final_state) {
    history::ListState at = state;
    while (at.length > 0) {
      there.insert(state_of(key, at));
      const auto found = before.find(state_of(key, at));
      EXPECT_NE(before.end(), found) << "a list of key " << key << " that nobody made";
      if (found == before.end()) break;
      at = found->second;
    }
  }
  std::vector<history::TransactionId> lost;
  for (const history::Transaction& one : all.transactions()) {
    if (one.outcome == history::Outcome::kAborted) continue;
    std::map<history::Key, history::ListState> read;
    std::size_t written = 0;
    std::size_t saved = 0;
    bool sees_lost = false;
    for (const history::Operation& operation : all.operations(one)) {
      if (operation.kind == history::OperationKind::kReadState) {
        const history::ListState state{
            .length = operation.length, .last = operation.element, .hash = operation.detail};
        read[operation.key] = state;
        sees_lost =
            sees_lost || (state.length > 0 && !there.contains(state_of(operation.key, state)));
      } else {
        ++written;
        const auto after = read.at(operation.key).Extended(operation.element);
        if (there.contains(state_of(operation.key, after))) ++saved;
      }
    }
    EXPECT_TRUE(saved == 0 || saved == written) << "half a transaction was saved: T" << one.id;
    EXPECT_FALSE(saved > 0 && sees_lost) << "an effect without its cause was saved: T" << one.id;
    if (saved < written || sees_lost) lost.push_back(one.id);
  }
  return lost;
}

class ClusterTest : public ::testing::TestWithParam<Engine> {
 protected:
  ClusterTest() : urls_(GetParam().server().NewDatabaseOnEachNode()), url_(urls_.front()) {
    Result<std::unique_ptr<Storage>> opened = OpenStorage({.url = url_});
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    storage_ = std::move(opened).value();
    StartGlobal(0);
  }

  void StartGlobal(int port) {
    global_ = std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_BINARY, "global", "--database", url_, "--ip", "127.0.0.1", "--port",
                    std::to_string(port), "--lease", "2000", "--silence", "500"}});
    ASSERT_TRUE(global_->AwaitLine("listening on port", kPatience)) << global_->said();
    const std::string said = global_->said();
    const std::string mark = "listening on port ";
    global_port_ = std::stoi(said.substr(said.find(mark) + mark.size()));
  }

  std::unique_ptr<ServerProcess> StartServer(int id, std::int64_t transactions) {
    return StartServer(id, transactions, UrlOf(id), global_port_);
  }

  // Servers are spread over the nodes of a cluster of databases.
  const std::string& UrlOf(int id) const {
    return urls_[static_cast<std::size_t>(id) % urls_.size()];
  }

  std::unique_ptr<ServerProcess> StartServer(int id, std::int64_t transactions,
                                             const std::string& url, int global_port) {
    const std::string history = directory_.File(fmt::format("history{}", ++last_seed_));
    histories_.push_back(history);
    return std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_CLUSTER_SERVER, "--id", std::to_string(id), "--database", url, "--global",
                    std::to_string(global_port), "--history", history, "--seed",
                    std::to_string(last_seed_), "--transactions", std::to_string(transactions),
                    "--threads", "2"}});
  }

  template <typename Bean>
  std::vector<std::pair<std::int64_t, Bean>> ReadTable(const std::string& name) {
    std::vector<std::pair<std::int64_t, Bean>> rows;
    StorageTable* table = storage_->OpenTable(name).value();
    const Result<std::size_t> walked =
        table->Walk({}, [&](std::string_view key, std::string_view value) {
          Bean bean;
          ByteReader in(value);
          bean.Decode(in);
          EXPECT_TRUE(in.ok());
          rows.emplace_back(DecodeKey<std::int64_t>(key).value(), bean);
          return true;
        });
    EXPECT_TRUE(walked.ok()) << walked.error().message();
    return rows;
  }

  std::int64_t Sum(const std::string& table) {
    std::int64_t sum = 0;
    for (const auto& [key, bean] : ReadTable<BNumber>(table)) sum += bean.value;
    return sum;
  }

  // A number behind a word in what a process said.
  static std::int64_t Said(const ServerProcess& process, const std::string& word) {
    const std::string said = process.said();
    const std::size_t at = said.rfind(word + " ");
    return at == std::string::npos ? -1 : std::stoll(said.substr(at + word.size() + 1));
  }

  // What all processes saw, and what the database has now.
  void CheckHistory() {
    history::History all;
    std::size_t thread_base = 0;
    for (const std::string& directory : histories_) {
      Result<history::History> loaded = history::LoadRecording(directory);
      if (!loaded.ok()) continue;  // It never began.
      Merge(loaded.value(), thread_base, all);
      thread_base += 16;
    }
    std::map<history::Key, history::ListState> final_state;
    for (const auto& [key, list] : ReadTable<BList>("cluster_lists")) {
      final_state[static_cast<history::Key>(key)] = list.ToState();
    }
    all.MarkLost(LostTransactions(all, final_state));
    const history::Report report = history::Check(all, {});
    EXPECT_TRUE(report.ok()) << report.ToString();
    EXPECT_GT(report.committed_count, 100U) << "there is too little to check";
  }

  static void Merge(const history::History& from, std::size_t thread_base, history::History& to) {
    for (const history::Transaction& one : from.transactions()) {
      to.Begin(one.id, thread_base + one.thread, from.name(one), one.begin);
      for (const history::Operation& operation : from.operations(one)) {
        switch (operation.kind) {
          case history::OperationKind::kReadState:
            to.Read(operation.key, history::ListState{.length = operation.length,
                                                      .last = operation.element,
                                                      .hash = operation.detail});
            break;
          case history::OperationKind::kReadList:
            to.Read(operation.key, from.elements(operation));
            break;
          case history::OperationKind::kAppend:
            to.Append(operation.key, operation.element);
        }
      }
      to.End(one.outcome, one.end);
    }
  }

  TempDirectory directory_;
  std::vector<std::string> urls_;  // Of the nodes.
  std::string url_;                // The first.
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<ServerProcess> global_;
  int global_port_ = 0;
  int last_seed_ = 0;
  std::vector<std::string> histories_;
};

TEST_P(ClusterTest, EveryCounterListAndTotalIsExact) {
  constexpr int kServers = 5;
  constexpr std::int64_t kTransactions = 4000;
  std::vector<std::unique_ptr<ServerProcess>> servers;
  for (int id = 0; id < kServers; ++id) servers.push_back(StartServer(id, kTransactions));

  // All the time the database alone shows trades that sum to zero.
  std::size_t looks = 0;
  for (const auto& server : servers) {
    while (!server->AwaitLine("batch", std::chrono::milliseconds(100))) {
      ASSERT_EQ(0, Sum("cluster_accounts"));
      ++looks;
      ASSERT_LT(looks, 10'000U);
    }
  }
  std::int64_t added = 0;
  for (const auto& server : servers) {
    server->Signal(SIGTERM);
    EXPECT_EQ(0, server->AwaitEnd()) << server->said();
    added += Said(*server, "stopped");
  }
  EXPECT_GT(looks, 0U);
  EXPECT_EQ(added, Sum("cluster_counters"));
  EXPECT_EQ(0, Sum("cluster_accounts"));
  CheckHistory();
}

// Rule 67. ZEZE_ROLLING_TRANSACTIONS: how many in all, at least.
TEST_P(ClusterTest, ARollingRestartRefusesNoTransaction) {
  const char* wanted = std::getenv("ZEZE_ROLLING_TRANSACTIONS");  // NOLINT(concurrency-mt-unsafe)
  const std::int64_t transactions = wanted == nullptr ? 3000 : std::stoll(wanted);
  constexpr int kServers = 3;
  constexpr int kRounds = 2;
  std::vector<std::unique_ptr<ServerProcess>> servers;
  const auto start = [&](int id) {
    auto server = StartServer(id, 0);
    EXPECT_TRUE(server->AwaitLine("ready", kPatience)) << server->said();
    return server;
  };
  for (int id = 0; id < kServers; ++id) servers.push_back(start(id));

  std::int64_t added = 0;
  std::int64_t committed = 0;
  std::int64_t refused = 0;
  int stops = 0;
  const auto stop = [&](ServerProcess& server) {
    server.Signal(SIGTERM);
    EXPECT_EQ(0, server.AwaitEnd()) << server.said();
    added += Said(server, "stopped");
    committed += Said(server, "committed");
    refused += Said(server, "refused");
    EXPECT_EQ(0, Said(server, "refused")) << server.said();
    ++stops;
  };
  for (int round = 0; (round < kRounds || committed < transactions) && !HasFailure(); ++round) {
    for (int id = 0; id < kServers; ++id) {
      ServerProcess& next = *servers[static_cast<std::size_t>((id + 1) % kServers)];
      EXPECT_TRUE(next.AwaitLine("receipt", kPatience)) << next.said();  // All of them work.
      stop(*servers[static_cast<std::size_t>(id)]);
      servers[static_cast<std::size_t>(id)] = start(id);
    }
  }
  for (const auto& server : servers) stop(*server);
  std::cout << fmt::format("{} orderly stops, {} transactions committed, {} refused\n", stops,
                           committed, refused);
  EXPECT_EQ(0, refused);
  EXPECT_GE(committed, transactions);
  EXPECT_EQ(added, Sum("cluster_counters"));
  EXPECT_EQ(0, Sum("cluster_accounts"));
  CheckHistory();
}

// The zombie: paused in the middle of its work, evicted, its records changed by another, resumed.
TEST_P(ClusterTest, AZombieStopsItself) {
  auto zombie = StartServer(0, 0);
  auto other = StartServer(1, 0);
  ASSERT_TRUE(zombie->AwaitLine("ready", kPatience)) << zombie->said();
  ASSERT_TRUE(other->AwaitLine("ready", kPatience)) << other->said();
  ASSERT_TRUE(zombie->AwaitLine("receipt", kPatience)) << zombie->said();

  zombie->Signal(SIGSTOP);
  ASSERT_TRUE(global_->AwaitLine("is evicted", kPatience)) << global_->said();
  const std::int64_t before = Sum("cluster_counters");
  // On a busy machine, too, there is then enough for CheckHistory.
  while (Sum("cluster_counters") < before + 400) std::this_thread::yield();
  zombie->Signal(SIGCONT);

  EXPECT_EQ(kFencedStatus, zombie->AwaitEnd()) << zombie->said();
  EXPECT_TRUE(zombie->AwaitLine("fenced", kPatience)) << zombie->said();
  other->Signal(SIGTERM);
  EXPECT_EQ(0, other->AwaitEnd()) << other->said();
  EXPECT_EQ(0, Sum("cluster_accounts"));
  CheckHistory();
}

// A server id, whoever has it: its process, and its ways to Global and to the database.
class Place {
 public:
  Place(
      int id, const std::string& url, int global_port,
      std::function<std::unique_ptr<ServerProcess>(int id, const std::string& url, int port)> start)
      : id_(id), start_(std::move(start)), global_(global_port), database_(PortOf(url)) {
    const std::string port = ":" + std::to_string(PortOf(url));
    url_ = url;
    url_.replace(url_.find(port), port.size(), ":" + std::to_string(database_.port()));
    Start();
  }

  ServerProcess& process() { return *process_; }
  LoopbackProxy& global() { return global_; }
  LoopbackProxy& database() { return database_; }

  void Start() { process_ = start_(id_, url_, global_.port()); }

  static void Cut(LoopbackProxy& way) {
    way.Refuse(true);
    way.CutAll();
  }

  // It has acknowledged something new; a process that was fenced is started again.
  bool Serves(std::chrono::nanoseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (true) {
      const std::string next = fmt::format("#{}.", Acknowledged() + 2);
      const auto left = deadline - std::chrono::steady_clock::now();
      if (process_->AwaitLine(next, std::max(left, left * 0))) return true;
      if (std::chrono::steady_clock::now() >= deadline) return false;
      const int status = process_->AwaitEnd();
      EXPECT_EQ(kFencedStatus, status) << process_->said();
      Keep();
      Start();
    }
  }

  // Receipts of all processes so far.
  void Keep() {
    process_->AwaitEnd();
    std::istringstream lines(process_->said());
    std::string word;
    while (lines >> word) {
      std::int64_t key = 0;
      if (word == "receipt" && lines >> key) receipts_.push_back(key);
    }
  }
  const std::vector<std::int64_t>& receipts() const { return receipts_; }

 private:
  static int PortOf(const std::string& url) {
    const std::size_t at = url.find(':', url.find("://") + 3);
    const std::size_t host = url.rfind(':', url.find('/', url.find("://") + 3));
    return std::stoi(url.substr(std::max(at, host) + 1));
  }
  std::int64_t Acknowledged() const {
    const std::string said = process_->said();
    const std::size_t end = said.rfind(".\n");
    const std::size_t at = said.rfind('#', end);
    return end == std::string::npos || at == std::string::npos ? 0
                                                               : std::stoll(said.substr(at + 1));
  }

  const int id_;
  const std::function<std::unique_ptr<ServerProcess>(int, const std::string&, int)> start_;
  std::string url_;
  LoopbackProxy global_;
  LoopbackProxy database_;
  std::unique_ptr<ServerProcess> process_;
  std::vector<std::int64_t> receipts_;
};

// ZEZE_CLUSTER_EVENTS: how many.
TEST_P(ClusterTest, NothingIsLostWhateverHappens) {
  const char* wanted = std::getenv("ZEZE_CLUSTER_EVENTS");  // NOLINT(concurrency-mt-unsafe)
  const int events = wanted == nullptr ? 10 : std::stoi(wanted);
  constexpr int kServers = 5;
  constexpr auto kBack = std::chrono::seconds(10);
  std::vector<std::unique_ptr<Place>> places;
  for (int id = 0; id < kServers; ++id) {
    places.push_back(std::make_unique<Place>(id, UrlOf(id), global_port_,
                                             [this](int server, const std::string& url, int port) {
                                               return StartServer(server, 0, url, port);
                                             }));
  }
  for (const auto& place : places) ASSERT_TRUE(place->Serves(kPatience));
  std::atomic<bool> stop = false;
  std::thread watcher([&] {
    while (!stop) EXPECT_EQ(0, Sum("cluster_accounts"));
  });

  std::mt19937 random(7);
  std::chrono::nanoseconds longest{0};
  for (int event = 0; event < events && !HasFailure(); ++event) {
    Place& place = *places[random() % kServers];
    const auto duration = std::chrono::milliseconds(500 + random() % 3500);
    const int kind = static_cast<int>(random() % 6);
    SCOPED_TRACE(fmt::format("event {} of kind {}", event, kind));
    switch (kind) {
      case 0:
        place.process().Kill();
        place.Keep();
        place.Start();
        break;
      case 1:
        place.process().Signal(SIGSTOP);
        SystemClock().SleepFor(duration);
        place.process().Signal(SIGCONT);
        break;
      case 2:
        Place::Cut(place.global());
        SystemClock().SleepFor(duration);
        place.global().Refuse(false);
        break;
      case 3:
        Place::Cut(place.database());
        SystemClock().SleepFor(duration);
        place.database().Refuse(false);
        break;
      case 4:
        global_->Kill();
        StartGlobal(global_port_);
        break;
      default: {
        Fence& fence = *storage_->fence();
        const Result<Fence::ServerRow> row =
            fence.Read(static_cast<std::int32_t>(random() % kServers));
        ASSERT_TRUE(row.ok());
        const auto terms = fence.Terms();
        ASSERT_TRUE(terms.ok());
        EXPECT_TRUE(fence
                        .Evict(static_cast<std::int32_t>(random() % kServers), row.value().epoch, 0,
                               terms.value().at(0), {})
                        .ok());
      }
    }
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& one : places) {
      EXPECT_TRUE(one->Serves(kBack)) << one->process().said() << global_->said();
    }
    longest = std::max<std::chrono::nanoseconds>(longest, std::chrono::steady_clock::now() - begin);
  }
  RecordProperty("longest_ms", static_cast<int>(longest / std::chrono::milliseconds(1)));

  for (const auto& place : places) place->process().Signal(SIGTERM);
  for (const auto& place : places) {
    const int status = place->process().AwaitEnd();
    EXPECT_TRUE(status == 0 || status == kFencedStatus) << place->process().said();
    place->Keep();
  }
  stop = true;
  watcher.join();
  EXPECT_EQ(0, Sum("cluster_accounts"));
  std::set<std::int64_t> stored;
  for (const auto& [key, bean] : ReadTable<BNumber>("cluster_receipts")) stored.insert(key);
  for (const auto& place : places) {
    for (const std::int64_t key : place->receipts()) {
      EXPECT_TRUE(stored.contains(key)) << "receipt " << key << " is lost";
    }
  }
  CheckHistory();
}

INSTANTIATE_TEST_SUITE_P(Databases, ClusterTest,
                         ::testing::Values(Engine{"Postgres", SharedPostgresServer},
                                           Engine{"MariaDb", SharedMariaDbServer},
                                           Engine{"Galera", SharedGaleraCluster}),
                         [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace zeze::cluster
