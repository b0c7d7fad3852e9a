// What the configuration says about delayed removal: days and hours.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/usage_error.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/config/config.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/testing/beans.h"
#include "zeze/xml/diagnostics.h"

namespace zeze {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::BAccount;

constexpr hours kDay(24);

// An application with a configuration of these attributes, at midnight of the clock's first day.
class ConfiguredServer {
 public:
  explicit ConfiguredServer(const std::string& attributes, DelayRemoveOptions options = {})
      : delay_remove(queues_, options) {
    xml::Diagnostics diagnostics;
    auto config = std::make_shared<Config>(
        Config::Parse("<zeze ServerId=\"1\" " + attributes + "/>", "zeze.xml", {}, diagnostics)
            .value());
    delay_remove.Serve(accounts);
    application =
        Application::Open(
            "test",
            {.storage = {.url = "memory:"}, .worker_threads = 1, .config = config, .clock = &clock})
            .value();
    application->AddTable(accounts);
    application->AddModule(queues_);
    application->AddModule(delay_remove);
    EXPECT_TRUE(application->Start().ok());
  }
  ~ConfiguredServer() { EXPECT_TRUE(application->Stop().ok()); }
  ConfiguredServer(const ConfiguredServer&) = delete;
  ConfiguredServer& operator=(const ConfiguredServer&) = delete;

  testing::ManualClock clock;
  Table<std::int64_t, BAccount> accounts{TableDescriptor{.id = 1, .name = "accounts"}};

 private:
  Queues queues_;

 public:
  DelayRemove delay_remove;
  std::unique_ptr<Application> application;
};

TEST(DelayRemoveConfigTest, NeedsQueuesBeforeIt) {
  for (const bool later : {false, true}) {
    Queues queues;
    DelayRemove delay_remove(queues);
    auto application = Application::Open("test", {.storage = {.url = "memory:"}}).value();
    application->AddModule(delay_remove);
    if (later) application->AddModule(queues);
    const Result<void> started = application->Start();
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message(), ::testing::HasSubstr("needs the module Queues"));
  }
}

TEST(DelayRemoveConfigTest, SlipsOfTheSetUpAreRefused) {
  ConfiguredServer server("");
  const DelayRemove::JobHandler nothing = [](Transaction&, std::string&) { return false; };
  Table<std::int64_t, BAccount> other{TableDescriptor{.id = 2, .name = "other"}};
  EXPECT_THROW(server.delay_remove.Serve(server.accounts), UsageError) << "after the start";
  EXPECT_THROW(server.delay_remove.OnJob("late", nothing), UsageError);
  Queues queues;
  DelayRemove first(queues);
  DelayRemove second(queues, {.step_period = seconds(0)});
  first.Serve(other);
  first.Serve(other);
  EXPECT_THROW(second.Serve(other), UsageError);
  EXPECT_THROW(first.OnJob("", nothing), UsageError);
  EXPECT_THROW(first.OnJob("empty", {}), UsageError);
  first.OnJob("once", nothing);
  EXPECT_THROW(first.OnJob("once", nothing), UsageError);

  auto application = Application::Open("test", {.storage = {.url = "memory:"}}).value();
  application->AddModule(queues);
  application->AddModule(second);
  const Result<void> started = application->Start();
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), ::testing::HasSubstr("step_period"));
}

TEST(DelayRemoveConfigTest, TheDelayIsThatOfTheOptionsElseOfTheConfigurationElseSevenDays) {
  const auto delay = [](const std::string& attributes, DelayRemoveOptions options = {}) {
    return ConfiguredServer(attributes, options).delay_remove.delay();
  };
  EXPECT_EQ(kDay * 7, delay(""));
  EXPECT_EQ(kDay * 30, delay(R"(DelayRemoveDays="30")"));
  EXPECT_EQ(kDay * 1, delay(R"(DelayRemoveDays="1")"));
  EXPECT_EQ(kDay * 7, delay(R"(DelayRemoveDays="0")"));
  EXPECT_EQ(seconds(5), delay(R"(DelayRemoveDays="30")", {.delay = seconds(5)}));
}

// Whether a record that is due goes at that local hour.
bool RemovesAt(const std::string& attributes, int hour) {
  ConfiguredServer server(attributes, {.delay = seconds(1), .step_period = kDay * 1000});
  EXPECT_EQ(0, server.application->Call("remove", [&](Transaction& tx) {
    server.accounts.Insert(tx, 1, {.balance = 5});
    server.accounts.DelayRemove(tx, 1);
    return 0;
  }));
  const std::time_t now = std::chrono::system_clock::to_time_t(server.clock.SystemNow());
  std::tm local{};
  localtime_r(&now, &local);
  server.clock.Advance(hours(24 - local.tm_hour + hour));  // The next day.
  const std::size_t dealt = server.delay_remove.Step(server.application->engine()).value();
  return dealt == 1;
}

TEST(DelayRemoveConfigTest, RecordsAreRemovedOnlyInTheHoursOfTheConfiguration) {
  const std::string morning = R"(DelayRemoveHourStart="3" DelayRemoveHourEnd="5")";
  EXPECT_FALSE(RemovesAt(morning, 2));
  EXPECT_TRUE(RemovesAt(morning, 3));
  EXPECT_TRUE(RemovesAt(morning, 4));
  EXPECT_FALSE(RemovesAt(morning, 5));
  const std::string over_midnight = R"(DelayRemoveHourStart="23" DelayRemoveHourEnd="2")";
  EXPECT_TRUE(RemovesAt(over_midnight, 23));
  EXPECT_TRUE(RemovesAt(over_midnight, 1));
  EXPECT_FALSE(RemovesAt(over_midnight, 2));
  EXPECT_TRUE(RemovesAt("", 12));
}

}  // namespace
}  // namespace zeze
