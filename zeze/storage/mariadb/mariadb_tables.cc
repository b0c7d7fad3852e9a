#include "zeze/storage/mariadb/mariadb_tables.h"

#include <chrono>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"

namespace zeze {
namespace {

// To a table of an earlier build. Rows that are there have it empty, or 0.
SqlAnswer AddColumn(SqlConnection& connection, std::string_view table, std::string_view column,
                    std::string_view type) {
  const std::string exists = fmt::format(
      "SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()"
      " AND TABLE_NAME = '{}' AND COLUMN_NAME = '{}'",
      table, column);
  RetryPause pause(std::chrono::seconds(10));
  while (true) {
    SqlAnswer answer = connection.RunOnce(exists);
    if (!answer.ok() || answer.row_count() > 0) return answer;
    // Several processes may do it at the same time; a flush may hold the table for a moment.
    answer =
        connection.RunOnce(fmt::format("ALTER TABLE {} ADD COLUMN {} {}", table, column, type));
    if (!answer.ok() && !pause.Wait()) return answer;
  }
}

}  // namespace

SqlAnswer MakeMariaDbFenceTables(SqlConnection& connection) {
  for (const char* sql : {
           "CREATE TABLE IF NOT EXISTS zeze_fence (server_id INT NOT NULL, lane TINYINT NOT NULL,"
           " epoch BIGINT NOT NULL, flush_seq BIGINT NOT NULL, live TINYINT NOT NULL,"
           " holder TEXT CHARACTER SET utf8mb4 NOT NULL, epoch_lost BIGINT NOT NULL,"
           " changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
           " secret VARBINARY(16) NOT NULL, frozen BIGINT NOT NULL DEFAULT 0,"
           " incarnation VARBINARY(16) NOT NULL DEFAULT '', seq_lost BIGINT NOT NULL DEFAULT -1,"
           " yields BIGINT NOT NULL DEFAULT 0,"
           " PRIMARY KEY (server_id, lane)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_fenced (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " renew_seq BIGINT NOT NULL DEFAULT -1, PRIMARY KEY (server_id, epoch)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_lease (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " lease_ms BIGINT NOT NULL, PRIMARY KEY (server_id, epoch)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_global (shard INT NOT NULL PRIMARY KEY,"
           " term BIGINT NOT NULL, holder VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
           " NOT NULL, uses BIGINT NOT NULL, secret VARBINARY(16) NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_cluster (one INT NOT NULL PRIMARY KEY,"
           " cluster VARBINARY(16) NOT NULL, protocol INT NOT NULL, shards INT NOT NULL,"
           " alone_server INT NOT NULL, alone_epoch BIGINT NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_table (name VARBINARY(64) NOT NULL PRIMARY KEY,"
           " id INT NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_home (one TINYINT NOT NULL PRIMARY KEY,"
           " home VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,"
           " home_number BIGINT NOT NULL, frozen BIGINT NOT NULL,"
           " marker VARCHAR(64) NOT NULL) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_wanted (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " shard INT NOT NULL, term BIGINT NOT NULL,"
           " PRIMARY KEY (server_id, epoch, shard)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_yield (server_id INT NOT NULL, epoch BIGINT NOT NULL,"
           " shard INT NOT NULL, number BIGINT NOT NULL, term BIGINT NOT NULL,"
           " PRIMARY KEY (server_id, epoch, shard)) ENGINE=InnoDB",
           "CREATE TABLE IF NOT EXISTS zeze_session (name VARBINARY(64) NOT NULL PRIMARY KEY,"
           " server_id INT NOT NULL, lane TINYINT NOT NULL, epoch BIGINT NOT NULL,"
           " node VARBINARY(255) NOT NULL) ENGINE=InnoDB",
       }) {
    SqlAnswer answer = connection.RunOnce(sql);
    if (!answer.ok()) return answer;
  }
  for (const char* table : {"zeze_fence", "zeze_global"}) {
    SqlAnswer answer = AddColumn(connection, table, "secret", "VARBINARY(16) NOT NULL");
    if (!answer.ok()) return answer;
  }
  struct Column {
    const char* table;
    const char* name;
    const char* type;
  };
  for (const Column& column :
       {Column{"zeze_fence", "frozen", "BIGINT NOT NULL DEFAULT 0"},
        Column{"zeze_fence", "incarnation", "VARBINARY(16) NOT NULL DEFAULT ''"},
        Column{"zeze_fence", "seq_lost", "BIGINT NOT NULL DEFAULT -1"},
        Column{"zeze_fence", "yields", "BIGINT NOT NULL DEFAULT 0"},
        Column{"zeze_fenced", "renew_seq", "BIGINT NOT NULL DEFAULT -1"}}) {
    SqlAnswer answer = AddColumn(connection, column.table, column.name, column.type);
    if (!answer.ok()) return answer;
  }
  // Read first: several servers start at once, and only the first has something to write.
  SqlAnswer guard = connection.RunOnce("SELECT 1 FROM zeze_global WHERE shard = -1");
  if (!guard.ok() || guard.row_count() > 0) return guard;
  return connection.RunOnce(
      "INSERT IGNORE INTO zeze_global (shard, term, holder, uses, secret)"
      " VALUES (-1, 0, '', 0, '')");
}

}  // namespace zeze
