// Real processes: a Global, servers and a database; work from all of them, and then trouble.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/cluster/cluster_tables.h"
#include "tests/history/checker.h"
#include "tests/history/cut.h"
#include "tests/history/history.h"
#include "tests/history/recorder.h"
#include "tools/cli/open_database.h"
#include "zeze/bean/codec.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/database_server.h"
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

class ClusterTest : public ::testing::TestWithParam<Engine> {
 protected:
  ClusterTest() : url_(GetParam().server().NewDatabase()) {
    Result<std::unique_ptr<Storage>> opened = cli::OpenDatabase(url_);
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
    const std::string history = directory_.File(fmt::format("history{}", ++last_seed_));
    histories_.push_back(history);
    return std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_CLUSTER_SERVER, "--id", std::to_string(id), "--database", url_, "--global",
                    std::to_string(global_port_), "--history", history, "--seed",
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
    history::FinalState state;
    for (const auto& [key, list] : ReadTable<BList>("cluster_lists")) {
      state.Add(static_cast<history::Key>(key), list.ToState());
    }
    const history::CutReport cut = history::CheckCut(all, state, {}, {});
    EXPECT_TRUE(cut.ok()) << cut.ToString();
    all.MarkLost(cut.lost);
    const history::Report report = history::Check(all, {});
    EXPECT_TRUE(report.ok()) << report.ToString();
    EXPECT_GT(report.committed_count, 100U);
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
  std::string url_;
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
  while (Sum("cluster_counters") < before + 100) std::this_thread::yield();
  zombie->Signal(SIGCONT);

  EXPECT_EQ(kFencedStatus, zombie->AwaitEnd()) << zombie->said();
  EXPECT_NE(std::string::npos, zombie->said().find("fenced")) << zombie->said();
  other->Signal(SIGTERM);
  EXPECT_EQ(0, other->AwaitEnd()) << other->said();
  EXPECT_EQ(0, Sum("cluster_accounts"));
  CheckHistory();
  std::cerr << global_->said() << zombie->said() << other->said();
}

INSTANTIATE_TEST_SUITE_P(Databases, ClusterTest,
                         ::testing::Values(Engine{"Postgres", SharedPostgresServer},
                                           Engine{"MariaDb", SharedMariaDbServer}),
                         [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace zeze::cluster
