// Real processes with timers, a Global, a service manager and a database; servers are killed.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/timers/timer_tables.h"
#include "tools/cli/open_database.h"
#include "zeze/base/clock.h"
#include "zeze/bean/codec.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::timers_test {
namespace {

constexpr auto kPatience = std::chrono::seconds(120);
constexpr int kServers = 3;

class TimersClusterTest : public ::testing::Test {
 protected:
  TimersClusterTest()
      : url_(SharedPostgresServer().NewDatabase()), storage_(cli::OpenDatabase(url_).value()) {
    global_ = Start({ZEZE_BINARY, "global", "--database", url_, "--ip", "127.0.0.1", "--port", "0",
                     "--lease", "2000", "--silence", "500"},
                    "listening on port ", global_port_);
    registry_ = Start({ZEZE_BINARY, "service-manager", "--data", directory_.File("registry"),
                       "--ip", "127.0.0.1", "--port", "0", "--offline-delay", "1000", "--no-udp"},
                      "listening on port ", registry_port_);
  }

  static std::unique_ptr<ServerProcess> Start(const std::vector<std::string>& command,
                                              const std::string& mark, int& port) {
    auto process = std::make_unique<ServerProcess>(ServerProcessOptions{.command = command});
    EXPECT_TRUE(process->AwaitLine(mark, kPatience)) << process->said();
    const std::string said = process->said();
    port = std::stoi(said.substr(said.find(mark) + mark.size()));
    return process;
  }

  std::unique_ptr<ServerProcess> StartServer(int id, int count) {
    return std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_TIMER_SERVER, "--id", std::to_string(id), "--database", url_, "--global",
                    std::to_string(global_port_), "--registry", std::to_string(registry_port_),
                    "--seed", std::to_string(++last_seed_), "--count", std::to_string(count)}});
  }

  std::map<std::string, std::int64_t> ReadTable(std::string_view name) {
    std::map<std::string, std::int64_t> rows;
    StorageTable* table = storage_->OpenTable(std::string(name)).value();
    EXPECT_TRUE(table
                    ->Walk({},
                           [&](std::string_view key, std::string_view value) {
                             BCount count;
                             ByteReader in(value);
                             count.Decode(in);
                             rows[DecodeKey<std::string>(key).value()] = count.NextId;
                             return true;
                           })
                    .ok());
    return rows;
  }

  // Every timer that counts has run as often as it should, and none more often.
  bool AllRan(std::string& why) {
    const auto effects = ReadTable(kEffects.name);
    const auto expected = ReadTable(kExpected.name);  // Later: never behind the effects.
    std::size_t missing = 0;
    for (const auto& [id, count] : expected) {
      const auto effect = effects.find(id);
      if (effect == effects.end() || effect->second < count) ++missing;
      EXPECT_LE(effect == effects.end() ? 0 : effect->second, count) << id;
    }
    for (const auto& [id, count] : effects) {
      EXPECT_TRUE(id == "named" || expected.contains(id)) << id;
    }
    why = std::to_string(missing) + " of " + std::to_string(expected.size()) + " are missing";
    return missing == 0 && !expected.empty();
  }

  void AwaitAll() {
    const auto until = SystemClock().Now() + kPatience;
    std::string why;
    while (!AllRan(why)) {
      ASSERT_LT(SystemClock().Now(), until) << why;
      SystemClock().SleepFor(std::chrono::milliseconds(200));
    }
  }

  TempDirectory directory_;
  std::string url_;
  std::unique_ptr<Storage> storage_;
  int global_port_ = 0;
  int registry_port_ = 0;
  std::unique_ptr<ServerProcess> global_;
  std::unique_ptr<ServerProcess> registry_;
  int last_seed_ = 0;
};

TEST_F(TimersClusterTest, AnotherServerRunsTheTimersOfADeadOne) {
  auto survivor = StartServer(1, 10);
  auto victim = StartServer(2, 2000);
  ASSERT_TRUE(survivor->AwaitLine("ready", kPatience)) << survivor->said();
  ASSERT_TRUE(victim->AwaitLine("scheduled", kPatience)) << victim->said();
  SystemClock().SleepFor(std::chrono::milliseconds(400));  // A checkpoint.
  victim->Kill();
  AwaitAll();
  survivor->Stop();
}

// ZEZE_TIMER_KILLS: how often; the full test has 100.
TEST_F(TimersClusterTest, ServersAreKilledAtRandomAndEveryTimerRunsAsOftenAsItShould) {
  const char* wanted = std::getenv("ZEZE_TIMER_KILLS");
  const int kills = wanted == nullptr ? 6 : std::atoi(wanted);
  std::mt19937_64 random(11);
  std::vector<std::unique_ptr<ServerProcess>> servers(kServers);
  for (int id = 0; id < kServers; ++id)
    servers[static_cast<std::size_t>(id)] = StartServer(id, 500);
  for (int kill = 0; kill < kills; ++kill) {
    const std::size_t id = random() % kServers;
    ASSERT_TRUE(servers[id]->AwaitLine("ready", kPatience)) << servers[id]->said();
    SystemClock().SleepFor(std::chrono::milliseconds(random() % 2000));
    servers[id]->Kill();
    SystemClock().SleepFor(std::chrono::milliseconds(random() % 4 == 0 ? 5000 : random() % 500));
    servers[id] = StartServer(static_cast<int>(id), 500);
  }
  for (const auto& server : servers) {
    ASSERT_TRUE(server->AwaitLine("scheduled", kPatience)) << server->said();
  }
  AwaitAll();
  for (const auto& server : servers) server->Stop();
  AwaitAll();
}

}  // namespace
}  // namespace zeze::timers_test
