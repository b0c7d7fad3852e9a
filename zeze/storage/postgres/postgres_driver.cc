#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/sql/sql_options.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

StorageDriver PostgresStorageDriver() {
  return {.name = "PostgreSQL",
          .schemes = {"postgresql", "postgres"},
          .shared = true,
          .open = [](const StorageAddress& at) { return OpenPostgresStorage(SqlOptionsOf(at)); },
          .check = [](const StorageAddress& at) { return CheckPostgresOptions(SqlOptionsOf(at)); },
          .open_home = [](const StorageAddress& at) { return OpenPostgresHome(SqlOptionsOf(at)); }};
}

}  // namespace zeze

// The linker keeps it by its name, see zeze/storage/storage_driver.h.
extern "C" [[gnu::constructor]] void zeze_storage_driver_postgres() {
  zeze::RegisterStorageDriver(zeze::PostgresStorageDriver());
}
