// PostgresFence: the fence rows in PostgreSQL.
//
//   zeze_cluster one row: what all processes must agree on, see zeze/storage/cluster.h
//   zeze_table   the id of each table, by the name of its relation
//   zeze_fence   a row for each server and lane: epoch, flush_seq, live, holder, secret,
//                incarnation
//   zeze_fenced  fenced epochs whose lease nobody has seen to be over, and their renewals
//   zeze_lease   how long the lease of an epoch lasts, if it said so. A table of its own, by epoch:
//                servers and Globals of earlier builds, which do not know it, spoil nothing
//   zeze_global  a row for each shard: term, holder, secret; and the guard row, shard -1
//   zeze_wanted  live epochs that a Global wants to yield its shard, with its term (rule 64)
//   zeze_yield   the last mark of a live epoch for each shard (rule 65)
//   zeze_home    one row: which copy of the database counts, see zeze/storage/sql/database_copy.h
//
// Start holds the guard row with a share lock while it compares its configuration, reads the terms
// and marks its server live; RaiseTerm, a start that needs the database for itself, and changes of
// zeze_cluster hold it alone. So a Global that raised its term lists every server that has seen an
// older one, also when it is the first of its shard (rules 42 and 43), and of two starts that
// disagree the second one compares with what the first one wrote (rule 52).
//
// The columns `secret` have no default: a process of an earlier build, which compares nothing,
// cannot start beside processes that do.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/flush_lane.h"

namespace zeze {

class PostgresFence final : public Fence {
 public:
  PostgresFence(ConnectionPool<PostgresConnection>& pool, const DatabaseCopy& copy,
                FlushLane& flush_lane, FlushLane& renew_lane, std::chrono::nanoseconds retry_for)
      : pool_(pool),
        copy_(copy),
        flush_lane_(flush_lane),
        renew_lane_(renew_lane),
        retry_for_(retry_for) {}

