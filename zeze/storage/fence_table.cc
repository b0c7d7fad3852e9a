#include "zeze/storage/fence_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"

namespace zeze {

FlushFate JudgeFlush(const FenceLaneRow& row, std::int64_t epoch, std::int64_t seq) {
  ZEZE_CHECK(seq > 0);
  if (row.epoch > epoch) return FlushFate::kFenced;
  // An epoch that was given is never taken back but by a backup that is put in place.
  if (row.epoch < epoch) return FlushFate::kHistoryLost;
  if (row.flush_seq == seq) return FlushFate::kWritten;
  if (row.flush_seq != seq - 1) return FlushFate::kHistoryLost;
  return row.live ? FlushFate::kNotWritten : FlushFate::kFenced;
}

Error FencedError(std::int32_t server_id, std::int64_t epoch, const FenceLaneRow& row) {
  std::string cause;
  if (row.epoch > epoch && row.live) {
    cause = fmt::format(
        "another process has started with the same server id: {}. If both are to run, give one of "
        "them another serverId",
        row.holder.empty() ? "one that does not say who it is" : row.holder);
  } else if (row.epoch > epoch) {
    cause = "it was evicted, or a newer process with the same server id has come and gone";
  } else if (row.epoch == epoch && !row.live) {
    cause = "it has said that it ends";
  } else {
    cause =
        "the database has lost what it acknowledged before (restored from a backup, or failed "
        "over to a replica that was behind)";
  }
  return {ErrorCode::kFenced,
          fmt::format("server {} of epoch {} may not write any more: {}. The database shows epoch "
                      "{}, flush {}, {}. Discard everything in memory and end the process.",
                      server_id, epoch, cause, row.epoch, row.flush_seq,
                      row.live ? "live" : "not live")};
}

bool HasEnded(const std::string& incarnation, const FenceStartOptions& options) {
  return !incarnation.empty() &&
         std::find(options.ended.begin(), options.ended.end(), incarnation) != options.ended.end();
}

bool Saves(const EvictUnless& unless, const YieldMark& mark) {
  return unless.yielded_since.has_value() && mark.number > unless.yielded_since->number &&
         mark.term >= unless.yielded_since->term;
}

Result<FenceStart> FenceTable::Start(const FenceStartOptions& options) {
  if (Result<void> fits = CheckCluster(cluster_, options); !fits.ok()) return fits.error();
  for (const StoredTable& table : options.tables) {
    Result<void> same = CheckTableId(table_ids_, table.name, table);
    if (!same.ok()) return same.error();
  }
  const std::vector<LiveServer> others = InTheWay(options);
  if (!others.empty()) return InTheWayError(others, options);
  for (const StoredTable& table : options.tables) table_ids_.emplace(table.name, table.id);
  if (options.shards.has_value()) {
    if (!cluster_.has_value()) cluster_ = FirstClusterRow(options);
    if (cluster_->shards == 0) cluster_->shards = *options.shards;
  }
  Server& server = servers_[options.server_id];
  LoseEpoch(server, HasEnded(server.incarnation, options));
  server.epoch += 1;
  server.live = true;
  server.holder = options.holder;
  server.secret = options.secret;
  server.incarnation = options.incarnation;
  server.lease = options.lease;
  server.flush_seq = {};
  if (IsExclusive(options) && cluster_.has_value()) {
    cluster_->alone_server = options.server_id;
    cluster_->alone_epoch = server.epoch;
  }
  return FenceStart{.epoch = server.epoch,
                    .cluster = cluster_.has_value() ? cluster_->cluster : std::string(),
                    .terms = terms_};
}

FenceTable::Server* FenceTable::FindLive(std::int32_t server_id, std::int64_t epoch) {
  const auto it = servers_.find(server_id);
  const bool live = it != servers_.end() && it->second.epoch == epoch && it->second.live;
  return live ? &it->second : nullptr;
}

bool FenceTable::IsTerm(std::int32_t shard, std::int64_t term) const {
  const auto current = terms_.find(shard);
  return current != terms_.end() && current->second == term;
}

void FenceTable::LoseEpoch(Server& server, bool over) {
  if (server.live && !over) {
    server.fenced.emplace(server.epoch,
                          FencedEpoch{.lease = server.lease, .renew_seq = server.renew_seq()});
  }
  server.live = false;
  server.wanted.clear();
  server.yields.clear();
}

bool FenceTable::Share(std::int32_t server_id, std::int64_t epoch) {
  if (FindLive(server_id, epoch) == nullptr) return false;
  if (cluster_.has_value() && cluster_->alone_server == server_id &&
      cluster_->alone_epoch == epoch) {
    cluster_->alone_epoch = 0;
  }
  return true;
}

std::vector<LiveServer> FenceTable::InTheWay(const FenceStartOptions& options) const {
  return ServersInTheWay(cluster_, ListLive(), options);
}

bool FenceTable::EvictSilent(const LiveServer& seen) {
  Server* server = FindLive(seen.server_id, seen.epoch);
  if (server == nullptr || server->renew_seq() != seen.renew_seq) return false;
  LoseEpoch(*server, true);
  server->epoch += 1;
  return true;
}

Result<void> FenceTable::Change(const ClusterChange& change) {
  Result<ClusterRow> changed = ChangedCluster(cluster_, change);
  if (!changed.ok()) return changed.error();
  const FenceStartOptions options = ChangeOptions();
  const std::vector<LiveServer> others = InTheWay(options);
  if (!others.empty()) return InTheWayError(others, options);
  for (const auto& [name, id] : change.tables) {
    if (!table_ids_.contains(name)) return UnknownTableError(name);
  }
  cluster_ = std::move(changed).value();
  for (const auto& [name, id] : change.tables) {
    if (id.has_value()) {
      table_ids_[name] = *id;
    } else {
      table_ids_.erase(name);
    }
  }
  return {};
}

bool FenceTable::Finish(std::int32_t server_id, std::int64_t epoch) {
  auto it = servers_.find(server_id);
  if (it == servers_.end() || it->second.epoch != epoch) return false;
  LoseEpoch(it->second, true);
  return true;
}

std::int64_t FenceTable::RaiseTerm(std::int32_t shard) {
  return ++terms_[shard];
}

Fence::TermRow FenceTable::ReadTerm(std::int32_t shard) const {
  const auto term = terms_.find(shard);
  if (term == terms_.end()) return {};
  const auto holder = term_holders_.find(shard);
  if (holder == term_holders_.end()) return {.term = term->second};
  return {.term = term->second, .holder = holder->second.holder, .secret = holder->second.secret};
}

Result<void> FenceTable::RaiseTermFrom(const GlobalStart& start, std::int64_t expected) {
  const std::int32_t shard_max = terms_.empty() ? -1 : terms_.rbegin()->first;
  const Result<std::int32_t> shards = CheckShards(cluster_, shard_max, start);
  if (!shards.ok()) return shards.error();
  if (ReadTerm(start.shard).term != expected) {
    return Error(ErrorCode::kConflict, "somebody else raised the term");
  }
  if (!cluster_.has_value()) cluster_ = ClusterRow{.cluster = NewClusterId()};
  cluster_->shards = shards.value();
  terms_[start.shard] = expected + 1;
  term_holders_[start.shard] = start;
  return {};
}

std::vector<LiveServer> FenceTable::ListLive() const {
  std::vector<LiveServer> live;
  for (const auto& [server_id, server] : servers_) {
    for (const auto& [epoch, fenced] : server.fenced) {
      live.push_back({.server_id = server_id,
                      .epoch = epoch,
                      .holder = {},
                      .fenced = true,
                      .lease = fenced.lease,
                      .renew_seq = fenced.renew_seq});
    }
    if (!server.live) continue;
    live.push_back({.server_id = server_id,
                    .epoch = server.epoch,
                    .holder = server.holder,
                    .lease = server.lease,
                    .renew_seq = server.renew_seq()});
  }
  return live;
}

EvictOutcome FenceTable::Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                               std::int64_t term, const EvictUnless& unless) {
  if (!IsTerm(shard, term)) return EvictOutcome::kTermPassed;
  Server& server = servers_[server_id];
  if (server.epoch > epoch) return EvictOutcome::kEvicted;
  if (server.epoch == epoch && server.live) {
    const auto mark = server.yields.find(shard);
    if (mark != server.yields.end() && Saves(unless, mark->second)) return EvictOutcome::kYielded;
    if (unless.renewed_since.has_value() && *unless.renewed_since != server.renew_seq()) {
      return EvictOutcome::kRenewed;
    }
  }
  LoseEpoch(server, false);
  server.epoch = epoch + 1;
  return EvictOutcome::kEvicted;
}

