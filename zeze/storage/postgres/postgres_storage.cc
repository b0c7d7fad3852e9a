#include "zeze/storage/postgres/postgres_storage.h"

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
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_dialect.h"
#include "zeze/storage/postgres/postgres_flush.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_driver.h"
#include "zeze/storage/sql/sql_storage.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

constexpr std::size_t kValueBytesMax = std::size_t{256} << 20;

// An entry of a B-tree index takes 2,704 bytes with its header; longer keys go in only if they
// happen to compress well.
constexpr std::size_t kKeyBytesMax = 2692;

class PostgresDriver final : public SqlDriver {
 public:
  explicit PostgresDriver(const PostgresOptions& options) : options_(options) {}

  const SqlDialect& dialect() const override { return GetPostgresDialect(); }

  Result<std::unique_ptr<SqlConnection>> Connect() override {
    Result<std::unique_ptr<PostgresConnection>> connected = PostgresConnection::Connect(
        options_,
        {.application_name = "zeze reader", .statement_timeout = options_.statement_timeout},
        copy());
    if (!connected.ok()) return connected.error();
    return std::unique_ptr<SqlConnection>(std::move(connected).value());
  }

  Result<std::unique_ptr<FlushConnection>> ConnectLane(
      FenceLane lane, const std::optional<FenceOwner>& owner) override {
    return PostgresFlushConnection::Connect(options_, copy(), lane, owner);
  }

  Result<StorageLimits> Prepare(SqlConnection& connection, SqlPool& pool) override {
    const std::string place = connection.Place();
    const SqlAnswer state = connection.RunOnce(
        fmt::format("SELECT to_regclass('_zezedatawithversion_') IS NOT NULL AND {},"
                    " current_setting('fsync'), current_setting('full_page_writes'),"
                    " current_setting('server_encoding')",
                    kPostgresTablesExistSql));
    if (!state.ok()) {
      return SqlError(ErrorCode::kUnavailable, "open the database", state.message());
    }
    if (state.bytes(0, 3) != "UTF8") {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("the database {} has the encoding {}: create it with UTF8", place,
                               state.bytes(0, 3)));
    }
    if (state.bytes(0, 1) != "on" || state.bytes(0, 2) != "on") {
      ZEZE_LOG_WARNING(
          "the database {} runs without fsync or full_page_writes: what it acknowledges may be "
          "lost or damaged when the machine fails",
          place);
    }
    if (state.number(0, 0) == 0) {
      Result<void> made =
          SqlDefine(pool, dialect(), "make the framework's tables",
                    {"CREATE TABLE IF NOT EXISTS _ZezeDataWithVersion_ (id bytea NOT NULL PRIMARY"
                     " KEY, data bytea NOT NULL, version bigint NOT NULL)",
                     kPostgresTablesSql},
                    options_.retry_for);
      if (!made.ok()) return made.error();
    }
    const SqlAnswer guard = connection.RunOnce(
        "INSERT INTO zeze_global (shard, term, holder, secret) VALUES (-1, 0, '', '')"
        " ON CONFLICT DO NOTHING");
    if (!guard.ok()) {
      return SqlError(ErrorCode::kUnavailable, "open the database", guard.message());
    }
    return StorageLimits{.key_bytes_max = kKeyBytesMax,
                         .value_bytes_max = std::min(kValueBytesMax, options_.flush_bytes_max),
                         .flush_bytes_max = options_.flush_bytes_max};
  }

 private:
  const PostgresOptions options_;
};

}  // namespace

Result<std::unique_ptr<Storage>> OpenPostgresStorage(const PostgresOptions& options) {
  return OpenSqlStorage(std::make_unique<PostgresDriver>(options), options);
}

Result<std::unique_ptr<DatabaseHome>> OpenPostgresHome(const PostgresOptions& options) {
  Result<std::unique_ptr<PostgresConnection>> connected = PostgresConnection::ConnectToAny(
      options, {.application_name = "zeze home", .statement_timeout = options.statement_timeout});
  if (!connected.ok()) return connected.error();
  return std::make_unique<DatabaseHome>(std::move(connected).value(), GetPostgresDialect());
}

}  // namespace zeze
