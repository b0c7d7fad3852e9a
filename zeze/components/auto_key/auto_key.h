// AutoKeys: ids that are unique in the whole cluster and for ever. No order is promised.
//
//   zeze::AutoKeys auto_keys;
//   application.AddModule(auto_keys);
//   ...
//   zeze::AutoKey& item_ids = auto_keys.GetOrAdd("item");     // Keep it.
//   items.Insert(tx, item_ids.NextId(tx), BItem{...});        // In a procedure.
//
// A server takes numbers in segments and hands them out from memory; a segment is saved in the
// database before the first of its numbers is used.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "Zeze/Builtin/AutoKey.h"
#include "Zeze/Builtin/AutoKey.module.h"
#include "zeze/app/application.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/components/auto_key/id_format.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

class AutoKeys;

struct AutoKeyOptions {
  // Numbers that are taken at a time: doubled whenever the last ones did not last for `busy`,
  // halved when they lasted for `idle`. At most so many, twice, are lost when a server ends.
  std::int64_t segment_min = 16;
  std::int64_t segment_max = 1 << 20;
  std::chrono::nanoseconds busy = std::chrono::seconds(30);
  std::chrono::nanoseconds idle = std::chrono::seconds(120);
};

// The ids of one name. An id is handed out once: whatever crashes, restarts or is run again, no
// server gives the same one again, even if all that was ever told of it was outside of the
// database. Ids are skipped: by rollbacks, by ends of servers.
//
// Thread-safe.
class AutoKey {
 public:
  AutoKey(AutoKeys& owner, std::string name);
  AutoKey(const AutoKey&) = delete;
  AutoKey& operator=(const AutoKey&) = delete;

  const std::string& name() const { return name_; }

  // Most calls take a number from memory. Otherwise it waits until the storage has saved the next
  // segment; if that cannot be, or no id of eight bytes is left, the procedure fails.
  std::int64_t NextId(Transaction& tx) {
    const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    return format_.IdOf(IsReady(number) ? number : TakeSlowly(tx, number));
  }
  // The same id as 1 to 8 bytes, and those in base64.
  std::string NextKeyBytes(Transaction& tx) { return IdBytes(NextId(tx)); }
  std::string NextKeyText(Transaction& tx) { return IdText(NextId(tx)); }

  // Outside of procedures. Errors: kUnavailable, kShuttingDown; kOverloaded: no id is left.
  Result<std::int64_t> NextId();

  // From now on no id of this server is below, compared without a sign; or so many more are
  // skipped. Never goes back. Other servers are not told.
  Result<void> SetMinId(std::int64_t id);
  Result<void> Skip(std::int64_t count);

 private:
  // In this order: whoever sees the end of a segment sees its begin, too.
  bool IsReady(std::uint64_t number) const {
    return number < ready_end_.load(std::memory_order_acquire) &&
           number >= begin_.load(std::memory_order_relaxed);
  }
  bool IsOurs(std::uint64_t number) const {
    return number < end_.load(std::memory_order_acquire) &&
           number >= begin_.load(std::memory_order_relaxed);
  }

  std::uint64_t TakeSlowly(Transaction& tx, std::uint64_t number);
  Result<std::uint64_t> Await(std::uint64_t number);
  void RefillAhead();
  Result<void> RefillUnlocked(std::uint64_t from) ZEZE_REQUIRES(mutex_);
  Result<void> Refill(std::uint64_t from);
  Result<void> RaiseTo(std::uint64_t number);
  void Publish(std::uint64_t first, std::uint64_t last);

  AutoKeys& owner_;
  const std::string name_;
  const IdFormat format_;

  // Numbers from begin_ to end_ are this process's own, and saved as taken. next_ goes past the end
  // when there are none: whoever took such a number waits for the segment that has it.
  alignas(64) std::atomic<std::uint64_t> next_ = 1;
  std::atomic<std::uint64_t> ready_end_ = 0;  // Behind it the next segment is fetched.
  std::atomic<std::uint64_t> begin_ = 1;
  std::atomic<std::uint64_t> end_ = 0;
  std::atomic<bool> refilling_ahead_ = true;  // Or cannot, or need not.

  alignas(64) Mutex mutex_;
  CondVar changed_;
  bool refilling_ ZEZE_GUARDED_BY(mutex_) = false;
  // Of whoever set refilling_.
  std::int64_t segment_;
  std::chrono::nanoseconds last_refill_{0};
};

// Thread-safe after Start.
class AutoKeys final : public Zeze::Builtin::AutoKey::ModuleAutoKeyBase {
 public:
  explicit AutoKeys(AutoKeyOptions options = {});

  bool started() const { return engine_ != nullptr; }

  // Lives as long as this. Not before Start.
  AutoKey& GetOrAdd(std::string_view name);

  // Inserts the value under a new key and returns that. The table has autokey="true" (an id of this
  // server) or "random" (16 random bytes) in the schema; throws UsageError if it has not.
  template <typename V>
  std::int64_t Insert(Transaction& tx, Table<std::int64_t, V>& table, V value) {
    CheckAutoKey(table, "true");
    const std::int64_t id = GetOrAdd(table.name()).NextId(tx);
    table.Insert(tx, id, std::move(value));
    return id;
  }
  template <typename V>
  Binary Insert(Transaction& tx, Table<Binary, V>& table, V value) {
    CheckAutoKey(table, "random");
    Binary key = RandomKey();
    table.Insert(tx, key, std::move(value));
    return key;
  }

  // Refuses a server with a negative id: it could not have ids of its own.
  Result<void> Start(Application& application) override;

  // Without an application: the tables are added to the engine by the caller. Segments are fetched
  // ahead of time if there is an executor.
  Result<void> Attach(Engine& engine, std::int32_t server_id, Executor* executor = nullptr);

 private:
  friend class AutoKey;

  static void CheckAutoKey(const TableBase& table, std::string_view kind);
  static Binary RandomKey();

  const AutoKeyOptions options_;
  Engine* engine_ = nullptr;
  Executor* executor_ = nullptr;
  std::int32_t server_id_ = -1;

  Mutex mutex_;
  std::map<std::string, std::unique_ptr<AutoKey>, std::less<>> keys_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze
