// Checkpoint: saves what commits changed, as consistent cuts.
//
// Commits append what they wrote (and what they read unsaved) to logs and go on. The checkpoint
// advances the epoch, waits until no commit of the old one is left, and then owns a cut: the logs
// say what changed, and because values are immutable it encodes and writes them while new commits
// run.
//
// Two modes. Whole cut: everything of the cut in one atomic flush. Groups (some table is durable at
// commit, or records are shared with other servers): transactions that touched the same unsaved
// records form groups, and a waiting one flushes its own group only.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "zeze/base/asymmetric_fence.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/trouble.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/dependency_graph.h"
#include "zeze/transaction/internal/durable_actions.h"
#include "zeze/transaction/internal/engine_parts.h"
#include "zeze/transaction/internal/flush_batch.h"

namespace zeze {

// The steps of a flush, in order. Tests stop the process at each.
enum class CheckpointStep : std::uint8_t {
  kEpochAdvanced,
  kLogsDrained,
  kEncoded,
  kBeforeFlush,
  kAfterFlush,
  kMarkedClean,
};

struct CheckpointStatistics {
  std::uint64_t flushes = 0;
  std::uint64_t failed_flushes = 0;
  std::uint64_t records_flushed = 0;
  std::uint64_t bytes_flushed = 0;
  std::uint64_t dirty_records = 0;  // About.
  std::uint64_t dirty_bytes = 0;    // At most, with what running procedures may add.
  std::chrono::nanoseconds last_duration{0};
  std::chrono::nanoseconds running_for{0};         // Of a flush that is under way.
  std::chrono::nanoseconds since_last_success{0};  // The age of what a crash would bring back.
  std::chrono::nanoseconds failing_for{0};         // Of a storage that takes nothing.
};

// Thread-safe. One flush at a time. The thread "checkpoint" flushes when the period is over, when
// much is unsaved, and when a procedure or Global waits; FlushAll flushes on the caller's thread.
class Checkpoint {
 public:
  struct Options {
    Storage* storage = nullptr;  // Null: nothing is ever saved.
    bool groups = false;
    // As in EngineOptions.
    bool sync = true;
    std::chrono::nanoseconds period{0};
    std::uint64_t dirty_records_max = ~std::uint64_t{0};
    std::uint64_t dirty_bytes_max = ~std::uint64_t{0};
    std::chrono::nanoseconds room_wait_max = std::chrono::seconds(30);
    std::chrono::nanoseconds durable_wait_max = std::chrono::seconds(60);
    // Before the second try after a failure; twice as long before each further one.
    std::chrono::nanoseconds retry_delay = std::chrono::milliseconds(100);
    std::chrono::nanoseconds retry_delay_max = std::chrono::seconds(5);
    std::function<void(CheckpointStep)> on_step = nullptr;
    // The storage has taken everything: records can be evicted.
    std::function<void()> on_saved = nullptr;
    // The storage refuses this process for ever, and nothing is saved any more.
    std::function<void(const std::string& why)> on_fenced = nullptr;
  };

  Checkpoint(const internal::EngineParts& parts, internal::DurableActions& actions,
             Options options);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  // Begins and ends the checkpoint's own thread. When that itself calls Stop, in on_fenced, another
  // thread must call it once more.
  void Start();
  void Stop();

  std::uint64_t epoch() const { return epoch_.load(std::memory_order_seq_cst); }

  // Announces the epoch of a commit before it relies on it: AdvanceEpoch in between either sees the
  // announcement and waits until the context says 0 again, or is seen here (rule 10).
  std::uint64_t Announce(internal::Context& context) const {
    std::uint64_t epoch = this->epoch();
    while (true) {
      context.epoch.store(epoch, std::memory_order_release);
      LightFence();
      const std::uint64_t now = this->epoch();
      if (now == epoch) return epoch;
      epoch = now;
    }
  }
  bool groups() const { return options_.groups; }

  // Saves everything committed before the call. Returns the storage's error if it cannot now;
  // nothing is lost then, a later flush takes it along. Tries immediately, whatever failed before.
  Result<void> FlushAll();

  // Blocks until the ticket's group is saved, which the checkpoint's own thread does, again and
  // again with growing pauses while the storage is unavailable. False: it is not saved after
  // durable_wait_max, or never will be (Abandon). The ticket belongs to the checkpoint then, and
  // what `leftover` returns runs after its actions, if it is saved later.
  bool Await(internal::DurabilityTicket& ticket, FunctionRef<std::vector<Task>()> leftover);

  // Starts a flush soon, on the checkpoint's own thread: of everything, or of the groups that
  // somebody waits for.
  void WantFlush();
  void WantUrgent();

  // Returns after the next flush, or at that moment.
  void AwaitFlush(std::chrono::nanoseconds until);

  // The place of a commit among those whose AfterDurable actions run in turn. Taken before anything
  // of the commit can be seen, so that a transaction that depends on another comes after it.
  std::uint64_t NextActionOrder() { return action_order_.fetch_add(1, std::memory_order_relaxed); }

  // Moves the logs into the graph without saving, so that they stay short.
  void Drain();

