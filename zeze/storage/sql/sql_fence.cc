#include "zeze/storage/sql/sql_fence.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/sql/sql_driver.h"
#include "zeze/storage/sql/sql_fence_rows.h"
#include "zeze/storage/sql/table_name.h"

namespace zeze {

using sql_rows::ClusterIn;
using sql_rows::CompareCluster;
using sql_rows::HoldGuard;
using sql_rows::kClusterSql;
using sql_rows::kForgetLeaseSql;
using sql_rows::kTableIdsSql;
using sql_rows::kTermsSql;
using sql_rows::LiveIn;
using sql_rows::LookForReprieve;
using sql_rows::ReadCluster;
using sql_rows::Refused;
using sql_rows::RequireNotFrozen;
using sql_rows::TableIdsIn;
using sql_rows::TermsIn;
using sql_rows::WriteCluster;

Result<void> SqlFence::InTransaction(std::string_view what, Body body) {
  RetryPause pause(retry_for_);
  for (;;) {
    Result<SqlPool::Lease> lease = pool_.Take();
    if (!lease.ok()) {
      if (lease.error().code() == ErrorCode::kFenced || !pause.Wait()) return lease.error();
      continue;
    }
    SqlConnection& connection = *lease.value();
    SqlAnswer answer = connection.Begin();
    if (answer.ok()) answer = RequireNotFrozen(connection, dialect_);
    if (answer.ok()) answer = body(connection);
    const bool committing = answer.ok();
    if (committing) answer = connection.Commit();
    if (answer.ok()) return {};
    connection.RollBack();
    if (committing && answer.failure() == SqlFailure::kLost) {
      return SqlError(ErrorCode::kUnknownOutcome, what, answer.message());
    }
    const bool again =
        answer.failure() == SqlFailure::kCollision || answer.failure() == SqlFailure::kLost;
    if (!again || !pause.Wait()) {
      return SqlError(ErrorCode::kUnavailable, what, answer.message());
    }
  }
}

Result<SqlAnswer> SqlFence::Query(const std::string& sql,
                                  const std::vector<SqlParameter>& parameters) {
  return SqlRead(pool_, dialect_, nullptr, "read the fence rows",
                 [&](SqlConnection& connection) { return connection.Run(sql, parameters); });
}

Result<FenceStart> SqlFence::Start(const FenceStartOptions& options) {
  MutexLock lock(mutex_);
  ZEZE_CHECK(owner_.epoch == 0);  // Once in the life of a storage.
  const SqlWords& words = dialect_.words();
  FenceStart started;
  std::optional<Error> refused;
  bool collided = false;
  const Result<void> done = InTransaction("start the server", [&](SqlConnection& connection) {
    started = {};
    SqlAnswer answer =
        HoldGuard(connection, IsExclusive(options) ? words.lock_guard : words.share_guard);
    if (!answer.ok()) return answer;
    std::optional<ClusterRow> cluster;
    answer = CompareCluster(connection, dialect_, options, cluster, refused);
    if (!answer.ok()) return answer;
    if (cluster.has_value()) started.cluster = cluster->cluster;
    // A process of the same id may hang inside a flush.
    if (collided) answer = dialect_.EndSessions(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    collided = true;
    answer = connection.Run(kTermsSql);
    if (!answer.ok()) return answer;
    started.terms = TermsIn(answer);
    answer = dialect_.RaiseEpoch(connection, options, started.epoch);
    if (answer.ok() && cluster.has_value() && IsExclusive(options)) {
      cluster->alone_server = options.server_id;
      cluster->alone_epoch = started.epoch;
      answer = WriteCluster(connection, words.write_cluster, *cluster);
    }
    if (!answer.ok() || options.lease.count() == 0) return answer;
    return connection.Run(words.note_lease,
                          {options.server_id, started.epoch, options.lease.count()});
  });
  if (refused.has_value()) return *refused;
  if (!done.ok()) return done.error();
  owner_ = {.server_id = options.server_id, .epoch = started.epoch};
  flush_lane_.SetOwner(owner_);
  renew_lane_.SetOwner(owner_);
  return started;
}

Result<void> SqlFence::Share() {
  const FenceOwner owner = Owner();
  const SqlWords& words = dialect_.words();
  bool fenced = false;
  Result<void> done = InTransaction("share the database", [&](SqlConnection& connection) {
    SqlAnswer answer;
    if (!words.shares_guard) answer = HoldGuard(connection, words.lock_guard);
    if (answer.ok()) answer = connection.Run(words.hold_live, {owner.server_id, owner.epoch});
    fenced = answer.ok() && answer.met_rows() == 0;
    if (!answer.ok() || fenced) return answer;
    return connection.Run(
        "UPDATE zeze_cluster SET alone_epoch = 0 WHERE alone_server = $1 AND alone_epoch = $2",
        {owner.server_id, owner.epoch});
  });
  if (!done.ok() || !fenced) return done;
  return SayFenced(owner);
}

Result<std::vector<LiveServer>> SqlFence::InTheWay(const FenceStartOptions& options) {
  const Result<std::optional<ClusterRow>> cluster = Cluster();
  if (!cluster.ok()) return cluster.error();
  const Result<std::vector<LiveServer>> live = ListLive();
  if (!live.ok()) return live.error();
  return ServersInTheWay(cluster.value(), live.value(), options);
}

Result<bool> SqlFence::EvictSilent(const LiveServer& seen) {
  bool evicted = false;
  const Result<void> done = InTransaction("evict a silent server", [&](SqlConnection& connection) {
    evicted = false;
    SqlAnswer answer = dialect_.EndSessions(connection, seen.server_id, seen.epoch);
    if (answer.ok()) answer = dialect_.TakeSilentEpoch(connection, seen, evicted);
    if (!answer.ok() || !evicted) return answer;
    answer = ForgetYields(connection, seen.server_id, seen.epoch);
    if (!answer.ok()) return answer;
    return connection.Run(kForgetLeaseSql, {seen.server_id, seen.epoch});
  });
  if (!done.ok()) return done.error();
  return evicted;
}

Result<void> SqlFence::Renew() {
  return renew_lane_.Renew();
}

Result<void> SqlFence::Finish() {
  const FenceOwner owner = Owner();
  bool ended = false;
  Result<void> done = InTransaction("end the server", [&](SqlConnection& connection) {
    SqlAnswer answer = dialect_.EndEpoch(connection, owner);
    ended = answer.ok() && answer.met_rows() > 0;
    // A server that was fenced meanwhile stays listed, and so does its lease.
    if (!ended) return answer;
    answer = ForgetYields(connection, owner.server_id, owner.epoch);
    if (!answer.ok()) return answer;
    return connection.Run(kForgetLeaseSql, {owner.server_id, owner.epoch});
  });
  if (!done.ok()) return done;
  return ended ? Result<void>() : SayFenced(owner);
}

FenceOwner SqlFence::Owner() {
  MutexLock lock(mutex_);
  ZEZE_CHECK(owner_.epoch != 0);
  return owner_;
}

Error SqlFence::SayFenced(const FenceOwner& owner) {
  const Result<ServerRow> row = Read(owner.server_id);
  if (!row.ok()) return row.error();
  return FencedError(owner.server_id, owner.epoch,
                     {.epoch = row.value().epoch, .flush_seq = 0, .live = row.value().live});
}

Result<std::int64_t> SqlFence::RaiseTerm(const GlobalStart& start) {
  ZEZE_CHECK(start.shard >= 0);
  const SqlWords& words = dialect_.words();
  std::int64_t term = 0;
  std::optional<Error> refused;
  const Result<void> done = InTransaction("raise the term", [&](SqlConnection& connection) {
    SqlAnswer answer = HoldGuard(connection, words.lock_guard);
    if (!answer.ok()) return answer;
    std::optional<ClusterRow> cluster;
    answer = ReadCluster(connection, cluster);
    if (answer.ok()) answer = connection.Run("SELECT max(shard) FROM zeze_global");
    if (!answer.ok()) return answer;
    const Result<std::int32_t> shards =
        CheckShards(cluster, static_cast<std::int32_t>(answer.number(0, 0)), start);
    if (!shards.ok()) return Refused(shards.error(), refused);
    if (!cluster.has_value() || cluster->shards != shards.value()) {
      if (!cluster.has_value()) cluster = ClusterRow{.cluster = NewClusterId()};
      cluster->shards = shards.value();
      answer = WriteCluster(connection, words.write_cluster, *cluster);
      if (!answer.ok()) return answer;
    }
    return dialect_.RaiseTerm(connection, start, term);
  });
  if (refused.has_value()) return *refused;
  if (!done.ok()) return done.error();
  return term;
}

Result<std::vector<LiveServer>> SqlFence::ListLive() {
  const Result<SqlAnswer> answer = Query(dialect_.words().list_live, {});
  if (!answer.ok()) return answer.error();
  return LiveIn(answer.value());
}

// Where nodes do not see each other's row locks the first to commit wins, and a server that flushes
// all the time on one node would nearly always be first. So there an eviction touches the rows of
// the server by one statement that is a transaction of its own, after one that has checked the
// term.
Result<EvictOutcome> SqlFence::Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                                     std::int64_t term, const EvictUnless& unless) {
  RetryPause pause(retry_for_);
  for (;;) {
    EvictOutcome outcome = EvictOutcome::kEvicted;
    std::optional<std::string> alone;
    const Result<void> checked = InTransaction("evict", [&](SqlConnection& connection) {
      outcome = EvictOutcome::kEvicted;
      SqlAnswer answer = connection.Run(dialect_.words().hold_term, {shard, term});
      if (!answer.ok()) return answer;
      if (answer.met_rows() == 0) {
        outcome = EvictOutcome::kTermPassed;
        return answer;
      }
      // First without a lock, which a transaction that hangs may have.
      answer = LookForReprieve(connection, dialect_, server_id, epoch, shard, unless,
                               /*lock=*/false, outcome);
      if (!answer.ok() || outcome != EvictOutcome::kEvicted) return answer;
      // Only now that the term is held: a Global that was deposed ends nobody's sessions.
      answer = dialect_.EndSessions(connection, server_id, epoch);
      alone = dialect_.TakeEpochAlone(connection, server_id, epoch);
      if (!answer.ok() || alone.has_value()) return answer;
      answer = LookForReprieve(connection, dialect_, server_id, epoch, shard, unless,
                               /*lock=*/true, outcome);
      if (!answer.ok() || outcome != EvictOutcome::kEvicted) return answer;
      return dialect_.TakeEpoch(connection, server_id, epoch);
    });
    if (!checked.ok()) return checked.error();
    if (!alone.has_value() || outcome != EvictOutcome::kEvicted) return outcome;
    const Result<void> taken = TakeEpochAlone(*alone, server_id, epoch);
    if (taken.ok()) return outcome;
    // It does no harm twice, so an unknown end is a reason to repeat it too.
    const bool collided = taken.error().code() == ErrorCode::kConflict;
    const bool again = collided || taken.error().code() == ErrorCode::kUnknownOutcome;
    if (!again || !pause.Wait()) {
      if (!collided) return taken.error();
      return Error(ErrorCode::kUnavailable, taken.error().message());
    }
  }
}

Result<void> SqlFence::TakeEpochAlone(const std::string& sql, std::int32_t server_id,
                                      std::int64_t epoch) {
  {
    Result<SqlPool::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    const SqlAnswer answer = lease.value()->RunOnce(sql);
    switch (answer.failure()) {
      case SqlFailure::kNone:
        break;
      case SqlFailure::kCollision:
        return SqlError(ErrorCode::kConflict, "evict", answer.message());
      case SqlFailure::kError:
        return SqlError(ErrorCode::kUnavailable, "evict", answer.message());
      case SqlFailure::kLost:
        return SqlError(ErrorCode::kUnknownOutcome, "evict", answer.message());
    }
  }
  // Seen rather than believed: everything that follows stands on it.
  const Result<ServerRow> row = Read(server_id);
  if (!row.ok()) return SqlError(ErrorCode::kUnknownOutcome, "evict", row.error().message());
  if (row.value().epoch > epoch) return {};
  return SqlError(ErrorCode::kConflict, "evict", "another node's changes came first");
}

Result<std::map<std::int32_t, std::int64_t>> SqlFence::Wanted() {
  const FenceOwner owner = Owner();
  const Result<SqlAnswer> answer =
      Query("SELECT shard, term FROM zeze_wanted WHERE server_id = $1 AND epoch = $2",
            {owner.server_id, owner.epoch});
  if (!answer.ok()) return answer.error();
  return TermsIn(answer.value());
}

Result<void> SqlFence::Yield(std::int32_t shard, const YieldMark& mark) {
  const FenceOwner owner = Owner();
  bool fenced = false;
  Result<void> done = InTransaction("yield a shard", [&](SqlConnection& connection) {
    SqlAnswer answer =
        connection.Run(dialect_.words().hold_renewals, {owner.server_id, owner.epoch});
    fenced = answer.ok() && answer.met_rows() == 0;
    if (!answer.ok() || fenced) return answer;
    return connection.Run(dialect_.words().note_yield,
                          {owner.server_id, owner.epoch, shard, mark.number, mark.term});
  });
  if (!done.ok() || !fenced) return done;
  return SayFenced(owner);
}

Result<bool> SqlFence::Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                            std::int64_t term) {
  bool current = false;
  const Result<void> done = InTransaction("want a shard", [&](SqlConnection& connection) {
    SqlAnswer answer = connection.Run(dialect_.words().hold_term, {shard, term});
    current = answer.ok() && answer.met_rows() > 0;
    if (!current) return answer;
    return connection.Run(dialect_.words().want, {server_id, epoch, shard, term});
  });
  if (!done.ok()) return done.error();
  return current;
}

