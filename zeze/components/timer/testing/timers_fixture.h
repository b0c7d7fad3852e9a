// TimerServer: a server with timers, over a directory that outlives it, whose time a test moves.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/AutoKey.h"
#include "zeze/app/application.h"
#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/timers.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"

namespace zeze {

using BCount = Zeze::Builtin::AutoKey::BSeed;

inline constexpr TableDescriptor kEffects{.id = 4711, .name = "effects"};

// What handlers were told, in order.
class Told {
 public:
  void Add(std::string what) {
    const MutexLock lock(mutex_);
    what_.push_back(std::move(what));
    changed_.NotifyAll();
  }
  // Fails the test if they do not come.
  std::vector<std::string> Await(std::size_t count) {
    const MutexLock lock(mutex_);
    while (what_.size() < count && changed_.WaitFor(mutex_, std::chrono::seconds(20))) {
    }
    EXPECT_GE(what_.size(), count);
    return what_;
  }
  std::size_t count() const {
    const MutexLock lock(mutex_);
    return what_.size();
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> what_ ZEZE_GUARDED_BY(mutex_);
};

struct TimerSetup {
  std::int32_t server_id = 1;
  TimersOptions timers = {};
  bool memory = false;
  std::vector<std::string> handlers = {"count"};  // All do the same.
  // What the handler "count" returns; it counts in the table and then says so.
  std::function<std::int64_t(Transaction&, TimerContext&)> extra = nullptr;
};

struct TimerServer {
  TimerServer(const std::string& directory, Clock& clock, TimerSetup setup = {})
      : timers(keys, std::move(setup.timers)) {
    for (const std::string& name : setup.handlers) {
      timers.RegisterHandler(name, [this, extra = setup.extra](Transaction& tx, TimerContext& t) {
        effects.GetOrAdd(tx, std::string(t.id()))->NextId += 1;
        const std::int64_t code = extra ? extra(tx, t) : result_code::kSuccess;
        if (code == result_code::kSuccess) {
          tx.AfterCommit([this, id = std::string(t.id())] { told.Add(id); });
        }
        return code;
      });
    }
    Result<std::unique_ptr<Application>> opened = Application::Open(
        "timers", {.server_id = setup.server_id,
                   .storage = {.url = setup.memory ? "memory:" : "rocksdb:" + directory + "/db"},
                   .worker_threads = 4,
                   .checkpoint_period = std::chrono::nanoseconds(0),
                   .liveness = {.period = std::chrono::nanoseconds(0)},
                   .clock = &clock});
    ZEZE_CHECK(opened.ok());
    application = std::move(opened).value();
    application->AddTable(effects);
    application->AddModule(keys);
    application->AddModule(timers);
  }

  void Start() {
    const Result<void> started = application->Start();
    ASSERT_TRUE(started.ok()) << started.error().message();
    ASSERT_TRUE(timers.AwaitLoaded(std::chrono::seconds(20)));
  }
  void Stop() const { EXPECT_TRUE(application->Stop().ok()); }
  // Nothing that was not saved is ever saved.
  void Crash() {
    application->engine().Abandon();
    application.reset();
  }

  template <typename Body>
  std::int64_t Call(const Body& body) {
    return application->Call("test", [&](Transaction& tx) -> std::int64_t {
      body(tx);
      return result_code::kSuccess;
    });
  }
  std::string Schedule(const TimerSpec& spec) {
    std::string id;
    EXPECT_EQ(0, Call([&](Transaction& tx) {
                Result<std::string> scheduled = timers.Schedule(tx, spec);
                ASSERT_TRUE(scheduled.ok()) << scheduled.error().message();
                id = scheduled.value();
              }));
    return id;
  }
  std::optional<TimerInfo> Find(const std::string& id) {
    std::optional<TimerInfo> info;
    EXPECT_EQ(0, Call([&](Transaction& tx) { info = timers.Find(tx, id); }));
    return info;
  }
  std::int64_t Effects(const std::string& id) {
    std::int64_t count = 0;
    EXPECT_EQ(0, Call([&](Transaction& tx) {
                const BCount* effect = effects.Get(tx, id);
                count = effect == nullptr ? 0 : effect->NextId;
              }));
    return count;
  }
  std::int64_t Serial() { return timers.tNodeRoot.ReadCopy(1).value()->LoadSerialNo; }

  Told told;
  AutoKeys keys;
  Timers timers;
  Table<std::string, BCount> effects{kEffects};
  std::unique_ptr<Application> application;
};

class TimersTest : public ::testing::Test {
 protected:
  // Starts a server over the same database; the one before must have ended.
  TimerServer& Open(TimerSetup setup = {}) {
    server.reset();
    server = std::make_unique<TimerServer>(directory.path(), clock, std::move(setup));
    server->Start();
    return *server;
  }

  std::int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               clock.SystemNow().time_since_epoch())
        .count();
  }

  TempDirectory directory;
  testing::ManualClock clock;
  std::unique_ptr<TimerServer> server;
};

}  // namespace zeze
