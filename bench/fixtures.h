// What the benchmarks of records run on: a table of this library, and the same map with a mutex for
// each record.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/bean/hash.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record_map.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"

namespace zeze::bench {

inline constexpr TableDescriptor kTable{.id = 1, .name = "bench"};

inline void CheckDone(const Result<void>& result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
}

inline void CheckCode(std::int64_t code) {
  ZEZE_CHECK(code == result_code::kSuccess);
}

// A table with everything that a server has: changes are tracked for the checkpoint, which does not
// run meanwhile (as in the Java peer's benchmarks).
template <typename V>
struct TableFixture {
  std::unique_ptr<Storage> storage;
  Table<std::int64_t, V> table{kTable};
  Engine engine;

  explicit TableFixture(std::unique_ptr<Storage> opened = OpenMemoryStorage(),
                        TableOptions options = {.cache_capacity = 0})
      : storage(std::move(opened)),
        engine({.storage = storage.get(), .checkpoint_period = std::chrono::nanoseconds(0)}) {
    CheckDone(engine.AddTable(table, std::move(options)));
    CheckDone(engine.Start());
  }

  // Keys 0 .. count-1, in transactions of 100.
  void Fill(std::int64_t count, const V& value) {
    for (std::int64_t begin = 0; begin < count; begin += 100) {
      CheckCode(engine.Call("fill", [&](Transaction& tx) {
        for (std::int64_t key = begin; key < count && key < begin + 100; ++key) {
          table.Put(tx, key, value);
        }
        return result_code::kSuccess;
      }));
    }
  }
};

// The hand-written peer: the same map and hash, found without a lock, edited in place under the
// record's mutex. No rollback, no versions, nothing to save.
template <typename V>
class MutexMap {
 public:
  struct alignas(64) Entry {
    std::int64_t key = 0;
    std::mutex mutex;
    V value;
  };

  MutexMap(std::int64_t count, const V& value)
      : entries_(new Entry[static_cast<std::size_t>(count)]) {
    reader_ = std::make_unique<internal::Participant>(reclaimer_);
    map_.hash_of = [](const internal::Record& record) { return HashKey(EntryOf(record).key); };
    internal::Participant& by = *reader_;
    by.Enter();
    for (std::int64_t key = 0; key < count; ++key) {
      Entry& entry = entries_[static_cast<std::size_t>(key)];
      entry.key = key;
      entry.value = value;
      map_.FindOrAdd(
          by, HashKey(key), [](const internal::Record&) { return false; },
          [&] { return reinterpret_cast<internal::Record*>(&entry); });
    }
    by.Leave();
    by.Scan();
    by.Enter();
  }
  ~MutexMap() { reader_->Leave(); }
  MutexMap(const MutexMap&) = delete;
  MutexMap& operator=(const MutexMap&) = delete;

  // Nothing is ever removed, so the lookups need no protection: one reader serves all threads.
  Entry& Find(std::int64_t key) {
    internal::Record* found =
        map_.Find(*reader_, HashKey(key),
                  [key](const internal::Record& record) { return EntryOf(record).key == key; });
    return *reinterpret_cast<Entry*>(found);
  }

 private:
  // The map never looks into a record itself.
  static const Entry& EntryOf(const internal::Record& record) {
    return reinterpret_cast<const Entry&>(record);
  }

  std::unique_ptr<internal::Participant> reader_;  // Ends after the reclaimer.
  internal::Reclaimer reclaimer_;
  internal::RecordMap map_{false};
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace zeze::bench
