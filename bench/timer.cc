// Timers in databases: very many at once, and one after the other.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "Zeze/Builtin/AutoKey.h"
#include "bench/bench.h"
#include "bench/fixtures.h"
#include "bench/measure.h"
#include "bench/work_directory.h"
#include "zeze/app/application.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/timers.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/transaction/table.h"

namespace zeze::bench {
namespace {

using std::chrono::milliseconds;
using BCount = Zeze::Builtin::AutoKey::BSeed;

constexpr std::int64_t kTimers = 100'000;
constexpr std::int64_t kRecords = 10'000;
constexpr std::int64_t kInOne = 100;  // Scheduled in one transaction.
constexpr std::int64_t kAhead = 10'000;

// A server whose timers each edit a record of the application.
class TimerBench {
 public:
  explicit TimerBench(ApplicationOptions options) {
    timers_.RegisterHandler("edit", [this](Transaction& tx, TimerContext& timer) {
      const std::int64_t key = timer.data().As<BCount>()->NextId;
      records_.GetOrAdd(tx, key)->NextId += 1;
      tx.AfterCommit([this] { fired_.fetch_add(1, std::memory_order_relaxed); });
      return result_code::kSuccess;
    });
    options.tables[""] = {.cache_capacity = 1'000'000};
    Result<std::unique_ptr<Application>> opened =
        Application::Open("timer bench", std::move(options));
    if (!opened.ok()) throw std::runtime_error(opened.error().message());
    application_ = std::move(opened).value();
    application_->AddTable(records_);
    application_->AddModule(keys_);
    application_->AddModule(timers_);
    CheckDone(application_->Start());
    for (std::int64_t key = 0; key < kRecords; ++key) Edit(key);
  }

  void Schedule(std::int64_t count, std::int64_t due_ms, FastRandom& random) {
    CheckCode(application_->Call("schedule", [&](Transaction& tx) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto delay = milliseconds(std::max<std::int64_t>(due_ms - UnixNow(), 0));
        const BCount data{.NextId = random.Below(kRecords)};
        if (!timers_.Schedule(tx, TimerSpec::After("edit", delay, AnyBean::Of(data))).ok()) {
          return result_code::kException;
        }
      }
      return result_code::kSuccess;
    }));
  }

  // What somebody waits for who has no timers: from the order to the answer.
  double OrdinaryMicroseconds(FastRandom& random) {
    const double begin = WallSeconds();
    std::promise<std::int64_t> done;
    const std::int64_t key = random.Below(kRecords);
    CheckDone(application_->Submit(
        "ordinary",
        [&](Transaction& tx) {
          records_.GetOrAdd(tx, kRecords + key)->NextId += 1;
          return result_code::kSuccess;
        },
        [&](std::int64_t code) { done.set_value(code); }));
    CheckCode(done.get_future().get());
    return (WallSeconds() - begin) * 1e6;
  }

  static std::int64_t UnixNow() {
    return std::chrono::duration_cast<milliseconds>(SystemClock().SystemNow().time_since_epoch())
        .count();
  }

  std::int64_t fired() const { return fired_.load(std::memory_order_relaxed); }
  Application& application() { return *application_; }

 private:
  void Edit(std::int64_t key) {
    CheckCode(application_->Call("edit", [&](Transaction& tx) {
      records_.GetOrAdd(tx, key)->NextId += 1;
      return result_code::kSuccess;
    }));
  }

  AutoKeys keys_;
  Timers timers_{keys_};
  Table<std::int64_t, BCount> records_{kTable};
  std::atomic<std::int64_t> fired_ = 0;
  std::unique_ptr<Application> application_;
};

double PercentileOf(const std::vector<double>& values) {
  return Percentile(values, 0.99);
}

