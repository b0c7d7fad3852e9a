// SIGTERM while a database or a Global is away. Real processes, and a PostgreSQL of their own.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);
constexpr int kEndedBySigterm = 128 + SIGTERM;

class StopTest : public testing::Test {
 protected:
  StopTest() {
    Result<std::unique_ptr<DatabaseServer>> started = StartPostgresServer({});
    EXPECT_TRUE(started.ok()) << started.error().message();
    database_ = std::move(started).value();
    url_ = database_->NewDatabase();
  }

  std::unique_ptr<ServerProcess> Start(std::vector<std::string> more) const {
    std::vector<std::string> command = {ZEZE_STOP_SERVER, "--database", url_};
    command.insert(command.end(), more.begin(), more.end());
    return std::make_unique<ServerProcess>(ServerProcessOptions{.command = command});
  }

  // The number after these words.
  static int Said(const ServerProcess& server, const std::string& words) {
    const std::string said = server.said();
    const std::size_t at = said.find(words);
    return at == std::string::npos ? -1 : std::stoi(said.substr(at + words.size()));
  }

  std::unique_ptr<DatabaseServer> database_;
  std::string url_;
};

TEST_F(StopTest, SaysWhatItWaitsForAndEndsWithTheSecondSignal) {
  const auto server = Start({"--records", "1000"});
  ASSERT_TRUE(server->AwaitLine("ready", kPatience)) << server->said();
  database_->SignalNode(0, SIGQUIT);

  server->Signal(SIGTERM);
  ASSERT_TRUE(server->AwaitLine("send the signal (SIGTERM) again", kPatience)) << server->said();
  EXPECT_GT(Said(*server, "there are about "), 900) << server->said();
  ASSERT_TRUE(server->AwaitLine("has been stopping for 10 s", kPatience)) << server->said();

  server->Signal(SIGTERM);
  EXPECT_EQ(server->AwaitEnd(), kEndedBySigterm);
  EXPECT_GT(Said(*server, "what is lost: about "), 900) << server->said();
}

TEST_F(StopTest, SavesEverythingWhenTheDatabaseComesBack) {
  const auto server = Start({"--records", "100"});
  ASSERT_TRUE(server->AwaitLine("ready", kPatience)) << server->said();
  database_->SignalNode(0, SIGQUIT);
  server->Signal(SIGTERM);
  ASSERT_TRUE(server->AwaitLine("send the signal (SIGTERM) again", kPatience)) << server->said();

  database_->Restart();

  EXPECT_EQ(server->AwaitEnd(), 0) << server->said();
  EXPECT_EQ(database_->RunSql(url_, "SELECT count(*) FROM cluster_counters"), "100\n");
}

TEST_F(StopTest, ASignalEndsAServerThatWaitsForGlobal) {
  const auto server = Start({"--global", std::to_string(FreePort())});
  ASSERT_TRUE(server->AwaitLine("no connection to", kPatience)) << server->said();

  const auto begin = SystemClock().Now();
  server->Signal(SIGTERM);
  EXPECT_EQ(server->AwaitEnd(), kEndedBySigterm) << server->said();
  EXPECT_LT(SystemClock().Now() - begin, std::chrono::seconds(5));
}

TEST_F(StopTest, ASignalEndsAServerThatWaitsForTheDatabase) {
  database_->SignalNode(0, SIGSTOP);  // It takes connections and says nothing.
  const auto server = Start({});
  ASSERT_TRUE(server->AwaitLine("starting", kPatience)) << server->said();

  server->Signal(SIGTERM);
  EXPECT_EQ(server->AwaitEnd(), kEndedBySigterm) << server->said();
  database_->SignalNode(0, SIGCONT);
}

}  // namespace
}  // namespace zeze
