// Engine: tables in memory over a storage, with serializable transactions.
//
//   zeze::Engine engine({.storage = storage.get()});
//   engine.AddTable(roles, {.cache_capacity = 100'000});
//   if (auto started = engine.Start(); !started.ok()) return Fail(started.error());
//   std::int64_t code = engine.Call("create", [&](zeze::Transaction& tx) {
//     roles.Put(tx, 1, BRole{.level = 1});
//     return zeze::result_code::kSuccess;
//   });
//   engine.Stop();   // Waits for running procedures, saves everything.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/durable_actions.h"
#include "zeze/transaction/internal/engine_parts.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record_loader.h"
#include "zeze/transaction/internal/version_clock.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace internal {
class Cache;
}  // namespace internal

struct EngineOptions {
  // Where tables are saved. Null: nothing survives the process. Outlives the engine.
  Storage* storage = nullptr;
  // Null: this process has the database to itself.
  Coherence* coherence = nullptr;
  Clock* clock = &SystemClock();

  // A crash loses at most the last period (tables that are durable at commit lose nothing).
  // Zero: only on demand.
  std::chrono::nanoseconds checkpoint_period = std::chrono::seconds(60);
  // Whether a flush waits for the disk. Without it a power failure may lose whole flushes.
  bool sync = true;

  // Runs of one procedure before it fails with kTooManyTry.
  int attempts_max = 256;
  // New transactions wait while more records than this are unsaved (and a checkpoint is started at
  // half of it).
  std::size_t dirty_records_max = 2'000'000;
  // The same in bytes, which are never counted too low. At most half of what the storage takes in
  // one flush. One procedure may write more, up to that limit: it waits until the others are saved.
  std::size_t dirty_bytes_max = std::size_t{512} << 20;
  // How long a procedure that writes waits while the storage takes nothing; then it fails with
  // kBusy, and those after it immediately, until something was saved.
  std::chrono::nanoseconds room_wait_max = std::chrono::seconds(30);
  // How long a durable procedure waits to be saved; then it returns kUnknown: its changes are
  // visible, and they will be saved unless the process ends before.
  std::chrono::nanoseconds durable_wait_max = std::chrono::seconds(60);
  // How many AfterDurable actions may wait for their flush or for their turn; beyond that, a
  // procedure that registers one fails with kBusy.
  std::size_t after_durable_max = 1'000'000;
  // The storage says that this process has lost its rights for ever; nothing is saved any more.
  // Called once, on any thread: end the process.
  std::function<void(const std::string& why)> on_fenced = nullptr;
  // For tests: called at the steps of each flush.
  std::function<void(CheckpointStep)> on_checkpoint_step = nullptr;
  // For tests of the checkers only: commits skip validation, and so corrupt data.
  bool unsafe_skip_validation = false;
};

struct EngineStatistics {
  std::uint64_t commits = 0;
  std::uint64_t read_only = 0;
  std::uint64_t rollbacks = 0;
  std::uint64_t conflicts = 0;  // Runs that had to be repeated.
  std::uint64_t accesses = 0;
  std::uint64_t loads = 0;  // Accesses that went to the storage.
  std::size_t cached_records = 0;
  std::size_t retired_values = 0;
  CheckpointStatistics checkpoint;
};

// Thread-safe after Start.
class Engine {
 public:
  explicit Engine(EngineOptions options);
  // Stops, if that was not done.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Before Start. The table must outlive the engine. Errors: an id or name taken already, a table
  // that has an engine, an engine that has started.
  Result<void> AddTable(TableBase& table, TableOptions options = {});

  // The tables that have rows in the storage, with the ids by which their records are locked.
  std::vector<StoredTable> StoredTables() const;

  // Opens the tables in the storage and starts the background threads. Once.
  Result<void> Start();

  // Refuses new procedures (kClosed) and new reads outside transactions (kShuttingDown: ReadCopy
  // and each page of a walk), waits for those under way, saves everything, runs the AfterDurable
  // actions, ends the background threads. An error says that the last checkpoint could not be
  // saved; it may be called again to try once more. Refused inside a procedure, an action or a
  // listener, for which it would wait. When it has returned, nothing uses the storage any more.
  Result<void> Stop();

  // Gives up: nothing more is saved, waiting durable transactions fail with kUnknown. For a process
  // that must not write any more.
  void Abandon();

