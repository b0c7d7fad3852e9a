// GlobalProcess: the real GlobalServer of one shard, in a simulated process.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tests/simulation/server.h"
#include "tests/simulation/world.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::simulation {

class GlobalProcess final : public global::GlobalOutput {
 public:
  GlobalProcess(Cluster& cluster, std::size_t shard, const global::GlobalOptions& options);

  ProcessId process() const { return process_; }
  std::size_t shard() const { return shard_; }
  bool alive() const { return world_.Alive(process_); }
  Time now() const { return world_.LocalTime(process_); }
  global::GlobalServer& machine() { return machine_; }

  // A connection was made; its other end, null for a stranger.
  void AddLink(LinkId link, Server* server) { links_[link] = server; }
  bool HasLink(LinkId link) const { return links_.contains(link); }
  void OnClosed(LinkId link);
  void OnUnfencedLogin(LinkId link, std::int32_t server_id);
  // After anything happened: plans the next tick, ends a deposed process.
  void Work();

  void SendLoginReply(global::ConnectionId to, const global::LoginReply& reply) override;
  void SendGrant(global::ConnectionId to, std::uint64_t request, std::string_view key,
                 Right right) override;
  void SendRefusal(global::ConnectionId to, std::uint64_t request, std::string_view key,
                   Right wanted, global::Refusal refusal) override;
  void SendReleased(global::ConnectionId to, std::uint64_t request, std::string_view key) override;
  void SendReduce(global::ConnectionId to, std::uint64_t serial, std::string_view key,
                  Right right) override;
  void Close(global::ConnectionId connection) override;
  void RaiseTerm() override;
  void ReadTerm() override;
  void ListLive() override;
  void Evict(std::int32_t server_id, std::int64_t epoch, std::int64_t term,
             const EvictUnless& unless) override;
  void Want(std::int32_t server_id, std::int64_t epoch, std::int64_t term) override;
  void Unwant(std::int32_t server_id, std::int64_t epoch, std::int64_t term) override;
  void ReadYields() override;
  void ReadServer(std::int32_t server_id) override;
  void LeaseOver(std::int32_t server_id, std::int64_t epoch) override;
  void StopServer(std::int32_t, std::uint64_t) override {}  // Old peers end by themselves.
  void Alert(const global::GlobalAlert& alert) override;

 private:
  template <typename Deliver>
  void Send(global::ConnectionId to, Deliver deliver);

  Cluster& cluster_;
  World& world_;
  const std::size_t shard_;
  const ProcessId process_;
  global::GlobalServer machine_;
  std::map<LinkId, Server*> links_;
  std::uint64_t ticks_ = 0;
};

}  // namespace zeze::simulation
