#include "zeze/transaction/table_base.h"

#include <atomic>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/schema.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

TableBase::TableBase(const TableDescriptor& descriptor, const internal::ValueOperations& values)
    : descriptor_(descriptor),
      values_(values),
      name_(descriptor.name),
      id_(descriptor.id),
      records_(!values.in_record()) {}

TableBase::~TableBase() {
  if (attached()) {
    ZEZE_LOG_CRITICAL(
        "table {} ends before its engine, which still uses it: let the engine or application end "
        "before its tables and modules",
        name_);
  }
  ZEZE_CHECK(!attached());
}

TableStatistics TableBase::statistics() const {
  return {.cached = records_.size(),
          .capacity = options_.cache_capacity,
          .loads = loads_.load(std::memory_order_relaxed),
          .evictions = evictions_.load(std::memory_order_relaxed)};
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

std::string TableBase::WhyUnreadable(const ValueHeader& value, const ValueHeader* older) const {
  if (older != nullptr && SurelyReadable(value, *older)) return {};
  try {
    ByteWriter bytes;
    EncodeValue(value, bytes);
  } catch (const EncodeError& error) {
    return error.what();
  }
  return {};
}

void TableBase::NoteUnsavedInsert(const Record& record) {
  ByteWriter key;
  EncodeRecordKey(record, key);
  const std::lock_guard lock(inserts_mutex_);
  unsaved_inserts_.emplace(key.view());
}

void TableBase::ForgetUnsavedInsert(std::string_view key) {
  const std::lock_guard lock(inserts_mutex_);
  const auto at = unsaved_inserts_.find(key);
  if (at != unsaved_inserts_.end()) unsaved_inserts_.erase(at);
}

TableBase::BadRows::~BadRows() {
  if (unnamed_ == 0) return;
  ZEZE_LOG_ERROR("a walk of table {} left out {} more rows that cannot be decoded", table_.name(),
                 unnamed_);
}

void TableBase::BadRows::Tell(std::string_view key, std::string_view value,
                              const std::string& why) {
  constexpr std::size_t kLinesMax = 10;
  if (options_.on_bad_row) {
    options_.on_bad_row({.table = table_.name(), .key = key, .value = value, .why = why});
  } else if (logged_ < kLinesMax) {
    ++logged_;
    ZEZE_LOG_ERROR("a walk leaves out a row of {} bytes: {}; Put replaces it, Remove removes it",
                   value.size(), why);
  } else {
    ++unnamed_;
  }
}

std::vector<std::string> TableBase::UnsavedInserts(const StorageWalk& walk, bool inclusive) const {
  std::vector<std::string> keys;
  const std::lock_guard lock(inserts_mutex_);
  if (!walk.descending) {
    auto at = !walk.after ? unsaved_inserts_.begin()
              : inclusive ? unsaved_inserts_.lower_bound(*walk.after)
                          : unsaved_inserts_.upper_bound(*walk.after);
    for (; at != unsaved_inserts_.end() && keys.size() < walk.limit; ++at) keys.push_back(*at);
  } else {
    auto end = walk.after ? unsaved_inserts_.lower_bound(*walk.after) : unsaved_inserts_.end();
    for (auto at = std::make_reverse_iterator(end);
         at != unsaved_inserts_.rend() && keys.size() < walk.limit; ++at) {
      keys.push_back(*at);
    }
  }
  return keys;
}

}  // namespace zeze
