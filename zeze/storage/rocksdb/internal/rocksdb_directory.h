// Looks at a database directory before and after RocksDB does, to tell an operator what is wrong
// with it in words that RocksDB has not.

#pragma once

#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"

namespace zeze {

// See DiskRoom. RocksDB does not look at files of such names.
inline constexpr std::string_view kRocksDbSpareFile = "zeze.spare";

struct RocksDbDirectory {
  std::string path;  // Absolute, without links: RocksDB tells databases apart by this text.
  bool has_database = false;
};

// Creates the directory if allowed. Errors: those of OpenRocksDbStorage, except kInUse, kCorrupt.
Result<RocksDbDirectory> PrepareRocksDbDirectory(const RocksDbOptions& options);

// Why the lock of a database could not be taken, after RocksDB said so with `message`.
Error RocksDbInUse(const std::string& path, const std::string& message);

// True if that is what RocksDB meant.
bool IsRocksDbLockMessage(const std::string& message);

}  // namespace zeze
