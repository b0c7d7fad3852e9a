// Context: what one running transaction needs and keeps for the next one: its place among the
// readers, its commit slot, its log, its version numbers and its scratch memory.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "zeze/transaction/coherence.h"
#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/pins.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/version_clock.h"

namespace zeze {
class Transaction;
class Engine;
}  // namespace zeze

namespace zeze::internal {

struct ContextStatistics {
  std::atomic<std::uint64_t> commits = 0;
  std::atomic<std::uint64_t> read_only = 0;
  std::atomic<std::uint64_t> rollbacks = 0;
  std::atomic<std::uint64_t> conflicts = 0;
  std::atomic<std::uint64_t> accesses = 0;
  std::atomic<std::uint64_t> loads = 0;

  // Only the owner of the context counts, so no read-modify-write is needed.
  static void Count(std::atomic<std::uint64_t>& counter, std::uint64_t n = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

struct alignas(64) Context {
  Context(Reclaimer& reclaimer, VersionClock& versions);
  ~Context();

  // Unique in the process, and not below the floor of the moment. Of a change to a record: called
  // after its lock, and those of everything that changes with it, were taken.
  std::uint64_t NextVersion() {
    if (next_version == end_version || next_version < versions.floor()) [[unlikely]] {
      next_version = versions.Draw();
      end_version = next_version + VersionClock::kBlock;
    }
    return next_version++;
  }
  // Of a record whose value is what the storage has.
  std::uint64_t NextLoadVersion() { return NextVersion() | VersionClock::kLoad; }

  // Waits some microseconds after a lost race. Whoever won has the record in its core's cache and
  // is several times faster as long as nobody fetches it away, so the more races are lost, the
  // longer the turns should be.
  void StandBack();

  // The epoch of the commit under way, 0 outside. Published before validation (rule 10).
  alignas(64) std::atomic<std::uint64_t> epoch = 0;
  ContextStatistics statistics;

  alignas(64) Participant participant;
  VersionClock& versions;
  std::uint64_t next_version = 0;
  std::uint64_t end_version = 0;
  std::chrono::nanoseconds stand_back{0};
  std::uint64_t stand_back_commits = 0;  // Commits before the last time.
  // One for each parity of the epoch: while the checkpoint drains that of the last epoch, commits
  // of the current one append to the other.
  CommitLog logs[2];
  std::uint64_t dirtied = 0;
  // Bytes that commits of this context may make unsaved: taken from the checkpoint, before it.
  std::int64_t room = 0;
  bool room_granted = false;  // To the procedure that runs, after it had waited.
  FreshRights fresh;
  std::unique_ptr<Transaction> transaction;
  // What the transaction, or whoever else has the context, must find in the cache until it ends.
  Pins pins;
};

// All contexts of an engine. A thread keeps the one it used last; a thread that ends gives it back.
class ContextPool : public std::enable_shared_from_this<ContextPool> {
 public:
  ContextPool(Reclaimer& reclaimer, VersionClock& versions);
  ~ContextPool();

  Context* Take();
  void Give(Context* context);

  // Unlike the address, never that of another pool.
  std::uint64_t serial() const { return serial_; }

  // Every context ever made, taken or not. They are never removed before the pool ends.
  void ForEach(const std::function<void(Context&)>& visit);

 private:
  Reclaimer& reclaimer_;
  VersionClock& versions_;
  const std::uint64_t serial_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> all_;
  std::vector<Context*> free_;
};

// The context a thread used last, so that its next call of the same engine finds it at once.
struct LastContext {
  std::uint64_t pool_serial = 0;
  Context* context = nullptr;
  bool in_use = false;
};
extern constinit thread_local LastContext last_context;

// Borrows a context of the pool for the calling thread.
class ContextLease {
 public:
  explicit ContextLease(const std::shared_ptr<ContextPool>& pool) : pool_(pool.get()) {
    LastContext& last = last_context;
    cached_ = !last.in_use;
    if (cached_ && last.pool_serial == pool->serial()) [[likely]] {
      last.in_use = true;
      context_ = last.context;
    } else {
      Take(pool);
    }
  }
  ~ContextLease() {
    if (cached_) {
      last_context.in_use = false;
    } else {
      pool_->Give(context_);
    }
  }
  ContextLease(const ContextLease&) = delete;
  ContextLease& operator=(const ContextLease&) = delete;

  Context& operator*() const { return *context_; }
  Context* operator->() const { return context_; }

 private:
  void Take(const std::shared_ptr<ContextPool>& pool);

  ContextPool* pool_;
  Context* context_ = nullptr;
  bool cached_ = false;
};

// Reads records outside transactions: what is found stays valid, and pinned, until the end.
class ReadScope {
 public:
  explicit ReadScope(Context& context) : context_(context) { context_.participant.Enter(); }
  ~ReadScope() {
    context_.pins.Clear();
    context_.participant.Leave();
  }
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;

 private:
  Context& context_;
};

}  // namespace zeze::internal
