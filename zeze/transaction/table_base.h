// TableBase: what a table is to those who do not know its types: the engine, the cache, the
// checkpoint.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/bean/schema.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/internal/change_queue.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/table_cache.h"
#include "zeze/transaction/internal/unsaved_inserts.h"
#include "zeze/transaction/internal/value_operations.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

class LaterRemoval;

// What the configuration says about a table.
struct TableOptions {
  // Records kept in memory. The cache may exceed it by a tenth for a moment, and by what running
  // transactions use: that is never evicted. 0 = no bound. Without meaning for tables that are not
  // in a storage: they keep all their records.
  std::size_t cache_capacity = 100'000;
  // Transactions that write the table, or read its unsaved data, are answered only when they are in
  // the storage.
  bool durable_at_commit = false;
  // Appended to the storage name, see TableDescriptor::suffix.
  std::string suffix = {};
};

// A row of the storage that is not what the schema says: damaged, or written by something else.
struct BadRow {
  std::string_view table;
  std::string_view key;  // As it is stored, like the value.
  std::string_view value;
  std::string_view why;  // Names the record, if its key can be decoded.
};

// Which way a walk goes, what it reads at a time, and what happens to rows that it cannot give.
struct WalkOptions {
  bool descending = false;
  // A page is what a walk has in memory: so many records at most, and not many more bytes of the
  // storage than this (one record at least).
  std::size_t page_size = 1000;
  std::size_t page_bytes = std::size_t{4} << 20;
  // Rows that cannot be decoded are left out and told to this. Null: the log names them, the first
  // ten of each walk. Put replaces such a row, Remove removes it, in a procedure as ever. It runs
  // while a page is read, so Stop of the engine waits for it.
  std::function<void(const BadRow& row)> on_bad_row = nullptr;
};

struct TableStatistics {
  std::size_t cached = 0;
  std::size_t capacity = 0;
  std::uint64_t loads = 0;
  std::uint64_t evictions = 0;
};

// Tables live as long as the engine they are added to.
class TableBase {
 public:
  TableBase(const TableBase&) = delete;
  TableBase& operator=(const TableBase&) = delete;
  virtual ~TableBase();

  std::int32_t id() const { return id_; }
  // In the storage, suffix included.
  const std::string& name() const { return name_; }
  const TableDescriptor& descriptor() const { return descriptor_; }
  bool memory() const { return descriptor_.memory; }
  bool durable_at_commit() const { return options_.durable_at_commit; }
  bool attached() const { return engine_ != nullptr; }
  TableStatistics statistics() const;

  // Who removes records of this table later (Table::DelayRemove); outlives the engine. Before
  // Start. With tell_writes it hears of every record that is written. Throws UsageError for a table
  // in use and for a second LaterRemoval.
  void SetLaterRemoval(LaterRemoval& removal, bool tell_writes);
  bool has_later_removal() const { return later_removal_ != nullptr; }
  bool tells_writes() const { return tells_writes_; }
  // False if there was nothing to remove. Errors: no key of this table.
  virtual Result<bool> RemoveEncoded(Transaction& tx, std::string_view key) = 0;

  // For the stored schema.
  virtual TableSchema Describe() const = 0;

  // Below: for the parts of the engine.

  using Record = internal::Record;
  using ValueHeader = internal::ValueHeader;

  // Before the start: options, name and id.
  void Configure(TableOptions options);
  // At the start. Without a storage nothing of the table is saved.
  void Attach(Engine& engine, std::uint16_t index, StorageTable* storage, bool tracked);
  void SetLimits(const StorageLimits& limits);
  void Detach();

  Engine* engine() const { return engine_; }
  std::uint16_t index() const { return index_; }
  StorageTable* storage() const { return storage_; }
  // Whether commits of this table are saved, or matter to what is saved with them.
  bool tracked() const { return tracked_; }
  std::size_t cache_capacity() const { return options_.cache_capacity; }
  // Whether a record can be had again after it has left the cache.
  bool evicts() const { return storage_ != nullptr && options_.cache_capacity != 0; }
  LaterRemoval* later_removal() const { return later_removal_; }

  const internal::ValueOperations& values() const { return values_; }
  internal::TableCache& cache() { return cache_; }
  const internal::TableCache& cache() const { return cache_; }
  internal::UnsavedInserts& unsaved_inserts() { return unsaved_inserts_; }
  internal::ChangeQueue& changes() { return changes_; }

  // Throws UsageError if the table was not added to an engine that has started.
  void CheckAttached() const;
  // What a read outside transactions gets once the engine stops.
  Error ReadRefused() const;