  Result<FenceStart> Start(const FenceStartOptions& options) override;
  Result<void> Share() override;
  Result<std::vector<LiveServer>> InTheWay(const FenceStartOptions& options) override;
  Result<bool> EvictSilent(const LiveServer& seen) override;
  Result<void> Renew() override;
  Result<void> Finish() override;
  Result<std::int64_t> RaiseTerm(const GlobalStart& start) override;
  Result<std::vector<LiveServer>> ListLive() override;
  Result<EvictOutcome> Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                             std::int64_t term, const EvictUnless& unless) override;
  Result<std::map<std::int32_t, std::int64_t>> Wanted() override;
  Result<void> Yield(std::int32_t shard, const YieldMark& mark) override;
  Result<bool> Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                    std::int64_t term) override;
  Result<void> Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                      std::int64_t term) override;
  Result<std::vector<YieldedServer>> Yields(std::int32_t shard) override;
  Result<void> LeaseOver(std::int32_t server_id, std::int64_t epoch) override;
  Result<ServerRow> Read(std::int32_t server_id) override;
  Result<std::map<std::int32_t, std::int64_t>> Terms() override;
  Result<TermRow> ReadTerm(std::int32_t shard) override;
  Result<std::optional<ClusterRow>> Cluster() override;
  Result<std::map<std::string, std::int32_t>> TableIds() override;
  Result<void> Change(const ClusterChange& change) override;
  Result<std::string> History() override;

  static constexpr const char* kCreateTablesSql =
      "CREATE TABLE IF NOT EXISTS zeze_fence (server_id int NOT NULL, lane smallint NOT NULL,"
      " epoch bigint NOT NULL, flush_seq bigint NOT NULL, live boolean NOT NULL,"
      " holder text NOT NULL, changed timestamptz NOT NULL DEFAULT now(),"
      " secret bytea NOT NULL, PRIMARY KEY (server_id, lane));"
      "CREATE TABLE IF NOT EXISTS zeze_fenced (server_id int, epoch bigint,"
      " PRIMARY KEY (server_id, epoch));"
      "CREATE TABLE IF NOT EXISTS zeze_lease (server_id int, epoch bigint,"
      " lease_ms bigint NOT NULL, PRIMARY KEY (server_id, epoch));"
      "CREATE TABLE IF NOT EXISTS zeze_global (shard int PRIMARY KEY, term bigint NOT NULL,"
      " holder text NOT NULL, secret bytea NOT NULL);"
      "CREATE TABLE IF NOT EXISTS zeze_cluster (one int PRIMARY KEY CHECK (one = 1),"
      " cluster bytea NOT NULL, protocol int NOT NULL, shards int NOT NULL,"
      " alone_server int NOT NULL, alone_epoch bigint NOT NULL);"
      "CREATE TABLE IF NOT EXISTS zeze_table (name text PRIMARY KEY, id int NOT NULL);"
      "CREATE TABLE IF NOT EXISTS zeze_home (one int PRIMARY KEY CHECK (one = 1),"
      " home text NOT NULL, home_number bigint NOT NULL, frozen bigint NOT NULL,"
      " marker text NOT NULL);"
      "CREATE TABLE IF NOT EXISTS zeze_wanted (server_id int, epoch bigint, shard int,"
      " term bigint NOT NULL, PRIMARY KEY (server_id, epoch, shard));"
      "CREATE TABLE IF NOT EXISTS zeze_yield (server_id int, epoch bigint, shard int,"
      " number bigint NOT NULL, term bigint NOT NULL, PRIMARY KEY (server_id, epoch, shard));"
      // Of earlier builds. Rows that are there have no secret; no row without one can be added.
      "ALTER TABLE zeze_fence ADD COLUMN IF NOT EXISTS secret bytea NOT NULL DEFAULT '';"
      "ALTER TABLE zeze_fence ALTER COLUMN secret DROP DEFAULT;"
      "ALTER TABLE zeze_fence ADD COLUMN IF NOT EXISTS frozen bigint NOT NULL DEFAULT 0;"
      "ALTER TABLE zeze_fence ADD COLUMN IF NOT EXISTS incarnation bytea NOT NULL DEFAULT '';"
      "ALTER TABLE zeze_fenced ADD COLUMN IF NOT EXISTS renew_seq bigint NOT NULL DEFAULT -1;"
      "ALTER TABLE zeze_global ADD COLUMN IF NOT EXISTS secret bytea NOT NULL DEFAULT '';"
      "ALTER TABLE zeze_global ALTER COLUMN secret DROP DEFAULT;";
  // Whether all of that is there.
  static constexpr const char* kTablesExistSql =
      "to_regclass('zeze_fenced') IS NOT NULL AND to_regclass('zeze_lease') IS NOT NULL"
      " AND to_regclass('zeze_cluster') IS NOT NULL AND to_regclass('zeze_table') IS NOT NULL"
      " AND to_regclass('zeze_home') IS NOT NULL AND to_regclass('zeze_wanted') IS NOT NULL"
      " AND to_regclass('zeze_yield') IS NOT NULL"
      " AND (SELECT count(*) FROM pg_attribute WHERE attname = 'secret' AND NOT atthasdef"
      " AND attrelid IN (to_regclass('zeze_fence'), to_regclass('zeze_global'))) = 2"
      " AND (SELECT count(*) FROM pg_attribute WHERE attname IN ('frozen', 'incarnation')"
      " AND attrelid = to_regclass('zeze_fence')) = 2"
      " AND EXISTS (SELECT 1 FROM pg_attribute WHERE attname = 'renew_seq'"
      " AND attrelid = to_regclass('zeze_fenced'))";
  static constexpr const char* kGuardRowSql =
      "INSERT INTO zeze_global (shard, term, holder, secret) VALUES (-1, 0, '', '')"
      " ON CONFLICT DO NOTHING";

 private:
  // Returns the first answer that failed. Run again after collisions.
  using Body = std::function<PostgresAnswer(PostgresConnection&)>;

  // BEGIN, body, COMMIT; again while it collides or the connection is lost before COMMIT. A body
  // that is run again starts from nothing.
  Result<void> InTransaction(std::string_view what, const Body& body);
  Result<PostgresAnswer> Query(const std::string& sql,
                               std::span<const PostgresParameter> parameters,
                               PostgresFormat format = PostgresFormat::kText);
  FenceOwner Owner();
  // Why this process may not write any more.
  Error SayFenced(const FenceOwner& owner);

  ConnectionPool<PostgresConnection>& pool_;
  const DatabaseCopy& copy_;
  FlushLane& flush_lane_;
  FlushLane& renew_lane_;
  const std::chrono::nanoseconds retry_for_;

  Mutex mutex_;
  FenceOwner owner_ ZEZE_GUARDED_BY(mutex_);  // Epoch 0: not started.
};

}  // namespace zeze
