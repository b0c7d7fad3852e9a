#include "zeze/global/service/greeting.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/proof.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"

namespace zeze::global {

namespace {

constexpr auto kReconnectDelay = std::chrono::milliseconds(100);
constexpr auto kReconnectDelayMax = std::chrono::seconds(1);
// A Global that does not know the greeting closes the connection. Once may be an accident.
constexpr int kCutOffsMax = 2;

// One Global, asked until it says who it is.
class Visit {
 public:
  Visit(IoThreads& io, const GlobalClientOptions& options, std::size_t place)
      : nonce_(NewSecret()), service_(io, {.name = fmt::format("Greeting{}", place)}) {
    service_.OnOpen([this](const ConnectionPtr& connection) { Ask(connection); });
    service_.Connect({.host = options.shards[place].host,
                      .port = options.shards[place].port,
                      .first_delay = kReconnectDelay,
                      .delay_max = kReconnectDelayMax,
                      .tls = options.tls,
                      .tls_name = options.tls_name});
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { service_.Stop(); }

  struct Answer {
    std::optional<wire::GreetingResult> said;  // Absent: it has not said who it is.
    bool cut_off = false;                      // It closes the connection when it is asked.
  };
  // `believes`: do not wait for one that cuts off.
  Answer Await(Clock& clock, std::chrono::nanoseconds deadline, bool believes) {
    const MutexLock lock(mutex_);
    while (!answer_.said.has_value() && !(believes && answer_.cut_off) &&
           clock.WaitUntil(changed_, mutex_, deadline)) {
    }
    return answer_;
  }
  const std::string& nonce() const { return nonce_; }

 private:
  void Ask(const ConnectionPtr& connection) {
    const Result<void> sent = connection->Call<wire::Greeting>(
        {.nonce = nonce_}, {}, [this, connection](const RpcReply<wire::Greeting>& reply) {
          {
            const MutexLock lock(mutex_);
            if (reply.ok()) answer_.said = reply.result;
            cut_offs_ = reply.outcome == RpcOutcome::kClosed ? cut_offs_ + 1 : 0;
            answer_.cut_off = cut_offs_ >= kCutOffsMax;
            changed_.NotifyAll();
          }
          if (!reply.ok()) connection->Close("it does not say who it is yet");
        });
    if (!sent.ok()) connection->Close(sent.error().message());
  }

  const std::string nonce_;
  Mutex mutex_;
  CondVar changed_;
  Answer answer_ ZEZE_GUARDED_BY(mutex_);
  int cut_offs_ ZEZE_GUARDED_BY(mutex_) = 0;  // One after the other.
  Service service_;                           // Last: its callbacks use the rest.
};

std::string Place(const GlobalClientOptions& options, std::size_t place) {
  return fmt::format("the Global at {}:{}", options.shards[place].host, options.shards[place].port);
}

std::string Identity(const std::string& cluster) {
  return cluster.empty() ? "no cluster yet" : "cluster " + FormatClusterId(cluster);
}

Result<void> Check(const GlobalClientOptions& options, std::size_t place,
                   const wire::GreetingResult& said, const std::string& nonce,
                   const std::string& cluster, Fence& fence) {
  if (said.cluster != cluster) {
    return Error(ErrorCode::kIncompatible,
                 fmt::format("{} serves {}, but the database of this server holds {}: correct the "
                             "address of the Global or of the database, so that both use the same",
                             Place(options, place), Identity(said.cluster), Identity(cluster)));
  }
  const auto shard = static_cast<std::int32_t>(place);
  if (said.shard != shard) {
    return Error(ErrorCode::kIncompatible,
                 fmt::format("{} is shard {}, but this server lists it in place {}: list the "
                             "Globals in GlobalCacheManagerHostNameOrAddress in the order of their "
                             "shards, shard 0 first, or start that Global with --shard {}",
                             Place(options, place), said.shard, place, place));
  }
  const Result<Fence::TermRow> row = fence.ReadTerm(shard);
  if (!row.ok()) return row.error();
  const Claim claim{
      .server_nonce = nonce, .global_nonce = said.nonce, .cluster = cluster, .shard = shard};
  // One of another term was deposed, or has just taken over: the login finds out.
  if (row.value().term == said.term &&
      !SameProof(ProofOfTerm(row.value().secret, claim, said.term), said.proof)) {
    return Error(ErrorCode::kIncompatible,
                 fmt::format("{} does not prove that it is the Global of term {} in this server's "
                             "database: it uses a copy of that database, or is a stranger. Correct "
                             "the address, and give each copy an identity of its own (zeze cluster "
                             "identity --new)",
                             Place(options, place), said.term));
  }
  return {};
}

}  // namespace

Result<void> Greet(IoThreads& io, const GlobalClientOptions& options, Fence& fence) {
  // A Global too many in the list would be waited for, and its silence taken for the cause. The
  // start compares once more, in the transaction that counts.
  const Result<std::optional<ClusterRow>> known = fence.Cluster();
  if (!known.ok()) return known.error();
  if (known.value().has_value()) {
    const FenceStartOptions listed{.shards = static_cast<std::int32_t>(options.shards.size()),
                                   .makes_cluster = true};
    if (Result<void> fits = CheckCluster(known.value(), listed); !fits.ok()) return fits;
  }
  std::vector<std::unique_ptr<Visit>> visits;
  visits.reserve(options.shards.size());
  for (std::size_t place = 0; place < options.shards.size(); ++place) {
    visits.push_back(std::make_unique<Visit>(io, options, place));
  }
  const auto deadline = options.clock->Now() + options.connect_timeout;
  for (std::size_t place = 0; place < visits.size(); ++place) {
    Visit& visit = *visits[place];
    const bool believes = options.allow_unfenced_global;
    const auto [said, cut_off] = visit.Await(*options.clock, deadline, believes);
    if (!said.has_value() && cut_off && believes) continue;
    if (!said.has_value()) {
      return Error(
          ErrorCode::kUnavailable,
          cut_off
              ? fmt::format("{} closes the connection when it is asked who it is. If it is of an "
                            "earlier build: update Globals first. If it is of Zeze 1.6: it fences "
                            "nobody, and is used only with AllowUnfencedGlobal",
                            Place(options, place))
              : fmt::format("{} does not answer (shard {}): is it running?", Place(options, place),
                            place));
    }
    const Result<std::optional<ClusterRow>> cluster = fence.Cluster();
    if (!cluster.ok()) return cluster.error();
    Result<void> good =
        Check(options, place, *said, visit.nonce(),
              cluster.value().has_value() ? cluster.value()->cluster : std::string(), fence);
    if (!good.ok()) return good;
  }
  return {};
}

}  // namespace zeze::global
