// All components at once on servers that are killed: real processes over a Global, a service
// manager and PostgreSQL. Whatever happens, nothing is lost, doubled or broken.
//
//   ZEZE_CRASH_KILLS=100 ZEZE_CRASH_TIMERS=100000 ZEZE_CRASH_TASKS=100000 ...
//
// is the full size; ZEZE_CRASH_SEED repeats the choices of a run.

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Timer.h"
#include "tests/components/backend.h"
#include "tests/components/crash_server.h"
#include "tests/components/timer_ledger.h"
#include "tests/redo/shop_counters.h"
#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::crash_test {
namespace {

using std::chrono::milliseconds;

constexpr auto kPatience = std::chrono::minutes(5);
constexpr std::int32_t kServers = 3;
constexpr std::int32_t kReader = 100;  // The server that looks at the end.

std::int64_t Setting(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? otherwise : std::atoll(text);
}

class ComponentsCrashTest : public ::testing::Test {
 protected:
  ComponentsCrashTest() {
    RecordProperty("seed", std::to_string(seed_));
    for (int& port : redo_ports_) port = FreePort();
  }

  ServerProcess& server(std::int32_t id) { return *servers_.at(static_cast<std::size_t>(id)); }

  void StartServer(std::int32_t id, std::int64_t timers, std::int64_t timers_per_second) {
    const auto index = static_cast<std::size_t>(id);
    servers_.at(index) = std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_COMPONENT_SERVER, "--id", std::to_string(id), "--database", backend_.url(),
                    "--global", std::to_string(backend_.global_port()), "--registry",
                    std::to_string(backend_.registry_port()), "--redo",
                    std::to_string(redo_ports_.at(index)), "--issued", IssuedFile(id), "--seed",
                    std::to_string(random_()), "--timers", std::to_string(timers),
                    "--timers-per-second", std::to_string(timers_per_second)}});
  }
  std::string IssuedFile(std::int32_t id) const { return backend_.File(fmt::format("ids{}", id)); }

  void StartProducer() {
    const std::string ports =
        fmt::format("{},{},{}", redo_ports_[0], redo_ports_[1], redo_ports_[2]);
    producer_ = std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_REDO_PRODUCER, backend_.File("client"), ports, std::to_string(tasks_ / 2),
                    std::to_string(random_()), std::to_string(PerSecond(tasks_ / 2))}});
    ASSERT_TRUE(producer_->AwaitLine("ready", kPatience)) << producer_->said();
  }

  // So that it lasts about as long as the kills do.
  std::int64_t PerSecond(std::int64_t count) const {
    return std::max<std::int64_t>(count / (2 * kills_ + 1), 1);
  }
  // A server is there for half of the time.
  void StartServer(std::int32_t id) {
    StartServer(id, timers_ / kServers, 2 * PerSecond(timers_ / kServers));
  }

  // A server that nobody killed may have lost its rights, when the machine was too slow.
  void AwaitReady(std::int32_t id) {
    while (!server(id).AwaitLine("ready", kPatience) || !server(id).running()) {
      ASSERT_FALSE(server(id).running()) << server(id).said();
      ASSERT_EQ(server(id).AwaitEnd(), kFencedExitCode) << server(id).said();
      ++fenced_;
      StartServer(id);
    }
  }

  void ExpectNoFault(const ServerProcess& process) {
    const std::string said = process.said();
    const std::size_t fault = said.find("fault: ");
    if (fault == std::string::npos) return;
    ADD_FAILURE() << "seed " << seed_ << ", " << said.substr(fault, said.find('\n', fault) - fault);
  }

  void Kill(std::int32_t id) {
    AwaitReady(id);
    if (HasFatalFailure()) return;
    SystemClock().SleepFor(milliseconds(random_() % 1200));
    server(id).Kill();
    // It may have been fenced just before. If it ended in another way, nobody has killed it.
    const int end = server(id).AwaitEnd();
    ASSERT_TRUE(end == 128 + SIGKILL || end == kFencedExitCode) << end << server(id).said();
    ExpectNoFault(server(id));
    ++killed_;
  }

  void KillSomebody() {
    const auto id = static_cast<std::int32_t>(random_() % kServers);
    Kill(id);
    if (HasFatalFailure()) return;
    const bool two = random_() % 8 == 0;
    const std::int32_t other = (id + 1) % kServers;
    if (two) Kill(other);
    if (random_() % 4 == 0) {
      producer_->Kill();
      ++producers_killed_;
      StartProducer();
    }
    // Sometimes long enough that others have taken over what it had.
    SystemClock().SleepFor(milliseconds(random_() % 6 == 0 ? 4500 : random_() % 300));
    StartServer(id);
    if (two) StartServer(other);
  }

  template <typename Done>
  void Await(const std::string& what, Done done) {
    const auto until = SystemClock().Now() + kPatience;
    std::string why;
    while (!done(why)) {
      for (std::int32_t id = 0; id < kServers; ++id) {
        if (servers_.at(static_cast<std::size_t>(id)) == nullptr) continue;
        AwaitReady(id);
        ExpectNoFault(server(id));
      }
      ASSERT_LT(SystemClock().Now(), until) << what << ": " << why << ", seed " << seed_;
      if (HasFailure()) return;
      SystemClock().SleepFor(milliseconds(200));
    }
  }

  // Opened while others still work, as one more server.
  void OpenReader() {
    reader_ = std::make_unique<CrashServer>(
        CrashServerOptions{.id = kReader,
                           .database = backend_.url(),
                           .global_port = static_cast<std::uint16_t>(backend_.global_port())});
    const Result<void> started = reader_->Start();
    ASSERT_TRUE(started.ok()) << started.error().message();
  }

  // And saved.
  bool AllScheduled(std::int64_t timers, std::string& why) {
    std::int64_t scheduled = 0;
    EXPECT_TRUE(reader_->ledger()
                    .tSchedules
                    .Walk([&](std::int32_t, const crash::Ledger::BSchedule& schedule) {
                      scheduled += schedule.next_slot;
                      return true;
                    })
                    .ok());
    why = fmt::format("{} of {} scheduled", scheduled, timers);
    return scheduled == timers;
  }

  std::size_t TimersLeft() {
    const auto left = reader_->timers().tIndexs.WalkKeys([](const std::string&) { return true; });
    EXPECT_TRUE(left.ok());
    return left.value();
  }

  // Only what has no end is left.
  bool AllRan(std::string& why) {
    const std::size_t left = TimersLeft();
    why = fmt::format("{} timers left", left);
    return left == 1;
  }

  // By what the transactions noted themselves.
  void ExpectNoFaults() {
    EXPECT_TRUE(reader_->ledger()
                    .tFaults
                    .Walk([&](const std::string& what, const crash::Ledger::BNumber& times) {
                      ADD_FAILURE() << what << " (" << times.number << " times)";
                      return true;
                    })
                    .ok());
  }

  void ExpectTimersAsPlanned() {
    std::int64_t timers = 0;
    EXPECT_TRUE(reader_->ledger()
                    .tTimers
                    .Walk([&](const std::string& id, const crash::Ledger::BTimer& timer) {
                      ++timers;
                      runs_ += timer.count;
                      // At its end, if not by its plan, then because it was canceled or missed.
                      const bool as_planned = timer.exactly >= 0 ? timer.count == timer.exactly
                                                                 : timer.canceled || timer.end != 0;
                      // Whatever was missed, these run at least once.
                      const bool once = timer.canceled || timer.count > 0 ||
                                        timer.misfire == static_cast<int>(MisfirePolicy::kSkip);
                      EXPECT_TRUE(as_planned && once) << id << " " << timer.ToString();
                      return true;
                    })
                    .ok());
    EXPECT_GE(timers + Counted("named"), timers_ / kServers * kServers);
    EXPECT_EQ(Counted(TimerLedger::kStays), 1);
  }

  // Of every timer there is one in the nodes of all servers, and its index leads to it.
  void ExpectOneOfEachTimer() {
    std::map<std::string, int> found;
    using Node = Zeze::Builtin::Timer::BNode;
    EXPECT_TRUE(reader_->timers()
                    .tNodes
                    .Walk([&](std::int64_t, const Node& node) {
                      for (const auto& [id, timer] : node.Timers) ++found[id];
                      return true;
                    })
                    .ok());
    EXPECT_EQ(found, (std::map<std::string, int>{{TimerLedger::kStays, 1}}));
  }

  std::int64_t Counted(const std::string& what) {
    std::int64_t sum = 0;
    EXPECT_TRUE(reader_->ledger()
                    .tCounts
                    .Walk([&](const std::string& name, const crash::Ledger::BNumber& count) {
                      if (name.starts_with(what + "@")) sum += count.number;
                      return true;
                    })
                    .ok());
    return sum;
  }

  // Also those whose transactions are lost.
  void ExpectNoIdTwice() {
    std::unordered_set<std::string> issued;
    for (std::int32_t id = 0; id < kServers; ++id) {
      std::ifstream file(IssuedFile(id));
      for (std::string line; std::getline(file, line);) {
        if (file.eof()) break;  // Of a process that was killed while it wrote.
        EXPECT_TRUE(issued.insert(line).second) << line << " was issued twice";
      }
    }
    issued_ = issued.size();
    const auto stored = reader_->ledger().tIssued.WalkKeys([](std::int64_t) { return true; });
    EXPECT_EQ(static_cast<std::int64_t>(stored.value()), Counted("issued"));
  }

  void ExpectTasksOnce() {
    for (const char* queue : redo_test::kQueues) {
      const auto outcome = reader_->shop().OutcomeOf(queue, tasks_ / 2);
      EXPECT_EQ(outcome.tasks, tasks_ / 2) << queue;
      EXPECT_EQ(outcome.wrong, 0) << queue;
      EXPECT_EQ(outcome.disorder, 0) << queue;
    }
  }

  void ExpectCollectionsWhole() {
    EXPECT_EQ(reader_->application().Call(
                  "check", [&](Transaction& tx) { return reader_->collections().Check(tx); }),
              result_code::kSuccess);
    reader_->collections().Walk(reader_->application());
  }

  // What is not done at all is not done wrong either.
  void ExpectAllWasUsed() {
    for (const char* what : {"changes", "checks", "walks", "issued"}) {
      EXPECT_GT(Counted(what), 2 * kills_) << what;
    }
    EXPECT_GE(static_cast<std::int64_t>(issued_), Counted("issued") / 2);
  }

  void SayProgress() {
    std::cout << fmt::format("{} of {} kills, {} s\n", killed_, kills_, Seconds()) << std::flush;
  }
  std::int64_t Seconds() const {
    return std::chrono::duration_cast<std::chrono::seconds>(SystemClock().Now() - begin_).count();
  }

  const std::int64_t kills_ = Setting("ZEZE_CRASH_KILLS", 6);
  const std::int64_t timers_ = Setting("ZEZE_CRASH_TIMERS", 2'000);
  const std::int64_t tasks_ = Setting("ZEZE_CRASH_TASKS", 2'000);
  const std::int64_t seed_ = Setting("ZEZE_CRASH_SEED", SystemClock().Now().count() / 1000 % 10000);
  std::mt19937_64 random_{static_cast<std::uint64_t>(seed_)};
  Backend backend_{ZEZE_BINARY};
  std::array<int, kServers> redo_ports_{};
  std::array<std::unique_ptr<ServerProcess>, kServers> servers_;
  std::unique_ptr<ServerProcess> producer_;
  std::unique_ptr<CrashServer> reader_;
  const std::chrono::nanoseconds begin_ = SystemClock().Now();
  std::int64_t killed_ = 0;
  std::int64_t producers_killed_ = 0;
  std::int64_t fenced_ = 0;
  std::int64_t runs_ = 0;
  std::size_t issued_ = 0;
};

TEST_F(ComponentsCrashTest, ServersAreKilledAtRandomAndNothingIsLostDoubledOrBroken) {
  for (std::int32_t id = 0; id < kServers; ++id) StartServer(id);
  StartProducer();
  while (killed_ < kills_ && !HasFailure()) {
    const std::int64_t before = killed_;
    KillSomebody();
    if (killed_ / 10 != before / 10) SayProgress();
  }
  ASSERT_FALSE(HasFailure());

  OpenReader();
  Await("timers",
        [&](std::string& why) { return AllScheduled(timers_ / kServers * kServers, why); });
  ASSERT_TRUE(producer_->AwaitLine("finished", kPatience)) << producer_->said();
  Await("timers", [&](std::string& why) { return AllRan(why); });
  ASSERT_FALSE(HasFailure());
  for (std::int32_t id = 0; id < kServers; ++id) {
    server(id).Stop();
    EXPECT_EQ(server(id).AwaitEnd(), 0) << server(id).said();
  }

  ExpectCollectionsWhole();
  ExpectTimersAsPlanned();
  ExpectOneOfEachTimer();
  ExpectNoIdTwice();
  ExpectTasksOnce();
  ExpectNoFaults();
  ExpectAllWasUsed();
  std::cout << fmt::format(
      "{} servers killed ({} fenced), {} producers killed, {} timers ran {} times, {} named ones, "
      "{} redo tasks, {} ids issued, {} changes of collections, {} checks, {} walks, {} s, seed "
      "{}\n",
      killed_, fenced_, producers_killed_, timers_, runs_, Counted("named"), tasks_, issued_,
      Counted("changes"), Counted("checks"), Counted("walks"), Seconds(), seed_);
  EXPECT_TRUE(reader_->Stop().ok());
}

// By the live service manager: nobody but it says that the other one is gone.
TEST_F(ComponentsCrashTest, Seed002AnotherServerRunsTheTimersOfADeadOne) {
  StartServer(0, 0, 1000);
  StartServer(1, 2000, 1000);
  ASSERT_TRUE(server(0).AwaitLine("ready", kPatience)) << server(0).said();
  OpenReader();
  Await("timers", [&](std::string& why) { return AllScheduled(2000, why); });
  server(1).Kill();
  servers_[1] = nullptr;
  ASSERT_GT(TimersLeft(), 1U);
  const auto dead = SystemClock().Now();
  Await("timers", [&](std::string& why) { return AllRan(why); });
  std::cout << fmt::format("all of them ran within {} ms of its end\n",
                           (SystemClock().Now() - dead) / milliseconds(1));
  // Lease, delay of the service manager, the last of them.
  EXPECT_LT(SystemClock().Now() - dead, std::chrono::seconds(30));
  server(0).Stop();
  ExpectNoFaults();
  EXPECT_TRUE(reader_->Stop().ok());
}

}  // namespace
}  // namespace zeze::crash_test
