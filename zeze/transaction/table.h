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

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/encoded_size.h"
#include "zeze/bean/hash.h"
#include "zeze/bean/readable.h"
#include "zeze/bean/schema.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/edited.h"  // IWYU pragma: export
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/value.h"
#include "zeze/transaction/key_range.h"  // IWYU pragma: export
#include "zeze/transaction/later_removal.h"
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
template <typename K, typename V>
class Table final : public TableBase {
 public:
  using Key = K;
  using ValueType = V;
  using Listener = std::function<void(const RecordChange<K, V>&)>;

  explicit Table(const TableDescriptor& descriptor)
      : TableBase(descriptor, internal::ValueOperationsOf<K, V>()) {
    records_.hash_of = [](const internal::Record& record) {
      return HashKey(static_cast<const RecordType&>(record).key);
    };
  }

  TableSchema Describe() const override {
    return DescribeTable<K, V>({.name = name_,
                                .id = id_,
                                .version = descriptor_.version,
                                .memory = descriptor_.memory,
                                .no_schema = descriptor_.no_schema});
  }

  // --- inside a transaction ---

  // The record as this transaction sees it, or null. A later Edit does not change what the pointer
  // shows.
  const V* Get(Transaction& tx, const K& key) { return Content(Open(tx, key, false)); }
  // The same, for a body that decides by what it reads whether it writes.
  Found<V> Find(Transaction& tx, const K& key) {
    internal::Access& access = Open(tx, key, false);
    return {tx, access, Content(access)};
  }
  bool Contains(Transaction& tx, const K& key) { return Get(tx, key) != nullptr; }

  Edited<V> Edit(Transaction& tx, const K& key) {
    internal::Access& access = Open(tx, key, true);
    if (access.content() != nullptr) tx.MakeEditable(access);
    return {tx, access};
  }

