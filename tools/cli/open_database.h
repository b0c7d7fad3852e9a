// OpenDatabase: a storage by its address, for the stock servers.

#pragma once

#include <memory>
#include <string>

#include "zeze/base/result.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/storage.h"

namespace zeze::cli {

// "postgresql://user:password@host:port/database" or "mysql://...", or with "jdbc:" before it.
// Errors: as the driver's, and kInvalidArgument for an address that no driver knows.
Result<std::unique_ptr<Storage>> OpenDatabase(const std::string& url);

// The copy that the address names, for operators. Errors: kInvalidArgument, kUnavailable.
Result<std::unique_ptr<DatabaseHome>> OpenDatabaseHome(const std::string& url);

}  // namespace zeze::cli
