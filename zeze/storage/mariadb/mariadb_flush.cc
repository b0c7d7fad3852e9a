#include "zeze/storage/mariadb/mariadb_flush.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_nodes.h"
#include "zeze/storage/mariadb/mariadb_rows.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_flush.h"
#include "zeze/storage/sql/sql_table.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

// One statement's rows at most, unless a single one is larger.
constexpr std::size_t kChunkBytesMax = std::size_t{4} << 20;
constexpr std::size_t kRowOverheadBytes = 24;

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex = "x'";
  hex.reserve(bytes.size() * 2 + 3);
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex + "'";
}

// A statement on its own that does not happen at all if it collides, as on the nodes of a cluster.
SqlAnswer WithoutCollision(MariaDbConnection& connection, const std::string& sql) {
  RetryPause pause(std::chrono::seconds(1));
  for (;;) {
    SqlAnswer answer = connection.RunOnce(sql);
    if (answer.failure() != SqlFailure::kCollision || !pause.Wait()) return answer;
  }
}

}  // namespace

Result<std::unique_ptr<FlushConnection>> MariaDbFlushConnection::Connect(
    MariaDbNodes& nodes, const MariaDbOptions& options, FenceLane lane,
    const std::optional<FenceOwner>& owner) {
  MariaDbSession session = {.statement_timeout = options.statement_timeout};
  if (lane == FenceLane::kRenew) session.statement_timeout = options.renew_timeout;
  Result<std::unique_ptr<MariaDbConnection>> connected = nodes.Connect(session);
  if (!connected.ok()) return connected.error();
  std::unique_ptr<MariaDbConnection> connection = std::move(connected).value();
  auto failed = [](const SqlAnswer& answer) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot name a session of the database: {}", answer.message()));
  };

  std::string node;
  if (connection->is_galera()) {
    const SqlAnswer answer = connection->RunOnce("SELECT @@wsrep_node_name");
    if (!answer.ok()) return failed(answer);
    node = answer.text(0, 0);
  }
  std::random_device random;
  const std::string name = fmt::format("zeze {:08x}{:08x}", random(), random());
  SqlAnswer answer = connection->RunOnce(fmt::format("SELECT GET_LOCK('{}', 0)", name));
  if (!answer.ok()) return failed(answer);
  if (owner) {
    // What is noted of older processes, and of own sessions that ended, goes away with that.
    const std::string quoted_node = QuotedForMariaDb(node);
    answer = WithoutCollision(
        *connection,
        fmt::format("DELETE FROM zeze_session WHERE server_id = {} AND lane = {}"
                    " AND (epoch < {} OR node = {} AND IS_USED_LOCK(name) IS NULL)",
                    owner->server_id, static_cast<int>(lane), owner->epoch, quoted_node));
    if (answer.ok()) {
      answer = WithoutCollision(
          *connection,
          fmt::format("INSERT INTO zeze_session (name, server_id, lane, epoch, node)"
                      " VALUES ('{}', {}, {}, {}, {})",
                      name, owner->server_id, static_cast<int>(lane), owner->epoch, quoted_node));
    }
    if (!answer.ok()) return failed(answer);
  }
  // From here on a transaction begins with every first statement, without asking for it.
  answer = connection->RunOnce("SET SESSION autocommit = 0");
  if (!answer.ok()) return failed(answer);
  return std::unique_ptr<FlushConnection>(
      new MariaDbFlushConnection(std::move(connection), node, name));
}

FlushAttemptResult MariaDbFlushConnection::Flush(const std::optional<FlushNumber>& number,
                                                 std::span<const StorageWrite> writes) {
  SqlAnswer answer;
  if (number) {
    answer = connection_->RunOnce(fmt::format(
        "UPDATE zeze_fence SET flush_seq = {} WHERE server_id = {} AND lane = {} AND epoch = {}"
        " AND flush_seq = {} AND live = 1 AND frozen = 0",
        number->seq, number->owner.server_id, static_cast<int>(number->lane), number->owner.epoch,
        number->seq - 1));
    if (answer.ok() && answer.met_rows() != 1) {
      connection_->RollBack();
      return {.attempt = FlushAttempt::kFenceRefused};
    }
  }
  if (answer.ok()) answer = Write(writes);
  const bool committing = answer.ok();
  if (committing) answer = connection_->Commit();
  if (!answer.ok()) connection_->RollBack();
  // Before COMMIT was sent a lost connection is a transaction that will be rolled back. With a
  // fence it is looked after all the same, which ends a session that still has its locks.
  if (answer.failure() == SqlFailure::kLost && !committing && !number) {
    return {.attempt = FlushAttempt::kCollided, .message = answer.message()};
  }
  return ToFlushAttempt(answer);
}