void Burst(Run& run, const std::string& name, ApplicationOptions options, double seconds_max) {
  TimerBench bench(std::move(options));
  FastRandom random(3);
  const std::int64_t due = TimerBench::UnixNow() + 20'000;
  const double begin = WallSeconds();
  for (std::int64_t i = 0; i < kTimers; i += kInOne) bench.Schedule(kInOne, due, random);
  const double scheduled = WallSeconds() - begin;

  const auto measure = [&](const auto& until) {
    std::vector<double> latencies;
    while (!until()) {
      latencies.push_back(bench.OrdinaryMicroseconds(random));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return latencies;
  };
  const std::vector<double> before = measure([&] { return TimerBench::UnixNow() >= due - 100; });
  while (TimerBench::UnixNow() < due) std::this_thread::yield();
  const double burst = WallSeconds();
  const std::vector<double> during = measure([&] { return bench.fired() >= kTimers; });
  const double seconds = WallSeconds() - burst;
  run.Report({.name = name,
              .value = seconds,
              .unit = "s",
              .peer = "the goal",
              .peer_value = seconds_max,
              .ratio = seconds / seconds_max,
              .goal = Goal::ValueAtMost(seconds_max),
              .note = fmt::format("{} timers, scheduled in {:.1f} s", kTimers, scheduled)});
  run.Report({.name = name + "_p99",
              .value = PercentileOf(during),
              .unit = "us",
              .peer = "before the burst",
              .peer_value = PercentileOf(before),
              .ratio = PercentileOf(during) / PercentileOf(before),
              .goal = Goal::RatioAtMost(2),
              .note = fmt::format("of other transactions: {} before, median {:.0f} us, {} during, "
                                  "median {:.0f} us",
                                  before.size(), Median(before), during.size(), Median(during))});
  CheckDone(bench.application().Stop());
}

std::unique_ptr<DatabaseServer> StartDatabase() {
  Result<std::unique_ptr<DatabaseServer>> started = StartPostgresServer({.sync = true});
  if (!started.ok()) throw std::runtime_error(started.error().message());
  return std::move(started).value();
}

void BurstRocksDb(Run& run) {
  const WorkDirectory directory(run.settings().directory);
  Burst(run, "components.timer_burst_rocksdb",
        {.server_id = 1, .storage_directory = directory.Sub("db")}, 3);
}

void BurstPostgres(Run& run) {
  const std::unique_ptr<DatabaseServer> server = StartDatabase();
  Burst(run, "components.timer_burst_postgres",
        {.server_id = 1, .storage = StorageKind::kPostgreSql, .storage_url = server->NewDatabase()},
        10);
}

// Register and run, at once and all the time.
void Rate(Run& run) {
  const std::unique_ptr<DatabaseServer> server = StartDatabase();
  TimerBench bench(
      {.server_id = 1, .storage = StorageKind::kPostgreSql, .storage_url = server->NewDatabase()});
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> scheduled = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      FastRandom random(t + 1);
      while (!stop) {
        if (scheduled - bench.fired() > kAhead) {
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          continue;
        }
        bench.Schedule(1, 0, random);
        ++scheduled;
      }
    });
  }
  std::this_thread::sleep_for(milliseconds(500));
  const std::int64_t fired = bench.fired();
  const double begin = WallSeconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(run.settings().seconds));
  const double rate = static_cast<double>(bench.fired() - fired) / (WallSeconds() - begin);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  run.Report({.name = "components.timer_rate",
              .value = rate,
              .unit = "timers/s",
              .peer = "the goal",
              .peer_value = 20'000,
              .ratio = rate / 20'000,
              .goal = Goal::RatioAtLeast(1)});
  CheckDone(bench.application().Stop());
}

constexpr Benchmark kBenchmarks[] = {
    {"components.timer_burst_rocksdb", "100,000 timers due in the same second", &BurstRocksDb},
    {"components.timer_burst_postgres", "the same", &BurstPostgres},
    {"components.timer_rate", "timers that are stored and run, PostgreSQL", &Rate},
};

}  // namespace

std::span<const Benchmark> TimerBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
