#include "zeze/app/application.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/module.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/address_space_limit.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/usage_error.h"
#include "zeze/base/wait_group.h"
#include "zeze/config/config.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"
#include "zeze/transaction/testing/gate.h"

namespace zeze {
namespace {

using testing::BAccount;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TableDescriptor kAccounts{.id = 1, .name = "test_Bank_tAccount"};
constexpr TableDescriptor kNewVersion{.id = 1, .name = "test_Bank_tAccount", .version = 1};

// The same bean with another type for a variable.
struct BOther {
  static constexpr std::string_view kFullName = "test.BAccount";
  std::string balance;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "balance"}, &BOther::balance);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BOther&) const = default;
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return false; }
};

class Bank final : public Module {
 public:
  Bank(std::string name, std::vector<std::string>& story, bool fails = false)
      : name_(std::move(name)), story_(story), fails_(fails) {}
  std::int32_t id() const override { return 1; }
  std::string_view name() const override { return name_; }
  Result<void> Start(Application&) override {
    story_.push_back("start " + name_);
    if (fails_) return Error(ErrorCode::kUnavailable, "no vault");
    return {};
  }
  void Stop(Application&) override { story_.push_back("stop " + name_); }
  std::vector<TableBase*> Tables() override { return {}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

 private:
  const std::string name_;
  std::vector<std::string>& story_;
  const bool fails_;
};

class ApplicationTest : public ::testing::Test {
 protected:
  ApplicationOptions Options() {
    return {.storage = {.url = "rocksdb:" + directory.path() + "/db"}, .worker_threads = 2};
  }

