#include "zeze/storage/postgres/postgres_flush.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/postgres/bytea_array.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/postgres/postgres_storage_impl.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

// One statement's arrays at most, unless a single row is larger. The database holds them several
// times.
constexpr std::size_t kChunkBytesMax = std::size_t{32} << 20;

constexpr std::size_t kFenceStatement = 1;  // Its place behind BEGIN.

constexpr std::string_view kFenceSql =
    "WITH passed AS (UPDATE zeze_fence SET flush_seq = $4::bigint, changed = now()"
    " WHERE server_id = $1::int AND lane = $2::smallint AND epoch = $3::bigint"
    " AND flush_seq = $4::bigint - 1 AND live AND frozen = 0 RETURNING 1)"
    " SELECT 1 / count(*) FROM passed";
constexpr std::string_view kDivisionByZero = "22012";

// FOR UPDATE waits for a flush that still runs, and then shows what it has done.
constexpr std::string_view kReadLaneSql =
    "SELECT epoch, flush_seq, live::int, holder, frozen FROM zeze_fence WHERE server_id = $1::int"
    " AND lane = $2::smallint FOR UPDATE";

std::string_view LaneName(FenceLane lane) {
  return lane == FenceLane::kFlush ? "flush" : "renew";
}

std::string SessionName(FenceLane lane, const std::optional<FenceOwner>& owner) {
  if (owner) {
    return fmt::format("zeze server {} epoch {} {}", owner->server_id, owner->epoch,
                       LaneName(lane));
  }
  std::random_device random;
  return fmt::format("zeze {:08x}{:08x} {}", random(), random(), LaneName(lane));
}

FlushAttemptResult ToAttempt(PostgresConnection::PipelineAnswer answer) {
  switch (answer.answer.failure()) {
    case PostgresFailure::kNone:
      // COMMIT of a transaction that failed answers so, and did nothing.
      if (answer.answer.command() != "COMMIT") {
        return {.attempt = FlushAttempt::kFailed, .message = "the database rolled it back"};
      }
      return {.attempt = FlushAttempt::kCommitted};
    case PostgresFailure::kCollision:
      return {.attempt = FlushAttempt::kCollided, .message = answer.answer.message()};
    case PostgresFailure::kError:
      if (answer.statement == kFenceStatement && answer.answer.state() == kDivisionByZero) {
        return {.attempt = FlushAttempt::kFenceRefused};
      }
      return {.attempt = FlushAttempt::kFailed, .message = answer.answer.message()};
    case PostgresFailure::kLost:
      break;
  }
  return {.attempt = FlushAttempt::kLost, .message = answer.answer.message()};
}

}  // namespace

Result<std::unique_ptr<FlushConnection>> PostgresFlushConnection::Connect(
    const PostgresOptions& options, DatabaseCopy& copy, FenceLane lane,
    const std::optional<FenceOwner>& owner) {
  PostgresSession session = {.application_name = SessionName(lane, owner),
                             .statement_timeout = options.statement_timeout};
  if (lane == FenceLane::kRenew) session.statement_timeout = options.renew_timeout;
  Result<std::unique_ptr<PostgresConnection>> connected =
      PostgresConnection::Connect(options, session, copy);
  if (!connected.ok()) return connected.error();
  return std::unique_ptr<FlushConnection>(
      new PostgresFlushConnection(std::move(connected).value(), session.application_name));
}

FlushAttemptResult PostgresFlushConnection::Flush(const std::optional<FlushNumber>& number,
                                                  std::span<const StorageWrite> writes) {
  connection_->BeginPipeline();
  connection_->AddPlainToPipeline("BEGIN");
  if (number) AddFence(*number);
  AddWrites(writes);
  connection_->AddPlainToPipeline("COMMIT");
  PostgresConnection::PipelineAnswer answer = connection_->FinishPipeline();
  if (!answer.answer.ok()) connection_->RollBack();
  if (!number && answer.statement == kFenceStatement && answer.answer.state() == kDivisionByZero) {
    answer.statement = 0;  // There was no fence statement at that place.
  }
  return ToAttempt(std::move(answer));
}

void PostgresFlushConnection::AddFence(const FlushNumber& number) {
  const std::array<PostgresParameter, 4> parameters = {
      PostgresParameter::Number(number.owner.server_id),
      PostgresParameter::Number(static_cast<std::int64_t>(number.lane)),
      PostgresParameter::Number(number.owner.epoch), PostgresParameter::Number(number.seq)};
  connection_->AddToPipeline(std::string(kFenceSql), parameters);
}

