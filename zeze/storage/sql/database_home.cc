#include "zeze/storage/sql/database_home.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {
namespace {

using Statements = std::vector<std::string>;

Error Cannot(std::string_view what, std::string_view why) {
  return {ErrorCode::kInvalidArgument, fmt::format("cannot {}: {}", what, why)};
}

std::string NewMarker() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

DatabaseHome::DatabaseHome(std::unique_ptr<SqlConnection> connection, const SqlDialect& dialect)
    : connection_(std::move(connection)), dialect_(dialect) {}

DatabaseHome::~DatabaseHome() = default;

Result<DatabaseHome::Facts> DatabaseHome::Read() {
  const Result<CopyFacts> facts = connection_->ReadCopy();
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

Result<void> DatabaseHome::Change(std::string_view what, Judge judge) {
  RetryPause pause(std::chrono::minutes(1));
  for (;;) {
    SqlAnswer answer = connection_->Begin();
    bool committing = false;
    if (answer.ok()) answer = connection_->RunOnce("SELECT 1 FROM zeze_home FOR UPDATE");
    if (answer.ok()) {
      const Result<Facts> facts = Read();
      const Result<Statements> statements =
          facts.ok() ? judge(facts.value()) : Result<Statements>(facts.error());
      if (!statements.ok()) {
        connection_->RollBack();
        return statements.error();
      }
      for (const std::string& statement : statements.value()) {
        if (answer.ok()) answer = connection_->RunOnce(statement);
      }
      committing = answer.ok();
    }
    if (committing) answer = connection_->Commit();
    if (answer.ok()) return {};
    connection_->RollBack();
    if (committing || answer.failure() != SqlFailure::kCollision || !pause.Wait()) {
      return Error(
          committing ? ErrorCode::kUnknownOutcome : ErrorCode::kUnavailable,
          fmt::format("cannot {} at {}: {}", what, connection_->Place(), answer.message()));
    }
  }
}

Result<std::string> DatabaseHome::BeginSwitchOver() {
  constexpr const char* kWhat = "begin a switch-over";
  std::string marker = NewMarker();
  Result<void> begun = Change(kWhat, [&](const Facts& facts) -> Result<Statements> {
    if (facts.row.home != facts.identity) {
      return Cannot(kWhat, fmt::format("{} is not the copy that counts, which is {}",
                                       facts.identity, facts.row.home));
    }
    if (facts.row.frozen != 0) {
      marker = facts.row.marker;  // Begun before, and perhaps nobody heard.
      return Statements{};
    }
    return Statements{
        fmt::format("UPDATE zeze_home SET frozen = home_number + 1, marker = '{}'", marker),
        fmt::format("UPDATE zeze_fence SET frozen = {}", facts.row.number + 1)};
  });
  if (!begun.ok()) return begun.error();
  if (Result<void> ended = dialect_.EndAllSessions(*connection_); !ended.ok()) return ended.error();
  return marker;
}

Result<void> DatabaseHome::FinishSwitchOver(const std::string& marker) {
  constexpr const char* kWhat = "finish a switch-over";
  return Change(kWhat, [&](const Facts& facts) -> Result<Statements> {
    if (facts.row.marker != marker) {
      return Cannot(kWhat,
                    fmt::format("the marker is not in this copy ({}). It lacks what the old copy "
                                "acknowledged last: let it catch up, or cancel in the old copy",
                                facts.identity));
    }
    if (facts.row.frozen == 0 && facts.row.home == facts.identity) return Statements{};
    if (facts.row.home == facts.identity) {
      return Cannot(kWhat, "this is the copy in which it was begun: finish it in the other one");
    }
    return Statements{fmt::format("UPDATE zeze_home SET home = '{}', home_number = {}, frozen = 0",
                                  facts.identity, facts.row.frozen),
                      "UPDATE zeze_fence SET frozen = 0"};
  });
}

Result<void> DatabaseHome::CancelSwitchOver(const std::string& marker) {
  constexpr const char* kWhat = "cancel a switch-over";
  return Change(kWhat, [&](const Facts& facts) -> Result<Statements> {
    if (facts.row.home != facts.identity) {
      return Cannot(kWhat, "it was begun in the other copy: cancel it there");
    }
    if (facts.row.frozen == 0) return Cannot(kWhat, "none is under way in this copy");
    if (facts.row.marker != marker) return Cannot(kWhat, "it has another marker");
    return Statements{"UPDATE zeze_home SET frozen = 0, marker = ''",
                      "UPDATE zeze_fence SET frozen = 0"};
  });
}

Result<void> DatabaseHome::Adopt(std::int64_t margin) {
  constexpr const char* kWhat = "adopt a copy";
  return Change(kWhat, [&](const Facts& facts) -> Result<Statements> {
    if (facts.row.home == facts.identity && facts.row.frozen == 0) {
      return Cannot(kWhat, "this is the copy that counts");
    }
    // Live epochs may still be in use by processes that have not noticed: their leases are waited
    // for, as after an eviction.
    constexpr const char* kNoteLiveEpochs =
        "INSERT INTO zeze_fenced (server_id, epoch) SELECT live.server_id, live.epoch"
        " FROM zeze_fence AS live LEFT JOIN zeze_fenced AS noted"
        " ON noted.server_id = live.server_id AND noted.epoch = live.epoch"
        " WHERE live.lane = 0 AND live.live AND noted.epoch IS NULL";
    return Statements{
        kNoteLiveEpochs,
        fmt::format("UPDATE zeze_fence SET epoch = epoch + {}, live = false, frozen = 0", margin),
        fmt::format("UPDATE zeze_global SET term = term + {} WHERE shard >= 0", margin),
        fmt::format("UPDATE zeze_cluster SET cluster = {}", dialect_.BytesLiteral(NewMarker())),
        fmt::format("UPDATE zeze_home SET home = '{}', home_number = home_number + {}, frozen = 0,"
                    " marker = ''",
                    facts.identity, margin)};
  });
}

Result<std::unique_ptr<DatabaseHome>> OpenDatabaseHome(const std::string& url) {
  const Result<StorageDriver> driver = FindStorageDriver(url);
  if (!driver.ok()) return driver.error();
  if (driver.value().open_home != nullptr) return driver.value().open_home({.url = url});
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("a {} database belongs to one process: it has no copies", driver.value().name));
}

}  // namespace zeze
