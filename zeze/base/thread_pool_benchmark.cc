// Cost of a task that is posted and awaited in groups of 200, in CPU time of the whole process:
// what the thread pool adds to each procedure that a server runs.

#include <cstddef>
#include <cstdint>

#include <benchmark/benchmark.h>

#include "zeze/base/executor.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/wait_group.h"

namespace zeze {
namespace {

constexpr std::size_t kGroup = 200;

// About as long as a small transaction.
void Work(std::int64_t nanoseconds) {
  for (std::int64_t i = 0; i < nanoseconds; ++i) benchmark::DoNotOptimize(i);
}

void PostGroupAndWait(benchmark::State& state) {
  ThreadPool pool({.thread_count = static_cast<std::size_t>(state.range(0))});
  WaitGroup group;
  for (auto _ : state) {
    group.Add(kGroup);
    for (std::size_t i = 0; i < kGroup; ++i) {
      pool.Post([&group, work = state.range(1)] {
        Work(work);
        group.Done();
      });
    }
    group.Wait();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kGroup));
}
BENCHMARK(PostGroupAndWait)
    ->ArgNames({"threads", "work"})
    ->ArgsProduct({{1, 2, 16}, {0, 200}})
    ->MeasureProcessCPUTime();

void WorkAlone(benchmark::State& state) {
  for (auto _ : state) Work(200);
}
BENCHMARK(WorkAlone)->MeasureProcessCPUTime();

void PostOneAndWait(benchmark::State& state) {
  ThreadPool pool({.thread_count = 2});
  for (auto _ : state) {
    WaitGroup group(1);
    pool.Post([&group] { group.Done(); });
    group.Wait();
  }
}
BENCHMARK(PostOneAndWait)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace zeze
