// SqlFlushConnection: what the connections of lanes have in common. A driver adds the flush itself
// and how a session is ended.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/storage.h"

namespace zeze {

class SqlFlushConnection : public FlushConnection {
 public:
  bool IsOpen() final { return connection_.IsOpen(); }
  Result<FenceLaneRow> ReadLane(std::int32_t server_id, FenceLane lane) final;
  std::string session() const final { return session_; }

 protected:
  // `session` is what EndSession of another connection is told.
  SqlFlushConnection(SqlConnection& connection, std::string session)
      : connection_(connection), session_(std::move(session)) {}

 private:
  SqlConnection& connection_;
  const std::string session_;
};

// How an attempt ended by the answer to its last statement.
FlushAttemptResult ToFlushAttempt(const SqlAnswer& answer);

// How the rows of a flush are cut into statements.
struct FlushCut {
  std::size_t bytes_max = 0;           // Of one statement's rows, unless a single row is larger.
  std::size_t row_overhead_bytes = 0;  // Beside key and value.
  bool puts_apart = false;             // Puts and removes are different statements.
};

// Gives runs of rows of one table to `write`, until it fails.
SqlAnswer ForEachChunk(std::span<const StorageWrite> writes, const FlushCut& cut,
                       FunctionRef<SqlAnswer(std::span<const StorageWrite>)> write);

}  // namespace zeze
