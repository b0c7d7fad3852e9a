#include "zeze/transaction/internal/commit.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/change_queue.h"
#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/durable_actions.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/record_loader.h"
#include "zeze/transaction/internal/run.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze::internal {

Commit::Commit(Engine& engine, Context& context)
    : engine_(engine), checkpoint_(engine.checkpoint()), context_(context) {}

Outcome Commit::Finish(std::int64_t code) {
  if (failed) return FinishFailed();
  if (aborted) return Outcome::kConflict;
  if (code != result_code::kSuccess) {
    actions.DropDurable();
    return FinishUnwritten(Outcome::kRolledBack);
  }
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    Access& access = accesses[i];
    if (!access.IsWrite()) continue;
    if (IsUnchanged(access)) {
      access.state = AccessState::kRead;
      unchanged_.push_back(static_cast<std::uint32_t>(i));
    } else {
      writes_.push_back(static_cast<std::uint32_t>(i));
    }
  }
  if (!writes_.empty()) return Write();
  return FinishUnwritten(Outcome::kCommitted);
}

// An edit that changed nothing is a read.
bool Commit::IsUnchanged(const Access& access) {
  if (access.state != AccessState::kEdited || access.committed == nullptr) return false;
  return access.table->values().unchanged(*access.record, *access.working, access.committed);
}

inline bool Commit::LeaseExpired() {
  if (engine_.LeaseValid()) return false;
  Fail(result_code::kAbortException, "the lease of this server has expired");
  return true;
}

// What the procedure itself did wrong is believed only if what it was made of is true (rule 14).
inline Outcome Commit::FinishFailed() {
  if (failure_code != result_code::kException) return Outcome::kFailed;
  culprit = accesses.FirstInvalid();
  return culprit != nullptr ? Outcome::kConflict : Outcome::kFailed;
}

// Nothing is installed. The answer, a failure too, is believed only if what it was made of is true
// (rule 14); made of unsaved data of a durable table it waits for that like its writer (rule 15).
inline Outcome Commit::FinishUnwritten(Outcome outcome) {
  const bool checked = outcome == Outcome::kRolledBack || serializable;
  // Before the epoch is announced, because it decides whether one is needed. A record that is saved
  // and evicted in between fails the validation.
  if (checked && checkpoint_.groups()) FindDirtyReads();
  const bool waits = durable || actions.HasDurable();
  const std::uint64_t epoch = waits ? checkpoint_.Announce(context_) : 0;
  if (checked && !engine_.options().unsafe_skip_validation) {
    culprit = accesses.FirstInvalid();
  }
  if (culprit != nullptr) {
    outcome = Outcome::kConflict;
  } else if (checked && LeaseExpired()) {
    outcome = Outcome::kFailed;
  } else if (waits) {
    LogCommit(epoch, ActionOrder());
  }
  if (waits) context_.epoch.store(0, std::memory_order_release);
  return outcome;
}

// Reads of unsaved records tie the transaction to their writers: what it wrote must not be saved
// before them (rule 13). Memory tables included: they carry dependencies too.
inline void Commit::FindDirtyReads() {
  for (const Access& access : accesses) {
    if (!writes_.empty() && access.IsWrite()) continue;
    if (!access.record->Dirty(access.word)) continue;
    dirty_reads_.push_back(access.record);
    if (access.table->durable_at_commit()) durable = true;
  }
}

inline std::uint64_t Commit::ActionOrder() const {
  return actions.HasDurable() ? checkpoint_.NextActionOrder() : 0;
}

// What may block or fail is done before anything is locked (rule 8).
inline bool Commit::PrepareWrites() {
  for (const std::uint32_t i : writes_) {
    Access& access = accesses[i];
    TableBase& table = *access.table;
    if (Word::RightOf(access.word) < Right::kModify) {
      Result<void> loaded = engine_.loader().Load(context_, *access.record, Right::kModify);
      if (!loaded.ok()) {
        Fail(result_code::kAbortException, loaded.error().message());
        return false;
      }
      const std::uint64_t word = access.record->word.load(std::memory_order_acquire);
      if (Word::Version(word) != Word::Version(access.word) || Word::Locked(word)) {
        culprit = access.record;
        return false;
      }
      access.word = word;
    }
    ValueHeader* next = nullptr;
    if (access.state == AccessState::kEdited) {
      next = access.working;
      if (table.values().raise_version != nullptr) {
        table.values().raise_version(*next, access.committed);
      }
    }
    if (table.storage() == nullptr) {
      row_bytes_ += table.tracked() ? 1 : 0;  // Nothing for the storage, but it may have to wait.
      continue;
    }
    if (next != nullptr) {
      if (Result<void> admitted = table.Admit(*access.record, *next, access.committed);
          !admitted.ok()) {
        Fail(result_code::kException, admitted.error().message());
        return false;
      }
    }
    row_bytes_ += table.RowBytes(*access.record, next);
  }
  return TakeRoom();
}

