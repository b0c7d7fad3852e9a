// RegistryAgent: a server's connection to the service manager.
//
//   RegistryAgent agent(io, pool, {.connector = {.host = "10.0.0.1", .port = 5001}});
//   agent.Start();
//   agent.Register({.name = "Shop", .identity = "7", .passive_ip = "10.0.0.7",
//                   .passive_port = 7001});
//   agent.Subscribe({.name = "Bank"}, [](const ServiceListPtr& list, const ServiceChange& change) {
//     ...
//   });
//   agent.AwaitSettled(std::chrono::seconds(10));   // The service manager has heard all of it.
//   ...
//   agent.Stop();

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/net/connector.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/service_list.h"

namespace zeze::registry {

// With the handshake, and room for long lists.
ServiceOptions DefaultRegistryAgentServiceOptions();

struct RegistryAgentOptions {
  ServiceOptions service = DefaultRegistryAgentServiceOptions();
  ConnectorOptions connector = {.host = "127.0.0.1", .port = 5001};

  // After a lost connection: services that the service manager does not name any more stay listed
  // for so long. See SubscribedList.
  std::chrono::nanoseconds hold = std::chrono::seconds(15);

  // For an answer of the service manager, and for ids altogether.
  std::chrono::nanoseconds call_timeout = std::chrono::seconds(10);

  // How long Stop tries to say goodbye while the service manager is away.
  std::chrono::nanoseconds goodbye_timeout = std::chrono::seconds(2);

  // Ids that are fetched at once. Those that are left when the process ends are never used.
  std::uint32_t id_block = 1000;

  // How busy a server is that offers a subscribed service. One at a time with the other callbacks.
  std::function<void(const ServerLoad& load)> on_load = nullptr;
};

// All callbacks of an agent run one after the other on the executor. A callback of a subscription
// gets the list as it is now and how it differs from the list of the call before (at first: from an
// empty one); lists in between may be left out.
using ServiceCallback =
    std::function<void(const ServiceListPtr& list, const ServiceChange& change)>;

// Whether this server takes over what another one has left. Compare the serial first. May take long
// and may throw (which means no); runs on the executor, beside other callbacks.
enum class TakeOver : std::uint8_t { kTaken, kRefused };
using OfflineHandler = std::function<TakeOver(const OfflineNotice& notice)>;

// Everything that was registered, subscribed or announced is remembered, and said again on every
// new connection: nothing fails because there is none at the moment.
//
// Thread-safe, except Start and Stop.
class RegistryAgent {
 public:
  // Both outlive the agent.
  RegistryAgent(IoThreads& io, Executor& callbacks, RegistryAgentOptions options);
  ~RegistryAgent();  // Calls Abandon.
  RegistryAgent(const RegistryAgent&) = delete;
  RegistryAgent& operator=(const RegistryAgent&) = delete;

  // Begins to connect. Fails with kInvalidArgument if the options name no address.
  Result<void> Start();

  // The first half of a stop: no callback is started any more, and what others leave is refused, so
  // that another server is asked for it; waits for callbacks that run. All else goes on, also the
  // lists. Not from callbacks.
  void StopCallbacks();

  // Says goodbye, so that nobody takes over, and waits for callbacks. Without a connection it waits
  // for one if there are offline notices, goodbye_timeout at most. Not from callbacks.
  void Stop();

  // Without a goodbye, as a crash would do it.
  void Abandon();

  bool connected() const;

  // Waits until the service manager has confirmed everything on the present connection. Fails with
  // kUnavailable when patience ends, and with kInvalidArgument, once, if it has refused something.
  Result<void> AwaitSettled(std::chrono::nanoseconds patience);

  // Fail with kInvalidArgument if an identity is not allowed (see IsValidIdentity).
  Result<void> Register(const ServiceInfo& info);  // Or changes it.
  Result<void> Edit(const ServiceEdit& edit);      // All at once.
  void Unregister(const ServiceKey& key);

  // Replaces a subscription of the same name.
  void Subscribe(const Subscription& subscription, ServiceCallback callback);
  // The callback may still be running when this returns; it is not started any more.
  void Unsubscribe(const std::string& name);

  // Null: not subscribed, or no answer has come yet. Also while there is no connection.
  ServiceListPtr Services(std::string_view name) const;

  // To all who have subscribed a service at this address. Lost if there is no connection.
  void SetLoad(const ServerLoad& load);

  // When this server is gone, one other server that has registered the same notify id is asked to
  // take over; `handler` is for what others leave. Success of AwaitSettled means that it is safe.
  void RegisterOffline(const OfflineNotice& notice, OfflineHandler handler);

  // This server is there, and these may not be: who does not show up in time is taken over. The
  // handler is that of RegisterOffline.
  void Announce(const Announcement& announcement);

  // Of a name each id comes once in the world. Wait; not on network threads. Fail with kUnavailable
  // when call_timeout is over.
  Result<IdBlock> AllocateIds(const std::string& name, std::uint32_t count);
  Result<std::int64_t> NextId(const std::string& name);  // From a block of this agent.
  Result<Id128> NextId128(const std::string& name);      // Over UDP.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zeze::registry
