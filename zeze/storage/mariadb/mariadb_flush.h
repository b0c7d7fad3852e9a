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
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_flush.h"
#include "zeze/storage/storage.h"

namespace zeze {

// Key, lengths and the text of a statement, beside a value in one packet.
inline constexpr std::size_t kMariaDbPacketRestBytes = std::size_t{16} << 10;

class MariaDbFlushConnection final : public SqlFlushConnection {
 public:
  static Result<std::unique_ptr<FlushConnection>> Connect(MariaDbNodes& nodes,
                                                          const MariaDbOptions& options,
                                                          FenceLane lane,
                                                          const std::optional<FenceOwner>& owner);

  FlushAttemptResult Flush(const std::optional<FlushNumber>& number,
                           std::span<const StorageWrite> writes) override;
  Result<void> EndSession(const std::string& session) override;

 private:
  // The session is node and name of the lock.
  MariaDbFlushConnection(std::unique_ptr<MariaDbConnection> connection, std::string node,
                         const std::string& name)
      : SqlFlushConnection(*connection, node + "/" + name),
        connection_(std::move(connection)),
        node_(std::move(node)) {}

  SqlAnswer Write(std::span<const StorageWrite> writes);
  SqlAnswer WriteChunk(std::span<const StorageWrite> chunk);
  SqlAnswer WriteChunkAsText(std::span<const StorageWrite> chunk);

  const std::unique_ptr<MariaDbConnection> connection_;
  const std::string node_;  // Of a cluster; user locks are known on one node only.
};

}  // namespace zeze
