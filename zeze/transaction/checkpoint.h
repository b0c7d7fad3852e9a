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
#include <vector>

#include "zeze/base/asymmetric_fence.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/context.h"

namespace zeze {

class Engine;
class TableBase;

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
  std::chrono::nanoseconds last_duration{0};
  std::chrono::nanoseconds running_for{0};         // Of a flush that is under way.
  std::chrono::nanoseconds since_last_success{0};  // The age of what a crash would bring back.
};

// Thread-safe. One flush at a time: whoever needs one and finds none running does it itself.
class Checkpoint {
 public:
  struct Options {
    Storage* storage = nullptr;  // Null: nothing is ever saved.
    Clock* clock = nullptr;
    bool groups = false;
    bool sync = true;
    std::chrono::nanoseconds retry_delay = std::chrono::milliseconds(100);
    std::function<void(CheckpointStep)> on_step = nullptr;
  };

  Checkpoint(Engine& engine, Options options);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

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
  // nothing is lost then, a later flush takes it along.
  Result<void> FlushAll();

  // Blocks until the ticket's group is saved; flushes it itself if nobody else is flushing.
  // Retries while the storage is unavailable. False: the engine gave up (Abandon) before.
  bool Await(internal::DurabilityTicket& ticket);

  // Saves the groups that somebody waits for; keeps trying while the storage is unavailable.
  void FlushUrgent();

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

  // True while so much is unsaved that new transactions should wait.
  bool overloaded() const { return overloaded_.load(std::memory_order_relaxed); }
  void AddDirty(std::uint64_t count);
  // Blocks while overloaded.
  void AwaitCapacity();

 private:
  friend class Engine;

  // A record that is unsaved, in a forest of groups (union by size) and in its group's ring.
  struct Node {
    std::uint32_t parent;
    std::uint32_t next;
    std::uint32_t size;
    internal::Record* record;
    internal::DurabilityTicket* tickets;
  };

  // A record of the flush with its bytes in the arena.
  struct Item {
    internal::Record* record;
    TableBase* table;
    std::size_t key_begin, key_size, value_size;  // The value follows the key.
    bool remove;
    bool stored;  // False for memory tables: part of the group, not of the storage.
  };

  // What orders writes: table, then key; most keys differ in their first eight bytes.
  struct Order {
    std::uint64_t prefix;
    std::uint32_t item;
    std::uint16_t table;
  };

  enum class Scope : std::uint8_t { kNothing, kUrgent, kEverything };

  struct Done {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
    internal::DurabilityTicket* tickets = nullptr;
  };

  Result<void> RunExclusive(Scope scope) ZEZE_REQUIRES(mutex_);
  Result<Done> Run(Scope scope);
  std::uint64_t AdvanceEpoch();
  void DrainLogs(std::uint64_t epoch);
  void DrainLog(internal::CommitLog& log);
  std::uint32_t NodeOf(internal::Record* record);
  std::uint32_t Find(std::uint32_t node);
  std::uint32_t Union(std::uint32_t a, std::uint32_t b);
  void Attach(std::uint32_t root, internal::DurabilityTicket* ticket);
  void ChooseMembers(Scope scope);
  void Gather(std::uint64_t cut);
  void GatherRecord(internal::Participant& by, internal::Record* record, std::uint64_t cut);
  void SortWrites();
  Result<void> Write();
  Result<void> FlushWrites();
  void MarkClean(internal::Participant& by, std::uint64_t cut);
  internal::DurabilityTicket* ForgetMembers();
  void Step(CheckpointStep step) const;

  Engine& engine_;
  const Options options_;

  alignas(64) std::atomic<std::uint64_t> epoch_ = 1;
  alignas(64) std::atomic<bool> overloaded_ = false;
  std::atomic<std::uint64_t> drained_epoch_ = 0;
  std::atomic<std::uint64_t> write_serial_ = 0;
  std::atomic<std::uint64_t> action_order_ = 1;
  std::atomic<std::int64_t> dirty_ = 0;
  std::atomic<std::uint64_t> bytes_per_record_ = 128;
  std::atomic<bool> abandoned_ = false;
  std::atomic<bool> fenced_ = false;

  mutable Mutex mutex_;
  CondVar changed_;
  bool running_ ZEZE_GUARDED_BY(mutex_) = false;
  std::chrono::nanoseconds running_since_ ZEZE_GUARDED_BY(mutex_){0};
  CheckpointStatistics statistics_ ZEZE_GUARDED_BY(mutex_);
  std::chrono::nanoseconds last_success_ ZEZE_GUARDED_BY(mutex_);

  // Owned by whoever set running_.
  std::vector<Node> nodes_;  // [0] is unused.
  std::vector<std::uint32_t> free_nodes_;
  std::vector<std::uint32_t> urgent_nodes_;              // Whose groups somebody waits for.
  internal::DurabilityTicket* loose_tickets_ = nullptr;  // Whole-cut mode.
  std::vector<std::uint32_t> members_;
  std::vector<Item> items_;
  std::vector<Order> order_;
  ByteWriter arena_;
  std::vector<StorageWrite> writes_;
};

}  // namespace zeze
