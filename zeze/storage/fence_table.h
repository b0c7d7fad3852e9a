// FenceTable: the fence rows of one database and what each call does to them, as plain functions.
//
// The reference for every driver: the memory storage keeps one under its mutex, a simulator keeps
// one for each database it plays, and the SQL drivers do in one database transaction what one
// function does here (docs/storage.md, "Fences"). No threads, no I/O; a copy is a backup of the
// rows, and putting it back is a database that lost history.
//
//   FenceTable fences;
//   std::int64_t epoch = fences.Start({.server_id = 7, .holder = "host 10.0.0.7"}).value().epoch;
//   // A flush: this and its rows are one atomic step, or nothing of both happens.
//   if (fences.Flush(7, FenceLane::kFlush, epoch, seq + 1)) { rows.Apply(writes); ++seq; }
//   // Nobody knows whether flush seq + 1 happened: look, then go on or repeat it.
//   switch (JudgeFlush(fences.ReadLane(7, FenceLane::kFlush), epoch, seq + 1)) ...

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"

namespace zeze {

// Each lane counts its flushes for itself, so one never waits for the other. Stored: never
// renumber.
enum class FenceLane : std::uint8_t {
  kFlush = 0,
  kRenew = 1,
};
inline constexpr std::size_t kFenceLaneCount = 2;

// What a lane's row says. A server that never started has epoch 0.
struct FenceLaneRow {
  std::int64_t epoch = 0;
  std::int64_t flush_seq = 0;  // The last flush of this epoch that took effect; the first is 1.
  bool live = false;
  std::string holder = {};  // Who started this epoch; for people.

  bool operator==(const FenceLaneRow&) const = default;
};

// What became of flush `seq` of `epoch`, for somebody who does not know and looks at the row. Ask
// with the number of the newest flush only: there is never more than one in doubt in a lane.
enum class FlushFate : std::uint8_t {
  kWritten,
  kNotWritten,   // Repeat it, byte-identical, with the same number (rule 32).
  kFenced,       // Another epoch, or finished: it can never be written any more (rule 33).
  kHistoryLost,  // An older flush that was acknowledged is gone: end as if fenced (rule 48).
};

FlushFate JudgeFlush(const FenceLaneRow& row, std::int64_t epoch, std::int64_t seq);

// For drivers: what kFenced says when the row was judged so.
Error FencedError(std::int32_t server_id, std::int64_t epoch, const FenceLaneRow& row);

// For drivers: whether the process before this start, of this incarnation, has ended for certain.
bool HasEnded(const std::string& incarnation, const FenceStartOptions& options);
// Whether the mark saves the server from the eviction.
bool Saves(const EvictUnless& unless, const YieldMark& mark);

class FenceTable {
 public:
  // --- what Fence promises, see there ---

  Result<FenceStart> Start(const FenceStartOptions& options);
  bool Share(std::int32_t server_id, std::int64_t epoch);   // False: fenced.
  bool Finish(std::int32_t server_id, std::int64_t epoch);  // False: fenced.
  std::vector<LiveServer> InTheWay(const FenceStartOptions& options) const;
  bool EvictSilent(const LiveServer& seen);
  std::int64_t RaiseTerm(std::int32_t shard);
  std::map<std::int32_t, std::int64_t> Terms() const { return terms_; }  // By shard.

  // A Global reads who raised the term last, and raises it if it is not its own already: a copy of
  // the request that was stuck somewhere and arrives later changes nothing.
  Fence::TermRow ReadTerm(std::int32_t shard) const;
  // kConflict: the term is not `expected` any more.
  Result<void> RaiseTermFrom(const GlobalStart& start, std::int64_t expected);

  std::vector<LiveServer> ListLive() const;  // Ascending by server id.
  EvictOutcome Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                     std::int64_t term, const EvictUnless& unless);
  // By shard: the term of the Global that wants it.
  std::map<std::int32_t, std::int64_t> Wanted(std::int32_t server_id, std::int64_t epoch) const;
  bool Yield(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
             const YieldMark& mark);  // False: fenced.
  bool Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard, std::int64_t term);
  void Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard, std::int64_t term);
  std::vector<YieldedServer> Yields(std::int32_t shard) const;
  // Somebody has waited for as long as a lease of this fenced epoch can have lasted.
  void LeaseOver(std::int32_t server_id, std::int64_t epoch);
  Fence::ServerRow Read(std::int32_t server_id) const;
  const std::optional<ClusterRow>& cluster() const { return cluster_; }
  const std::map<std::string, std::int32_t>& table_ids() const { return table_ids_; }
  Result<void> Change(const ClusterChange& change);

  // --- a flush, or a renewal in the lane for that ---

  // The compare-and-swap of rule 31: true if the row was that of flush `seq` - 1 of this epoch, and
  // now is that of flush `seq`. False: nothing changed, and the caller writes no rows either;
  // JudgeFlush says why.
  bool Flush(std::int32_t server_id, FenceLane lane, std::int64_t epoch, std::int64_t seq);

  FenceLaneRow ReadLane(std::int32_t server_id, FenceLane lane) const;

  bool operator==(const FenceTable&) const = default;

 private:
  struct FencedEpoch {
    std::chrono::milliseconds lease{0};
    std::int64_t renew_seq = 0;

    bool operator==(const FencedEpoch&) const = default;
  };
  struct Server {
    std::int64_t epoch = 0;
    bool live = false;
    std::string holder;
    std::string secret;
    std::string incarnation;
    std::chrono::milliseconds lease{0};
    std::map<std::int64_t, FencedEpoch> fenced;  // Whose leases may not be over.
    std::array<std::int64_t, kFenceLaneCount> flush_seq = {};
    // Of this epoch, by shard.
    std::map<std::int32_t, std::int64_t> wanted;
    std::map<std::int32_t, YieldMark> yields;

    std::int64_t renew_seq() const {
      return flush_seq.at(static_cast<std::size_t>(FenceLane::kRenew));
    }
    bool operator==(const Server&) const = default;
  };

  // Whether this epoch may write.
  Server* FindLive(std::int32_t server_id, std::int64_t epoch);
  bool IsTerm(std::int32_t shard, std::int64_t term) const;
  // Keeps what is to be known of the epoch that the server loses, unless it has ended for certain.
  static void LoseEpoch(Server& server, bool over);

  std::map<std::int32_t, Server> servers_;
  std::map<std::int32_t, std::int64_t> terms_;  // By shard.
  std::map<std::int32_t, GlobalStart> term_holders_;
  std::optional<ClusterRow> cluster_;
  std::map<std::string, std::int32_t> table_ids_;  // By name.
};

}  // namespace zeze
