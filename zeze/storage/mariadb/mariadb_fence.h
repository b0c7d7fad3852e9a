// MariaDbFence: the fence rows in MariaDB and MySQL, on Galera clusters too.
//
//   zeze_cluster  one row: what all processes must agree on, see zeze/storage/cluster.h
//   zeze_table    the id of each table, by the name of its relation
//   zeze_fence    a row for each server and lane: epoch, flush_seq, live, holder, secret,
//                 incarnation; epoch_lost and seq_lost: what it was before an eviction
//   zeze_fenced   fenced epochs whose lease nobody has seen to be over, and their renewals
//   zeze_lease    how long the lease of an epoch lasts, if it said so. A table of its own, by
//                 epoch: servers and Globals of earlier builds, which do not know it, spoil nothing
//   zeze_global   a row for each shard: term, holder, uses, secret; and the guard row, shard -1
//   zeze_wanted   live epochs that a Global wants to yield its shard, with its term (rule 64)
//   zeze_yield    the last mark of an epoch for each shard (rule 65)
//   zeze_home     one row: which copy of the database counts, see zeze/storage/sql/database_copy.h
//   zeze_session  which user locks name the sessions of a server, see mariadb_flush.h
//
// Where another engine would take a share lock, a counter is raised: the nodes of a Galera cluster
// (and of TiDB) do not know each other's read locks, but no two of them commit changes of one row
// side by side. Start raises the guard row's while it compares its configuration, reads the terms
// and marks its server live; RaiseTerm and changes of the cluster too; Evict raises that of its
// shard's row (rules 39, 42, 43 and 52). So all of them are exclusive here.
//
// The columns `secret` have no default: in strict mode, which is MariaDB's own, a process of an
// earlier build, which compares nothing, cannot start beside processes that do.
//
// On a cluster the first to commit wins, and a server that flushes all the time on one node would
// nearly always be first. So there an eviction touches the rows of the server by one statement that
// is a transaction of its own, after one that has checked the term.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/flush_lane.h"

namespace zeze {

class MariaDbFence final : public Fence {
 public:
  MariaDbFence(ConnectionPool<MariaDbConnection>& pool, const DatabaseCopy& copy,
               FlushLane& flush_lane, FlushLane& renew_lane, std::chrono::nanoseconds retry_for)
      : pool_(pool),
        copy_(copy),
        flush_lane_(flush_lane),
        renew_lane_(renew_lane),
        retry_for_(retry_for) {}

  // The framework's tables of a fence, made if they are not there.
  static MariaDbAnswer MakeTables(MariaDbConnection& connection);

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
  using Body = std::function<MariaDbAnswer(MariaDbConnection&)>;

  // START TRANSACTION, body, COMMIT; again while it collides or the connection is lost before
  // COMMIT. A body that is run again starts from nothing.
  Result<void> InTransaction(std::string_view what, const Body& body);

  // One try of an eviction whose term is in order. kConflict: it collided.
  Result<void> RaiseEpochAlone(std::int32_t server_id, std::int64_t epoch);
  Result<MariaDbAnswer> Query(const std::string& sql);
  FenceOwner Owner();
  // Why this process may not write any more.
  Error SayFenced(const FenceOwner& owner);

  ConnectionPool<MariaDbConnection>& pool_;
  const DatabaseCopy& copy_;
  FlushLane& flush_lane_;
  FlushLane& renew_lane_;
  const std::chrono::nanoseconds retry_for_;

  Mutex mutex_;
  FenceOwner owner_ ZEZE_GUARDED_BY(mutex_);  // Epoch 0: not started.
};

}  // namespace zeze
