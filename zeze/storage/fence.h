// Fence: how a shared database knows which server processes may write, and which Global may say so.
//
// Every server process has an epoch in the database. Each flush checks it in the same database
// transaction as its rows, so a process whose rights were taken away cannot write any more,
// whatever clocks, networks and people do. Rules 31 to 33 and 36 to 48 of docs/architecture.md.
//
//   // A server:
//   Fence& fence = *storage.fence();
//   Result<FenceStart> started =
//       fence.Start({.server_id = 7, .holder = "host 10.0.0.7 pid 4711", .lease = 6s});
//   storage.Flush(writes, true);                    // Fenced from now on: kFenced, stop at once.
//   fence.Renew();                                  // Every fifth of the lease.
//   fence.Finish();                                 // After the last flush of an orderly stop.
//
//   // A Global:
//   std::int64_t term =
//       fence.RaiseTerm({.shard = 0, .holder = "host 10.0.0.1 pid 4711 start 1"}).value();
//   for (const LiveServer& server : fence.ListLive().value()) ...   // Announce again, or Evict.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"

namespace zeze {

struct FenceStartOptions {
  std::int32_t server_id = 0;
  std::string holder = {};  // Host, process and time, for people who look at the table.
  // How long it may use its rights after a renewal, at most; a part of a millisecond counts as one.
  // Who frees its rights waits for so long, whatever that one is configured for (hole 31). 0: it
  // does not say.
  std::chrono::milliseconds lease{0};
  // 16 random bytes by which it proves to a Global that it is the process of this epoch (rule 57).
  std::string secret = {};

  // How many Globals it is configured with. 0: none, it needs the database for itself (rule 54).
  // Absent: it does not say, and nothing is compared but its tables; for tests and tools.
  std::optional<std::int32_t> shards = std::nullopt;
  // It may make the row of the cluster although it is not alone: nobody else will, because its
  // Globals are of Zeze 1.6.
  bool makes_cluster = false;
  // Its stored tables, with the ids that their locks have (rule 53).
  std::vector<StoredTable> tables = {};
  // It starts as if it were alone, to change definitions (rule 55), until Fence::Share.
  bool exclusive = false;
  std::string exclusive_for = {};  // What for: the beginning of a sentence for people.

  // 16 random bytes that whoever started this process chose for it; empty: nobody did.
  std::string incarnation = {};
  // The incarnations of processes that have ended, for certain (rule 62). If the process before
  // this one is among them, nobody waits for the end of its lease.
  std::vector<std::string> ended = {};
};

struct FenceStart {
  std::int64_t epoch = 0;
  std::string cluster = {};  // Identity of the cluster; empty if there is none yet.
  // The term of each Global shard at that moment. The server attaches only to Globals of these
  // terms: one that took over later lists this server and expects it.
  std::map<std::int32_t, std::int64_t> terms;
};

// A process that may still use its rights.
struct LiveServer {
  std::int32_t server_id = 0;
  std::int64_t epoch = 0;
  std::string holder;
  // It cannot write any more, but nobody has waited until its lease was over: it may still read.
  bool fenced = false;
  // What this very epoch said when it started. 0: nothing; it is of an earlier build.
  std::chrono::milliseconds lease{0};
  // How many renewals of its lease have been written, in all if it is fenced. -1: nobody knows; it
  // was fenced by an earlier build.
  std::int64_t renew_seq = 0;

  bool operator==(const LiveServer&) const = default;
};

// A Global that begins.
struct GlobalStart {
  std::int32_t shard = 0;
  std::string holder = {};  // Unique to this start of this process.
  // How many shards it believes there are. 0: as many as the database says.
  std::int32_t shards = 0;
  // 16 random bytes by which it proves to servers that it is the Global of this term (rule 57).
  std::string secret = {};

  bool operator==(const GlobalStart&) const = default;
};

enum class EvictOutcome : std::uint8_t {
  kEvicted,     // Its epoch is higher than asked for now, by this call or by an earlier one.
  kTermPassed,  // Somebody took over this shard: stop being its Global.
  kRenewed,     // Nobody was evicted: see EvictUnless.
  kYielded,     // The same.
};

// By this a server that has no connection to its Global says that it has saved everything and given
// up all rights of a shard (rule 65).
struct YieldMark {
  std::int64_t number = 0;  // Its yields of this shard in this epoch; the first is 1.
  std::int64_t term = 0;    // Of the Global that wanted it.

  bool operator==(const YieldMark&) const = default;
};

struct YieldedServer {
  std::int32_t server_id = 0;
  std::int64_t epoch = 0;
  YieldMark mark;

  bool operator==(const YieldedServer&) const = default;
};

// What saves a server from an eviction; looked at in its transaction.
struct EvictUnless {
  // It has renewed its lease since this number of renewals was seen (rule 61).
  std::optional<std::int64_t> renewed_since = std::nullopt;
  // It has yielded the shard: its mark has a higher number and no lower term (rule 66).
  std::optional<YieldMark> yielded_since = std::nullopt;
};

// Thread-safe; every call may block on the database. Errors of all calls: kUnavailable (nothing
// happened), kUnknownOutcome (it happened or not). All may be repeated after either.
class Fence {
 public:
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  virtual ~Fence() = default;

  // --- a server ---

