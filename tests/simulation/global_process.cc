#include "tests/simulation/global_process.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/simulation/database.h"
#include "tests/simulation/server.h"
#include "tests/simulation/world.h"
#include "zeze/base/result.h"
#include "zeze/global/agent.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/transaction/coherence.h"

namespace zeze::simulation {

GlobalProcess::GlobalProcess(Cluster& cluster, std::size_t shard,
                             const global::GlobalOptions& options)
    : cluster_(cluster),
      world_(cluster.world),
      shard_(shard),
      process_(cluster.world.StartProcess(fmt::format("global{}", shard))),
      machine_(options, *this) {
  world_.After(process_, Time{0}, [this] {
    machine_.Start(now());
    Work();
  });
}

void GlobalProcess::Work() {
  if (!alive()) return;
  if (machine_.deposed()) {
    world_.Kill(process_);
    return;
  }
  const Time next = machine_.NextDeadline();
  if (next == Time::max()) return;
  const std::uint64_t tick = ++ticks_;
  world_.After(process_, std::max(next - now(), Time{0}) + microseconds(10), [this, tick] {
    if (tick != ticks_) return;
    machine_.Tick(now());
    Work();
  });
}

void GlobalProcess::OnClosed(LinkId link) {
  links_.erase(link);
  machine_.OnClosed(now(), link);
  Work();
}

void GlobalProcess::OnUnfencedLogin(LinkId link, std::int32_t server_id) {
  const bool accepted = machine_.OnUnfencedLogin(now(), link, server_id, false);
  Send(link, [shard = shard_, accepted](Server& server, LinkId to) {
    global::GlobalAgent& agent = *server.agent(shard);
    agent.OnLoginReply(
        to, {.outcome = accepted ? global::LoginOutcome::kAccepted : global::LoginOutcome::kBusy,
             .term = agent.term()});
  });
}

template <typename Deliver>
void GlobalProcess::Send(global::ConnectionId to, Deliver deliver) {
  const auto at = links_.find(to);
  if (at == links_.end()) return;
  Server* server = at->second;
  if (server == nullptr) return;
  world_.Send(to, process_, [this, server, to, deliver] {
    if (server->agent(shard_) != nullptr) deliver(*server, to);
  });
}

void GlobalProcess::SendLoginReply(global::ConnectionId to, const global::LoginReply& reply) {
  Send(to, [shard = shard_, reply](Server& server, LinkId link) {
    server.agent(shard)->OnLoginReply(link, reply);
  });
}

void GlobalProcess::SendGrant(global::ConnectionId to, std::uint64_t request, std::string_view key,
                              Right right) {
  Send(to, [shard = shard_, request, key = std::string(key), right](Server& server, LinkId link) {
    server.OnGrant(shard, link, request, key, right);
  });
}

void GlobalProcess::SendRefusal(global::ConnectionId to, std::uint64_t request,
                                std::string_view key, Right /*wanted*/, global::Refusal refusal) {
  Send(to, [shard = shard_, request, key = std::string(key), refusal](Server& server, LinkId link) {
    server.OnRefusal(shard, link, request, key, refusal);
  });
}

void GlobalProcess::SendReleased(global::ConnectionId to, std::uint64_t request,
                                 std::string_view key) {
  Send(to, [shard = shard_, request, key = std::string(key)](Server& server, LinkId link) {
    server.OnReleased(shard, link, request, key);
  });
}

void GlobalProcess::SendReduce(global::ConnectionId to, std::uint64_t serial, std::string_view key,
                               Right right) {
  Send(to, [shard = shard_, serial, key = std::string(key), right](Server& server, LinkId link) {
    server.OnReduce(shard, link, serial, key, right);
  });
}

// What was sent before arrives before the other end sees the close.
void GlobalProcess::Close(global::ConnectionId connection) {
  const auto at = links_.find(connection);
  if (at == links_.end()) return;
  Server* server = at->second;
  if (server == nullptr) {
    links_.erase(at);
    world_.Close(connection, process_);
    return;
  }
  // Rule 68: no fault hits an old peer itself, so it answers unless it waits for its own request.
  if (server->old_peer() && server->alive() && !server->closed() && !machine_.deposed()) {
    throw Violation{fmt::format("{} gave up {}, which waits for its own request",
                                world_.name(process_), world_.name(server->process()))};
  }
  links_.erase(at);
  world_.Send(connection, process_, [this, server, connection] {
    if (server->agent(shard_) != nullptr) server->OnClosed(shard_, connection);
    if (server->alive()) world_.Close(connection, server->process());
  });
}

void GlobalProcess::RaiseTerm() {
  cluster_.database.RaiseTerm(process_,
                              {.shard = static_cast<std::int32_t>(shard_),
                               .holder = world_.name(process_),
                               .shards = static_cast<std::int32_t>(cluster_.shard_count)},
                              [this](Result<std::int64_t> term) {
                                machine_.OnTermRaised(now(), term);
                                Work();
                              });
}

void GlobalProcess::ReadTerm() {
  cluster_.database.ReadTerm(
      process_, static_cast<std::int32_t>(shard_), [this](Result<Fence::TermRow> row) {
        machine_.OnTerm(now(), row.ok() ? Result<std::int64_t>(row.value().term)
                                        : Result<std::int64_t>(row.error()));
        Work();
      });
}

void GlobalProcess::ListLive() {
  cluster_.database.ListLive(process_, [this](Result<std::vector<LiveServer>> servers) {
    if (servers.ok()) {  // Old peers have no row; here they have one, which fences their flushes.
      std::erase_if(servers.value(), [this](const LiveServer& server) {
        return cluster_.old_peers.contains(server.server_id);
      });
    }
    machine_.OnLiveServers(now(), servers);
    Work();
  });
}

void GlobalProcess::Want(std::int32_t server_id, std::int64_t epoch, std::int64_t term) {
  cluster_.database.Want(process_, server_id, epoch, static_cast<std::int32_t>(shard_), term,
                         [this, server_id, epoch](const Result<bool>& written) {
                           machine_.OnWanted(now(), server_id, epoch, written);
                           Work();
                         });
}

void GlobalProcess::Unwant(std::int32_t server_id, std::int64_t epoch, std::int64_t term) {
  cluster_.database.Unwant(process_, server_id, epoch, static_cast<std::int32_t>(shard_), term,
                           [](const Result<bool>&) {});
}

void GlobalProcess::ReadYields() {
  cluster_.database.Yields(process_, static_cast<std::int32_t>(shard_),
                           [this](const Result<std::vector<YieldedServer>>& yields) {
                             machine_.OnYields(now(), yields);
                             Work();
                           });
}

void GlobalProcess::Evict(std::int32_t server_id, std::int64_t epoch, std::int64_t term,
                          const EvictUnless& unless) {
  cluster_.database.Evict(process_, server_id, epoch, static_cast<std::int32_t>(shard_), term,
                          unless, [this, server_id, epoch](Result<EvictOutcome> outcome) {
                            machine_.OnEvicted(now(), server_id, epoch, outcome);
                            Work();
                          });
}

void GlobalProcess::ReadServer(std::int32_t server_id) {
  cluster_.database.Read(process_, server_id, [this, server_id](Result<Fence::ServerRow> row) {
    machine_.OnServerRow(now(), server_id, row);
    Work();
  });
}

void GlobalProcess::LeaseOver(std::int32_t server_id, std::int64_t epoch) {
  cluster_.database.LeaseOver(process_, server_id, epoch, [](const Result<bool>&) {});
}

void GlobalProcess::Alert(const global::GlobalAlert& alert) {
  world_.Say(fmt::format("{}: {}", world_.name(process_), alert.text));
}

}  // namespace zeze::simulation
