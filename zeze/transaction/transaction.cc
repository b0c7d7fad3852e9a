#include "zeze/transaction/transaction.h"

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include "zeze/base/clock.h"
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
#include "zeze/transaction/later_removal.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/table_base.h"

namespace zeze {

using internal::Access;
using internal::AccessState;
using internal::Backoff;
using internal::Record;
using internal::ValueHeader;
using internal::Word;

namespace {

// Up to here a transaction finds its accesses by looking at each, and checks all earlier reads at
// every new one; beyond, by a hash index, and if the new one may have changed since the last time.
constexpr std::size_t kLinearMax = 16;

// A transaction that had to look at so many records again advances the clock, which costs every
// writer a new block of versions, so that old changes can be told from new ones.
constexpr std::size_t kChecksMax = 256;
constexpr std::size_t kKeptAccessesMax = 16'384;

// Room for the runs of one transaction object.
constexpr int kSerialShift = 40;
std::atomic<std::uint64_t> transactions_made = 0;

// How long a first run lets a repeated one pass, and how long a repeated one waits for its turn.
constexpr int kIntentRoundsMax = 2000;
constexpr int kSpinningRounds = 64;  // Too short to look at a clock.
constexpr std::chrono::nanoseconds kIntentTimeMax = std::chrono::milliseconds(5);

// Waits for the intention of another one, but not for ever: it may wait for us. On a busy machine
// each round can take a time slice of everybody else, so time counts, too.
class IntentBackoff {
 public:
  bool Ended() {
    if (rounds_.rounds() >= kIntentRoundsMax) return true;
    if (rounds_.rounds() < kSpinningRounds) return false;
    const std::chrono::nanoseconds now = SystemClock().Now();
    if (begin_.count() == 0) begin_ = now;
    return now - begin_ > kIntentTimeMax;
  }
  void Wait() { rounds_.Wait(); }

