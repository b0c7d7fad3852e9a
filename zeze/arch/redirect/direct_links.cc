#include "zeze/arch/redirect/direct_links.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/ring/hash_ring.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/text.h"
#include "zeze/base/usage_error.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/service_list.h"

namespace zeze::arch {

namespace {

using Zeze::Builtin::ProviderDirect::AnnounceProviderInfo;

constexpr std::int32_t kNobody = -1;

// Who is at the other end of a connection.
struct DirectState final : ConnectionState {
  std::atomic<std::int32_t> server_id = kNobody;
};

ServiceOptions ServiceOptionsOf(const DirectLinksOptions& options, bool outgoing) {
  ServiceOptions service = options.service;
  // Both sides call each other: if both stopped reading, both would wait.
  service.read_always = true;
  service.socket.unconfirmed_max = kUnconfirmedInside;
  service.inside = true;
  if (outgoing) service.keep_alive = options.keep_alive;
  return service;
}

}  // namespace

ServiceOptions DefaultDirectServiceOptions() {
  return {.name = "Zeze.Arch.ProviderDirectService",
          .handshake = HandshakeOptions{},
          .frame_bytes_max = std::size_t{16} << 20,
          .output_bytes_max = std::size_t{64} << 20};
}

std::int32_t ServerIdOf(std::string_view identity) {
  const Result<std::int64_t> id =
      ParseInteger(identity, 0, std::numeric_limits<std::int32_t>::max());
  return id.ok() ? static_cast<std::int32_t>(id.value()) : kNobody;
}

struct DirectLinks::Impl : std::enable_shared_from_this<Impl> {
  struct Address {
    std::string host;
    std::uint16_t port = 0;

    bool operator==(const Address&) const = default;
  };

  struct Offered {
    bool here = false;
    std::shared_ptr<const HashRing> ring;  // Null: not known yet.
    std::map<std::int32_t, Address> servers;
  };

  struct Waiting {
    std::uint64_t id;
    std::size_t bytes;
    Use use;
  };

  struct Peer {
    bool listed = false;
    // Listed since the session began: a server of another version never is.
    bool admitted = false;
    Address address;
    std::shared_ptr<Connector> connector;  // Null unless this server connects.
    ConnectionPtr session;
    std::deque<Waiting> waiting;
    std::size_t waiting_bytes = 0;
    // Somebody hands the session to those that wait: whoever comes meanwhile waits behind them.
    bool flushing = false;

    bool usable() const { return admitted && session != nullptr && session->IsOpen(); }
  };

  Impl(IoThreads& the_io, registry::RegistryAgent& the_agent, DirectLinksOptions the_options)
      : io(the_io),
        agent(the_agent),
        options(std::move(the_options)),
        incoming(std::make_unique<Service>(io, ServiceOptionsOf(options, false))),
        outgoing(std::make_unique<Service>(io, ServiceOptionsOf(options, true))) {}

  void AddHandlers();
  Result<void> Listen();
  void OnOpenIncoming(const ConnectionPtr& connection);
  void OnOpenOutgoing(const ConnectionPtr& connection);
  void OnClose(const ConnectionPtr& connection);
  void OnAnnounce(Request<AnnounceProviderInfo> request);
  std::string WhyRefused(const Connection& connection, std::int32_t server_id) const;

  void OnServices(const std::string& name, const registry::ServiceList& list);
  void UpdatePeers(std::vector<std::shared_ptr<Connector>>& unwanted) ZEZE_REQUIRES(mutex);
  bool MustConnect(std::int32_t server_id) const ZEZE_REQUIRES(mutex);
  void Connect(std::int32_t server_id, Peer& peer) ZEZE_REQUIRES(mutex);

  void Flush(std::int32_t server_id);
  void Expire(std::int32_t server_id, std::uint64_t waiting_id);
  void WithConnection(std::int32_t server_id, std::chrono::nanoseconds patience, std::size_t bytes,
                      Use use);
  std::string WhatIsMissing(const std::set<std::string>& offered_here) const ZEZE_REQUIRES(mutex);
  void CloseWhenSent();
  void Stop();