  TempDirectory directory;
};

TEST_F(ApplicationTest, KeepsDataFromRunToRun) {
  for (int run = 1; run <= 3; ++run) {
    Table<std::int64_t, BAccount> accounts{kAccounts};
    auto opened = Application::Open("bank", Options());
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    opened.value()->AddTable(accounts);
    ASSERT_TRUE(opened.value()->Start().ok());

    EXPECT_EQ(0, opened.value()->Call("deposit", [&](Transaction& tx) {
      accounts.GetOrAdd(tx, 1)->balance += 10;
      return 0;
    }));

    EXPECT_EQ(run * 10, accounts.ReadCopy(1).value()->balance);
    EXPECT_TRUE(opened.value()->Stop().ok());
    opened.value().reset();
  }
}

// Each of these waited for itself, or ended the process.
TEST_F(ApplicationTest, StopIsRefusedWhereItWouldWaitForItself) {
  Table<std::int64_t, BAccount> accounts{kAccounts};
  auto opened = Application::Open("bank", Options());
  Application& application = *opened.value();
  application.AddTable(accounts);
  ASSERT_TRUE(application.Start().ok());
  const auto message = [&] {
    const Result<void> stopped = application.Stop();
    return stopped.ok() ? std::string("stopped") : stopped.error().message();
  };
  std::vector<std::string> said;
  std::string by_action;
  WaitGroup durable(1);
  EXPECT_EQ(0, application.Call("stops", [&](Transaction& tx) -> std::int64_t {
    said.push_back(message());
    tx.AfterCommit([&] { said.push_back(message()); });
    tx.AfterDurable([&] {
      by_action = message();
      durable.Done();
    });
    return 0;
  }));
  ASSERT_TRUE(application.engine().CheckpointNow().ok());
  durable.Wait();
  WaitGroup done(3);
  std::string by_submission;
  std::string by_worker;
  std::string by_critical;
  ASSERT_TRUE(application
                  .Submit("submitted",
                          [&](Transaction&) -> std::int64_t {
                            by_submission = message();
                            done.Done();
                            return 0;
                          })
                  .ok());
  application.workers().Post([&] {
    by_worker = message();
    done.Done();
  });
  application.critical().Post([&] {
    by_critical = message();
    done.Done();
  });
  done.Wait();

  EXPECT_THAT(said, ::testing::Each(HasSubstr("inside procedure stops")));
  EXPECT_THAT(by_action, HasSubstr("inside procedure AfterDurable"));
  EXPECT_THAT(by_submission, HasSubstr("inside procedure submitted"));
  EXPECT_THAT(by_worker, HasSubstr("by a task of pool worker"));
  EXPECT_THAT(by_critical, HasSubstr("by a task of pool critical"));
  EXPECT_FALSE(application.Start().ok());
  EXPECT_THROW(application.AddTable(accounts), UsageError);
  EXPECT_EQ(0, application.Call("next", [&](Transaction& tx) -> std::int64_t {
    accounts.GetOrAdd(tx, 1)->balance = 1;
    return 0;
  }));
  EXPECT_TRUE(application.Stop().ok());
}

TEST_F(ApplicationTest, ACallInsideAProcedureRollsBackWithIt) {
  Table<std::int64_t, BAccount> accounts{kAccounts};
  auto opened = Application::Open("bank", Options());
  Application& application = *opened.value();
  application.AddTable(accounts);
  ASSERT_TRUE(application.Start().ok());
  const auto deposit = [&](Transaction& tx) -> std::int64_t {
    accounts.GetOrAdd(tx, 1)->balance += 10;
    return 0;
  };
  EXPECT_EQ(7, application.Call("outer", [&](Transaction&) -> std::int64_t {
    EXPECT_EQ(0, application.Call("inner", deposit));
    return 7;
  }));
  EXPECT_FALSE(accounts.ReadCopy(1).value().has_value());
  EXPECT_EQ(7, application.Call("outer", [&](Transaction&) -> std::int64_t {
    EXPECT_EQ(0, application.CallApart("apart", deposit));
    return 7;
  }));
  EXPECT_EQ(10, accounts.ReadCopy(1).value()->balance);
  EXPECT_TRUE(application.Stop().ok());
}

TEST_F(ApplicationTest, RefusesAnIncompatibleSchemaAndSaysWhatToDo) {
  {
    Table<std::int64_t, BAccount> accounts{kAccounts};
    auto opened = Application::Open("bank", Options());
    opened.value()->AddTable(accounts);
    ASSERT_TRUE(opened.value()->Start().ok());
    opened.value().reset();
  }
  Table<std::int64_t, BOther> accounts{kAccounts};
  auto opened = Application::Open("bank", Options());
  opened.value()->AddTable(accounts);

  const Result<void> started = opened.value()->Start();

  ASSERT_FALSE(started.ok());
  EXPECT_EQ(ErrorCode::kIncompatible, started.error().code());
  EXPECT_THAT(started.error().message(), HasSubstr("test_Bank_tAccount"));
  EXPECT_THAT(started.error().message(), HasSubstr("balance"));
  opened.value().reset();
}

TEST_F(ApplicationTest, RefusesOptionsForATableThatDoesNotExist) {
  Table<std::int64_t, BAccount> accounts{kAccounts};
  ApplicationOptions options = Options();
  options.tables["test_Bank_tAcount"] = {.durable_at_commit = true};
  auto opened = Application::Open("bank", options);
  opened.value()->AddTable(accounts);

  const Result<void> started = opened.value()->Start();

  ASSERT_FALSE(started.ok());
  EXPECT_EQ(ErrorCode::kInvalidArgument, started.error().code());
  EXPECT_THAT(started.error().message(), HasSubstr("\"test_Bank_tAcount\""));
  EXPECT_THAT(started.error().message(), HasSubstr("did you mean 'test_Bank_tAccount'?"));
  opened.value().reset();
}

TEST_F(ApplicationTest, ScheduledThreadsRunScheduledTasks) {
  ApplicationOptions options = Options();
  options.scheduled_threads = 1;
  auto opened = Application::Open("bank", options);
  ASSERT_TRUE(opened.value()->Start().ok());
  // The workers are blocked: only threads of its own can run the task.
  std::promise<void> go_on;
  std::shared_future<void> released = go_on.get_future().share();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(opened.value()->workers().TryPost([released] { released.wait(); }).ok());
  }
  std::promise<void> ran;
  opened.value()->scheduler().After(std::chrono::milliseconds(1), [&ran] { ran.set_value(); });
  EXPECT_EQ(std::future_status::ready, ran.get_future().wait_for(std::chrono::minutes(1)));
  go_on.set_value();
  EXPECT_TRUE(opened.value()->Stop().ok());
}

