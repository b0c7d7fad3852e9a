#include "zeze/transaction/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/asymmetric_fence.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/transaction/context.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/record.h"
#include "zeze/transaction/table_base.h"

namespace zeze {

using internal::Context;
using internal::DurabilityTicket;
using internal::Record;
using internal::ValueHeader;
using internal::Word;

Checkpoint::Checkpoint(Engine& engine, Options options)
    : engine_(engine), options_(std::move(options)), last_success_(options_.clock->Now()) {
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
    for (const internal::CommitLog& log : context.logs) {
      for (std::size_t i = 0; i < log.size(); i += 1 + (log[i] & 1) + (log[i] >> 1)) {
        if ((log[i] & 1) != 0) drop(reinterpret_cast<DurabilityTicket*>(log[i + 1]));
      }
    }
  });
}

void Checkpoint::Step(CheckpointStep step) const {
  if (options_.on_step) options_.on_step(step);
}

Result<void> Checkpoint::FlushAll() {
  const MutexLock lock(mutex_);
  while (running_) changed_.Wait(mutex_);
  if (abandoned_) return Error(ErrorCode::kShuttingDown, "nothing is saved any more");
  return RunExclusive(Scope::kEverything);
}

void Checkpoint::Drain() {
  const MutexLock lock(mutex_);
  if (running_ || abandoned_) return;
  static_cast<void>(RunExclusive(Scope::kNothing).ok());
}

void Checkpoint::FlushUrgent() {
  const MutexLock lock(mutex_);
  while (!abandoned_) {
    if (running_) {
      changed_.Wait(mutex_);
    } else if (RunExclusive(Scope::kUrgent).ok()) {
      return;
    } else if (!abandoned_) {
      options_.clock->WaitUntil(changed_, mutex_, options_.clock->Now() + options_.retry_delay);
    }
  }
}

bool Checkpoint::Await(DurabilityTicket& ticket) {
  const MutexLock lock(mutex_);
  while (!ticket.done.load(std::memory_order_acquire)) {
    if (abandoned_) {
      ticket.owned = true;  // A log or a group still names it.
      return false;
    }
    if (running_) {
      changed_.Wait(mutex_);
    } else if (const Result<void> result = RunExclusive(Scope::kUrgent); !result.ok()) {
      options_.clock->WaitUntil(changed_, mutex_, options_.clock->Now() + options_.retry_delay);
    }
  }
  return true;
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
  mutex_.Unlock();
  Result<Done> result = Run(scope);
  const auto end = options_.clock->Now();
  mutex_.Lock();

  DurabilityTicket* finished = nullptr;
  bool fenced = false;
  if (!result.ok()) {
    ++statistics_.failed_flushes;
    if (result.error().code() == ErrorCode::kFenced) {
      abandoned_ = true;
      fenced = !fenced_.exchange(true);
    } else {
      ZEZE_LOG_ERROR_EVERY(std::chrono::seconds(5),
                           "checkpoint failed, nothing is lost, it will be tried again: {}",
                           result.error().message());
    }
  } else if (scope != Scope::kNothing) {
    const Done& done = result.value();
    ++statistics_.flushes;
    statistics_.records_flushed += done.records;
    statistics_.bytes_flushed += done.bytes;
    statistics_.last_duration = end - begin;
    if (scope == Scope::kEverything) last_success_ = begin;
    finished = done.tickets;
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
  Done done{.records = items_.size(), .bytes = arena_.size(), .tickets = ForgetMembers()};
  context->participant.Leave();
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
    internal::CommitLog& log = context.logs[epoch & 1];
    DrainLog(log);
    log.clear();
  });
  drained_epoch_.store(epoch, std::memory_order_release);
}

void Checkpoint::DrainLog(internal::CommitLog& log) {
  for (std::size_t i = 0; i < log.size();) {
    const std::size_t count = log[i] >> 1;
    const bool has_ticket = (log[i] & 1) != 0;
    ++i;
    auto* ticket = has_ticket ? reinterpret_cast<DurabilityTicket*>(log[i++]) : nullptr;
    std::uint32_t root = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const std::uint32_t node = NodeOf(reinterpret_cast<Record*>(log[i++]));
      if (node == 0) continue;
      if (options_.groups) root = root == 0 ? Find(node) : Union(root, Find(node));
    }
    if (ticket != nullptr) Attach(root, ticket);
  }
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
  arena_.Clear();
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
  if (!replaced && value != nullptr && table.values_.in_record()) {
    copy = table.values_.fetch(by, *record);
    value = copy;
  }
  internal::UnlockRecord(*record, word);
  if (nothing) return;

  Item item{.record = record,
            .table = &table,
            .key_begin = arena_.size(),
            .key_size = 0,
            .value_size = 0,
            .remove = value == nullptr,
            .stored = table.storage_ != nullptr};
  if (item.stored) {
    table.EncodeRecordKey(*record, arena_);
    item.key_size = arena_.size() - item.key_begin;
    if (value != nullptr) table.EncodeValue(*value, arena_);
    item.value_size = arena_.size() - item.key_begin - item.key_size;
  }
  items_.push_back(item);
  if (copy != nullptr) table.values_.dispose(by, copy);
}

