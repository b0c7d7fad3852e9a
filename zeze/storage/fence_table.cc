#include "zeze/storage/fence_table.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
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

FenceStart FenceTable::Start(const FenceStartOptions& options) {
  Server& server = servers_[options.server_id];
  if (server.live) server.fenced.emplace(server.epoch, server.lease);
  server.epoch += 1;
  server.live = true;
  server.holder = options.holder;
  server.lease = options.lease;
  server.flush_seq = {};
  return {.epoch = server.epoch, .terms = terms_};
}

bool FenceTable::Finish(std::int32_t server_id, std::int64_t epoch) {
  auto it = servers_.find(server_id);
  if (it == servers_.end() || it->second.epoch != epoch) return false;
  it->second.live = false;
  return true;
}

std::int64_t FenceTable::RaiseTerm(std::int32_t shard) {
  return ++terms_[shard];
}

FenceTable::TermRow FenceTable::ReadTerm(std::int32_t shard) const {
  const auto term = terms_.find(shard);
  if (term == terms_.end()) return {};
  const auto holder = term_holders_.find(shard);
  return {.term = term->second,
          .holder = holder == term_holders_.end() ? std::string() : holder->second};
}

bool FenceTable::RaiseTermFrom(std::int32_t shard, std::int64_t expected,
                               const std::string& holder) {
  std::int64_t& term = terms_[shard];
  if (term != expected) return false;
  term = expected + 1;
  term_holders_[shard] = holder;
  return true;
}

std::vector<LiveServer> FenceTable::ListLive() const {
  std::vector<LiveServer> live;
  for (const auto& [server_id, server] : servers_) {
    for (const auto& [epoch, lease] : server.fenced) {
      live.push_back(
          {.server_id = server_id, .epoch = epoch, .holder = {}, .fenced = true, .lease = lease});
    }
    if (!server.live) continue;
    live.push_back({.server_id = server_id,
                    .epoch = server.epoch,
                    .holder = server.holder,
                    .lease = server.lease});
  }
  return live;
}

EvictOutcome FenceTable::Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                               std::int64_t term) {
  auto current = terms_.find(shard);
  if (current == terms_.end() || current->second != term) return EvictOutcome::kTermPassed;
  Server& server = servers_[server_id];
  if (server.epoch <= epoch) {
    if (server.live) server.fenced.emplace(server.epoch, server.lease);
    server.epoch = epoch + 1;
    server.live = false;
  }
  return EvictOutcome::kEvicted;
}

void FenceTable::LeaseOver(std::int32_t server_id, std::int64_t epoch) {
  const auto at = servers_.find(server_id);
  if (at != servers_.end()) at->second.fenced.erase(epoch);
}

Fence::ServerRow FenceTable::Read(std::int32_t server_id) const {
  auto it = servers_.find(server_id);
  if (it == servers_.end()) return {};
  return {.epoch = it->second.epoch, .live = it->second.live};
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
