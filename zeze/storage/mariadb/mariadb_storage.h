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

#include <memory>

#include "zeze/base/result.h"
#include "zeze/storage/sql/sql_options.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

// The parameters sslMode (disable, require, verify-full) and serverSslCert (a file of certificates)
// of the url are understood.
using MariaDbOptions = SqlOptions;

// The largest value is what the database's max_allowed_packet leaves room for, 256 MB at most.
// Errors: see OpenSqlStorage.
Result<std::unique_ptr<Storage>> OpenMariaDbStorage(const MariaDbOptions& options);

// The part of OpenMariaDbStorage that needs no database: whether the address can be meant. Errors:
// kInvalidArgument.
Result<void> CheckMariaDbOptions(const MariaDbOptions& options);

// The copies of the database, for operators. Connects to the first host of the address. Not for
// Galera clusters, whose nodes are one copy.
Result<std::unique_ptr<DatabaseHome>> OpenMariaDbHome(const MariaDbOptions& options);

StorageDriver MariaDbStorageDriver();

}  // namespace zeze
