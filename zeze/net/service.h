// Service: a named group of connections that speak the same protocols.
//
//   IoThreads io({});
//   Service service(io, {.name = "Game", .executor = &pool});
//   service.Handle<Login>([](Request<Login> request) { request.Answer({.role = 7}); });
//   service.OnClose([](const ConnectionPtr& connection, const Error& why) { ... });
//   Result<std::shared_ptr<Acceptor>> acceptor = service.Listen({.port = 5004});
//   ...
//   service.Stop();

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/unique_function.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"
#include "zeze/serialize/byte_reader.h"

namespace zeze {

struct HandlerOptions {
  // Absent: ServiceOptions::dispatch.
  std::optional<Dispatch> dispatch = std::nullopt;

  // For kParallel: another executor than the service's.
  Executor* executor = nullptr;
};

// An error closes the connection, with a log line.
using RawHandler = UniqueFunction<Result<void>(Connection& connection, const Frame& frame)>;

// The same for messages that are not handled here. `body` is everything behind the frame's header,
// as it came; the payload is its end.
using Forwarder =
    UniqueFunction<Result<void>(Connection& connection, const Frame& frame, std::string_view body)>;

// Guarantees, for each connection:
//   - OnOpen, then messages and completions of calls in the order in which they arrived, then the
//     completions of calls that never will be answered, then OnClose: one after the other, if all
//     of them use the same one of kInline and kOrdered. Inline ones overtake ordered ones.
//   - A handler that throws is logged; its request is answered with kException.
//   - A message of an unknown type, of the wrong family (one-way for an rpc) or with an argument
//     that cannot be decoded closes the connection, with a log line. Except those of Zeze 1.6 that
//     are in peer_messages.h: they are counted and otherwise ignored.
//
// Handlers are added before the first Listen or Connect. Thread-safe otherwise.
class Service {
 public:
  Service(IoThreads& io, ServiceOptions options);

  // Calls Stop.
  ~Service();

  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Of an rpc: void(Request<P>).
  template <RpcProtocol P, typename Handler>
    requires std::is_invocable_v<Handler&, Request<P>>
  void Handle(Handler handler, const HandlerOptions& options = {}) {
    HandleRaw(
        P::kDescriptor,
        [handler = std::move(handler)](Connection& connection,
                                       const Frame& frame) mutable -> Result<void> {
          typename P::Argument argument;
          ByteReader in(frame.payload);
          argument.Decode(in);
          if (!in.ok()) return in.ToError(P::kDescriptor.full_name);
          handler(
              Request<P>(Responder(connection.shared_from_this(), P::kDescriptor, frame.session_id),
                         frame.result_code, std::move(argument)));
          return {};
        },
        options);
  }

  // Of a one-way protocol: void(Message<P>).
  template <OneWayProtocol P, typename Handler>
    requires std::is_invocable_v<Handler&, Message<P>>
  void Handle(Handler handler, const HandlerOptions& options = {}) {
    HandleRaw(
        P::kDescriptor,
        [handler = std::move(handler)](Connection& connection,
                                       const Frame& frame) mutable -> Result<void> {
          Message<P> message{.connection = connection.shared_from_this(),
                             .result_code = frame.result_code};
          ByteReader in(frame.payload);
          message.argument.Decode(in);
          if (!in.ok()) return in.ToError(P::kDescriptor.full_name);
          handler(std::move(message));
          return {};
        },
        options);
  }

  // Without decoding; the family has been checked. The handler of an rpc must see to an answer
  // (Connection::SendAnswer). The descriptor outlives the service. A null handler: the protocol is
  // known, but its requests are answered with kNotImplemented.
  void HandleRaw(const ProtocolDescriptor& protocol, RawHandler handler,
                 const HandlerOptions& options = {});

  // For whoever passes messages on, as a gateway does: what this service has no handler for goes to
  // the forwarder instead of being dispatched, on the network thread and in the order in which it
  // came. Answers of such types too, unless a call of this connection waits for them. Without it
  // messages of unknown types close their connection, and answers that nobody waits for are
  // dropped.
  void ForwardOthers(Forwarder forwarder);

  void OnOpen(std::function<void(const ConnectionPtr& connection)> callback);
  // The reason is kCorrupt if the connection was closed for what its peer sent, else kUnavailable.
  void OnClose(std::function<void(const ConnectionPtr& connection, const Error& reason)> callback);

  // Fails with kInUse if somebody listens there already, else with kUnavailable or
  // kInvalidArgument; the message names the address and what can be done.
  Result<std::shared_ptr<Acceptor>> Listen(const AcceptorOptions& options);

  // Starts connecting; what becomes of it shows in the connector and in OnOpen.
  std::shared_ptr<Connector> Connect(const ConnectorOptions& options);

  // Closes acceptors, connectors and connections, and returns when OnClose has run for all of them.
  // Not from network threads, nor from handlers.
  void Stop();

  // Ready connections.
  std::size_t connection_count() const;
  std::vector<ConnectionPtr> connections() const;
  ConnectionPtr FindConnection(std::int64_t id) const;  // Null if there is none.

  struct Statistics {
    std::uint64_t accepted = 0;              // Connections, ready or not.
    std::uint64_t refused = 0;               // At connections_max.
    std::uint64_t not_admitted = 0;          // By ServiceOptions::admit.
    std::uint64_t handshakes_failed = 0;     // Closed before they were ready, for whatever reason:
    std::uint64_t handshake_timeouts = 0;    // for this one,
    std::uint64_t handshakes_displaced = 0;  // or at handshakes_max, for another one.
    std::uint64_t upgrades_refused = 0;      // Or answered with a status of HTTP.
    std::uint64_t protocol_errors = 0;       // Closed for what their peer sent. Among them:
    std::uint64_t oversize_frames = 0;       // it claimed too large a frame;
    std::uint64_t bad_compression = 0;       // it cannot be decompressed,
    std::uint64_t compression_bombs = 0;     // or becomes too large.
    std::uint64_t write_stalls = 0;          // Closed because their peer does not read.
    std::uint64_t sends_refused = 0;         // Output full.
    std::uint64_t late_answers = 0;          // Dropped: nobody waited for them any more.
    std::uint64_t peer_messages = 0;         // Of Zeze 1.6, without a handler: peer_messages.h.
  };
  Statistics GetStatistics() const;

  const std::string& name() const;
  const ServiceOptions& options() const;
  IoThreads& io() const;

  // Of this layer.
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  const std::shared_ptr<Impl> impl_;
};

}  // namespace zeze
