// SqlOptions: how to reach an SQL database, and how long to wait for it. The same for all drivers.

#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "zeze/storage/storage_driver.h"

namespace zeze {

struct SqlOptions {
  // "jdbc:postgresql://host:5432/database?user=..&password=..", "mysql://...", "mariadb://...",
  // with or without "jdbc:". Several hosts with commas between: one that takes writes is used, of a
  // Galera cluster one that belongs to it now. Further parameters are those of the driver.
  std::string url;
  std::string user = {};      // If not empty, instead of the one in the url.
  std::string password = {};  // The same.

  // For readers, opened as needed; one table leaves a quarter of them to the others. The calls of a
  // Fence have two more, flushes and renewals one each.
  std::size_t connections_max = 8;

  // MariaDB counts these in whole seconds, and rounds up.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);

  // A statement that runs longer is cancelled by the database (MySQL: only if it reads); if the
  // database does not even do that, the connection is given up two seconds later. A flush is one or
  // more statements for each table.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds(30);

  // Of a renewal, which must not be the last to notice that a connection is dead.
  std::chrono::milliseconds renew_timeout = std::chrono::seconds(3);

  // How long a statement waits for a lock that somebody else holds.
  std::chrono::milliseconds lock_timeout = std::chrono::seconds(2);

  // A connection ends if its bytes are not acknowledged for this long.
  std::chrono::milliseconds network_timeout = std::chrono::seconds(10);

  // How long a flush that collides or whose end is unknown, and a call of a Fence, is tried again.
  std::chrono::milliseconds retry_for = std::chrono::seconds(10);

  // Refuse larger flushes.
  std::size_t flush_bytes_max = std::size_t{512} << 20;

  // Send rows in arrays, if the database understands that. MariaDB does; MySQL does not; PostgreSQL
  // always gets arrays.
  bool bulk = true;
};

// The same with the defaults for everything else.
inline SqlOptions SqlOptionsOf(const StorageAddress& address) {
  return {.url = address.url,
          .user = address.user,
          .password = address.password,
          .connections_max = address.connections_max};
}

}  // namespace zeze
