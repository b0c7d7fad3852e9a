#include "zeze/transaction/context.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "zeze/transaction/reclaimer.h"
#include "zeze/transaction/transaction.h"

namespace zeze::internal {

namespace {

// The context this thread used last, so that the next call of the same engine finds it at once.
struct ThreadCache {
  std::weak_ptr<ContextPool> owner;
  ContextPool* pool = nullptr;
  Context* context = nullptr;
  bool in_use = false;

  void Drop() {
    if (context != nullptr) {
      if (const auto alive = owner.lock()) alive->Give(context);
    }
    context = nullptr;
    pool = nullptr;
  }

  ~ThreadCache() { Drop(); }
};

thread_local ThreadCache thread_cache;

}  // namespace

Context::Context(Reclaimer& reclaimer, std::atomic<std::uint64_t>& versions)
    : participant(reclaimer), version_source(versions) {}

Context::~Context() = default;

ContextPool::ContextPool(Reclaimer& reclaimer, std::atomic<std::uint64_t>& versions)
    : reclaimer_(reclaimer), versions_(versions) {}

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

ContextLease::ContextLease(const std::shared_ptr<ContextPool>& pool) : pool_(pool.get()) {
  ThreadCache& cache = thread_cache;
  cached_ = !cache.in_use;
  if (!cached_) {
    context_ = pool_->Take();
    return;
  }
  // A new pool at the address of one that ended is told apart by the weak pointer's owner.
  if (cache.pool != pool_ || cache.owner.expired()) [[unlikely]] {
    cache.Drop();
    cache.owner = pool;
    cache.pool = pool_;
    cache.context = pool_->Take();
  }
  cache.in_use = true;
  context_ = cache.context;
}

ContextLease::~ContextLease() {
  if (cached_) {
    thread_cache.in_use = false;
  } else {
    pool_->Give(context_);
  }
}

}  // namespace zeze::internal