  // Creates a default record if there is none.
  Edited<V> GetOrAdd(Transaction& tx, const K& key, bool* added = nullptr) {
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

  // Inserts or replaces, also a row of the storage that cannot be decoded.
  void Put(Transaction& tx, const K& key, V value) {
    internal::Access& access =
        Open(tx, key, true, true);  // May throw: before anything is allocated.
    tx.SetWorking(access, internal::NewValue<V>(tx.participant(), std::move(value)));
  }

  // False, and nothing happens, if the record exists.
  bool TryAdd(Transaction& tx, const K& key, V value) {
    internal::Access& access = Open(tx, key, true);
    if (access.content() != nullptr) return false;
    tx.SetWorking(access, internal::NewValue<V>(tx.participant(), std::move(value)));
    return true;
  }

  // Throws DuplicateKeyError if the record exists.
  void Insert(Transaction& tx, const K& key, V value) {
    if (!TryAdd(tx, key, std::move(value))) {
      throw DuplicateKeyError("record " + KeyText(key) + " of table " + name_ + " exists already");
    }
  }

  // False if there was nothing to remove. Removes also a row that cannot be decoded.
  bool Remove(Transaction& tx, const K& key) {
    internal::Access& access = Open(tx, key, true, true);
    if (access.absent()) return false;
    tx.MarkRemoved(access);
    return true;
  }

  // The record stays as it is for a while and is removed then, unless somebody writes it before:
  // zeze/components/delay_remove, which must know this table, says how. False if there is none.
  bool DelayRemove(Transaction& tx, const K& key,
                   std::chrono::milliseconds delay = std::chrono::milliseconds(0)) {
    CheckLaterRemoval();
    internal::Access& access = Open(tx, key, false);
    if (access.content() == nullptr) return false;
    const std::size_t index = tx.IndexOf(access);
    later_removal_->RemoveLater(tx, *this, EncodedKey(key), delay);
    tx.MarkRemovedLater(tx.at(index));
    return true;
  }

  Result<bool> RemoveEncoded(Transaction& tx, std::string_view bytes) override {
    Result<K> key = DecodedKey(bytes);
    if (!key.ok()) return key.error();
    return Remove(tx, key.value());
  }

  // Announces keys that will be read (Share) or written (Modify): their cache misses overlap, and
  // what this server does not have of them it asks for at once, rights in one round trip, rows in
  // another. Only a hint: nothing of it can fail.
  void Prefetch(Transaction& tx, std::span<const K> keys, Right wanted = Right::kShare) {
    CheckUse(tx);
    for (const K& key : keys) records_.PrefetchSlot(tx.participant(), HashKey(key), kPlace);
    for (const K& key : keys) records_.PrefetchRecord(tx.participant(), HashKey(key), kPlace);
    if (engine_ != nullptr && engine_->FetchesInBatches()) Fetch(tx, keys, wanted);
  }

  // --- outside transactions ---

  // A copy of the committed value, loaded if it is not in the cache.
  // Errors: the record cannot be had (storage, rights); kShuttingDown once the engine stops.
  Result<std::optional<V>> ReadCopy(const K& key) {
    CheckAttached();
    const internal::ContextLease context(engine_->contexts());
    const InsideScope inside(*context);
    if (!engine_->ReadsAllowed()) return ReadRefused();
    while (true) {
      internal::Record* record = records_.Find(context->participant, HashKey(key), Equals(key));
      if (record == nullptr) {
        if (Result<void> room = PrepareCreate(key); !room.ok()) return room.error();
        record = &FindOrCreate(*context, key);
        context->pins.Add(record);
      }
      const Result<void> loaded = engine_->Load(*context, *record, Right::kShare);
      engine_->UseUp(*context);
      if (!loaded.ok()) return loaded.error();
      const std::uint64_t word = record->word.load(std::memory_order_acquire);
      if (!internal::Word::Readable(word)) continue;
      std::optional<V> value = CopyValue(context->participant, *record);
      if (record->word.load(std::memory_order_acquire) != word) continue;
      // Without a lease somebody else may have changed it.
      if (!engine_->LeaseValid()) {
        return Error(ErrorCode::kUnavailable, "the lease of this server has expired");
      }
      return value;
    }
  }

  // What the cache has of the committed state; null if the record is not cached or absent. Asks
  // nobody and loads nothing, so it also works after the engine has stopped, while that exists.
  std::optional<V> ReadCached(const K& key) {
    CheckAttached();
    const internal::ContextLease context(engine_->contexts());
    const InsideScope inside(*context);
    return LookUp(*context, key).value;
  }

  // Every record in the order of the encoded keys (see key_range.h), storage and cache merged: the
  // newest committed value of each, with unsaved inserts and without unsaved removes. The walk is
  // not a transaction: it sees records at different moments. It does not fill the cache. Memory
  // tables have no particular order. The visitor returns false to stop; it may run procedures, even
  // on this table. Rows that cannot be decoded are left out and reported (WalkOptions). Returns how
  // many records were given. Stop of the engine waits for the page that is being read, not for the
  // visitor; the next page is refused with kShuttingDown. The same holds for all walks below.
  Result<std::size_t> Walk(FunctionRef<bool(const K&, const V&)> visit,
                           const WalkOptions& options = {}) {
    return WalkKeyRange({}, visit, options);
  }

  // The same of the keys in a range; integers in the order of numbers.
  Result<std::size_t> Walk(const KeyRange<K>& range, FunctionRef<bool(const K&, const V&)> visit,
                           const WalkOptions& options = {}) {
    return WalkKeyRange(range, visit, options);
  }

  // The keys alone. Values are neither read from the storage nor decoded, so this gives the keys of
  // rows that cannot be decoded, too.
  Result<std::size_t> WalkKeys(FunctionRef<bool(const K&)> visit, const WalkOptions& options = {}) {
    return WalkKeyRange({}, visit, options);
  }
  Result<std::size_t> WalkKeys(const KeyRange<K>& range, FunctionRef<bool(const K&)> visit,
                               const WalkOptions& options = {}) {
    return WalkKeyRange(range, visit, options);
  }

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
  std::size_t WalkCache(FunctionRef<bool(const K&, const V&)> visit) {
    CheckAttached();
    std::size_t count = 0;
    for (std::size_t shard = 0; shard < internal::RecordMap::kShardCount; ++shard) {
      if (!WalkShard(shard, visit, nullptr, count)) break;
    }
    return count;
  }

  // Rows of the storage alone, as of the last checkpoint; page by page, as Walk.
  Result<std::size_t> WalkStorage(FunctionRef<bool(const K&, const V&)> visit,
                                  const WalkOptions& options = {});

  // Called after each commit that changed a record, in commit order, before the procedure's own
  // after-commit actions. zeze/bean/difference.h says precisely what changed between the two
  // values. A listener must not run procedures that write (they fail with kLogicError) or wait for
  // another thread that does. Returns a number for RemoveListener. An empty one throws UsageError.
  std::size_t AddListener(Listener listener) {
    ZEZE_REQUIRE(listener != nullptr, "the listener of table " + name_ + " is empty");
    const std::lock_guard lock(listeners_mutex_);
    auto next = std::make_shared<Listeners>(*listeners_);
    next->emplace_back(++last_listener_, std::move(listener));
    listeners_ = std::move(next);
    has_listeners_ = true;
    return last_listener_;
  }

  void RemoveListener(std::size_t number) {
    const std::lock_guard lock(listeners_mutex_);
    auto next = std::make_shared<Listeners>(*listeners_);
    std::erase_if(*next, [number](const auto& entry) { return entry.first == number; });
    has_listeners_ = !next->empty();
    listeners_ = std::move(next);
  }

 private:
  using RecordType = internal::RecordWithValue<K, V>;
  using Listeners = std::vector<std::pair<std::size_t, Listener>>;

  struct Row {
    K key;
    std::optional<V> value;  // Null only in walks over keys.
  };
  struct Page {
    std::vector<Row> rows;
    std::optional<std::string> last;  // Encoded key to go on after; none: the span is done.
    std::size_t bytes = 0;            // About, of the rows that came from the cache.
  };
  struct StoredRows {
    std::vector<std::pair<std::string, std::string>> rows;
    bool cut = false;  // The span may have more rows.
  };
  struct Cached {
    bool known = false;  // The cache says what the newest committed state is.
    bool exists = false;
    std::size_t bytes = 0;  // About, of an unsaved value.
    std::optional<V> value = std::nullopt;
  };
  struct InsideScope {
    explicit InsideScope(internal::Context& c) : context(c) { context.participant.Enter(); }
    ~InsideScope() {
      context.pins.Clear();
      context.participant.Leave();
    }
    InsideScope(const InsideScope&) = delete;
    InsideScope& operator=(const InsideScope&) = delete;
    internal::Context& context;
  };

  static constexpr bool kInRecord = internal::kLivesInRecord<V>;
  // A value in a record has at most 128 variables, each encoded with its tag.
  static constexpr std::size_t kFlatValueBytesMax = 4096;
  static constexpr internal::ValuePlace kPlace = {
      .in_record = kInRecord,
      .bytes =
          kInRecord ? sizeof(RecordType) - sizeof(internal::Record) : sizeof(internal::Value<V>)};

  // Perhaps torn: true if the record's word is the same before and after. The caller is inside.
  static std::optional<V> CopyValue(internal::Participant& by, const internal::Record& record) {
    const internal::ValueHeader* value = by.Protect(record.value);
    if (value == nullptr) return std::nullopt;
    if constexpr (kInRecord) {
      std::optional<V> copy(std::in_place);
      static_cast<const RecordType&>(record).value_in_record.Fetch(*copy);
      return copy;
    } else {
      return static_cast<const internal::Value<V>*>(value)->value;
    }
  }

  static const V* Content(const internal::Access& access) {
    const internal::ValueHeader* content = access.content();
    return content == nullptr ? nullptr : &static_cast<const internal::Value<V>*>(content)->value;
  }

  static auto Equals(const K& key) {
    return [&key](const internal::Record& record) {
      return SameKey(static_cast<const RecordType&>(record).key, key);
    };
  }

  static void Note(internal::Access& access, internal::RecordMap::ValueHint* hint) {
    if (hint == nullptr) return;
    access.hint = hint;
    const void* value = access.committed;
    if (hint->load(std::memory_order_relaxed) != value) {
      hint->store(value, std::memory_order_relaxed);
    }
  }

  internal::Access& Open(Transaction& tx, const K& key, bool for_write, bool overwrite = false) {
    CheckUse(tx);
    internal::Backoff backoff;
    while (true) {
      auto [record, hint] =
          records_.FindAndFetch(tx.participant(), HashKey(key), Equals(key), kPlace, for_write);
      if (record == nullptr) [[unlikely]] {
        if (Result<void> room = PrepareCreate(key); !room.ok()) {
          tx.AbortFailed(room.error().code() == ErrorCode::kOverloaded ? result_code::kBusy
                                                                       : result_code::kException,
                         room.error().message());
        }
        record = &FindOrCreate(tx.context(), key);
      }
      if (internal::Access* access = tx.Open(*this, *record, for_write, overwrite)) {
        Note(*access, hint);
        return *access;
      }
      backoff.Wait();
    }
  }

  void Fetch(Transaction& tx, std::span<const K> keys, Right wanted) {
    std::vector<internal::Record*> missing;
    for (const K& key : keys) {
      internal::Record* record = records_.Find(tx.participant(), HashKey(key), Equals(key));
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
    if (!missing.empty()) engine_->Fetch(tx.context(), *this, missing, wanted);
  }

  Result<void> PrepareCreate(const K& key) {
    CheckAttached();
    if constexpr (!std::is_arithmetic_v<K>) {
      const std::size_t bytes = EncodedKey(key).size();
      if (bytes > key_bytes_max_) {
        return Error(ErrorCode::kInvalidArgument,
                     "a key of table " + name_ + " is " + std::to_string(bytes) +
                         " bytes long; at most " + std::to_string(key_bytes_max_) +
                         " can be stored");
      }
    }
    return engine_->AwaitCacheRoom(*this);
  }

  internal::Record& FindOrCreate(internal::Context& context, const K& key) {
    const std::uint64_t hash = HashKey(key);
    internal::Participant& by = context.participant;
    return *records_.FindOrAdd(by, hash, Equals(key), [&]() -> internal::Record* {
      auto* record = new (by.Allocate(sizeof(RecordType))) RecordType(key);
      const bool alone = engine_->options().coherence == nullptr || memory();
      NoteAbsence();
      record->table_index = index_;
      record->birth_era = by.kept_era();
      const std::uint64_t version = context.NextLoadVersion();
      record->flushed_version.store(version, std::memory_order_relaxed);
      record->word.store(internal::Word::Make(version, alone ? Right::kModify : Right::kInvalid,
                                              storage_ == nullptr),
                         std::memory_order_relaxed);
      return record;
    });
  }

  // The newest committed state of a key, if the cache knows it. The caller is inside.
  Cached LookUp(internal::Context& context, const K& key, bool keys_only = false) {
    internal::Backoff backoff;
    while (true) {
      internal::Record* record = records_.Find(context.participant, HashKey(key), Equals(key));
      if (record == nullptr) return {};
      const std::uint64_t word = record->word.load(std::memory_order_acquire);
      if (internal::Word::Locked(word)) {
        backoff.Wait();
        continue;
      }
      if (!internal::Word::Readable(word)) return {};
      Cached cached{.known = true};
      const internal::ValueHeader* value = context.participant.Protect(record->value);
      cached.exists = value != nullptr;
      if (cached.exists && !keys_only) {
        if (!kInRecord) cached.bytes = RowBytes(*record, value);
        cached.value = CopyValue(context.participant, *record);
        cached.exists = cached.value.has_value();
      }
      if (record->word.load(std::memory_order_acquire) != word) continue;
      return cached;
    }
  }

  // --- walks ---

  static bool Give(FunctionRef<bool(const K&, const V&)> visit, const Row& row) {
    return visit(row.key, *row.value);
  }
  static bool Give(FunctionRef<bool(const K&)> visit, const Row& row) { return visit(row.key); }

  // The cached records of a shard that are in the range (null: all). False: the visitor stopped.
  template <typename Visit>
  bool WalkShard(std::size_t shard, Visit visit, const KeyRange<K>* range, std::size_t& count);

  struct Walked {
    std::size_t count = 0;
    bool stopped = false;
  };

  template <typename Visit>
  Result<Walked> WalkStoredSpan(const internal::KeySpan& span, Visit visit,
                                const WalkOptions& options, BadRows& bad);

  template <typename Visit>
  Result<std::size_t> WalkKeyRange(const KeyRange<K>& range, Visit visit,
                                   const WalkOptions& options);

  class Spans;

  // The length of the first key in the span.
  Result<std::optional<std::size_t>> FirstLength(const internal::KeySpan& span, bool descending,
                                                 BadRows& bad)
    requires KeyRange<K>::kHasPrefixes;

  // A storage begins after a key, a span with it.
  static bool BeginsAtFrom(const internal::KeySpan& span, const std::optional<std::string>& after,
                           const WalkOptions& options) {
    return !after && !options.descending && span.from;
  }
  static StorageWalk StorageWalkOf(const internal::KeySpan& span,
                                   const std::optional<std::string>& after,
                                   const WalkOptions& options, bool keys_only) {
    return {.after = after ? after : (options.descending ? span.to : span.from),
            .descending = options.descending,
            .keys_only = keys_only,
            .limit = options.page_size};
  }

  // A page of encoded rows of the storage. The caller is inside and may read.
  Result<StoredRows> ReadStored(const internal::KeySpan& span,
                                const std::optional<std::string>& after, const WalkOptions& options,
                                bool keys_only);

  // The next keys of a span, after (before) `after`. Unsaved inserts are noted before the storage
  // is read: a record that is saved and evicted between the two is then seen in the storage, never
  // missed. A row that may have been written since it was read, while its record was evicted, is
  // read again (AddRow).
  Result<Page> ReadPage(const internal::KeySpan& span, const std::optional<std::string>& after,
                        const WalkOptions& options, bool keys_only, BadRows& bad);

  // The cache wins over the storage's row; null: the key was an unsaved insert. `serial` is of
  // before the storage was read.
  Result<void> AddRow(internal::Context& context, const std::string& key_bytes,
                      const std::string* value_bytes, std::uint64_t serial, bool keys_only,
                      Page& page, BadRows& bad);

  // Each key once, as of one moment: however the shard changes afterwards, a record that stays is
  // given once.
  std::vector<K> CachedKeys(std::size_t shard);

  Result<Row> DecodeRow(std::string_view key_bytes, std::string_view value_bytes) const;

  static std::string EncodedKey(const K& key) { return EncodeKey(key); }

  Result<K> DecodedKey(std::string_view bytes) const {
    Result<K> key = DecodeKey<K>(bytes);
    if (key.ok()) return key;
    return Error(key.error().code(), "table " + name_ + ": " + key.error().message());
  }

  static std::string KeyText(const K& key) { return FormatValue(key); }

  // --- TableBase ---

  void EncodeRecordKey(const Record& record, ByteWriter& out) const override {
    EncodeKey(out, static_cast<const RecordType&>(record).key);
  }
  void EncodeValue(const ValueHeader& value, ByteWriter& out) const override {
    static_cast<const internal::Value<V>&>(value).value.Encode(out);
  }
  Result<ValueHeader*> DecodeValue(internal::Participant& by,
                                   std::string_view bytes) const override {
    internal::Value<V>* value = internal::NewValue<V>(by, V{});
    ByteReader in(bytes);
    value->value.Decode(in);
    if (in.ok()) return static_cast<ValueHeader*>(value);
    Error error(ErrorCode::kCorrupt, in.error_message());
    values_.dispose(by, value);
    return error;
  }
  std::string FormatKey(const Record& record) const override {
    return KeyText(static_cast<const RecordType&>(record).key);
  }
  std::uint64_t HashOf(const Record& record) const override {
    return HashKey(static_cast<const RecordType&>(record).key);
  }
  internal::Disposer record_disposer() const override {
    return [](internal::Participant& by, void* object) {
      auto* record = static_cast<RecordType*>(static_cast<internal::Record*>(object));
      record->~RecordType();
      by.Free(record, sizeof(RecordType));
    };
  }
  Record* FindEncoded(internal::Participant& by, std::string_view bytes) const override {
    Result<K> key = DecodedKey(bytes);
    if (!key.ok()) return nullptr;
    return records_.Find(by, HashKey(key.value()), Equals(key.value()));
  }
  std::size_t FixedValueBytes() const override {
    return kInRecord && EncodedSize<V>::kFixed == 0 ? kFlatValueBytesMax : EncodedSize<V>::kFixed;
  }
  std::size_t FixedKeyBytes() const override { return EncodedSize<K>::kFixed; }
  std::size_t KeyBytes(const Record& record) const override {
    return EncodedSize<K>::Of(static_cast<const RecordType&>(record).key);
  }
  void Weigh(const Record& record, ValueHeader& value, const ValueHeader* older) const override {
    const V& now = static_cast<const internal::Value<V>&>(value).value;
    if (older == nullptr || older->row_bytes == 0) {
      value.row_bytes = kStorageWriteOverheadBytes + KeyBytes(record) + EncodedSize<V>::Of(now);
      return;
    }
    const V& before = static_cast<const internal::Value<V>*>(older)->value;
    value.row_bytes =
        older->row_bytes + static_cast<std::uint64_t>(EncodedSize<V>::Change(now, before));
  }
  bool SurelyReadable(const ValueHeader& value, const ValueHeader& older) const override {
    return Readable<V>::Since(static_cast<const internal::Value<V>&>(value).value,
                              static_cast<const internal::Value<V>&>(older).value);
  }
  void Notify(const Change& change) override {
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
      internal::CallListener(name_, [&] { listener(typed); });
    }
  }

  std::mutex listeners_mutex_;
  std::shared_ptr<const Listeners> listeners_ = std::make_shared<Listeners>();
  std::size_t last_listener_ = 0;
};

}  // namespace zeze

#include "zeze/transaction/table_walk_inl.h"  // IWYU pragma: export