  IoThreads& io;
  registry::RegistryAgent& agent;
  const DirectLinksOptions options;
  // Constant after Start.
  std::vector<LostCallback> on_lost;
  std::string ip;
  std::uint16_t port = 0;

  mutable Mutex mutex;
  mutable CondVar changed;
  bool started ZEZE_GUARDED_BY(mutex) = false;
  bool stopped ZEZE_GUARDED_BY(mutex) = false;
  std::map<std::string, Offered, std::less<>> offered ZEZE_GUARDED_BY(mutex);
  std::map<std::int32_t, Peer> peers ZEZE_GUARDED_BY(mutex);
  std::uint64_t last_waiting ZEZE_GUARDED_BY(mutex) = 0;
  std::size_t waiting_total ZEZE_GUARDED_BY(mutex) = 0;
  std::set<std::int64_t> closing ZEZE_GUARDED_BY(mutex);  // Connections that Stop waits for.
  Statistics statistics ZEZE_GUARDED_BY(mutex);

  // Two, because only one of them can be watched by signs of life. They end with Stop, because the
  // last to hold this object may be a network thread.
  std::unique_ptr<Service> incoming;
  std::unique_ptr<Service> outgoing;
};

void DirectLinks::Impl::AddHandlers() {
  for (Service* service : {incoming.get(), outgoing.get()}) {
    service->Handle<AnnounceProviderInfo>(
        [this](Request<AnnounceProviderInfo> request) { OnAnnounce(std::move(request)); });
    service->OnClose(
        [this](const ConnectionPtr& connection, const Error&) { OnClose(connection); });
  }
  incoming->OnOpen([this](const ConnectionPtr& connection) { OnOpenIncoming(connection); });
  outgoing->OnOpen([this](const ConnectionPtr& connection) { OnOpenOutgoing(connection); });
}

Result<void> DirectLinks::Impl::Listen() {
  Result<std::shared_ptr<Acceptor>> acceptor =
      incoming->Listen({.ip = options.ip, .port = options.port, .tls = options.listen_tls});
  if (!acceptor.ok()) return acceptor.error();
  port = acceptor.value()->address().port();
  ip = options.advertised_ip.empty() ? acceptor.value()->address().IpText() : options.advertised_ip;
  if (ip == "0.0.0.0" || ip == "::") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("other servers cannot connect to {}: set the ip to listen on "
                             "(\"@internal\" finds one), or the advertised ip",
                             ip));
  }
  return {};
}

void DirectLinks::Impl::OnOpenIncoming(const ConnectionPtr& connection) {
  connection->set_state(std::make_shared<DirectState>());
}

void DirectLinks::Impl::OnOpenOutgoing(const ConnectionPtr& connection) {
  auto state = std::make_shared<DirectState>();
  connection->set_state(state);
  // Peers of other implementations never answer; nothing depends on it.
  const Result<void> announced = connection->Call<AnnounceProviderInfo>(
      {.Ip = ip, .Port = port, .ServerId = options.server_id}, {},
      [](const RpcReply<AnnounceProviderInfo>&) {});
  if (!announced.ok()) return;  // It has closed again.
  std::int32_t server_id = kNobody;
  ConnectionPtr replaced;
  {
    MutexLock lock(mutex);
    for (auto& [id, peer] : peers) {
      if (peer.connector != connection->connector()) continue;
      server_id = id;
      state->server_id = id;
      replaced = std::exchange(peer.session, connection);
      peer.admitted = peer.listed;
    }
    if (replaced != nullptr) ++statistics.replaced;
    changed.NotifyAll();
  }
  if (replaced != nullptr) replaced->Close("a connection from here takes its place");
  if (server_id == kNobody) return connection->Close("this server is not wanted any more");
  Flush(server_id);
}

