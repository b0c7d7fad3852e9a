// The database moves to another copy under running servers (rules 73 to 75): two PostgreSQLs, the
// second a replica of the first; a Global and servers that name both. Real processes.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/cluster/cluster_tables.h"
#include "tests/cluster/server_program.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::cluster {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);
constexpr int kServers = 2;

class SwitchOverTest : public testing::Test {
 protected:
  SwitchOverTest() {
    Result<std::unique_ptr<DatabaseServer>> started = StartPostgresServer({});
    EXPECT_TRUE(started.ok()) << started.error().message();
    primary_ = std::move(started).value();
    old_url_ = primary_->NewDatabase();
    Result<std::unique_ptr<DatabaseServer>> copied = StartPostgresReplica(old_url_);
    EXPECT_TRUE(copied.ok()) << copied.error().message();
    replica_ = std::move(copied).value();
    new_url_ = old_url_;
    const std::string old_port = PortIn(old_url_);
    new_url_.replace(old_url_.find(old_port), old_port.size(), PortOf(*replica_));
    both_url_ = old_url_;
    both_url_.replace(old_url_.find(old_port), old_port.size(),
                      fmt::format("{},127.0.0.1:{}", old_port, PortOf(*replica_)));
  }

  static std::string PortIn(const std::string& url) {
    const std::size_t at = url.find(':', url.find('@')) + 1;
    return url.substr(at, url.find('/', at) - at);
  }
  static std::string PortOf(DatabaseServer& server) {
    std::string port = server.RunSqlOnNode(0, "SHOW port");
    port.pop_back();
    return port;
  }

  void Synchronous() {
    primary_->RunSql(old_url_, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary_->RunSql(old_url_, "SELECT pg_reload_conf()");
    Await("one synchronous replica", [&] {
      return primary_->RunSql(old_url_,
                              "SELECT count(*) FROM pg_stat_replication WHERE sync_state = "
                              "'sync'") == "1\n";
    });
  }

  static void Await(const std::string& what, const auto& come) {
    const auto deadline = SystemClock().Now() + kPatience;
    while (!come()) ASSERT_LT(SystemClock().Now(), deadline) << what;
  }

  void StartGlobal() {
    global_ = std::make_unique<ServerProcess>(
        ServerProcessOptions{.command = {ZEZE_BINARY, "global", "--database", both_url_, "--ip",
                                         "127.0.0.1", "--port", "0", "--lease", "2000"}});
    ASSERT_TRUE(global_->AwaitLine("listening on port", kPatience)) << global_->said();
    const std::string said = global_->said();
    const std::string mark = "listening on port ";
    global_port_ = std::stoi(said.substr(said.find(mark) + mark.size()));
  }

  std::unique_ptr<ServerProcess> StartServer(int id, const std::string& url) {
    ++seed_;
    return std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_CLUSTER_SERVER, "--id", std::to_string(id), "--database", url, "--global",
                    std::to_string(global_port_), "--history",
                    directory_.File(fmt::format("history{}", seed_)), "--seed",
                    std::to_string(seed_), "--threads", "2"}});
  }

  void StartServers() {
    for (int id = 0; id < kServers; ++id) servers_.push_back(StartServer(id, both_url_));
    for (const auto& server : servers_) {
      ASSERT_TRUE(server->AwaitLine("receipt", kPatience)) << server->said();
    }
  }

  // The number of the last receipt that the server acknowledged.
  static std::int64_t Receipts(const ServerProcess& server) {
    const std::string said = server.said();
    const std::size_t at = said.rfind(" #");
    return at == std::string::npos ? 0 : std::stoll(said.substr(at + 2));
  }

  void AwaitMoreReceipts() {
    for (const auto& server : servers_) {
      const std::int64_t before = Receipts(*server);
      Await("receipts of all servers", [&] {
        return !server->running() ||
               server->AwaitLine(fmt::format("#{}.", before + 20), std::chrono::seconds(1));
      });
      ASSERT_TRUE(server->running()) << server->said();
    }
  }

  static ProgramResult Zeze(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ZEZE_BINARY);
    ServerProcess process({.command = arguments});
    const int status = process.AwaitEnd();
    return {.exit_code = status, .said = process.said()};
  }

  template <typename Each>
  void ForEachNumber(const std::string& table, const Each& each) {
    Result<std::unique_ptr<Storage>> opened = OpenStorage({.url = new_url_});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    StorageTable* stored = opened.value()->OpenTable(table).value();
    const Result<std::size_t> walked =
        stored->Walk({}, [&](std::string_view key, std::string_view value) {
          BNumber bean;
          ByteReader in(value);
          bean.Decode(in);
          each(DecodeKey<std::int64_t>(key).value(), bean.value);
          return true;
        });
    EXPECT_TRUE(walked.ok()) << walked.error().message();
  }

  TempDirectory directory_;
  std::unique_ptr<DatabaseServer> primary_;
  std::unique_ptr<DatabaseServer> replica_;
  std::string old_url_;
  std::string new_url_;
  std::string both_url_;
  std::unique_ptr<ServerProcess> global_;
  int global_port_ = 0;
  int seed_ = 0;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
};

