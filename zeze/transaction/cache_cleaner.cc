// The engine's background work: periodic checkpoints and eviction.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/context.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/record.h"
#include "zeze/transaction/record_map.h"
#include "zeze/transaction/table_base.h"

namespace zeze {

using internal::Context;
using internal::ContextLease;
using internal::Record;
using internal::RecordMap;
using internal::ValueHeader;
using internal::Word;

namespace {

constexpr auto kDrainPeriod = std::chrono::milliseconds(10);
constexpr auto kCleanPeriod = std::chrono::milliseconds(100);
constexpr auto kRoomWaitMax = std::chrono::seconds(30);
constexpr std::size_t kScanSlots = 1024;

// A miss waits while the cache is more than this above its capacity.
constexpr std::size_t HighWater(std::size_t capacity) {
  return capacity + std::max<std::size_t>(capacity / 20, 4);
}

}  // namespace

void Engine::WantFlush() {
  const MutexLock lock(mutex_);
  if (flush_wanted_) return;
  flush_wanted_ = true;
  wake_.NotifyAll();
}

void Engine::WantUrgentFlush() {
  const MutexLock lock(mutex_);
  if (urgent_wanted_) return;
  urgent_wanted_ = true;
  wake_.NotifyAll();
}

void Engine::CheckpointLoop() {
  const bool periodic = options_.checkpoint_period.count() > 0;
  const bool drains = checkpoint_->groups();
  constexpr auto kNever = std::chrono::nanoseconds::max();
  auto due = periodic ? options_.clock->Now() + options_.checkpoint_period : kNever;
  while (true) {
    bool flush = false;
    bool urgent = false;
    {
      const MutexLock lock(mutex_);
      const auto now = options_.clock->Now();
      auto until = std::min(due, now + std::chrono::hours(1));
      if (drains) until = std::min(until, now + kDrainPeriod);
      while (!stop_threads_ && !flush_wanted_ && !urgent_wanted_ &&
             options_.clock->WaitUntil(wake_, mutex_, until)) {
      }
      if (stop_threads_) return;
      flush = std::exchange(flush_wanted_, false);
      urgent = std::exchange(urgent_wanted_, false);
    }
    const auto now = options_.clock->Now();
    if (now >= due) {
      flush = true;
      due = periodic ? now + options_.checkpoint_period : kNever;
    }
    if (!flush && !urgent) {
      checkpoint_->Drain();
    } else if (now >= checkpoint_->next_try()) {
      // Failures are reported by the checkpoint.
      static_cast<void>((flush ? checkpoint_->FlushAll() : checkpoint_->FlushUrgent()).ok());
    }
    // While the storage fails, everything waits for the next try.
    if (const auto again = checkpoint_->next_try(); again > Checkpoint::kNoTrouble) {
      due = std::min(due, again);
      continue;
    }
    {
      const MutexLock lock(mutex_);
      clean_wanted_ = true;  // What was saved can be evicted.
      wake_.NotifyAll();
    }
  }
}

void Engine::CleanLoop() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      const auto until = options_.clock->Now() + kCleanPeriod;
      while (!stop_threads_ && !clean_wanted_ && options_.clock->WaitUntil(wake_, mutex_, until)) {
      }
      if (stop_threads_) return;
      clean_wanted_ = false;
    }
    const ContextLease context(contexts_);
    CleanCaches(*context);
    FreeLimbo(*context);
  }
}

Result<void> Engine::AwaitCacheRoom(TableBase& table) {
  const std::size_t capacity = table.options_.cache_capacity;
  if (capacity == 0 || table.memory() || table.records_.size() < capacity) return {};
  const MutexLock lock(mutex_);
  if (!clean_wanted_) {
    clean_wanted_ = true;
    wake_.NotifyAll();
  }
  const auto deadline = options_.clock->Now() + kRoomWaitMax;
  while (table.records_.size() >= HighWater(capacity) && !stop_threads_) {
    if (options_.clock->WaitUntil(room_, mutex_, deadline)) continue;
    return Error(ErrorCode::kOverloaded,
                 fmt::format("the cache of table {} is full ({} records) and nothing can be "
                             "evicted: is the storage taking checkpoints?",
                             table.name(), table.records_.size()));
  }
  return {};
}