std::string DirectLinks::Impl::WhyRefused(const Connection& connection,
                                          std::int32_t server_id) const {
  if (!connection.accepted()) return "only the side that connects announces itself";
  if (server_id < 0) return "a server id is not negative";
  if (server_id == options.server_id) return "this server has that id itself";
  {
    // One that is not listed could not be connected to from here.
    MutexLock lock(mutex);
    const auto known = peers.find(server_id);
    if (server_id > options.server_id && known != peers.end() && known->second.listed) {
      return "the server with the smaller id connects";
    }
  }
  const std::int32_t before = ServerOf(connection);
  if (before != kNobody && before != server_id) return "it was another server before";
  return {};
}

void DirectLinks::Impl::OnAnnounce(Request<AnnounceProviderInfo> request) {
  const ConnectionPtr connection = request.connection();
  const std::int32_t server_id = request.argument().ServerId;
  const std::string refused = WhyRefused(*connection, server_id);
  if (!refused.empty()) {
    ZEZE_LOG_WARNING("{} announces itself as server {}: {}", connection->Describe(), server_id,
                     refused);
    {
      MutexLock lock(mutex);
      ++statistics.refused_announcements;
    }
    (void)request.AnswerCode(result_code::kLogicError);
    return connection->CloseWhenSent(refused);
  }
  (void)request.AnswerCode(result_code::kSuccess);
  ConnectionPtr replaced;
  std::shared_ptr<Connector> unwanted;
  {
    MutexLock lock(mutex);
    if (stopped || !connection->IsOpen()) return;
    connection->state<DirectState>()->server_id = server_id;
    Peer& peer = peers[server_id];
    if (peer.session == connection) return;
    replaced = std::exchange(peer.session, connection);
    peer.admitted = peer.listed;
    if (replaced != nullptr) ++statistics.replaced;
    // Two connections would take turns in replacing each other.
    unwanted = std::exchange(peer.connector, nullptr);
    changed.NotifyAll();
  }
  if (unwanted != nullptr) unwanted->Stop();
  if (replaced != nullptr) {
    replaced->Close(fmt::format("server {} has connected again", server_id));
  }
  Flush(server_id);
}

void DirectLinks::Impl::OnClose(const ConnectionPtr& connection) {
  const std::int32_t server_id = ServerOf(*connection);
  std::shared_ptr<Connector> unwanted;
  {
    MutexLock lock(mutex);
    if (closing.erase(connection->id()) > 0) changed.NotifyAll();
    const auto found = peers.find(server_id);
    if (found != peers.end() && found->second.session == connection) {
      Peer& peer = found->second;
      peer.session = nullptr;
      peer.admitted = false;
      if (!peer.listed) {
        unwanted = std::exchange(peer.connector, nullptr);
        if (peer.waiting.empty() && !peer.flushing) peers.erase(found);
      } else if (peer.connector == nullptr && MustConnect(server_id) && !stopped) {
        Connect(server_id, peer);
      }
      changed.NotifyAll();
    }
  }
  if (unwanted != nullptr) unwanted->Stop();
  if (server_id == kNobody) return;
  for (const LostCallback& callback : on_lost) callback(server_id, *connection);
}

void DirectLinks::Impl::OnServices(const std::string& name, const registry::ServiceList& list) {
  std::vector<std::string> identities;
  std::map<std::int32_t, Address> servers;
  // A subscription of version 0 is told of all versions.
  const auto found = list.versions.find(options.main_version);
  if (found != list.versions.end()) {
    for (const registry::ServiceInfo& info : found->second) {
      identities.push_back(info.identity);
      const std::int32_t server_id = ServerIdOf(info.identity);
      const bool has_address = !info.passive_ip.empty() && info.passive_port > 0 &&
                               info.passive_port <= std::numeric_limits<std::uint16_t>::max();
      if (server_id == kNobody || !has_address) {
        ZEZE_LOG_WARNING("{} of {} cannot be connected to: it is registered as {}:{}",
                         info.identity, name, info.passive_ip, info.passive_port);
        continue;
      }
      servers[server_id] = {info.passive_ip, static_cast<std::uint16_t>(info.passive_port)};
    }
  }
  auto ring = std::make_shared<const HashRing>(name, std::move(identities));

  std::vector<std::shared_ptr<Connector>> unwanted;
  std::vector<std::int32_t> ids;
  {
    MutexLock lock(mutex);
    if (stopped) return;
    Offered& service = offered[name];
    service.ring = std::move(ring);
    service.servers = std::move(servers);
    UpdatePeers(unwanted);
    for (const auto& [id, peer] : peers) ids.push_back(id);
    changed.NotifyAll();
  }
  for (const auto& connector : unwanted) connector->Stop();
  // A server that connected first may be admitted now.
  for (const std::int32_t id : ids) Flush(id);
}

