// StoredHome: a place for tables that outlives engines, in memory or in a RocksDB directory.
//
//   StoredHome home(StoredHome::Kind::kRocksDb);
//   auto storage = home.Open();       // Again and again: each finds what the last one left.

#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::testing {

class StoredHome {
 public:
  enum class Kind { kMemory, kRocksDb };

  explicit StoredHome(Kind kind) : kind_(kind), database_(NewMemoryDatabase()) {}

  std::unique_ptr<Storage> Open() {
    if (kind_ == Kind::kMemory) return OpenMemoryStorage(database_);
    Result<std::unique_ptr<Storage>> opened =
        OpenRocksDbStorage({.directory = directory_.File("db")});
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(opened).value();
  }

  const std::shared_ptr<MemoryDatabase>& database() const { return database_; }

 private:
  const Kind kind_;
  const std::shared_ptr<MemoryDatabase> database_;
  TempDirectory directory_;
};

inline std::string KindName(const ::testing::TestParamInfo<StoredHome::Kind>& info) {
  return info.param == StoredHome::Kind::kMemory ? "Memory" : "RocksDb";
}

}  // namespace zeze::testing
