// Real processes that are configured wrongly: the database is the referee. Each is refused at its
// start with a sentence that names both sides, and nobody is fenced by it (rules 51 to 58).

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "zeze/global/messages.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/frame.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::cluster {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

struct Wrong {
  int table_id = 7;
  int table_version = 0;
};

class RefereeTest : public ::testing::Test {
 protected:
  using Process = std::unique_ptr<ServerProcess>;

  std::string NewDatabase() {
    databases_.push_back(SharedPostgresServer().NewDatabase());
    return databases_.back();
  }
  ~RefereeTest() override {
    for (const std::string& url : databases_) SharedPostgresServer().DropDatabase(url);
  }

  static Process StartGlobal(const std::string& url, int shard, int shards) {
    std::vector<std::string> command = {
        ZEZE_BINARY, "global", "--database", url,       "--ip",
        "127.0.0.1", "--port", "0",          "--shard", std::to_string(shard)};
    if (shards > 0) command.insert(command.end(), {"--shards", std::to_string(shards)});
    return std::make_unique<ServerProcess>(ServerProcessOptions{.command = std::move(command)});
  }
  static std::string PortOf(ServerProcess& global) {
    const std::string mark = "listening on port ";
    EXPECT_TRUE(global.AwaitLine(mark, kPatience)) << global.said();
    const std::string said = global.said();
    return std::to_string(std::stoi(said.substr(said.find(mark) + mark.size())));
  }

  static Process StartServer(int id, const std::string& url, const std::string& globals,
                             const Wrong& wrong = {}) {
    std::vector<std::string> command = {ZEZE_REFEREE_SERVER,
                                        "--id",
                                        std::to_string(id),
                                        "--database",
                                        url,
                                        "--table-id",
                                        std::to_string(wrong.table_id),
                                        "--table-version",
                                        std::to_string(wrong.table_version)};
    if (!globals.empty()) command.insert(command.end(), {"--global", globals});
    return std::make_unique<ServerProcess>(ServerProcessOptions{.command = std::move(command)});
  }

  static Process Ready(Process server) {
    EXPECT_TRUE(server->AwaitLine("ready", kPatience)) << server->said();
    EXPECT_TRUE(server->AwaitLine("done 1.", kPatience)) << server->said();
    return server;
  }

  // It did not start, and said all of this.
  static void ExpectRefused(ServerProcess& process, const std::vector<std::string>& words) {
    EXPECT_EQ(1, process.AwaitEnd()) << process.said();
    const std::string said = process.said();
    EXPECT_EQ(std::string::npos, said.find("ready")) << said;
    for (const std::string& word : words) {
      EXPECT_NE(std::string::npos, said.find(word)) << '"' << word << "\" is not in: " << said;
    }
  }

  // It goes on committing.
  static void ExpectServes(ServerProcess& server) {
    const std::string said = server.said();
    const std::size_t at = said.rfind("done ");
    ASSERT_NE(std::string::npos, at) << said;
    const std::string next = fmt::format("done {}.", std::stoi(said.substr(at + 5)) + 3);
    EXPECT_TRUE(server.AwaitLine(next, kPatience)) << server.said();
  }

  static void Stop(ServerProcess& server) {
    server.Signal(SIGTERM);
    EXPECT_EQ(0, server.AwaitEnd()) << server.said();
  }