void DirectLinks::Impl::UpdatePeers(std::vector<std::shared_ptr<Connector>>& unwanted) {
  std::map<std::int32_t, Address> wanted;
  for (const auto& [name, service] : offered) {
    for (const auto& [id, address] : service.servers) wanted[id] = address;
  }
  wanted.erase(options.server_id);
  for (const auto& [id, address] : wanted) {
    Peer& peer = peers[id];
    peer.listed = true;
    peer.admitted = true;
    const bool moved = peer.address != address;
    peer.address = address;
    if (!MustConnect(id)) {
      if (peer.connector != nullptr) unwanted.push_back(std::exchange(peer.connector, nullptr));
    } else if (moved || (peer.connector == nullptr && peer.session == nullptr)) {
      if (peer.connector != nullptr) unwanted.push_back(std::exchange(peer.connector, nullptr));
      Connect(id, peer);
    }
  }
  for (auto it = peers.begin(); it != peers.end();) {
    Peer& peer = it->second;
    peer.listed = wanted.contains(it->first);
    // An open connection stays: perhaps only the service manager is out of reach.
    const bool gone = !peer.listed && peer.session == nullptr;
    if (gone && peer.connector != nullptr) {
      unwanted.push_back(std::exchange(peer.connector, nullptr));
    }
    const bool forgotten = gone && peer.waiting.empty() && !peer.flushing;
    it = forgotten ? peers.erase(it) : std::next(it);
  }
}

bool DirectLinks::Impl::MustConnect(std::int32_t server_id) const {
  if (server_id > options.server_id) return true;
  // A smaller one that offers the same as this server knows of it.
  return std::ranges::none_of(offered, [&](const auto& service) {
    return service.second.here && service.second.servers.contains(server_id);
  });
}

void DirectLinks::Impl::Connect(std::int32_t server_id, Peer& peer) {
  ZEZE_LOG_INFO("server {} connects to server {} at {}:{}", options.server_id, server_id,
                peer.address.host, peer.address.port);
  peer.connector = outgoing->Connect({.host = peer.address.host,
                                      .port = peer.address.port,
                                      .first_delay = options.reconnect_first,
                                      .delay_max = options.reconnect_max,
                                      .tls = options.connect_tls});
}

void DirectLinks::Impl::WithConnection(std::int32_t server_id, std::chrono::nanoseconds patience,
                                       std::size_t bytes, Use use) {
  ConnectionPtr connection;
  std::optional<Error> refused;
  std::uint64_t id = 0;
  {
    MutexLock lock(mutex);
    if (stopped) {
      refused = Error(ErrorCode::kShuttingDown, "the connections between servers are closed");
    } else {
      Peer& peer = peers[server_id];
      if (peer.usable() && peer.waiting.empty() && !peer.flushing) {
        connection = peer.session;
      } else if (peer.waiting.size() >= options.waiting_max ||
                 peer.waiting_bytes + bytes > options.waiting_bytes_max ||
                 waiting_total >= options.waiting_max_total) {
        refused = Error(ErrorCode::kOverloaded, fmt::format("{} calls wait for server {} already",
                                                            peer.waiting.size(), server_id));
      } else {
        id = ++last_waiting;
        peer.waiting.push_back({id, bytes, std::move(use)});
        peer.waiting_bytes += bytes;
        ++waiting_total;
      }
    }
  }
  // It was moved only if neither is the case.
  // NOLINTBEGIN(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  if (refused.has_value()) return use(std::move(*refused));
  if (connection != nullptr) return use(std::move(connection));
  // NOLINTEND(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  io.PostAfter(patience,
               Task("give up waiting for a server", [weak = weak_from_this(), server_id, id] {
                 if (const auto self = weak.lock()) self->Expire(server_id, id);
               }));
}

