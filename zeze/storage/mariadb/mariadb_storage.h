// MariaDbStorage: tables in a MariaDB or MySQL database that several servers share.
//
//   Result<std::unique_ptr<Storage>> opened = OpenMariaDbStorage(
//       {.url = "jdbc:mysql://db:3306/game?user=zeze&password=secret"});
//   Result<FenceStart> started = opened.value()->fence()->Start({.server_id = 7, ...});
//
// Each table is an InnoDB table of the columns id and value, as the Java peer has it. A flush is
// one database transaction whose first statement is the fence; rows go in arrays, one statement for
// each table. Works on the nodes of a Galera cluster too. What is promised is in docs/storage.md.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "zeze/base/result.h"
#include "zeze/storage/storage.h"

namespace zeze {

struct MariaDbOptions {
  // "jdbc:mysql://host:3306/database?user=..&password=..", or the same without "jdbc:", or
  // "mariadb://". Several hosts with commas between, for the nodes of a cluster: the first is used
  // that answers and takes writes, of a Galera cluster one that belongs to it now. sslMode
  // (disable, require, verify-full) and serverSslCert (a file of certificates) are understood.
  std::string url;
  std::string user = {};      // If not empty, instead of the one in the url.
  std::string password = {};  // The same.

  // For readers, opened as needed; one table leaves a quarter of them to the others. The calls of a
  // Fence have two more, flushes and renewals one each.
  std::size_t connections_max = 8;

  // The engine and libmariadb count these in whole seconds, and round up.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);

  // A statement that runs longer is cancelled by the database (MySQL: only if it reads); if it does
  // not answer even then, the connection is given up two seconds later.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds(30);

  // Of a renewal, which must not be the last to notice that a connection is dead.
  std::chrono::milliseconds renew_timeout = std::chrono::seconds(3);

  // How long a statement waits for a lock that somebody else holds.
  std::chrono::milliseconds lock_timeout = std::chrono::seconds(2);

  // Bytes that nobody acknowledges for so long end the connection.
  std::chrono::milliseconds network_timeout = std::chrono::seconds(10);

  // How long a flush that collides or whose end is unknown, and a call of a Fence, is tried again.
  std::chrono::milliseconds retry_for = std::chrono::seconds(10);

  // Refuse larger flushes.
  std::size_t flush_bytes_max = std::size_t{512} << 20;

  // Send rows in arrays, if the database understands that (MariaDB does, MySQL does not).
  bool bulk = true;
};

// Connects, and makes the framework's own tables if they are not there. The largest value is what
// the database's max_allowed_packet leaves room for, 256 MB at most.
// Errors: kInvalidArgument (malformed url, option or server setting), kUnavailable (not reachable,
// password refused, no right to make tables: the message says which).
Result<std::unique_ptr<Storage>> OpenMariaDbStorage(const MariaDbOptions& options);

// The part of OpenMariaDbStorage that needs no database: whether the address can be meant. Errors:
// kInvalidArgument.
Result<void> CheckMariaDbOptions(const MariaDbOptions& options);

}  // namespace zeze
