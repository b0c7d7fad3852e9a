// RecordMap: the hash table from keys to records. Finding takes no lock, so that the cache misses
// of a transaction's lookups overlap; adding and removing lock one shard.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "zeze/transaction/reclaimer.h"
#include "zeze/transaction/record.h"

namespace zeze::internal {

// Open addressing with linear probing. A slot is 16 bits of hash above a 48-bit pointer, so most
// probes of other keys are decided without touching their records. Slots of removed records stay
// as tombstones until the shard is rebuilt.
//
// Callers are inside a participant (Enter) and pass it.
class RecordMap {
 public:
  static constexpr std::size_t kShardCount = 64;

  RecordMap();
  // The owner has disposed of the records.
  ~RecordMap();
  RecordMap(const RecordMap&) = delete;
  RecordMap& operator=(const RecordMap&) = delete;

  // The record for which equal(record) holds, or null. `hash` must be well mixed.
  template <typename Equal>
  Record* Find(Participant& by, std::uint64_t hash, const Equal& equal) const {
    const Shard& shard = ShardOf(hash);
    const Slots* slots = by.Protect(shard.slots);
    const std::uint64_t tag = TagOf(hash);
    for (std::size_t i = hash & slots->mask;; i = (i + 1) & slots->mask) {
      const std::uint64_t slot = by.Protect(slots->at[i]);
      if (slot == 0) return nullptr;
      if ((slot & kTagMask) != tag || slot == kTombstone) continue;
      Record* record = RecordIn(slot);
      if (equal(*record)) return record;
    }
  }

  // Calls for the cache line that Find will read first.
  void PrefetchSlot(Participant& by, std::uint64_t hash) const {
    const Slots* slots = by.Protect(ShardOf(hash).slots);
    __builtin_prefetch(&slots->at[hash & slots->mask]);
  }
  // The record most likely meant, without looking at it; may be another key's, may be null.
  Record* Guess(Participant& by, std::uint64_t hash) const {
    const Slots* slots = by.Protect(ShardOf(hash).slots);
    const std::uint64_t tag = TagOf(hash);
    for (std::size_t i = hash & slots->mask;; i = (i + 1) & slots->mask) {
      const std::uint64_t slot = by.Protect(slots->at[i]);
      if (slot == 0) return nullptr;
      if ((slot & kTagMask) == tag && slot != kTombstone) return RecordIn(slot);
    }
  }

  // The record already there, or the one that create() returns, added. Adding is atomic.
  template <typename Equal, typename Create>
  Record* FindOrAdd(Participant& by, std::uint64_t hash, const Equal& equal, const Create& create) {
    Shard& shard = ShardOf(hash);
    const std::lock_guard lock(shard.mutex);
    if (Record* found = Find(by, hash, equal)) return found;
    Record* record = create();
    AddLocked(by, shard, hash, record);
    size_.fetch_add(1, std::memory_order_relaxed);
    return record;
  }

  // Unlinks exactly this record. The caller retires it.
  void Remove(Participant& by, std::uint64_t hash, Record* record);

  // Forgets all records. Nobody else is using the map.
  void Clear();

  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  // Appends the records of slots [from, from + count) of a shard; returns the next position, or 0
  // when the shard is done. Records added or removed meanwhile may be missed.
  std::size_t Scan(Participant& by, std::size_t shard, std::size_t from, std::size_t count,
                   std::vector<Record*>& records) const;

 private:
  struct Slots {
    std::uint64_t birth_era;
    std::size_t mask;
    std::size_t bytes;
    std::atomic<std::uint64_t> at[1];
  };

  struct alignas(64) Shard {
    std::atomic<Slots*> slots = nullptr;
    std::mutex mutex;
    // Guarded by mutex: slots in use, tombstones included, and records.
    std::size_t used = 0;
    std::size_t live = 0;
  };

  static constexpr std::uint64_t kTagMask = std::uint64_t{0xffff} << 48;
  static constexpr std::uint64_t kTombstone = 1;
  static constexpr std::size_t kSlotsMin = 16;

  static std::uint64_t TagOf(std::uint64_t hash) { return hash & kTagMask; }
  static Record* RecordIn(std::uint64_t slot) {
    return reinterpret_cast<Record*>(slot & ~kTagMask);
  }
  Shard& ShardOf(std::uint64_t hash) { return shards_[(hash >> 40) % kShardCount]; }
  const Shard& ShardOf(std::uint64_t hash) const { return shards_[(hash >> 40) % kShardCount]; }

  static Slots* NewSlots(std::size_t count, std::uint64_t birth_era);
  static void DisposeSlots(Participant& by, void* slots);
  void AddLocked(Participant& by, Shard& shard, std::uint64_t hash, Record* record);
  void Rebuild(Participant& by, Shard& shard);

  std::array<Shard, kShardCount> shards_;
  std::atomic<std::size_t> size_ = 0;

 public:
  // How a rebuild learns the hash of a record; set once by the table.
  std::uint64_t (*hash_of)(const Record& record) = nullptr;
};

}  // namespace zeze::internal