  static ProgramResult Cluster(const std::vector<std::string>& arguments, const std::string& url) {
    std::vector<std::string> command = {ZEZE_BINARY, "cluster"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--database", url});
    return RunProgram({.command = std::move(command)});
  }

 private:
  std::vector<std::string> databases_;
};

TEST_F(RefereeTest, TwoGlobalsInTheOtherOrderAreRefused) {
  const std::string url = NewDatabase();
  const Process first = StartGlobal(url, 0, 2);
  const Process second = StartGlobal(url, 1, 2);
  const std::string right = PortOf(*first) + "," + PortOf(*second);
  const std::string wrong = PortOf(*second) + "," + PortOf(*first);
  const Process server = Ready(StartServer(1, url, right));

  // Under another id, and under its own, which would fence it.
  for (const int id : {2, 1}) {
    const Process refused = StartServer(id, url, wrong);
    ExpectRefused(*refused, {fmt::format("the Global at 127.0.0.1:{} is shard 1, but this server "
                                         "lists it in place 0",
                                         PortOf(*second)),
                             "GlobalCacheManagerHostNameOrAddress", "shard 0 first"});
  }
  ExpectServes(*server);
  const Process other = Ready(StartServer(2, url, right));
  Stop(*other);
  Stop(*server);
}

TEST_F(RefereeTest, OnlyTheFirstOfTwoGlobalsIsRefused) {
  const std::string url = NewDatabase();
  const Process first = StartGlobal(url, 0, 2);
  const Process second = StartGlobal(url, 1, 2);
  const Process server = Ready(StartServer(1, url, PortOf(*first) + "," + PortOf(*second)));

  for (const int id : {2, 1}) {
    const Process refused = StartServer(id, url, PortOf(*first));
    ExpectRefused(*refused, {"this server is configured with 1 Global, but the cluster in this "
                             "database has 2 shards of Global",
                             "zeze cluster shards 1"});
  }
  ExpectServes(*server);

  // The documented way: nothing while a server lives, and then both follow the new number.
  const ProgramResult live = Cluster({"shards", "1"}, url);
  EXPECT_EQ(1, live.exit_code);
  EXPECT_NE(std::string::npos, live.said.find("server 1 (referee on ")) << live.said;
  Stop(*server);
  const ProgramResult changed = Cluster({"shards", "1"}, url);
  EXPECT_EQ(0, changed.exit_code) << changed.said;
  const Process after = Ready(StartServer(2, url, PortOf(*first)));
  const Process before = StartServer(1, url, PortOf(*first) + "," + PortOf(*second));
  ExpectRefused(*before, {"2 Globals", "1 shard of Global"});
  Stop(*after);
  const Process global = StartGlobal(url, 1, 2);
  ExpectRefused(*global, {"--shards 2", "1 shard of Global", "zeze cluster shards 2"});
}

// It does not wait for the one that is not there, and does not take its silence for the cause.
TEST_F(RefereeTest, AGlobalTooManyIsRefusedAlthoughItDoesNotAnswer) {
  const std::string url = NewDatabase();
  const Process global = StartGlobal(url, 0, 1);
  const Process server = Ready(StartServer(1, url, PortOf(*global)));

  const Process refused = StartServer(2, url, fmt::format("{},{}", PortOf(*global), FreePort()));
  ExpectRefused(*refused, {"this server is configured with 2 Globals, but the cluster in this "
                           "database has 1 shard of Global",
                           "zeze cluster shards 2"});
  Stop(*server);
}

TEST_F(RefereeTest, AServerWithoutAGlobalIsRefusedBesideOthersAndTheOtherWayRound) {
  const std::string url = NewDatabase();
  const Process global = StartGlobal(url, 0, 0);
  const Process server = Ready(StartServer(1, url, PortOf(*global)));

  for (const int id : {2, 1}) {
    const Process refused = StartServer(id, url, "");
    ExpectRefused(*refused, {"this server is configured without a Global and needs the database "
                             "for itself, but it is in use by server 1 (referee on ",
                             "GlobalCacheManagerHostNameOrAddress"});
  }
  ExpectServes(*server);
  Stop(*server);

  const Process alone = Ready(StartServer(2, url, ""));
  const Process refused = StartServer(1, url, PortOf(*global));
  ExpectRefused(*refused, {"this server is configured with 1 Global, but server 2 (referee on ",
                           "has the database to itself, without a Global"});
  ExpectServes(*alone);
  // One that crashed is in nobody's way when its lease is over; it starts again without a wait.
  alone->Kill();
  const Process again = Ready(StartServer(2, url, ""));
  again->Kill();
  const Process shared = Ready(StartServer(1, url, PortOf(*global)));
  Stop(*shared);
}

TEST_F(RefereeTest, ATableNameWithTwoIdsIsRefusedInBothOrdersAndTogether) {
  for (const bool lower_first : {true, false}) {
    const std::string url = NewDatabase();
    const Process global = StartGlobal(url, 0, 0);
    const int first_id = lower_first ? 7 : 8;
    const int other_id = lower_first ? 8 : 7;
    const Process server = Ready(StartServer(1, url, PortOf(*global), {.table_id = first_id}));
    for (const int id : {2, 1}) {
      const Process refused = StartServer(id, url, PortOf(*global), {.table_id = other_id});
      ExpectRefused(*refused, {fmt::format("table referee_tCount has id {} in this program and id "
                                           "{} in this database",
                                           other_id, first_id),
                               fmt::format("zeze cluster table referee_tCount --id {}", other_id)});
    }
    ExpectServes(*server);
    const std::string id = std::to_string(other_id);
    EXPECT_EQ(1, Cluster({"table", "referee_tCount", "--id", id}, url).exit_code);
    Stop(*server);
    const ProgramResult changed = Cluster({"table", "referee_tCount", "--id", id}, url);
    EXPECT_EQ(0, changed.exit_code) << changed.said;
    const Process after = Ready(StartServer(1, url, PortOf(*global), {.table_id = other_id}));
    Stop(*after);
  }
  const std::string url = NewDatabase();
  const Process global = StartGlobal(url, 0, 0);
  const Process a = StartServer(1, url, PortOf(*global), {.table_id = 7});
  const Process b = StartServer(2, url, PortOf(*global), {.table_id = 8});
  const bool a_won = a->AwaitLine("ready", kPatience);
  EXPECT_EQ(!a_won, b->AwaitLine("ready", kPatience)) << a->said() << b->said();
  ExpectRefused(a_won ? *b : *a, {"table referee_tCount has id"});
  Stop(a_won ? *a : *b);
}

TEST_F(RefereeTest, AStagingServerOfAnotherDatabaseIsRefused) {
  const std::string url = NewDatabase();
  const Process global = StartGlobal(url, 0, 0);
  const Process server = Ready(StartServer(1, url, PortOf(*global)));

  // Its database is new; then it has a cluster of its own.
  const std::string staging = NewDatabase();
  const Process early = StartServer(1, staging, PortOf(*global));
  ExpectRefused(*early, {fmt::format("the Global at 127.0.0.1:{} serves cluster ", PortOf(*global)),
                         "but the database of this server holds no cluster yet"});
  const Process staging_global = StartGlobal(staging, 0, 0);
  const Process good = Ready(StartServer(1, staging, PortOf(*staging_global)));
  Stop(*good);
  const Process late = StartServer(1, staging, PortOf(*global));
  ExpectRefused(*late, {"serves cluster ", "but the database of this server holds cluster "});
  ExpectServes(*server);
  Stop(*server);
}

// The rows of an older version are set aside by a rename, which nobody may be working under.
TEST_F(RefereeTest, ANewVersionOfATableWaitsUntilNoOtherServerLives) {
  const std::string url = NewDatabase();
  const Process global = StartGlobal(url, 0, 0);
  const Process server = Ready(StartServer(1, url, PortOf(*global)));

  const Process refused = StartServer(2, url, PortOf(*global), {.table_version = 1});
  ExpectRefused(*refused, {"table referee_tCount goes from version 0 to 1",
                           "in use by server 1 (referee on ", "stop them first"});
  ExpectServes(*server);
  EXPECT_EQ("1\n", SharedPostgresServer().RunSql(url, "SELECT count(*) FROM referee_tcount"));
  Stop(*server);

  const Process after = Ready(StartServer(2, url, PortOf(*global), {.table_version = 1}));
  EXPECT_EQ("1\n", SharedPostgresServer().RunSql(
                       url, "SELECT count(*) FROM zeze_backup_referee_tcount_0"));
  // Others may start again.
  const Process other = Ready(StartServer(1, url, PortOf(*global), {.table_version = 1}));
  Stop(*other);
  Stop(*after);
}

// One login of a stranger would make Global refuse the real server until Global restarts.
TEST_F(RefereeTest, AStrangersLoginChangesNothing) {
  const std::string url = NewDatabase();
  const Process global = StartGlobal(url, 0, 0);
  const Process server = Ready(StartServer(1, url, PortOf(*global)));
  const NetAddress address =
      NetAddress::FromText("127.0.0.1", static_cast<std::uint16_t>(std::stoi(PortOf(*global))))
          .value();

  for (const std::int64_t epoch : {999, 1}) {
    testing::RawClient stranger(address);
    stranger.Send(testing::RawClient::RequestFrame<global::wire::FencedLogin>(
        1, {.server_id = 1, .epoch = epoch, .start_term = 1, .rights = {}}));
    const std::optional<Frame> answer = stranger.ReadFrame();
    ASSERT_TRUE(answer);
    global::wire::FencedLoginResult result;
    ByteReader in(answer->payload);
    result.Decode(in);
    EXPECT_EQ(static_cast<std::uint32_t>(global::LoginOutcome::kRefused), result.outcome);
    EXPECT_NE(std::string::npos,
              result.text.find(fmt::format("a login as server 1 (epoch {}) is refused: ", epoch)))
        << result.text;
    ExpectServes(*server);
  }
  EXPECT_TRUE(global->AwaitLine("a login as server 1 (epoch 999) is refused", kPatience));
  // Nor is its next process refused.
  server->Kill();
  const Process next = Ready(StartServer(1, url, PortOf(*global)));
  Stop(*next);
}

TEST_F(RefereeTest, ShowsTheCluster) {
  const std::string url = NewDatabase();
  EXPECT_NE(std::string::npos, Cluster({"show"}, url).said.find("has used this database yet"));
  const Process global = StartGlobal(url, 0, 0);
  const Process server = Ready(StartServer(1, url, PortOf(*global)));
  const ProgramResult shown = Cluster({"show"}, url);
  EXPECT_EQ(0, shown.exit_code);
  for (const std::string_view word :
       {"identity  ", "protocol  1\n", "shards    1\n", "server    1 epoch 1 referee on ",
        "table     referee_tcount id 7\n"}) {
    EXPECT_NE(std::string::npos, shown.said.find(word)) << shown.said;
  }
  Stop(*server);
}

}  // namespace
}  // namespace zeze::cluster