// What becomes unsaved must fit into one flush together with what is unsaved already. Decided here,
// because what is committed cannot be refused any more.
inline bool Commit::TakeRoom() {
  if (row_bytes_ == 0) return true;
  const bool enough = static_cast<std::int64_t>(row_bytes_) <= context_.room;
  if (enough && !checkpoint_.overloaded()) [[likely]]
    return true;
  if (row_bytes_ > checkpoint_.flush_bytes_max()) {
    Fail(
        result_code::kException,
        fmt::format("its {} records take up to {} bytes, the storage takes {} in one atomic flush: "
                    "write fewer in one procedure, or raise the storage's flush_bytes_max",
                    writes_.size(), row_bytes_, checkpoint_.flush_bytes_max()));
    return false;
  }
  no_room_ = !checkpoint_.TakeRoom(context_, row_bytes_);
  return !no_room_;
}

// A commit waits until its own changes are delivered: in a listener it would wait for itself.
inline bool Commit::RefusedByListener() {
  const TableBase* listened = thread_calls.listened;
  if (listened == nullptr || listened->engine() != &engine_) return false;
  Fail(
      result_code::kLogicError,
      fmt::format("it writes, and was called by a listener of table {}: a listener must not write. "
                  "Write in AfterCommit, or post the procedure to another thread",
                  listened->name()));
  return true;
}

inline bool Commit::LockWrites() {
  if (writes_.size() > 1) {
    // Any order that all commits share will do; addresses cost nothing to compare.
    std::sort(writes_.begin(), writes_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return accesses[a].record < accesses[b].record;
    });
  }
  for (std::size_t n = 0; n < writes_.size(); ++n) {
    const Access& access = accesses[writes_[n]];
    Backoff backoff;
    while (true) {
      std::uint64_t word = access.record->word.load(std::memory_order_relaxed);
      const bool changed = (word & ~Word::kLocked) != access.word;
      if (Word::Dead(word) || (changed && !engine_.options().unsafe_skip_validation)) {
        culprit = access.record;
        UnlockWrites(n);
        return false;
      }
      if (!Word::Locked(word) && access.record->word.compare_exchange_strong(
                                     word, word | Word::kLocked, std::memory_order_seq_cst)) {
        break;
      }
      backoff.Wait();
    }
  }
  return true;
}

void Commit::UnlockWrites(std::size_t count) {
  for (std::size_t n = 0; n < count; ++n) {
    Record& record = *accesses[writes_[n]].record;
    UnlockRecord(record, record.word.load(std::memory_order_relaxed));
  }
}

inline Record* Commit::FirstInvalidAtCommit() const {
  if (engine_.options().unsafe_skip_validation) return nullptr;
  for (const Access& access : accesses) {
    const std::uint64_t word = access.record->word.load(std::memory_order_seq_cst);
    if (word == access.word) continue;
    // Locked by this commit itself (what it writes was compared when it was locked), or by another:
    // then give way, waiting with locks held could be mutual.
    const bool own = access.state != AccessState::kRead && word == (access.word | Word::kLocked);
    if (!own || !access.IsWrite()) return access.record;
  }
  return nullptr;
}

inline Outcome Commit::Write() {
  if (RefusedByListener()) [[unlikely]]
    return Outcome::kFailed;
  try {
    if (!PrepareWrites()) {
      if (failed) return FinishFailed();
      return no_room_ ? Outcome::kNoRoom : Outcome::kConflict;
    }
  } catch (const UsageError& e) {  // A value that cannot even be encoded.
    Fail(result_code::kException, e.what());
    return FinishFailed();
  }
  // Locks, then epoch: whoever reads or overwrites this has seen the new words, so it announces
  // this epoch or a later one, and no cut has the effect without its cause. Epoch, then validation:
  // what the cut of this epoch contains was still true in it (rule 10).
  if (!LockWrites()) return Outcome::kConflict;
  const std::uint64_t epoch = checkpoint_.Announce(context_);
  culprit = FirstInvalidAtCommit();
  if (culprit != nullptr || LeaseExpired()) {
    UnlockWrites(writes_.size());
    context_.epoch.store(0, std::memory_order_release);
    return culprit != nullptr ? Outcome::kConflict : Outcome::kFailed;
  }
  if (checkpoint_.groups()) FindDirtyReads();
  const std::uint64_t action_order = ActionOrder();
  for (const std::uint32_t i : writes_) Install(accesses[i], epoch);
  // Alone, a commit to records that the log has already adds nothing to it.
  if (!fresh_.empty() || durable || !actions.empty() || checkpoint_.groups()) {
    LogCommit(epoch, action_order);
  }
  context_.epoch.store(0, std::memory_order_release);

  for (const auto& [value, dispose] : garbage_) {
    context_.participant.Retire(value, value->birth_era, dispose);
  }
  garbage_.clear();
  if (context_.dirtied >= kDirtyBatch) {
    checkpoint_.AddDirty(std::exchange(context_.dirtied, 0));
  }
  return Outcome::kCommitted;
}

