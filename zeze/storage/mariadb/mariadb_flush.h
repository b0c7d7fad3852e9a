// MariaDbFlushConnection: the connection of a lane.
//
//   UPDATE zeze_fence ... (must meet one row); INSERT ... ON DUPLICATE KEY UPDATE with arrays for
//   each table; DELETE with arrays; COMMIT
//
// MariaDB has no names for sessions, so each takes a user lock of a name by chance, which goes away
// with it: IS_USED_LOCK finds its connection, wherever in time the number of a connection is used
// again. The table zeze_session says which names are whose.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_nodes.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/storage.h"

namespace zeze {

// Key, lengths and the text of a statement, beside a value in one packet.
inline constexpr std::size_t kMariaDbPacketRestBytes = std::size_t{16} << 10;

class MariaDbFlushConnection final : public FlushConnection {
 public:
  static Result<std::unique_ptr<FlushConnection>> Connect(MariaDbNodes& nodes,
                                                          const MariaDbOptions& options,
                                                          FenceLane lane,
                                                          const std::optional<FenceOwner>& owner);

  bool IsOpen() override { return connection_->IsOpen(); }
  FlushAttemptResult Flush(const std::optional<FlushNumber>& number,
                           std::span<const StorageWrite> writes) override;
  Result<FenceLaneRow> ReadLane(std::int32_t server_id, FenceLane lane) override;
  std::string session() const override { return session_; }
  Result<void> EndSession(const std::string& session) override;

 private:
  MariaDbFlushConnection(std::unique_ptr<MariaDbConnection> connection, std::string node,
                         std::string session)
      : connection_(std::move(connection)), node_(std::move(node)), session_(std::move(session)) {}

  MariaDbAnswer Write(std::span<const StorageWrite> writes);
  MariaDbAnswer WriteChunk(std::span<const StorageWrite> chunk);
  MariaDbAnswer WriteChunkAsText(std::span<const StorageWrite> chunk);

  const std::unique_ptr<MariaDbConnection> connection_;
  const std::string node_;     // Of a cluster; user locks are known on one node only.
  const std::string session_;  // Node and name of the lock.
};

// Ends the lane sessions of this server's epochs up to `epoch`, those on this node. Not being
// allowed to is no error: whoever waits for their locks then waits longer. The answer fails only if
// the connection is lost.
MariaDbAnswer EndMariaDbSessions(MariaDbConnection& connection, std::int32_t server_id,
                                 std::int64_t epoch);

}  // namespace zeze
