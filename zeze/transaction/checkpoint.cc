#include "zeze/transaction/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/asymmetric_fence.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/table_base.h"

namespace zeze {

using internal::CommitLog;
using internal::Context;
using internal::DurabilityTicket;
using internal::Record;
using internal::ValueHeader;
using internal::Word;

namespace {

constexpr std::uint64_t kUnbounded = std::uint64_t{1} << 62;

// Contexts take room in steps, so that a commit seldom asks. Small enough that what idle contexts
// keep is little of the whole.
constexpr std::uint64_t kRoomSteps = 16384;
constexpr std::int64_t kRoomStepMax = 32 << 10;

// A value that is longer makes its piece longer.
constexpr std::size_t kArenaPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kArenaPiecesKept = 4;

}  // namespace

Checkpoint::Checkpoint(Engine& engine, Options options)
    : engine_(engine),
      options_(std::move(options)),
      bytes_max_(options_.storage != nullptr ? options_.storage->limits().flush_bytes_max
                                             : kUnbounded),
      dirty_bytes_max_(std::min<std::uint64_t>(options_.dirty_bytes_max, bytes_max_ / 2)),
      room_step_(std::clamp<std::int64_t>(static_cast<std::int64_t>(dirty_bytes_max_ / kRoomSteps),
                                          1, kRoomStepMax)),
      last_success_(options_.clock->Now()),
      trouble_({.what = "the database does not take checkpoints",
                .over = "the database is back and takes checkpoints",
                .first_delay = options_.retry_delay,
                .delay_max = options_.retry_delay_max}) {
  nodes_.emplace_back();
}

// Tickets that nobody will complete any more. The records that logs and groups name are gone.
Checkpoint::~Checkpoint() {
  const auto drop = [](DurabilityTicket* ticket) {
    while (ticket != nullptr) {
      DurabilityTicket* next = ticket->next;
      if (ticket->owned) delete ticket;
      ticket = next;
    }
  };
  drop(loose_tickets_);
  for (const Node& node : nodes_) drop(node.tickets);
  engine_.contexts()->ForEach([&drop](Context& context) {
    for (const CommitLog& log : context.logs) {
      log.ForEach([&drop](const CommitLog::Entry& entry) { drop(entry.ticket()); });
    }
  });
}

void Checkpoint::Step(CheckpointStep step) const {
  if (options_.on_step) options_.on_step(step);
}

Result<void> Checkpoint::Flush(Scope scope) {
  const MutexLock lock(mutex_);
  while (running_) changed_.Wait(mutex_);
  if (abandoned_) return Error(ErrorCode::kShuttingDown, "nothing is saved any more");
  return RunExclusive(scope);
}

Result<void> Checkpoint::FlushAll() {
  return Flush(Scope::kEverything);
}

void Checkpoint::Drain() {
  const MutexLock lock(mutex_);
  if (running_ || abandoned_) return;
  static_cast<void>(RunExclusive(Scope::kNothing).ok());
}

Result<void> Checkpoint::FlushUrgent() {
  const MutexLock lock(mutex_);
  while (running_) changed_.Wait(mutex_);
  if (abandoned_ || !urgent_) return {};
  return RunExclusive(Scope::kUrgent);
}

void Checkpoint::WantUrgent() {
  const MutexLock lock(mutex_);
  WakeForUrgent();
}

void Checkpoint::WakeForUrgent() {
  urgent_ = true;
  engine_.WakeForUrgentFlush();
}

bool Checkpoint::Await(DurabilityTicket& ticket, FunctionRef<std::vector<Task>()> leftover) {
  const MutexLock lock(mutex_);
  const std::chrono::nanoseconds deadline = options_.clock->Now() + options_.durable_wait_max;
  while (!ticket.done.load(std::memory_order_acquire)) {
    if (abandoned_ || options_.clock->Now() >= deadline) {
      ticket.owned = true;  // A log or a group still names it.
      if (abandoned_) return false;
      std::vector<Task> more = leftover();
      engine_.waiting_actions_.fetch_add(more.size(), std::memory_order_relaxed);
      std::move(more.begin(), more.end(), std::back_inserter(ticket.actions));
      if (ticket.order == 0) ticket.order = NextActionOrder();
      return false;
    }
    // The checkpoint's own thread flushes: a storage that hangs must not keep the caller.
    if (!running_) WakeForUrgent();
    options_.clock->WaitUntil(changed_, mutex_, deadline);
  }
  return true;
}

void Checkpoint::AwaitFlush(std::chrono::nanoseconds until) {
  const MutexLock lock(mutex_);
  options_.clock->WaitUntil(changed_, mutex_, until);
}

std::chrono::nanoseconds Checkpoint::next_try() const {
  const MutexLock lock(mutex_);
  return trouble_.active() ? trouble_.next_try() : kNoTrouble;
}

void Checkpoint::Abandon() {
  const MutexLock lock(mutex_);
  abandoned_ = true;
  overloaded_ = false;
  changed_.NotifyAll();
}

Result<void> Checkpoint::RunExclusive(Scope scope) {
  const auto begin = options_.clock->Now();
  running_ = true;
  running_since_ = begin;
  if (scope != Scope::kNothing) urgent_ = false;
  mutex_.Unlock();
  Result<Done> result = Run(scope);
  const auto end = options_.clock->Now();
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
  // Waiters own their tickets from the moment they are done: take out what is needed before.
  std::vector<Task> then;
  std::vector<std::pair<std::uint64_t, std::vector<Task>>> actions;
  while (finished != nullptr) {
    DurabilityTicket* ticket = std::exchange(finished, finished->next);
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
  for (auto& [order, tasks] : actions) engine_.PostActions(std::move(tasks));
  running_ = false;
  changed_.NotifyAll();
  if (!then.empty()) {
    mutex_.Unlock();
    for (Task& task : then) task();
    mutex_.Lock();
  }
  if (fenced) {
    mutex_.Unlock();
    engine_.Fenced(result.error().message());
    mutex_.Lock();
  }
  if (!result.ok()) return result.error();
  return {};
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
  trouble_.Failed(error.message(), options_.clock->Now(), running_since_);
}

Result<Checkpoint::Done> Checkpoint::Run(Scope scope) {
  const std::uint64_t cut = AdvanceEpoch();
  Step(CheckpointStep::kEpochAdvanced);
  DrainLogs(cut);
  Step(CheckpointStep::kLogsDrained);
  if (scope == Scope::kNothing) return Done{};

  ChooseMembers(scope);
  Gather(cut);
  Step(CheckpointStep::kEncoded);
  if (Result<void> written = Write(); !written.ok()) return written.error();
  // Inside until the end: a record that is clean may be evicted at once, and is looked at once
  // more.
  const internal::ContextLease context(engine_.contexts());
  context->participant.Enter();
  MarkClean(context->participant, cut);
  Step(CheckpointStep::kMarkedClean);
  Done done{.records = items_.size(),
            .bytes = arena_bytes_,
            .written = !writes_.empty(),
            .tickets = ForgetMembers()};
  context->participant.Leave();
  TrimArena();
  return done;
}

// After this every commit of an epoch up to the returned one is complete: installed and logged
// (rule 24). Commits are short and never wait, so neither does this for long.
std::uint64_t Checkpoint::AdvanceEpoch() {
  const std::uint64_t cut = epoch_.load(std::memory_order_relaxed);
  epoch_.store(cut + 1, std::memory_order_seq_cst);
  HeavyFence();  // Every commit has announced its epoch by now, or will find the new one.
  engine_.contexts()->ForEach([cut](Context& context) {
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
  engine_.contexts()->ForEach([this, epoch](Context& context) {
    CommitLog& log = context.logs[epoch & 1];
    log.ForEach([this](const CommitLog::Entry& entry) { Take(entry); });
    log.Clear();
  });
  drained_epoch_.store(epoch, std::memory_order_release);
}

void Checkpoint::Take(const CommitLog::Entry& entry) {
  std::uint32_t root = 0;
  for (std::size_t n = 0; n < entry.size(); ++n) {
    const std::uint32_t node = NodeOf(entry.record(n));
    if (node == 0) continue;
    if (options_.groups) root = root == 0 ? Find(node) : Union(root, Find(node));
  }
  if (entry.ticket() != nullptr) Attach(root, entry.ticket());
}

// A record that is clean by now is in the storage with all it depended on: no tie any more.
std::uint32_t Checkpoint::NodeOf(Record* record) {
  if (record->node != 0) return record->node;
  if (!record->Dirty(record->word.load(std::memory_order_acquire))) return 0;
  std::uint32_t node = 0;
  if (free_nodes_.empty()) {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    node = free_nodes_.back();
    free_nodes_.pop_back();
  }
  nodes_[node] = {.parent = node, .next = node, .size = 1, .record = record, .tickets = nullptr};
  record->node = node;
  return node;
}

std::uint32_t Checkpoint::Find(std::uint32_t node) {
  while (nodes_[node].parent != node) {
    nodes_[node].parent = nodes_[nodes_[node].parent].parent;
    node = nodes_[node].parent;
  }
  return node;
}

std::uint32_t Checkpoint::Union(std::uint32_t a, std::uint32_t b) {
  if (a == b) return a;
  if (nodes_[a].size < nodes_[b].size) std::swap(a, b);
  Node& root = nodes_[a];
  Node& other = nodes_[b];
  other.parent = a;
  root.size += other.size;
  std::swap(root.next, other.next);  // Two rings become one.
  if (other.tickets != nullptr) {
    DurabilityTicket* last = other.tickets;
    while (last->next != nullptr) last = last->next;
    last->next = root.tickets;
    root.tickets = std::exchange(other.tickets, nullptr);
  }
  return a;
}

void Checkpoint::Attach(std::uint32_t root, DurabilityTicket* ticket) {
  if (root == 0) {
    ticket->next = std::exchange(loose_tickets_, ticket);
    return;
  }
  if (ticket->urgent) urgent_nodes_.push_back(root);
  ticket->next = std::exchange(nodes_[root].tickets, ticket);
}

void Checkpoint::ChooseMembers(Scope scope) {
  members_.clear();
  if (scope == Scope::kEverything || !options_.groups) {
    for (std::uint32_t i = 1; i < nodes_.size(); ++i) {
      if (nodes_[i].record != nullptr) members_.push_back(i);
    }
    return;
  }
  // Not by a look at all nodes: a small group is saved beside a million records that can wait.
  std::vector<std::uint32_t> roots;
  roots.reserve(urgent_nodes_.size());
  for (const std::uint32_t node : urgent_nodes_) roots.push_back(Find(node));
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  for (const std::uint32_t root : roots) {
    std::uint32_t member = root;
    do {
      members_.push_back(member);
      member = nodes_[member].next;
    } while (member != root);
  }
}

void Checkpoint::Gather(std::uint64_t cut) {
  items_.clear();
  TrimArena();
  const internal::ContextLease context(engine_.contexts());
  for (const std::uint32_t member : members_) {
    GatherRecord(context->participant, nodes_[member].record, cut);
  }
  SortWrites();
}

// Takes the value the record had at the cut. Apart from the record it stays alive until MarkClean:
// the record is dirty, so a commit that replaces the value keeps it aside.
void Checkpoint::GatherRecord(internal::Participant& by, Record* record, std::uint64_t cut) {
  TableBase& table = engine_.table(record->table_index);
  const std::uint64_t word = internal::LockRecord(*record);
  const bool replaced = record->write_epoch > cut;
  const bool nothing = replaced && record->aside == 0;  // Clean at the cut, written after it.
  const ValueHeader* value =
      replaced ? reinterpret_cast<ValueHeader*>(record->aside & ~std::uintptr_t{1})
               : record->value.load(std::memory_order_relaxed);
  ValueHeader* copy = nullptr;
  if (!replaced && value != nullptr && table.values().in_record()) {
    copy = table.values().fetch(by, *record);
    value = copy;
  }
  internal::UnlockRecord(*record, word);
  if (nothing) return;

  ByteWriter& piece = ArenaPiece();
  Item item{.record = record,
            .table = &table,
            .piece = &piece,
            .key_begin = piece.size(),
            .key_size = 0,
            .value_size = 0,
            .remove = value == nullptr,
            .stored = table.storage() != nullptr};
  if (item.stored) {
    table.EncodeRecordKey(*record, piece);
    item.key_size = piece.size() - item.key_begin;
    if (value != nullptr) table.EncodeValue(*value, piece);
    item.value_size = piece.size() - item.key_begin - item.key_size;
    arena_bytes_ += item.key_size + item.value_size;
  }
  items_.push_back(item);
  if (copy != nullptr) table.values().dispose(by, copy);
}

ByteWriter& Checkpoint::ArenaPiece() {
  if (arena_used_ > 0 && arena_[arena_used_ - 1]->size() < kArenaPieceBytes) {
    return *arena_[arena_used_ - 1];
  }
  if (arena_used_ == arena_.size()) arena_.push_back(std::make_unique<ByteWriter>());
  ByteWriter& piece = *arena_[arena_used_++];
  if (arena_used_ > 1) piece.Reserve(kArenaPieceBytes);
  return piece;
}

// For the next flush; what a large one has needed is given back.
void Checkpoint::TrimArena() {
  if (arena_.size() > kArenaPiecesKept) arena_.resize(kArenaPiecesKept);
  for (std::unique_ptr<ByteWriter>& piece : arena_) {
    if (piece->size() > 2 * kArenaPieceBytes) piece = std::make_unique<ByteWriter>();
    piece->Clear();
  }
  arena_used_ = 0;
  arena_bytes_ = 0;
}

// Sorted writes go into RocksDB's memtable a third faster than random ones, and the storage
// interface asks for them.
void Checkpoint::SortWrites() {
  order_.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (!item.stored) continue;
    unsigned char bytes[8] = {};
    std::memcpy(bytes, item.key().data(), std::min<std::size_t>(8, item.key_size));
    std::uint64_t prefix = 0;
    for (const unsigned char byte : bytes) prefix = (prefix << 8) | byte;
    order_.push_back({prefix, static_cast<std::uint32_t>(i), item.record->table_index});
  }
  const auto key = [&](const Order& o) { return items_[o.item].key(); };
  std::sort(order_.begin(), order_.end(), [&](const Order& a, const Order& b) {
    if (a.table != b.table) return a.table < b.table;
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    return key(a) < key(b);
  });
  writes_.clear();
  for (const Order& o : order_) {
    const Item& item = items_[o.item];
    writes_.push_back({.table = item.table->storage(),
                       .key = key(o),
                       .value = item.value(),
                       .remove = item.remove});
  }
}

Result<void> Checkpoint::Write() {
  Step(CheckpointStep::kBeforeFlush);
  if (!writes_.empty()) {
    write_serial_.fetch_add(1, std::memory_order_seq_cst);
    Result<void> flushed = FlushWrites();
    write_serial_.fetch_add(1, std::memory_order_seq_cst);
    if (!flushed.ok()) return flushed;
  }
  Step(CheckpointStep::kAfterFlush);
  return {};
}

Result<void> Checkpoint::FlushWrites() {
  while (true) {
    Result<void> flushed = options_.storage->Flush(writes_, options_.sync);
    if (flushed.ok()) return flushed;
    if (flushed.error().code() != ErrorCode::kUnknownOutcome || abandoned_) {
      return flushed.error();
    }
    // Written or not: exactly the same again, before anything else (rule 32).
    const MutexLock lock(mutex_);
    NoteFailure(flushed.error());
    while (!abandoned_ && options_.clock->WaitUntil(changed_, mutex_, trouble_.next_try())) {
    }
    if (abandoned_) return flushed.error();
  }
}

// Only after the storage has it for certain (rule 30).
void Checkpoint::MarkClean(internal::Participant& by, std::uint64_t cut) {
  std::int64_t cleaned = 0;
  std::uint64_t bytes = 0;
  for (const Item& item : items_) {
    Record& record = *item.record;
    const std::uint64_t word = internal::LockRecord(record);
    if (auto* aside = reinterpret_cast<ValueHeader*>(record.aside & ~std::uintptr_t{1})) {
      by.Retire(aside, aside->birth_era, item.table->values().dispose);
    }
    record.aside = 0;
    if (record.write_epoch <= cut) {
      record.flushed_version.store(Word::Version(word), std::memory_order_release);
      ++cleaned;
      if (item.stored) {
        bytes += item.table->RowBytes(record, record.value.load(std::memory_order_relaxed));
        item.table->unsaved_inserts().Forget(item.key());
      }
    }
    internal::UnlockRecord(record, word);
  }
  dirty_.fetch_sub(cleaned);
  bytes_.fetch_sub(static_cast<std::int64_t>(bytes));
  Judge();
}

DurabilityTicket* Checkpoint::ForgetMembers() {
  DurabilityTicket* tickets = std::exchange(loose_tickets_, nullptr);
  const auto take = [&tickets](DurabilityTicket* list) {
    while (list != nullptr) {
      DurabilityTicket* next = std::exchange(list->next, tickets);
      tickets = std::exchange(list, next);
    }
  };
  for (const std::uint32_t member : members_) {
    Node& node = nodes_[member];
    take(node.tickets);
    node.record->node = 0;
    node = {};
    free_nodes_.push_back(member);
  }
  urgent_nodes_.clear();  // All of them were members.
  return tickets;
}

void Checkpoint::AddDirty(std::uint64_t count) {
  const auto added = static_cast<std::int64_t>(count);
  const std::int64_t dirty = dirty_.fetch_add(added) + added;
  Judge();
  if (dirty > static_cast<std::int64_t>(options_.dirty_records_max / 2)) engine_.WantFlush();
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
  if (before + taken > static_cast<std::int64_t>(dirty_bytes_max_ / 2)) engine_.WantFlush();
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
  const std::chrono::nanoseconds begin = options_.clock->Now();
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
    const std::chrono::nanoseconds now = options_.clock->Now();
    if (now >= since + options_.room_wait_max) {
      granted = NoRoom(now - since);
      break;
    }
    engine_.WantFlush();
    options_.clock->WaitUntil(changed_, mutex_, since + options_.room_wait_max);
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
  if (trouble_.active()) statistics.failing_for = options_.clock->Now() - trouble_.since();
  statistics.since_last_success = options_.clock->Now() - last_success_;
  if (running_) statistics.running_for = options_.clock->Now() - running_since_;
  return statistics;
}

}  // namespace zeze
