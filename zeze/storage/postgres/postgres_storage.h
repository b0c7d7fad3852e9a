// PostgresStorage: tables in a PostgreSQL database that several servers share.
//
//   Result<std::unique_ptr<Storage>> opened = OpenPostgresStorage(
//       {.url = "jdbc:postgresql://db:5432/game?user=zeze&password=secret"});
//   Result<FenceStart> started = opened.value()->fence()->Start({.server_id = 7, ...});
//
// Each table is an SQL table of the columns id and value, as the Java peer has it. A flush is one
// database transaction, sent without waiting for answers in between, whose first statement is the
// fence. What is promised, and what the database must be set to, is in docs/storage.md.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "zeze/base/result.h"
#include "zeze/storage/storage.h"

namespace zeze {

struct PostgresOptions {
  // "jdbc:postgresql://host:5432/database?user=..&password=..", or the same without "jdbc:".
  // Several hosts with commas between: the one that takes writes is used. Further parameters that
  // libpq knows (sslmode, sslrootcert, ...) are handed to it.
  std::string url;
  std::string user = {};      // If not empty, instead of the one in the url.
  std::string password = {};  // The same.

  // For readers, opened as needed; one table leaves a quarter of them to the others. The calls of a
  // Fence have two more, flushes and renewals one each.
  std::size_t connections_max = 8;

  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);

  // A statement that runs longer is cancelled by the database; if the database does not even do
  // that, the connection is given up two seconds later. A whole flush is one statement a table.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds(30);

  // Of a renewal, which must not be the last to notice that a connection is dead.
  std::chrono::milliseconds renew_timeout = std::chrono::seconds(3);

  // How long a statement waits for a lock that somebody else holds.
  std::chrono::milliseconds lock_timeout = std::chrono::seconds(2);

  // Bytes that nobody acknowledges for so long end the connection, on both sides.
  std::chrono::milliseconds network_timeout = std::chrono::seconds(10);

  // How long a flush that collides or whose end is unknown, and a call of a Fence, is tried again.
  std::chrono::milliseconds retry_for = std::chrono::seconds(10);

  // Refuse larger flushes.
  std::size_t flush_bytes_max = std::size_t{512} << 20;
};

// Connects, and makes the framework's own tables if they are not there.
// Errors: kInvalidArgument (malformed url, option or server setting), kUnavailable (not reachable,
// password refused, no right to make tables: the message says which).
Result<std::unique_ptr<Storage>> OpenPostgresStorage(const PostgresOptions& options);

// The part of OpenPostgresStorage that needs no database: whether the address can be meant. Errors:
// kInvalidArgument.
Result<void> CheckPostgresOptions(const PostgresOptions& options);

}  // namespace zeze
