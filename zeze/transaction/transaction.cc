#include "zeze/transaction/transaction.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/activity.h"
#include "zeze/base/check.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/durable_actions.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/run.h"
#include "zeze/transaction/later_removal.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/table_base.h"

namespace zeze {

using internal::Access;
using internal::AccessState;
using internal::Backoff;
using internal::ContextStatistics;
using internal::Outcome;
using internal::Record;
using internal::ValueHeader;
using internal::Word;

namespace {

constexpr std::size_t kKeptAccessesMax = 16'384;

// Room for the runs of one transaction object.
constexpr int kSerialShift = 40;
std::atomic<std::uint64_t> transactions_made = 0;

constexpr char kNotSaved[] = "it was not saved in time; whether it will be is not known";

}  // namespace

constinit thread_local internal::ThreadCalls internal::thread_calls;

Transaction::Transaction(Engine& engine, internal::Context& context)
    : engine_(engine),
      context_(context),
      serial_(++transactions_made << kSerialShift),
      run_(engine, context) {}

Transaction::~Transaction() = default;

// --- a procedure from its call to its outcome -------------------------------------------------

std::int64_t Transaction::RunProcedure(ProcedureName name, ProcedureBody body,
                                       TransactionLevel level, std::string* cause) {
  EnterCall();
  run_.serializable = level == TransactionLevel::kSerializable;
  std::int64_t code = result_code::kSuccess;
  Outcome outcome = Outcome::kCommitted;
  bool rewound = false;  // The body of this run has ended well: only what follows it runs again.
  for (int attempt = 1;; ++attempt) {
    code = RunOnce(name, body, attempt, rewound);
    outcome = Finish(code);
    ContextStatistics::Count(context_.statistics.accesses, run_.accesses.size());
    if (outcome == Outcome::kNoRoom) [[unlikely]] {
      intents_.Release();
      engine_.loader().UseUp(context_);
      const Result<void> room = engine_.checkpoint().AwaitRoom(context_, run_.row_bytes());
      if (room.ok()) {
        rewound = RewindEnds();
        if (!rewound) Reset();
        --attempt;
        continue;
      }
      outcome = run_.Fail(result_code::kBusy, room.error().message());
    }
    if (outcome != Outcome::kConflict) [[likely]]
      break;
    ContextStatistics::Count(context_.statistics.conflicts);
    if (attempt >= engine_.options().attempts_max) {
      outcome = FailTooManyTries(attempt);
      break;
    }
    if (attempt == 1) context_.StandBack();  // Later ones hold intents: others wait for them.
    intents_.Take(run_);
    rewound = RewindEnds();
    if (rewound) continue;
    Reset();
    for (Record* record : intents_.records()) context_.pins.Add(record);
  }
  if (!intents_.empty()) intents_.Release();
  engine_.loader().UseUp(context_);
  code = Conclude(outcome, code);
  if (cause != nullptr) *cause = std::exchange(run_.failure, {});
  LeaveCall();
  return code;
}

// The body, the last parts, and what LaterRemoval adds.
inline std::int64_t Transaction::RunOnce(ProcedureName name, ProcedureBody body, int attempt,
                                         bool rewound) {
  std::int64_t code = result_code::kSuccess;
  if (!rewound) {
    run_.failure.clear();
    name_ = name.c_str();
    attempt_ = attempt;
    code = RunBody(name, body);
  }
  if (!ends_.empty() && code == result_code::kSuccess) [[unlikely]]
    code = RunEnds(name);
  if (tells_writes_ && code == result_code::kSuccess) [[unlikely]] {
    code = RunBody(name, [](Transaction& told) -> std::int64_t {
      told.TellWrites();
      return result_code::kSuccess;
    });
  }
  return code;
}

inline Outcome Transaction::Finish(std::int64_t code) {
  // A rollback drops the AfterDurable actions. Repeating only the last parts would not bring those
  // of the body back, so the body must be repeated too.
  if (code != result_code::kSuccess && !run_.ended()) ending_ = false;
  return run_.Finish(code);
}

inline std::int64_t Transaction::Conclude(Outcome outcome, std::int64_t code) {
  LeaveBody();
  When actions = When::kRollback;
  if (outcome == Outcome::kCommitted) {
    ContextStatistics::Count(run_.wrote() ? context_.statistics.commits
                                          : context_.statistics.read_only);
    if (run_.has_changes()) run_.DeliverChanges();
    actions = When::kCommit;
    if (!run_.AwaitSaved([this] { return run_.actions.TakeAfterCommit(); })) {
      actions = When::kRolledBack;
      code = result_code::kUnknown;
      run_.failure = kNotSaved;
    }
  } else if (outcome == Outcome::kRolledBack) {
    ContextStatistics::Count(context_.statistics.rollbacks);
    if (!run_.AwaitSaved([] { return std::vector<Task>(); })) {
      code = result_code::kUnknown;
      run_.failure = kNotSaved;
    }
  } else {
    ContextStatistics::Count(context_.statistics.rollbacks);
    engine_.ReportFailure(name_, run_.failure);
    code = run_.failure_code;
  }
  if (!run_.actions.empty()) run_.actions.Run(actions, name_);
  Reset();
  return code;
}

Outcome Transaction::FailTooManyTries(int attempts) {
  std::string message = fmt::format("it gave up after {} runs", attempts);
  if (run_.culprit != nullptr) {
    const TableBase& table = engine_.table(run_.culprit->table_index);
    message += fmt::format(
        ": record {} of table {} was changed by others each time; make the procedure shorter or "
        "give the record fewer writers",
        table.FormatKey(*run_.culprit), table.name());
  }
  return run_.Fail(result_code::kTooManyTry, std::move(message));
}

// --- records ----------------------------------------------------------------------------------

Access* Transaction::Open(TableBase& table, Record& record, bool for_write, bool overwrite) {
  if (run_.ended()) throw TransactionAborted{};  // Swallowed before: it ends here again.
  if (Access* known = run_.accesses.Find(&record)) {
    if (known->unreadable && known->state == AccessState::kRead && !overwrite) [[unlikely]] {
      AbortUnreadable(*known);
    }
    known->shown |= !for_write;
    return known;
  }

  if (for_write && record.intent.load(std::memory_order_relaxed) != 0 && !intents_.Holds(&record)) {
    internal::Intents::LetPass(record);
  }
  const Right wanted = for_write ? Right::kModify : Right::kShare;
  Backoff backoff;
  bool pinned = false;
  bool unreadable = false;
  std::uint64_t word = 0;
  ValueHeader* value = nullptr;
  while (true) {
    word = record.word.load(std::memory_order_acquire);
    if (Word::Locked(word)) {
      backoff.Wait();
      continue;
    }
    if (Word::Dead(word)) return nullptr;
    if (!Word::Loaded(word) || Word::RightOf(word) < wanted) [[unlikely]] {
      if (!std::exchange(pinned, true)) context_.pins.Add(&record);  // Loading takes its time.
      bool undecodable = false;
      Result<void> loaded = engine_.loader().Load(context_, record, wanted, &undecodable);
      if (loaded.ok()) continue;
      if (!overwrite || !undecodable) {
        AbortFailed(result_code::kAbortException, loaded.error().message());
      }
      word = record.word.load(std::memory_order_acquire);
      unreadable = !Word::Locked(word) && !Word::Dead(word) && !Word::Loaded(word) &&
                   Word::RightOf(word) >= wanted;
      if (unreadable) break;
      continue;
    }
    value = context_.participant.Protect(record.value);
    const bool copied = value != nullptr && table.values().in_record();
    if (copied) value = table.values().fetch(context_.participant, record);
    if (record.word.load(std::memory_order_acquire) == word) break;
    if (copied) table.values().dispose(context_.participant, value);
    value = nullptr;  // An unreadable record has none.
  }
  if (!pinned) context_.pins.Add(&record);
  // After the pin: whoever clears this and looks for pins then finds it (Cache::Sweep).
  if (record.accessed.load(std::memory_order_relaxed) == 0) {
    record.accessed.store(1, std::memory_order_relaxed);
  }
  Access& access =
      run_.accesses.Add(table, record, word, value);  // First: a copy has an owner then.
  access.shown = !for_write;
  access.unreadable = unreadable;
  if (Record* changed = run_.accesses.ChangedBefore(context_.versions)) AbortConflict(changed);
  return &access;
}

void Transaction::AbortUnreadable(const Access& access) {
  AbortFailed(
      result_code::kAbortException,
      fmt::format("record {} of table {} cannot be decoded: Put replaces it, Remove removes it",
                  access.table->FormatKey(*access.record), access.table->name()));
}

void Transaction::SaveForUndo(Access& access) {
  if (savepoint_ == 0 || access.savepoint >= savepoint_) return;
  ValueHeader* content = nullptr;
  if (access.state == AccessState::kEdited) {
    const auto& values = access.table->values();
    content = values.copy(context_.participant, *access.working);
  }
  undo_.push_back({.access = IndexOf(access),
                   .state = access.state,
                   .generation = access.generation,
                   .savepoint = access.savepoint,
                   .content = content,
                   .removed_later = access.removed_later});
  access.savepoint = savepoint_;
}

void Transaction::MakeWorkingCopy(Access& access) {
  SaveForUndo(access);
  if (access.state == AccessState::kEdited) return;
  tells_writes_ |= access.table->tells_writes();
  ZEZE_CHECK(access.state == AccessState::kRead && access.committed != nullptr);
  const auto& values = access.table->values();
  // A copy that nobody has seen and that no savepoint can ask for is edited itself.
  const bool as_it_is = values.in_record() && !access.shown && savepoint_ == 0 &&
                        access.working == nullptr && values.raise_version == nullptr;
  if (as_it_is) {
    access.working = std::exchange(access.committed, &internal::in_record_mark);
  } else if (access.working == nullptr) {
    access.working = values.copy(context_.participant, *access.committed);
  } else {
    values.assign(*access.working, *access.committed);
  }
  access.state = AccessState::kEdited;
}

void Transaction::SetWorking(Access& access, ValueHeader* fresh) {
  SaveForUndo(access);
  TableBase& table = *access.table;
  if (access.working == nullptr) {
    access.working = fresh;
  } else {
    table.values().assign(*access.working, *fresh);
    table.values().dispose(context_.participant, fresh);
  }
  access.state = AccessState::kEdited;
  access.removed_later = false;
  tells_writes_ |= table.tells_writes();
}

void Transaction::MarkRemoved(Access& access) {
  SaveForUndo(access);
  access.state = AccessState::kRemoved;
  access.removed_later = false;
  access.generation = ++last_generation_;
  tells_writes_ |= access.table->tells_writes();
}

void Transaction::MarkRemovedLater(Access& access) {
  SaveForUndo(access);
  access.removed_later = true;
}

void Transaction::TellWrites() {
  // Whoever is told opens more records: by index, and only those that were there before.
  const std::size_t count = run_.accesses.size();
  for (std::size_t i = 0; i < count; ++i) {
    TableBase& table = *run_.accesses[i].table;
    const Access& access = run_.accesses[i];
    const bool told = table.tells_writes() && access.IsWrite() && !access.removed_later;
    if (!told) continue;  // What was written as it was counts as well.
    ByteWriter key;
    table.EncodeRecordKey(*run_.accesses[i].record, key);
    table.later_removal()->Written(*this, table, key.Release());
  }
}

// --- slips of user code -----------------------------------------------------------------------

bool Transaction::BodyRunsHere() const {
  const Transaction* at = internal::thread_calls.body;
  while (at != nullptr && at != this) at = at->around_.body;
  return at != nullptr;
}

bool Transaction::CallRunsHere() const {
  const Transaction* at = internal::thread_calls.call;
  while (at != nullptr && at != this) at = at->around_.call;
  return at != nullptr;
}

void Transaction::CheckUse(const TableBase& table) const {
  ZEZE_REQUIRE(BodyRunsHere(),
               fmt::format("table {} was used with a transaction that does not run on this thread: "
                           "a transaction can be used only by the body of its procedure, while it "
                           "runs",
                           table.name()));
  ZEZE_REQUIRE(table.engine() != nullptr,
               fmt::format("table {} belongs to no engine: add it before the start", table.name()));
  ZEZE_REQUIRE(
      table.engine() == &engine_,
      fmt::format("table {} belongs to another engine than procedure {}", table.name(), name_));
}

std::string Transaction::NameOf(const Access& access) const {
  return fmt::format("record {} of table {}", access.table->FormatKey(*access.record),
                     access.table->name());
}

void Transaction::Refuse(const std::string& message) {
  if (run_.ended()) throw TransactionAborted{};
  if (Record* changed = run_.accesses.FirstInvalid()) AbortConflict(changed);
  throw UsageError(message);
}

Access& Transaction::ResolveSlowly(const internal::Handle& handle) {
  Transaction* tx = handle.transaction;
  ZEZE_REQUIRE(tx != nullptr, "an empty record handle was used");
  ZEZE_REQUIRE(tx->BodyRunsHere() && tx->serial_ == handle.serial,
               "a record handle was used after its procedure had ended or on another thread: keep "
               "values, not handles");
  Access& access = tx->run_.accesses[handle.index];
  if (!handle.present) {
    tx->Refuse(tx->NameOf(access) + " does not exist: test the handle before using it");
  }
  return access;
}

void Transaction::RefuseRemoved(const Access& access) {
  Refuse(NameOf(access) +
         " was removed, or its insertion was rolled back, before the use of this "
         "handle");
}

void Transaction::AbortConflict(Record* culprit) {
  run_.aborted = true;
  run_.culprit = culprit;
  throw TransactionAborted{};
}

void Transaction::AbortFailed(std::int64_t code, std::string message) {
  run_.Fail(code, std::move(message));
  throw TransactionAborted{};
}

std::int64_t Transaction::RunBody(ProcedureName name, ProcedureBody body) {
  try {
    return body(*this);
  } catch (const TransactionAborted&) {
    return result_code::kAbortException;
  } catch (const std::exception& e) {
    return Threw(name, e.what());
  } catch (...) {
    return Threw(name, "something that is not a std::exception");
  }
}

// What a doomed run throws is not believed.
std::int64_t Transaction::Threw(ProcedureName name, const char* what) {
  if (!run_.ended()) {
    run_.culprit = run_.accesses.FirstInvalid();
    run_.aborted = run_.culprit != nullptr;
  }
  if (run_.ended()) return result_code::kAbortException;
  ZEZE_LOG_ERROR("procedure {} threw: {}", name.view(), what);
  run_.failure = what;
  return result_code::kException;
}

std::int64_t Transaction::Call(ProcedureName name, ProcedureBody body, std::string* cause) {
  ZEZE_REQUIRE(BodyRunsHere(),
               fmt::format("procedure {} was called in a transaction that does not run on this "
                           "thread",
                           name.view()));
  const std::size_t undo_mark = undo_.size();
  const std::size_t action_mark = run_.actions.size();
  const std::size_t end_mark = ends_.size();
  const std::uint64_t outer = std::exchange(savepoint_, ++last_savepoint_);
  const char* outer_name = std::exchange(name_, name.c_str());
  const std::int64_t code = [&] {
    const ScopedActivity activity(name.c_str());
    return RunBody(name, body);
  }();
  name_ = outer_name;
  savepoint_ = outer;
  if (run_.ended()) throw TransactionAborted{};  // Ends the outer procedures as well.
  if (code != result_code::kSuccess) RollbackTo(undo_mark, action_mark, end_mark);
  std::string failure = std::exchange(run_.failure, {});
  if (cause != nullptr) *cause = std::move(failure);
  return code;
}

void Transaction::RollbackTo(std::size_t undo_mark, std::size_t action_mark, std::size_t end_mark) {
  ends_.resize(end_mark);
  while (undo_.size() > undo_mark) {
    const Undo undo = undo_.back();
    undo_.pop_back();
    Access& access = run_.accesses[undo.access];
    const auto& values = access.table->values();
    // Content that vanishes by the rollback takes its handles along; content that is put back keeps
    // its address and its handles, even if it was removed in between.
    access.generation = undo.state == AccessState::kEdited ? undo.generation : ++last_generation_;
    access.state = undo.state;
    access.savepoint = undo.savepoint;
    access.removed_later = undo.removed_later;
    if (undo.content != nullptr) {
      values.assign(*access.working, *undo.content);
      values.dispose(context_.participant, undo.content);
    }
  }
  run_.actions.RollBackTo(action_mark);
}

void Transaction::Register(When when, Task action) {
  ZEZE_REQUIRE(CallRunsHere(),
               "an action was registered with a transaction that does not run on this thread");
  ZEZE_REQUIRE(static_cast<bool>(action), "an action must not be empty");
  run_.actions.Add(when, std::move(action));
}

void Transaction::AfterCommit(Task action) {
  Register(When::kCommit, std::move(action));
}

void Transaction::AfterRollback(Task action) {
  Register(When::kRollback, std::move(action));
}

void Transaction::AfterDurable(Task action) {
  const internal::DurableActions& actions = engine_.durable_actions();
  if (actions.full()) {
    AbortFailed(
        result_code::kBusy,
        fmt::format("{} actions wait for what they follow to be saved, or for their turn: "
                    "does the storage take checkpoints, and is an AfterDurable action slow?",
                    actions.max()));
  }
  Register(When::kDurable, std::move(action));
}

void Transaction::RequireDurable() {
  ZEZE_REQUIRE(BodyRunsHere(), "RequireDurable was called when the procedure did not run");
  run_.durable = true;
}

// --- last parts -------------------------------------------------------------------------------

void Transaction::EndWith(std::function<std::int64_t(Transaction&)> part) {
  ZEZE_REQUIRE(BodyRunsHere() && !ending_ && part != nullptr,
               "EndWith was called without a last part, in one, or when the procedure did not run");
  ends_.push_back(std::move(part));
}

void Transaction::Peek(FunctionRef<void()> look) {
  ZEZE_REQUIRE(BodyRunsHere(), "Peek was called when the procedure did not run");
  const std::size_t count = run_.accesses.size();
  const std::size_t undo = undo_.size();
  look();
  const bool wrote =
      undo_.size() != undo ||
      std::any_of(run_.accesses.begin() + static_cast<std::ptrdiff_t>(count), run_.accesses.end(),
                  [](const Access& access) { return access.IsWrite(); });
  if (wrote) Refuse("a procedure wrote in Peek");
  ForgetAccesses(count);
}

std::int64_t Transaction::RunEnds(ProcedureName name) {
  if (run_.ended()) return result_code::kAbortException;  // The body has swallowed it.
  ending_ = true;
  before_ends_ = {.accesses = run_.accesses.size(),
                  .undo = undo_.size(),
                  .actions = run_.actions.size(),
                  .has_durable = run_.durable,
                  .tells_writes = tells_writes_};
  ++serial_;  // Handles that are given now are void if this is repeated.
  savepoint_ = ++last_savepoint_;
  std::int64_t code = result_code::kSuccess;
  for (const auto& part : ends_) {
    code = RunBody(name, part);
    if (code != result_code::kSuccess || run_.ended()) break;
  }
  return code;
}

bool Transaction::RewindEnds() {
  const bool body_is_true =
      ending_ && !run_.failed && run_.accesses.FirstInvalid(before_ends_.accesses) == nullptr;
  if (!body_is_true) return false;
  run_.Rewind();
  run_.actions.Truncate(before_ends_.actions);
  RollbackTo(before_ends_.undo, before_ends_.actions, ends_.size());
  ForgetAccesses(before_ends_.accesses);
  savepoint_ = 0;
  run_.durable = before_ends_.has_durable;
  tells_writes_ = before_ends_.tells_writes;
  return true;
}

// Those after the first `count`.
void Transaction::ForgetAccesses(std::size_t count) {
  if (run_.accesses.size() == count) return;
  ++serial_;  // Handles tell their records by number.
  for (std::size_t i = count; i < run_.accesses.size(); ++i) DisposeAccess(run_.accesses[i]);
  run_.accesses.Truncate(count);
}

void Transaction::DisposeAccess(Access& access) {
  const auto& values = access.table->values();
  if (access.working != nullptr) values.dispose(context_.participant, access.working);
  const bool own_copy = values.in_record() && access.committed != nullptr &&
                        access.committed != &internal::in_record_mark;
  if (own_copy) values.dispose(context_.participant, access.committed);
}

void Transaction::Reset() {
  for (Access& access : run_.accesses) DisposeAccess(access);
  for (const Undo& undo : undo_) {
    if (undo.content == nullptr) continue;
    const auto& values = run_.accesses[undo.access].table->values();
    values.dispose(context_.participant, undo.content);
  }
  ++serial_;  // Handles of this run are void.
  if (context_.pins.count() > kKeptAccessesMax) [[unlikely]]
    FreeScratch();
  context_.pins.Clear();
  run_.Reset();
  undo_.clear();
  ends_.clear();
  ending_ = false;
  tells_writes_ = false;
  savepoint_ = 0;
  last_savepoint_ = 0;
  last_generation_ = 0;
}

// The context is kept as long as its thread; what one large transaction needed is not.
[[gnu::noinline, gnu::cold]] void Transaction::FreeScratch() {
  context_.pins.Free();
  run_.FreeMemory();
  undo_ = {};
}

}  // namespace zeze
