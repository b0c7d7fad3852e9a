// Transaction: the private view of the tables in which a procedure works.
//
//   engine.Call("level up", [&](zeze::Transaction& tx) {
//     auto role = roles.Edit(tx, id);
//     if (!role) return kNoSuchRole;          // Any code but 0 rolls back.
//     role->level += 1;
//     tx.AfterCommit([id] { NotifyClient(id); });
//     return zeze::result_code::kSuccess;
//   });
//
// Nothing is locked while the procedure runs. At the end its reads are checked; if somebody changed
// one of them meanwhile, the procedure runs again: it must not have effects besides its tables and
// the actions registered here.
//
// Which thread runs what: the body, listeners of tables (Table::AddListener), AfterCommit and
// AfterRollback run on the thread that called Engine::Call. AfterDurable runs on a thread of the
// engine that does nothing else. The threads that the engine needs to make progress (checkpoint,
// cache cleaner) never run user code.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/transaction/internal/action_list.h"
#include "zeze/transaction/internal/commit.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/intents.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/run.h"
#include "zeze/transaction/procedure_name.h"

namespace zeze {

class Engine;
class TableBase;

enum class TransactionLevel : std::uint8_t {
  kSerializable,
  // A procedure that wrote nothing is believed without checking its reads: they may be of different
  // moments.
  kAllowDirtyWhenAllRead,
};

// Thrown by table access when the transaction cannot go on: it lost a race and runs again, or a
// record cannot be had. Not a std::exception, so that user code does not swallow it by accident;
// swallowing it with catch (...) changes nothing, the transaction is marked.
struct TransactionAborted {};

using ProcedureBody = FunctionRef<std::int64_t(Transaction&)>;

namespace internal {

// The transactions of this thread, innermost first; each knows the one around it.
struct ThreadCalls {
  Transaction* body = nullptr;          // Its body runs; null in actions and listeners.
  Transaction* call = nullptr;          // Its Engine::Call has not returned.
  const TableBase* listened = nullptr;  // A change of this table is being delivered.
};
extern constinit thread_local ThreadCalls thread_calls;

// How an Edited or a Found finds its record again. The transaction is looked into only if its body
// runs on this thread: otherwise it may be gone.
struct Handle {
  Transaction* transaction = nullptr;
  std::uint64_t serial = 0;
  std::size_t index = 0;
  std::uint32_t generation = 0;
  bool present = false;  // Whether the record existed.
};

}  // namespace internal

// Belongs to one thread, valid while its procedure runs: used later, by an action or on another
// thread, it throws UsageError, and so do the handles that tables gave for it.
class Transaction {
 public:
  Transaction(Engine& engine, internal::Context& context);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Runs a nested procedure: a result other than 0, or an exception, undoes what it did and nothing
  // else. Returns its result; `cause` as Engine::Call.
  std::int64_t Call(ProcedureName name, ProcedureBody body, std::string* cause = nullptr);

  // Runs after the commit, in the order of registration, on this thread. Dropped if the nested
  // procedure that registered it rolls back. A crash right after the commit may lose both the
  // action and, unless a table is durable at commit, the commit itself: see AfterDurable.
  void AfterCommit(Task action);

  // Runs, once, if the procedure that registered it does not commit: it rolled back, alone or with
  // the whole transaction, or the engine failed it (too many runs, a record that cannot be had, an
  // expired lease). A run that lost a race and is repeated is not an outcome. With kUnknown the
  // procedure has committed here, but not yet in the storage: AfterCommit runs if it gets there.
  void AfterRollback(Task action);

  // Runs once what the transaction wrote, and what it read unsaved, is in the storage. For effects
  // that must never exist without their cause.
  //
  // The actions of an engine run one at a time on a thread of their own, so they may run procedures
  // and wait for them; one that waits long delays the others: post such work to a pool. The actions
  // of a transaction run in the order of registration, those of transactions that depend on each
  // other in the order of their commits. Engine::Stop returns after all of them have run; meanwhile
  // procedures that they call get kClosed. A crash or Abandon may lose actions whose data is saved.
  //
  // The procedure fails with kBusy if EngineOptions::after_durable_max actions wait already.
  void AfterDurable(Task action);

