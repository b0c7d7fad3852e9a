// Redo queues with both sides as real processes that are killed while tasks flow: each task takes
// effect exactly once. ZEZE_REDO_TASKS (for each of two queues), ZEZE_REDO_KILLS and ZEZE_REDO_SEED
// make it longer, or repeat it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/redo/shop.h"
#include "zeze/base/clock.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::redo_test {
namespace {

std::int64_t Setting(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? otherwise : std::atoll(text);
}

class RedoCrashTest : public ::testing::Test {
 protected:
  RedoCrashTest() { RecordProperty("seed", std::to_string(seed_)); }

  void StartServer() {
    server_ = std::make_unique<ServerProcess>(
        ServerProcessOptions{.command = {ZEZE_REDO_SHOP, where_, std::to_string(port_)}});
    ASSERT_TRUE(server_->AwaitLine("ready", std::chrono::minutes(1))) << server_->said();
  }
  void StartProducer() {
    producer_ = std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_REDO_PRODUCER, directory_.File("client"), std::to_string(port_),
                    std::to_string(tasks_), std::to_string(random_())}});
    ASSERT_TRUE(producer_->AwaitLine("ready", std::chrono::minutes(1))) << producer_->said();
  }
  void Run(std::chrono::milliseconds at_most) {
    SystemClock().SleepFor(
        std::chrono::milliseconds(20 + random_() % static_cast<std::uint32_t>(at_most.count())));
  }
  void KillSomebody() {
    const auto who = random_() % 3;  // One, the other, both.
    if (who != 0) server_->Kill();
    if (who != 1) producer_->Kill();
    if (who != 0) StartServer();
    if (who != 1) StartProducer();
  }
  void AwaitFinished() {
    ASSERT_TRUE(producer_->AwaitLine("finished", std::chrono::minutes(5))) << producer_->said();
  }

  // Everything that the server has done is in its database, and nothing else.
  void ExpectEachOnce() {
    server_->Stop();
    producer_->Kill();
    auto shop = Shop::Open(where_, 0);
    ASSERT_TRUE(shop.ok()) << shop.error().message();
    for (const char* queue : kQueues) {
      const ShopCounters::Outcome outcome = shop.value()->counters.OutcomeOf(queue, tasks_);
      EXPECT_EQ(outcome.tasks, tasks_) << queue << ", seed " << seed_;
      EXPECT_EQ(outcome.wrong, 0) << queue << ", seed " << seed_;
      EXPECT_EQ(outcome.disorder, 0) << queue << ", seed " << seed_;
    }
    EXPECT_TRUE(shop.value()->application->Stop().ok());
  }

  // The server's data as they are now, while no server runs; and puts them back. A PostgreSQL
  // database, or a directory.
  void SaveData() { Copy(where_, copy_); }
  void RestoreData() { Copy(copy_, where_); }
  void Copy(const std::string& from, const std::string& to) {
    if (admin_.empty()) {
      std::filesystem::remove_all(to);
      std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
      return;
    }
    DatabaseServer& server = SharedPostgresServer();
    server.RunSql(admin_, "DROP DATABASE IF EXISTS " + DatabaseIn(to) + " WITH (FORCE)");
    // Waits for the connections of a server that was killed.
    server.RunSql(admin_, "CREATE DATABASE " + DatabaseIn(to) + " TEMPLATE " + DatabaseIn(from));
  }
  static std::string DatabaseIn(const std::string& url) {
    const std::size_t name = url.rfind('/') + 1;
    return url.substr(name, url.find('?') - name);
  }
  void UsePostgres() {
    where_ = SharedPostgresServer().NewDatabase();
    copy_ = SharedPostgresServer().NewDatabase();
    admin_ = SharedPostgresServer().NewDatabase();
  }

  // The client goes on while the server's data become old ones, again and again.
  void SetTheServerBack() {
    StartServer();
    StartProducer();
    Run(std::chrono::milliseconds(500));
    server_->Kill();
    SaveData();
    StartServer();
    for (std::int64_t i = 0; i < 3 && !HasFatalFailure(); ++i) {
      Run(std::chrono::milliseconds(500));
      server_->Kill();
      RestoreData();
      StartServer();
    }
    AwaitFinished();
    EXPECT_NE(producer_->said().find("alarm server rolled back"), std::string::npos);

    // Once more when the client has nothing new: it is noticed at connect.
    server_->Kill();
    RestoreData();
    StartServer();
    producer_->Kill();
    StartProducer();
    AwaitFinished();
  }

  const std::int64_t tasks_ = Setting("ZEZE_REDO_TASKS", 10'000);
  const std::int64_t kills_ = Setting("ZEZE_REDO_KILLS", 10);
  const std::int64_t seed_ = Setting(
      "ZEZE_REDO_SEED", std::chrono::steady_clock::now().time_since_epoch().count() % 10000);
  std::mt19937 random_{static_cast<std::uint32_t>(seed_)};
  TempDirectory directory_;
  std::string where_ = directory_.File("server");
  std::string copy_ = directory_.File("copy");
  std::string admin_;  // Another database, to speak from about the two.
  const int port_ = FreePort();
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<ServerProcess> producer_;
};

TEST_F(RedoCrashTest, EachTaskTakesEffectOnceHoweverBothSidesAreKilled) {
  StartServer();
  StartProducer();
  for (std::int64_t i = 0; i < kills_ && !HasFatalFailure(); ++i) {
    Run(std::chrono::milliseconds(400));
    KillSomebody();
  }

  AwaitFinished();
  ExpectEachOnce();
}

TEST_F(RedoCrashTest, AServerSetBackToAnOlderCopyWhileTheClientGoesOnConverges) {
  SetTheServerBack();
  ExpectEachOnce();
}

TEST_F(RedoCrashTest, ADatabaseSetBackToAnOlderCopyWhileTheClientGoesOnConvergesOnPostgreSql) {
  UsePostgres();
  SetTheServerBack();
  ExpectEachOnce();
}

TEST_F(RedoCrashTest, EachTaskTakesEffectOnceOnPostgreSql) {
  UsePostgres();
  StartServer();
  StartProducer();
  for (std::int64_t i = 0; i < kills_ / 2 && !HasFatalFailure(); ++i) {
    Run(std::chrono::milliseconds(400));
    KillSomebody();
  }

  AwaitFinished();
  ExpectEachOnce();
}

}  // namespace
}  // namespace zeze::redo_test
