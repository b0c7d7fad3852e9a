// SqlFence: the fence rows in an SQL database.
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
// Start holds the guard row while it compares its configuration, reads the terms and marks its
// server live; RaiseTerm, a start that needs the database for itself, and changes of zeze_cluster
// hold it alone. So a Global that raised its term lists every server that has seen an older one,
// also when it is the first of its shard (rules 42 and 43), and of two starts that disagree the
// second one compares with what the first one wrote (rule 52).
//
// The columns `secret` have no default: a process of an earlier build, which compares nothing,
// cannot start beside processes that do.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_driver.h"

namespace zeze {

class SqlFence final : public Fence {
 public:
  SqlFence(SqlPool& pool, SqlDriver& driver, FlushLane& flush_lane, FlushLane& renew_lane,
           std::chrono::nanoseconds retry_for)
      : pool_(pool),
        driver_(driver),
        dialect_(driver.dialect()),
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

 private:
  // Returns the first answer that failed. Run again after collisions.
  using Body = FunctionRef<SqlAnswer(SqlConnection&)>;

  // A transaction around the body; again while it collides or the connection is lost before COMMIT.
  // A body that is run again starts from nothing.
  Result<void> InTransaction(std::string_view what, Body body);
  Result<SqlAnswer> Query(const std::string& sql, const std::vector<SqlParameter>& parameters);

  // One try of an eviction whose term is in order. kConflict: it collided.
  Result<void> TakeEpochAlone(const std::string& sql, std::int32_t server_id, std::int64_t epoch);
  FenceOwner Owner();
  // Why this process may not write any more.
  Error SayFenced(const FenceOwner& owner);

  SqlPool& pool_;
  SqlDriver& driver_;
  const SqlDialect& dialect_;
  FlushLane& flush_lane_;
  FlushLane& renew_lane_;
  const std::chrono::nanoseconds retry_for_;

  Mutex mutex_;
  FenceOwner owner_ ZEZE_GUARDED_BY(mutex_);  // Epoch 0: not started.
};

}  // namespace zeze
