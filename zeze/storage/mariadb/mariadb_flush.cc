#include "zeze/storage/mariadb/mariadb_flush.h"

#include <algorithm>
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
#include <vector>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_nodes.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/mariadb/mariadb_storage_impl.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
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

FlushAttemptResult ToAttempt(const MariaDbAnswer& answer, bool committing, bool fenced) {
  switch (answer.failure) {
    case MariaDbFailure::kNone:
      return {.attempt = FlushAttempt::kCommitted};
    case MariaDbFailure::kCollision:
      return {.attempt = FlushAttempt::kCollided, .message = answer.message};
    case MariaDbFailure::kError:
      // A COMMIT that fails for an unclear reason may have happened.
      if (committing) return {.attempt = FlushAttempt::kLost, .message = answer.message};
      return {.attempt = FlushAttempt::kFailed, .message = answer.message};
    case MariaDbFailure::kLost:
      break;
  }
  // Before COMMIT was sent a lost connection is a transaction that will be rolled back. With a
  // fence it is looked after all the same, which ends a session that still has its locks.
  return {.attempt = committing || fenced ? FlushAttempt::kLost : FlushAttempt::kCollided,
          .message = answer.message};
}

// A statement on its own that does not happen at all if it collides, as on the nodes of a cluster.
MariaDbAnswer WithoutCollision(MariaDbConnection& connection, const std::string& sql) {
  RetryPause pause(std::chrono::seconds(1));
  for (;;) {
    MariaDbAnswer answer = connection.Query(sql);
    if (answer.failure != MariaDbFailure::kCollision || !pause.Wait()) return answer;
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
  auto failed = [](const MariaDbAnswer& answer) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot name a session of the database: {}", answer.message));
  };

  std::string node;
  if (connection->is_galera()) {
    const MariaDbAnswer answer = connection->Query("SELECT @@wsrep_node_name");
    if (!answer.ok()) return failed(answer);
    node = answer.text(0, 0);
  }
  std::random_device random;
  const std::string name = fmt::format("zeze {:08x}{:08x}", random(), random());
  MariaDbAnswer answer = connection->Query(fmt::format("SELECT GET_LOCK('{}', 0)", name));
  if (!answer.ok()) return failed(answer);
  if (owner) {
    // What is noted of older processes, and of own sessions that ended, goes away with that.
    answer = WithoutCollision(
        *connection, fmt::format("DELETE FROM zeze_session WHERE server_id = {} AND lane = {}"
                                 " AND (epoch < {} OR node = {} AND IS_USED_LOCK(name) IS NULL)",
                                 owner->server_id, static_cast<int>(lane), owner->epoch,
                                 connection->Quoted(node)));
    if (answer.ok()) {
      answer =
          WithoutCollision(*connection, fmt::format("INSERT INTO zeze_session (name, server_id, "
                                                    "lane, epoch, node) VALUES ('{}', {}, {}, {}, "
                                                    "{})",
                                                    name, owner->server_id, static_cast<int>(lane),
                                                    owner->epoch, connection->Quoted(node)));
    }
    if (!answer.ok()) return failed(answer);
  }
  // From here on a transaction begins with every first statement, without asking for it.
  answer = connection->Query("SET SESSION autocommit = 0");
  if (!answer.ok()) return failed(answer);
  return std::unique_ptr<FlushConnection>(
      new MariaDbFlushConnection(std::move(connection), node, node + "/" + name));
}

FlushAttemptResult MariaDbFlushConnection::Flush(const std::optional<FlushNumber>& number,
                                                 std::span<const StorageWrite> writes) {
  MariaDbAnswer answer;
  if (number) {
    answer = connection_->Query(fmt::format(
        "UPDATE zeze_fence SET flush_seq = {} WHERE server_id = {} AND lane = {} AND epoch = {}"
        " AND flush_seq = {} AND live = 1 AND frozen = 0",
        number->seq, number->owner.server_id, static_cast<int>(number->lane), number->owner.epoch,
        number->seq - 1));
    if (answer.ok() && answer.affected_rows != 1) {
      connection_->RollBack();
      return {.attempt = FlushAttempt::kFenceRefused};
    }
  }
  if (answer.ok()) answer = Write(writes);
  const bool committing = answer.ok();
  if (committing) answer = connection_->Query("COMMIT");
  if (!answer.ok()) connection_->RollBack();
  return ToAttempt(answer, committing, number.has_value());
}

