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

#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/postgres/bytea_array.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_flush.h"
#include "zeze/storage/sql/sql_table.h"
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
  ForEachChunk(writes, {.bytes_max = kChunkBytesMax}, [&](std::span<const StorageWrite> chunk) {
    Add(chunk);
    return SqlAnswer();
  });
  connection_->AddPlainToPipeline("COMMIT");
  const PostgresConnection::PipelineAnswer answer = connection_->FinishPipeline();
  if (!answer.answer.ok()) connection_->RollBack();
  const bool refused = number && answer.statement == kFenceStatement &&
                       answer.answer.failure() == SqlFailure::kError &&
                       answer.answer.code() == kDivisionByZero;
  if (refused) {
    return {.attempt = FlushAttempt::kFenceRefused};
  }
  return ToFlushAttempt(answer.answer);
}

void PostgresFlushConnection::AddFence(const FlushNumber& number) {
  const std::array<SqlParameter, 4> parameters = {
      number.owner.server_id, static_cast<int>(number.lane), number.owner.epoch, number.seq};
  connection_->AddToPipeline(std::string(kFenceSql), parameters);
}

// Rows of one table.
void PostgresFlushConnection::Add(std::span<const StorageWrite> chunk) {
  const auto& table = *static_cast<const SqlTable*>(chunk.front().table);
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
    const std::array<SqlParameter, 2> parameters = {keys.parameter(), values.parameter()};
    connection_->AddToPipeline(table.words().put, parameters);
  }
  if (removes > 0) {
    ByteaArray keys(removes, removed_key_bytes);
    for (const StorageWrite& write : chunk) {
      if (write.remove) keys.Add(write.key);
    }
    const std::array<SqlParameter, 1> parameters = {keys.parameter()};
    connection_->AddToPipeline(table.words().remove, parameters);
  }
}

Result<void> PostgresFlushConnection::EndSession(const std::string& session) {
  RetryPause pause(std::chrono::seconds(5));
  for (;;) {
    const SqlAnswer answer = connection_->Run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = $1::text AND pid <> pg_backend_pid()",
        {session});
    if (!answer.ok()) return Error(ErrorCode::kUnavailable, answer.message());
    if (answer.row_count() == 0) return {};
    if (!pause.Wait()) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("the database does not end the session '{}'", session));
    }
  }
}

}  // namespace zeze
