#include "zeze/transaction/context.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/transaction/reclaimer.h"
#include "zeze/transaction/transaction.h"  // NOLINT(misc-include-cleaner): ~Context destroys one.
#include "zeze/transaction/version_clock.h"

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

void Context::CompactLog(CommitLog& log) {
  // A forest over the positions in `records`; each tree is what some transactions tied together.
  std::vector<std::uintptr_t> records;
  std::vector<std::size_t> parents;
  std::unordered_map<std::uintptr_t, std::size_t> places;
  const auto find = [&parents](std::size_t at) {
    while (parents[at] != at) at = parents[at] = parents[parents[at]];
    return at;
  };
  CommitLog compact;
  for (std::size_t i = 0; i < log.size();) {
    const std::size_t end = i + 1 + (log[i] & 1) + (log[i] >> 1);
    const std::size_t first = i + 1 + (log[i] & 1);
    std::size_t root = 0;
    for (std::size_t n = first; n < end; ++n) {
      const auto [at, added] = places.try_emplace(log[n], records.size());
      if (added) {
        records.push_back(log[n]);
        parents.push_back(at->second);
      }
      const std::size_t tree = find(at->second);
      if (n == first) root = tree;
      parents[tree] = root;
    }
    if ((log[i] & 1) != 0) {  // The ticket, tied to one of its records.
      compact.push_back(first < end ? 1 * 2 + 1 : 1);
      compact.push_back(log[i + 1]);
      if (first < end) compact.push_back(log[first]);
    }
    i = end;
  }
  std::vector<std::vector<std::uintptr_t>> trees(records.size());
  for (std::size_t at = 0; at < records.size(); ++at) trees[find(at)].push_back(records[at]);
  for (const auto& tree : trees) {
    if (tree.empty()) continue;
    compact.push_back(tree.size() * 2);
    compact.insert(compact.end(), tree.begin(), tree.end());
  }
  log = std::move(compact);
  compact_log_at = std::max(kCompactLogMin, log.size() * 2);
}

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
