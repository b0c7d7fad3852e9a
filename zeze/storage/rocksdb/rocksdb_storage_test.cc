#include "zeze/storage/rocksdb/rocksdb_storage.h"

#include <gtest/gtest.h>

#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

class RocksDbHome final : public StorageHome {
 public:
  explicit RocksDbHome(std::size_t memtable_bytes) : memtable_bytes_(memtable_bytes) {}

  Result<std::unique_ptr<Storage>> Open() override {
    return OpenRocksDbStorage(
        {.directory = directory_.File("data"), .memtable_bytes = memtable_bytes_});
  }

 private:
  const TempDirectory directory_;
  const std::size_t memtable_bytes_;
};

// The second one writes files and merges them all the time.
INSTANTIATE_TEST_SUITE_P(
    RocksDb, StorageConformanceTest,
    testing::Values(
        StorageDriver{"rocksdb", [] { return std::make_unique<RocksDbHome>(64 << 20); }},
        StorageDriver{"rocksdb_tiny_memtables", [] { return std::make_unique<RocksDbHome>(1); }}),
    StorageDriverName);

}  // namespace
}  // namespace zeze
