// Record: one (table, key) -> value in the cache, and the word that orders everything that happens
// to it.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "zeze/transaction/coherence.h"

namespace zeze::internal {

// Every committed value that lives apart from its record starts with this. It is immutable: a
// commit swaps the record's pointer, and the old value is reclaimed once no reader can hold it
// (reclaimer.h). Small flat values live in their records instead (value.h).
struct ValueHeader {
  std::uint64_t birth_era = 0;
  // What the row takes in a flush at most, with its key. Of values that were committed and have no
  // fixed bound (TableBase::RowBytes); 0 of values that were loaded.
  std::uint64_t row_bytes = 0;
};

// The word of a record: {version, right, loaded, dead, locked}.
//
// Versions come from one source per process and are never reused, so an equal word means that
// nothing happened in between: no write, no change of right, no eviction and new load.
class Word {
 public:
  static constexpr std::uint64_t kLocked = 1;
  static constexpr std::uint64_t kDead = 2;    // Evicted; whoever holds the record must look again.
  static constexpr std::uint64_t kLoaded = 4;  // The value is what the storage or a commit said.
  static constexpr int kRightShift = 3;
  static constexpr std::uint64_t kRightMask = std::uint64_t{3} << kRightShift;
  static constexpr int kVersionShift = 5;

  static constexpr std::uint64_t Make(std::uint64_t version, Right right, bool loaded) {
    return (version << kVersionShift) | (static_cast<std::uint64_t>(right) << kRightShift) |
           (loaded ? kLoaded : 0);
  }
  static constexpr bool Locked(std::uint64_t word) { return (word & kLocked) != 0; }
  static constexpr bool Dead(std::uint64_t word) { return (word & kDead) != 0; }
  static constexpr bool Loaded(std::uint64_t word) { return (word & kLoaded) != 0; }
  static constexpr Right RightOf(std::uint64_t word) {
    return static_cast<Right>((word & kRightMask) >> kRightShift);
  }
  static constexpr std::uint64_t Version(std::uint64_t word) { return word >> kVersionShift; }

  // Readable: neither locked nor dead, loaded, and with at least the Share right.
  static constexpr bool Readable(std::uint64_t word) {
    return (word & (kLocked | kDead | kLoaded)) == kLoaded && (word & kRightMask) != 0;
  }
};

// One cache line with an 8-byte key behind it. What is not atomic is touched only by the holder of
// the lock bit.
struct alignas(64) Record {
  Record() = default;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  std::atomic<std::uint64_t> word = 0;
  // Null: the record is known to be absent (if the word says loaded). Of a value in the record:
  // in_record_mark, not to be looked into.
  std::atomic<ValueHeader*> value = nullptr;
  // The version the storage has. Differs from the word's version: dirty.
  std::atomic<std::uint64_t> flushed_version = 0;
  // The value of the last cut, kept for its flush when a later commit replaced it (rule 28): a
  // pointer, null for a tombstone, with the low bit set; 0 = nothing is kept.
  std::uintptr_t aside = 0;
  // Epoch of the last commit that wrote the record.
  std::uint64_t write_epoch = 0;
  std::uint16_t table_index = 0;
  // Set by readers, cleared by the eviction hand that passes.
  std::atomic<std::uint8_t> accessed = 1;
  // Non-zero while a procedure that lost a race before runs again and wants this record. A hint
  // for others to let it pass, and a reason not to evict; it protects nothing.
  std::atomic<std::uint8_t> intent = 0;
  // Place in the checkpoint's dependency graph, 0 = none. Owned by the checkpoint.
  std::uint32_t node = 0;
  std::uint64_t birth_era = 0;

  ValueHeader* aside_value() const {
    return reinterpret_cast<ValueHeader*>(aside & ~std::uintptr_t{1});
  }
  void KeepAside(ValueHeader* of_the_cut) {
    aside = reinterpret_cast<std::uintptr_t>(of_the_cut) | 1;
  }

  bool Dirty(std::uint64_t at_word) const {
    return flushed_version.load(std::memory_order_acquire) != Word::Version(at_word);
  }
};

inline ValueHeader in_record_mark;

template <typename Key>
struct RecordOf : Record {
  explicit RecordOf(const Key& k) : key(k) {}
  const Key key;
};

static_assert(sizeof(RecordOf<std::int64_t>) == 64, "a record with a small key is one cache line");

// Where the values of a table are, for those who call for them early.
struct ValuePlace {
  bool in_record;     // Behind the first cache line of the record.
  std::size_t bytes;  // At most so many matter.
};

// Calls for a cache line that will be written: one trip to another core instead of two.
inline void PrefetchForWrite(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

// Waits a little, first on the CPU, then by giving it away: the holder of a lock bit may have been
// preempted, and on few cores spinning would keep it from running.
class Backoff {
 public:
  void Wait();
  int rounds() const { return rounds_; }

 private:
  int rounds_ = 0;
};

// Sets the lock bit. Returns the word before.
std::uint64_t LockRecord(Record& record);

// Fails if the record is locked.
bool TryLockRecord(Record& record, std::uint64_t& word);

inline void UnlockRecord(Record& record, std::uint64_t word) {
  record.word.store(word & ~Word::kLocked, std::memory_order_release);
}

}  // namespace zeze::internal
