#include "zeze/storage/postgres/postgres_home.h"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/sql/retry_pause.h"

namespace zeze {
namespace {

using Parameter = PostgresParameter;

class PostgresHome final : public DatabaseHome {
 public:
  explicit PostgresHome(std::unique_ptr<PostgresConnection> connection)
      : connection_(std::move(connection)) {}

  Result<Facts> Read() override {
    Result<PostgresConnection::Facts> facts = connection_->ReadFacts();
    if (!facts.ok()) return facts.error();
    if (!facts.value().row) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{} has no table zeze_home: no server has used it", connection_->Place()));
    }
    if (!facts.value().takes_writes) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{} is a replica: promote it first", connection_->Place()));
    }
    return Facts{.identity = facts.value().identity, .row = *facts.value().row};
  }

 protected:
  Result<void> Change(std::string_view what, const Judge& judge) override {
    RetryPause pause(std::chrono::minutes(1));
    for (;;) {
      PostgresAnswer answer = connection_->ExecuteOnce("BEGIN");
      bool committing = false;
      if (answer.ok()) answer = connection_->ExecuteOnce("SELECT 1 FROM zeze_home FOR UPDATE");
      if (answer.ok()) {
        const Result<Facts> facts = Read();
        const Result<std::vector<std::string>> statements =
            facts.ok() ? judge(facts.value()) : Result<std::vector<std::string>>(facts.error());
        if (!statements.ok()) {
          connection_->RollBack();
          return statements.error();
        }
        for (const std::string& statement : statements.value()) {
          if (answer.ok()) answer = connection_->ExecuteOnce(statement);
        }
        committing = answer.ok();
      }
      if (committing) answer = connection_->ExecuteOnce("COMMIT");
      if (answer.ok()) return {};
      connection_->RollBack();
      if (committing || answer.failure() != PostgresFailure::kCollision || !pause.Wait()) {
        return Error(
            committing ? ErrorCode::kUnknownOutcome : ErrorCode::kUnavailable,
            fmt::format("cannot {} at {}: {}", what, connection_->Place(), answer.message()));
      }
    }
  }

  // Those that were there when the freeze was written. Later ones compare, and find it.
  Result<void> EndSessions() override {
    const PostgresAnswer frozen = connection_->ExecuteOnce("SELECT clock_timestamp()::text");
    if (!frozen.ok()) return Error(ErrorCode::kUnavailable, frozen.message());
    const std::array<Parameter, 1> parameters = {Parameter::Text(std::string(frozen.bytes(0, 0)))};
    RetryPause pause(std::chrono::minutes(1));
    for (;;) {
      const PostgresAnswer ended = connection_->Execute(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE"
          " 'zeze %' AND datname = current_database() AND pid <> pg_backend_pid()"
          " AND backend_start <= $1::timestamptz",
          parameters);
      if (!ended.ok()) return Error(ErrorCode::kUnavailable, ended.message());
      if (ended.row_count() == 0) return {};
      if (!pause.Wait()) {
        return Error(ErrorCode::kUnavailable,
                     "the switch-over has begun, but sessions do not end: repeat it");
      }
    }
  }

  std::string BytesSql(std::string_view digits) const override {
    return fmt::format("'\\x{}'::bytea", digits);
  }

 private:
  const std::unique_ptr<PostgresConnection> connection_;
};

}  // namespace

Result<std::unique_ptr<DatabaseHome>> OpenPostgresHome(const PostgresOptions& options) {
  Result<std::unique_ptr<PostgresConnection>> connected = PostgresConnection::ConnectToAny(
      options, {.application_name = "zeze home", .statement_timeout = options.statement_timeout});
  if (!connected.ok()) return connected.error();
  return std::unique_ptr<DatabaseHome>(new PostgresHome(std::move(connected).value()));
}

}  // namespace zeze
