#include "zeze/storage/postgres/postgres_fence.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_fence_rows.h"
#include "zeze/storage/postgres/postgres_flush.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/table_name.h"

namespace zeze {

using postgres_rows::ClusterIn;
using postgres_rows::CompareCluster;
using postgres_rows::FenceError;
using postgres_rows::ForgetLease;
using postgres_rows::ForgetYields;
using postgres_rows::kClusterSql;
using postgres_rows::kListLiveSql;
using postgres_rows::kTableIdsSql;
using postgres_rows::LiveIn;
using postgres_rows::LockGuard;
using postgres_rows::LockLanes;
using postgres_rows::LookForReprieve;
using postgres_rows::NoteFenced;
using postgres_rows::NoteLease;
using postgres_rows::Parameter;
using postgres_rows::PredecessorHasEnded;
using postgres_rows::RaiseEpoch;
using postgres_rows::ReadCluster;
using postgres_rows::ReadLanes;
using postgres_rows::Refused;
using postgres_rows::RequireNotFrozen;
using postgres_rows::ShareTerm;
using postgres_rows::TableIdsIn;
using postgres_rows::TermsIn;
using postgres_rows::WriteCluster;

Result<void> PostgresFence::InTransaction(std::string_view what, const Body& body) {
  RetryPause pause(retry_for_);
  for (;;) {
    Result<ConnectionPool<PostgresConnection>::Lease> lease = pool_.Take();
    if (!lease.ok()) {
      if (lease.error().code() == ErrorCode::kFenced || !pause.Wait()) return lease.error();
      continue;
    }
    PostgresConnection& connection = *lease.value();
    PostgresAnswer answer = connection.ExecuteOnce("BEGIN");
    if (answer.ok()) answer = RequireNotFrozen(connection);
    if (answer.ok()) answer = body(connection);
    const bool committing = answer.ok();
    if (committing) answer = connection.ExecuteOnce("COMMIT");
    if (answer.ok() && answer.command() == "COMMIT") return {};
    connection.RollBack();
    if (committing && answer.failure() == PostgresFailure::kLost) {
      return FenceError(ErrorCode::kUnknownOutcome, what, answer.message());
    }
    const bool again = answer.failure() == PostgresFailure::kCollision ||
                       answer.failure() == PostgresFailure::kLost;
    if (!again || !pause.Wait()) {
      return FenceError(ErrorCode::kUnavailable, what, answer.message());
    }
  }
}

Result<PostgresAnswer> PostgresFence::Query(const std::string& sql,
                                            std::span<const PostgresParameter> parameters,
                                            PostgresFormat format) {
  constexpr int kTries = 3;  // A connection from before a restart of the database is no reason.
  for (int tries = 1;; ++tries) {
    Result<ConnectionPool<PostgresConnection>::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    PostgresAnswer answer = lease.value()->Execute(sql, parameters, format);
    if (answer.ok()) return answer;
    if (answer.failure() != PostgresFailure::kLost || tries == kTries) {
      return FenceError(ErrorCode::kUnavailable, "read the fence rows", answer.message());
    }
  }
}

Result<FenceStart> PostgresFence::Start(const FenceStartOptions& options) {
  MutexLock lock(mutex_);
  ZEZE_CHECK(owner_.epoch == 0);  // Once in the life of a storage.
  FenceStart started;
  std::optional<Error> refused;
  bool collided = false;
  const Result<void> done = InTransaction("start the server", [&](PostgresConnection& connection) {
    started = {};
    PostgresAnswer answer =
        LockGuard(connection, IsExclusive(options) ? "FOR UPDATE" : "FOR SHARE");
    if (!answer.ok()) return answer;
    std::optional<ClusterRow> cluster;
    answer = CompareCluster(connection, options, cluster, refused);
    if (!answer.ok()) return answer;
    if (cluster.has_value()) started.cluster = cluster->cluster;
    // A process of the same id may hang inside a flush.
    if (collided) answer = EndPostgresSessions(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    collided = true;
    answer = connection.Execute("SELECT shard, term FROM zeze_global WHERE shard >= 0");
    if (!answer.ok()) return answer;
    started.terms = TermsIn(answer);
    answer = LockLanes(connection, options.server_id);
    if (!answer.ok()) return answer;
    if (!PredecessorHasEnded(answer, options)) {
      answer = NoteFenced(connection, options.server_id, INT64_MAX);
    }
    if (answer.ok()) answer = ForgetYields(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    answer = RaiseEpoch(connection, options, started.epoch);
    if (answer.ok() && cluster.has_value() && IsExclusive(options)) {
      cluster->alone_server = options.server_id;
      cluster->alone_epoch = started.epoch;
      answer = WriteCluster(connection, *cluster);
    }
    if (!answer.ok() || options.lease.count() == 0) return answer;
    return NoteLease(connection, options, started.epoch);
  });
  if (refused.has_value()) return *refused;
  if (!done.ok()) return done.error();
  owner_ = {.server_id = options.server_id, .epoch = started.epoch};
  flush_lane_.SetOwner(owner_);
  renew_lane_.SetOwner(owner_);
  return started;
}

Result<void> PostgresFence::Share() {
  const FenceOwner owner = Owner();
  bool fenced = false;
  Result<void> done = InTransaction("share the database", [&](PostgresConnection& connection) {
    const std::array<Parameter, 2> parameters = {Parameter::Number(owner.server_id),
                                                 Parameter::Number(owner.epoch)};
    PostgresAnswer answer = connection.Execute(
        "SELECT 1 FROM zeze_fence WHERE server_id = $1::int AND epoch = $2::bigint AND live"
        " AND lane = 0 FOR SHARE",
        parameters);
    fenced = answer.ok() && answer.row_count() == 0;
    if (!answer.ok() || fenced) return answer;
    return connection.Execute(
        "UPDATE zeze_cluster SET alone_epoch = 0 WHERE alone_server = $1::int"
        " AND alone_epoch = $2::bigint",
        parameters);
  });
  if (!done.ok() || !fenced) return done;
  return SayFenced(owner);
}

Result<std::vector<LiveServer>> PostgresFence::InTheWay(const FenceStartOptions& options) {
  const Result<std::optional<ClusterRow>> cluster = Cluster();
  if (!cluster.ok()) return cluster.error();
  const Result<std::vector<LiveServer>> live = ListLive();
  if (!live.ok()) return live.error();
  return ServersInTheWay(cluster.value(), live.value(), options);
}

Result<bool> PostgresFence::EvictSilent(const LiveServer& seen) {
  bool evicted = false;
  const Result<void> done =
      InTransaction("evict a silent server", [&](PostgresConnection& connection) {
        PostgresAnswer answer = EndPostgresSessions(connection, seen.server_id, seen.epoch);
        if (answer.ok()) answer = LockLanes(connection, seen.server_id);
        if (!answer.ok()) return answer;
        const std::array<Parameter, 3> parameters = {Parameter::Number(seen.server_id),
                                                     Parameter::Number(seen.epoch),
                                                     Parameter::Number(seen.renew_seq)};
        answer = connection.Execute(
            "UPDATE zeze_fence SET epoch = epoch + 1, live = false, changed = now()"
            " WHERE server_id = $1::int AND epoch = $2::bigint AND live AND EXISTS"
            " (SELECT 1 FROM zeze_fence renewed WHERE renewed.server_id = $1::int"
            " AND renewed.lane = 1 AND renewed.flush_seq = $3::bigint)",
            parameters);
        evicted = answer.ok() && answer.affected_rows() > 0;
        if (!evicted) return answer;
        answer = ForgetYields(connection, seen.server_id, seen.epoch);
        return answer.ok() ? ForgetLease(connection, seen.server_id, seen.epoch)
                           : std::move(answer);
      });
  if (!done.ok()) return done.error();
  return evicted;
}

Result<void> PostgresFence::Renew() {
  return renew_lane_.Renew();
}

Result<void> PostgresFence::Finish() {
  const FenceOwner owner = Owner();
  std::int64_t changed = 0;
  Result<void> done = InTransaction("end the server", [&](PostgresConnection& connection) {
    PostgresAnswer answer = LockLanes(connection, owner.server_id);
    if (!answer.ok()) return answer;
    const std::array<Parameter, 2> parameters = {Parameter::Number(owner.server_id),
                                                 Parameter::Number(owner.epoch)};
    answer = connection.Execute(
        "UPDATE zeze_fence SET live = false, changed = now()"
        " WHERE server_id = $1::int AND epoch = $2::bigint",
        parameters);
    if (!answer.ok()) return answer;
    changed = answer.affected_rows();
    // Who was fenced meanwhile stays listed, and so does its lease.
    if (changed == 0) return answer;
    answer = ForgetYields(connection, owner.server_id, owner.epoch);
    return answer.ok() ? ForgetLease(connection, owner.server_id, owner.epoch) : std::move(answer);
  });
  if (!done.ok()) return done;
  return changed > 0 ? Result<void>() : SayFenced(owner);
}

FenceOwner PostgresFence::Owner() {
  MutexLock lock(mutex_);
  ZEZE_CHECK(owner_.epoch != 0);
  return owner_;
}

Error PostgresFence::SayFenced(const FenceOwner& owner) {
  const Result<ServerRow> row = Read(owner.server_id);
  if (!row.ok()) return row.error();
  return FencedError(owner.server_id, owner.epoch,
                     {.epoch = row.value().epoch, .flush_seq = 0, .live = row.value().live});
}

Result<std::int64_t> PostgresFence::RaiseTerm(const GlobalStart& start) {
  ZEZE_CHECK(start.shard >= 0);
  std::int64_t term = 0;
  std::optional<Error> refused;
  const Result<void> done = InTransaction("raise the term", [&](PostgresConnection& connection) {
    PostgresAnswer answer = LockGuard(connection, "FOR UPDATE");
    if (!answer.ok()) return answer;
    std::optional<ClusterRow> cluster;
    answer = ReadCluster(connection, cluster);
    if (!answer.ok()) return answer;
    answer = connection.Execute("SELECT max(shard) FROM zeze_global");
    if (!answer.ok()) return answer;
    const Result<std::int32_t> shards =
        CheckShards(cluster, static_cast<std::int32_t>(answer.number(0, 0)), start);
    if (!shards.ok()) return Refused(shards.error(), refused);
    if (!cluster.has_value() || cluster->shards != shards.value()) {
      if (!cluster.has_value()) cluster = ClusterRow{.cluster = NewClusterId()};
      cluster->shards = shards.value();
      answer = WriteCluster(connection, *cluster);
      if (!answer.ok()) return answer;
    }
    const std::array<Parameter, 3> parameters = {Parameter::Number(start.shard),
                                                 Parameter::Text(start.holder),
                                                 Parameter::Bytes(start.secret)};
    // A term that is the holder's already stays: the call before has done it, and nobody heard.
    answer = connection.Execute(
        "INSERT INTO zeze_global AS old (shard, term, holder, secret)"
        " VALUES ($1::int, 1, $2::text, $3::bytea)"
        " ON CONFLICT (shard) DO UPDATE SET holder = excluded.holder, secret = excluded.secret,"
        " term = old.term + CASE WHEN old.holder = excluded.holder THEN 0 ELSE 1 END"
        " RETURNING term",
        parameters);
    if (answer.ok()) term = answer.number(0, 0);
    return answer;
  });
  if (refused.has_value()) return *refused;
  if (!done.ok()) return done.error();
  return term;
}

Result<std::vector<LiveServer>> PostgresFence::ListLive() {
  Result<PostgresAnswer> answer = Query(kListLiveSql, {});
  if (!answer.ok()) return answer.error();
  return LiveIn(answer.value());
}

Result<EvictOutcome> PostgresFence::Evict(std::int32_t server_id, std::int64_t epoch,
                                          std::int32_t shard, std::int64_t term,
                                          const EvictUnless& unless) {
  EvictOutcome outcome = EvictOutcome::kEvicted;
  const Result<void> done = InTransaction("evict", [&](PostgresConnection& connection) {
    outcome = EvictOutcome::kEvicted;
    PostgresAnswer answer = ShareTerm(connection, shard, term);
    if (!answer.ok()) return answer;
    if (answer.row_count() == 0) {
      outcome = EvictOutcome::kTermPassed;
      return answer;
    }
    // First without a lock, which a transaction that hangs may have.
    answer = LookForReprieve(connection, ReadLanes(connection, server_id, ""), server_id, epoch,
                             shard, unless, outcome);
    if (!answer.ok() || outcome != EvictOutcome::kEvicted) return answer;
    // Only now that the term is held: who was deposed ends nobody's sessions.
    answer = EndPostgresSessions(connection, server_id, epoch);
    if (!answer.ok()) return answer;
    answer = LookForReprieve(connection, LockLanes(connection, server_id), server_id, epoch, shard,
                             unless, outcome);
    if (!answer.ok() || outcome != EvictOutcome::kEvicted) return answer;
    answer = NoteFenced(connection, server_id, epoch);
    if (answer.ok()) answer = ForgetYields(connection, server_id, epoch);
    if (!answer.ok()) return answer;
    const std::array<Parameter, 3> parameters = {
        Parameter::Number(server_id), Parameter::Number(epoch + 1),
        Parameter::Number(static_cast<std::int64_t>(kFenceLaneCount) - 1)};
    return connection.Execute(
        "INSERT INTO zeze_fence AS old (server_id, lane, epoch, flush_seq, live, holder, secret)"
        " SELECT $1::int, lane, $2::bigint, 0, false, '', ''"
        " FROM generate_series(0, $3::int) AS lane"
        " ON CONFLICT (server_id, lane) DO UPDATE SET epoch = excluded.epoch, live = false,"
        " changed = now() WHERE old.epoch < excluded.epoch",
        parameters);
  });
  if (!done.ok()) return done.error();
  return outcome;
}

Result<std::map<std::int32_t, std::int64_t>> PostgresFence::Wanted() {
  const FenceOwner owner = Owner();
  const std::array<Parameter, 2> parameters = {Parameter::Number(owner.server_id),
                                               Parameter::Number(owner.epoch)};
  Result<PostgresAnswer> answer =
      Query("SELECT shard, term FROM zeze_wanted WHERE server_id = $1::int AND epoch = $2::bigint",
            parameters);
  if (!answer.ok()) return answer.error();
  return TermsIn(answer.value());
}

Result<void> PostgresFence::Yield(std::int32_t shard, const YieldMark& mark) {
  const FenceOwner owner = Owner();
  bool fenced = false;
  Result<void> done = InTransaction("yield a shard", [&](PostgresConnection& connection) {
    const std::array<Parameter, 5> parameters = {
        Parameter::Number(owner.server_id), Parameter::Number(owner.epoch),
        Parameter::Number(shard), Parameter::Number(mark.number), Parameter::Number(mark.term)};
    PostgresAnswer answer = connection.Execute(
        "SELECT 1 FROM zeze_fence WHERE server_id = $1::int AND epoch = $2::bigint AND live"
        " AND lane = 1 FOR UPDATE",
        std::span(parameters).first(2));
    fenced = answer.ok() && answer.row_count() == 0;
    if (!answer.ok() || fenced) return answer;
    return connection.Execute(
        "INSERT INTO zeze_yield AS old (server_id, epoch, shard, number, term)"
        " VALUES ($1::int, $2::bigint, $3::int, $4::bigint, $5::bigint)"
        " ON CONFLICT (server_id, epoch, shard) DO UPDATE SET number = excluded.number,"
        " term = excluded.term WHERE old.number < excluded.number",
        parameters);
  });
  if (!done.ok() || !fenced) return done;
  return SayFenced(owner);
}

Result<bool> PostgresFence::Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                                 std::int64_t term) {
  bool current = false;
  const Result<void> done = InTransaction("want a shard", [&](PostgresConnection& connection) {
    PostgresAnswer answer = ShareTerm(connection, shard, term);
    current = answer.ok() && answer.row_count() > 0;
    if (!current) return answer;
    const std::array<Parameter, 4> parameters = {Parameter::Number(server_id),
                                                 Parameter::Number(epoch), Parameter::Number(shard),
                                                 Parameter::Number(term)};
    return connection.Execute(
        "INSERT INTO zeze_wanted (server_id, epoch, shard, term)"
        " SELECT server_id, epoch, $3::int, $4::bigint FROM zeze_fence"
        " WHERE server_id = $1::int AND epoch = $2::bigint AND live AND lane = 0"
        " ON CONFLICT (server_id, epoch, shard) DO UPDATE SET term = excluded.term",
        parameters);
  });
  if (!done.ok()) return done.error();
  return current;
}

Result<void> PostgresFence::Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                                   std::int64_t term) {
  return InTransaction("want a shard no longer", [&](PostgresConnection& connection) {
    const std::array<Parameter, 4> parameters = {Parameter::Number(server_id),
                                                 Parameter::Number(epoch), Parameter::Number(shard),
                                                 Parameter::Number(term)};
    return connection.Execute(
        "DELETE FROM zeze_wanted WHERE server_id = $1::int AND epoch = $2::bigint"
        " AND shard = $3::int AND term = $4::bigint",
        parameters);
  });
}

Result<std::vector<YieldedServer>> PostgresFence::Yields(std::int32_t shard) {
  const std::array<Parameter, 1> parameters = {Parameter::Number(shard)};
  Result<PostgresAnswer> answer = Query(
      "SELECT server_id, epoch, number, term FROM zeze_yield WHERE shard = $1::int"
      " ORDER BY server_id",
      parameters);
  if (!answer.ok()) return answer.error();
  std::vector<YieldedServer> yielded;
  yielded.reserve(static_cast<std::size_t>(answer.value().row_count()));
  for (int row = 0; row < answer.value().row_count(); ++row) {
    yielded.push_back(
        {.server_id = static_cast<std::int32_t>(answer.value().number(row, 0)),
         .epoch = answer.value().number(row, 1),
         .mark = {.number = answer.value().number(row, 2), .term = answer.value().number(row, 3)}});
  }
  return yielded;
}

Result<void> PostgresFence::LeaseOver(std::int32_t server_id, std::int64_t epoch) {
  return InTransaction("note the end of a lease", [&](PostgresConnection& connection) {
    const std::array<Parameter, 2> parameters = {Parameter::Number(server_id),
                                                 Parameter::Number(epoch)};
    PostgresAnswer answer = connection.Execute(
        "DELETE FROM zeze_fenced WHERE server_id = $1::int AND epoch = $2::bigint", parameters);
    return answer.ok() ? ForgetLease(connection, server_id, epoch) : std::move(answer);
  });
}

Result<std::map<std::int32_t, std::int64_t>> PostgresFence::Terms() {
  Result<PostgresAnswer> answer = Query("SELECT shard, term FROM zeze_global WHERE shard >= 0", {});
  if (!answer.ok()) return answer.error();
  return TermsIn(answer.value());
}

Result<Fence::TermRow> PostgresFence::ReadTerm(std::int32_t shard) {
  const std::array<Parameter, 1> parameters = {Parameter::Number(shard)};
  Result<PostgresAnswer> answer =
      Query("SELECT term::text, holder, secret FROM zeze_global WHERE shard = $1::int", parameters,
            PostgresFormat::kBinary);
  if (!answer.ok()) return answer.error();
  if (answer.value().row_count() == 0) return TermRow{};
  return TermRow{.term = answer.value().number(0, 0),
                 .holder = std::string(answer.value().bytes(0, 1)),
                 .secret = std::string(answer.value().bytes(0, 2))};
}

Result<Fence::ServerRow> PostgresFence::Read(std::int32_t server_id) {
  const std::array<Parameter, 1> parameters = {Parameter::Number(server_id)};
  Result<PostgresAnswer> answer = Query(
      "SELECT epoch::text, live::int::text, secret FROM zeze_fence"
      " WHERE server_id = $1::int AND lane = 0",
      parameters, PostgresFormat::kBinary);
  if (!answer.ok()) return answer.error();
  if (answer.value().row_count() == 0) return ServerRow{};
  return ServerRow{.epoch = answer.value().number(0, 0),
                   .live = answer.value().number(0, 1) != 0,
                   .secret = std::string(answer.value().bytes(0, 2))};
}

Result<std::optional<ClusterRow>> PostgresFence::Cluster() {
  Result<PostgresAnswer> answer = Query(kClusterSql, {}, PostgresFormat::kBinary);
  if (!answer.ok()) return answer.error();
  return ClusterIn(answer.value());
}

Result<std::map<std::string, std::int32_t>> PostgresFence::TableIds() {
  Result<PostgresAnswer> answer = Query(kTableIdsSql, {});
  if (!answer.ok()) return answer.error();
  return TableIdsIn(answer.value());
}

Result<void> PostgresFence::Change(const ClusterChange& change) {
  std::optional<Error> refused;
  const Result<void> done =
      InTransaction("change the cluster", [&](PostgresConnection& connection) {
        PostgresAnswer answer = LockGuard(connection, "FOR UPDATE");
        if (!answer.ok()) return answer;
        std::optional<ClusterRow> cluster;
        answer = ReadCluster(connection, cluster);
        if (!answer.ok()) return answer;
        const Result<ClusterRow> changed = ChangedCluster(cluster, change);
        if (!changed.ok()) return Refused(changed.error(), refused);
        answer = connection.Execute(kListLiveSql);
        if (!answer.ok()) return answer;
        const std::vector<LiveServer> others =
            ServersInTheWay(cluster, LiveIn(answer), ChangeOptions());
        if (!others.empty()) return Refused(InTheWayError(others, ChangeOptions()), refused);
        answer = WriteCluster(connection, changed.value());
        for (const auto& [name, id] : change.tables) {
          if (!answer.ok()) return answer;
          const Result<std::string> relation = SqlRelationName(name, kPostgresNames);
          if (!relation.ok()) return Refused(relation.error(), refused);
          const std::array<Parameter, 2> parameters = {Parameter::Text(relation.value()),
                                                       Parameter::Number(id.value_or(0))};
          answer = id.has_value()
                       ? connection.Execute(
                             "UPDATE zeze_table SET id = $2::int WHERE name = $1::text", parameters)
                       : connection.Execute("DELETE FROM zeze_table WHERE name = $1::text",
                                            std::span(parameters).first(1));
          if (answer.ok() && answer.affected_rows() == 0) {
            return Refused(UnknownTableError(name), refused);
          }
        }
        return answer;
      });
  return refused.has_value() ? Result<void>(*refused) : done;
}

// Every connection compares the copy (DatabaseCopy): the system identifier is that of the data
// directory (another one: another cluster, or a restored dump), the timeline rises with every
// promotion of a replica and every point-in-time recovery. A copy of the files put back without
// recovery changes neither; epochs and flush numbers show that (FlushFate::kHistoryLost). A planned
// switch-over is not a change of history.
Result<std::string> PostgresFence::History() {
  const Result<PostgresAnswer> answer = Query("SELECT 1", {});
  if (answer.ok()) return copy_.first();
  if (answer.error().code() == ErrorCode::kFenced) return answer.error().message();
  return answer.error();
}

}  // namespace zeze
