#include "zeze/arch/provider/internal/load_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/provider/internal/load_level.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch::internal {

namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::seconds kProbePeriodMax{1};
constexpr std::chrono::seconds kCountPeriod{1};

}  // namespace

LoadWatch::LoadWatch(IoThreads& io, ThreadPool& workers, registry::RegistryAgent& agent,
                     Owner owner)
    : io_(io),
      workers_(workers),
      agent_(agent),
      owner_(std::move(owner)),
      meter_(std::make_shared<OverloadMeter>(owner_.options.overload_threshold,
                                             owner_.options.overload)),
      schedule_(owner_.options.report_period, owner_.options.propose_max_online,
                owner_.options.max_online_new) {}

void LoadWatch::Start() {
  io_.Post(Task("load of a server", [self = shared_from_this()] { self->Tick(); }));
}

void LoadWatch::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
}

void LoadWatch::Tick() {
  MutexLock lock(mutex_);
  if (stopped_) return;
  const Time now = io_.clock().Now();
  Probe(now);
  const LoadLevel level = meter_->Level(now);
  owner_.on_level(level);
  Report(now, level);
  io_.PostAfter(kTick, Task("load of a server", [self = shared_from_this()] { self->Tick(); }));
}

void LoadWatch::Probe(Time now) {
  if (now < next_probe_ || !meter_->TryBegin(now)) return;
  // Once or twice its length apart, by chance, so that servers do not probe in step.
  const Time period = std::clamp<Time>(owner_.options.overload_threshold, kTick, kProbePeriodMax);
  next_probe_ = now + period + Time(io_.Random() % static_cast<std::uint64_t>(period.count()));
  const Result<void> posted = workers_.TryPost(Task(
      "probe of the queue", [meter = meter_, clock = &io_.clock()] { meter->End(clock->Now()); }));
  if (!posted.ok()) meter_->Refused();
}

void LoadWatch::Report(Time now, LoadLevel level) {
  if (now >= next_count_) {
    next_count_ = now + kCountPeriod;
    if (owner_.online_counter) online_ = owner_.online_counter();
  }
  if (!schedule_.Due(now, level, online_.online, online_.online_new)) return;
  const ProviderOptions& options = owner_.options;
  const Zeze::Builtin::Provider::BLoad load{.Online = online_.online,
                                            .ProposeMaxOnline = options.propose_max_online,
                                            .OnlineNew = online_.online_new,
                                            .Overload = static_cast<std::int32_t>(level),
                                            .MaxOnlineNew = options.max_online_new};
  ByteWriter param;
  load.Encode(param);
  agent_.SetLoad(
      {.ip = options.direct_ip, .port = options.direct_port, .param = std::string(param.view())});
}

}  // namespace zeze::arch::internal
