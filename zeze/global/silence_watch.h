// SilenceWatch: whether servers that are in the way of a start, or of a change of the cluster, are
// dead. A server that renews its lease lives; one that has not renewed it for as long as the lease
// can last cannot use its rights any more (rules 54 and 60 of docs/architecture.md).
//
//   SilenceWatch watch(own_lease);
//   const SilenceWatch::Verdict verdict = watch.Look(now, fence.InTheWay(options).value());
//   if (!verdict.alive.empty()) return Refused();           // Otherwise evict those that are over.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/global/lease.h"
#include "zeze/storage/fence.h"

namespace zeze::global {

// Not thread-safe.
class SilenceWatch {
 public:
  struct Verdict {
    std::vector<LiveServer> alive;  // Renewed their lease since the last look.
    std::vector<LiveServer> over;   // Their leases are over.
  };

  explicit SilenceWatch(const LeaseOptions& lease) : lease_(lease) {}

  // `now` is not before the answer of the database was there.
  Verdict Look(std::chrono::nanoseconds now, const std::vector<LiveServer>& servers) {
    Verdict verdict;
    for (const LiveServer& server : servers) {
      const auto [at, fresh] = seen_.try_emplace(std::pair(server.server_id, server.epoch),
                                                 Seen{.since = now, .server = server});
      Seen& seen = at->second;
      if (seen.server != server) {
        if (seen.server.renew_seq != server.renew_seq) verdict.alive.push_back(server);
        seen = {.since = now, .server = server};  // It may have been its last renewal.
      } else if (now - seen.since >= LeaseOf(server).free_after()) {
        verdict.over.push_back(server);
      }
    }
    return verdict;
  }

 private:
  struct Seen {
    std::chrono::nanoseconds since;
    LiveServer server;
  };

  // A server of an earlier build does not say its lease: no server starts with a longer one.
  LeaseOptions LeaseOf(const LiveServer& server) const {
    LeaseOptions lease = lease_;
    lease.duration = server.lease.count() > 0 ? server.lease : kLeaseMax;
    return lease;
  }

  const LeaseOptions lease_;  // Its rates; durations are the servers' own.
  std::map<std::pair<std::int32_t, std::int64_t>, Seen> seen_;
};

// Tries it until no server is in its way (kInUse): evicts those whose leases are over, and gives up
// as soon as one of them renews its lease. `options` are those of the attempt.
template <typename T>
Result<T> WhenNobodyIsInTheWay(Fence& fence, const FenceStartOptions& options,
                               const LeaseOptions& lease, Clock& clock,
                               FunctionRef<Result<T>()> attempt) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  SilenceWatch watch(lease);
  while (true) {
    Result<T> result = attempt();
    if (result.ok() || result.error().code() != ErrorCode::kInUse) return result;
    const Result<std::vector<LiveServer>> servers = fence.InTheWay(options);
    if (!servers.ok()) return servers.error();
    const SilenceWatch::Verdict verdict = watch.Look(clock.Now(), servers.value());
    if (!verdict.alive.empty()) return result;
    for (const LiveServer& server : verdict.over) {
      // If it fails, the next look shows it again.
      if (server.fenced) {
        (void)fence.LeaseOver(server.server_id, server.epoch);
      } else {
        (void)fence.EvictSilent(server);
      }
    }
    if (verdict.over.empty()) clock.SleepFor(kPause);
  }
}

}  // namespace zeze::global
