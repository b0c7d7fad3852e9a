#include "zeze/transaction/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/activity.h"
#include "zeze/base/asymmetric_fence.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/durable_actions.h"
#include "zeze/transaction/internal/engine_parts.h"
#include "zeze/transaction/internal/flush_batch.h"
#include "zeze/transaction/internal/record.h"

namespace zeze {

using internal::CommitLog;
using internal::Context;
using internal::DurabilityTicket;

namespace {

constexpr std::uint64_t kUnbounded = std::uint64_t{1} << 62;

// Contexts take room in steps, so that a commit seldom asks. Small enough that what idle contexts
// keep is little of the whole.
constexpr std::uint64_t kRoomSteps = 16384;
constexpr std::int64_t kRoomStepMax = 32 << 10;

constexpr auto kDrainPeriod = std::chrono::milliseconds(10);

}  // namespace

Checkpoint::Checkpoint(const internal::EngineParts& parts, internal::DurableActions& actions,
                       Options options)
    : parts_(parts),
      actions_(actions),
      options_(std::move(options)),
      bytes_max_(options_.storage != nullptr ? options_.storage->limits().flush_bytes_max
                                             : kUnbounded),
      dirty_bytes_max_(std::min<std::uint64_t>(options_.dirty_bytes_max, bytes_max_ / 2)),
      room_step_(std::clamp<std::int64_t>(static_cast<std::int64_t>(dirty_bytes_max_ / kRoomSteps),
                                          1, kRoomStepMax)),
      last_success_(parts_.clock.Now()),
      trouble_({.what = "the database does not take checkpoints",
                .over = "the database is back and takes checkpoints",
                .first_delay = options_.retry_delay,
                .delay_max = options_.retry_delay_max}),
      graph_(options_.groups),
      batch_(parts_.tables) {}

// Nobody completes the tickets in logs any more. The records that they name are gone.
Checkpoint::~Checkpoint() {
  Stop();
  parts_.contexts->ForEach([](Context& context) {
    for (const CommitLog& log : context.logs) {
      log.ForEach([](const CommitLog::Entry& entry) { internal::DropTickets(entry.ticket()); });
    }
  });
}

// --- the thread "checkpoint" ------------------------------------------------------------------

void Checkpoint::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Checkpoint::Stop() {
  {
    const MutexLock lock(wake_mutex_);
    stop_wanted_ = true;
    wake_.NotifyAll();
  }
  const bool other = thread_.joinable() && thread_.get_id() != std::this_thread::get_id();
  if (other) thread_.join();
}

void Checkpoint::WantFlush() {
  const MutexLock lock(wake_mutex_);
  if (std::exchange(flush_wanted_, true)) return;
  wake_.NotifyAll();
}

void Checkpoint::WantUrgent() {
  const MutexLock lock(mutex_);
  WakeForUrgent();
}

void Checkpoint::WakeForUrgent() {
  urgent_ = true;
  const MutexLock lock(wake_mutex_);
  if (std::exchange(urgent_wanted_, true)) return;
  wake_.NotifyAll();
}

void Checkpoint::Loop() {
  SetThreadName("checkpoint");
  const bool periodic = options_.period.count() > 0;
  constexpr auto kNever = std::chrono::nanoseconds::max();
  auto due = periodic ? parts_.clock.Now() + options_.period : kNever;
  while (true) {
    bool flush = false;
    bool urgent = false;
    {
      const MutexLock lock(wake_mutex_);
      const auto now = parts_.clock.Now();
      auto until = std::min(due, now + std::chrono::hours(1));
      if (options_.groups) until = std::min(until, now + kDrainPeriod);
      while (!stop_wanted_ && !flush_wanted_ && !urgent_wanted_ &&
             parts_.clock.WaitUntil(wake_, wake_mutex_, until)) {
      }
      if (stop_wanted_) return;
      flush = std::exchange(flush_wanted_, false);
      urgent = std::exchange(urgent_wanted_, false);
    }
    const auto now = parts_.clock.Now();
    if (now >= due) {
      flush = true;
      due = periodic ? now + options_.period : kNever;
    }
    if (!flush && !urgent) {
      Drain();
    } else if (now >= next_try()) {
      // NoteFailure reports what fails.
      static_cast<void>((flush ? FlushAll() : FlushUrgent()).ok());
    }
    // While the storage fails, everything waits for the next try.
    if (const auto again = next_try(); again > kNoTrouble) {
      due = std::min(due, again);
      continue;
    }
    if (flush && options_.on_saved) options_.on_saved();
  }
}

std::chrono::nanoseconds Checkpoint::next_try() const {
  const MutexLock lock(mutex_);
  return trouble_.active() ? trouble_.next_try() : kNoTrouble;
}

// --- who wants a flush, and who waits for one ---------------------------------------------------

Result<void> Checkpoint::FlushAll() {
  const MutexLock lock(mutex_);
  while (running_) changed_.Wait(mutex_);
  if (abandoned_) return Error(ErrorCode::kShuttingDown, "nothing is saved any more");
  return RunExclusive(Scope::kEverything);
}

Result<void> Checkpoint::FlushUrgent() {
  const MutexLock lock(mutex_);
  while (running_) changed_.Wait(mutex_);
  if (abandoned_ || !urgent_) return {};
  return RunExclusive(Scope::kUrgent);
}

void Checkpoint::Drain() {
  const MutexLock lock(mutex_);
  if (running_ || abandoned_) return;
  static_cast<void>(RunExclusive(Scope::kNothing).ok());
}

bool Checkpoint::Await(DurabilityTicket& ticket, FunctionRef<std::vector<Task>()> leftover) {
  const MutexLock lock(mutex_);
  const std::chrono::nanoseconds deadline = parts_.clock.Now() + options_.durable_wait_max;
  while (!ticket.done.load(std::memory_order_acquire)) {
    if (abandoned_ || parts_.clock.Now() >= deadline) {
      ticket.owned = true;  // A log or a group still names it.
      if (abandoned_) return false;
      std::vector<Task> more = leftover();
      actions_.Expect(more.size());
      std::move(more.begin(), more.end(), std::back_inserter(ticket.actions));
      if (ticket.order == 0) ticket.order = NextActionOrder();
      return false;
    }
    // The checkpoint's own thread flushes: a storage that hangs must not keep the caller.
    if (!running_) WakeForUrgent();
    parts_.clock.WaitUntil(changed_, mutex_, deadline);
  }
  return true;
}

void Checkpoint::AwaitFlush(std::chrono::nanoseconds until) {
  const MutexLock lock(mutex_);
  parts_.clock.WaitUntil(changed_, mutex_, until);
}

void Checkpoint::Abandon() {
  const MutexLock lock(mutex_);
  abandoned_ = true;
  overloaded_ = false;
  changed_.NotifyAll();
}

// --- one flush ---------------------------------------------------------------------------------

Result<void> Checkpoint::RunExclusive(Scope scope) {
  const auto begin = parts_.clock.Now();
  running_ = true;
  running_since_ = begin;
  if (scope != Scope::kNothing) urgent_ = false;
  mutex_.Unlock();
  Result<Done> result = Run(scope);
  const auto end = parts_.clock.Now();
  mutex_.Lock();

  DurabilityTicket* finished = nullptr;
  bool fenced = false;
  if (!result.ok()) {
    fenced = result.error().code() == ErrorCode::kFenced && !fenced_.exchange(true);
    NoteFailure(result.error());
    urgent_ = true;
  } else if (scope != Scope::kNothing) {
    const Done& done = result.value();
    ++statistics_.flushes;
    statistics_.records_flushed += done.records;
    statistics_.bytes_flushed += done.bytes;
    statistics_.last_duration = end - begin;
    if (scope == Scope::kEverything) last_success_ = begin;
    finished = done.tickets;
    if (done.written) trouble_.Over(end);
    if (refusing_ && !overloaded_) {
      refusing_ = false;
      ZEZE_LOG_WARNING("what was unsaved is saved: commits are taken again");
    }
  }
  std::vector<Task> then;
  Complete(finished, then);
  running_ = false;
  changed_.NotifyAll();
  if (!then.empty()) {
    mutex_.Unlock();
    for (Task& task : then) task();
    mutex_.Lock();
  }
  if (fenced) {
    mutex_.Unlock();
    Abandon();
    if (options_.on_fenced) options_.on_fenced(result.error().message());
    mutex_.Lock();
  }
  if (!result.ok()) return result.error();
  return {};
}

// Waiters own their tickets from the moment they are done: takes out before what is needed.
void Checkpoint::Complete(DurabilityTicket* tickets, std::vector<Task>& then) {
  std::vector<std::pair<std::uint64_t, std::vector<Task>>> actions;
  while (tickets != nullptr) {
    DurabilityTicket* ticket = std::exchange(tickets, tickets->next);
    if (ticket->then) then.push_back(std::move(ticket->then));
    if (!ticket->actions.empty()) {
      actions.emplace_back(ticket->order, std::move(ticket->actions));
    }
    const bool owned = ticket->owned;
    ticket->done.store(true, std::memory_order_release);
    if (owned) delete ticket;
  }
  // Before the next flush can end: the order of flushes is the order of their actions.
  std::sort(actions.begin(), actions.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [order, tasks] : actions) actions_.Post(std::move(tasks));
}

void Checkpoint::NoteFailure(const Error& error) {
  ++statistics_.failed_flushes;
  switch (error.code()) {
    case ErrorCode::kFenced:
      abandoned_ = true;
      return;
    case ErrorCode::kInvalidArgument:
      // Commits are checked so that this cannot be: the storage takes less than it said, or than it
      // took when the process started.
      ZEZE_LOG_CRITICAL(
          "the database refuses what was committed, and will refuse it again: {}. Nothing is saved "
          "until the database takes as much as its limits said, or the record is made smaller",
          error.message());
      break;
    case ErrorCode::kCorrupt:
      ZEZE_LOG_CRITICAL("the database is damaged, nothing can be saved any more: {}",
                        error.message());
      break;
    default:
      break;
  }
  trouble_.Failed(error.message(), parts_.clock.Now(), running_since_);
}

Result<Checkpoint::Done> Checkpoint::Run(Scope scope) {
  const std::uint64_t cut = AdvanceEpoch();
  Step(CheckpointStep::kEpochAdvanced);
  DrainLogs(cut);
  Step(CheckpointStep::kLogsDrained);
  if (scope == Scope::kNothing) return Done{};

  if (scope == Scope::kEverything) {
    graph_.ChooseAll();
  } else {
    graph_.ChooseUrgent();
  }
  batch_.Clear();
  {
    const internal::ContextLease context(parts_.contexts);
    for (std::size_t n = 0; n < graph_.chosen(); ++n) {
      batch_.Add(context->participant, graph_.record(n), cut);
    }
  }
  const std::span<const StorageWrite> writes = batch_.Sort();
  Step(CheckpointStep::kEncoded);
  if (Result<void> written = Write(writes); !written.ok()) return written.error();
  // Inside until the end: a record that is clean may be evicted immediately, and is looked at once
  // more.
  const internal::ContextLease context(parts_.contexts);
  context->participant.Enter();
  const internal::FlushBatch::Cleaned cleaned = batch_.MarkClean(context->participant, cut);
  dirty_.fetch_sub(cleaned.records);
  bytes_.fetch_sub(static_cast<std::int64_t>(cleaned.bytes));
  Judge();
  Step(CheckpointStep::kMarkedClean);
  Done done{.records = batch_.records(),
            .bytes = batch_.bytes(),
            .written = !writes.empty(),
            .tickets = graph_.ForgetChosen()};
  context->participant.Leave();
  batch_.Trim();
  return done;
}

// After this every commit of an epoch up to the returned one is complete: installed and logged
// (rule 24). Commits are short and never wait, so neither does this for long.
std::uint64_t Checkpoint::AdvanceEpoch() {
  const std::uint64_t cut = epoch_.load(std::memory_order_relaxed);
  epoch_.store(cut + 1, std::memory_order_seq_cst);
  HeavyFence();  // Every commit has announced its epoch by now, or will find the new one.
  parts_.contexts->ForEach([cut](Context& context) {
    internal::Backoff backoff;
    while (true) {
      const std::uint64_t at = context.epoch.load(std::memory_order_seq_cst);
      if (at == 0 || at > cut) return;
      backoff.Wait();
    }
  });
  return cut;
}

void Checkpoint::DrainLogs(std::uint64_t epoch) {
  parts_.contexts->ForEach([this, epoch](Context& context) {
    CommitLog& log = context.logs[epoch & 1];
    log.ForEach([this](const CommitLog::Entry& entry) { graph_.Take(entry); });
    log.Clear();
  });
  drained_epoch_.store(epoch, std::memory_order_release);
}

Result<void> Checkpoint::Write(std::span<const StorageWrite> writes) {
  Step(CheckpointStep::kBeforeFlush);
  if (!writes.empty()) {
    write_serial_.fetch_add(1, std::memory_order_seq_cst);
    Result<void> flushed = FlushWrites(writes);
    write_serial_.fetch_add(1, std::memory_order_seq_cst);
    if (!flushed.ok()) return flushed;
  }
  Step(CheckpointStep::kAfterFlush);
  return {};
}

Result<void> Checkpoint::FlushWrites(std::span<const StorageWrite> writes) {
  while (true) {
    Result<void> flushed = options_.storage->Flush(writes, options_.sync);
    if (flushed.ok()) return flushed;
    if (flushed.error().code() != ErrorCode::kUnknownOutcome || abandoned_) {
      return flushed.error();
    }
    // Written or not: exactly the same again, before anything else (rule 32).
    const MutexLock lock(mutex_);
    NoteFailure(flushed.error());
    while (!abandoned_ && parts_.clock.WaitUntil(changed_, mutex_, trouble_.next_try())) {
    }
    if (abandoned_) return flushed.error();
  }
}

void Checkpoint::Step(CheckpointStep step) const {
  if (options_.on_step) options_.on_step(step);
}

// --- room ---------------------------------------------------------------------------------------

void Checkpoint::AddDirty(std::uint64_t count) {
  const auto added = static_cast<std::int64_t>(count);
  const std::int64_t dirty = dirty_.fetch_add(added) + added;
  Judge();
  if (dirty > static_cast<std::int64_t>(options_.dirty_records_max / 2)) WantFlush();
}

void Checkpoint::Judge() {
  // Below zero while commits have not yet reported what a flush has cleaned already.
  const auto dirty = static_cast<std::uint64_t>(std::max<std::int64_t>(dirty_.load(), 0));
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes_.load(), 0));
  const bool full =
      dirty > options_.dirty_records_max || bytes > dirty_bytes_max_ || large_waiting_.load() > 0;
  if (full != overloaded_.load(std::memory_order_relaxed) && !abandoned_) overloaded_ = full;
}