  // The procedure returns only when what it wrote, and what it read unsaved, is in the storage: as
  // if it had written a table that is durable at commit.
  void RequireDurable();

  // A last part of the procedure. It runs after the body has ended well, with what the body wrote,
  // and commits with it; any result but 0 rolls both back. If the last parts lose a race for
  // records that only they have used, they alone run again, and the body does not: for a record
  // that many write, after a body that takes long.
  //
  // Several run in the order of registration. Dropped if the nested procedure that registered it
  // rolls back. Handles of the body are void in it. What it refers to must live until Engine::Call
  // returns, and it must not register further parts.
  void EndWith(std::function<std::int64_t(Transaction&)> part);

  // Runs `look`, which only reads, and forgets what it has read: that may change without this
  // procedure running again. Whoever acts on it looks again, in EndWith. Handles that were given
  // before, or are given in it, are void after it; pointers that are given in it too.
  void Peek(FunctionRef<void()> look);

  Engine& engine() const { return engine_; }
  const char* procedure_name() const { return name_; }
  // Different for each run of each transaction of this process.
  std::uint64_t serial() const { return serial_; }
  // 1 for the first run; higher after lost races.
  int attempt() const { return attempt_; }

  // Below: for Engine.

  // Runs the procedure, again after lost races, until it has an outcome; then what follows from
  // that: listeners, durability, actions. The context is inside.
  std::int64_t RunProcedure(ProcedureName name, ProcedureBody body, TransactionLevel level,
                            std::string* cause);

  // The innermost transaction of the engine whose body, or whose call, runs on this thread; null if
  // there is none.
  static Transaction* BodyHere(const Engine& engine) {
    Transaction* at = internal::thread_calls.body;
    while (at != nullptr && &at->engine_ != &engine) at = at->around_.body;
    return at;
  }
  static const Transaction* CallHere(const Engine& engine) {
    const Transaction* at = internal::thread_calls.call;
    while (at != nullptr && &at->engine_ != &engine) at = at->around_.call;
    return at;
  }

  // Below: for Table.

  // The transaction's entry for the record, read and checked. Throws TransactionAborted.
  // Null: the record was evicted; find it again.
  // `overwrite`: the caller replaces or removes the record whatever it holds, even a row that
  // cannot be decoded.
  internal::Access* Open(TableBase& table, internal::Record& record, bool for_write,
                         bool overwrite = false);
  internal::Access& at(std::size_t index) { return run_.accesses[index]; }
  internal::Handle HandleOf(const internal::Access& access) {
    return {.transaction = this,
            .serial = serial_,
            .index = IndexOf(access),
            .generation = access.generation,
            .present = access.content() != nullptr};
  }
  // The record of a handle that was not empty. Throws UsageError.
  static internal::Access& Resolve(const internal::Handle& handle) {
    Transaction* tx = handle.transaction;
    const bool good =
        handle.present && internal::thread_calls.body == tx && tx->serial_ == handle.serial;
    if (!good) [[unlikely]]
      return ResolveSlowly(handle);
    return tx->run_.accesses[handle.index];
  }
  // The same, if the content is still that of the handle.
  static internal::Access& ResolveContent(const internal::Handle& handle) {
    internal::Access& access = Resolve(handle);
    if (access.generation != handle.generation) [[unlikely]]
      handle.transaction->RefuseRemoved(access);
    return access;
  }
  // Throws UsageError unless the body runs on this thread and the table is one of its engine.
  void CheckUse(const TableBase& table) const;
  std::size_t IndexOf(const internal::Access& access) const {
    return run_.accesses.IndexOf(access);
  }

