// LinkSet: the connections to all gateways: makes them, introduces this server on each, sends.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/provider/internal/client_table.h"
#include "zeze/arch/provider/internal/link.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/service/service_list.h"

namespace zeze::arch::internal {

// What a gateway is told on every new connection.
struct Introduction {
  Zeze::Builtin::Provider::BAnnounceProviderInfo announcement = {};
  Zeze::Builtin::Provider::BBind static_modules = {};
  Zeze::Builtin::Provider::BSubscribe dynamic_modules = {};
};

// Of one connection to a gateway.
struct LinkConnection final : ConnectionState {
  LinkConnection(LinkPtr link_of_it, Links& links)
      : link(std::move(link_of_it)), clients(links, link->name()) {}

  const LinkPtr link;

  // Of the connection's network thread.
  ClientTable clients;
  bool output_full = false;  // More than a half of its bound waited when the last message came.
};

// All run on network threads.
struct LinkHandlers {
  std::function<Result<void>(LinkConnection& connection, const Frame& dispatch)> on_dispatch;
  std::function<void(LinkConnection& connection,
                     const Zeze::Builtin::Provider::BLinkBroken& broken)>
      on_broken;
  // Another server has taken a client over for some modules that were bound to this one.
  std::function<void(LinkConnection& connection, const Zeze::Builtin::Provider::BUnbound& taken)>
      on_unbound;
};

// Thread-safe.
class LinkSet final : public Links {
 public:
  LinkSet(IoThreads& io, ServiceOptions options, ConnectorOptions connector,
          Introduction introduction, LinkHandlers handlers);

  // Connects to those that are new. One that is not listed any more is kept as long as its
  // connection lives: that proves more than a list.
  void Update(const registry::ServiceList& gateways);

  // Whether gateways may give new clients to this server.
  void SetReady(bool ready);

  // Off the lists of all gateways: they send nothing more for static modules once they have
  // agreed, nor for dynamic ones, whose clients are told. False if not all have by the deadline.
  bool Leave(Clock& clock, std::chrono::nanoseconds deadline);

  // Waits until the gateways have handled everything that was sent to them.
  bool Settle(Clock& clock, std::chrono::nanoseconds deadline);

  // Closes all connections. Afterwards nothing is handled any more.
  void Stop();

  using Links::Send;
  Result<void> Send(std::string_view link_name, std::span<const std::int64_t> link_sids,
                    std::string_view frame, SendCompletion done) override;
  void Broadcast(std::string_view frame, bool only_same_version) override;
  Result<void> Kick(const LinkAddress& to, std::int32_t code, std::string_view description,
                    std::int32_t control) override;
  Result<void> SetUserState(const LinkAddress& to,
                            const Zeze::Builtin::Provider::BUserState& state) override;
  Result<void> Bind(const LinkAddress& to, std::span<const std::int32_t> modules,
                    std::function<void(const Result<void>&)> done) override;
  Result<void> Unbind(const LinkAddress& to, std::span<const std::int32_t> modules,
                      std::function<void(const Result<void>&)> done) override;
  Result<void> CheckSession(const LinkAddress& to, SendCompletion done) override;
  std::vector<std::string> names() const override;

  // To one client; without looking for its gateway, and without waiting for the outcome.
  static Result<void> SendTo(const Link& link, std::int64_t sid, std::int64_t type_id,
                             std::string_view frame);

 private:
  struct Entry {
    LinkPtr link;
    std::shared_ptr<Connector> connector;
    bool listed = true;
  };

  void OnOpen(const ConnectionPtr& connection);
  void OnClose(const ConnectionPtr& connection);
  void Introduce(const ConnectionPtr& connection) ZEZE_REQUIRES(mutex_);
  void TakeLeaveOf(Link& link, const ConnectionPtr& connection,
                   const std::shared_ptr<WaitGroup>& agreed);
  Entry* FindEntry(const Connector* connector) ZEZE_REQUIRES(mutex_);
  Result<ConnectionPtr> ConnectionTo(std::string_view link_name) const;
  bool IsLeaving() const;
  Result<void> CheckRoom(std::string_view link_name, const Connection& connection) const;
  Result<LinkPtr> FindLink(std::string_view link_name) const;
  std::vector<std::pair<LinkPtr, ConnectionPtr>> OpenLinks() const;
  Zeze::Builtin::Provider::BBind BindOf(std::int64_t sid,
                                        std::span<const std::int32_t> modules) const;

  const ConnectorOptions connector_;
  const Introduction introduction_;
  const LinkHandlers handlers_;
  const std::size_t push_bytes_max_;  // More than this waits: nothing is pushed.

  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ZEZE_GUARDED_BY(mutex_);
  bool ready_ ZEZE_GUARDED_BY(mutex_) = false;
  bool leaving_ ZEZE_GUARDED_BY(mutex_) = false;

  Service service_;  // Ends first: its callbacks use the rest.
};

}  // namespace zeze::arch::internal
