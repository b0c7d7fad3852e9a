// OpenMariaDbHome: the copies of a MariaDB or MySQL database, for operators. Not of a Galera
// cluster, whose nodes are one copy.

#pragma once

#include <memory>

#include "zeze/base/result.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/database_home.h"

namespace zeze {

// Connects to the first host of the address, which must take writes.
Result<std::unique_ptr<DatabaseHome>> OpenMariaDbHome(const MariaDbOptions& options);

}  // namespace zeze
