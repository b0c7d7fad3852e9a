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
//   std::int64_t term = fence.RaiseTerm(shard, "host 10.0.0.1 pid 4711 start 1").value();
//   for (const LiveServer& server : fence.ListLive().value()) ...   // Announce again, or Evict.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeze/base/result.h"

namespace zeze {

struct FenceStartOptions {
  std::int32_t server_id = 0;
  std::string holder;  // Host, process and time, for people who look at the table.
  // How long it may use its rights after a renewal, at most; a part of a millisecond counts as one.
  // Who frees its rights waits for so long, whatever that one is configured for (hole 31). 0: it
  // does not say.
  std::chrono::milliseconds lease{0};
};

struct FenceStart {
  std::int64_t epoch = 0;
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

  bool operator==(const LiveServer&) const = default;
};

enum class EvictOutcome : std::uint8_t {
  kEvicted,     // Its epoch is higher than asked for now, by this call or by an earlier one.
  kTermPassed,  // Somebody took over this shard: stop being its Global.
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
  // is fenced by that. Every Flush of the storage is of this epoch from now on. Once in the life of
  // a storage.
  virtual Result<FenceStart> Start(const FenceStartOptions& options) = 0;

  // An empty flush, on a connection of its own: it waits neither for a flush nor does it delay one.
  // Success proves that the epoch was valid at some moment after the call began.
  // Errors: also kFenced.
  virtual Result<void> Renew() = 0;

  // Marks the server as orderly ended (rule 47): no Global waits for it any more. Errors: also
  // kFenced.
  virtual Result<void> Finish() = 0;

  // --- a Global ---

  // A new, higher term of the shard; the first is 1. Who raised it is the shard's only Global
  // (rule 43). By compare-and-swap under the name of the holder, which is unique to this start of
  // this process: if the term is the holder's already, that one is returned, and a copy of the
  // request that was stuck somewhere and arrives later changes nothing (hole 27).
  // Errors: also kConflict (somebody else raised it meanwhile: repeat, or stand back).
  virtual Result<std::int64_t> RaiseTerm(std::int32_t shard, const std::string& holder) = 0;

  // Every server that has started and neither finished nor been fenced, and every fenced epoch
  // whose lease nobody has seen to be over. Includes every server whose Start may have seen an
  // older term of any shard.
  virtual Result<std::vector<LiveServer>> ListLive() = 0;

  // Raises the epoch of the server to epoch + 1 unless it is higher already, if `term` is current
  // (rule 39), and ends its database sessions, so that a flush that hangs does not delay this.
  // After kEvicted no flush of (server_id, epoch) takes effect any more; what it flushed before is
  // there. It may still answer reads from memory until its lease is over (rule 40).
  virtual Result<EvictOutcome> Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                                     std::int64_t term) = 0;

  // Somebody has waited for as long as a lease of this fenced epoch can have lasted: it is listed
  // no longer (hole 26).
  virtual Result<void> LeaseOver(std::int32_t server_id, std::int64_t epoch) = 0;

  // --- everybody ---

  // The server's epoch, 0 if it never started; whether it is live.
  struct ServerRow {
    std::int64_t epoch = 0;
    bool live = false;
  };
  virtual Result<ServerRow> Read(std::int32_t server_id) = 0;

  // The term of each shard.
  virtual Result<std::map<std::int32_t, std::int64_t>> Terms() = 0;

  // Changes when the database may have lost what it acknowledged: restored from a backup, failed
  // over to an asynchronous replica. Then everybody starts anew (rule 48).
  virtual Result<std::string> History() = 0;

 protected:
  Fence() = default;
};

}  // namespace zeze
