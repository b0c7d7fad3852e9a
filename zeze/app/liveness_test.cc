#include "zeze/app/liveness.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/thread_pool.h"
#include "zeze/config/config.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"
#include "zeze/transaction/testing/fake_coherence.h"
#include "zeze/transaction/testing/gate.h"
#include "zeze/xml/diagnostics.h"

namespace zeze {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using zeze::testing::BAccount;
using zeze::testing::FakeCoherence;
using zeze::testing::Gate;
using zeze::testing::ManualClock;

// A probe that looks when the test says so, one worker, and the daemon's end of the socket.
class LivenessTest : public ::testing::Test {
 protected:
  LivenessTest() : storage_(OpenMemoryStorage()), pool_({.name = "worker", .thread_count = 1}) {
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()));
    engine_ = std::make_unique<Engine>(
        EngineOptions{.storage = storage_.get(),
                      .coherence = &coherence_,
                      .clock = &clock_,
                      .checkpoint_period = seconds(10),
                      .on_checkpoint_step = [this](CheckpointStep step) {
                        if (step == CheckpointStep::kBeforeFlush && hold_flush_) flush_.Pass();
                      }});
    EXPECT_TRUE(engine_->AddTable(accounts_).ok());
    probe_ = std::make_unique<LivenessProbe>(
        *engine_, LivenessOptions{.descriptor = ends_[1], .start_thread = false}, clock_);
    EXPECT_TRUE(engine_->Start().ok());
    EXPECT_TRUE(probe_->Start(pool_).ok());
  }
  ~LivenessTest() override {
    workers_.Open();
    flush_.Open();
    coherence_.lease = true;
    pool_.Shutdown(ThreadPool::Pending::kDiscard);
    engine_.reset();
    probe_.reset();
    close(ends_[0]);
    close(ends_[1]);
  }

  // How often it has beaten since the last call.
  int Beats() const {
    std::array<char, 64> bytes{};
    const ssize_t size = recv(ends_[0], bytes.data(), bytes.size(), MSG_DONTWAIT);
    return size < 0 ? 0 : static_cast<int>(size);
  }
  // Looks, lets the worker run the probe, looks at the outcome, lets it run the next.
  void Probe() {
    const std::uint64_t before = probe_->status().probes;
    probe_->Look();
    while (probe_->status().probes < before + 1) std::this_thread::yield();
    probe_->Look();
    while (probe_->status().probes < before + 2) std::this_thread::yield();
  }
  Liveness State() const { return probe_->status().state; }

  ManualClock clock_;
  FakeCoherence coherence_;
  std::unique_ptr<Storage> storage_;
  Table<std::int64_t, BAccount> accounts_{TableDescriptor{.id = 7, .name = "accounts"}};
  Gate workers_;
  Gate flush_;
  std::atomic<bool> hold_flush_ = false;
  std::array<int, 2> ends_{};
  ThreadPool pool_;
  std::unique_ptr<LivenessProbe> probe_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(LivenessTest, BeatsOnceForEachTransaction) {
  Probe();
  EXPECT_EQ(Liveness::kAlive, State());
  EXPECT_EQ(2U, probe_->status().successes);
  EXPECT_EQ(1, Beats());
}

TEST_F(LivenessTest, AHungWorkerPoolIsFound) {
  Probe();
  EXPECT_EQ(1, Beats());
  ASSERT_TRUE(pool_.TryPost([this] { workers_.Pass(); }).ok());
  workers_.AwaitArrivals(1);
  probe_->Look();
  Beats();
  for (int second = 0; second < 11; ++second) {
    clock_.Advance(seconds(1));
    probe_->Look();
  }
  EXPECT_EQ(0, Beats());
  EXPECT_EQ(Liveness::kHung, State());
  EXPECT_THAT(probe_->status().why, HasSubstr("all workers are busy"));

  workers_.Open();
  Probe();
  EXPECT_EQ(Liveness::kAlive, State());
}

TEST_F(LivenessTest, WithoutALeaseItWaitsAndLives) {
  Probe();
  Beats();
  coherence_.lease = false;
  for (int minute = 0; minute < 10; ++minute) {
    clock_.Advance(minutes(1));
    probe_->Look();
    EXPECT_EQ(1, Beats());
  }
  EXPECT_EQ(Liveness::kWaiting, State());
  EXPECT_THAT(probe_->status().why, HasSubstr("lease"));
}

TEST_F(LivenessTest, WithoutGlobalItLives) {
  coherence_.grants = false;
  Probe();
  EXPECT_EQ(Liveness::kAlive, State()) << "a table in memory needs no rights of others";
  EXPECT_EQ(1, Beats());
}

