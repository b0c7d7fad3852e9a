// Table: typed access to the records of one table.
//
//   zeze::Table<std::int64_t, BRole> roles{kRoles};
//
//   const BRole* role = roles.Get(tx, id);          // Null if absent. Valid until the end of tx.
//   auto edit = roles.Edit(tx, id);                 // A handle; false if absent.
//   if (edit) edit->level += 1;                     // The transaction's own copy.
//   roles.GetOrAdd(tx, id)->name = "new";
//   roles.Walk([](std::int64_t id, const BRole& role) { return true; });   // Outside transactions.
//   roles.WalkKeys(zeze::KeyRange<std::int64_t>::Between(1, 9), [](std::int64_t) { return true; });

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/edited.h"  // IWYU pragma: export
#include "zeze/transaction/internal/value.h"
#include "zeze/transaction/key_range.h"  // IWYU pragma: export
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// Thrown by Insert; rolls the procedure back like any exception.
class DuplicateKeyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A change of a record, as a listener sees it. The pointers are valid during the call.
template <typename K, typename V>
struct RecordChange {
  const K& key;
  const V* before;  // Null: the record is new.
  const V* after;   // Null: the record was removed.
};

// K: an integer, bool, float, std::string, Binary, Id128 or a bean key. V: a bean.
//
// Guarantees: what a transaction reads and writes is serializable with all others, in this process
// and, with a Coherence, in the cluster. Thread-safe once its engine has started.
// Requires: the table outlives its engine; a Transaction is used only by the body of its procedure.
// Whatever breaks that throws UsageError, and the procedure rolls back. Every access in a
// transaction may throw TransactionAborted, which is to be let pass.
template <typename K, typename V>
class Table final : public TableBase {
 public:
  using Key = K;
  using ValueType = V;
  using Listener = std::function<void(const RecordChange<K, V>&)>;

  explicit Table(const TableDescriptor& descriptor);

  TableSchema Describe() const override;

  // --- inside a transaction ---

  // The record as this transaction sees it, or null. A later Edit does not change what the pointer
  // shows.
  const V* Get(Transaction& tx, const K& key);
  // The same, for a body that decides by what it reads whether it writes.
  Found<V> Find(Transaction& tx, const K& key);
  bool Contains(Transaction& tx, const K& key) { return Get(tx, key) != nullptr; }

  Edited<V> Edit(Transaction& tx, const K& key);

  // Creates a default record if there is none.
  Edited<V> GetOrAdd(Transaction& tx, const K& key, bool* added = nullptr);

  // Inserts or replaces, also a row of the storage that cannot be decoded.
  void Put(Transaction& tx, const K& key, V value);

  // False, and nothing happens, if the record exists.
  bool TryAdd(Transaction& tx, const K& key, V value);

  // Throws DuplicateKeyError if the record exists.
  void Insert(Transaction& tx, const K& key, V value);

  // False if there was nothing to remove. Removes also a row that cannot be decoded.
  bool Remove(Transaction& tx, const K& key);

  // The record stays as it is for a while and is removed then, unless somebody writes it before:
  // zeze/components/delay_remove, which must know this table, says how. False if there is none.
  bool DelayRemove(Transaction& tx, const K& key,
                   std::chrono::milliseconds delay = std::chrono::milliseconds(0));

  Result<bool> RemoveEncoded(Transaction& tx, std::string_view bytes) override;

  // Announces keys that will be read (Share) or written (Modify): their cache misses overlap, and
  // what this server does not have of them it asks for together, rights in one round trip, rows in
  // another. Only a hint: nothing of it can fail.
  void Prefetch(Transaction& tx, std::span<const K> keys, Right wanted = Right::kShare);

  // --- outside transactions ---

  // A copy of the committed value, loaded if it is not in the cache.
  // Errors: the record cannot be had (storage, rights); kShuttingDown once the engine stops.
  Result<std::optional<V>> ReadCopy(const K& key);

  // What the cache has of the committed state; null if the record is not cached or absent. Asks
  // nobody and loads nothing, so it also works after the engine has stopped, while that exists.
  std::optional<V> ReadCached(const K& key);

  // Every record in the order of the encoded keys (see key_range.h), storage and cache merged: the
  // newest committed value of each, with unsaved inserts and without unsaved removes. The walk is
  // not a transaction: it sees records at different moments. It does not fill the cache. Memory
  // tables have no particular order. The visitor returns false to stop; it may run procedures, even
  // on this table. Rows that cannot be decoded are left out and reported (WalkOptions). Returns how
  // many records were given. Stop of the engine waits for the page that is being read, not for the
  // visitor; the next page is refused with kShuttingDown. The same holds for all walks below.
  Result<std::size_t> Walk(FunctionRef<bool(const K&, const V&)> visit,
                           const WalkOptions& options = {}) {
    return Walk(KeyRange<K>(), visit, options);
  }

