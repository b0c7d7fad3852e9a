// Commit: the end of a run: rules 8 to 15 of the commit protocol (docs/architecture.md).

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/run.h"

namespace zeze {
class Checkpoint;
class Engine;
class TableBase;
}  // namespace zeze

namespace zeze::internal {

// A run, and the steps of its end. One object serves one run after the other. The engine must have
// started.
class Commit : public Run {
 public:
  Commit(Engine& engine, Context& context);
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  // Ends the run, whose body returned the code. kCommitted: what it wrote is visible, and logged
  // for the checkpoint. Otherwise nothing was written.
  Outcome Finish(std::int64_t code);

  // After kCommitted: whether there was something to write, and listeners to tell.
  bool wrote() const { return !writes_.empty(); }
  bool has_changes() const { return !changed_tables_.empty(); }
  void DeliverChanges();

  // Waits until what the answer tells is saved, if it must be (rule 15). False: it is not known
  // whether it will be; if it will, what `leftover` returns runs then.
  bool AwaitSaved(FunctionRef<std::vector<Task>()> leftover) {
    DurabilityTicket* const ticket = std::exchange(ticket_, nullptr);
    // Without durable data the ticket is the checkpoint's, and may be gone already.
    if (ticket == nullptr || !durable) [[likely]]
      return true;
    return AwaitTicket(ticket, leftover);
  }

  // After kNoRoom: what the writes take in a flush, at most.
  std::uint64_t row_bytes() const { return row_bytes_; }

  // After kConflict or kNoRoom, for another end of the same run: as before Finish.
  void Rewind();
  // For another run.
  void Reset() {
    accesses.Clear();
    actions.Clear();
    durable = false;
    aborted = false;
    failed = false;
    culprit = nullptr;
    Forget();
  }
  void FreeMemory();

 private:
  static constexpr std::uint64_t kDirtyBatch = 64;

  static bool IsUnchanged(const Access& access);
  bool LeaseExpired();
  Outcome FinishFailed();
  Outcome FinishUnwritten(Outcome outcome);
  Outcome Write();
  bool RefusedByListener();
  bool PrepareWrites();
  bool TakeRoom();
  bool LockWrites();
  void UnlockWrites(std::size_t count);
  Record* FirstInvalidAtCommit() const;
  void FindDirtyReads();
  // 0: no action waits for durability.
  std::uint64_t ActionOrder() const;
  void Install(Access& access, std::uint64_t epoch);
  void LogCommit(std::uint64_t epoch, std::uint64_t action_order);
  void MakeTicket(std::uint64_t action_order);
  bool AwaitTicket(DurabilityTicket* ticket, FunctionRef<std::vector<Task>()> leftover);
  void Forget() {
    unchanged_.clear();
    writes_.clear();
    dirty_reads_.clear();
    fresh_.clear();
    row_bytes_ = 0;
    no_room_ = false;
  }

  Engine& engine_;
  Checkpoint& checkpoint_;
  Context& context_;

  std::vector<std::uint32_t> unchanged_;  // Edits that Finish has made reads.
  std::vector<std::uint32_t> writes_;     // Indexes of accesses, in lock order.
  std::vector<Record*> dirty_reads_;
  std::vector<Record*> fresh_;  // Records this commit made dirty in its epoch.
  std::vector<std::pair<ValueHeader*, Disposer>> garbage_;
  std::vector<TableBase*> changed_tables_;
  DurabilityTicket* ticket_ = nullptr;
  std::uint64_t row_bytes_ = 0;
  bool no_room_ = false;  // For them.
};

}  // namespace zeze::internal
