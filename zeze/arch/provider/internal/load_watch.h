// LoadWatch: measures the load of this server and reports it.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "zeze/arch/provider/internal/load_level.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/base/mutex.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch::internal {

// Thread-safe.
class LoadWatch : public std::enable_shared_from_this<LoadWatch> {
 public:
  // Of the provider: its options, users and where the level goes, on a network thread.
  struct Owner {
    const ProviderOptions& options;
    std::function<Provider::OnlineCount()> online_counter = nullptr;
    std::function<void(LoadLevel level)> on_level;
  };

  LoadWatch(IoThreads& io, ThreadPool& workers, registry::RegistryAgent& agent, Owner owner);

  void Start();
  // When this returns nothing that was passed in is used any more.
  void Stop();

 private:
  using Time = std::chrono::nanoseconds;

  void Tick();
  void Probe(Time now) ZEZE_REQUIRES(mutex_);
  void Report(Time now, LoadLevel level) ZEZE_REQUIRES(mutex_);

  IoThreads& io_;
  ThreadPool& workers_;
  registry::RegistryAgent& agent_;
  const Owner owner_;
  const std::shared_ptr<OverloadMeter> meter_;  // Shared with a probe that waits.

  Mutex mutex_;
  bool stopped_ ZEZE_GUARDED_BY(mutex_) = false;
  LoadSchedule schedule_ ZEZE_GUARDED_BY(mutex_);
  Time next_probe_ ZEZE_GUARDED_BY(mutex_){0};
  Time next_count_ ZEZE_GUARDED_BY(mutex_){0};
  Provider::OnlineCount online_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::arch::internal
