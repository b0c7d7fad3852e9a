// Client: a program's connection to the gateways of a cluster.
//
//   Client client(io, {.gateways = {{"gate1.example.com", 10000}, {"gate2.example.com", 10000}},
//                      .authenticate = AuthenticateBy<Auth>([&] { return NewToken(); })});
//   client.On<SMoved>([](const BMoved& moved) { ... });
//   client.OnReady([&] { ... });                          // Also after each reconnection.
//   client.Start();
//   Result<RpcReply<Move>> reply = client.CallAndWait<Move>({.x = 1});

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Zeze/Builtin/LinkdBase.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/tls.h"

namespace zeze {

// With the handshake, and a keep-alive that finds dead gateways.
ServiceOptions DefaultClientServiceOptions();

// Says on a new connection who the client is; `done` once, with the outcome, on any thread.
using Authentication = std::function<void(const ConnectionPtr& connection,
                                          std::function<void(const Result<void>& outcome)> done)>;

// By an rpc of the gateway, whose argument is made anew for each connection: tokens are good for
// one use. Any result code but 0 means no.
template <RpcProtocol P>
Authentication AuthenticateBy(std::function<typename P::Argument()> argument);

struct ClientOptions {
  struct Gateway {
    std::string host = {};
    std::uint16_t port = 0;
  };
  // One of them is used; the next when that one is lost. The first is chosen by chance, so that
  // clients spread.
  std::vector<Gateway> gateways = {};

  ServiceOptions service = DefaultClientServiceOptions();

  // Null: ready as soon as it is connected.
  Authentication authenticate = nullptr;

  // Null: not encrypted, or by the handshake only. The certificate must be for tls_name; empty: for
  // the gateway's host.
  TlsContextPtr tls = nullptr;
  std::string tls_name = {};

  // After a loss or a failure: again after first_delay, then twice as long each time, up to
  // delay_max; of each delay a half is left to chance, so that clients of a lost gateway do not all
  // come at once. From the beginning once the client was ready.
  std::chrono::nanoseconds first_delay = std::chrono::seconds(1);
  std::chrono::nanoseconds delay_max = std::chrono::seconds(8);
  // A gateway that is crowded says when to come again; nobody is sent away for longer than that.
  std::chrono::nanoseconds retry_after_max = std::chrono::minutes(2);
  // To connect and authenticate; then the next gateway is tried.
  std::chrono::nanoseconds attempt_timeout = std::chrono::seconds(5);
};

// Guarantees:
//   - Messages are handled, and calls complete, as Connection promises: in order, a call exactly
//     once and at once when its connection is lost. Nothing is sent again by itself.
//   - OnReady and OnLost alternate.
//
// Callbacks run where ServiceOptions::dispatch says: inline on a network thread unless set
// otherwise; then they must not wait. They are set before Start. Thread-safe otherwise.
class Client {
 public:
  // The threads outlive the client.
  Client(IoThreads& io, ClientOptions options);
  ~Client();  // Calls Stop.
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Messages that a server sends by itself. Those of types without a handler are dropped.
  template <OneWayProtocol P, typename Handler>
    requires std::is_invocable_v<Handler&, const typename P::Argument&>
  void On(Handler handler) {
    service().Handle<P>([handler = std::move(handler)](const Message<P>& message) mutable {
      handler(message.argument);
    });
  }
  // What the gateway says about this client: kicked, no server, server busy, server lost.
  void OnReportError(
      std::function<void(const Zeze::Builtin::LinkdBase::BReportError& report)> callback);
  // Connected and authenticated.
  void OnReady(std::function<void()> callback);
  void OnLost(std::function<void(const Error& why)> callback);
  // An attempt that came to nothing; the next one follows.
  void OnAttemptFailed(std::function<void(const Error& why)> callback);

  // Begins to connect. Fails with kInvalidArgument if there is no gateway.
  Result<void> Start();
  // Closes the connection, makes no more, and returns when no callback runs any more. Not from
  // callbacks, nor on network threads.
  void Stop();

  bool ready() const { return connection() != nullptr; }
  // Blocks until it is. Fails with kUnavailable and the last failure when patience ends.
  Result<void> AwaitReady(std::chrono::nanoseconds patience);

  // Fail with kUnavailable while the client is not ready; otherwise as those of Connection.
  template <OneWayProtocol P>
  Result<void> Send(const typename P::Argument& argument) {
    const ConnectionPtr to = connection();
    if (to == nullptr) return NotReady();
    return to->Send<P>(argument);
  }
  template <RpcProtocol P, typename Completion>
    requires std::is_invocable_v<Completion&, RpcReply<P>>
  Result<void> Call(const typename P::Argument& argument, const CallOptions& options,
                    Completion completion) {
    const ConnectionPtr to = connection();
    if (to == nullptr) return NotReady();
    return to->Call<P>(argument, options, std::move(completion));
  }
  // Blocks. Not on network threads.
  template <RpcProtocol P>
  Result<RpcReply<P>> CallAndWait(const typename P::Argument& argument, CallOptions options = {}) {
    const ConnectionPtr to = connection();
    if (to == nullptr) return NotReady();
    return to->CallAndWait<P>(argument, options);
  }

  // Null while the client is not ready.
  ConnectionPtr connection() const;

  // Closes the present connection and connects again, not before `at_least`.
  void Reconnect(std::chrono::nanoseconds at_least);

 private:
  class Impl;

  Service& service();
  static Error NotReady();

  const std::unique_ptr<Impl> impl_;
};

template <RpcProtocol P>
Authentication AuthenticateBy(std::function<typename P::Argument()> argument) {
  return [argument = std::move(argument)](const ConnectionPtr& connection,
                                          std::function<void(const Result<void>&)> done) {
    auto shared = std::make_shared<std::function<void(const Result<void>&)>>(std::move(done));
    const Result<void> sent =
        connection->Call<P>(argument(), {}, [shared](const RpcReply<P>& reply) {
          if (reply.ok()) return (*shared)({});
          (*shared)(Error(ErrorCode::kUnavailable, "the gateway refuses this client, code " +
                                                       std::to_string(reply.result_code)));
        });
    if (!sent.ok()) (*shared)(sent);
  };
}

}  // namespace zeze