Result<void> SqlFence::Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                              std::int64_t term) {
  return InTransaction("want a shard no longer", [&](SqlConnection& connection) {
    return connection.Run(
        "DELETE FROM zeze_wanted WHERE server_id = $1 AND epoch = $2 AND shard = $3 AND term = $4",
        {server_id, epoch, shard, term});
  });
}

Result<std::vector<YieldedServer>> SqlFence::Yields(std::int32_t shard) {
  const Result<SqlAnswer> answer = Query(
      "SELECT server_id, epoch, number, term FROM zeze_yield WHERE shard = $1 ORDER BY server_id",
      {shard});
  if (!answer.ok()) return answer.error();
  std::vector<YieldedServer> yielded;
  yielded.reserve(answer.value().row_count());
  for (std::size_t row = 0; row < answer.value().row_count(); ++row) {
    yielded.push_back(
        {.server_id = static_cast<std::int32_t>(answer.value().number(row, 0)),
         .epoch = answer.value().number(row, 1),
         .mark = {.number = answer.value().number(row, 2), .term = answer.value().number(row, 3)}});
  }
  return yielded;
}

Result<void> SqlFence::LeaseOver(std::int32_t server_id, std::int64_t epoch) {
  return InTransaction("note the end of a lease", [&](SqlConnection& connection) {
    return RunEach(connection, dialect_.words().lease_over, {server_id, epoch});
  });
}