// Sorted writes go into RocksDB's memtable a third faster than random ones, and the storage
// interface asks for them.
void Checkpoint::SortWrites() {
  const std::string_view arena = arena_.view();
  order_.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (!item.stored) continue;
    unsigned char bytes[8] = {};
    std::memcpy(bytes, arena.data() + item.key_begin, std::min<std::size_t>(8, item.key_size));
    std::uint64_t prefix = 0;
    for (const unsigned char byte : bytes) prefix = (prefix << 8) | byte;
    order_.push_back({prefix, static_cast<std::uint32_t>(i), item.record->table_index});
  }
  const auto key = [&](const Order& o) {
    return arena.substr(items_[o.item].key_begin, items_[o.item].key_size);
  };
  std::sort(order_.begin(), order_.end(), [&](const Order& a, const Order& b) {
    if (a.table != b.table) return a.table < b.table;
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    return key(a) < key(b);
  });
  writes_.clear();
  for (const Order& o : order_) {
    const Item& item = items_[o.item];
    writes_.push_back({.table = item.table->storage_,
                       .key = key(o),
                       .value = arena.substr(item.key_begin + item.key_size, item.value_size),
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
    if (flushed.error().code() == ErrorCode::kCorrupt) {
      ZEZE_LOG_CRITICAL("the database is damaged, nothing can be saved any more: {}",
                        flushed.error().message());
    }
    if (flushed.error().code() != ErrorCode::kUnknownOutcome || abandoned_) {
      return flushed.error();
    }
    // Written or not: exactly the same again, before anything else (rule 32).
    options_.clock->SleepFor(options_.retry_delay);
  }
}

// Only after the storage has it for certain (rule 30).
void Checkpoint::MarkClean(internal::Participant& by, std::uint64_t cut) {
  std::int64_t cleaned = 0;
  for (const Item& item : items_) {
    Record& record = *item.record;
    const std::uint64_t word = internal::LockRecord(record);
    if (auto* aside = reinterpret_cast<ValueHeader*>(record.aside & ~std::uintptr_t{1})) {
      by.Retire(aside, aside->birth_era, item.table->values_.dispose);
    }
    record.aside = 0;
    if (record.write_epoch <= cut) {
      record.flushed_version.store(Word::Version(word), std::memory_order_release);
      ++cleaned;
      if (item.stored) {
        item.table->ForgetUnsavedInsert(arena_.view().substr(item.key_begin, item.key_size));
      }
    }
    internal::UnlockRecord(record, word);
  }
  if (!items_.empty()) bytes_per_record_ = arena_.size() / items_.size() + 1;
  dirty_.fetch_sub(cleaned);
  AddDirty(0);
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
  // Below zero while commits have not yet reported what a flush has cleaned already.
  const auto dirty =
      static_cast<std::uint64_t>(std::max<std::int64_t>(dirty_.fetch_add(added) + added, 0));
  const std::uint64_t max = engine_.options().dirty_records_max;
  const std::uint64_t bytes_max =
      options_.storage != nullptr ? options_.storage->limits().flush_bytes_max / 2 : ~0ULL;
  const bool full = dirty > max || dirty * bytes_per_record_ > bytes_max;
  if (full != overloaded_.load(std::memory_order_relaxed) && !abandoned_) overloaded_ = full;
  if (dirty > max / 2 && count != 0) engine_.WantFlush();
}

void Checkpoint::AwaitCapacity() {
  engine_.WantFlush();
  const MutexLock lock(mutex_);
  while (overloaded_ && !abandoned_) changed_.Wait(mutex_);
}

CheckpointStatistics Checkpoint::statistics() const {
  const MutexLock lock(mutex_);
  CheckpointStatistics statistics = statistics_;
  statistics.dirty_records =
      static_cast<std::uint64_t>(std::max<std::int64_t>(dirty_.load(std::memory_order_relaxed), 0));
  statistics.since_last_success = options_.clock->Now() - last_success_;
  if (running_) statistics.running_for = options_.clock->Now() - running_since_;
  return statistics;
}

}  // namespace zeze
