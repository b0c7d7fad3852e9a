#include "zeze/storage/postgres/postgres_fence.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_flush.h"
#include "zeze/storage/sql/connection_pool.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/retry_pause.h"

namespace zeze {
namespace {

using Parameter = PostgresParameter;

Error FenceError(ErrorCode code, std::string_view what, std::string_view message) {
  return {code, fmt::format("cannot {}: {}", what, message)};
}

std::map<std::int32_t, std::int64_t> TermsIn(const PostgresAnswer& answer) {
  std::map<std::int32_t, std::int64_t> terms;
  for (int row = 0; row < answer.row_count(); ++row) {
    terms.emplace(static_cast<std::int32_t>(answer.number(row, 0)), answer.number(row, 1));
  }
  return terms;
}

PostgresAnswer LockGuard(PostgresConnection& connection, std::string_view mode) {
  PostgresAnswer answer =
      connection.Execute(fmt::format("SELECT 1 FROM zeze_global WHERE shard = -1 {}", mode));
  if (answer.ok() && answer.row_count() == 0) {
    return {PostgresFailure::kError, "",
            "the row of shard -1 is missing in zeze_global; open the storage again to restore it"};
  }
  return answer;
}

// The rows of all lanes in one order, so that two of us never wait for each other.
PostgresAnswer LockLanes(PostgresConnection& connection, std::int32_t server_id) {
  const std::array<Parameter, 1> parameters = {Parameter::Number(server_id)};
  return connection.Execute(
      "SELECT epoch FROM zeze_fence WHERE server_id = $1::int ORDER BY lane FOR UPDATE",
      parameters);
}

// Notes the process that loses its epoch, up to `epoch_max`, if it was live.
PostgresAnswer NoteFenced(PostgresConnection& connection, std::int32_t server_id,
                          std::int64_t epoch_max) {
  const std::array<Parameter, 2> parameters = {Parameter::Number(server_id),
                                               Parameter::Number(epoch_max)};
  return connection.Execute(
      "INSERT INTO zeze_fenced (server_id, epoch) SELECT server_id, epoch FROM zeze_fence"
      " WHERE server_id = $1::int AND lane = 0 AND live AND epoch <= $2::bigint"
      " ON CONFLICT DO NOTHING",
      parameters);
}

PostgresAnswer RaiseEpoch(PostgresConnection& connection, const FenceStartOptions& options,
                          std::int64_t& epoch) {
  const std::array<Parameter, 3> parameters = {
      Parameter::Number(options.server_id), Parameter::Text(options.holder),
      Parameter::Number(static_cast<std::int64_t>(kFenceLaneCount) - 1)};
  PostgresAnswer answer = connection.Execute(
      "INSERT INTO zeze_fence AS old (server_id, lane, epoch, flush_seq, live, holder)"
      " SELECT $1::int, lane, 1, 0, true, $2::text FROM generate_series(0, $3::int) AS lane"
      " ON CONFLICT (server_id, lane) DO UPDATE SET epoch = old.epoch + 1, flush_seq = 0,"
      " live = true, holder = excluded.holder, changed = now() RETURNING epoch",
      parameters);
  if (!answer.ok()) return answer;
  epoch = 0;
  for (int row = 0; row < answer.row_count(); ++row) {
    epoch = std::max(epoch, answer.number(row, 0));
  }
  // They differ only if a lane is new to this database.
  const std::array<Parameter, 2> level = {Parameter::Number(options.server_id),
                                          Parameter::Number(epoch)};
  return connection.Execute(
      "UPDATE zeze_fence SET epoch = $2::bigint WHERE server_id = $1::int AND epoch <> $2::bigint",
      level);
}

PostgresAnswer NoteLease(PostgresConnection& connection, const FenceStartOptions& options,
                         std::int64_t epoch) {
  const std::array<Parameter, 3> parameters = {Parameter::Number(options.server_id),
                                               Parameter::Number(epoch),
                                               Parameter::Number(options.lease.count())};
  return connection.Execute(
      "INSERT INTO zeze_lease (server_id, epoch, lease_ms) VALUES ($1::int, $2::bigint, $3::bigint)"
      " ON CONFLICT (server_id, epoch) DO UPDATE SET lease_ms = excluded.lease_ms",
      parameters);
}

PostgresAnswer ForgetLease(PostgresConnection& connection, std::int32_t server_id,
                           std::int64_t epoch) {
  const std::array<Parameter, 2> parameters = {Parameter::Number(server_id),
                                               Parameter::Number(epoch)};
  return connection.Execute(
      "DELETE FROM zeze_lease WHERE server_id = $1::int AND epoch = $2::bigint", parameters);
}

}  // namespace

Result<void> PostgresFence::InTransaction(std::string_view what, const Body& body) {
  RetryPause pause(retry_for_);
  for (;;) {
    Result<ConnectionPool<PostgresConnection>::Lease> lease = pool_.Take();
    if (!lease.ok()) {
      if (!pause.Wait()) return lease.error();
      continue;
    }
    PostgresConnection& connection = *lease.value();
    PostgresAnswer answer = connection.ExecuteOnce("BEGIN");
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
                                            std::span<const PostgresParameter> parameters) {
  constexpr int kTries = 3;  // A connection from before a restart of the database is no reason.
  for (int tries = 1;; ++tries) {
    Result<ConnectionPool<PostgresConnection>::Lease> lease = pool_.Take();
    if (!lease.ok()) return lease.error();
    PostgresAnswer answer = lease.value()->Execute(sql, parameters);
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
  bool collided = false;
  const Result<void> done = InTransaction("start the server", [&](PostgresConnection& connection) {
    started = {};
    PostgresAnswer answer = LockGuard(connection, "FOR SHARE");
    if (!answer.ok()) return answer;
    // A process of the same id may hang inside a flush.
    if (collided) answer = EndPostgresSessions(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    collided = true;
    answer = connection.Execute("SELECT shard, term FROM zeze_global WHERE shard >= 0");
    if (!answer.ok()) return answer;
    started.terms = TermsIn(answer);
    answer = LockLanes(connection, options.server_id);
    if (!answer.ok()) return answer;
    answer = NoteFenced(connection, options.server_id, INT64_MAX);
    if (!answer.ok()) return answer;
    answer = RaiseEpoch(connection, options, started.epoch);
    if (!answer.ok() || options.lease.count() == 0) return answer;
    return NoteLease(connection, options, started.epoch);
  });
  if (!done.ok()) return done.error();
  owner_ = {.server_id = options.server_id, .epoch = started.epoch};
  flush_lane_.SetOwner(owner_);
  renew_lane_.SetOwner(owner_);
  return started;
}

Result<void> PostgresFence::Renew() {
  return renew_lane_.Flush({});
}

Result<void> PostgresFence::Finish() {
  MutexLock lock(mutex_);
  const FenceOwner owner = owner_;
  ZEZE_CHECK(owner.epoch != 0);
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
    return changed > 0 ? ForgetLease(connection, owner.server_id, owner.epoch) : std::move(answer);
  });
  if (!done.ok()) return done;
  if (changed > 0) return {};
  const Result<ServerRow> row = Read(owner.server_id);
  if (!row.ok()) return row.error();
  return FencedError(owner.server_id, owner.epoch,
                     {.epoch = row.value().epoch, .flush_seq = 0, .live = row.value().live});
}

Result<std::int64_t> PostgresFence::RaiseTerm(std::int32_t shard, const std::string& holder) {
  ZEZE_CHECK(shard >= 0);
  std::int64_t term = 0;
  const Result<void> done = InTransaction("raise the term", [&](PostgresConnection& connection) {
    PostgresAnswer answer = LockGuard(connection, "FOR UPDATE");
    if (!answer.ok()) return answer;
    const std::array<Parameter, 2> parameters = {Parameter::Number(shard), Parameter::Text(holder)};
    // A term that is the holder's already stays: the call before has done it, and nobody heard.
    answer = connection.Execute(
        "INSERT INTO zeze_global AS old (shard, term, holder) VALUES ($1::int, 1, $2::text)"
        " ON CONFLICT (shard) DO UPDATE SET holder = excluded.holder,"
        " term = old.term + CASE WHEN old.holder = excluded.holder THEN 0 ELSE 1 END"
        " RETURNING term",
        parameters);
    if (answer.ok()) term = answer.number(0, 0);
    return answer;
  });
  if (!done.ok()) return done.error();
  return term;
}

Result<std::vector<LiveServer>> PostgresFence::ListLive() {
  Result<PostgresAnswer> answer = Query(
      "SELECT server_id, epoch, '', 1, coalesce(lease_ms, 0)"
      " FROM zeze_fenced LEFT JOIN zeze_lease USING (server_id, epoch) UNION ALL"
      " SELECT server_id, epoch, holder, 0, coalesce(lease_ms, 0)"
      " FROM zeze_fence LEFT JOIN zeze_lease USING (server_id, epoch) WHERE lane = 0 AND live"
      " ORDER BY 1, 2",
      {});
  if (!answer.ok()) return answer.error();
  std::vector<LiveServer> live;
  live.reserve(static_cast<std::size_t>(answer.value().row_count()));
  for (int row = 0; row < answer.value().row_count(); ++row) {
    live.push_back({.server_id = static_cast<std::int32_t>(answer.value().number(row, 0)),
                    .epoch = answer.value().number(row, 1),
                    .holder = std::string(answer.value().bytes(row, 2)),
                    .fenced = answer.value().number(row, 3) != 0,
                    .lease = std::chrono::milliseconds(answer.value().number(row, 4))});
  }
  return live;
}

Result<EvictOutcome> PostgresFence::Evict(std::int32_t server_id, std::int64_t epoch,
                                          std::int32_t shard, std::int64_t term) {
  EvictOutcome outcome = EvictOutcome::kEvicted;
  const Result<void> done = InTransaction("evict", [&](PostgresConnection& connection) {
    outcome = EvictOutcome::kEvicted;
    const std::array<Parameter, 2> shard_term = {Parameter::Number(shard), Parameter::Number(term)};
    PostgresAnswer answer = connection.Execute(
        "SELECT 1 FROM zeze_global WHERE shard = $1::int AND term = $2::bigint FOR SHARE",
        shard_term);
    if (!answer.ok()) return answer;
    if (answer.row_count() == 0) {
      outcome = EvictOutcome::kTermPassed;
      return answer;
    }
    // Only now that the term is held: who was deposed ends nobody's sessions.
    answer = EndPostgresSessions(connection, server_id, epoch);
    if (!answer.ok()) return answer;
    answer = LockLanes(connection, server_id);
    if (!answer.ok()) return answer;
    answer = NoteFenced(connection, server_id, epoch);
    if (!answer.ok()) return answer;
    const std::array<Parameter, 3> parameters = {
        Parameter::Number(server_id), Parameter::Number(epoch + 1),
        Parameter::Number(static_cast<std::int64_t>(kFenceLaneCount) - 1)};
    return connection.Execute(
        "INSERT INTO zeze_fence AS old (server_id, lane, epoch, flush_seq, live, holder)"
        " SELECT $1::int, lane, $2::bigint, 0, false, '' FROM generate_series(0, $3::int) AS lane"
        " ON CONFLICT (server_id, lane) DO UPDATE SET epoch = excluded.epoch, live = false,"
        " changed = now() WHERE old.epoch < excluded.epoch",
        parameters);
  });
  if (!done.ok()) return done.error();
  return outcome;
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

Result<Fence::ServerRow> PostgresFence::Read(std::int32_t server_id) {
  const std::array<Parameter, 1> parameters = {Parameter::Number(server_id)};
  Result<PostgresAnswer> answer = Query(
      "SELECT epoch, live::int FROM zeze_fence WHERE server_id = $1::int AND lane = 0", parameters);
  if (!answer.ok()) return answer.error();
  if (answer.value().row_count() == 0) return ServerRow{};
  return ServerRow{.epoch = answer.value().number(0, 0), .live = answer.value().number(0, 1) != 0};
}

// The system identifier is that of the data directory (another one: another cluster, or a restored
// dump). The timeline rises with every promotion of a replica and every point-in-time recovery. A
// copy of the files put back without recovery changes neither; epochs and flush numbers show that
// (FlushFate::kHistoryLost).
Result<std::string> PostgresFence::History() {
  Result<PostgresAnswer> answer = Query(
      "SELECT (SELECT system_identifier FROM pg_control_system())::text || ' timeline ' ||"
      " substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)",
      {});
  if (!answer.ok()) return answer.error();
  return "postgresql " + std::string(answer.value().bytes(0, 0));
}

}  // namespace zeze
