// Provider: a server process behind gateways: it tells them which modules it offers and runs what
// they dispatch.
//
//   arch::Provider provider(application, io, agent, {.name_prefix = "Game.Server.Module#"});
//   provider.AddModule(game);                       // Before Start; the application has it too.
//   if (auto started = provider.Start(); !started.ok()) return Fail(started.error());
//   ...
//   provider.Stop();                                // Drains first: no accepted request is lost.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/module_binds.h"
#include "zeze/base/result.h"
#include "zeze/net/connector.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch {

// With the handshake, and room for many clients' output.
ServiceOptions DefaultLinkServiceOptions();

struct ProviderOptions {
  // Modules are registered as prefix + module id. It ends in '#'.
  std::string name_prefix = "Server.Module#";
  // Under which gateways are registered.
  std::string linkd_name = "Linkd";
  // a.b.c.d, 16 bits each; only a is compared.
  std::int64_t app_version = 0;

  // Where other servers reach this one (see redirect); registered with the modules.
  std::string direct_ip = {};
  std::int32_t direct_port = 0;

  ModuleBinds binds = {};
  ServiceOptions link_service = DefaultLinkServiceOptions();
  // How to reach gateways; who they are comes from the registry.
  ConnectorOptions link_connector = {};

  // Load report and overload.
  std::int32_t propose_max_online = 30'000;
  std::int32_t max_online_new = 100;
  std::chrono::nanoseconds report_period = std::chrono::seconds(2);
  std::chrono::nanoseconds overload_threshold = std::chrono::seconds(2);
  std::chrono::nanoseconds overload = std::chrono::seconds(4);

  // Requests of one client that wait or run; beyond it they are answered busy. Likewise of all.
  std::size_t client_requests_max = 64;
  std::size_t requests_max = 1 << 20;

  // How long Stop waits for requests that were accepted.
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(30);
};

// Guarantees:
//   - Messages of one account run one after the other in the order in which a gateway sent them;
//     different accounts run in parallel. (Protocols that the schema gives another DispatchMode
//     than Normal overtake: they are in order among each other only.)
//   - A handler's result is sent after its transaction has committed, and only then, behind what
//     the handler sent with SendAfterCommit.
//   - A request that was accepted is answered exactly once: by its handler, or with kBusy. It may
//     still be lost with the connection to its gateway, or with this process.
//
// Thread-safe after Start.
class Provider {
 public:
  // All outlive the provider. The agent is started by the caller.
  Provider(Application& application, IoThreads& io, registry::RegistryAgent& agent,
           ProviderOptions options);
  // Stops, if that was not done.
  ~Provider();
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  // Before Start.
  void AddModule(Module& module);

  // A client's connection has ended; once for each client that used this server. On a worker.
  using LinkBrokenHandler = std::function<void(const LinkAddress& address,
                                               const Zeze::Builtin::Provider::BLinkBroken& broken)>;
  void OnLinkBroken(LinkBrokenHandler handler);

  // Another server has bound a client for dynamic modules that were bound to this one: from now on
  // their messages go there. Not called if this server has unbound the client itself, or bound it
  // again since. Called on a worker, after the messages that the client sent to this server before.
  // Only our gateway reports it; gateways of Zeze 1.6 do not.
  using UnboundHandler = std::function<void(const LinkAddress& address,
                                            const Zeze::Builtin::Provider::BUnbound& taken)>;
  void OnUnbound(UnboundHandler handler);

  // How many users are here, and how many came since the last call; for the load report. Called
  // about once a second on a network thread: it must not wait.
  struct OnlineCount {
    std::int32_t online = 0;
    std::int32_t online_new = 0;
  };
  void SetOnlineCounter(std::function<OnlineCount()> counter);

  // Registers the modules, finds the gateways and connects to all of them. They send nothing before
  // SetReady(true), which Start does at its end unless told otherwise.
  Result<void> Start(bool ready = true);

  // False: gateways give this server no new clients; those it has stay.
  void SetReady(bool ready);

  // Takes this server off the gateways' lists, waits until everything accepted is answered, then
  // leaves. Clients are told to come again elsewhere.
  void Stop();

  Links& links();
  const ProviderOptions& options() const;

  struct Statistics {
    std::uint64_t dispatched = 0;
    std::uint64_t answered = 0;
    std::uint64_t shed = 0;           // Refused for overload.
    std::uint64_t refused = 0;        // Refused because too many waited.
    std::uint64_t unknown_types = 0;  // Kicked for it.
    std::uint64_t undecodable = 0;    // Kicked for it.
  };
  Statistics GetStatistics() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace zeze::arch