 private:
  Backoff rounds_;
  std::chrono::nanoseconds begin_{0};
};

std::size_t HashPointer(const Record* record) {
  return static_cast<std::size_t>(
      (reinterpret_cast<std::uintptr_t>(record) >> 6) * 0x9e3779b97f4a7c15ULL >> 32);
}

}  // namespace

constinit thread_local internal::ThreadCalls internal::thread_calls;

Transaction::Transaction(Engine& engine, internal::Context& context)
    : engine_(engine), context_(context), serial_(++transactions_made << kSerialShift) {
  accesses_.reserve(kLinearMax);
}

Transaction::~Transaction() = default;

void Transaction::Begin(ProcedureName name, TransactionLevel level, int attempt) {
  failure_.clear();
  name_ = name.c_str();
  level_ = level;
  attempt_ = attempt;
}

inline Access* Transaction::FindAccess(const Record* record) {
  if (accesses_.size() <= kLinearMax) {
    for (Access& access : accesses_) {
      if (access.record == record) return &access;
    }
    return nullptr;
  }
  const std::size_t mask = index_.size() - 1;
  for (std::size_t i = HashPointer(record) & mask; index_[i] != 0; i = (i + 1) & mask) {
    if (accesses_[index_[i] - 1].record == record) return &accesses_[index_[i] - 1];
  }
  return nullptr;
}

inline Access& Transaction::AddAccess(TableBase& table, Record& record, std::uint64_t word,
                                      ValueHeader* value) {
  Access& access = accesses_.emplace_back();
  access.table = &table;
  access.record = &record;
  access.word = word;
  access.committed = value;
  const std::size_t count = accesses_.size();
  if (count <= kLinearMax) return access;

  // The index of the last large transaction is still there when this one becomes large.
  const bool first = count == kLinearMax + 1;
  const bool rebuild = first || count * 2 > index_.size();
  if (rebuild) index_.assign(first ? kLinearMax * 8 : index_.size() * 2, 0);
  IndexAccesses(rebuild ? 0 : count - 1);
  return access;
}

inline void Transaction::IndexAccesses(std::size_t from) {
  const std::size_t mask = index_.size() - 1;
  for (std::size_t n = from; n < accesses_.size(); ++n) {
    std::size_t i = HashPointer(accesses_[n].record) & mask;
    while (index_[i] != 0) i = (i + 1) & mask;
    index_[i] = static_cast<std::uint32_t>(n + 1);
  }
}

Access* Transaction::Open(TableBase& table, Record& record, bool for_write, bool overwrite) {
  if (aborted_ || failed_) throw TransactionAborted{};  // Swallowed before: it ends here again.
  if (Access* known = FindAccess(&record)) {
    if (known->unreadable && known->state == AccessState::kRead && !overwrite) [[unlikely]] {
      AbortUnreadable(*known);
    }
    known->shown |= !for_write;
    return known;
  }

  if (for_write && record.intent.load(std::memory_order_relaxed) != 0 && !HoldsIntent(&record)) {
    IntentBackoff backoff;
    while (record.intent.load(std::memory_order_relaxed) != 0 && !backoff.Ended()) backoff.Wait();
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
  }
  if (!pinned) context_.pins.Add(&record);
  // After the pin: whoever clears this and looks for pins then finds it (Cache::Sweep).
  if (record.accessed.load(std::memory_order_relaxed) == 0) {
    record.accessed.store(1, std::memory_order_relaxed);
  }
  const std::size_t count = accesses_.size();
  Access& access = AddAccess(table, record, word, value);  // First: a copy has an owner then.
  access.shown = !for_write;
  access.unreadable = unreadable;
  if (count < kLinearMax) {
    Revalidate(count);
  } else if (!context_.versions.UnchangedSince(moment_, Word::Version(word))) {
    checks_ += count;
    RevalidateAll();
  } else if ((count & (count - 1)) == 0) {
    RevalidateAll();  // A procedure that has lost its race does not go on for long.
  }
  return &access;
}

void Transaction::AbortUnreadable(const Access& access) {
  AbortFailed(
      result_code::kAbortException,
      fmt::format("record {} of table {} cannot be decoded: Put replaces it, Remove removes it",
                  access.table->FormatKey(*access.record), access.table->name()));
}

// User code never sees a mixed state: when it reads something new, everything it read before is
// still current, or was when the new one was last changed (rule 7).
void Transaction::Revalidate(std::size_t count) {
  if (Record* changed = FirstInvalid(count)) AbortConflict(changed);
}

void Transaction::RevalidateAll() {
  if (checks_ >= kChecksMax) {
    context_.versions.Advance();
    checks_ = 0;
  }
  moment_ = context_.versions.Now();
  Revalidate(accesses_.size());
}

Record* Transaction::FirstInvalid(std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    const Access& access = accesses_[i];
    std::uint64_t word = access.record->word.load(std::memory_order_seq_cst);
    if (word == access.word) continue;
    // Somebody is about to change it, or only to look at it (a flush): wait for the outcome.
    Backoff backoff;
    while (Word::Locked(word) && (word & ~Word::kLocked) == access.word) {
      backoff.Wait();
      word = access.record->word.load(std::memory_order_seq_cst);
    }
    if (word != access.word) return access.record;
  }
  return nullptr;
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
  const std::size_t count = accesses_.size();
  for (std::size_t i = 0; i < count; ++i) {
    TableBase& table = *accesses_[i].table;
    const Access& access = accesses_[i];
    const bool told = table.tells_writes() && IsWrite(access) && !access.removed_later;
    if (!told) continue;  // What was written as it was counts as well.
    ByteWriter key;
    table.EncodeRecordKey(*accesses_[i].record, key);
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
  if (aborted_ || failed_) throw TransactionAborted{};
  if (Record* changed = FirstInvalid(accesses_.size())) AbortConflict(changed);
  throw UsageError(message);
}

Access& Transaction::ResolveSlowly(const internal::Handle& handle) {
  Transaction* tx = handle.transaction;
  ZEZE_REQUIRE(tx != nullptr, "an empty record handle was used");
  ZEZE_REQUIRE(tx->BodyRunsHere() && tx->serial_ == handle.serial,
               "a record handle was used after its procedure had ended or on another thread: keep "
               "values, not handles");
  Access& access = tx->accesses_[handle.index];
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
  aborted_ = true;
  culprit_ = culprit;
  throw TransactionAborted{};
}

internal::Outcome Transaction::Fail(std::int64_t code, std::string message) {
  failed_ = true;
  failure_code_ = code;
  failure_ = std::move(message);
  return internal::Outcome::kFailed;
}

void Transaction::AbortFailed(std::int64_t code, std::string message) {
  Fail(code, std::move(message));
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
  if (!aborted_ && !failed_) {
    culprit_ = FirstInvalid(accesses_.size());
    aborted_ = culprit_ != nullptr;
  }
  if (aborted_ || failed_) return result_code::kAbortException;
  ZEZE_LOG_ERROR("procedure {} threw: {}", name.view(), what);
  failure_ = what;
  return result_code::kException;
}

std::int64_t Transaction::Call(ProcedureName name, ProcedureBody body, std::string* cause) {
  ZEZE_REQUIRE(BodyRunsHere(),
               fmt::format("procedure {} was called in a transaction that does not run on this "
                           "thread",
                           name.view()));
  const std::size_t undo_mark = undo_.size();
  const std::size_t action_mark = actions_.size();
  const std::size_t end_mark = ends_.size();
  const std::uint64_t outer = std::exchange(savepoint_, ++last_savepoint_);
  const char* outer_name = std::exchange(name_, name.c_str());
  const std::int64_t code = [&] {
    const ScopedActivity activity(name.c_str());
    return RunBody(name, body);
  }();
  name_ = outer_name;
  savepoint_ = outer;
  if (aborted_ || failed_) throw TransactionAborted{};  // Ends the outer procedures as well.
  if (code != result_code::kSuccess) RollbackTo(undo_mark, action_mark, end_mark);
  std::string failure = std::exchange(failure_, {});
  if (cause != nullptr) *cause = std::move(failure);
  return code;
}

void Transaction::RollbackTo(std::size_t undo_mark, std::size_t action_mark, std::size_t end_mark) {
  ends_.resize(end_mark);
  while (undo_.size() > undo_mark) {
    const Undo undo = undo_.back();
    undo_.pop_back();
    Access& access = accesses_[undo.access];
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
  std::size_t kept = action_mark;
  for (std::size_t i = action_mark; i < actions_.size(); ++i) {
    if (actions_[i].when == When::kRollback) actions_[i].when = When::kRolledBack;
    if (actions_[i].when != When::kRolledBack) continue;
    if (kept != i) actions_[kept] = std::move(actions_[i]);
    ++kept;
  }
  actions_.resize(kept);
}

void Transaction::Register(When when, Task action) {
  ZEZE_REQUIRE(CallRunsHere(),
               "an action was registered with a transaction that does not run on this thread");
  ZEZE_REQUIRE(static_cast<bool>(action), "an action must not be empty");
  actions_.push_back({when, std::move(action)});
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
  has_durable_ = true;
}

// --- last parts -------------------------------------------------------------------------------

void Transaction::EndWith(std::function<std::int64_t(Transaction&)> part) {
  ZEZE_REQUIRE(BodyRunsHere() && !ending_ && part != nullptr,
               "EndWith was called without a last part, in one, or when the procedure did not run");
  ends_.push_back(std::move(part));
}

void Transaction::Peek(FunctionRef<void()> look) {
  ZEZE_REQUIRE(BodyRunsHere(), "Peek was called when the procedure did not run");
  const std::size_t count = accesses_.size();
  const std::size_t undo = undo_.size();
  look();
  const bool wrote =
      undo_.size() != undo ||
      std::any_of(accesses_.begin() + static_cast<std::ptrdiff_t>(count), accesses_.end(), IsWrite);
  if (wrote) Refuse("a procedure wrote in Peek");
  ForgetAccesses(count);
}

std::int64_t Transaction::RunEnds(ProcedureName name) {
  if (aborted_ || failed_) return result_code::kAbortException;  // The body has swallowed it.
  ending_ = true;
  before_ends_ = {.accesses = accesses_.size(),
                  .undo = undo_.size(),
                  .actions = actions_.size(),
                  .has_durable = has_durable_,
                  .tells_writes = tells_writes_};
  ++serial_;  // Handles that are given now are void if this is repeated.
  savepoint_ = ++last_savepoint_;
  std::int64_t code = result_code::kSuccess;
  for (const auto& part : ends_) {
    code = RunBody(name, part);
    if (code != result_code::kSuccess || aborted_ || failed_) break;
  }
  return code;
}

bool Transaction::RewindEnds() {
  const bool body_is_true = ending_ && !failed_ && FirstInvalid(before_ends_.accesses) == nullptr;
  if (!body_is_true) return false;
  for (const std::uint32_t i : unchanged_) accesses_[i].state = AccessState::kEdited;
  actions_.resize(before_ends_.actions);
  RollbackTo(before_ends_.undo, before_ends_.actions, ends_.size());
  ForgetAccesses(before_ends_.accesses);
  unchanged_.clear();
  writes_.clear();
  dirty_reads_.clear();
  savepoint_ = 0;
  aborted_ = false;
  has_durable_ = before_ends_.has_durable;
  tells_writes_ = before_ends_.tells_writes;
  row_bytes_ = 0;
  no_room_ = false;
  culprit_ = nullptr;
  return true;
}

// Those after the first `count`.
void Transaction::ForgetAccesses(std::size_t count) {
  if (accesses_.size() == count) return;
  ++serial_;  // Handles tell their records by number.
  for (std::size_t i = count; i < accesses_.size(); ++i) DisposeAccess(accesses_[i]);
  accesses_.resize(count);
  moment_ = {};
  if (count <= kLinearMax) return;
  index_.assign(index_.size(), 0);
  IndexAccesses(0);
}

void Transaction::DisposeAccess(Access& access) {
  const auto& values = access.table->values();
  if (access.working != nullptr) values.dispose(context_.participant, access.working);
  const bool own_copy = values.in_record() && access.committed != nullptr &&
                        access.committed != &internal::in_record_mark;
  if (own_copy) values.dispose(context_.participant, access.committed);
}

void Transaction::RunActions(When outcome) {
  // An action may register more: by index, and moved out before it runs.
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    const When when = actions_[i].when;
    if (when != When::kRolledBack && when != outcome) continue;
    Task task = std::move(actions_[i].task);
    try {
      task();
    } catch (const std::exception& e) {
      ZEZE_LOG_ERROR("procedure {}: an action after its {} threw: {}", name_,
                     when == When::kCommit ? "commit" : "rollback", e.what());
    } catch (...) {
      ZEZE_LOG_ERROR("procedure {}: an action after its {} threw", name_,
                     when == When::kCommit ? "commit" : "rollback");
    }
  }
}

std::vector<Task> Transaction::TakeActionsAfterCommit() {
  std::vector<Task> tasks;
  for (Action& action : actions_) {
    if (action.when == When::kCommit) tasks.push_back(std::move(action.task));
  }
  std::erase_if(actions_, [](const Action& action) { return action.when == When::kCommit; });
  return tasks;
}

void Transaction::Reset() {
  for (Access& access : accesses_) DisposeAccess(access);
  for (const Undo& undo : undo_) {
    if (undo.content == nullptr) continue;
    const auto& values = accesses_[undo.access].table->values();
    values.dispose(context_.participant, undo.content);
  }
  ++serial_;  // Handles of this run are void.
  if (context_.pins.count() > kKeptAccessesMax) [[unlikely]]
    FreeScratch();
  context_.pins.Clear();
  accesses_.clear();
  undo_.clear();
  actions_.clear();
  ends_.clear();
  ending_ = false;
  unchanged_.clear();
  writes_.clear();
  dirty_reads_.clear();
  fresh_.clear();
  savepoint_ = 0;
  last_savepoint_ = 0;
  last_generation_ = 0;
  checks_ = 0;
  moment_ = {};
  aborted_ = false;
  failed_ = false;
  has_durable_ = false;
  row_bytes_ = 0;
  no_room_ = false;
  tells_writes_ = false;
  culprit_ = nullptr;
}

// The context is kept as long as its thread; what one large transaction needed is not.
[[gnu::noinline, gnu::cold]] void Transaction::FreeScratch() {
  context_.pins.Free();
  accesses_ = {};
  accesses_.reserve(kLinearMax);
  index_ = {};
  undo_ = {};
  writes_ = {};
  dirty_reads_ = {};
  fresh_ = {};
  garbage_ = {};
}

// --- intention locks (rule 23) ----------------------------------------------------------------

bool Transaction::HoldsIntent(const Record* record) const {
  return std::binary_search(intents_.begin(), intents_.end(), record);
}

// A procedure that lost a race announces what it wrote last time, so that first runs of others wait
// for it instead of beating it again. Local, ordered by address, given up after a bounded wait.
void Transaction::TakeIntents() {
  ReleaseIntents();
  std::vector<Record*> wanted;
  for (const Access& access : accesses_) {
    if (access.state != AccessState::kRead || access.record == culprit_) {
      wanted.push_back(access.record);
    }
  }
  std::sort(wanted.begin(), wanted.end());
  for (Record* record : wanted) {
    IntentBackoff backoff;
    std::uint8_t free = 0;
    bool taken = false;
    while (true) {
      taken = record->intent.compare_exchange_weak(free, 1, std::memory_order_acquire);
      if (taken || backoff.Ended()) break;
      backoff.Wait();
      free = 0;
    }
    if (taken) intents_.push_back(record);
  }
}

void Transaction::ReleaseIntents() {
  for (Record* record : intents_) record->intent.store(0, std::memory_order_release);
  intents_.clear();
}

}  // namespace zeze
