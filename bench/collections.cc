// Linked maps: one transaction for each put and get, on one thread.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>

#include "Zeze/Builtin/Game/Rank.h"
#include "bench/bench.h"
#include "bench/fixtures.h"
#include "bench/measure.h"
#include "zeze/app/module.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/transaction/engine.h"

namespace zeze::bench {
namespace {

using Zeze::Builtin::Game::Rank::BValueLong;

constexpr std::int64_t kEntries = 1'000'000;

struct Rates {
  double put = 0;
  double get = 0;
};

std::vector<std::string> Ids() {
  std::vector<std::string> ids;
  for (std::int64_t i = 0; i < kEntries; ++i) ids.push_back(fmt::format("id{}", i));
  return ids;
}

// In CPU time of this thread: other processes share the machine.
template <typename Each>
double RateOf(const std::vector<std::string>& ids, const Each& each) {
  const double start = ThreadCpuSeconds();
  for (const std::string& id : ids) each(id);
  return static_cast<double>(ids.size()) / (ThreadCpuSeconds() - start);
}

Rates Ours(const std::vector<std::string>& ids, const std::vector<std::string>& shuffled) {
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  Queues queues;
  DelayRemove delay_remove(queues);
  LinkedMaps maps(delay_remove);
  Engine engine({.storage = storage.get(),
                 .checkpoint_period = std::chrono::nanoseconds(0),
                 .dirty_records_max = 100'000'000});
  for (Module* module : {static_cast<Module*>(&queues), static_cast<Module*>(&delay_remove),
                         static_cast<Module*>(&maps)}) {
    for (TableBase* table : module->Tables()) {
      CheckDone(engine.AddTable(*table, {.cache_capacity = 0}));
    }
  }
  CheckDone(engine.Start());
  CheckDone(delay_remove.Open(engine, 1));
  LinkedMap<BValueLong> map = maps.Open<BValueLong>("bench").value();
  Rates rates;
  rates.put = RateOf(ids, [&](const std::string& id) {
    CheckCode(engine.Call("put", [&](Transaction& tx) {
      map.Put(tx, id, {.Value = 7});
      return result_code::kSuccess;
    }));
  });
  rates.get = RateOf(shuffled, [&](const std::string& id) {
    CheckCode(engine.Call("get", [&](Transaction& tx) {
      KeepValue(map.Get(tx, id)->Value);
      return result_code::kSuccess;
    }));
  });
  engine.Abandon();
  return rates;
}

Rates Bare(const std::vector<std::string>& ids, const std::vector<std::string>& shuffled) {
  std::unordered_map<std::string, std::int64_t> map;
  Rates rates;
  rates.put = RateOf(ids, [&](const std::string& id) { map[id] = 7; });
  rates.get = RateOf(shuffled, [&](const std::string& id) { KeepValue(map.at(id)); });
  return rates;
}

void LinkedMapRates(Run& run) {
  const std::vector<std::string> ids = Ids();
  std::vector<std::string> shuffled = ids;
  FastRandom random(5);
  for (std::int64_t i = kEntries - 1; i > 0; --i) {
    std::swap(shuffled[static_cast<std::size_t>(i)],
              shuffled[static_cast<std::size_t>(random.Below(i + 1))]);
  }
  std::vector<Rates> ours;
  std::vector<Rates> bare;
  const double end = WallSeconds() + run.settings().seconds;
  do {
    ours.push_back(Ours(ids, shuffled));
    bare.push_back(Bare(ids, shuffled));
  } while (WallSeconds() < end);
  const auto report = [&](std::string name, double Rates::* rate) {
    std::vector<double> our_rates;
    std::vector<double> bare_rates;
    for (const Rates& rates : ours) our_rates.push_back(rates.*rate);
    for (const Rates& rates : bare) bare_rates.push_back(rates.*rate);
    run.Report({.name = std::move(name),
                .value = Median(our_rates),
                .unit = "/s",
                .peer = "std::unordered_map",
                .peer_value = Median(bare_rates),
                .ratio = MedianRatio(our_rates, bare_rates),
                .goal = Goal::ValueAtLeast(300'000),
                .note = "of CPU time; 1,000,000 entries, a transaction for each"});
  };
  report("components.linked_map_put", &Rates::put);
  report("components.linked_map_get", &Rates::get);
}

constexpr Benchmark kBenchmarks[] = {
    {"components.linked_map", "put and get of a map with 1,000,000 entries", &LinkedMapRates},
};

}  // namespace

std::span<const Benchmark> CollectionBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
