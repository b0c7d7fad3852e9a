// Cost of a post plus its run, by number of keys: one key shows the batching, many keys the price
// of a scheduled job per task.

#include <cstddef>
#include <cstdint>

#include <benchmark/benchmark.h>

#include "zeze/base/task_one_by_one_by_key.h"
#include "zeze/base/testing/manual_executor.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/wait_group.h"

namespace zeze {
namespace {

void PostAndRun(benchmark::State& state) {
  constexpr std::size_t kTasks = 1024;
  const auto key_count = static_cast<std::size_t>(state.range(0));
  testing::ManualExecutor executor;
  TaskOneByOneByKey serial(executor, {});
  std::size_t ran = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kTasks; ++i) {
      if (!serial.Post(i % key_count, [&ran] { ++ran; }).ok()) state.SkipWithError("rejected");
    }
    executor.RunAll();
  }
  benchmark::DoNotOptimize(ran);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kTasks));
}
BENCHMARK(PostAndRun)->Arg(1)->Arg(32)->Arg(1024);

// The whole way, in CPU time of the process: as the messages of many players take it.
void PostToAThreadPool(benchmark::State& state) {
  constexpr std::size_t kTasks = 200;
  ThreadPool pool({.thread_count = 2});
  TaskOneByOneByKey serial(pool, {});
  WaitGroup group;
  std::size_t key = 0;
  for (auto _ : state) {
    group.Add(kTasks);
    for (std::size_t i = 0; i < kTasks; ++i) {
      key = key * 6364136223846793005 + 1442695040888963407;
      if (!serial.Post(key % 5000, [&group] { group.Done(); }).ok())
        state.SkipWithError("rejected");
    }
    group.Wait();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kTasks));
}
BENCHMARK(PostToAThreadPool)->MeasureProcessCPUTime();

}  // namespace
}  // namespace zeze
