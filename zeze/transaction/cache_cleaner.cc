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

#include "zeze/base/activity.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/record_map.h"
#include "zeze/transaction/table_base.h"

namespace zeze {

using internal::Context;
using internal::ContextLease;
using internal::Record;
using internal::RecordMap;
using internal::ValueHeader;
using internal::Word;

namespace {

constexpr auto kCleanPeriod = std::chrono::milliseconds(100);
constexpr auto kRoomWaitMax = std::chrono::seconds(30);
constexpr std::size_t kScanSlots = 1024;

constexpr std::size_t kAbsencesMin = 1024;
constexpr int kRestFactor = 15;  // Sweeps for absent records take a sixteenth of a core at most.

// A miss waits while the cache is more than this above its capacity.
constexpr std::size_t HighWater(std::size_t capacity) {
  return capacity + std::max<std::size_t>(capacity / 20, 4);
}

// How far a cache may be above its capacity because of records in use: a little more than there
// are, so that a sweep, which must pass over them, finds enough to be worth it.
constexpr std::size_t Allowance(std::size_t in_use) {
  return in_use + in_use / 16;
}

}  // namespace

void Engine::WakeCleaner() {
  const MutexLock lock(mutex_);
  if (std::exchange(clean_wanted_, true)) return;
  wake_.NotifyAll();
}

void Engine::CleanLoop() {
  SetThreadName("cache-cleaner");
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
  const std::size_t capacity = table.cache_capacity();
  if (!table.evicts() || table.cache().records.size() < capacity) return {};
  if (table.cache().records.size() < capacity + Allowance(RecordsInUse())) return {};
  const MutexLock lock(mutex_);
  if (!clean_wanted_) {
    clean_wanted_ = true;
    wake_.NotifyAll();
  }
  const auto deadline = options_.clock->Now() + kRoomWaitMax;
  while (table.cache().records.size() >= HighWater(capacity) + Allowance(RecordsInUse()) &&
         !stop_threads_) {
    if (options_.clock->WaitUntil(room_, mutex_, deadline)) continue;
    return Error(ErrorCode::kOverloaded,
                 fmt::format("the cache of table {} is full ({} records) and nothing can be "
                             "evicted: is the storage taking checkpoints?",
                             table.name(), table.cache().records.size()));
  }
  return {};
}

std::size_t Engine::RecordsInUse() const {
  std::size_t sum = 0;
  contexts_->ForEach([&sum](Context& context) { sum += context.pins.count(); });
  return sum;
}

void Engine::CleanCaches(Context& context) {
  bool crowded = false;
  bool unsaved = false;
  for (TableBase* table : tables_) {
    if (table->storage() == nullptr) ForgetAbsent(context, *table);
    if (!table->evicts() || table->cache().records.size() <= table->cache_capacity()) continue;
    crowded = true;
    if (CleanTable(context, *table)) unsaved = true;
  }
  if (!crowded) return;
  {
    const MutexLock lock(mutex_);
    room_.NotifyAll();
  }
  if (unsaved) checkpoint_->WantFlush();
}

// True: the cache is still too large, because of unsaved records.
bool Engine::CleanTable(Context& context, TableBase& table) {
  const std::size_t capacity = table.cache_capacity();
  const std::size_t in_use = RecordsInUse();
  if (table.cache().records.size() <= capacity + Allowance(in_use)) return false;
  const Swept swept = Sweep(context, table, capacity - capacity / 50 + in_use, false);
  return swept.unsaved != 0 && table.cache().records.size() > capacity + in_use;
}

// A table without a storage keeps its records, but not the keys that it was asked for in vain or
// that were removed.
void Engine::ForgetAbsent(Context& context, TableBase& table) {
  const std::size_t absences = table.cache().absences.load(std::memory_order_relaxed);
  if (absences <= std::max(kAbsencesMin, table.cache().records.size() / 4)) return;
  const auto begin = options_.clock->Now();
  if (begin < table.cache().rest_until) return;
  table.cache().absences.fetch_sub(absences, std::memory_order_relaxed);
  const Swept swept = Sweep(context, table, 0, true);
  table.cache().absences.fetch_add(swept.left, std::memory_order_relaxed);  // Next time, perhaps.
  const auto end = options_.clock->Now();
  table.cache().rest_until = end + kRestFactor * (end - begin);
}

// The hand passes over the records in slot order; what was used since it passed last stays once
// more. Two rounds at most, so that a cache full of unsaved records does not spin.
//
// What a running transaction uses stays: it was pinned before it was marked as accessed, and its
// pin is looked for after the mark was cleared, that is, not in the same round. A record that is
// opened just while it is evicted is looked for again, or costs its transaction another run.
Engine::Swept Engine::Sweep(Context& context, TableBase& table, std::size_t target,
                            bool absent_only) {
  std::vector<const Record*> in_use;
  const auto find_in_use = [&] {
    in_use.clear();
    contexts_->ForEach([&in_use](Context& other) { other.pins.AppendTo(in_use); });
    std::sort(in_use.begin(), in_use.end());
  };
  find_in_use();
  std::vector<Record*> records;
  std::size_t evicted = 0;
  std::size_t unsaved = 0;
  std::size_t left = 0;
  for (std::size_t shards = 0; shards < 2 * RecordMap::kShardCount;) {
    if (table.cache().records.size() <= target) break;
    records.clear();
    context.participant.Enter();
    table.cache().hand_slot =
        table.cache().records.Scan(context.participant, table.cache().hand_shard,
                                   table.cache().hand_slot, kScanSlots, records);
    for (Record* record : records) {
      if (absent_only && record->value.load(std::memory_order_relaxed) != nullptr) continue;
      Eviction eviction = Eviction::kInUse;
      if (record->accessed.load(std::memory_order_relaxed) != 0) {
        record->accessed.store(0, std::memory_order_relaxed);
      } else if (!std::binary_search(in_use.begin(), in_use.end(), record)) {
        eviction = TryEvict(context, table, *record);
      }
      const bool last_round = shards >= RecordMap::kShardCount;
      if (eviction == Eviction::kDone) ++evicted;
      if (eviction == Eviction::kUnsaved) ++unsaved;
      if (eviction != Eviction::kDone && last_round) ++left;
    }
    context.participant.Leave();
    if (table.cache().hand_slot == 0) {
      table.cache().hand_shard = (table.cache().hand_shard + 1) % RecordMap::kShardCount;
      if (++shards == RecordMap::kShardCount) find_in_use();
    }
  }
  table.cache().evictions.fetch_add(evicted, std::memory_order_relaxed);
  return {.unsaved = unsaved, .left = left};
}

// Only what the storage has and no repeated run wants (rule 3); or, without a storage, what is
// absent.
Engine::Eviction Engine::TryEvict(Context& context, TableBase& table, Record& record) {
  std::uint64_t word = 0;
  if (record.intent.load(std::memory_order_acquire) != 0) return Eviction::kInUse;
  if (!internal::TryLockRecord(record, word)) return Eviction::kInUse;
  const bool unsaved = record.Dirty(word) || record.aside != 0;
  const bool wanted =
      record.accessed.load(std::memory_order_relaxed) != 0 ||
      (table.storage() == nullptr && record.value.load(std::memory_order_relaxed) != nullptr);
  if (Word::Dead(word) || unsaved || wanted) {
    internal::UnlockRecord(record, word);
    return unsaved ? Eviction::kUnsaved : Eviction::kInUse;
  }
  versions_.NoteEvicted(Word::Version(word));
  record.word.store(Word::Make(context.NextVersion(), Word::RightOf(word), true) | Word::kDead,
                    std::memory_order_release);
  // A right that somebody is waiting for comes to the dead record, and nobody can use it: Global
  // believes at most too much. Waiting for it here would keep the other records.
  if (options_.coherence != nullptr && !table.memory() && Word::RightOf(word) != Right::kInvalid) {
    options_.coherence->Release(table.GlobalKey(record));
  }
  // Until here whoever looks for the key finds the dead record and waits.
  table.cache().records.Remove(context.participant, table.HashOf(record), &record);
  // Whoever still looks at the dead record must not find what is freed: Protect keeps only what can
  // be reached.
  ValueHeader* value = record.value.exchange(nullptr, std::memory_order_seq_cst);
  if (value != nullptr && !table.values().in_record()) {
    context.participant.Retire(value, value->birth_era, table.values().dispose);
  }
  if (checkpoint_->groups()) {
    limbo_.emplace_back(checkpoint_->epoch(), &record);
  } else {
    context.participant.Retire(&record, record.birth_era, table.record_disposer());
  }
  return Eviction::kDone;
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
