// RegistryService: the service manager on the network (what `zeze service-manager` runs).
//
//   RegistryService registry(io, *storage, pool, {.acceptors = {{.port = 5001}}});
//   Result<void> started = registry.Start();
//   ...
//   registry.Stop();
//
// The machine (registry_server.h) lives on the network thread, which must be the only one of its
// IoThreads; what has to be saved is saved by the executor.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/registry_server.h"
#include "zeze/storage/storage.h"

namespace zeze::registry {

// With the handshake, and room for the lists that subscribers get.
ServiceOptions DefaultRegistryServiceOptions();

struct RegistryServiceOptions {
  ServiceOptions service = DefaultRegistryServiceOptions();
  std::vector<AcceptorOptions> acceptors = {{.port = 5001}};  // Without an address: 127.0.0.1.
  RegistryOptions machine = {};

  // Agents are asked for a sign of life so often; without one in time they are closed. 0: never.
  std::chrono::nanoseconds keep_alive_period = std::chrono::seconds(10);
  std::chrono::nanoseconds keep_alive_timeout = std::chrono::seconds(5);

  // A subscriber that has not confirmed an edit for so long is closed; it subscribes again.
  std::chrono::nanoseconds edit_timeout = std::chrono::seconds(30);

  // For a server to take over what another one left.
  std::chrono::nanoseconds offline_timeout = std::chrono::seconds(60);

  // Ids of 128 bits, on UDP, on the port of the first acceptor. Datagrams prove nothing about their
  // sender: they are off where acceptors use TLS.
  bool datagrams = true;

  // Ids of these names begin above: for whoever comes from another service manager.
  std::vector<std::pair<std::string, std::uint64_t>> raise_ids = {};
};

class RegistryService {
 public:
  // All outlive the service. The storage is the service's alone.
  RegistryService(IoThreads& io, Storage& storage, Executor& blocking,
                  RegistryServiceOptions options);
  ~RegistryService();  // Calls Stop.
  RegistryService(const RegistryService&) = delete;
  RegistryService& operator=(const RegistryService&) = delete;

  // Loads what an earlier life left, and listens. Errors say what to do.
  Result<void> Start();

  // Closes all connections; what servers have registered stays saved.
  void Stop();

  // Where the first acceptor listens.
  NetAddress address() const;

  struct Status {
    std::size_t sessions = 0;
    std::size_t services = 0;
    std::size_t offline_notices = 0;
  };
  // Waits for the network thread.
  Status GetStatus() const;

 private:
  class Impl;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final.
  std::unique_ptr<Impl> impl_;
};

}  // namespace zeze::registry