TEST_F(ApplicationTest, SetsRowsOfAnOlderTableVersionAside) {
  {
    Table<std::int64_t, BAccount> accounts{kAccounts};
    auto opened = Application::Open("bank", Options());
    opened.value()->AddTable(accounts);
    ASSERT_TRUE(opened.value()->Start().ok());
    opened.value()->Call("put", [&](Transaction& tx) {
      accounts.Put(tx, 1, {});
      return 0;
    });
    opened.value().reset();
  }
  Table<std::int64_t, BOther> accounts{kNewVersion};
  auto opened = Application::Open("bank", Options());
  opened.value()->AddTable(accounts);

  ASSERT_TRUE(opened.value()->Start().ok());

  EXPECT_EQ(std::nullopt, accounts.ReadCopy(1).value());
  EXPECT_THAT(opened.value()->storage().ListTables().value(),
              ::testing::Contains("zeze_backup_test_Bank_tAccount_0"));
  opened.value().reset();
}

TEST_F(ApplicationTest, ADatabaseInUseIsNamed) {
  auto first = Application::Open("bank", Options());
  ASSERT_TRUE(first.ok());

  auto second = Application::Open("bank", Options());

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ErrorCode::kInUse, second.error().code());
  EXPECT_THAT(second.error().message(), HasSubstr(directory.path()));
}

TEST_F(ApplicationTest, StartsModulesInOrderAndStopsThemInReverse) {
  std::vector<std::string> story;
  Bank first("first", story);
  Bank second("second", story);
  auto opened = Application::Open("bank", Options());
  opened.value()->AddModule(first);
  opened.value()->AddModule(second);

  ASSERT_TRUE(opened.value()->Start().ok());
  ASSERT_TRUE(opened.value()->Stop().ok());

  EXPECT_THAT(story, ElementsAre("start first", "start second", "stop second", "stop first"));
}

TEST_F(ApplicationTest, AModuleThatDoesNotStartStopsTheOthers) {
  std::vector<std::string> story;
  Bank first("first", story);
  Bank second("second", story, true);
  auto opened = Application::Open("bank", Options());
  opened.value()->AddModule(first);
  opened.value()->AddModule(second);

  const Result<void> started = opened.value()->Start();

  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), HasSubstr("second did not start: no vault"));
  EXPECT_THAT(story, ElementsAre("start first", "start second", "stop first"));
}

// Throws where it is told to.
class Thrower final : public Module {
 public:
  Thrower(bool in_start, bool in_stop) : in_start_(in_start), in_stop_(in_stop) {}
  std::int32_t id() const override { return 2; }
  std::string_view name() const override { return "test.Thrower"; }
  Result<void> Start(Application&) override {
    if (in_start_) throw std::runtime_error("no luck");
    return {};
  }
  void Stop(Application&) override {
    if (in_stop_) throw std::runtime_error("no end");
  }
  std::vector<TableBase*> Tables() override { return {}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

 private:
  const bool in_start_;
  const bool in_stop_;
};

TEST_F(ApplicationTest, AModuleThatThrowsInStartStopsTheOthers) {
  std::vector<std::string> story;
  Bank first("first", story);
  Thrower second(true, false);
  auto opened = Application::Open("bank", Options());
  opened.value()->AddModule(first);
  opened.value()->AddModule(second);

  const Result<void> started = opened.value()->Start();

  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(),
              HasSubstr("module test.Thrower did not start: it threw: no luck"));
  EXPECT_THAT(story, ElementsAre("start first", "stop first"));
  EXPECT_FALSE(opened.value()->engine().running());
}

