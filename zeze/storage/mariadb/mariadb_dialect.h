// The statements of the SQL drivers as MariaDB and MySQL have them, on Galera clusters too.
//
// Where another engine would take a share lock, a counter is raised: the nodes of a Galera cluster
// (and of TiDB) do not know each other's read locks, but no two of them commit changes of one row
// side by side. Start raises the guard row's while it compares its configuration, reads the terms
// and marks its server live; RaiseTerm and changes of the cluster too; Evict raises that of its
// shard's row (rules 39, 42, 43 and 52). So all of them are exclusive here.
//
// In strict mode, which is MariaDB's own, a process of an earlier build cannot start: the columns
// `secret` have no default.

#pragma once

#include "zeze/storage/sql/sql_dialect.h"

namespace zeze {

const SqlDialect& GetMariaDbDialect();

}  // namespace zeze