bool Checkpoint::TakeRoom(Context& context, std::uint64_t bytes) {
  if (overloaded_ && !context.room_granted) return false;
  const std::int64_t missing = static_cast<std::int64_t>(bytes) - context.room;
  if (missing <= 0) return true;
  const std::int64_t taken = missing + room_step_;
  const std::int64_t before = bytes_.fetch_add(taken);
  if (before + taken > static_cast<std::int64_t>(bytes_max_)) {
    bytes_.fetch_sub(taken);
    return false;
  }
  context.room += taken;
  Judge();
  if (before + taken > static_cast<std::int64_t>(dirty_bytes_max_ / 2)) WantFlush();
  return true;
}

void Checkpoint::GiveRoom(Context& context) {
  bytes_.fetch_sub(std::exchange(context.room, 0));
  context.room_granted = false;
  const MutexLock lock(mutex_);
  Judge();
  changed_.NotifyAll();
}

bool Checkpoint::GrantRoom(Context& context, std::uint64_t bytes, bool large) {
  const auto unsaved = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes_.load(), 0));
  const auto dirty = static_cast<std::uint64_t>(std::max<std::int64_t>(dirty_.load(), 0));
  if (dirty > options_.dirty_records_max || unsaved + bytes > bytes_max_) return false;
  // One that needs more than is left beside the others comes before them; they wait until it went.
  if (!large && (unsaved > dirty_bytes_max_ || large_waiting_.load() > 0)) return false;
  const auto wanted = static_cast<std::int64_t>(bytes);
  if (bytes_.fetch_add(wanted) + wanted > static_cast<std::int64_t>(bytes_max_)) {
    bytes_.fetch_sub(wanted);
    return false;
  }
  context.room += wanted;
  context.room_granted = true;
  return true;
}