  // By which Global locks the record: the table's id as four bytes little-endian, then its key.
  std::string GlobalKey(const Record& record) const;
  virtual void EncodeRecordKey(const Record& record, ByteWriter& out) const = 0;
  virtual void EncodeValue(const ValueHeader& value, ByteWriter& out) const = 0;
  virtual Result<ValueHeader*> DecodeValue(internal::Participant& by,
                                           std::string_view bytes) const = 0;
  virtual std::string FormatKey(const Record& record) const = 0;
  virtual std::uint64_t HashOf(const Record& record) const = 0;
  virtual internal::Disposer record_disposer() const = 0;
  // The cached record of an encoded key, or null.
  virtual Record* FindEncoded(internal::Participant& by, std::string_view key) const = 0;
  // Tells the listeners.
  virtual void Notify(const internal::Change& change) = 0;

  // What the row takes in a flush, at most: of a value that was admitted, or null for none.
  std::size_t RowBytes(const Record& record, const ValueHeader* value) const {
    if (fixed_row_bytes_ != 0) return fixed_row_bytes_;
    if (value != nullptr && fixed_value_bytes_ == 0) return value->row_bytes;
    return kStorageWriteOverheadBytes + KeyBytes(record) +
           (value == nullptr ? 0 : fixed_value_bytes_);
  }
  // What the storage or later readers would refuse must be refused before the commit: the error
  // names the record and why. `older`: the value before it, or null. Weighs the value.
  Result<void> Admit(const Record& record, ValueHeader& value, const ValueHeader* older) const {
    if (value_may_be_unreadable_) [[unlikely]] {
      if (Result<void> readable = CheckReadable(record, value, older); !readable.ok())
        return readable;
    }
    if (fixed_value_bytes_ == 0) Weigh(record, value, older);
    const std::size_t bytes = fixed_value_bytes_ != 0 ? fixed_value_bytes_ : value.row_bytes;
    if (bytes > value_bytes_max_) [[unlikely]]
      return CheckFits(record, value);
    return {};
  }

  // A table without a storage keeps what it has, but not every key it was ever asked for.
  void NoteAbsence() {
    if (storage_ == nullptr) cache_.absences.fetch_add(1, std::memory_order_relaxed);
  }

 protected:
  TableBase(const TableDescriptor& descriptor, const internal::ValueOperations& values);

  // The bound of every value of this table; 0 if there is none.
  virtual std::size_t FixedValueBytes() const = 0;
  // The same of keys.
  virtual std::size_t FixedKeyBytes() const = 0;
  virtual std::size_t KeyBytes(const Record& record) const = 0;
  // Sets the value's row_bytes. The cost is that of what it does not share with the older one.
  virtual void Weigh(const Record& record, ValueHeader& value, const ValueHeader* older) const = 0;
  // Whether readers accept the value because they accepted the older one. Cheap; false proves
  // nothing.
  virtual bool SurelyReadable(const ValueHeader& value, const ValueHeader& older) const = 0;

  // Throws UsageError unless the body of the transaction runs here and knows this table.
  void CheckUse(const Transaction& tx) const {
    const bool good = internal::thread_calls.body == &tx && engine_ == &tx.engine();
    if (!good) [[unlikely]]
      tx.CheckUse(*this);
  }
  // Throws UsageError if nobody removes records of this table later.
  void CheckLaterRemoval() const;
  // A key that is longer cannot be stored.
  Result<void> CheckKey(std::size_t bytes) const;
  // A record that nobody has seen yet, of which nothing is known.
  void BeginRecord(internal::Context& context, Record& record);

 private:
  Result<void> CheckReadable(const Record& record, const ValueHeader& value,
                             const ValueHeader* older) const;
  // Measures. The error names record, size and limit.
  Result<void> CheckFits(const Record& record, const ValueHeader& value) const;

  const TableDescriptor descriptor_;
  const internal::ValueOperations values_;
  std::string name_;
  std::int32_t id_ = 0;
  TableOptions options_;
  Engine* engine_ = nullptr;
  StorageTable* storage_ = nullptr;
  std::uint16_t index_ = 0;
  bool tracked_ = false;
  std::size_t key_bytes_max_ = kStorageKeyBytesMax;
  std::size_t value_bytes_max_ = ~std::size_t{0};
  bool value_may_be_unreadable_ = false;
  std::size_t fixed_value_bytes_ = 0;
  std::size_t fixed_row_bytes_ = 0;  // With key and overhead; 0: keys or values have no bound.
  LaterRemoval* later_removal_ = nullptr;
  bool tells_writes_ = false;
  // Above: what every commit reads and nobody writes after the start.
  internal::TableCache cache_;
  internal::ChangeQueue changes_;
  internal::UnsavedInserts unsaved_inserts_;
};

}  // namespace zeze
