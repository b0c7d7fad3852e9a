#include "zeze/transaction/internal/context.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/version_clock.h"
#include "zeze/transaction/transaction.h"  // NOLINT(misc-include-cleaner): ~Context destroys one.

namespace zeze::internal {

namespace {

std::atomic<std::uint64_t> last_pool_serial = 0;

// Gives the thread's context back when the thread ends or turns to another engine.
struct ContextKeeper {
  std::weak_ptr<ContextPool> owner;

  void Drop() {
    if (const auto alive = owner.lock()) alive->Give(last_context.context);
    owner.reset();
    last_context = {};
  }

  ~ContextKeeper() { Drop(); }
};

thread_local ContextKeeper context_keeper;

// A context that loses a race within so many commits of the last one has a rival.
constexpr std::uint64_t kOftenCommits = 1000;
constexpr std::chrono::nanoseconds kStandBackMin = std::chrono::microseconds(1);
constexpr std::chrono::nanoseconds kStandBackMax = std::chrono::microseconds(64);

}  // namespace

constinit thread_local LastContext last_context;

Context::Context(Reclaimer& reclaimer, VersionClock& clock)
    : participant(reclaimer), versions(clock) {}

Context::~Context() = default;

void Context::StandBack() {
  const std::uint64_t commits = statistics.commits.load(std::memory_order_relaxed);
  const bool often = commits - std::exchange(stand_back_commits, commits) < kOftenCommits;
  stand_back = often ? std::clamp(stand_back * 2, kStandBackMin, kStandBackMax) : kStandBackMin;
  const auto end = SystemClock().Now() + stand_back;
  while (SystemClock().Now() < end) {
  }
}

ContextPool::ContextPool(Reclaimer& reclaimer, VersionClock& versions)
    : reclaimer_(reclaimer), versions_(versions), serial_(++last_pool_serial) {}

ContextPool::~ContextPool() = default;

Context* ContextPool::Take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    all_.push_back(std::make_unique<Context>(reclaimer_, versions_));
    return all_.back().get();
  }
  Context* context = free_.back();
  free_.pop_back();
  return context;
}

void ContextPool::Give(Context* context) {
  const std::lock_guard lock(mutex_);
  free_.push_back(context);
}

void ContextPool::ForEach(const std::function<void(Context&)>& visit) {
  const std::lock_guard lock(mutex_);
  for (const auto& context : all_) visit(*context);
}

void ContextLease::Take(const std::shared_ptr<ContextPool>& pool) {
  if (cached_) {
    context_keeper.Drop();
    context_keeper.owner = pool;
    last_context = {.pool_serial = pool->serial(), .context = pool->Take(), .in_use = true};
    context_ = last_context.context;
  } else {
    context_ = pool->Take();
  }
}

}  // namespace zeze::internal