  // All waiters return; nothing is saved any more.
  void Abandon();

  CheckpointStatistics statistics() const;

  // Every log entry of an epoch up to this one has been read.
  std::uint64_t drained_epoch() const { return drained_epoch_.load(std::memory_order_acquire); }

  // Odd while the storage is being written; changes with every write. What was read from the
  // storage is still there if this was even before and is the same after.
  std::uint64_t write_serial() const { return write_serial_.load(std::memory_order_seq_cst); }

  // --- room: what is unsaved, and what commits under way may add, fits into one flush ---

  // True while so much is unsaved that commits should wait.
  bool overloaded() const { return overloaded_.load(std::memory_order_relaxed); }
  void AddDirty(std::uint64_t count);

  // One procedure cannot write more.
  std::uint64_t flush_bytes_max() const { return bytes_max_; }
  // A context keeps at most so much between procedures.
  std::int64_t room_kept() const { return 2 * room_step_; }
  // Sees to it that the context has room for so many bytes. False: not now.
  bool TakeRoom(internal::Context& context, std::uint64_t bytes);
  // Blocks until it has. Errors: kOverloaded, with what is in the way.
  Result<void> AwaitRoom(internal::Context& context, std::uint64_t bytes);
  // Takes back what it has too much.
  void GiveRoom(internal::Context& context);

 private:
  static constexpr std::chrono::nanoseconds kNoTrouble = std::chrono::nanoseconds::min();

  enum class Scope : std::uint8_t { kNothing, kUrgent, kEverything };

  struct Done {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
    bool written = false;  // The storage has said yes to something.
    internal::DurabilityTicket* tickets = nullptr;
  };

  void Loop();
  // When the next try is due, if the storage failed the last one.
  std::chrono::nanoseconds next_try() const;
  // Saves the groups that somebody waits for, unless another flush has done so meanwhile.
  Result<void> FlushUrgent();
  Result<void> RunExclusive(Scope scope) ZEZE_REQUIRES(mutex_);
  void WakeForUrgent() ZEZE_REQUIRES(mutex_);
  void Complete(internal::DurabilityTicket* tickets, std::vector<Task>& then);
  void NoteFailure(const Error& error) ZEZE_REQUIRES(mutex_);
  bool GrantRoom(internal::Context& context, std::uint64_t bytes, bool large) ZEZE_REQUIRES(mutex_);
  Error NoRoom(std::chrono::nanoseconds waited) ZEZE_REQUIRES(mutex_);
  // How full it is, told to those who commit.
  void Judge();
  Result<Done> Run(Scope scope);
  std::uint64_t AdvanceEpoch();
  void DrainLogs(std::uint64_t epoch);
  Result<void> Write(std::span<const StorageWrite> writes);
  Result<void> FlushWrites(std::span<const StorageWrite> writes);
  void Step(CheckpointStep step) const;

  const internal::EngineParts parts_;
  internal::DurableActions& actions_;
  const Options options_;
  const std::uint64_t bytes_max_;        // What the storage takes at once.
  const std::uint64_t dirty_bytes_max_;  // Above it commits wait.
  const std::int64_t room_step_;

  alignas(64) std::atomic<std::uint64_t> epoch_ = 1;
  alignas(64) std::atomic<bool> overloaded_ = false;
  std::atomic<std::uint64_t> drained_epoch_ = 0;
  std::atomic<std::uint64_t> write_serial_ = 0;
  std::atomic<std::uint64_t> action_order_ = 1;
  alignas(64) std::atomic<std::int64_t> dirty_ = 0;
  // What unsaved rows take in a flush, and the room of all contexts: never above bytes_max_.
  std::atomic<std::int64_t> bytes_ = 0;
  std::atomic<int> large_waiting_ = 0;
  std::atomic<bool> abandoned_ = false;
  std::atomic<bool> fenced_ = false;

  mutable Mutex mutex_;
  CondVar changed_;
  bool running_ ZEZE_GUARDED_BY(mutex_) = false;
  bool urgent_ ZEZE_GUARDED_BY(mutex_) = false;  // Somebody waits for a flush that begins now.
  std::chrono::nanoseconds running_since_ ZEZE_GUARDED_BY(mutex_){0};
  CheckpointStatistics statistics_ ZEZE_GUARDED_BY(mutex_);
  std::chrono::nanoseconds last_success_ ZEZE_GUARDED_BY(mutex_);
  Trouble trouble_ ZEZE_GUARDED_BY(mutex_);
  bool refusing_ ZEZE_GUARDED_BY(mutex_) = false;  // Commits, because there is no room for long.

  // Owned by whoever set running_.
  internal::DependencyGraph graph_;
  internal::FlushBatch batch_;

  // Taken after mutex_, if both are.
  Mutex wake_mutex_;
  CondVar wake_;
  bool stop_wanted_ ZEZE_GUARDED_BY(wake_mutex_) = false;
  bool flush_wanted_ ZEZE_GUARDED_BY(wake_mutex_) = false;
  bool urgent_wanted_ ZEZE_GUARDED_BY(wake_mutex_) = false;
  std::thread thread_;
};

}  // namespace zeze