  // Runs the body as a procedure and returns its code: 0 committed; anything else rolled back. Runs
  // it again after lost races. Blocks while records load, and, if it touched a durable table, until
  // that is saved.
  //
  // Inside the body of another procedure of this engine, on its thread, it is a nested procedure of
  // that one (Transaction::Call): it commits and is repeated with the procedure around it, and
  // `level` is that of the outermost.
  //
  // `cause` is set to a sentence that says why the engine failed the procedure (a record that
  // cannot be had, too many runs, an expired lease) or what an exception said; to nothing if the
  // code is what the body returned.
  std::int64_t Call(ProcedureName name, ProcedureBody body,
                    TransactionLevel level = TransactionLevel::kSerializable,
                    std::string* cause = nullptr);

  // The same as a transaction of its own wherever it is called. What it committed stays if the
  // procedure around it rolls back, and is done again if that one is repeated.
  std::int64_t CallApart(ProcedureName name, ProcedureBody body,
                         TransactionLevel level = TransactionLevel::kSerializable,
                         std::string* cause = nullptr);

  // The procedure whose call, on this thread, has not returned: its body, an action or a listener
  // runs. "AfterDurable" in such an action. Null if there is none.
  const char* RunningHere() const;

  // Saves everything committed so far. An error before Start.
  Result<void> CheckpointNow();
  // Starts that soon, on the checkpoint's own thread. After Start.
  void WantFlush() { checkpoint_->WantFlush(); }

  EngineStatistics statistics();

  // Global asks to lower the right of a record (coherence.h). Returns when the record, if it was
  // unsaved, is in the storage with everything it depends on.
  Result<void> Reduce(std::string_view global_key, Right to);

  // The same without waiting: the right is lowered when this returns; `saved` runs when the storage
  // has everything, immediately or on the flushing thread, so it must not wait. It never runs if
  // nothing is saved any more.
  void ReduceThen(std::string_view global_key, Right to, Task saved);

  // Every right that this process has, or has lowered and not yet saved what it did under it.
  void ForEachRight(FunctionRef<void(std::string_view global_key, Right right)> visit);

  bool running() const { return state_.load(std::memory_order_relaxed) == State::kRunning; }
  const EngineOptions& options() const { return options_; }
  TableBase& table(std::size_t index) { return *tables_[index]; }
  // By its name in the storage; null if there is none.
  TableBase* FindTable(std::string_view storage_name) const;
  Checkpoint& checkpoint() { return *checkpoint_; }
  const std::shared_ptr<internal::ContextPool>& contexts() { return contexts_; }

  // Whether it pays to ask for several records at once.
  bool FetchesInBatches() const { return options_.coherence != nullptr; }
  // Whether a read outside transactions may begin. The caller is inside already (Participant):
  // Stop changes the state first and then waits for everybody inside.
  bool ReadsAllowed() const {
    return state_.load(std::memory_order_seq_cst) == State::kRunning || StopWaitsForThisThread();
  }

  // False: nothing that this process knows may be told.
  bool LeaseValid() const {
    return options_.coherence == nullptr || options_.coherence->LeaseValid();
  }

  // Logs why the engine failed a procedure, unless the log has many such lines already.
  void ReportFailure(const char* procedure, const std::string& why);

  // For the other parts and for tables. The cache exists from the start on, like the checkpoint.
  internal::RecordLoader& loader() { return loader_; }
  internal::Cache& cache() { return *cache_; }
  internal::DurableActions& durable_actions() { return durable_actions_; }

 private:
  enum class State : std::uint8_t { kNew, kRunning, kStopping, kStopped };

  // What a procedure or an action reads while Stop waits for it.
  bool StopWaitsForThisThread() const;
  void AwaitIdle();
  void StopThreads();

  const EngineOptions options_;
  std::atomic<State> state_ = State::kNew;
  internal::VersionClock versions_;

  // Declared before the reclaimer: contexts end after it has freed what they retired.
  std::shared_ptr<internal::ContextPool> contexts_;
  internal::Reclaimer reclaimer_;
  std::vector<TableBase*> tables_;
  const internal::EngineParts parts_;
  internal::RecordLoader loader_;
  internal::DurableActions durable_actions_;
  // From the start on.
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<internal::Cache> cache_;

  std::atomic<std::int64_t> failure_second_ = 0;
  std::atomic<int> failure_lines_ = 0;
};

}  // namespace zeze
