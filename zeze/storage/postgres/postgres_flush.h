// PostgresFlushConnection: the connection of a lane. A flush goes out in one piece, fence first:
//
//   BEGIN; fence; INSERT ... ON CONFLICT for each table; DELETE for each table; COMMIT
//
// and one answer comes back. The fence statement divides by the number of rows it changed, so that
// the database itself stops there if it is none: nothing behind a failed statement is run.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/storage.h"

namespace zeze {

class PostgresFlushConnection final : public FlushConnection {
 public:
  // The session is named after its owner, or by chance if it has none.
  static Result<std::unique_ptr<FlushConnection>> Connect(const PostgresOptions& options,
                                                          DatabaseCopy& copy, FenceLane lane,
                                                          const std::optional<FenceOwner>& owner);

  bool IsOpen() override { return connection_->IsOpen(); }
  FlushAttemptResult Flush(const std::optional<FlushNumber>& number,
                           std::span<const StorageWrite> writes) override;
  Result<FenceLaneRow> ReadLane(std::int32_t server_id, FenceLane lane) override;
  std::string session() const override { return session_; }
  Result<void> EndSession(const std::string& session) override;

 private:
  PostgresFlushConnection(std::unique_ptr<PostgresConnection> connection, std::string session)
      : connection_(std::move(connection)), session_(std::move(session)) {}

  void AddFence(const FlushNumber& number);
  void AddWrites(std::span<const StorageWrite> writes);
  void AddChunk(std::span<const StorageWrite> chunk);

  const std::unique_ptr<PostgresConnection> connection_;
  const std::string session_;
};

// Inside a transaction: ends the lane sessions of this server's epochs up to `epoch`. Not being
// allowed to is no error: whoever waits for their locks then waits longer.
PostgresAnswer EndPostgresSessions(PostgresConnection& connection, std::int32_t server_id,
                                   std::int64_t epoch);

}  // namespace zeze