void Engine::CleanCaches(Context& context) {
  for (TableBase* table : tables_) {
    const std::size_t capacity = table->options_.cache_capacity;
    if (capacity == 0 || table->memory()) continue;
    if (table->records_.size() <= capacity) continue;
    CleanTable(context, *table);
    const MutexLock lock(mutex_);
    room_.NotifyAll();
    if (table->records_.size() > capacity && !flush_wanted_) {
      flush_wanted_ = true;  // The rest is unsaved.
      wake_.NotifyAll();
    }
  }
}

// The hand passes over the records in slot order; what was used since it passed last stays once
// more. Two rounds at most, so that a cache full of unsaved records does not spin.
std::size_t Engine::CleanTable(Context& context, TableBase& table) {
  const std::size_t capacity = table.options_.cache_capacity;
  const std::size_t target = capacity - capacity / 50;
  std::vector<Record*> records;
  std::size_t evicted = 0;
  for (std::size_t shards = 0; shards < 2 * RecordMap::kShardCount;) {
    if (table.records_.size() <= target) break;
    records.clear();
    context.participant.Enter();
    table.hand_slot_ = table.records_.Scan(context.participant, table.hand_shard_, table.hand_slot_,
                                           kScanSlots, records);
    for (Record* record : records) {
      if (record->accessed.exchange(0, std::memory_order_relaxed) != 0) continue;
      if (TryEvict(context, table, *record)) ++evicted;
    }
    context.participant.Leave();
    if (table.hand_slot_ == 0) {
      table.hand_shard_ = (table.hand_shard_ + 1) % RecordMap::kShardCount;
      ++shards;
    }
  }
  table.evictions_.fetch_add(evicted, std::memory_order_relaxed);
  return evicted;
}

// Only what the storage has and no repeated run wants (rule 3).
bool Engine::TryEvict(Context& context, TableBase& table, Record& record) {
  std::uint64_t word = 0;
  if (record.intent.load(std::memory_order_acquire) != 0) return false;
  if (!internal::TryLockRecord(record, word)) return false;
  if (Word::Dead(word) || record.Dirty(word) || record.aside != 0) {
    internal::UnlockRecord(record, word);
    return false;
  }
  versions_.NoteEvicted(Word::Version(word));
  record.word.store(Word::Make(context.NextVersion(), Word::RightOf(word), true) | Word::kDead,
                    std::memory_order_release);
  // A right that somebody is waiting for comes to the dead record, and nobody can use it: Global
  // believes at most too much. Waiting for it here would keep the other records.
  if (options_.coherence != nullptr && Word::RightOf(word) != Right::kInvalid) {
    std::string key;
    GlobalKey(record, key);
    options_.coherence->Release(key);
  }
  // Until here whoever looks for the key finds the dead record and waits.
  table.records_.Remove(context.participant, table.HashOf(record), &record);
  // Whoever still looks at the dead record must not find what is freed: Protect keeps only what can
  // be reached.
  ValueHeader* value = record.value.exchange(nullptr, std::memory_order_seq_cst);
  if (value != nullptr && !table.values_.in_record()) {
    context.participant.Retire(value, value->birth_era, table.values_.dispose);
  }
  if (checkpoint_->groups()) {
    limbo_.emplace_back(checkpoint_->epoch(), &record);
  } else {
    context.participant.Retire(&record, record.birth_era, table.record_disposer());
  }
  return true;
}

// A log may name a record that was read unsaved, and that was saved and evicted since. It is freed
// when all logs of its time have been read.
void Engine::FreeLimbo(Context& context) {
  const std::uint64_t drained = checkpoint_->drained_epoch();
  std::size_t kept = 0;
  for (const auto& [epoch, record] : limbo_) {
    if (epoch > drained) {
      limbo_[kept++] = {epoch, record};
      continue;
    }
    context.participant.Retire(record, record->birth_era,
                               tables_[record->table_index]->record_disposer());
  }
  limbo_.resize(kept);
}

}  // namespace zeze
