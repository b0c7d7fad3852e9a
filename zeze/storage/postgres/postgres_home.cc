#include "zeze/storage/postgres/postgres_home.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/sql/retry_pause.h"

namespace zeze {
namespace {

using Parameter = PostgresParameter;

Error Cannot(std::string_view what, std::string_view why) {
  return {ErrorCode::kInvalidArgument, fmt::format("cannot {}: {}", what, why)};
}

class PostgresHome final : public DatabaseHome {
 public:
  explicit PostgresHome(std::unique_ptr<PostgresConnection> connection)
      : connection_(std::move(connection)) {}

  Result<Facts> Read() override {
    Result<PostgresConnection::Facts> facts = connection_->ReadFacts();
    if (!facts.ok()) return facts.error();
    if (!facts.value().row) {
      return Cannot(
          "look at the copy",
          fmt::format("{} has no table zeze_home: no server has used it", connection_->Place()));
    }
    return Facts{.identity = facts.value().identity, .row = *facts.value().row};
  }

  Result<std::string> BeginSwitchOver() override {
    constexpr const char* kWhat = "begin a switch-over";
    std::string marker = NewMarker();
    Result<void> begun = Change(kWhat, [&](const Facts& facts) -> Result<std::string> {
      if (facts.row.home != facts.identity) {
        return Cannot(kWhat, fmt::format("{} is not the copy that counts, which is {}",
                                         facts.identity, facts.row.home));
      }
      if (facts.row.frozen != 0) {
        marker = facts.row.marker;  // Begun before, and perhaps nobody heard.
        return std::string("SELECT 1");
      }
      return fmt::format(
          "UPDATE zeze_home SET frozen = home_number + 1, marker = '{}';"
          "UPDATE zeze_fence SET frozen = {}",
          marker, facts.row.number + 1);
    });
    if (!begun.ok()) return begun.error();
    if (Result<void> ended = EndSessions(); !ended.ok()) return ended.error();
    return marker;
  }

  Result<void> FinishSwitchOver(const std::string& marker) override {
    constexpr const char* kWhat = "finish a switch-over";
    return Change(kWhat, [&](const Facts& facts) -> Result<std::string> {
      if (facts.row.marker != marker) {
        return Cannot(kWhat,
                      fmt::format("the marker is not in this copy ({}). It lacks what the old copy "
                                  "acknowledged last: let it catch up, or cancel in the old copy",
                                  facts.identity));
      }
      if (facts.row.frozen == 0 && facts.row.home == facts.identity) return std::string("SELECT 1");
      if (facts.row.home == facts.identity) {
        return Cannot(kWhat, "this is the copy in which it was begun: finish it in the other one");
      }
      return fmt::format(
          "UPDATE zeze_home SET home = '{}', home_number = frozen, frozen = 0;"
          "UPDATE zeze_fence SET frozen = 0",
          facts.identity);
    });
  }

  Result<void> CancelSwitchOver(const std::string& marker) override {
    constexpr const char* kWhat = "cancel a switch-over";
    return Change(kWhat, [&](const Facts& facts) -> Result<std::string> {
      if (facts.row.home != facts.identity) {
        return Cannot(kWhat, "it was begun in the other copy: cancel it there");
      }
      if (facts.row.frozen == 0) return Cannot(kWhat, "none is under way in this copy");
      if (facts.row.marker != marker) return Cannot(kWhat, "it has another marker");
      return std::string(
          "UPDATE zeze_home SET frozen = 0, marker = '';"
          "UPDATE zeze_fence SET frozen = 0");
    });
  }

  Result<void> Adopt(std::int64_t margin) override {
    return Change("adopt a copy", [&](const Facts& facts) -> Result<std::string> {
      if (facts.row.home == facts.identity && facts.row.frozen == 0) {
        return Cannot("adopt a copy", "this is the copy that counts");
      }
      // Live epochs may still be in use by processes that have not noticed: their leases are waited
      // for, as after an eviction.
      return fmt::format(
          "INSERT INTO zeze_fenced (server_id, epoch) SELECT server_id, epoch FROM zeze_fence"
          " WHERE lane = 0 AND live ON CONFLICT DO NOTHING;"
          "UPDATE zeze_fence SET epoch = epoch + {0}, live = false, frozen = 0;"
          "UPDATE zeze_global SET term = term + {0} WHERE shard >= 0;"
          "UPDATE zeze_cluster SET cluster = uuid_send(gen_random_uuid());"
          "UPDATE zeze_home SET home = '{1}', home_number = home_number + {0}, frozen = 0,"
          " marker = ''",
          margin, facts.identity);
    });
  }

 private:
  // The statements that `judge` gives for the state of the copy, in one transaction with it.
  Result<void> Change(std::string_view what,
                      const std::function<Result<std::string>(const Facts&)>& judge) {
    RetryPause pause(std::chrono::minutes(1));
    for (;;) {
      PostgresAnswer answer = connection_->ExecuteOnce("BEGIN");
      bool committing = false;
      if (answer.ok()) answer = connection_->ExecuteOnce("SELECT 1 FROM zeze_home FOR UPDATE");
      if (answer.ok()) {
        const Result<Facts> facts = Read();
        const Result<std::string> statements =
            !facts.ok()                      ? Result<std::string>(facts.error())
            : facts.value().identity.empty() ? Cannot(what, "it is a replica: promote it first")
                                             : judge(facts.value());
        if (!statements.ok()) {
          connection_->RollBack();
          return statements.error();
        }
        answer = connection_->ExecuteOnce(statements.value());
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
  Result<void> EndSessions() {
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

  static std::string NewMarker() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  }

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
