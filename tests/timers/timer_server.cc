// The server process of the timer tests: schedules timers, and runs its own and those of the dead.
//
//   zeze_timer_server --id 3 --database URL --global PORT --registry PORT --seed 7
//
// Says "ready" when it serves, and works until SIGTERM.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "tests/timers/timer_tables.h"
#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/result_code.h"
#include "zeze/transaction/table.h"

namespace zeze::timers_test {
namespace {

struct Arguments {
  std::int32_t id = 0;
  std::string database;
  std::uint16_t global = 0;
  std::uint16_t registry = 0;
  std::uint64_t seed = 1;
  std::int64_t count = 1000;
};

class Server {
 public:
  explicit Server(const Arguments& arguments) : arguments_(arguments) {
    timers_.RegisterHandler("count", [this](Transaction& tx, TimerContext& timer) {
      effects_.GetOrAdd(tx, std::string(timer.id()))->NextId += 1;
      return result_code::kSuccess;
    });
    auto opened = Application::Open(
        "timer test", {.server_id = arguments.id,
                       .storage = StorageKind::kPostgreSql,
                       .storage_url = arguments.database,
                       .globals = {{.host = "127.0.0.1", .port = arguments.global}},
                       .lease = std::chrono::milliseconds(2000),
                       .worker_threads = 8,
                       .checkpoint_period = std::chrono::milliseconds(300),
                       .registry = registry::RegistryAgentOptions{
                           .connector = {.host = "127.0.0.1", .port = arguments.registry}}});
    CheckOrEnd(opened);
    application_ = std::move(opened).value();
    application_->AddTable(expected_);
    application_->AddTable(effects_);
    application_->AddModule(keys_);
    application_->AddModule(timers_);
    CheckOrEnd(application_->Start());
  }

  // A crash may lose the last of them, each together with what is expected of it.
  void Schedule() {
    std::mt19937_64 random(arguments_.seed);
    for (std::int64_t i = 0; i < arguments_.count; i += 10) {
      application_->Call("schedule", [&](Transaction& tx) -> std::int64_t {
        for (int k = 0; k < 10; ++k) {
          const std::chrono::milliseconds delay(random() % 3000);
          TimerSpec spec = TimerSpec::After("count", delay);
          if (k % 3 == 0) {
            spec = TimerSpec::Every("count", delay, std::chrono::milliseconds(500));
            spec.times = 3;
            spec.misfire = MisfirePolicy::kAll;
          }
          const Result<std::string> id = timers_.Schedule(tx, spec);
          if (!id.ok()) return result_code::kLogicError;
          expected_.Insert(tx, id.value(), {.NextId = k % 3 == 0 ? 3 : 1});
        }
        static_cast<void>(timers_.ScheduleNamed(
            tx, "named", TimerSpec::Every("count", std::chrono::hours(1), std::chrono::hours(1))));
        return result_code::kSuccess;
      });
    }
  }

  void Stop() { CheckOrEnd(application_->Stop()); }

 private:
  template <typename R>
  static void CheckOrEnd(const R& result) {
    if (result.ok()) return;
    std::cerr << "timer server: " << result.error().message() << '\n' << std::flush;
    std::_Exit(1);
  }

  const Arguments arguments_;
  AutoKeys keys_;
  Timers timers_{keys_};
  Table<std::string, BCount> expected_{kExpected};
  Table<std::string, BCount> effects_{kEffects};
  std::unique_ptr<Application> application_;
};

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("timer server");
  app.add_option("--id", arguments.id);
  app.add_option("--database", arguments.database);
  app.add_option("--global", arguments.global);
  app.add_option("--registry", arguments.registry);
  app.add_option("--seed", arguments.seed);
  app.add_option("--count", arguments.count);
  CLI11_PARSE(app, argc, argv);
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);
  Server server(arguments);
  std::cout << "ready\n" << std::flush;
  std::thread work([&] {
    server.Schedule();
    std::cout << "scheduled\n" << std::flush;
  });
  int signal = 0;
  sigwait(&end, &signal);
  work.join();
  server.Stop();
  return 0;
}

}  // namespace
}  // namespace zeze::timers_test

int main(int argc, char** argv) {
  return zeze::timers_test::Main(argc, argv);
}