  // The same of the keys in a range; integers in the order of numbers.
  Result<std::size_t> Walk(const KeyRange<K>& range, FunctionRef<bool(const K&, const V&)> visit,
                           const WalkOptions& options = {});

  // The keys alone. Values are neither read from the storage nor decoded, so this gives the keys of
  // rows that cannot be decoded, too.
  Result<std::size_t> WalkKeys(FunctionRef<bool(const K&)> visit, const WalkOptions& options = {}) {
    return WalkKeys(KeyRange<K>(), visit, options);
  }
  Result<std::size_t> WalkKeys(const KeyRange<K>& range, FunctionRef<bool(const K&)> visit,
                               const WalkOptions& options = {});

  // One page of a walk, after the key `after` (before it when descending). Returns the key to go on
  // with, none at the end.
  Result<std::optional<K>> WalkPage(const std::optional<K>& after,
                                    FunctionRef<bool(const K&, const V&)> visit,
                                    const WalkOptions& options);
  Result<std::optional<K>> WalkPage(const std::optional<K>& after, std::size_t limit,
                                    FunctionRef<bool(const K&, const V&)> visit,
                                    bool descending = false) {
    return WalkPage(after, visit, WalkOptions{.descending = descending, .page_size = limit});
  }

  // The committed records in the cache, in no particular order. A record that is there all the time
  // is given exactly once. Works after the engine has stopped, as ReadCached does.
  std::size_t WalkCache(FunctionRef<bool(const K&, const V&)> visit);

  // Rows of the storage alone, as of the last checkpoint; page by page, as Walk.
  Result<std::size_t> WalkStorage(FunctionRef<bool(const K&, const V&)> visit,
                                  const WalkOptions& options = {});

  // Called after each commit that changed a record, in commit order, before the procedure's own
  // after-commit actions. zeze/bean/difference.h says precisely what changed between the two
  // values. A listener must not run procedures that write (they fail with kLogicError) or wait for
  // another thread that does. Returns a number for RemoveListener. An empty one throws UsageError.
  std::size_t AddListener(Listener listener);
  void RemoveListener(std::size_t number);

 private:
  using RecordType = internal::RecordWithValue<K, V>;
  using Listeners = std::vector<std::pair<std::size_t, Listener>>;

  struct Cached;
  struct Row;
  class Rows;

  static std::optional<V> CopyValue(internal::Participant& by, const Record& record);
  static const V* Content(const internal::Access& access);
  static auto Equals(const K& key);
  static std::string KeyText(const K& key);
  Result<K> DecodedKey(std::string_view bytes) const;

  internal::Access& Open(Transaction& tx, const K& key, bool for_write, bool overwrite = false);
  void Fetch(Transaction& tx, std::span<const K> keys, Right wanted);
  Result<void> PrepareCreate(const K& key);
  Record& FindOrCreate(internal::Context& context, const K& key);
  Cached LookUp(internal::Context& context, const K& key, bool keys_only = false);

  template <typename Visit>
  Result<std::size_t> WalkRange(const KeyRange<K>& range, const Visit& visit,
                                const WalkOptions& options);
  template <typename Visit>
  bool WalkShard(std::size_t shard, const Visit& visit, const KeyRange<K>* range,
                 std::size_t& count);
  std::vector<K> CachedKeys(std::size_t shard);

  void EncodeRecordKey(const Record& record, ByteWriter& out) const override;
  void EncodeValue(const ValueHeader& value, ByteWriter& out) const override;
  Result<ValueHeader*> DecodeValue(internal::Participant& by,
                                   std::string_view bytes) const override;
  std::string FormatKey(const Record& record) const override;
  std::uint64_t HashOf(const Record& record) const override;
  internal::Disposer record_disposer() const override;
  Record* FindEncoded(internal::Participant& by, std::string_view bytes) const override;
  std::size_t FixedValueBytes() const override;
  std::size_t FixedKeyBytes() const override;
  std::size_t KeyBytes(const Record& record) const override;
  void Weigh(const Record& record, ValueHeader& value, const ValueHeader* older) const override;
  bool SurelyReadable(const ValueHeader& value, const ValueHeader& older) const override;
  void Notify(const internal::Change& change) override;

  std::mutex listeners_mutex_;
  std::shared_ptr<const Listeners> listeners_ = std::make_shared<Listeners>();
  std::size_t last_listener_ = 0;
};

}  // namespace zeze

#include "zeze/transaction/table_inl.h"  // IWYU pragma: export
