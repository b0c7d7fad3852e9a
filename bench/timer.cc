// Timers in databases: very many at once, and one after the other.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

constexpr std::int64_t kPunctual = 30'000;
constexpr int kWaiting = 32;
constexpr milliseconds kWait(5000);

// Counts of milliseconds.
class Lateness {
 public:
  void Add(std::int64_t ms, std::int64_t at_ms) {
    if (ms > most_.load(std::memory_order_relaxed)) {
      most_.store(ms, std::memory_order_relaxed);
      most_at_.store(at_ms, std::memory_order_relaxed);
    }
    const auto bucket = static_cast<std::size_t>(std::clamp<std::int64_t>(ms, 0, kMax));
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  }
  std::int64_t latest_at_ms() const { return most_at_.load(std::memory_order_relaxed); }
  double Percentile(double share) const {
    std::int64_t sum = 0;
    for (const auto& count : counts_) sum += count;
    std::int64_t passed = 0;
    for (std::size_t ms = 0; ms < counts_.size(); ++ms) {
      passed += counts_[ms];
      if (static_cast<double>(passed) >= share * static_cast<double>(sum)) {
        return static_cast<double>(ms);
      }
    }
    return kMax;
  }

 private:
  static constexpr std::int64_t kMax = 60'000;
  std::atomic<std::int64_t> most_ = -1;  // And when, about.
  std::atomic<std::int64_t> most_at_ = 0;
  std::vector<std::atomic<std::int64_t>> counts_ =
      std::vector<std::atomic<std::int64_t>>(static_cast<std::size_t>(kMax) + 1);
};

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
    timers_.RegisterHandler("late", [this](Transaction& tx, TimerContext& timer) {
      const std::int64_t key = timer.data().As<BCount>()->NextId;
      records_.GetOrAdd(tx, key)->NextId += 1;
      tx.AfterCommit([this, late = UnixNow() - timer.planned_time_ms()] {
        lateness_.Add(late, UnixNow());
        fired_.fetch_add(1, std::memory_order_relaxed);
      });
      return result_code::kSuccess;
    });
    timers_.RegisterHandler("wait", [](Transaction&, TimerContext&) {
      std::this_thread::sleep_for(kWait);
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

  // Each happens once a second, so often, all over the second from then on.
  void ScheduleEverySecond(std::int64_t count, std::int64_t seconds, std::int64_t begin_ms) {
    for (std::int64_t done = 0; done < count; done += kInOne) {
      CheckCode(application_->Call("schedule", [&](Transaction& tx) {
        for (std::int64_t i = done; i < std::min(done + kInOne, count); ++i) {
          const std::int64_t first = begin_ms + i * 1000 / count;
          TimerSpec spec =
              TimerSpec::Every("late", milliseconds(first - UnixNow()), milliseconds(1000),
                               AnyBean::Of(BCount{.NextId = i % kRecords}));
          spec.end_time_ms = first + (seconds - 1) * 1000 + 100;
          if (!timers_.Schedule(tx, spec).ok()) return result_code::kException;
        }
        return result_code::kSuccess;
      }));
    }
  }

  // Handlers, timers of busy keys and local tasks.
  void ScheduleWaiting(int count) {
    CheckCode(application_->Call("schedule", [&](Transaction& tx) {
      for (int i = 0; i < count; ++i) {
        TimerSpec spec = TimerSpec::After("wait", milliseconds(500));
        if (!timers_.Schedule(tx, spec).ok()) return result_code::kException;
        spec.one_by_one_key = fmt::format("key {}", i);
        for (int j = 0; j < 3; ++j) {
          if (!timers_.Schedule(tx, spec).ok()) return result_code::kException;
        }
      }
      return result_code::kSuccess;
    }));
    for (int i = 0; i < count; ++i) {
      timers_.ScheduleLocal(milliseconds(500), Task([] { std::this_thread::sleep_for(kWait); }));
    }
  }

  void ScheduleEvery(milliseconds period) {
    CheckCode(application_->Call("schedule", [&](Transaction& tx) {
      const TimerSpec spec = TimerSpec::Every("late", period, period, AnyBean::Of(BCount{}));
      return timers_.Schedule(tx, spec).ok() ? result_code::kSuccess : result_code::kException;
    }));
  }

  const Lateness& lateness() const { return lateness_; }

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
  Lateness lateness_;
  std::unique_ptr<Application> application_;
};

double PercentileOf(const std::vector<double>& values) {
  return Percentile(values, 0.99);
}

struct BurstGoals {
  double seconds = 3;
  double p99 = 2;  // Of others, beside before.
};

void Burst(Run& run, const std::string& name, ApplicationOptions options, BurstGoals goals) {
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
              .peer_value = goals.seconds,
              .ratio = seconds / goals.seconds,
              .goal = Goal::ValueAtMost(goals.seconds),
              .note = fmt::format("{} timers, scheduled in {:.1f} s", kTimers, scheduled)});
  run.Report({.name = name + "_p99",
              .value = PercentileOf(during),
              .unit = "us",
              .peer = "before the burst",
              .peer_value = PercentileOf(before),
              .ratio = PercentileOf(during) / PercentileOf(before),
              .goal = Goal::RatioAtMost(goals.p99),
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
        {.server_id = 1, .storage = {.url = "rocksdb:" + directory.Sub("db")}}, {});
}

