#include "zeze/transaction/internal/cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/activity.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/engine_parts.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/record_map.h"
#include "zeze/transaction/table_base.h"

namespace zeze::internal {

namespace {

// --- the policy -------------------------------------------------------------------------------
//
// A clock: a hand passes over the records of a table in slot order. A record that was used since it
// passed last stays once more; one that nobody has used and nobody has pinned goes, if TryEvict
// finds that it may. Whatever is in use does not count against the capacity.

constexpr auto kCleanPeriod = std::chrono::milliseconds(100);
constexpr auto kRoomWaitMax = std::chrono::seconds(30);
// At most two rounds of the hand, so that a cache full of unsaved records does not spin.
constexpr std::size_t kRounds = 2;
constexpr std::size_t kScanSlots = 1024;

// How far a cache may be above its capacity because of records in use: a little more than there
// are, so that a sweep, which must pass over them, finds enough to be worth it.
constexpr std::size_t Allowance(std::size_t in_use) {
  return in_use + in_use / 16;
}

// Above this a table is swept,
constexpr std::size_t SweepAbove(std::size_t capacity, std::size_t in_use) {
  return capacity + Allowance(in_use);
}

// down to this.
constexpr std::size_t SweepTo(std::size_t capacity, std::size_t in_use) {
  return capacity - capacity / 50 + in_use;
}

// From here on a miss waits.
constexpr std::size_t WaitFrom(std::size_t capacity, std::size_t in_use) {
  return capacity + std::max<std::size_t>(capacity / 20, 4) + Allowance(in_use);
}

// Whether the hand, which passes now, would take the record. The pins were collected before this
// round, and a record is pinned before it is marked as accessed: if the mark was cleared in an
// earlier round, the pin of whoever uses the record is among them. `pinned` is sorted.
bool HandTakes(Record& record, const std::vector<const Record*>& pinned) {
  if (record.accessed.load(std::memory_order_relaxed) != 0) {
    record.accessed.store(0, std::memory_order_relaxed);
    return false;
  }
  return !std::binary_search(pinned.begin(), pinned.end(), &record);
}

// A table without a storage keeps its records, but not the keys that it was asked for in vain or
// that were removed. They are swept when they are so many and a quarter of the table, and the
// sweeps take a sixteenth of a core at most.
constexpr std::size_t kAbsencesMin = 1024;
constexpr int kRestFactor = 15;

bool TooManyAbsences(std::size_t absences, std::size_t records) {
  return absences > std::max(kAbsencesMin, records / 4);
}

}  // namespace

// --- the cleaner's thread ---------------------------------------------------------------------

Cache::Cache(const EngineParts& parts, Checkpoint& checkpoint)
    : parts_(parts), checkpoint_(checkpoint) {}

Cache::~Cache() {
  Stop();
  const ContextLease context(parts_.contexts);
  Participant& by = context->participant;
  by.Enter();
  std::vector<Record*> records;
  for (TableBase* table : parts_.tables) {
    for (std::size_t shard = 0; shard < RecordMap::kShardCount; ++shard) {
      records.clear();
      table->cache().records.Snapshot(by, shard, records);
      for (Record* record : records) {
        ValueHeader* value = record->value.load();
        if (value != nullptr && !table->values().in_record()) table->values().dispose(by, value);
        if (ValueHeader* aside = record->aside_value()) table->values().dispose(by, aside);
        table->record_disposer()(by, record);
      }
    }
    table->cache().records.Clear();
  }
  for (const auto& [epoch, record] : limbo_) parts_.TableOf(*record).record_disposer()(by, record);
  by.Leave();
}

void Cache::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Cache::Stop() {
  {
    const MutexLock lock(mutex_);
    stop_wanted_ = true;
    wake_.NotifyAll();
    room_.NotifyAll();
  }
  const bool other = thread_.joinable() && thread_.get_id() != std::this_thread::get_id();
  if (other) thread_.join();
}

void Cache::WakeCleaner() {
  const MutexLock lock(mutex_);
  if (std::exchange(clean_wanted_, true)) return;
  wake_.NotifyAll();
}

void Cache::Loop() {
  SetThreadName("cache-cleaner");
  while (true) {
    {
      const MutexLock lock(mutex_);
      const auto until = parts_.clock.Now() + kCleanPeriod;
      while (!stop_wanted_ && !clean_wanted_ && parts_.clock.WaitUntil(wake_, mutex_, until)) {
      }
      if (stop_wanted_) return;
      clean_wanted_ = false;
    }
    const ContextLease context(parts_.contexts);
    CleanAll(*context);
    FreeLimbo(*context);
  }
}

std::size_t Cache::size() const {
  std::size_t sum = 0;
  for (const TableBase* table : parts_.tables) sum += table->cache().records.size();
  return sum;
}

Result<void> Cache::AwaitRoom(const TableBase& table) {
  const std::size_t capacity = table.cache_capacity();
  const RecordMap& records = table.cache().records;
  if (!table.evicts() || records.size() < capacity) return {};
  if (records.size() < SweepAbove(capacity, RecordsInUse())) return {};
  const MutexLock lock(mutex_);
  if (!clean_wanted_) {
    clean_wanted_ = true;
    wake_.NotifyAll();
  }
  const auto deadline = parts_.clock.Now() + kRoomWaitMax;
  while (records.size() >= WaitFrom(capacity, RecordsInUse()) && !stop_wanted_) {
    if (parts_.clock.WaitUntil(room_, mutex_, deadline)) continue;
    return Error(ErrorCode::kOverloaded,
                 fmt::format("the cache of table {} is full ({} records) and nothing can be "
                             "evicted: is the storage taking checkpoints?",
                             table.name(), records.size()));
  }
  return {};
}

std::size_t Cache::RecordsInUse() const {
  std::size_t sum = 0;
  parts_.contexts->ForEach([&sum](Context& context) { sum += context.pins.count(); });
  return sum;
}

// --- eviction ---------------------------------------------------------------------------------

void Cache::CleanAll(Context& context) {
  bool crowded = false;
  bool unsaved = false;
  for (TableBase* table : parts_.tables) {
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
  if (unsaved) checkpoint_.WantFlush();
}

// True: the cache is still too large, because of unsaved records.
bool Cache::CleanTable(Context& context, TableBase& table) {
  const std::size_t capacity = table.cache_capacity();
  const std::size_t in_use = RecordsInUse();
  if (table.cache().records.size() <= SweepAbove(capacity, in_use)) return false;
  const Swept swept = Sweep(context, table, SweepTo(capacity, in_use), false);
  return swept.unsaved != 0 && table.cache().records.size() > capacity + in_use;
}

void Cache::ForgetAbsent(Context& context, TableBase& table) {
  TableCache& cache = table.cache();
  const std::size_t absences = cache.absences.load(std::memory_order_relaxed);
  if (!TooManyAbsences(absences, cache.records.size())) return;
  const auto begin = parts_.clock.Now();
  if (begin < cache.rest_until) return;
  cache.absences.fetch_sub(absences, std::memory_order_relaxed);
  const Swept swept = Sweep(context, table, 0, true);
  cache.absences.fetch_add(swept.left, std::memory_order_relaxed);  // Next time, perhaps.
  const auto end = parts_.clock.Now();
  cache.rest_until = end + kRestFactor * (end - begin);
}

Cache::Swept Cache::Sweep(Context& context, TableBase& table, std::size_t target,
                          bool absent_only) {
  TableCache& cache = table.cache();
  std::vector<const Record*> pinned;
  const auto collect_pins = [&] {
    pinned.clear();
    parts_.contexts->ForEach([&pinned](Context& other) { other.pins.AppendTo(pinned); });
    std::sort(pinned.begin(), pinned.end());
  };
  collect_pins();
  std::vector<Record*> records;
  std::size_t evicted = 0;
  Swept swept;
  for (std::size_t shards = 0; shards < kRounds * RecordMap::kShardCount;) {
    if (cache.records.size() <= target) break;
    const bool last_round = shards >= (kRounds - 1) * RecordMap::kShardCount;
    records.clear();
    context.participant.Enter();
    cache.hand_slot = cache.records.Scan(context.participant, cache.hand_shard, cache.hand_slot,
                                         kScanSlots, records);
    for (Record* record : records) {
      if (absent_only && record->value.load(std::memory_order_relaxed) != nullptr) continue;
      const Eviction eviction =
          HandTakes(*record, pinned) ? TryEvict(context, table, *record) : Eviction::kInUse;
      if (eviction == Eviction::kDone) ++evicted;
      if (eviction == Eviction::kUnsaved) ++swept.unsaved;
      if (eviction != Eviction::kDone && last_round) ++swept.left;
    }
    context.participant.Leave();
    if (cache.hand_slot == 0) {
      cache.hand_shard = (cache.hand_shard + 1) % RecordMap::kShardCount;
      if (++shards == RecordMap::kShardCount) collect_pins();
    }
  }
  cache.evictions.fetch_add(evicted, std::memory_order_relaxed);
  return swept;
}

// Only what the storage has and no repeated run wants (rule 3); or, without a storage, what is
// absent.
Cache::Eviction Cache::TryEvict(Context& context, TableBase& table, Record& record) {
  std::uint64_t word = 0;
  if (record.intent.load(std::memory_order_acquire) != 0) return Eviction::kInUse;
  if (!TryLockRecord(record, word)) return Eviction::kInUse;
  const bool unsaved = record.Dirty(word) || record.aside != 0;
  const bool wanted =
      record.accessed.load(std::memory_order_relaxed) != 0 ||
      (table.storage() == nullptr && record.value.load(std::memory_order_relaxed) != nullptr);
  if (Word::Dead(word) || unsaved || wanted) {
    UnlockRecord(record, word);
    return unsaved ? Eviction::kUnsaved : Eviction::kInUse;
  }
  parts_.versions.NoteEvicted(Word::Version(word));
  const std::uint64_t version = context.NextVersion();
  // A log may still name it: what is dead has nothing to be saved.
  record.flushed_version.store(version, std::memory_order_relaxed);
  record.word.store(Word::Make(version, Word::RightOf(word), true) | Word::kDead,
                    std::memory_order_release);
  // Blocks until Global has answered, and before that until an Acquire for this key that is under
  // way has ended: its right comes to the dead record, where nobody can use it, and is given back
  // with the record's own.
  if (parts_.coherence != nullptr && !table.memory() && Word::RightOf(word) != Right::kInvalid) {
    parts_.coherence->Release(table.GlobalKey(record));
  }
  // Until here whoever looks for the key finds the dead record and waits.
  table.cache().records.Remove(context.participant, table.HashOf(record), &record);
  // Whoever still looks at the dead record must not find what is freed: Protect keeps only what can
  // be reached.
  ValueHeader* value = record.value.exchange(nullptr, std::memory_order_seq_cst);
  if (value != nullptr && !table.values().in_record()) {
    context.participant.Retire(value, value->birth_era, table.values().dispose);
  }
  if (checkpoint_.groups()) {
    limbo_.emplace_back(checkpoint_.epoch(), &record);
  } else {
    context.participant.Retire(&record, record.birth_era, table.record_disposer());
  }
  return Eviction::kDone;
}

// A log may name a record that was read unsaved, and that was saved and evicted since. It is freed
// when all logs of its time have been read.
void Cache::FreeLimbo(Context& context) {
  const std::uint64_t drained = checkpoint_.drained_epoch();
  std::size_t kept = 0;
  for (const auto& [epoch, record] : limbo_) {
    if (epoch > drained) {
      limbo_[kept++] = {epoch, record};
      continue;
    }
    context.participant.Retire(record, record->birth_era,
                               parts_.TableOf(*record).record_disposer());
  }
  limbo_.resize(kept);
}

}  // namespace zeze::internal