SqlAnswer MariaDbFlushConnection::Write(std::span<const StorageWrite> writes) {
  // As text each byte of a row takes two.
  const std::size_t packet = connection_->packet_bytes_max() - kMariaDbPacketRestBytes / 2;
  const std::size_t room = connection_->takes_arrays() ? packet : packet / 2;
  const FlushCut cut = {.bytes_max = std::min(kChunkBytesMax, room),
                        .row_overhead_bytes = kRowOverheadBytes,
                        .puts_apart = true};
  return ForEachChunk(writes, cut, [&](std::span<const StorageWrite> chunk) -> SqlAnswer {
    // A row that is too large stands alone.
    const StorageWrite& row = chunk.front();
    const std::size_t row_bytes = row.key.size() + row.value.size() + kRowOverheadBytes;
    if (row_bytes <= room) return WriteChunk(chunk);
    // It was committed when there was room for it.
    return {SqlFailure::kError,
            fmt::format("max_allowed_packet of the database is {} bytes by now, and a row of table "
                        "'{}' takes {}: set it as it was",
                        connection_->packet_bytes_max(), row.table->name(), row_bytes)};
  });
}

// Rows of one table, all puts or all removes.
SqlAnswer MariaDbFlushConnection::WriteChunk(std::span<const StorageWrite> chunk) {
  if (!connection_->takes_arrays()) return WriteChunkAsText(chunk);
  const auto& table = *static_cast<const SqlTable*>(chunk.front().table);
  const bool remove = chunk.front().remove;
  std::vector<std::vector<std::string_view>> columns(remove ? 1 : 2);
  for (std::vector<std::string_view>& column : columns) column.reserve(chunk.size());
  for (const StorageWrite& write : chunk) {
    columns[0].push_back(write.key);
    if (!remove) columns[1].push_back(write.value);
  }
  return connection_->ExecuteForEach(remove ? table.words().remove : table.words().put, columns);
}

SqlAnswer MariaDbFlushConnection::WriteChunkAsText(std::span<const StorageWrite> chunk) {
  const auto& table = *static_cast<const SqlTable*>(chunk.front().table);
  const bool remove = chunk.front().remove;
  std::string sql = remove ? fmt::format("DELETE FROM {} WHERE id IN (", table.relation())
                           : fmt::format("INSERT INTO {} (id, value) VALUES ", table.relation());
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    if (i > 0) sql += ',';
    if (!remove) sql += '(';
    sql += Hex(chunk[i].key);
    if (!remove) sql += ',' + Hex(chunk[i].value) + ')';
  }
  sql += remove ? ")" : " ON DUPLICATE KEY UPDATE value = VALUES(value)";
  return connection_->RunOnce(sql);
}

Result<void> MariaDbFlushConnection::EndSession(const std::string& session) {
  const std::size_t slash = session.rfind('/');
  if (session.substr(0, slash) != node_) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot end a session on node '{}' from node '{}'",
                             session.substr(0, slash), node_));
  }
  RetryPause pause(std::chrono::seconds(5));
  for (;;) {
    const SqlAnswer answer =
        connection_->Run("SELECT IS_USED_LOCK($1)", {session.substr(slash + 1)});
    if (!answer.ok()) return Error(ErrorCode::kUnavailable, answer.message());
    if (answer.IsNull(0, 0)) return {};
    // It may be gone by now, which is an error too.
    const SqlAnswer killed = connection_->RunOnce("KILL " + answer.text(0, 0));
    if (killed.failure() == SqlFailure::kLost) {
      return Error(ErrorCode::kUnavailable, killed.message());
    }
    if (!pause.Wait()) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("the database does not end the session {}", answer.text(0, 0)));
    }
  }
}

}  // namespace zeze
