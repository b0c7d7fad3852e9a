#include "zeze/net/io_threads.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/usage_error.h"
#include "zeze/net/internal/io_loop.h"

namespace zeze {

struct IoThreads::Impl {
  Clock* clock = nullptr;
  std::vector<std::unique_ptr<internal::IoLoop>> loops;
  std::atomic<std::size_t> next = 0;
  Mutex mutex;
  std::function<std::uint64_t()> random ZEZE_GUARDED_BY(mutex);
};

IoThreads::IoThreads(Options options) : impl_(std::make_unique<Impl>()) {
  ZEZE_REQUIRE(options.thread_count > 0, "IoThreads::Options::thread_count is 0: set at least 1");
  ZEZE_REQUIRE(options.read_buffer_bytes >= 4096,
               "IoThreads::Options::read_buffer_bytes is less than 4096: set at least that");
  impl_->clock = options.clock;
  {
    MutexLock lock(impl_->mutex);
    impl_->random = std::move(options.random);
    if (!impl_->random) impl_->random = std::mt19937_64(std::random_device()());
  }
  for (std::size_t i = 0; i < options.thread_count; ++i) {
    impl_->loops.push_back(std::make_unique<internal::IoLoop>(
        options.name + "-" + std::to_string(i + 1), *options.clock, options.read_buffer_bytes));
  }
  std::size_t started = 0;
  try {
    for (; started < impl_->loops.size(); ++started) impl_->loops[started]->Start();
  } catch (const std::system_error& error) {
    Stop();
    throw std::system_error(error.code(), "only " + std::to_string(started) + " of " +
                                              std::to_string(options.thread_count) +
                                              " io threads " + options.name + " could be started");
  }
}

IoThreads::~IoThreads() {
  Stop();
}

void IoThreads::Stop() {
  for (const auto& loop : impl_->loops) loop->Stop();
}

void IoThreads::Post(Task task) {
  impl_->loops.front()->Post(std::move(task));
}

void IoThreads::PostAfter(std::chrono::nanoseconds delay, Task task) {
  internal::IoLoop& loop = *impl_->loops.front();
  const std::chrono::nanoseconds deadline = loop.Now() + delay;
  loop.Post([&loop, deadline, delayed = std::make_unique<Task>(std::move(task))] {
    loop.At(deadline, std::move(*delayed));
  });
}

bool IoThreads::IsIoThread() {
  return internal::IoLoop::IsAnyCurrent();
}

Clock& IoThreads::clock() const {
  return *impl_->clock;
}

std::size_t IoThreads::thread_count() const {
  return impl_->loops.size();
}

internal::IoLoop& IoThreads::Loop(std::size_t index) const {
  return *impl_->loops[index];
}

internal::IoLoop& IoThreads::NextLoop() {
  return *impl_->loops[impl_->next.fetch_add(1) % impl_->loops.size()];
}

std::uint64_t IoThreads::Random() {
  MutexLock lock(impl_->mutex);
  return impl_->random();
}

}  // namespace zeze