TEST_F(ApplicationTest, AModuleThatThrowsInStopHoldsNothingUp) {
  for (const bool by_destructor : {false, true}) {
    SCOPED_TRACE(by_destructor);
    std::vector<std::string> story;
    Table<std::int64_t, BAccount> accounts{kAccounts};
    Bank first("first", story);
    Thrower second(false, true);
    const std::int64_t balance = by_destructor ? 8 : 7;
    testing::CapturedLog log;
    {
      auto opened = Application::Open("bank", Options());
      Application& app = *opened.value();
      app.AddTable(accounts);
      app.AddModule(first);
      app.AddModule(second);
      ASSERT_TRUE(app.Start().ok());
      ASSERT_EQ(0, app.Call("pay", [&](Transaction& tx) -> std::int64_t {
        accounts.Put(tx, 1, BAccount{.balance = balance, .owner = {}});
        return 0;
      }));
      if (!by_destructor) {
        const Result<void> stopped = app.Stop();
        ASSERT_FALSE(stopped.ok());
        EXPECT_EQ("module test.Thrower threw in Stop: no end", stopped.error().message());
        EXPECT_TRUE(app.Stop().ok()) << "it has stopped";
      }
    }
    EXPECT_THAT(story, ElementsAre("start first", "stop first"));
    EXPECT_THAT(log.lines(), Contains(HasSubstr("module test.Thrower threw in Stop: no end")));

    auto again = Application::Open("bank", Options());
    again.value()->AddTable(accounts);
    ASSERT_TRUE(again.value()->Start().ok());
    EXPECT_EQ(balance, accounts.ReadCopy(1).value()->balance) << "the last commit was saved";
  }
}

TEST_F(ApplicationTest, AWalkInFlightEndsWithAnErrorWhenTheApplicationStops) {
  Table<std::int64_t, BAccount> accounts{kAccounts};
  auto opened = Application::Open("bank", Options());
  Application& app = *opened.value();
  app.AddTable(accounts);
  ASSERT_TRUE(app.Start().ok());
  ASSERT_EQ(0, app.Call("fill", [&](Transaction& tx) -> std::int64_t {
    for (std::int64_t key = 0; key < 100; ++key) accounts.Put(tx, key, BAccount{});
    return 0;
  }));
  testing::Gate gate;
  std::size_t seen = 0;
  std::optional<Result<std::size_t>> walked;
  std::thread walker([&] {
    walked = accounts.Walk(
        [&](std::int64_t, const BAccount&) {
          gate.Pass();
          return ++seen > 0;
        },
        {.page_size = 10});
  });
  gate.AwaitArrivals(1);

  EXPECT_TRUE(app.Stop().ok());
  gate.Open();
  walker.join();

  ASSERT_FALSE(walked->ok());
  EXPECT_EQ(ErrorCode::kShuttingDown, walked->error().code());
  EXPECT_EQ(10U, seen) << "the page that was read";
  EXPECT_EQ(ErrorCode::kShuttingDown, accounts.ReadCopy(1000).error().code());
}

TEST_F(ApplicationTest, WhatNeedsARunningApplicationIsRefusedBeforeStart) {
  auto opened = Application::Open("bank", Options());
  Application& app = *opened.value();
  std::vector<std::int64_t> codes;
  const Completion note = [&](std::int64_t code) { codes.push_back(code); };
  const auto nothing = [](Transaction&) { return std::int64_t{0}; };

  for (const Result<void>& refused :
       {app.Submit("early", nothing, note), app.SubmitOneByOne(1, "early", nothing, note)}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(ErrorCode::kInvalidArgument, refused.error().code());
    EXPECT_THAT(refused.error().message(), HasSubstr("call Application::Start first"));
  }
  EXPECT_THAT(codes, ElementsAre(result_code::kClosed, result_code::kClosed));
  EXPECT_EQ(result_code::kClosed, app.Call("early", nothing));
  EXPECT_FALSE(app.engine().CheckpointNow().ok());
  EXPECT_THROW(app.workers(), UsageError);
  EXPECT_THROW(app.critical(), UsageError);
  EXPECT_THROW(app.one_by_one(), UsageError);
  EXPECT_THROW(app.scheduler(), UsageError);
  ASSERT_TRUE(app.Start().ok());
  EXPECT_THROW(static_cast<void>(app.Submit("no body", nullptr).ok()), UsageError);
  EXPECT_THROW(static_cast<void>(app.SubmitOneByOne(1, "no body", nullptr).ok()), UsageError);
}

TEST_F(ApplicationTest, StartNamesAnOptionThatIsOutOfRange) {
  const auto refused = [this](void (*change)(ApplicationOptions&)) {
    ApplicationOptions options = Options();
    change(options);
    const Result<void> started = Application::Open("bank", options).value()->Start();
    return started.ok() ? "started" : started.error().message();
  };
  EXPECT_THAT(refused([](ApplicationOptions& o) { o.worker_queue_max = 0; }),
              HasSubstr("worker_queue_max is 0: set at least 1"));
  EXPECT_THAT(refused([](ApplicationOptions& o) { o.lane_count = 0; }),
              HasSubstr("lane_count is 0: set 1 to 1048576"));
  EXPECT_THAT(refused([](ApplicationOptions& o) { o.attempts_max = 0; }),
              HasSubstr("attempts_max is 0: set at least 1"));
  EXPECT_THAT(
      refused([](ApplicationOptions& o) { o.checkpoint_period = -std::chrono::seconds(1); }),
      HasSubstr("checkpoint_period is -1000000000"));
}

