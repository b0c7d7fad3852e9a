// Cache: bounds the records that all tables have in memory: evicts what is not used, and lets
// misses wait when a table has far too many.
//
// Tables find and add their records themselves (TableCache). The eviction policy stands in one
// place, at the top of cache.cc.

#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/engine_parts.h"
#include "zeze/transaction/internal/record.h"

namespace zeze {
class Checkpoint;
class TableBase;
}  // namespace zeze

namespace zeze::internal {

// Thread-safe. The thread "cache-cleaner" evicts: it looks at the tables ten times a second, and
// whenever it is woken.
//
// Guarantees: evicts only records that the storage has as they are (rule 3), and absent records of
// tables without a storage. What a running transaction uses stays (pins.h). A record that is opened
// in the very moment of its eviction may be lost: its transaction looks for it again, or runs once
// more.
class Cache {
 public:
  Cache(const EngineParts& parts, Checkpoint& checkpoint);
  // Frees all records. Nobody uses them any more.
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Begins and ends the cleaner's thread. After Stop no miss waits.
  void Start();
  void Stop();

  // Call it when records can be evicted that could not be before.
  void WakeCleaner();

  // Before a record is added. Wakes the cleaner if the table's cache is above its capacity, and
  // waits if it is far above. What running transactions use does not count: only their end gives
  // that room. An error: there was no room for a long time, because unsaved records cannot be
  // evicted.
  Result<void> AwaitRoom(const TableBase& table);

  std::size_t size() const;

 private:
  enum class Eviction : std::uint8_t { kDone, kUnsaved, kInUse };
  struct Swept {
    std::size_t unsaved = 0;  // Records that would have gone but for this.
    std::size_t left = 0;     // What the last round left, for any reason.
  };

  void Loop();
  void CleanAll(Context& context);
  bool CleanTable(Context& context, TableBase& table);
  void ForgetAbsent(Context& context, TableBase& table);
  Swept Sweep(Context& context, TableBase& table, std::size_t target, bool absent_only);
  Eviction TryEvict(Context& context, TableBase& table, Record& record);
  void FreeLimbo(Context& context);
  std::size_t RecordsInUse() const;

  const EngineParts parts_;
  Checkpoint& checkpoint_;

  Mutex mutex_;
  CondVar wake_;
  CondVar room_;
  bool stop_wanted_ ZEZE_GUARDED_BY(mutex_) = false;
  bool clean_wanted_ ZEZE_GUARDED_BY(mutex_) = false;
  std::thread thread_;

  // Evicted records that logs may still name, with the epoch after which they cannot. Of the
  // cleaner's thread.
  std::vector<std::pair<std::uint64_t, Record*>> limbo_;
};

}  // namespace zeze::internal