// A process that does nothing but compute.
class Burner {
 public:
  Burner() : process_(fork()) {
    if (process_ < 0) throw std::runtime_error("fork failed");
    if (process_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Burner() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Burner(const Burner&) = delete;
  Burner& operator=(const Burner&) = delete;

 private:
  const pid_t process_;
};

void BurstBusy(Run& run) {
  const Burner burner;
  const WorkDirectory directory(run.settings().directory);
  Burst(run, "components.timer_burst_busy",
        {.server_id = 1, .storage = {.url = "rocksdb:" + directory.Sub("db")}},
        {.seconds = 3, .p99 = 4});
}

void BurstPostgres(Run& run) {
  const std::unique_ptr<DatabaseServer> server = StartDatabase();
  Burst(run, "components.timer_burst_postgres",
        {.server_id = 1, .storage = {.url = server->NewDatabase()}}, {.seconds = 10});
}

// Register and run, at once and all the time.
void Rate(Run& run) {
  const std::unique_ptr<DatabaseServer> server = StartDatabase();
  TimerBench bench({.server_id = 1, .storage = {.url = server->NewDatabase()}});
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

// A minute of it: --seconds 60.
void Punctual(Run& run) {
  const WorkDirectory directory(run.settings().directory);
  TimerBench bench({.server_id = 1, .storage = {.url = "rocksdb:" + directory.Sub("db")}});
  const auto seconds = std::max<std::int64_t>(static_cast<std::int64_t>(run.settings().seconds), 1);
  const std::int64_t begin = TimerBench::UnixNow() + 5000;
  bench.ScheduleEverySecond(kPunctual, seconds, begin);
  const double cpu = ProcessCpuSeconds();
  std::this_thread::sleep_for(milliseconds(begin + (seconds + 2) * 1000 - TimerBench::UnixNow()));
  const double cores = (ProcessCpuSeconds() - cpu) / static_cast<double>(seconds);
  const std::int64_t lost = kPunctual * seconds - bench.fired();
  run.Report({.name = "components.timer_late",
              .value = bench.lateness().Percentile(0.99),
              .unit = "ms",
              .peer = "the goal",
              .peer_value = 250,
              .ratio = bench.lateness().Percentile(0.99) / 250,
              .goal = Goal::ValueAtMost(250),
              .note = fmt::format("p99 of {} timers a second for {} s, median {} ms, most {} ms in "
                                  "second {}; {:.2f} cores",
                                  kPunctual, seconds, bench.lateness().Percentile(0.5),
                                  bench.lateness().Percentile(1),
                                  (bench.lateness().latest_at_ms() - begin) / 1000, cores)});
  run.Report({.name = "components.timer_lost",
              .value = static_cast<double>(lost),
              .unit = "timers",
              .peer = "of",
              .peer_value = static_cast<double>(kPunctual * seconds),
              .ratio = static_cast<double>(lost) / static_cast<double>(kPunctual * seconds),
              .goal = Goal::ValueAtMost(0)});
  CheckDone(bench.application().Stop());
}

void BesideWaiting(Run& run) {
  const WorkDirectory directory(run.settings().directory);
  TimerBench bench({.server_id = 1, .storage = {.url = "rocksdb:" + directory.Sub("db")}});
  bench.ScheduleEvery(milliseconds(100));
  bench.ScheduleWaiting(kWaiting);
  std::this_thread::sleep_for(kWait + milliseconds(1500));
  run.Report({.name = "components.timer_beside_waiting",
              .value = bench.lateness().Percentile(1),
              .unit = "ms",
              .peer = "the goal",
              .peer_value = 300,
              .ratio = bench.lateness().Percentile(1) / 300,
              .goal = Goal::ValueAtMost(300),
              .note = fmt::format("the latest of {} runs of a 100 ms timer", bench.fired())});
  CheckDone(bench.application().Stop());
}

constexpr Benchmark kBenchmarks[] = {
    {"components.timer_burst_rocksdb", "100,000 timers due in the same second", &BurstRocksDb},
    {"components.timer_burst_postgres", "the same", &BurstPostgres},
    {"components.timer_burst_busy", "the same on RocksDB while another process burns a core",
     &BurstBusy},
    {"components.timer_late", "30,000 timers a second that edit a record: how late", &Punctual},
    {"components.timer_beside_waiting",
     "a 100 ms timer beside 32 handlers, 32 busy keys and 32 local tasks that wait 5 s",
     &BesideWaiting},
    {"components.timer_rate", "timers that are stored and run, PostgreSQL", &Rate},
};

}  // namespace

std::span<const Benchmark> TimerBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