TEST_F(LivenessTest, ACheckpointThatHangsIsFound) {
  Probe();
  hold_flush_ = true;
  EXPECT_EQ(0, engine_->Call("put", [this](Transaction& tx) {
    accounts_.Put(tx, 1, {});
    return 0;
  }));
  std::thread saver([this] { EXPECT_TRUE(engine_->CheckpointNow().ok()); });
  flush_.AwaitArrivals(1);
  for (int minute = 0; minute < 2; ++minute) {
    clock_.Advance(minutes(1));
    Probe();
    EXPECT_EQ(Liveness::kAlive, State());
  }
  Beats();
  clock_.Advance(minutes(1));
  Probe();
  EXPECT_EQ(Liveness::kHung, State());
  EXPECT_THAT(probe_->status().why, HasSubstr("a checkpoint has been running for 3m"));
  EXPECT_EQ(0, Beats());
  flush_.Open();
  saver.join();
  Probe();
  EXPECT_EQ(Liveness::kAlive, State());
}

TEST_F(LivenessTest, BeatsWhileItStops) {
  Probe();
  Beats();
  probe_->BeginStop();
  clock_.Advance(minutes(1));
  probe_->Look();
  EXPECT_EQ(1, Beats());
  EXPECT_EQ(Liveness::kWaiting, State());
}

// With these attributes of <zeze>.
ApplicationOptions OptionsFrom(const std::string& attributes) {
  xml::Diagnostics diagnostics;
  const auto config =
      Config::Parse("<zeze WorkerThreads='1' " + attributes + "/>", "zeze.xml", {}, diagnostics);
  EXPECT_TRUE(config.has_value()) << diagnostics.Format();
  return OptionsFromConfig(config.value()).value();
}

// NOLINTBEGIN(concurrency-mt-unsafe): nobody else looks at the environment meanwhile.
TEST(ApplicationLiveness, BeatsForTheDaemonThatStartedIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()));
  ASSERT_EQ(0, setenv("ZEZE_LIVENESS_FD", std::to_string(ends[1]).c_str(), 1));
  auto opened = Application::Open("bank", {.storage = {.url = "memory:"}, .worker_threads = 1});
  ASSERT_TRUE(opened.value()->Start().ok());

  char byte = 0;
  EXPECT_EQ(1, recv(ends[0], &byte, 1, 0));
  EXPECT_EQ(Liveness::kAlive, opened.value()->liveness().state);

  // Nobody listens any more: that kills nobody.
  close(ends[0]);
  const auto before = opened.value()->liveness().successes;
  while (opened.value()->liveness().successes < before + 2) std::this_thread::yield();
  EXPECT_TRUE(opened.value()->Stop().ok());
  ASSERT_EQ(0, unsetenv("ZEZE_LIVENESS_FD"));
  close(ends[1]);
}

TEST(ApplicationLiveness, ADescriptorThatIsNoneIsNamed) {
  ASSERT_EQ(0, setenv("ZEZE_LIVENESS_FD", "999", 1));
  auto opened = Application::Open("bank", {.storage = {.url = "memory:"}, .worker_threads = 1});
  const Result<void> started = opened.value()->Start();
  ASSERT_EQ(0, unsetenv("ZEZE_LIVENESS_FD"));
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), HasSubstr("ZEZE_LIVENESS_FD=999"));
}

TEST(ApplicationLiveness, WithoutAProbeItSaysThatADaemonWouldKillIt) {
  zeze::testing::CapturedLog log;
  ApplicationOptions options = OptionsFrom("LivenessPeriod='0'");
  ASSERT_EQ(0, setenv("ZEZE_LIVENESS_FD", "1", 1));
  auto opened = Application::Open("bank", options);
  const Result<void> started = opened.value()->Start();
  ASSERT_EQ(0, unsetenv("ZEZE_LIVENESS_FD"));

  ASSERT_TRUE(started.ok()) << started.error().message();
  EXPECT_EQ(Liveness::kUnknown, opened.value()->liveness().state);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("LivenessPeriod is 0: the daemon")));
}

// NOLINTEND(concurrency-mt-unsafe)

TEST(ApplicationLiveness, IsProbedAsTheConfigurationSays) {
  const LivenessOptions defaults = OptionsFrom("").liveness;
  EXPECT_EQ(LivenessOptions{}.period, defaults.period);
  EXPECT_EQ(LivenessOptions{}.limit, defaults.limit);
  EXPECT_EQ(LivenessOptions{}.checkpoint_limit, defaults.checkpoint_limit);

  const ApplicationOptions options =
      OptionsFrom("LivenessPeriod='1ms' LivenessLimit='30s' LivenessCheckpointLimit='5m'");
  EXPECT_EQ(seconds(30), options.liveness.limit);
  EXPECT_EQ(minutes(5), options.liveness.checkpoint_limit);
  auto opened = Application::Open("bank", options);
  ASSERT_TRUE(opened.value()->Start().ok());
  while (opened.value()->liveness().successes < 10) std::this_thread::yield();
  EXPECT_EQ(Liveness::kAlive, opened.value()->liveness().state);
  EXPECT_TRUE(opened.value()->Stop().ok());
}

}  // namespace
}  // namespace zeze
