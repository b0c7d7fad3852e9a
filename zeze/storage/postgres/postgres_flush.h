// PostgresFlushConnection: the connection of a lane. A flush goes out in one piece, fence first:
//
//   BEGIN; fence; INSERT ... ON CONFLICT for each table; DELETE for each table; COMMIT
//
// and one answer comes back. The fence statement divides by the number of rows it changed, so that
// the database itself stops there if it is none: nothing behind a failed statement is run.

#pragma once

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
#include "zeze/storage/sql/sql_flush.h"
#include "zeze/storage/storage.h"

namespace zeze {

class PostgresFlushConnection final : public SqlFlushConnection {
 public:
  // The session is named after its owner, or by chance if it has none.
  static Result<std::unique_ptr<FlushConnection>> Connect(const PostgresOptions& options,
                                                          DatabaseCopy& copy, FenceLane lane,
                                                          const std::optional<FenceOwner>& owner);

  FlushAttemptResult Flush(const std::optional<FlushNumber>& number,
                           std::span<const StorageWrite> writes) override;
  Result<void> EndSession(const std::string& session) override;

 private:
  PostgresFlushConnection(std::unique_ptr<PostgresConnection> connection, std::string session)
      : SqlFlushConnection(*connection, std::move(session)), connection_(std::move(connection)) {}

  void AddFence(const FlushNumber& number);
  void Add(std::span<const StorageWrite> chunk);

  const std::unique_ptr<PostgresConnection> connection_;
};

}  // namespace zeze
