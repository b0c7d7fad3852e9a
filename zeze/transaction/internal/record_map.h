// RecordMap: the hash table from keys to records. Finding takes no lock, so that the cache misses
// of a transaction's lookups overlap; adding and removing lock one shard.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"

namespace zeze::internal {

// Open addressing with linear probing. A slot is 16 bits of hash above a 48-bit pointer, so most
// probes of other keys are decided without touching their records. Slots of removed records stay
// as tombstones until the shard is rebuilt. For values apart from their records a second array says
// where the value was last seen, so that the cache misses of record and value overlap: only a hint,
// true or not.
//
// Callers are inside a participant (Enter) and pass it.
class RecordMap {
 public:
  static constexpr std::size_t kShardCount = 64;

  explicit RecordMap(bool hints);
  // The owner has disposed of the records.
  ~RecordMap();
  RecordMap(const RecordMap&) = delete;
  RecordMap& operator=(const RecordMap&) = delete;

  using ValueHint = std::atomic<const void*>;

  struct Found {
    Record* record = nullptr;
    // To be kept true by whoever changes the value; valid until Leave. Null: values are in records.
    ValueHint* hint = nullptr;
  };

  // The record for which equal(record) holds, or null. `hash` must be well mixed.
  template <typename Equal>
  Record* Find(Participant& by, std::uint64_t hash, const Equal& equal) const {
    return FindSlot(by, hash, equal, [](const Place&) {}).record;
  }

  // The same, calling for the record and its value at once.
  template <typename Equal>
  Found FindAndFetch(Participant& by, std::uint64_t hash, const Equal& equal, ValuePlace place,
                     bool for_write) const {
    const Place found = FindSlot(by, hash, equal, [=](const Place& candidate) {
      if (for_write) PrefetchForWrite(candidate.record);
      FetchValue(candidate, place, for_write);
    });
    const bool hinted = !place.in_record && found.record != nullptr;
    return {found.record, hinted ? &found.hint() : nullptr};
  }

  // Calls for the cache line that Find will read first.
  void PrefetchSlot(Participant& by, std::uint64_t hash, ValuePlace place) const {
    Slots* slots = by.Protect(ShardOf(hash).slots);
    __builtin_prefetch(&slots->entries()[hash & slots->mask]);
    if (!place.in_record) __builtin_prefetch(&slots->hints()[hash & slots->mask]);
  }
  // Calls for the record most likely meant and its value, without looking at them.
  void PrefetchRecord(Participant& by, std::uint64_t hash, ValuePlace place) const {
    FindSlot(
        by, hash, [](const Record&) { return true; },
        [=](const Place& candidate) {
          __builtin_prefetch(candidate.record);
          FetchValue(candidate, place, false);
        });
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

  // Appends all records of a shard as of one moment: a key that is there has one record. Nothing is
  // added to the shard or removed meanwhile.
  void Snapshot(Participant& by, std::size_t shard, std::vector<Record*>& records) const;

  // Appends the records of slots [from, from + count) of a shard; returns the next position, or 0
  // when the shard is done. Positions change when a shard grows: then records may be missed, or
  // appended twice.
  std::size_t Scan(Participant& by, std::size_t shard, std::size_t from, std::size_t count,
                   std::vector<Record*>& records) const;

 private:
  // Followed by the entries and then by as many hints, or none: apart, because the entries alone
  // fit the cache better.
  struct Slots {
    std::uint64_t birth_era;
    std::size_t mask;
    std::size_t bytes;

    std::atomic<std::uint64_t>* entries() {
      return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1);
    }
    ValueHint* hints() { return reinterpret_cast<ValueHint*>(entries() + mask + 1); }
  };

  struct Place {
    Record* record = nullptr;
    Slots* slots = nullptr;
    std::size_t slot = 0;

    ValueHint& hint() const { return slots->hints()[slot]; }  // If the map has hints.
  };

  struct alignas(64) Shard {
    std::atomic<Slots*> slots = nullptr;
    mutable std::mutex mutex;
    // Guarded by mutex: slots in use, tombstones included, and records.
    std::size_t used = 0;
    std::size_t live = 0;
  };

  static constexpr std::uint64_t kTagMask = std::uint64_t{0xffff} << 48;
  static constexpr std::uint64_t kTombstone = 1;
  static constexpr std::size_t kSlotsMin = 16;
  static constexpr std::size_t kRebuildAhead = 16;

  static constexpr std::size_t kFetchBytesMax = 256;

  static void FetchValue(const Place& found, ValuePlace place, bool for_write) {
    const char* at = place.in_record
                         ? reinterpret_cast<const char*>(found.record) + sizeof(Record)
                         : static_cast<const char*>(found.hint().load(std::memory_order_relaxed));
    for (std::size_t i = 0; i < place.bytes && i < kFetchBytesMax; i += 64) {
      if (for_write) {
        PrefetchForWrite(at + i);
      } else {
        __builtin_prefetch(at + i);
      }
    }
  }

  template <typename Equal, typename Candidate>
  Place FindSlot(Participant& by, std::uint64_t hash, const Equal& equal,
                 const Candidate& candidate) const {
    Slots* slots = by.Protect(ShardOf(hash).slots);
    const std::uint64_t tag = TagOf(hash);
    for (std::size_t i = hash & slots->mask;; i = (i + 1) & slots->mask) {
      const std::uint64_t entry = by.Protect(slots->entries()[i]);
      if (entry == 0) return {};
      if ((entry & kTagMask) != tag || entry == kTombstone) continue;
      const Place place = {RecordIn(entry), slots, i};
      candidate(place);
      if (equal(*place.record)) return place;
    }
  }

  static std::uint64_t TagOf(std::uint64_t hash) { return hash & kTagMask; }
  static Record* RecordIn(std::uint64_t slot) {
    return reinterpret_cast<Record*>(slot & ~kTagMask);
  }
  Shard& ShardOf(std::uint64_t hash) { return shards_[(hash >> 40) % kShardCount]; }
  const Shard& ShardOf(std::uint64_t hash) const { return shards_[(hash >> 40) % kShardCount]; }

  Slots* NewSlots(std::size_t count, std::uint64_t birth_era) const;
  static void DisposeSlots(Participant& by, void* slots);
  void AddLocked(Participant& by, Shard& shard, std::uint64_t hash, Record* record);
  void Rebuild(Participant& by, Shard& shard) const;

  const bool hints_;
  std::array<Shard, kShardCount> shards_;
  std::atomic<std::size_t> size_ = 0;

 public:
  // How a rebuild learns the hash of a record; set once by the table.
  std::uint64_t (*hash_of)(const Record& record) = nullptr;
};

}  // namespace zeze::internal
