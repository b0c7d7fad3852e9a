// What table.h promises.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/encoded_size.h"
#include "zeze/bean/hash.h"
#include "zeze/bean/readable.h"
#include "zeze/bean/schema.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/cache.h"
#include "zeze/transaction/internal/change_queue.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/record_map.h"
#include "zeze/transaction/internal/table_walk.h"
#include "zeze/transaction/internal/value.h"
#include "zeze/transaction/later_removal.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// --- types ------------------------------------------------------------------------------------

namespace internal {

// Where the value of a V is when its record has a K.
template <typename K, typename V>
inline constexpr ValuePlace kValuePlace = {
    .in_record = kLivesInRecord<V>,
    .bytes = kLivesInRecord<V> ? sizeof(RecordWithValue<K, V>) - sizeof(Record) : sizeof(Value<V>)};

// A value in a record has at most 128 variables, each encoded with its tag.
inline constexpr std::size_t kFlatValueBytesMax = 4096;

}  // namespace internal

template <typename K, typename V>
struct Table<K, V>::Cached {
  bool known = false;  // The cache says what the newest committed state is.
  bool exists = false;
  std::size_t bytes = 0;  // About, of an unsaved value.
  std::optional<V> value = std::nullopt;
};

template <typename K, typename V>
Table<K, V>::Table(const TableDescriptor& descriptor)
    : TableBase(descriptor, internal::ValueOperationsOf<K, V>()) {
  cache().records.hash_of = [](const Record& record) {
    return HashKey(static_cast<const RecordType&>(record).key);
  };
}

template <typename K, typename V>
TableSchema Table<K, V>::Describe() const {
  return DescribeTable<K, V>({.name = name(),
                              .id = id(),
                              .version = descriptor().version,
                              .memory = descriptor().memory,
                              .no_schema = descriptor().no_schema});
}

template <typename K, typename V>
inline auto Table<K, V>::Equals(const K& key) {
  return [&key](const Record& record) {
    return SameKey(static_cast<const RecordType&>(record).key, key);
  };
}

template <typename K, typename V>
std::string Table<K, V>::KeyText(const K& key) {
  return FormatValue(key);
}

template <typename K, typename V>
Result<K> Table<K, V>::DecodedKey(std::string_view bytes) const {
  Result<K> key = DecodeKey<K>(bytes);
  if (key.ok()) return key;
  return Error(key.error().code(), "table " + name() + ": " + key.error().message());
}

// --- inside a transaction ---------------------------------------------------------------------

template <typename K, typename V>
inline const V* Table<K, V>::Content(const internal::Access& access) {
  const ValueHeader* content = access.content();
  return content == nullptr ? nullptr : &static_cast<const internal::Value<V>*>(content)->value;
}

template <typename K, typename V>
inline internal::Access& Table<K, V>::Open(Transaction& tx, const K& key, bool for_write,
                                           bool overwrite) {
  CheckUse(tx);
  internal::Backoff backoff;
  while (true) {
    auto [record, hint] = cache().records.FindAndFetch(tx.participant(), HashKey(key), Equals(key),
                                                       internal::kValuePlace<K, V>, for_write);
    if (record == nullptr) [[unlikely]] {
      if (Result<void> room = PrepareCreate(key); !room.ok()) {
        tx.AbortFailed(room.error().code() == ErrorCode::kOverloaded ? result_code::kBusy
                                                                     : result_code::kException,
                       room.error().message());
      }
      record = &FindOrCreate(tx.context(), key);
    }
    if (internal::Access* access = tx.Open(*this, *record, for_write, overwrite)) {
      if (hint != nullptr) access->NoteHint(hint);
      return *access;
    }
    backoff.Wait();
  }
}

template <typename K, typename V>
inline const V* Table<K, V>::Get(Transaction& tx, const K& key) {
  return Content(Open(tx, key, false));
}

template <typename K, typename V>
inline Found<V> Table<K, V>::Find(Transaction& tx, const K& key) {
  internal::Access& access = Open(tx, key, false);
  return {tx, access, Content(access)};
}

