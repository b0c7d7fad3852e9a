#include <string>

#include "zeze/base/result.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

StorageDriver RocksDbStorageDriver() {
  return {.name = "RocksDB",
          .schemes = {"rocksdb"},
          .open =
              [](const StorageAddress& address) {
                const std::string directory(StoragePlace(address.url));
                return OpenRocksDbStorage({.directory = directory.empty() ? "db" : directory});
              },
          .check = [](const StorageAddress&) { return Result<void>(); }};
}

}  // namespace zeze

// The linker keeps it by its name, see zeze/storage/storage_driver.h.
extern "C" [[gnu::constructor]] void zeze_storage_driver_rocksdb() {
  zeze::RegisterStorageDriver(zeze::RocksDbStorageDriver());
}
