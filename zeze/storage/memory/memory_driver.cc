#include <memory>

#include "zeze/base/result.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

StorageDriver MemoryStorageDriver() {
  return {.name = "Memory",
          .schemes = {"memory"},
          .durable = false,
          .open = [](const StorageAddress&) -> Result<std::unique_ptr<Storage>> {
            return OpenMemoryStorage();
          },
          .check = [](const StorageAddress&) { return Result<void>(); }};
}

}  // namespace zeze

// The linker keeps it by its name, see zeze/storage/storage_driver.h.
extern "C" [[gnu::constructor]] void zeze_storage_driver_memory() {
  zeze::RegisterStorageDriver(zeze::MemoryStorageDriver());
}