template <typename K, typename V>
inline Edited<V> Table<K, V>::Edit(Transaction& tx, const K& key) {
  internal::Access& access = Open(tx, key, true);
  if (access.content() != nullptr) tx.MakeEditable(access);
  return {tx, access};
}

template <typename K, typename V>
inline Edited<V> Table<K, V>::GetOrAdd(Transaction& tx, const K& key, bool* added) {
  internal::Access& access = Open(tx, key, true);
  const bool absent = access.content() == nullptr;
  if (added != nullptr) *added = absent;
  if (absent) {
    tx.SetWorking(access, internal::NewValue<V>(tx.participant(), V{}));
  } else {
    tx.MakeEditable(access);
  }
  return {tx, access};
}

template <typename K, typename V>
inline void Table<K, V>::Put(Transaction& tx, const K& key, V value) {
  internal::Access& access = Open(tx, key, true, true);  // May throw: before anything is allocated.
  tx.SetWorking(access, internal::NewValue<V>(tx.participant(), std::move(value)));
}

template <typename K, typename V>
inline bool Table<K, V>::TryAdd(Transaction& tx, const K& key, V value) {
  internal::Access& access = Open(tx, key, true);
  if (access.content() != nullptr) return false;
  tx.SetWorking(access, internal::NewValue<V>(tx.participant(), std::move(value)));
  return true;
}

template <typename K, typename V>
inline void Table<K, V>::Insert(Transaction& tx, const K& key, V value) {
  if (!TryAdd(tx, key, std::move(value))) {
    throw DuplicateKeyError("record " + KeyText(key) + " of table " + name() + " exists already");
  }
}

template <typename K, typename V>
inline bool Table<K, V>::Remove(Transaction& tx, const K& key) {
  internal::Access& access = Open(tx, key, true, true);
  if (access.absent()) return false;
  tx.MarkRemoved(access);
  return true;
}

template <typename K, typename V>
bool Table<K, V>::DelayRemove(Transaction& tx, const K& key, std::chrono::milliseconds delay) {
  CheckLaterRemoval();
  internal::Access& access = Open(tx, key, false);
  if (access.content() == nullptr) return false;
  const std::size_t index = tx.IndexOf(access);
  later_removal()->RemoveLater(tx, *this, EncodeKey(key), delay);
  tx.MarkRemovedLater(tx.at(index));
  return true;
}

template <typename K, typename V>
Result<bool> Table<K, V>::RemoveEncoded(Transaction& tx, std::string_view bytes) {
  Result<K> key = DecodedKey(bytes);
  if (!key.ok()) return key.error();
  return Remove(tx, key.value());
}

template <typename K, typename V>
void Table<K, V>::Prefetch(Transaction& tx, std::span<const K> keys, Right wanted) {
  CheckUse(tx);
  const internal::ValuePlace place = internal::kValuePlace<K, V>;
  internal::RecordMap& records = cache().records;
  for (const K& key : keys) records.PrefetchSlot(tx.participant(), HashKey(key), place);
  for (const K& key : keys) records.PrefetchRecord(tx.participant(), HashKey(key), place);
  if (engine() != nullptr && engine()->FetchesInBatches()) Fetch(tx, keys, wanted);
}