TEST_F(SwitchOverTest, PlannedToASynchronousReplicaLosesNothingAndEndsNobody) {
  Synchronous();
  StartGlobal();
  StartServers();

  const ProgramResult begun = Zeze({"cluster", "switch-over", "begin", "--database", old_url_});
  ASSERT_EQ(begun.exit_code, 0) << begun.said;
  const std::string marker = begun.said.substr(begun.said.find("marker ") + 7, 32);
  // Nothing is finished in a copy that takes no writes, nor in the one that was left.
  EXPECT_NE(Zeze({"cluster", "switch-over", "finish", marker, "--database", new_url_}).exit_code,
            0);
  replica_->RunSqlOnNode(0, "SELECT pg_promote()");
  EXPECT_NE(Zeze({"cluster", "switch-over", "finish", "00", "--database", new_url_}).exit_code, 0);
  EXPECT_NE(Zeze({"cluster", "switch-over", "finish", marker, "--database", old_url_}).exit_code,
            0);
  const ProgramResult finished =
      Zeze({"cluster", "switch-over", "finish", marker, "--database", new_url_});
  ASSERT_EQ(finished.exit_code, 0) << finished.said;

  // The old copy still runs, is the first in everybody's address, and is not used.
  AwaitMoreReceipts();
  EXPECT_TRUE(global_->running()) << global_->said();
  std::int64_t added = 0;
  for (const auto& server : servers_) {
    server->Signal(SIGTERM);
    EXPECT_EQ(server->AwaitEnd(), 0) << server->said();
    const std::string said = server->said();
    added += std::stoll(said.substr(said.rfind("stopped ") + 8));
  }
  std::int64_t counted = 0;
  ForEachNumber("cluster_counters", [&](std::int64_t, std::int64_t value) { counted += value; });
  EXPECT_EQ(counted, added) << "plain commits";
  std::int64_t balance = 0;
  ForEachNumber("cluster_accounts", [&](std::int64_t, std::int64_t value) { balance += value; });
  EXPECT_EQ(balance, 0);
  std::set<std::int64_t> stored;
  ForEachNumber("cluster_receipts", [&](std::int64_t key, std::int64_t) { stored.insert(key); });
  for (const auto& server : servers_) {
    std::istringstream lines(server->said());
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("receipt ")) continue;
      EXPECT_TRUE(stored.contains(std::stoll(line.substr(8)))) << line << " is lost";
    }
  }
}

TEST_F(SwitchOverTest, ACancelledSwitchOverIsAPause) {
  Synchronous();
  StartGlobal();
  StartServers();
  const ProgramResult begun = Zeze({"cluster", "switch-over", "begin", "--database", old_url_});
  ASSERT_EQ(begun.exit_code, 0) << begun.said;
  const std::string marker = begun.said.substr(begun.said.find("marker ") + 7, 32);
  EXPECT_EQ(Zeze({"cluster", "switch-over", "begin", "--database", old_url_}).said.find(marker), 7U)
      << "repeated, it says the same";
  EXPECT_NE(Zeze({"cluster", "switch-over", "cancel", "00", "--database", old_url_}).exit_code, 0);
  ASSERT_EQ(Zeze({"cluster", "switch-over", "cancel", marker, "--database", old_url_}).exit_code,
            0);

  AwaitMoreReceipts();
  EXPECT_TRUE(global_->running()) << global_->said();
}

TEST_F(SwitchOverTest, AReplicaThatLacksHistoryEndsEveryProcess) {
  StartGlobal();
  StartServers();
  // Cut off from the primary, which goes on.
  replica_->RunSqlOnNode(0, "ALTER SYSTEM SET primary_conninfo = ''");
  replica_->RunSqlOnNode(0, "SELECT pg_reload_conf()");
  Await("the replica is cut off", [&] {
    return replica_->RunSqlOnNode(0, "SELECT count(*) FROM pg_stat_wal_receiver") == "0\n";
  });
  AwaitMoreReceipts();

  replica_->RunSqlOnNode(0, "SELECT pg_promote()");
  primary_->SignalNode(0, SIGQUIT);

  for (const auto& server : servers_) {
    EXPECT_EQ(server->AwaitEnd(), kFencedStatus) << server->said();
    EXPECT_NE(server->said().find("another copy than before"), std::string::npos) << server->said();
  }
  EXPECT_NE(global_->AwaitEnd(), 0) << global_->said();

  // Nothing starts on it until somebody decides.
  servers_.front() = StartServer(0, new_url_);
  EXPECT_EQ(servers_.front()->AwaitEnd(), 1);
  EXPECT_NE(servers_.front()->said().find("zeze cluster adopt"), std::string::npos)
      << servers_.front()->said();
  EXPECT_NE(Zeze({"cluster", "adopt", "--database", new_url_}).exit_code, 0) << "without --yes";
  const ProgramResult adopted = Zeze({"cluster", "adopt", "--yes", "--database", new_url_});
  ASSERT_EQ(adopted.exit_code, 0) << adopted.said;
  both_url_ = new_url_;
  StartGlobal();
  servers_.clear();
  StartServers();
}

}  // namespace
}  // namespace zeze::cluster
