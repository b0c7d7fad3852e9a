// What applications use every day: ids and timers. Timers in databases are in timer.cc.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.h"
#include "bench/fixtures.h"
#include "bench/measure.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/timer_wheel.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/transaction/engine.h"

namespace zeze::bench {
namespace {

Figure RateFigure(std::string name, const Comparison& c, std::string unit, std::string peer,
                  double ratio) {
  return {.name = std::move(name),
          .value = c.medians[0].per_second,
          .unit = std::move(unit),
          .peer = std::move(peer),
          .peer_value = c.medians[1].per_second,
          .ratio = c.RateRatio(0, 1),
          .goal = Goal::RatioAtLeast(ratio),
          .note = c.Note(0, 1)};
}

template <typename Body>
Work Transactions(Engine& engine, const Body& body) {
  return [&engine, body](int, const std::atomic<bool>& stop) {
    std::uint64_t count = 0;
    for (; !stop.load(std::memory_order_relaxed); ++count) CheckCode(engine.Call("bench", body));
    return count;
  };
}

void AutoKeyIds(Run& run) {
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  ThreadPool critical({.name = "critical", .thread_count = 1});
  AutoKeys keys;
  Engine engine({.storage = storage.get(), .checkpoint_period = std::chrono::nanoseconds(0)});
  for (TableBase* table : keys.Tables()) CheckDone(engine.AddTable(*table));
  CheckDone(engine.Start());
  CheckDone(keys.Attach(engine, 1, &critical));
  AutoKey& key = keys.GetOrAdd("bench");
  const Work ids = Transactions(engine, [&key](Transaction& tx) {
    KeepValue(key.NextId(tx));
    return result_code::kSuccess;
  });
  const Work nothing = Transactions(engine, [](Transaction&) { return result_code::kSuccess; });
  const Comparison c = Compare({{1, ids}, {1, nothing}}, run.settings().seconds);
  run.Report(RateFigure("components.auto_key", c, "ids/s", "empty transaction", 0.7));
  critical.Shutdown(ThreadPool::Pending::kRun);
}

constexpr std::int64_t kTimers = 1'000'000;
constexpr std::int64_t kDelayTicks = 60'000;

// Ids of timers by their deadlines; whoever cancels one marks its id.
class HeapPeer {
 public:
  void Add(std::uint64_t deadline, std::uint64_t id) { heap_.push({deadline, id}); }
  template <typename Fire>
  void Advance(std::uint64_t now, Fire&& fire) {
    while (!heap_.empty() && heap_.top().first <= now) {
      const auto [deadline, id] = heap_.top();
      heap_.pop();
      fire(id, deadline);
    }
  }

 private:
  using Entry = std::pair<std::uint64_t, std::uint64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

// Seconds for each timer that is added and fired.
template <typename Timers>
double FillAndFire(Timers& timers, std::uint64_t begin) {
  FastRandom random(7);
  const double start = WallSeconds();
  for (std::int64_t i = 0; i < kTimers; ++i) {
    timers.Add(begin + 1 + static_cast<std::uint64_t>(random.Below(kDelayTicks)),
               static_cast<std::uint64_t>(i));
  }
  std::uint64_t sum = 0;
  for (std::int64_t tick = 0; tick <= kDelayTicks; ++tick) {
    timers.Advance(begin + static_cast<std::uint64_t>(tick),
                   [&sum](std::uint64_t id, std::uint64_t) { sum += id; });
  }
  KeepValue(sum);
  return (WallSeconds() - start) / kTimers;
}

// The same with 1,000,000 that are always there: what fires is armed again.
template <typename Timers>
double FireAndRearm(Timers& timers, std::uint64_t begin) {
  FastRandom random(9);
  for (std::int64_t i = 0; i < kTimers; ++i) {
    timers.Add(begin + 1 + static_cast<std::uint64_t>(random.Below(kDelayTicks)),
               static_cast<std::uint64_t>(i));
  }
  std::uint64_t fired = 0;
  const double start = WallSeconds();
  for (std::uint64_t tick = 1; tick <= kDelayTicks / 2; ++tick) {
    timers.Advance(begin + tick, [&](std::uint64_t id, std::uint64_t deadline) {
      ++fired;
      timers.Add(deadline + 1 + static_cast<std::uint64_t>(random.Below(kDelayTicks)), id);
    });
  }
  return (WallSeconds() - start) / static_cast<double>(fired);
}

template <typename Ours, typename Theirs>
void ReportTimers(Run& run, std::string name, double goal, const Ours& ours, const Theirs& theirs) {
  std::vector<double> our_rates;
  std::vector<double> their_rates;
  const double end = WallSeconds() + run.settings().seconds;
  do {
    our_rates.push_back(1 / ours());
    their_rates.push_back(1 / theirs());
  } while (WallSeconds() < end || our_rates.size() < 3);
  run.Report({.name = std::move(name),
              .value = Median(our_rates),
              .unit = "timers/s",
              .peer = "std::priority_queue",
              .peer_value = Median(their_rates),
              .ratio = MedianRatio(our_rates, their_rates),
              .goal = Goal::RatioAtLeast(goal)});
}

void Wheel(Run& run) {
  ReportTimers(
      run, "components.wheel", 4,
      [] {
        TimerWheel<std::uint64_t> wheel(1000);
        return FillAndFire(wheel, 1000);
      },
      [] {
        HeapPeer heap;
        return FillAndFire(heap, 1000);
      });
  ReportTimers(
      run, "components.wheel_steady", 3,
      [] {
        TimerWheel<std::uint64_t> wheel(1000);
        return FireAndRearm(wheel, 1000);
      },
      [] {
        HeapPeer heap;
        return FireAndRearm(heap, 1000);
      });
}

constexpr Benchmark kBenchmarks[] = {
    {"components.auto_key", "ids in transactions that do nothing else", &AutoKeyIds},
    {"components.wheel", "1,000,000 timers in memory: add and fire; fire and arm again", &Wheel},
};

}  // namespace

std::span<const Benchmark> ComponentBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