Result<std::map<std::int32_t, std::int64_t>> SqlFence::Terms() {
  const Result<SqlAnswer> answer = Query(kTermsSql, {});
  if (!answer.ok()) return answer.error();
  return TermsIn(answer.value());
}

Result<Fence::TermRow> SqlFence::ReadTerm(std::int32_t shard) {
  const Result<SqlAnswer> answer =
      Query("SELECT term, holder, secret FROM zeze_global WHERE shard = $1", {shard});
  if (!answer.ok()) return answer.error();
  if (answer.value().row_count() == 0) return TermRow{};
  return TermRow{.term = answer.value().number(0, 0),
                 .holder = answer.value().text(0, 1),
                 .secret = answer.value().text(0, 2)};
}

Result<Fence::ServerRow> SqlFence::Read(std::int32_t server_id) {
  const Result<SqlAnswer> answer = Query(
      "SELECT epoch, live, secret FROM zeze_fence WHERE server_id = $1 AND lane = 0", {server_id});
  if (!answer.ok()) return answer.error();
  if (answer.value().row_count() == 0) return ServerRow{};
  return ServerRow{.epoch = answer.value().number(0, 0),
                   .live = answer.value().number(0, 1) != 0,
                   .secret = answer.value().text(0, 2)};
}

Result<std::optional<ClusterRow>> SqlFence::Cluster() {
  const Result<SqlAnswer> answer = Query(kClusterSql, {});
  if (!answer.ok()) return answer.error();
  return ClusterIn(answer.value());
}