template <typename K, typename V>
void Table<K, V>::Fetch(Transaction& tx, std::span<const K> keys, Right wanted) {
  std::vector<Record*> missing;
  for (const K& key : keys) {
    Record* record = cache().records.Find(tx.participant(), HashKey(key), Equals(key));
    if (record == nullptr) {
      if (!PrepareCreate(key).ok()) return;
      record = &FindOrCreate(tx.context(), key);
    }
    tx.context().pins.Add(record);  // Until it is used.
    const std::uint64_t word = record->word.load(std::memory_order_acquire);
    if (internal::Word::RightOf(word) < wanted || !internal::Word::Loaded(word)) {
      missing.push_back(record);
    }
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  if (!missing.empty()) engine()->loader().Fetch(tx.context(), *this, missing, wanted);
}

template <typename K, typename V>
Result<void> Table<K, V>::PrepareCreate(const K& key) {
  CheckAttached();
  if constexpr (!std::is_arithmetic_v<K>) {
    if (Result<void> fits = CheckKey(EncodeKey(key).size()); !fits.ok()) return fits;
  }
  return engine()->cache().AwaitRoom(*this);
}

template <typename K, typename V>
internal::Record& Table<K, V>::FindOrCreate(internal::Context& context, const K& key) {
  internal::Participant& by = context.participant;
  return *cache().records.FindOrAdd(by, HashKey(key), Equals(key), [&]() -> Record* {
    auto* record = new (by.Allocate(sizeof(RecordType))) RecordType(key);
    BeginRecord(context, *record);
    return record;
  });
}

// --- outside transactions ---------------------------------------------------------------------

// Perhaps torn: true if the record's word is the same before and after. The caller is inside.
template <typename K, typename V>
inline std::optional<V> Table<K, V>::CopyValue(internal::Participant& by, const Record& record) {
  const ValueHeader* value = by.Protect(record.value);
  if (value == nullptr) return std::nullopt;
  if constexpr (internal::kLivesInRecord<V>) {
    std::optional<V> copy(std::in_place);
    static_cast<const RecordType&>(record).value_in_record.Fetch(*copy);
    return copy;
  } else {
    return static_cast<const internal::Value<V>*>(value)->value;
  }
}

template <typename K, typename V>
Result<std::optional<V>> Table<K, V>::ReadCopy(const K& key) {
  CheckAttached();
  const internal::ContextLease context(engine()->contexts());
  const internal::ReadScope inside(*context);
  if (!engine()->ReadsAllowed()) return ReadRefused();
  while (true) {
    Record* record = cache().records.Find(context->participant, HashKey(key), Equals(key));
    if (record == nullptr) {
      if (Result<void> room = PrepareCreate(key); !room.ok()) return room.error();
      record = &FindOrCreate(*context, key);
      context->pins.Add(record);
    }
    const Result<void> loaded = engine()->loader().Load(*context, *record, Right::kShare);
    engine()->loader().UseUp(*context);
    if (!loaded.ok()) return loaded.error();
    const std::uint64_t word = record->word.load(std::memory_order_acquire);
    if (!internal::Word::Readable(word)) continue;
    std::optional<V> value = CopyValue(context->participant, *record);
    if (record->word.load(std::memory_order_acquire) != word) continue;
    // Without a lease somebody else may have changed it.
    if (!engine()->LeaseValid()) {
      return Error(ErrorCode::kUnavailable, "the lease of this server has expired");
    }
    return value;
  }
}

template <typename K, typename V>
std::optional<V> Table<K, V>::ReadCached(const K& key) {
  CheckAttached();
  const internal::ContextLease context(engine()->contexts());
  const internal::ReadScope inside(*context);
  return LookUp(*context, key).value;
}

// The newest committed state of a key, if the cache knows it. The caller is inside.
template <typename K, typename V>
typename Table<K, V>::Cached Table<K, V>::LookUp(internal::Context& context, const K& key,
                                                 bool keys_only) {
  internal::Backoff backoff;
  while (true) {
    const Record* record = cache().records.Find(context.participant, HashKey(key), Equals(key));
    if (record == nullptr) return {};
    const std::uint64_t word = record->word.load(std::memory_order_acquire);
    if (internal::Word::Locked(word)) {
      backoff.Wait();
      continue;
    }
    if (!internal::Word::Readable(word)) return {};
    Cached cached{.known = true};
    const ValueHeader* value = context.participant.Protect(record->value);
    cached.exists = value != nullptr;
    if (cached.exists && !keys_only) {
      if (!internal::kLivesInRecord<V>) cached.bytes = RowBytes(*record, value);
      cached.value = CopyValue(context.participant, *record);
      cached.exists = cached.value.has_value();
    }
    if (record->word.load(std::memory_order_acquire) != word) continue;
    return cached;
  }
}

// --- walks ------------------------------------------------------------------------------------

template <typename K, typename V>
struct Table<K, V>::Row {
  K key;
  std::optional<V> value;  // Null only in walks over keys.

  bool Give(FunctionRef<bool(const K&, const V&)> visit) const { return visit(key, *value); }
  bool Give(FunctionRef<bool(const K&)> visit) const { return visit(key); }
};

// Decodes the rows of a walk and gives them to `give`, row by row.
template <typename K, typename V>
class Table<K, V>::Rows final : public internal::RowSink {
 public:
  Rows(Table& table, const WalkOptions& options, FunctionRef<bool(const Row&)> give)
      : table_(table), bad_(table, options), give_(give) {}

  bool TakeCached(internal::Context& context, std::string_view key_bytes, bool keys_only,
                  std::size_t& bytes) override {
    Result<K> key = table_.DecodedKey(key_bytes);
    if (!key.ok()) return false;
    Cached cached = table_.LookUp(context, key.value(), keys_only);
    bytes += cached.bytes;
    if (cached.exists) rows_.push_back({std::move(key).value(), std::move(cached.value)});
    return cached.known;
  }

  void TakeStored(std::string_view key_bytes, std::string_view value, bool keys_only) override {
    Result<K> key = table_.DecodedKey(key_bytes);
    if (!key.ok()) return bad_.Tell(key_bytes, value, key.error().message());
    Row row{std::move(key).value(), std::nullopt};
    if (!keys_only) {
      ByteReader in(value);
      row.value.emplace().Decode(in);
      if (!in.ok()) {
        return bad_.Tell(key_bytes, value,
                         "cannot decode record " + KeyText(row.key) + " of table " + table_.name() +
                             ": " + in.error_message());
      }
    }
    rows_.push_back(std::move(row));
  }

  bool Give() override {
    const std::vector<Row> rows = std::exchange(rows_, {});
    for (const Row& row : rows) {
      ++count_;
      if (!give_(row)) return false;
    }
    return true;
  }

  std::optional<std::size_t> TakeFirstLength() override {
    if constexpr (KeyRange<K>::kHasPrefixes) {
      const std::vector<Row> rows = std::exchange(rows_, {});
      if (!rows.empty()) return KeyRange<K>::BytesOf(rows.front().key).size();
    }
    return std::nullopt;
  }

  std::size_t count() const { return count_; }  // Of rows that were given.

 private:
  Table& table_;
  internal::BadRows bad_;
  const FunctionRef<bool(const Row&)> give_;
  std::vector<Row> rows_;
  std::size_t count_ = 0;
};

template <typename K, typename V>
Result<std::size_t> Table<K, V>::Walk(const KeyRange<K>& range,
                                      FunctionRef<bool(const K&, const V&)> visit,
                                      const WalkOptions& options) {
  return WalkRange(range, visit, options);
}

template <typename K, typename V>
Result<std::size_t> Table<K, V>::WalkKeys(const KeyRange<K>& range,
                                          FunctionRef<bool(const K&)> visit,
                                          const WalkOptions& options) {
  return WalkRange(range, visit, options);
}

template <typename K, typename V>
template <typename Visit>
Result<std::size_t> Table<K, V>::WalkRange(const KeyRange<K>& range, const Visit& visit,
                                           const WalkOptions& options) {
  const auto give = [&](const Row& row) { return row.Give(visit); };
  Rows rows(*this, options, give);
  internal::TableWalk walk(*this, options, rows);
  if (storage() != nullptr) {
    constexpr bool kKeysOnly = std::is_same_v<Visit, FunctionRef<bool(const K&)>>;
    if (Result<void> walked = walk.GiveSpans(range.Spans(), kKeysOnly); !walked.ok()) {
      return walked.error();
    }
    return rows.count();
  }
  std::size_t count = 0;
  for (std::size_t shard = 0; shard < internal::RecordMap::kShardCount; ++shard) {
    // Needs nothing that Stop takes away, but ends as other walks do.
    if (!engine()->ReadsAllowed()) return ReadRefused();
    if (!WalkShard(shard, visit, &range, count)) break;
  }
  return count;
}

template <typename K, typename V>
Result<std::optional<K>> Table<K, V>::WalkPage(const std::optional<K>& after,
                                               FunctionRef<bool(const K&, const V&)> visit,
                                               const WalkOptions& options) {
  std::optional<K> last;
  const auto give = [&](const Row& row) {
    last = row.key;
    return row.Give(visit);
  };
  Rows rows(*this, options, give);
  internal::TableWalk walk(*this, options, rows);
  ZEZE_REQUIRE(storage() != nullptr, "table " + name() +
                                         (memory() ? " is a memory" : " is no stored") +
                                         " table: it has no order to page by");
  std::optional<std::string> start;
  if (after) start = EncodeKey(*after);
  while (true) {
    Result<std::optional<std::string>> page = walk.ReadPage({}, start, /*keys_only=*/false);
    if (!page.ok()) return page.error();
    if (!rows.Give()) return last;
    if (!page.value()) return std::optional<K>();
    // A key that cannot be decoded is no place to go on: the walk begins again after the last
    // record that was given, and passes it once more.
    Result<K> next = DecodedKey(*page.value());
    if (last && next.ok()) return std::optional<K>(std::move(next).value());
    if (last) return last;
    start = std::move(page).value();  // A page of removed and bad rows only.
  }
}

template <typename K, typename V>
Result<std::size_t> Table<K, V>::WalkStorage(FunctionRef<bool(const K&, const V&)> visit,
                                             const WalkOptions& options) {
  const auto give = [&](const Row& row) { return row.Give(visit); };
  Rows rows(*this, options, give);
  internal::TableWalk walk(*this, options, rows);
  if (Result<void> walked = walk.GiveStored(); !walked.ok()) return walked.error();
  return rows.count();
}

template <typename K, typename V>
std::size_t Table<K, V>::WalkCache(FunctionRef<bool(const K&, const V&)> visit) {
  CheckAttached();
  std::size_t count = 0;
  for (std::size_t shard = 0; shard < internal::RecordMap::kShardCount; ++shard) {
    if (!WalkShard(shard, visit, nullptr, count)) break;
  }
  return count;
}

// The cached records of a shard that are in the range (null: all). False: the visitor stopped.
template <typename K, typename V>
template <typename Visit>
bool Table<K, V>::WalkShard(std::size_t shard, const Visit& visit, const KeyRange<K>* range,
                            std::size_t& count) {
  for (const K& key : CachedKeys(shard)) {
    if (range != nullptr && !range->Contains(key)) continue;
    const Row row{key, ReadCached(key)};
    if (!row.value) continue;
    ++count;
    if (!row.Give(visit)) return false;
  }
  return true;
}

// Each key once, as of one moment: however the shard changes afterwards, a record that stays is
// given once.
template <typename K, typename V>
std::vector<K> Table<K, V>::CachedKeys(std::size_t shard) {
  const internal::ContextLease context(engine()->contexts());
  const internal::ReadScope inside(*context);
  std::vector<Record*> records;
  cache().records.Snapshot(context->participant, shard, records);
  std::vector<K> keys;
  keys.reserve(records.size());
  for (const Record* record : records) {
    keys.push_back(static_cast<const RecordType*>(record)->key);
  }
  return keys;
}

// --- listeners --------------------------------------------------------------------------------

template <typename K, typename V>
std::size_t Table<K, V>::AddListener(Listener listener) {
  ZEZE_REQUIRE(listener != nullptr, "the listener of table " + name() + " is empty");
  const std::lock_guard lock(listeners_mutex_);
  auto next = std::make_shared<Listeners>(*listeners_);
  next->emplace_back(++last_listener_, std::move(listener));
  listeners_ = std::move(next);
  changes().SetWanted(true);
  return last_listener_;
}

template <typename K, typename V>
void Table<K, V>::RemoveListener(std::size_t number) {
  const std::lock_guard lock(listeners_mutex_);
  auto next = std::make_shared<Listeners>(*listeners_);
  std::erase_if(*next, [number](const auto& entry) { return entry.first == number; });
  changes().SetWanted(!next->empty());
  listeners_ = std::move(next);
}

template <typename K, typename V>
void Table<K, V>::Notify(const internal::Change& change) {
  std::shared_ptr<const Listeners> listeners;
  {
    const std::lock_guard lock(listeners_mutex_);
    listeners = listeners_;
  }
  const auto content = [](const ValueHeader* header) {
    return header == nullptr ? nullptr : &static_cast<const internal::Value<V>*>(header)->value;
  };
  const RecordChange<K, V> typed{static_cast<const RecordType*>(change.record)->key,
                                 content(change.before), content(change.after)};
  for (const auto& [number, listener] : *listeners) {
    internal::CallListener(name(), [&] { listener(typed); });
  }
}

// --- TableBase --------------------------------------------------------------------------------

template <typename K, typename V>
void Table<K, V>::EncodeRecordKey(const Record& record, ByteWriter& out) const {
  EncodeKey(out, static_cast<const RecordType&>(record).key);
}

template <typename K, typename V>
void Table<K, V>::EncodeValue(const ValueHeader& value, ByteWriter& out) const {
  static_cast<const internal::Value<V>&>(value).value.Encode(out);
}

template <typename K, typename V>
Result<internal::ValueHeader*> Table<K, V>::DecodeValue(internal::Participant& by,
                                                        std::string_view bytes) const {
  internal::Value<V>* value = internal::NewValue<V>(by, V{});
  ByteReader in(bytes);
  value->value.Decode(in);
  if (in.ok()) return static_cast<ValueHeader*>(value);
  Error error(ErrorCode::kCorrupt, in.error_message());
  values().dispose(by, value);
  return error;
}

template <typename K, typename V>
std::string Table<K, V>::FormatKey(const Record& record) const {
  return KeyText(static_cast<const RecordType&>(record).key);
}

template <typename K, typename V>
std::uint64_t Table<K, V>::HashOf(const Record& record) const {
  return HashKey(static_cast<const RecordType&>(record).key);
}

template <typename K, typename V>
internal::Disposer Table<K, V>::record_disposer() const {
  return [](internal::Participant& by, void* object) {
    auto* record = static_cast<RecordType*>(static_cast<Record*>(object));
    record->~RecordType();
    by.Free(record, sizeof(RecordType));
  };
}

template <typename K, typename V>
internal::Record* Table<K, V>::FindEncoded(internal::Participant& by,
                                           std::string_view bytes) const {
  const Result<K> key = DecodedKey(bytes);
  if (!key.ok()) return nullptr;
  return cache().records.Find(by, HashKey(key.value()), Equals(key.value()));
}

template <typename K, typename V>
std::size_t Table<K, V>::FixedValueBytes() const {
  const bool flat = internal::kLivesInRecord<V> && EncodedSize<V>::kFixed == 0;
  return flat ? internal::kFlatValueBytesMax : EncodedSize<V>::kFixed;
}

template <typename K, typename V>
std::size_t Table<K, V>::FixedKeyBytes() const {
  return EncodedSize<K>::kFixed;
}

template <typename K, typename V>
std::size_t Table<K, V>::KeyBytes(const Record& record) const {
  return EncodedSize<K>::Of(static_cast<const RecordType&>(record).key);
}

template <typename K, typename V>
void Table<K, V>::Weigh(const Record& record, ValueHeader& value, const ValueHeader* older) const {
  const V& now = static_cast<const internal::Value<V>&>(value).value;
  if (older == nullptr || older->row_bytes == 0) {
    value.row_bytes = kStorageWriteOverheadBytes + KeyBytes(record) + EncodedSize<V>::Of(now);
    return;
  }
  const V& before = static_cast<const internal::Value<V>*>(older)->value;
  value.row_bytes =
      older->row_bytes + static_cast<std::uint64_t>(EncodedSize<V>::Change(now, before));
}

template <typename K, typename V>
bool Table<K, V>::SurelyReadable(const ValueHeader& value, const ValueHeader& older) const {
  return Readable<V>::Since(static_cast<const internal::Value<V>&>(value).value,
                            static_cast<const internal::Value<V>&>(older).value);
}

}  // namespace zeze