  // Makes the content editable: a copy of what is there, made once for each savepoint.
  void MakeEditable(internal::Access& access) {
    const bool saved = savepoint_ == 0 || access.savepoint >= savepoint_;
    if (!saved || access.state != internal::AccessState::kEdited) MakeWorkingCopy(access);
    access.removed_later = false;
  }
  // Gives an access a fresh working copy, taken over from the caller.
  void SetWorking(internal::Access& access, internal::ValueHeader* fresh);
  void MarkRemoved(internal::Access& access);
  void MarkRemovedLater(internal::Access& access);

  internal::Participant& participant() { return context_.participant; }
  internal::Context& context() { return context_; }
  [[noreturn]] void AbortConflict(internal::Record* culprit);
  [[noreturn]] void AbortFailed(std::int64_t code, std::string message);

 private:
  using When = internal::ActionList::When;

  struct Undo {
    std::size_t access;
    internal::AccessState state;
    std::uint32_t generation;
    std::uint64_t savepoint;
    internal::ValueHeader* content;  // A copy, if state was kEdited.
    bool removed_later;
  };

  // How much there is of everything that grows while the procedure runs.
  struct Mark {
    std::size_t accesses = 0;
    std::size_t undo = 0;
    std::size_t actions = 0;
    bool has_durable = false;
    bool tells_writes = false;
  };

  static internal::Access& ResolveSlowly(const internal::Handle& handle);
  [[noreturn]] void RefuseRemoved(const internal::Access& access);
  // Throws UsageError, unless this run saw what is not true any more: then it runs again.
  [[noreturn]] void Refuse(const std::string& message);
  std::string NameOf(const internal::Access& access) const;
  bool BodyRunsHere() const;
  bool CallRunsHere() const;
  void Register(When when, Task action);

  // The call begins, its body has ended, the call ends.
  void EnterCall() {
    around_ = internal::thread_calls;
    internal::thread_calls.body = this;
    internal::thread_calls.call = this;
  }
  void LeaveBody() {
    internal::thread_calls.body = nullptr;
    ++serial_;  // Handles are void from now on, in actions too.
  }
  void LeaveCall() { internal::thread_calls = around_; }

  std::int64_t RunOnce(ProcedureName name, ProcedureBody body, int attempt, bool rewound);
  internal::Outcome Finish(std::int64_t code);
  internal::Outcome FailTooManyTries(int attempts);
  std::int64_t Conclude(internal::Outcome outcome, std::int64_t code);
  // Tells LaterRemoval what the procedure wrote, as a part of the procedure.
  void TellWrites();
  // The last parts, after the body. Returns the code of the whole.
  std::int64_t RunEnds(ProcedureName name);
  // After a run that did not commit: as it was before the last parts. False: the body must run
  // again, too.
  bool RewindEnds();
  void ForgetAccesses(std::size_t count);
  void DisposeAccess(internal::Access& access);
  void Reset();
  void FreeScratch();

  [[noreturn]] void AbortUnreadable(const internal::Access& access);
  void SaveForUndo(internal::Access& access);
  void MakeWorkingCopy(internal::Access& access);
  void RollbackTo(std::size_t undo_mark, std::size_t action_mark, std::size_t end_mark);
  std::int64_t RunBody(ProcedureName name, ProcedureBody body);
  std::int64_t Threw(ProcedureName name, const char* what);

  Engine& engine_;
  internal::Context& context_;
  const char* name_ = "";
  int attempt_ = 0;
  // Never the same for two runs in one process; handles remember it.
  std::uint64_t serial_;
  internal::ThreadCalls around_;

  internal::Commit run_;
  internal::Intents intents_;
  std::vector<Undo> undo_;
  std::vector<std::function<std::int64_t(Transaction&)>> ends_;
  Mark before_ends_;
  bool ending_ = false;          // The last parts run, or have run.
  bool tells_writes_ = false;    // A table was written whose LaterRemoval wants to know.
  std::uint64_t savepoint_ = 0;  // Serial of the innermost open savepoint.
  std::uint64_t last_savepoint_ = 0;
  std::uint32_t last_generation_ = 0;
};

}  // namespace zeze