TEST_F(ApplicationTest, StartSaysHowManyThreadsThereAreIfNotAllCanBeHad) {
  if (!testing::CanLimitAddressSpace()) GTEST_SKIP() << "a sanitizer needs the address space";
  ApplicationOptions options = Options();
  options.storage = {.url = "memory:"};
  options.worker_threads = 100'000;
  const std::size_t threads = testing::CountThreads();
  {
    auto opened = Application::Open("bank", options);
    ASSERT_TRUE(opened.ok());
    const testing::AddressSpaceLimit limit(std::size_t{512} << 20);

    const Result<void> started = opened.value()->Start();

    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message(), HasSubstr("of 100000 threads of thread pool worker"));
    EXPECT_THAT(started.error().message(), HasSubstr("set WorkerThreads"));
    EXPECT_FALSE(opened.value()->engine().running());
  }
  EXPECT_EQ(testing::CountThreads(), threads) << "none is left";
}

TEST_F(ApplicationTest, ACompletionThatThrowsWhenItIsDroppedDoesNoHarm) {
  testing::CapturedLog log;
  auto opened = Application::Open("bank", Options());
  EXPECT_FALSE(opened.value()
                   ->Submit(
                       "early", [](Transaction&) { return std::int64_t{0}; },
                       [](std::int64_t) { throw std::runtime_error("not told"); })
                   .ok());
  EXPECT_THAT(log.lines(), Contains(HasSubstr("completion of procedure early threw: not told")));
}

TEST_F(ApplicationTest, RunsSubmittedProceduresAndReportsDroppedOnes) {
  Table<std::int64_t, BAccount> accounts{kAccounts};
  ApplicationOptions options = Options();
  options.worker_threads = 1;
  auto opened = Application::Open("bank", options);
  Application& app = *opened.value();
  app.AddTable(accounts);
  ASSERT_TRUE(app.Start().ok());
  std::atomic<int> succeeded = 0;
  std::atomic<int> closed = 0;
  const Completion count = [&](std::int64_t code) {
    ++(code == 0 ? succeeded : closed);
    EXPECT_TRUE(code == 0 || code == result_code::kClosed);
  };

  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(app.SubmitOneByOne(
                       std::int64_t{7}, "add",
                       [&](Transaction& tx) {
                         accounts.GetOrAdd(tx, 1)->balance += 1;
                         return 0;
                       },
                       count)
                    .ok());
  }
  ASSERT_TRUE(app.Stop().ok());

  EXPECT_EQ(1000, succeeded + closed);
  EXPECT_FALSE(app.Submit("late", [](Transaction&) { return 0; }).ok());
  EXPECT_EQ(result_code::kClosed, app.Call("late", [](Transaction&) { return 0; }));
}

TEST_F(ApplicationTest, TakesItsOptionsFromTheConfiguration) {
  xml::Diagnostics diagnostics;
  auto config = Config::Parse(
      R"(<zeze ServerId="3" WorkerThreads="4" CheckpointPeriod="500" GlobalLease="20s">
           <DatabaseConf DatabaseType="RocksDB" DatabaseUrl="somewhere"/>
           <TableConf CacheCapacity="10" CacheFactor="2"/>
           <TableConf Name="tAccount" CacheCapacity="7" CacheFactor="1"
                      CheckpointWhenCommit="true"/>
         </zeze>)",
      "zeze.xml", {}, diagnostics);
  ASSERT_TRUE(config.has_value()) << diagnostics.Format();
  auto options = OptionsFromConfig(*config);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(3, options.value().server_id);
  EXPECT_EQ(4U, options.value().worker_threads);
  EXPECT_EQ("rocksdb:somewhere", options.value().storage.url);
  EXPECT_EQ(std::chrono::seconds(20), options.value().lease);
  options.value().storage = {.url = "memory:"};
  Table<std::int64_t, BAccount> accounts{kAccounts};
  Table<std::int64_t, BAccount> others{{.id = 2, .name = "test_Bank_tOther"}};
  auto opened = Application::Open("bank", options.value());
  opened.value()->AddTable(accounts);
  opened.value()->AddTable(others);

  ASSERT_TRUE(opened.value()->Start().ok());

  EXPECT_EQ(7U, accounts.statistics().capacity);
  EXPECT_TRUE(accounts.durable_at_commit());
  EXPECT_EQ(20U, others.statistics().capacity);
  EXPECT_FALSE(others.durable_at_commit());
  opened.value().reset();
}

