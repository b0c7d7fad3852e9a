// PostgresFence: the fence rows in PostgreSQL.
//
//   zeze_fence   a row for each server and lane: epoch, flush_seq, live, holder
//   zeze_fenced  fenced epochs whose lease nobody has seen to be over
//   zeze_lease   how long the lease of an epoch lasts, if it said so. A table of its own, by epoch:
//                servers and Globals of earlier builds, which do not know it, spoil nothing
//   zeze_global  a row for each shard: term, holder; and the guard row, shard -1
//
// Start holds the guard row with a share lock while it reads the terms and marks its server live;
// RaiseTerm holds it alone. So a Global that raised its term lists every server that has seen an
// older one, also when it is the first of its shard (rules 42 and 43).

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/flush_lane.h"

namespace zeze {

class PostgresFence final : public Fence {
 public:
  PostgresFence(ConnectionPool<PostgresConnection>& pool, FlushLane& flush_lane,
                FlushLane& renew_lane, std::chrono::nanoseconds retry_for)
      : pool_(pool), flush_lane_(flush_lane), renew_lane_(renew_lane), retry_for_(retry_for) {}

  Result<FenceStart> Start(const FenceStartOptions& options) override;
  Result<void> Renew() override;
  Result<void> Finish() override;
  Result<std::int64_t> RaiseTerm(std::int32_t shard, const std::string& holder) override;
  Result<std::vector<LiveServer>> ListLive() override;
  Result<EvictOutcome> Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                             std::int64_t term) override;
  Result<void> LeaseOver(std::int32_t server_id, std::int64_t epoch) override;
  Result<ServerRow> Read(std::int32_t server_id) override;
  Result<std::map<std::int32_t, std::int64_t>> Terms() override;
  Result<std::string> History() override;

  static constexpr const char* kCreateTablesSql =
      "CREATE TABLE IF NOT EXISTS zeze_fence (server_id int NOT NULL, lane smallint NOT NULL,"
      " epoch bigint NOT NULL, flush_seq bigint NOT NULL, live boolean NOT NULL,"
      " holder text NOT NULL, changed timestamptz NOT NULL DEFAULT now(),"
      " PRIMARY KEY (server_id, lane));"
      "CREATE TABLE IF NOT EXISTS zeze_fenced (server_id int, epoch bigint,"
      " PRIMARY KEY (server_id, epoch));"
      "CREATE TABLE IF NOT EXISTS zeze_lease (server_id int, epoch bigint,"
      " lease_ms bigint NOT NULL, PRIMARY KEY (server_id, epoch));"
      "CREATE TABLE IF NOT EXISTS zeze_global (shard int PRIMARY KEY, term bigint NOT NULL,"
      " holder text NOT NULL);";
  static constexpr const char* kGuardRowSql =
      "INSERT INTO zeze_global (shard, term, holder) VALUES (-1, 0, '') ON CONFLICT DO NOTHING";

 private:
  // Returns the first answer that failed. Run again after collisions.
  using Body = std::function<PostgresAnswer(PostgresConnection&)>;

  // BEGIN, body, COMMIT; again while it collides or the connection is lost before COMMIT. A body
  // that is run again starts from nothing.
  Result<void> InTransaction(std::string_view what, const Body& body);
  Result<PostgresAnswer> Query(const std::string& sql,
                               std::span<const PostgresParameter> parameters);

  ConnectionPool<PostgresConnection>& pool_;
  FlushLane& flush_lane_;
  FlushLane& renew_lane_;
  const std::chrono::nanoseconds retry_for_;

  Mutex mutex_;
  FenceOwner owner_ ZEZE_GUARDED_BY(mutex_);  // Epoch 0: not started.
};

}  // namespace zeze