void DirectLinks::Impl::Flush(std::int32_t server_id) {
  bool mine = false;
  for (;;) {
    std::optional<Waiting> next;
    ConnectionPtr connection;
    {
      MutexLock lock(mutex);
      const auto found = peers.find(server_id);
      if (found == peers.end()) return;
      Peer& peer = found->second;
      if (peer.flushing && !mine) return;
      mine = peer.flushing = peer.usable() && !peer.waiting.empty();
      if (!mine) return;
      next = std::move(peer.waiting.front());
      peer.waiting.pop_front();
      peer.waiting_bytes -= next->bytes;
      --waiting_total;
      connection = peer.session;
    }
    next->use(std::move(connection));
  }
}

void DirectLinks::Impl::Expire(std::int32_t server_id, std::uint64_t waiting_id) {
  std::optional<Waiting> expired;
  {
    MutexLock lock(mutex);
    const auto found = peers.find(server_id);
    if (found == peers.end()) return;
    Peer& peer = found->second;
    const auto waiting = std::ranges::find(peer.waiting, waiting_id, &Waiting::id);
    if (waiting == peer.waiting.end()) return;
    expired = std::move(*waiting);
    peer.waiting.erase(waiting);
    peer.waiting_bytes -= expired->bytes;
    --waiting_total;
    const bool idle = peer.waiting.empty() && !peer.flushing;
    if (!peer.listed && peer.session == nullptr && idle) peers.erase(found);
  }
  expired->use(Error(ErrorCode::kUnavailable,
                     fmt::format("server {} has not connected in time", server_id)));
}

std::string DirectLinks::Impl::WhatIsMissing(const std::set<std::string>& offered_here) const {
  for (const auto& [name, service] : offered) {
    if (service.ring == nullptr) return "the service manager has not said who offers " + name;
    if (offered_here.contains(name) && !service.servers.contains(options.server_id)) {
      return fmt::format("server {} itself is not listed as offering {}", options.server_id, name);
    }
  }
  for (const auto& [id, peer] : peers) {
    if (peer.listed && peer.session == nullptr) {
      return fmt::format("server {} at {}:{} is not connected", id, peer.address.host,
                         peer.address.port);
    }
  }
  return {};
}

void DirectLinks::Impl::CloseWhenSent() {
  std::vector<ConnectionPtr> open = incoming->connections();
  std::ranges::move(outgoing->connections(), std::back_inserter(open));
  {
    MutexLock lock(mutex);
    for (const ConnectionPtr& connection : open) closing.insert(connection->id());
  }
  for (const ConnectionPtr& connection : open) connection->CloseWhenSent("this server stops");
  const std::chrono::nanoseconds deadline = io.clock().Now() + options.close_timeout;
  MutexLock lock(mutex);
  while (!closing.empty() && io.clock().WaitUntil(changed, mutex, deadline)) {
  }
}

void DirectLinks::Impl::Stop() {
  std::vector<std::string> names;
  std::vector<Waiting> waiting;
  {
    MutexLock lock(mutex);
    if (std::exchange(stopped, true)) return;
    for (const auto& [name, service] : offered) names.push_back(name);
    for (auto& [id, peer] : peers) {
      std::ranges::move(peer.waiting, std::back_inserter(waiting));
      peer.waiting.clear();
      peer.waiting_bytes = 0;
    }
    waiting_total = 0;
  }
  for (const std::string& name : names) agent.Unsubscribe(name);
  for (Waiting& each : waiting) {
    each.use(Error(ErrorCode::kShuttingDown, "the connections between servers are closed"));
  }
  CloseWhenSent();
  incoming.reset();
  outgoing.reset();
}

DirectLinks::DirectLinks(IoThreads& io, registry::RegistryAgent& agent, DirectLinksOptions options)
    : impl_(std::make_shared<Impl>(io, agent, std::move(options))) {
  impl_->AddHandlers();
}

