#include "zeze/storage/storage.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"

namespace zeze {
namespace {

Error InvalidWrite(const StorageWrite& write, std::string_view what) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("cannot write to table '{}': {}. Nothing of this flush was written.",
                      write.table->name(), what)};
}

}  // namespace

Result<void> StorageTable::FindMany(std::span<const std::string_view> keys,
                                    FunctionRef<void(std::size_t, std::string_view)> found) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Result<bool> one =
        Find(keys[i], [&found, i](std::string_view value) { found(i, value); });
    if (!one.ok()) return one.error();
  }
  return {};
}

Result<void> CheckStorageTableName(std::string_view name) {
  std::string_view problem;
  if (name.empty()) {
    problem = "it is empty";
  } else if (name.size() > kStorageTableNameBytesMax) {
    problem = "it is longer than 255 bytes";
  } else if (name == kStorageVersionedTable) {
    problem = "the framework keeps its versioned data there; use LoadVersioned and SaveVersioned";
  } else {
    for (char c : name) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        problem = "it contains a control character";
      }
    }
  }
  if (problem.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("'{}' cannot be the name of a table: {}",
                           name.substr(0, kStorageTableNameBytesMax), problem));
}

Result<void> CheckStorageWrites(std::span<const StorageWrite> writes, const StorageLimits& limits) {
  std::size_t total = 0;
  const StorageWrite* previous = nullptr;
  for (const StorageWrite& write : writes) {
    ZEZE_CHECK(write.table != nullptr);
    if (previous != nullptr && previous->table == write.table) {
      ZEZE_CHECK(previous->key < write.key);  // The contract of Storage::Flush.
    }
    previous = &write;
    const std::size_t value_bytes = write.remove ? 0 : write.value.size();
    if (write.key.size() > limits.key_bytes_max) {
      return InvalidWrite(write, fmt::format("the key has {} bytes, at most {} are possible",
                                             write.key.size(), limits.key_bytes_max));
    }
    if (value_bytes > limits.value_bytes_max) {
      return InvalidWrite(write,
                          fmt::format("the value has {} bytes, at most {} are possible; split the "
                                      "record",
                                      value_bytes, limits.value_bytes_max));
    }
    total += write.key.size() + value_bytes + kStorageWriteOverheadBytes;
  }
  if (total > limits.flush_bytes_max) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot flush {} rows at once: they take {} bytes, at most {} are "
                             "possible in one atomic write. Nothing was written; flush more often "
                             "or lower the limit of unflushed data.",
                             writes.size(), total, limits.flush_bytes_max));
  }
  return {};
}

Result<void> CheckStorageVersioned(std::string_view id, std::string_view data,
                                   const StorageLimits& limits) {
  if (id.size() > limits.key_bytes_max) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot save versioned data: its id has {} bytes, at most {} are "
                             "possible",
                             id.size(), limits.key_bytes_max));
  }
  if (data.size() > limits.value_bytes_max) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot save versioned data '{}': it has {} bytes, at most {} are "
                             "possible",
                             id, data.size(), limits.value_bytes_max));
  }
  return {};
}

Error StorageTableNotFound(std::string_view attempt, std::string_view name) {
  return {ErrorCode::kNotFound,
          fmt::format("cannot {} table '{}': there is no table of that name", attempt, name)};
}

Error StorageRenameConflict(std::string_view from, std::string_view to) {
  return {ErrorCode::kConflict,
          fmt::format("cannot rename table '{}' to '{}': a table of that name exists and has rows. "
                      "Drop it first, or choose another name.",
                      from, to)};
}

Error StorageVersionConflict(std::string_view id, std::int64_t expected, std::int64_t stored) {
  return {ErrorCode::kConflict,
          fmt::format("versioned data '{}' has version {}, not {}: somebody else saved it first. "
                      "Load it again and repeat.",
                      id, stored, expected)};
}

}  // namespace zeze