// Makes one write visible and unlocks its record.
inline void Commit::Install(Access& access, std::uint64_t epoch) {
  Record& record = *access.record;
  TableBase& table = *access.table;
  const std::uint64_t old_word = record.word.load(std::memory_order_relaxed);
  const bool in_record = table.values().in_record();
  ValueHeader* old = record.value.load(std::memory_order_relaxed);
  ValueHeader* next = access.state == AccessState::kEdited ? access.working : nullptr;
  if (table.durable_at_commit()) durable = true;
  const bool dirty = record.Dirty(old_word);
  if (next != nullptr && old == nullptr && table.storage() != nullptr) {
    ByteWriter key;
    table.EncodeRecordKey(record, key);
    table.unsaved_inserts().Note(key.view());
  }

  if (table.storage() != nullptr) {
    context_.room -= static_cast<std::int64_t>(table.RowBytes(record, next));
    if (dirty) context_.room += static_cast<std::int64_t>(table.RowBytes(record, old));
  }

  const bool has_listeners = table.changes().wanted();
  const bool keep_old = dirty && record.write_epoch < epoch;
  const bool known = Word::Loaded(old_word);  // Otherwise `old` is of before a right was lost.
  if (in_record) {
    if (old != nullptr && (keep_old || (has_listeners && known))) {
      old = table.values().fetch(context_.participant, record);
      old->birth_era = context_.participant.kept_era();
    }
    if (next != nullptr) table.values().store(record, *next);
    record.value.store(next == nullptr ? nullptr : &in_record_mark, std::memory_order_release);
  } else {
    if (next != nullptr) {
      next->birth_era = context_.participant.era();
      access.working = nullptr;
    }
    // Before any scan that may free the old value: the scan begins with a fence.
    record.value.store(next, std::memory_order_release);
    if (access.hint != nullptr) access.hint->store(next, std::memory_order_relaxed);
  }
  if (keep_old) {
    // The flush of the last cut may still need the old value (rule 28). An older one kept aside is
    // of a cut whose flush has ended: the epoch advances only between flushes.
    if (ValueHeader* stale = record.aside_value()) {
      garbage_.emplace_back(stale, table.values().dispose);
    }
    record.KeepAside(old);
  } else if (old != nullptr && old != &in_record_mark) {
    garbage_.emplace_back(old, table.values().dispose);
  }
  const std::uint64_t version = context_.NextVersion();
  if (table.tracked()) {
    if (record.write_epoch != epoch) fresh_.push_back(&record);
    if (!dirty) ++context_.dirtied;
  } else {
    record.flushed_version.store(version, std::memory_order_relaxed);
  }
  record.write_epoch = epoch;
  if (next == nullptr) table.NoteAbsence();
  if (has_listeners) {
    // Whoever delivers it reads the new value too: it must not be freed before this procedure ends.
    if (!in_record) next = context_.participant.Protect(record.value);
    table.changes().Push({&record, known ? old : nullptr, next});
    changed_tables_.push_back(&table);
  }
  record.word.store(Word::Make(version, Word::RightOf(old_word), true), std::memory_order_release);
}

inline void Commit::LogCommit(std::uint64_t epoch, std::uint64_t action_order) {
  const bool groups = checkpoint_.groups();
  if (durable || action_order != 0) MakeTicket(action_order);
  // In groups a transaction also ties records together that were in the log before; a lone record
  // that is there already adds nothing.
  const bool ties = groups && writes_.size() + dirty_reads_.size() > 1;
  if (fresh_.empty() && !ties && ticket_ == nullptr && dirty_reads_.empty()) return;
  CommitLog& log = context_.logs[epoch & 1];
  const std::size_t count = (groups ? writes_.size() : fresh_.size()) + dirty_reads_.size();
  log.Begin(count, ticket_);
  if (groups) {
    for (const std::uint32_t i : writes_) log.Add(accesses[i].record);
  } else {
    for (Record* record : fresh_) log.Add(record);
  }
  for (Record* record : dirty_reads_) log.Add(record);
  log.CompactIfLong();
}

void Commit::MakeTicket(std::uint64_t action_order) {
  ticket_ = new DurabilityTicket;
  ticket_->order = action_order;
  actions.TakeDurable(ticket_->actions);
  engine_.durable_actions().Expect(ticket_->actions.size());
  ticket_->urgent = durable;
  ticket_->owned = !durable;  // Nobody waits for it: the checkpoint deletes it.
}

void Commit::DeliverChanges() {
  const TableBase* const around = thread_calls.listened;
  for (TableBase* table : changed_tables_) {
    table->changes().Deliver([&](const Change& change) {
      thread_calls.listened = table;
      table->Notify(change);
      thread_calls.listened = around;
    });
  }
  changed_tables_.clear();
}

bool Commit::AwaitTicket(DurabilityTicket* ticket, FunctionRef<std::vector<Task>()> leftover) {
  const bool saved = checkpoint_.Await(*ticket, leftover);
  if (saved) delete ticket;
  return saved;
}

void Commit::Rewind() {
  for (const std::uint32_t i : unchanged_) accesses[i].state = AccessState::kEdited;
  aborted = false;
  culprit = nullptr;
  Forget();
}

void Commit::FreeMemory() {
  accesses.FreeMemory();
  writes_ = {};
  dirty_reads_ = {};
  fresh_ = {};
  garbage_ = {};
}

}  // namespace zeze::internal