DirectLinks::~DirectLinks() {
  Stop();
}

Service& DirectLinks::incoming() {
  return *impl_->incoming;
}

Service& DirectLinks::outgoing() {
  return *impl_->outgoing;
}

void DirectLinks::AddService(const std::string& name, bool offered_here) {
  MutexLock lock(impl_->mutex);
  ZEZE_REQUIRE(!impl_->started, "service " + name + " was added after the start of direct links");
  if (offered_here) impl_->offered[name].here = true;
  impl_->offered.try_emplace(name);
}

void DirectLinks::OnLost(LostCallback callback) {
  MutexLock lock(impl_->mutex);
  ZEZE_REQUIRE(!impl_->started, "OnLost must be called before the start of direct links");
  ZEZE_REQUIRE(callback != nullptr, "OnLost of direct links was given an empty callback");
  impl_->on_lost.push_back(std::move(callback));
}

Result<void> DirectLinks::Start() {
  std::vector<std::string> names;
  {
    MutexLock lock(impl_->mutex);
    if (impl_->started) {
      return Error(ErrorCode::kInvalidArgument, "direct links can be started only once");
    }
    impl_->started = true;
    for (const auto& [name, service] : impl_->offered) names.push_back(name);
  }
  if (Result<void> listening = impl_->Listen(); !listening.ok()) return listening;
  for (const std::string& name : names) {
    impl_->agent.Subscribe({.name = name, .version = impl_->options.main_version},
                           [weak = std::weak_ptr(impl_), name](const registry::ServiceListPtr& list,
                                                               const registry::ServiceChange&) {
                             if (const auto impl = weak.lock()) impl->OnServices(name, *list);
                           });
  }
  return {};
}

void DirectLinks::Stop() {
  impl_->Stop();
}

const std::string& DirectLinks::ip() const {
  return impl_->ip;
}

std::uint16_t DirectLinks::port() const {
  return impl_->port;
}

std::int32_t DirectLinks::server_id() const {
  return impl_->options.server_id;
}

std::shared_ptr<const HashRing> DirectLinks::Ring(std::string_view service) const {
  MutexLock lock(impl_->mutex);
  const auto found = impl_->offered.find(service);
  return found == impl_->offered.end() ? nullptr : found->second.ring;
}

ConnectionPtr DirectLinks::Find(std::int32_t server_id) const {
  MutexLock lock(impl_->mutex);
  const auto found = impl_->peers.find(server_id);
  if (found == impl_->peers.end() || !found->second.usable()) return nullptr;
  return found->second.session;
}

std::int32_t DirectLinks::ServerOf(const Connection& connection) {
  const auto* state = connection.state<DirectState>();
  return state == nullptr ? kNobody : state->server_id.load();
}

void DirectLinks::WithConnection(std::int32_t server_id, std::chrono::nanoseconds patience,
                                 std::size_t bytes, Use use) {
  impl_->WithConnection(server_id, patience, bytes, std::move(use));
}

Result<void> DirectLinks::AwaitConnected(std::chrono::nanoseconds patience,
                                         const std::set<std::string>& offered_here) const {
  Clock& clock = impl_->io.clock();
  const std::chrono::nanoseconds deadline = clock.Now() + patience;
  MutexLock lock(impl_->mutex);
  for (;;) {
    std::string missing = impl_->WhatIsMissing(offered_here);
    if (missing.empty()) return {};
    if (!clock.WaitUntil(impl_->changed, impl_->mutex, deadline)) {
      missing = impl_->WhatIsMissing(offered_here);
      if (missing.empty()) return {};
      return Error(ErrorCode::kUnavailable, std::move(missing));
    }
  }
}

DirectLinks::Statistics DirectLinks::GetStatistics() const {
  MutexLock lock(impl_->mutex);
  Statistics statistics = impl_->statistics;
  for (const auto& [id, peer] : impl_->peers) {
    if (peer.usable()) ++statistics.connected;
  }
  statistics.waiting = impl_->waiting_total;
  return statistics;
}

}  // namespace zeze::arch