Result<void> Checkpoint::AwaitRoom(Context& context, std::uint64_t bytes) {
  GiveRoom(context);
  const std::chrono::nanoseconds begin = parts_.clock.Now();
  const bool large = bytes > bytes_max_ - dirty_bytes_max_;
  const MutexLock lock(mutex_);
  if (large) large_waiting_.fetch_add(1);
  Judge();
  Result<void> granted;
  while (!GrantRoom(context, bytes, large)) {
    if (abandoned_) {
      granted = Error(ErrorCode::kOverloaded, "nothing is saved any more");
      break;
    }
    // The time since when nothing is saved is everybody's: who comes late does not wait once more.
    std::chrono::nanoseconds since = begin;
    if (trouble_.active()) since = std::min(since, trouble_.since());
    if (running_) since = std::min(since, running_since_);
    const std::chrono::nanoseconds now = parts_.clock.Now();
    if (now >= since + options_.room_wait_max) {
      granted = NoRoom(now - since);
      break;
    }
    WantFlush();
    parts_.clock.WaitUntil(changed_, mutex_, since + options_.room_wait_max);
  }
  if (large) large_waiting_.fetch_sub(1);
  Judge();
  if (large) changed_.NotifyAll();
  return granted;
}

Error Checkpoint::NoRoom(std::chrono::nanoseconds waited) {
  const std::string why = fmt::format(
      "{} bytes of {} records are unsaved, and for {:.1f} s the database has not taken "
      "them{}{}",
      std::max<std::int64_t>(bytes_.load(), 0), std::max<std::int64_t>(dirty_.load(), 0),
      std::chrono::duration<double>(waited).count(), trouble_.active() ? ": " : "",
      trouble_.active() ? trouble_.message() : std::string());
  if (!std::exchange(refusing_, true)) {
    ZEZE_LOG_ERROR("commits are refused with kBusy from now on: {}", why);
  }
  return {ErrorCode::kOverloaded, why};
}

CheckpointStatistics Checkpoint::statistics() const {
  const MutexLock lock(mutex_);
  CheckpointStatistics statistics = statistics_;
  statistics.dirty_records =
      static_cast<std::uint64_t>(std::max<std::int64_t>(dirty_.load(std::memory_order_relaxed), 0));
  statistics.dirty_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(bytes_.load(std::memory_order_relaxed), 0));
  if (trouble_.active()) statistics.failing_for = parts_.clock.Now() - trouble_.since();
  statistics.since_last_success = parts_.clock.Now() - last_success_;
  if (running_) statistics.running_for = parts_.clock.Now() - running_since_;
  return statistics;
}

}  // namespace zeze