std::map<std::int32_t, std::int64_t> FenceTable::Wanted(std::int32_t server_id,
                                                        std::int64_t epoch) const {
  const auto it = servers_.find(server_id);
  if (it == servers_.end() || it->second.epoch != epoch) return {};
  return it->second.wanted;
}

bool FenceTable::Yield(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                       const YieldMark& mark) {
  Server* server = FindLive(server_id, epoch);
  if (server == nullptr) return false;
  YieldMark& last = server->yields[shard];
  if (last.number < mark.number) last = mark;
  return true;
}

bool FenceTable::Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                      std::int64_t term) {
  if (!IsTerm(shard, term)) return false;
  if (Server* server = FindLive(server_id, epoch)) server->wanted[shard] = term;
  return true;
}

void FenceTable::Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                        std::int64_t term) {
  Server* server = FindLive(server_id, epoch);
  if (server == nullptr) return;
  const auto wanted = server->wanted.find(shard);
  if (wanted != server->wanted.end() && wanted->second == term) server->wanted.erase(wanted);
}

std::vector<YieldedServer> FenceTable::Yields(std::int32_t shard) const {
  std::vector<YieldedServer> yielded;
  for (const auto& [server_id, server] : servers_) {
    const auto mark = server.yields.find(shard);
    if (mark == server.yields.end()) continue;
    yielded.push_back({.server_id = server_id, .epoch = server.epoch, .mark = mark->second});
  }
  return yielded;
}

void FenceTable::LeaseOver(std::int32_t server_id, std::int64_t epoch) {
  const auto at = servers_.find(server_id);
  if (at != servers_.end()) at->second.fenced.erase(epoch);
}

Fence::ServerRow FenceTable::Read(std::int32_t server_id) const {
  auto it = servers_.find(server_id);
  if (it == servers_.end()) return {};
  return {.epoch = it->second.epoch, .live = it->second.live, .secret = it->second.secret};
}

bool FenceTable::Flush(std::int32_t server_id, FenceLane lane, std::int64_t epoch,
                       std::int64_t seq) {
  auto it = servers_.find(server_id);
  if (it == servers_.end()) return false;
  Server& server = it->second;
  std::int64_t& flush_seq = server.flush_seq.at(static_cast<std::size_t>(lane));
  if (server.epoch != epoch || !server.live || flush_seq != seq - 1) return false;
  flush_seq = seq;
  return true;
}

FenceLaneRow FenceTable::ReadLane(std::int32_t server_id, FenceLane lane) const {
  auto it = servers_.find(server_id);
  if (it == servers_.end()) return {};
  const Server& server = it->second;
  return {.epoch = server.epoch,
          .flush_seq = server.flush_seq.at(static_cast<std::size_t>(lane)),
          .live = server.live,
          .holder = server.holder};
}

}  // namespace zeze
