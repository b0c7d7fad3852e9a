// The statements of the SQL drivers as PostgreSQL has them.

#pragma once

#include "zeze/storage/sql/sql_dialect.h"

namespace zeze {

const SqlDialect& GetPostgresDialect();

// The framework's tables but the versioned data, and whether all of them are there.
extern const char* const kPostgresTablesSql;
extern const char* const kPostgresTablesExistSql;

}  // namespace zeze
