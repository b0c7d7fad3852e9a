// OpenStorage: a storage by its address, through the driver that knows it.
//
//   Result<std::unique_ptr<Storage>> opened =
//       OpenStorage({.url = "jdbc:postgresql://db1:5432/game?user=zeze&password=secret"});
//   OpenStorage({.url = "rocksdb:data"});
//   OpenStorage({.url = "memory:"});
//
// What stands before the first colon, "jdbc:" left out, is the scheme, which chooses the driver. In
// configuration files the same choice is made by DatabaseType, the name of the driver.
//
// A program has the drivers that it links: zeze::storage_rocksdb, zeze::storage_postgres, ... Each
// registers itself before main() begins, and its CMake target makes the linker take the object file
// that does so (zeze_storage_driver in cmake/ZezeLayer.cmake); otherwise the linker would leave it
// in the static library, because nothing refers to it. So the choice of databases stands in one
// place, the list of libraries, and adding one changes no code. A function that every program had
// to call would be a second list beside that one, and a forgotten call would show only when the
// program runs. A build without CMake calls RegisterStorageDriver(RocksDbStorageDriver()) itself,
// at its start; registering twice does no harm.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/storage.h"

namespace zeze {

class DatabaseHome;

// Where a database is.
struct StorageAddress {
  std::string url;            // "rocksdb:data", "postgresql://db1/game", "jdbc:mysql://db1/game".
  std::string user = {};      // If not empty, instead of the one in the url.
  std::string password = {};  // The same.
  // For readers; one table leaves a quarter of them to others. Embedded databases have none.
  std::size_t connections_max = 8;
};

struct StorageDriver {
  std::string name;                  // "PostgreSQL"; DatabaseType in configuration files.
  std::vector<std::string> schemes;  // Of addresses: "postgresql", "postgres".
  // Several processes may use a database, which is reached by a url. Otherwise one process has it,
  // and what follows the scheme is for the driver: a directory, or nothing.
  bool shared = false;
  bool durable = true;  // False: the data are gone when the process ends.

  Result<std::unique_ptr<Storage>> (*open)(const StorageAddress& address) = nullptr;
  // The part of `open` that needs no database: whether the address can be meant.
  Result<void> (*check)(const StorageAddress& address) = nullptr;
  // For operators, see zeze/storage/sql/database_home.h. Null: there are no copies.
  Result<std::unique_ptr<DatabaseHome>> (*open_home)(const StorageAddress& address) = nullptr;

  // The address of what a configuration file calls `place` beside the name of this driver.
  std::string UrlOf(const std::string& place) const;
};

void RegisterStorageDriver(const StorageDriver& driver);

// Errors: those of the driver, and kInvalidArgument if there is none for the scheme.
Result<std::unique_ptr<Storage>> OpenStorage(const StorageAddress& address);

// Errors: kInvalidArgument; the text names the drivers that there are.
Result<StorageDriver> FindStorageDriver(std::string_view url);
Result<StorageDriver> FindStorageDriverByName(std::string_view name);

// What stands behind the scheme: "data" of "rocksdb:data".
std::string_view StoragePlace(std::string_view url);

}  // namespace zeze
