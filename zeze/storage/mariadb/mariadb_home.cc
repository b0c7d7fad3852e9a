#include "zeze/storage/mariadb/mariadb_home.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/sql/retry_pause.h"

namespace zeze {
namespace {

class MariaDbHome final : public DatabaseHome {
 public:
  explicit MariaDbHome(std::unique_ptr<MariaDbConnection> connection)
      : connection_(std::move(connection)) {}

  Result<Facts> Read() override {
    Result<MariaDbConnection::Facts> facts = connection_->ReadFacts();
    if (!facts.ok()) return facts.error();
    if (!facts.value().row) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{} has no table zeze_home: no server has used it", connection_->place()));
    }
    return Facts{.identity = facts.value().identity, .row = *facts.value().row};
  }

 protected:
  Result<void> Change(std::string_view what, const Judge& judge) override {
    RetryPause pause(std::chrono::minutes(1));
    for (;;) {
      MariaDbAnswer answer = connection_->Query("START TRANSACTION");
      bool committing = false;
      if (answer.ok()) answer = connection_->Query("SELECT 1 FROM zeze_home FOR UPDATE");
      if (answer.ok()) {
        const Result<Facts> facts = Read();
        const Result<std::vector<std::string>> statements =
            facts.ok() ? judge(facts.value()) : Result<std::vector<std::string>>(facts.error());
        if (!statements.ok()) {
          connection_->RollBack();
          return statements.error();
        }
        for (const std::string& statement : statements.value()) {
          if (answer.ok()) answer = connection_->Query(statement);
        }
        committing = answer.ok();
      }
      if (committing) answer = connection_->Query("COMMIT");
      if (answer.ok()) return {};
      connection_->RollBack();
      if (committing || answer.failure != MariaDbFailure::kCollision || !pause.Wait()) {
        return Error(
            committing ? ErrorCode::kUnknownOutcome : ErrorCode::kUnavailable,
            fmt::format("cannot {} at {}: {}", what, connection_->place(), answer.message));
      }
    }
  }

  // All of this user in this database: servers and Globals have no names here.
  Result<void> EndSessions() override {
    const MariaDbAnswer sessions = connection_->Query(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE()"
        " AND USER = SUBSTRING_INDEX(CURRENT_USER(), '@', 1) AND ID <> CONNECTION_ID()");
    if (!sessions.ok()) return Error(ErrorCode::kUnavailable, sessions.message);
    for (const auto& row : sessions.rows) {
      const MariaDbAnswer killed = connection_->Query("KILL " + *row[0]);  // Or it is gone.
      if (killed.failure == MariaDbFailure::kLost) {
        return Error(ErrorCode::kUnavailable, killed.message);
      }
    }
    return {};
  }

  std::string BytesSql(std::string_view digits) const override {
    return fmt::format("X'{}'", digits);
  }

 private:
  const std::unique_ptr<MariaDbConnection> connection_;
};

}  // namespace

Result<std::unique_ptr<DatabaseHome>> OpenMariaDbHome(const MariaDbOptions& options) {
  Result<std::unique_ptr<MariaDbConnection>> connected = MariaDbConnection::Connect(
      options, {.statement_timeout = options.statement_timeout}, 0, nullptr);
  if (!connected.ok()) return connected.error();
  if (connected.value()->is_galera()) {
    return Error(ErrorCode::kInvalidArgument,
                 "the nodes of a Galera cluster are one copy: servers change between them by "
                 "themselves");
  }
  return std::unique_ptr<DatabaseHome>(new MariaDbHome(std::move(connected).value()));
}

}  // namespace zeze
