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

#include <memory>

#include "zeze/base/result.h"
#include "zeze/storage/sql/sql_options.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

// Further parameters of the url that libpq knows (sslmode, sslrootcert, ...) are handed to it.
using PostgresOptions = SqlOptions;

// Errors: see OpenSqlStorage.
Result<std::unique_ptr<Storage>> OpenPostgresStorage(const PostgresOptions& options);

// The part of OpenPostgresStorage that needs no database: whether the address can be meant. Errors:
// kInvalidArgument.
Result<void> CheckPostgresOptions(const PostgresOptions& options);

// The copies of the database, for operators. Connects to the first host of the address.
Result<std::unique_ptr<DatabaseHome>> OpenPostgresHome(const PostgresOptions& options);

StorageDriver PostgresStorageDriver();

}  // namespace zeze