Result<std::map<std::string, std::int32_t>> SqlFence::TableIds() {
  const Result<SqlAnswer> answer = Query(kTableIdsSql, {});
  if (!answer.ok()) return answer.error();
  return TableIdsIn(answer.value());
}

Result<void> SqlFence::Change(const ClusterChange& change) {
  const SqlWords& words = dialect_.words();
  std::optional<Error> refused;
  const Result<void> done = InTransaction("change the cluster", [&](SqlConnection& connection) {
    SqlAnswer answer = HoldGuard(connection, words.lock_guard);
    if (!answer.ok()) return answer;
    std::optional<ClusterRow> cluster;
    answer = ReadCluster(connection, cluster);
    if (!answer.ok()) return answer;
    const Result<ClusterRow> changed = ChangedCluster(cluster, change);
    if (!changed.ok()) return Refused(changed.error(), refused);
    answer = connection.Run(words.list_live);
    if (!answer.ok()) return answer;
    const std::vector<LiveServer> others =
        ServersInTheWay(cluster, LiveIn(answer), ChangeOptions());
    if (!others.empty()) return Refused(InTheWayError(others, ChangeOptions()), refused);
    SqlNameRules rules;
    answer = dialect_.ReadNameRules(connection, rules);
    if (answer.ok()) answer = WriteCluster(connection, words.write_cluster, changed.value());
    for (const auto& [name, id] : change.tables) {
      if (!answer.ok()) return answer;
      const Result<std::string> relation = SqlRelationName(name, rules);
      if (!relation.ok()) return Refused(relation.error(), refused);
      answer = dialect_.ChangeTableId(connection, relation.value(), id);
      if (answer.ok() && answer.met_rows() == 0) return Refused(UnknownTableError(name), refused);
    }
    return answer;
  });
  return refused.has_value() ? Result<void>(*refused) : done;
}

// Every connection compares the copy (DatabaseCopy). A copy of the files put back without recovery
// does not show itself there; epochs and flush numbers show it (FlushFate::kHistoryLost). A planned
// switch-over is not a change of history.
Result<std::string> SqlFence::History() {
  const Result<SqlAnswer> answer = Query("SELECT 1", {});
  if (answer.ok()) return driver_.copy().first();
  if (answer.error().code() == ErrorCode::kFenced) return answer.error().message();
  return answer.error();
}

}  // namespace zeze
