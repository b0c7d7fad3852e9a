// DirectLinks: the connections between the servers of a cluster, one for each pair, and who offers
// which service.
//
//   DirectLinks links(io, agent, {.server_id = 7});
//   links.Handle<Transmit>([](Message<Transmit> message) { ... });
//   links.AddService("Game.Server.Module#11013");
//   if (auto started = links.Start(); !started.ok()) return Fail(started.error());
//   if (ConnectionPtr to = links.Find(9)) to->Send<Transmit>(argument);

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/arch/ring/hash_ring.h"
#include "zeze/base/result.h"
#include "zeze/base/unique_function.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/tls.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch {

// With the handshake, and room for the calls of a whole server.
ServiceOptions DefaultDirectServiceOptions();

struct DirectLinksOptions {
  // Of this server.
  std::int32_t server_id = 0;
  // Servers of other main versions do not exist for this one.
  std::int64_t main_version = 0;

  // Where others reach this server. Empty: 127.0.0.1, for servers of one machine. Port 0: any. Keep
  // it inside the machine room, or use TLS: whoever gets in can call everything.
  std::string ip = {};
  std::uint16_t port = 0;
  // What others are told; empty: the ip that it listens on, which must then be one.
  std::string advertised_ip = {};
  TlsContextPtr listen_tls = nullptr;
  TlsContextPtr connect_tls = nullptr;

  ServiceOptions service = DefaultDirectServiceOptions();
  // Of connections that this server opened. The other side's are not watched: peers send no sign of
  // life by themselves.
  KeepAliveOptions keep_alive = {.check_period = std::chrono::seconds(2),
                                 .receive_timeout = std::chrono::seconds(15),
                                 .send_timeout = std::chrono::seconds(5)};
  std::chrono::nanoseconds reconnect_first = std::chrono::milliseconds(200);
  std::chrono::nanoseconds reconnect_max = std::chrono::seconds(4);

  // Of one server that is not connected: what waits for it. More fails with kOverloaded, as does
  // more than waiting_max_total for all of them.
  std::size_t waiting_max = 4096;
  std::size_t waiting_bytes_max = 16 << 20;
  std::size_t waiting_max_total = 65536;

  // How long Stop waits until the last answers have been written.
  std::chrono::nanoseconds close_timeout = std::chrono::seconds(2);
};

// Of two servers that offer the same the one with the smaller id connects; the other one learns who
// that is from its announcement. A server that offers nothing of what it calls connects itself.
//
// Guarantees:
//   - One connection for each server: of one that connects again the old connection is closed, and
//     calls on it fail at once.
//   - All servers with the same list compute the same ring.
//   - A connection that works is not given up because the service manager has lost sight of its
//     server.
//
// Handlers and services are added before Start. Thread-safe otherwise.
class DirectLinks {
 public:
  // Both outlive this. The agent is started and stopped by the caller; it must not have another
  // subscription of the same services.
  DirectLinks(IoThreads& io, registry::RegistryAgent& agent, DirectLinksOptions options);
  ~DirectLinks();  // Calls Stop.
  DirectLinks(const DirectLinks&) = delete;
  DirectLinks& operator=(const DirectLinks&) = delete;

  // For messages of other servers: void(Request<P>) or void(Message<P>), on a network thread.
  template <typename P, typename Handler>
  void Handle(Handler handler) {
    incoming().template Handle<P>(handler);
    outgoing().template Handle<P>(std::move(handler));
  }

  // Who offers it is to be known here, and connected. `offered_here`: this server is one of them.
  void AddService(const std::string& name, bool offered_here);

  // A connection of a server has closed, perhaps because there is a newer one; on a network thread.
  using LostCallback = std::function<void(std::int32_t server_id, const Connection& connection)>;
  void OnLost(LostCallback callback);

  Result<void> Start();

  // What waits fails with kShuttingDown, calls with kClosed. Not from network threads.
  void Stop();

  // Where others reach this server. After Start.
  const std::string& ip() const;
  std::uint16_t port() const;
  std::int32_t server_id() const;

  // Null: nobody has said yet who offers it.
  std::shared_ptr<const HashRing> Ring(std::string_view service) const;

  // Null if the server is not connected, or of another version.
  ConnectionPtr Find(std::int32_t server_id) const;
  // Which server is at the other end; -1 if it has not said so.
  static std::int32_t ServerOf(const Connection& connection);

  // The connection of a server, now or as soon as there is one, for each server in the order of
  // these calls. Fails with kUnavailable when the patience ends, kOverloaded if too much waits
  // (`bytes` is what this one keeps meanwhile), kShuttingDown. `use` must not wait; it runs here or
  // on a network thread.
  using Use = UniqueFunction<void(Result<ConnectionPtr> connection)>;
  void WithConnection(std::int32_t server_id, std::chrono::nanoseconds patience, std::size_t bytes,
                      Use use);

  // Until all services are known and all servers that offer one are connected, and this server is
  // listed for those that it offers itself. Not on network threads. Fails with kUnavailable, naming
  // what is missing.
  Result<void> AwaitConnected(std::chrono::nanoseconds patience,
                              const std::set<std::string>& offered_here) const;

  struct Statistics {
    std::size_t connected = 0;
    std::size_t waiting = 0;
    std::uint64_t refused_announcements = 0;
    std::uint64_t replaced = 0;  // Connections, by a newer one of the same server.
  };
  Statistics GetStatistics() const;

 private:
  struct Impl;

  Service& incoming();
  Service& outgoing();

  const std::shared_ptr<Impl> impl_;
};

// The server id that an identity of the service manager stands for; -1 if it is none.
std::int32_t ServerIdOf(std::string_view identity);

}  // namespace zeze::arch
