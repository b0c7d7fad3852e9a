#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/sql/sql_options.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

StorageDriver MariaDbStorageDriver() {
  return {.name = "MySql",
          .schemes = {"mysql", "mariadb"},
          .shared = true,
          .open = [](const StorageAddress& at) { return OpenMariaDbStorage(SqlOptionsOf(at)); },
          .check = [](const StorageAddress& at) { return CheckMariaDbOptions(SqlOptionsOf(at)); },
          .open_home = [](const StorageAddress& at) { return OpenMariaDbHome(SqlOptionsOf(at)); }};
}

}  // namespace zeze

// The linker keeps it by its name, see zeze/storage/storage_driver.h.
extern "C" [[gnu::constructor]] void zeze_storage_driver_mariadb() {
  zeze::RegisterStorageDriver(zeze::MariaDbStorageDriver());
}
