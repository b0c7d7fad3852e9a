#include "zeze/transaction/internal/record_map.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"

namespace zeze::internal {

RecordMap::RecordMap(bool hints) : hints_(hints) {
  for (Shard& shard : shards_) shard.slots = NewSlots(kSlotsMin, 0);
}

RecordMap::~RecordMap() {
  for (Shard& shard : shards_) ::operator delete(shard.slots.load());
}

void RecordMap::Clear() {
  for (Shard& shard : shards_) {
    ::operator delete(shard.slots.exchange(NewSlots(kSlotsMin, 0)));
    shard.used = 0;
    shard.live = 0;
  }
  size_ = 0;
}

RecordMap::Slots* RecordMap::NewSlots(std::size_t count, std::uint64_t birth_era) const {
  const std::size_t slot_bytes = sizeof(std::uint64_t) + (hints_ ? sizeof(void*) : 0);
  const std::size_t bytes = sizeof(Slots) + count * slot_bytes;
  auto* slots = new (::operator new(bytes)) Slots{birth_era, count - 1, bytes};
  for (std::size_t i = 0; i < count; ++i) {
    new (&slots->entries()[i]) std::atomic<std::uint64_t>(0);
    if (hints_) new (&slots->hints()[i]) ValueHint(nullptr);
  }
  return slots;
}

void RecordMap::DisposeSlots(Participant& /*by*/, void* slots) {
  ::operator delete(slots);
}

void RecordMap::AddLocked(Participant& by, Shard& shard, std::uint64_t hash, Record* record) {
  const auto address = reinterpret_cast<std::uint64_t>(record);
  ZEZE_CHECK((address & kTagMask) == 0);
  Slots* slots = shard.slots.load(std::memory_order_relaxed);
  if ((shard.used + 1) * 2 > slots->mask + 1) {
    Rebuild(by, shard);
    slots = shard.slots.load(std::memory_order_relaxed);
  }
  std::size_t i = hash & slots->mask;
  while (true) {
    const std::uint64_t slot = slots->entries()[i].load(std::memory_order_relaxed);
    if (slot == 0) ++shard.used;
    if (slot == 0 || slot == kTombstone) break;
    i = (i + 1) & slots->mask;
  }
  ++shard.live;
  slots->entries()[i].store(TagOf(hash) | address, std::memory_order_release);
}

void RecordMap::Rebuild(Participant& by, Shard& shard) const {
  Slots* old = shard.slots.load(std::memory_order_relaxed);
  const std::size_t count = std::max(kSlotsMin, std::bit_ceil((shard.live + 1) * 3));
  Slots* slots = NewSlots(count, by.era());
  for (std::size_t i = 0; i <= old->mask; ++i) {
    // Hashes are in the records, all over the memory.
    const std::size_t ahead = (i + kRebuildAhead) & old->mask;
    __builtin_prefetch(RecordIn(old->entries()[ahead].load(std::memory_order_relaxed)));
    const std::uint64_t slot = old->entries()[i].load(std::memory_order_relaxed);
    if (slot == 0 || slot == kTombstone) continue;
    std::size_t to = hash_of(*RecordIn(slot)) & slots->mask;
    while (slots->entries()[to].load(std::memory_order_relaxed) != 0) to = (to + 1) & slots->mask;
    slots->entries()[to].store(slot, std::memory_order_relaxed);
    if (!hints_) continue;
    slots->hints()[to].store(old->hints()[i].load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
  }
  shard.used = shard.live;
  shard.slots.store(slots, std::memory_order_seq_cst);
  by.Retire(old, old->birth_era, &DisposeSlots);
}

void RecordMap::Remove(Participant& by, std::uint64_t hash, Record* record) {
  Shard& shard = ShardOf(hash);
  const std::lock_guard lock(shard.mutex);
  Slots* slots = by.Protect(shard.slots);
  const std::uint64_t wanted = TagOf(hash) | reinterpret_cast<std::uint64_t>(record);
  std::size_t i = hash & slots->mask;
  while (slots->entries()[i].load(std::memory_order_relaxed) != wanted) {
    ZEZE_CHECK(slots->entries()[i].load(std::memory_order_relaxed) != 0);
    i = (i + 1) & slots->mask;
  }
  shard.slots.load()->entries()[i].store(kTombstone, std::memory_order_seq_cst);
  --shard.live;
  size_.fetch_sub(1, std::memory_order_relaxed);
}

void RecordMap::Snapshot(Participant& by, std::size_t shard, std::vector<Record*>& records) const {
  const std::lock_guard lock(shards_[shard].mutex);
  Scan(by, shard, 0, std::numeric_limits<std::size_t>::max(), records);
}

std::size_t RecordMap::Scan(Participant& by, std::size_t shard, std::size_t from, std::size_t count,
                            std::vector<Record*>& records) const {
  Slots* slots = by.Protect(shards_[shard].slots);
  const std::size_t size = slots->mask + 1;
  if (from >= size) return 0;  // The shard was larger when it was left.
  const std::size_t end = from + std::min(count, size - from);
  for (std::size_t i = from; i < end; ++i) {
    const std::uint64_t slot = by.Protect(slots->entries()[i]);
    if (slot != 0 && slot != kTombstone) records.push_back(RecordIn(slot));
  }
  return end == size ? 0 : end;
}

}  // namespace zeze::internal
