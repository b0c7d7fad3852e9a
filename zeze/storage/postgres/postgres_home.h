// OpenPostgresHome: the copies of a PostgreSQL database, for operators.

#pragma once

#include <memory>

#include "zeze/base/result.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_home.h"

namespace zeze {

// Connects to the first host of the address.
Result<std::unique_ptr<DatabaseHome>> OpenPostgresHome(const PostgresOptions& options);

}  // namespace zeze
