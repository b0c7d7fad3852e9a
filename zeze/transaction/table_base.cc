#include "zeze/transaction/table_base.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/log.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/schema.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/value_operations.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

TableBase::TableBase(const TableDescriptor& descriptor, const internal::ValueOperations& values)
    : descriptor_(descriptor),
      values_(values),
      name_(descriptor.name),
      id_(descriptor.id),
      cache_(!values.in_record()) {}

TableBase::~TableBase() {
  if (attached()) {
    ZEZE_LOG_CRITICAL(
        "table {} ends before its engine, which still uses it: let the engine or application end "
        "before its tables and modules",
        name_);
  }
  ZEZE_CHECK(!attached());
}

void TableBase::Configure(TableOptions options) {
  options_ = std::move(options);
  name_ = std::string(descriptor_.name) + options_.suffix;
  // Tables of different names are different tables to Global, too.
  if (!options_.suffix.empty()) id_ = HashName32(name_);
}

void TableBase::Attach(Engine& engine, std::uint16_t index, StorageTable* storage, bool tracked) {
  engine_ = &engine;
  index_ = index;
  storage_ = storage;
  tracked_ = tracked;
}

void TableBase::Detach() {
  engine_ = nullptr;
  storage_ = nullptr;
}

TableStatistics TableBase::statistics() const {
  return {.cached = cache_.records.size(),
          .capacity = options_.cache_capacity,
          .loads = cache_.loads.load(std::memory_order_relaxed),
          .evictions = cache_.evictions.load(std::memory_order_relaxed)};
}

void TableBase::SetLaterRemoval(LaterRemoval& removal, bool tell_writes) {
  ZEZE_REQUIRE(
      later_removal_ == nullptr || later_removal_ == &removal,
      fmt::format("table {} has a later removal already: let one DelayRemove serve it", name_));
  ZEZE_REQUIRE(!attached(),
               fmt::format("table {} is in use: call DelayRemove::Serve before the start", name_));
  later_removal_ = &removal;
  tells_writes_ = tells_writes_ || tell_writes;
}

void TableBase::CheckLaterRemoval() const {
  if (later_removal_ != nullptr) return;
  internal::ThrowUsageError(fmt::format(
      "table {} has no later removal: call DelayRemove::Serve(table) before the start", name_));
}

void TableBase::CheckAttached() const {
  ZEZE_REQUIRE(attached(),
               fmt::format("table {} belongs to no engine: add it to one and start that "
                           "first",
                           name_));
}

Error TableBase::ReadRefused() const {
  return {ErrorCode::kShuttingDown,
          fmt::format("table {} cannot be read any more: its engine stops or has stopped", name_)};
}

void TableBase::SetLimits(const StorageLimits& limits) {
  key_bytes_max_ = limits.key_bytes_max;
  value_bytes_max_ = limits.value_bytes_max;
  value_may_be_unreadable_ = CanBeUnreadable(Describe());
  fixed_value_bytes_ = FixedValueBytes();
  if (fixed_value_bytes_ != 0 && FixedKeyBytes() != 0) {
    fixed_row_bytes_ = kStorageWriteOverheadBytes + FixedKeyBytes() + fixed_value_bytes_;
  }
}

Result<void> TableBase::CheckFits(const Record& record, const ValueHeader& value) const {
  ByteWriter bytes;
  EncodeValue(value, bytes);
  if (bytes.size() <= value_bytes_max_) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("record {} of table {} would be {} bytes long, the storage takes {}: "
                           "split it into several records",
                           FormatKey(record), name_, bytes.size(), value_bytes_max_));
}

void TableBase::BeginRecord(internal::Context& context, Record& record) {
  const bool alone = engine_->options().coherence == nullptr || memory();
  NoteAbsence();
  record.table_index = index_;
  record.birth_era = context.participant.kept_era();
  const std::uint64_t version = context.NextLoadVersion();
  record.flushed_version.store(version, std::memory_order_relaxed);
  record.word.store(
      internal::Word::Make(version, alone ? Right::kModify : Right::kInvalid, storage_ == nullptr),
      std::memory_order_relaxed);
}

Result<void> TableBase::CheckKey(std::size_t bytes) const {
  if (bytes <= key_bytes_max_) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("a key of table {} is {} bytes long; at most {} can be stored", name_,
                           bytes, key_bytes_max_));
}

Result<void> TableBase::CheckReadable(const Record& record, const ValueHeader& value,
                                      const ValueHeader* older) const {
  if (older != nullptr && SurelyReadable(value, *older)) return {};
  try {
    ByteWriter bytes;
    EncodeValue(value, bytes);
  } catch (const EncodeError& error) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("record {} of table {} cannot be saved: {}", FormatKey(record), name_,
                             error.what()));
  }
  return {};
}

std::string TableBase::GlobalKey(const Record& record) const {
  ByteWriter key;
  key.WriteInt4(id_);
  EncodeRecordKey(record, key);
  return key.Release();
}

}  // namespace zeze
