// The framework's tables of a fence in MariaDB. Beside what zeze/storage/sql/sql_fence.h says:
//
//   zeze_fence    epoch_lost and seq_lost: what the row was before an eviction
//   zeze_global   uses: raised where another engine would take a share lock
//   zeze_session  which user locks name the sessions of a server, see mariadb_flush.h

#pragma once

#include "zeze/storage/sql/sql_connection.h"

namespace zeze {

// Makes the tables and columns that are not there, and the guard row.
SqlAnswer MakeMariaDbFenceTables(SqlConnection& connection);

}  // namespace zeze