void PostgresFlushConnection::AddWrites(std::span<const StorageWrite> writes) {
  std::size_t begin = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const std::size_t row_bytes = writes[i].key.size() + writes[i].value.size();
    const bool other_table = i > begin && writes[i].table != writes[begin].table;
    if (other_table || (i > begin && bytes + row_bytes > kChunkBytesMax)) {
      AddChunk(writes.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += row_bytes;
  }
  if (begin < writes.size()) AddChunk(writes.subspan(begin));
}

// Rows of one table.
void PostgresFlushConnection::AddChunk(std::span<const StorageWrite> chunk) {
  const auto& table = *static_cast<const PostgresTable*>(chunk.front().table);
  std::size_t removes = 0;
  std::size_t removed_key_bytes = 0;
  std::size_t put_key_bytes = 0;
  std::size_t put_value_bytes = 0;
  for (const StorageWrite& write : chunk) {
    if (write.remove) {
      ++removes;
      removed_key_bytes += write.key.size();
    } else {
      put_key_bytes += write.key.size();
      put_value_bytes += write.value.size();
    }
  }
  if (removes < chunk.size()) {
    ByteaArray keys(chunk.size() - removes, put_key_bytes);
    ByteaArray values(chunk.size() - removes, put_value_bytes);
    for (const StorageWrite& write : chunk) {
      if (write.remove) continue;
      keys.Add(write.key);
      values.Add(write.value);
    }
    const std::array<PostgresParameter, 2> parameters = {keys.parameter(), values.parameter()};
    connection_->AddToPipeline(table.put_sql(), parameters);
  }
  if (removes > 0) {
    ByteaArray keys(removes, removed_key_bytes);
    for (const StorageWrite& write : chunk) {
      if (write.remove) keys.Add(write.key);
    }
    const std::array<PostgresParameter, 1> parameters = {keys.parameter()};
    connection_->AddToPipeline(table.remove_sql(), parameters);
  }
}

Result<FenceLaneRow> PostgresFlushConnection::ReadLane(std::int32_t server_id, FenceLane lane) {
  const std::array<PostgresParameter, 2> parameters = {
      PostgresParameter::Number(server_id),
      PostgresParameter::Number(static_cast<std::int64_t>(lane))};
  const PostgresAnswer answer = connection_->Execute(std::string(kReadLaneSql), parameters);
  if (!answer.ok()) return Error(ErrorCode::kUnavailable, answer.message());
  if (answer.row_count() == 0) return FenceLaneRow{};
  if (answer.number(0, 4) != 0) {
    return Error(ErrorCode::kUnavailable, "the database is frozen for a planned switch-over");
  }
  return FenceLaneRow{.epoch = answer.number(0, 0),
                      .flush_seq = answer.number(0, 1),
                      .live = answer.number(0, 2) != 0,
                      .holder = std::string(answer.bytes(0, 3))};
}

Result<void> PostgresFlushConnection::EndSession(const std::string& session) {
  const std::array<PostgresParameter, 1> parameters = {PostgresParameter::Text(session)};
  RetryPause pause(std::chrono::seconds(5));
  for (;;) {
    const PostgresAnswer answer = connection_->Execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = $1::text AND pid <> pg_backend_pid()",
        parameters);
    if (!answer.ok()) return Error(ErrorCode::kUnavailable, answer.message());
    if (answer.row_count() == 0) return {};
    if (!pause.Wait()) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("the database does not end the session '{}'", session));
    }
  }
}

PostgresAnswer EndPostgresSessions(PostgresConnection& connection, std::int32_t server_id,
                                   std::int64_t epoch) {
  PostgresAnswer answer = connection.ExecuteOnce("SAVEPOINT sessions");
  if (!answer.ok()) return answer;
  const std::array<PostgresParameter, 2> parameters = {
      PostgresParameter::Text(fmt::format("^zeze server {} epoch ([0-9]{{1,18}}) ", server_id)),
      PostgresParameter::Number(epoch)};
  answer = connection.Execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
      " WHERE substring(application_name FROM $1::text)::bigint <= $2::bigint"
      " AND datname = current_database() AND pid <> pg_backend_pid()",
      parameters);
  if (!answer.ok()) {
    ZEZE_LOG_WARNING("cannot end the database sessions of server {}: {}", server_id,
                     answer.message());
  }
  return connection.ExecuteOnce("ROLLBACK TO SAVEPOINT sessions");
}

}  // namespace zeze
