// Servers with boards are killed, stopped and badly connected: at the end the boards equal the
// records.

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "zeze/arch/provider/testing/test_registry.h"
#include "zeze/base/clock.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::arch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience(120);

std::int64_t FromEnvironment(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any.
  return text == nullptr ? otherwise : std::atoll(text);
}

class RankClusterTest : public ::testing::Test {
 protected:
  RankClusterTest()
      : url_(SharedPostgresServer().NewDatabase()),
        io_({.name = "test-io"}),
        pool_({.name = "blocking", .thread_count = 4}),
        storage_(OpenStorage({.url = url_}).value()),
        global_(io_, *storage_->fence(), pool_,
                {.acceptor = {.ip = "127.0.0.1", .port = 0}, .machine = {}, .holder = "test"}) {
    EXPECT_TRUE(global_.Start().ok());
  }
  ~RankClusterTest() override {
    servers_.clear();
    global_.Stop();
  }

  std::unique_ptr<ServerProcess> Start(int id, const std::vector<std::string>& more) {
    std::vector<std::string> command{ZEZE_RANK_SERVER,
                                     "--id",
                                     std::to_string(id),
                                     "--url",
                                     url_,
                                     "--global",
                                     std::to_string(global_.address().port()),
                                     "--registry",
                                     std::to_string(registry_.Connector().port),
                                     "--roles",
                                     std::to_string(roles_)};
    command.insert(command.end(), more.begin(), more.end());
    auto server = std::make_unique<ServerProcess>(ServerProcessOptions{.command = command});
    EXPECT_TRUE(server->AwaitLine("ready\n", kPatience)) << server->said();
    return server;
  }
  void StartToScore(int id) {
    const std::int64_t left = quota_ - scored_[id];
    servers_[id] = Start(id, {"--servers", std::to_string(count_), "--scores", std::to_string(left),
                              "--rate", std::to_string(rate_)});
  }

  // What the newest line with the word says, or 0.
  static std::int64_t LastNumber(const std::string& said, std::string_view word) {
    const auto at = said.rfind(word);
    std::int64_t number = 0;
    if (at != std::string::npos) {
      const char* begin = said.data() + at + word.size();
      std::from_chars(begin, said.data() + said.size(), number);
    }
    return number;
  }

  static std::string LineWith(const std::string& said, std::string_view word) {
    const auto at = said.rfind(word);
    return at == std::string::npos ? said : said.substr(at, said.find('\n', at) - at);
  }

  // Ends a server; it goes on in its next life with what is left.
  void End(int id, bool killed) {
    ServerProcess& server = *servers_[id];
    if (killed) {
      server.Kill();
    } else {
      server.Stop();
      EXPECT_NE(server.said().find("stopped\n"), std::string::npos) << server.said();
      std::cout << fmt::format("server {}: {}\n", id, LineWith(server.said(), "outbox: "));
    }
    scored_[id] += LastNumber(server.said(), "scored ");
  }

  const std::int64_t count_ = FromEnvironment("ZEZE_RANK_SERVERS", 4);
  const std::int64_t scores_ = FromEnvironment("ZEZE_RANK_UPDATES", 8'000);
  const std::int64_t roles_ = FromEnvironment("ZEZE_RANK_ROLES", 500);
  const std::int64_t rate_ = FromEnvironment("ZEZE_RANK_RATE", 500);
  const std::int64_t pause_ms_ = FromEnvironment("ZEZE_RANK_PAUSE_MS", 1'000);
  const std::int64_t quota_ = scores_ / count_;

  const std::string url_;
  testing::TestRegistry registry_;
  IoThreads io_;
  ThreadPool pool_;
  const std::unique_ptr<Storage> storage_;
  global::GlobalService global_;
  std::map<int, std::unique_ptr<ServerProcess>> servers_;
  std::map<int, std::int64_t> scored_;
};

TEST_F(RankClusterTest, TheBoardEqualsTheRecordsAfterKillsStopsAndFailedDeliveries) {
  const auto began = SystemClock().Now();
  for (int id = 1; id <= count_; ++id) StartToScore(id);
  std::mt19937 random(static_cast<std::uint32_t>(FromEnvironment("ZEZE_RANK_SEED", 1)));
  const auto finished = [&](int id) {
    return servers_[id]->said().find("finished\n") != std::string::npos;
  };
  std::int64_t kills = 0;
  std::int64_t stops = 0;
  int next = 0;
  while (true) {
    SystemClock().SleepFor(milliseconds(pause_ms_));
    bool all = true;
    for (int id = 1; id <= count_; ++id) all = all && finished(id);
    if (all && kills > 0 && stops > 0) break;
    const int id = next++ % static_cast<int>(count_) + 1;
    if (finished(id) && kills > 0 && stops > 0) continue;
    const bool kill = random() % 2 == 0;
    End(id, kill);
    ++(kill ? kills : stops);
    StartToScore(id);
  }
  // Global takes rights from a dead server only if most of the others live.
  std::vector<std::unique_ptr<ServerProcess>> idle;
  const int others = static_cast<int>(count_);
  for (const int id : {others + 1, others + 2}) idle.push_back(Start(id, {}));
  std::int64_t total = 0;
  for (int id = 1; id <= count_; ++id) {
    End(id, id == 1);  // One of them is gone for good: others must do what it has left.
    total += scored_[id];
  }
  servers_.clear();
  ++kills;
  stops += count_ - 1;

  const auto checker = Start(others + 3, {"--check"});
  EXPECT_EQ(checker->AwaitEnd(), 0);
  const std::string said = checker->said();
  EXPECT_NE(said.find("\nequal: "), std::string::npos) << said;
  std::cout << fmt::format("{} servers, {} updates, {} kills, {} orderly stops, {:.0f} s; {}\n",
                           count_, total, kills, stops,
                           std::chrono::duration<double>(SystemClock().Now() - began).count(),
                           LineWith(said, "equal: "));
}

}  // namespace
}  // namespace zeze::arch
