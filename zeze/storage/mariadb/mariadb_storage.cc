#include "zeze/storage/mariadb/mariadb_storage.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_dialect.h"
#include "zeze/storage/mariadb/mariadb_flush.h"
#include "zeze/storage/mariadb/mariadb_nodes.h"
#include "zeze/storage/mariadb/mariadb_tables.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_driver.h"
#include "zeze/storage/sql/sql_storage.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

constexpr std::size_t kValueBytesMax = std::size_t{256} << 20;

class MariaDbDriver final : public SqlDriver {
 public:
  explicit MariaDbDriver(const MariaDbOptions& options)
      : options_(options), nodes_(options, copy()) {}

  const SqlDialect& dialect() const override { return GetMariaDbDialect(); }

  Result<std::unique_ptr<SqlConnection>> Connect() override {
    Result<std::unique_ptr<MariaDbConnection>> connected =
        nodes_.Connect({.statement_timeout = options_.statement_timeout});
    if (!connected.ok()) return connected.error();
    return std::unique_ptr<SqlConnection>(std::move(connected).value());
  }

  Result<std::unique_ptr<FlushConnection>> ConnectLane(
      FenceLane lane, const std::optional<FenceOwner>& owner) override {
    return MariaDbFlushConnection::Connect(nodes_, options_, lane, owner);
  }

  Result<StorageLimits> Prepare(SqlConnection& connection, SqlPool& /*pool*/) override {
    const Result<StorageLimits> limits = CheckSettings(static_cast<MariaDbConnection&>(connection));
    if (!limits.ok()) return limits;
    SqlAnswer made;
    RetryPause pause(options_.retry_for);
    do {
      made = connection.RunOnce(fmt::format(
          "CREATE TABLE IF NOT EXISTS {} (id VARBINARY(2712) NOT NULL PRIMARY KEY, data LONGBLOB "
          "NOT NULL, version BIGINT NOT NULL) ENGINE=InnoDB",
          kStorageVersionedTable));
      if (made.ok()) made = MakeMariaDbFenceTables(connection);
    } while (made.failure() == SqlFailure::kCollision && pause.Wait());
    if (made.ok()) return limits;
    return SqlError(ErrorCode::kUnavailable, "make the framework's tables", made.message());
  }

 private:
  Result<StorageLimits> CheckSettings(MariaDbConnection& connection) const {
    const SqlAnswer settings = connection.RunOnce("SELECT @@innodb_flush_log_at_trx_commit");
    if (!settings.ok()) {
      return SqlError(ErrorCode::kUnavailable, "open the database", settings.message());
    }
    // A cluster keeps what it acknowledged on its other nodes.
    if (settings.number(0, 0) != 1 && !connection.is_galera()) {
      ZEZE_LOG_WARNING(
          "the database {} runs with innodb_flush_log_at_trx_commit = {}: what it acknowledges may "
          "be lost when the machine fails",
          connection.Place(), settings.number(0, 0));
    }
    const std::size_t packet = connection.packet_bytes_max();
    if (packet < 4 * kMariaDbPacketRestBytes) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("the database {} has max_allowed_packet = {}: set it to 64M or more",
                               connection.Place(), packet));
    }
    const std::size_t room = packet - kMariaDbPacketRestBytes;
    std::size_t flush_bytes_max = options_.flush_bytes_max;
    // Beside the rows a write set has their keys once more, and what the fence changes.
    if (connection.is_galera()) {
      flush_bytes_max = std::min(flush_bytes_max, connection.write_set_bytes_max() / 2);
    }
    return StorageLimits{.key_bytes_max = kStorageKeyBytesMax,
                         .value_bytes_max = std::min({kValueBytesMax, flush_bytes_max,
                                                      connection.takes_arrays() ? room : room / 2}),
                         .flush_bytes_max = flush_bytes_max};
  }

  const MariaDbOptions options_;
  MariaDbNodes nodes_;
};

}  // namespace

Result<std::unique_ptr<Storage>> OpenMariaDbStorage(const MariaDbOptions& options) {
  return OpenSqlStorage(std::make_unique<MariaDbDriver>(options), options);
}

Result<std::unique_ptr<DatabaseHome>> OpenMariaDbHome(const MariaDbOptions& options) {
  Result<std::unique_ptr<MariaDbConnection>> connected = MariaDbConnection::Connect(
      options, {.statement_timeout = options.statement_timeout}, 0, nullptr);
  if (!connected.ok()) return connected.error();
  if (connected.value()->is_galera()) {
    return Error(ErrorCode::kInvalidArgument,
                 "the nodes of a Galera cluster are one copy: servers change between them by "
                 "themselves");
  }
  return std::make_unique<DatabaseHome>(std::move(connected).value(), GetMariaDbDialect());
}

}  // namespace zeze