TEST_F(ApplicationTest, WorksUnderAnUnfencedGlobalOnlyIfTheConfigurationSaysSo) {
  const auto allowed = [](const std::string& attributes) {
    xml::Diagnostics diagnostics;
    auto config =
        Config::Parse("<zeze " + attributes + R"(><DatabaseConf DatabaseType="Memory"/></zeze>)",
                      "zeze.xml", {}, diagnostics);
    return OptionsFromConfig(*config).value().allow_unfenced_global;
  };
  EXPECT_FALSE(allowed(""));
  EXPECT_TRUE(allowed(R"(AllowUnfencedGlobal="true")"));
}

TEST_F(ApplicationTest, RefusesDatabasesItDoesNotHave) {
  xml::Diagnostics diagnostics;
  auto config = Config::Parse(
      R"(<zeze><DatabaseConf DatabaseType="MongoDB" DatabaseUrl="mongodb://h/d"/></zeze>)",
      "zeze.xml", {}, diagnostics);
  ASSERT_TRUE(config.has_value());

  auto options = OptionsFromConfig(*config);

  ASSERT_FALSE(options.ok());
  EXPECT_THAT(options.error().message(), HasSubstr("MongoDB is not built"));
}

// Hole 14. A crash between the commits of two databases would leave half a transaction.
TEST_F(ApplicationTest, Hole14RefusesASecondDatabase) {
  xml::Diagnostics diagnostics;
  auto config =
      Config::Parse(R"(<zeze><DatabaseConf DatabaseType="Memory" DatabaseUrl=""/>)"
                    R"(<DatabaseConf Name="other" DatabaseType="Memory" DatabaseUrl=""/></zeze>)",
                    "zeze.xml", {}, diagnostics);
  ASSERT_TRUE(config.has_value()) << diagnostics.Format();

  auto options = OptionsFromConfig(*config);

  ASSERT_FALSE(options.ok());
  EXPECT_THAT(options.error().message(), HasSubstr("2 databases are configured"));
}

// Servers of a cluster have a table each: not one that they would fight for.
TEST(ApplicationTables, ATableWithASuffixIsATableOfItsOwn) {
  Table<std::int64_t, BAccount> of_server({.id = 1, .name = "test_a", .suffix = "@ServerId"});
  Table<std::int64_t, BAccount> of_component({.id = 2, .name = "test_b", .suffix = "__@ServerId"});
  Table<std::int64_t, BAccount> of_version(
      {.id = 3, .name = "test_c", .suffix = "@AppMainVersion"});
  Table<std::int64_t, BAccount> of_all({.id = 4, .name = "test_d"});
  auto opened = Application::Open(
      "test", {.server_id = 7, .app_main_version = 2, .storage = {.url = "memory:"}});
  ASSERT_TRUE(opened.ok());
  Application& app = *opened.value();
  app.AddTable(of_server);
  app.AddTable(of_component);
  app.AddTable(of_version);
  app.AddTable(of_all);
  ASSERT_TRUE(app.Start().ok());

  EXPECT_EQ(of_server.name(), "test_a7");
  EXPECT_EQ(of_server.id(), HashName32(std::string_view("test_a7")));
  EXPECT_EQ(of_component.name(), "test_b__7");
  EXPECT_EQ(of_version.name(), "test_c__2");
  EXPECT_EQ(of_all.name(), "test_d");
  EXPECT_EQ(of_all.id(), 4);
  EXPECT_TRUE(app.Stop().ok());
}

}  // namespace
}  // namespace zeze