  // In one transaction: notes the terms, raises the epoch of this server id, marks it live (rule
  // 42), and notes its lease for as long as this epoch is listed. An older process of the same id
  // is fenced by that, and its renewals are noted. Every Flush of the storage is of this epoch from
  // now on. Once in the life of a storage.
  // Compared in the same transaction, before anything is raised (rules 52 to 54): protocol, number
  // of shards, ids of tables, alone or not. Errors also: kIncompatible (the text names both sides
  // and how to change each), kInUse (servers in the way, see InTheWay); nobody is fenced then.
  virtual Result<FenceStart> Start(const FenceStartOptions& options) = 0;

  // The end of an exclusive start: other servers may start from now on. Errors: also kFenced.
  virtual Result<void> Share() = 0;

  // Why Start with these options would answer kInUse.
  virtual Result<std::vector<LiveServer>> InTheWay(const FenceStartOptions& options) = 0;

  // Takes the epoch from a live server that was in the way and has not renewed its lease since
  // `seen`, for as long as a lease can last: its lease is over, and it is not listed as fenced.
  // False: it has renewed, or is another epoch.
  virtual Result<bool> EvictSilent(const LiveServer& seen) = 0;

  // An empty flush, on a connection of its own: it waits neither for a flush nor does it delay one.
  // Success proves that the epoch was valid at some moment after the call began, and that a renewal
  // which was sent after that moment is in the row: one that an earlier call left in doubt does not
  // count (hole 32).
  // Errors: also kFenced.
  virtual Result<void> Renew() = 0;

  // The shards whose Globals want the rights of this process and have no connection to it, each
  // with the term of that Global (rule 64).
  virtual Result<std::map<std::int32_t, std::int64_t>> Wanted() = 0;

  // Everything of the shard is saved and given up (rule 65). Without effect if a mark with this
  // number or a higher one is there. Errors: also kFenced.
  virtual Result<void> Yield(std::int32_t shard, const YieldMark& mark) = 0;

  // Marks the server as orderly ended (rule 47): no Global waits for it any more. Errors: also
  // kFenced.
  virtual Result<void> Finish() = 0;

  // --- a Global ---

  // A new, higher term of the shard; the first is 1. Who raised it is the shard's only Global
  // (rule 43). By compare-and-swap under the name of the holder, which is unique to this start of
  // this process: if the term is the holder's already, that one is returned, and a copy of the
  // request that was stuck somewhere and arrives later changes nothing (hole 27). Makes the row of
  // the cluster if there is none (rule 51).
  // Errors: also kConflict (somebody else raised it meanwhile: repeat, or stand back),
  // kIncompatible (the cluster has another number of shards; nothing was raised).
  virtual Result<std::int64_t> RaiseTerm(const GlobalStart& start) = 0;

  // Every server that has started and neither finished nor been fenced, and every fenced epoch
  // whose lease nobody has seen to be over. Includes every server whose Start may have seen an
  // older term of any shard.
  virtual Result<std::vector<LiveServer>> ListLive() = 0;

  // Raises the epoch of the server to epoch + 1 unless it is higher already, if `term` is current
  // (rule 39), and ends its database sessions, so that a flush that hangs does not delay this.
  // After kEvicted no flush of (server_id, epoch) takes effect any more; what it flushed before is
  // there. It may still answer reads from memory until its lease is over (rule 40).
  virtual Result<EvictOutcome> Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                                     std::int64_t term, const EvictUnless& unless) = 0;

  // Asks a server that has no connection to this Global to yield the shard (rule 64), if `term` is
  // current. False: somebody took over this shard. Without effect on a server of another epoch.
  virtual Result<bool> Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                            std::int64_t term) = 0;
  // It is connected again. Nothing depends on this: who yields for nothing only loses its cache.
  virtual Result<void> Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                              std::int64_t term) = 0;
  // The last mark of each live server for the shard.
  virtual Result<std::vector<YieldedServer>> Yields(std::int32_t shard) = 0;

  // Somebody has waited for as long as a lease of this fenced epoch can have lasted: it is listed
  // no longer (hole 26).
  virtual Result<void> LeaseOver(std::int32_t server_id, std::int64_t epoch) = 0;

  // --- everybody ---

  // The server's epoch, 0 if it never started; whether it is live; what it proves itself by. An
  // epoch of an earlier build has no secret.
  struct ServerRow {
    std::int64_t epoch = 0;
    bool live = false;
    std::string secret = {};
  };
  virtual Result<ServerRow> Read(std::int32_t server_id) = 0;

  // The term of each shard.
  virtual Result<std::map<std::int32_t, std::int64_t>> Terms() = 0;

  // Who raised the term of a shard last. Term 0: nobody.
  struct TermRow {
    std::int64_t term = 0;
    std::string holder = {};
    std::string secret = {};
  };
  virtual Result<TermRow> ReadTerm(std::int32_t shard) = 0;

  // What all processes must agree on; absent: nobody has started yet.
  virtual Result<std::optional<ClusterRow>> Cluster() = 0;
  // The id of each table that a server has started with, by its name in the database.
  virtual Result<std::map<std::string, std::int32_t>> TableIds() = 0;
  // Errors: also kInUse (a server lives, or its lease is open), kIncompatible, kNotFound.
  virtual Result<void> Change(const ClusterChange& change) = 0;

  // Changes when the database may have lost what it acknowledged: restored from a backup, failed
  // over to an asynchronous replica. Then everybody starts anew (rule 48).
  virtual Result<std::string> History() = 0;

 protected:
  Fence() = default;
};

}  // namespace zeze