MariaDbAnswer MariaDbFlushConnection::Write(std::span<const StorageWrite> writes) {
  // As text each byte of a row takes two.
  const std::size_t packet = connection_->packet_bytes_max() - kMariaDbPacketRestBytes / 2;
  const std::size_t room = connection_->takes_arrays() ? packet : packet / 2;
  const std::size_t chunk_bytes_max = std::min(kChunkBytesMax, room);
  std::size_t begin = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const std::size_t row_bytes = writes[i].key.size() + writes[i].value.size() + kRowOverheadBytes;
    if (row_bytes > room) {
      // It was committed when there was room for it.
      return {.failure = MariaDbFailure::kError,
              .message =
                  fmt::format("max_allowed_packet of the database is {} bytes by now, and "
                              "a row of table '{}' takes {}: set it as it was",
                              connection_->packet_bytes_max(), writes[i].table->name(), row_bytes)};
    }
    // Puts and removes are different statements; a run of one kind is one statement.
    const bool other = i > begin && (writes[i].table != writes[begin].table ||
                                     writes[i].remove != writes[begin].remove);
    if (other || (i > begin && bytes + row_bytes > chunk_bytes_max)) {
      MariaDbAnswer answer = WriteChunk(writes.subspan(begin, i - begin));
      if (!answer.ok()) return answer;
      begin = i;
      bytes = 0;
    }
    bytes += row_bytes;
  }
  if (begin == writes.size()) return {};
  return WriteChunk(writes.subspan(begin));
}

// Rows of one table, all puts or all removes.
MariaDbAnswer MariaDbFlushConnection::WriteChunk(std::span<const StorageWrite> chunk) {
  if (!connection_->takes_arrays()) return WriteChunkAsText(chunk);
  const auto& table = *static_cast<const MariaDbTable*>(chunk.front().table);
  const bool remove = chunk.front().remove;
  std::vector<std::vector<std::string_view>> columns(remove ? 1 : 2);
  for (std::vector<std::string_view>& column : columns) column.reserve(chunk.size());
  for (const StorageWrite& write : chunk) {
    columns[0].push_back(write.key);
    if (!remove) columns[1].push_back(write.value);
  }
  return connection_->ExecuteForEach(remove ? table.remove_sql() : table.put_sql(), columns);
}

MariaDbAnswer MariaDbFlushConnection::WriteChunkAsText(std::span<const StorageWrite> chunk) {
  const auto& table = *static_cast<const MariaDbTable*>(chunk.front().table);
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
  return connection_->Query(sql);
}

Result<FenceLaneRow> MariaDbFlushConnection::ReadLane(std::int32_t server_id, FenceLane lane) {
  // FOR UPDATE waits for a flush that still runs, and then shows what it has done.
  const MariaDbAnswer answer = connection_->Query(fmt::format(
      "SELECT epoch, flush_seq, live, holder, frozen FROM zeze_fence WHERE server_id = {} AND"
      " lane = {} FOR UPDATE",
      server_id, static_cast<int>(lane)));
  connection_->RollBack();
  if (!answer.ok()) return Error(ErrorCode::kUnavailable, answer.message);
  if (answer.rows.empty()) return FenceLaneRow{};
  if (answer.number(0, 4) != 0) {
    return Error(ErrorCode::kUnavailable, "the database is frozen for a planned switch-over");
  }
  return FenceLaneRow{.epoch = answer.number(0, 0),
                      .flush_seq = answer.number(0, 1),
                      .live = answer.number(0, 2) != 0,
                      .holder = answer.text(0, 3)};
}

Result<void> MariaDbFlushConnection::EndSession(const std::string& session) {
  const std::size_t slash = session.rfind('/');
  if (session.substr(0, slash) != node_) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot end a session on node '{}' from node '{}'",
                             session.substr(0, slash), node_));
  }
  const std::string used =
      fmt::format("SELECT IS_USED_LOCK({})", connection_->Quoted(session.substr(slash + 1)));
  RetryPause pause(std::chrono::seconds(5));
  for (;;) {
    const MariaDbAnswer answer = connection_->Query(used);
    if (!answer.ok()) return Error(ErrorCode::kUnavailable, answer.message);
    if (!answer.rows[0][0]) return {};
    // It may be gone by now, which is an error too.
    const MariaDbAnswer killed = connection_->Query("KILL " + answer.text(0, 0));
    if (killed.failure == MariaDbFailure::kLost) {
      return Error(ErrorCode::kUnavailable, killed.message);
    }
    if (!pause.Wait()) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("the database does not end the session {}", answer.text(0, 0)));
    }
  }
}

MariaDbAnswer EndMariaDbSessions(MariaDbConnection& connection, std::int32_t server_id,
                                 std::int64_t epoch) {
  MariaDbAnswer sessions = connection.Query(fmt::format(
      "SELECT IS_USED_LOCK(name) FROM zeze_session WHERE server_id = {} AND epoch <= {}", server_id,
      epoch));
  if (!sessions.ok()) return sessions;
  for (const auto& row : sessions.rows) {
    if (!row[0]) continue;  // Ended already, or on another node.
    MariaDbAnswer killed = connection.Query("KILL " + *row[0]);
    if (killed.failure == MariaDbFailure::kLost) return killed;
    if (!killed.ok()) {
      ZEZE_LOG_WARNING("cannot end database session {} of server {}: {}", *row[0], server_id,
                       killed.message);
    }
  }
  return {};
}

}  // namespace zeze
