// Client: a program's connection to the gateways of a cluster.
//
//   Client client(io, {.gateways = {{"gate1.example.com", 10000}, {"gate2.example.com", 10000}},
//                      .authenticate = AuthenticateBy<Auth>([&] { return NewToken(); })});
//   client.On<SMoved>([](const BMoved& moved) { ... });
//   client.OnReliable<SMail>([](const BMail& mail) { ... });   // Once each, whatever breaks.
//   client.OnReady([&] { ... });                          // Also after each reconnection.
//   client.Start();
//   Result<RpcReply<Move>> reply = client.CallAndWait<Move>({.x = 1});

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "Zeze/Builtin/LinkdBase.h"
#include "zeze/base/result.h"
#include "zeze/client/login_as.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/tls.h"
#include "zeze/serialize/byte_reader.h"

namespace zeze {

// With the handshake, and a keep-alive that finds dead gateways.
ServiceOptions DefaultClientServiceOptions();

// Says on a new connection who the client is; `done` once, with the outcome, on any thread.
using Authentication = std::function<void(const ConnectionPtr& connection,
                                          std::function<void(const Result<void>& outcome)> done)>;

// By an rpc of the gateway, whose argument is made anew for each connection: tokens are good for
// one use, and may be bound to the TLS connection (Connection::TlsBinding). Any result code but 0
// means no.
template <RpcProtocol P>
Authentication AuthenticateBy(
    std::function<typename P::Argument(const Connection& connection)> argument);
template <RpcProtocol P>
Authentication AuthenticateBy(std::function<typename P::Argument()> argument);

struct ClientOptions {
  struct Gateway {
    std::string host = {};
    std::uint16_t port = 0;
  };
  // One of them is used; the next when that one is lost. The first is chosen by chance, so that
  // clients spread. One that cannot be reached is followed by the next immediately.
  std::vector<Gateway> gateways = {};

  ServiceOptions service = DefaultClientServiceOptions();

  // Null: ready as soon as it is connected.
  Authentication authenticate = nullptr;

  // Who to log in as, if that is known from the beginning: as Client::LogIn.
  std::optional<LoginAs> login = std::nullopt;

  // Null: not encrypted, or by the handshake only. The certificate must be for tls_name; empty: for
  // the gateway's host.
  TlsContextPtr tls = nullptr;
  std::string tls_name = {};

  // After a loss, a refusal, or when no gateway could be reached: again after first_delay, then
  // twice as long each time, up to delay_max; of each delay a half is left to chance, so that
  // clients of a lost gateway do not all come together. From the beginning once the client was
  // ready.
  std::chrono::nanoseconds first_delay = std::chrono::seconds(1);
  std::chrono::nanoseconds delay_max = std::chrono::seconds(8);
  // A gateway that is crowded says when to come again; nobody is sent away for longer than that.
  std::chrono::nanoseconds retry_after_max = std::chrono::minutes(2);
  // To connect, authenticate and log in; then the next gateway is tried.
  std::chrono::nanoseconds attempt_timeout = std::chrono::seconds(5);

  // How often to ask the server for reliable notifies that were lost on the way, if none was
  // confirmed meanwhile. 0: never.
  std::chrono::nanoseconds notify_poll_period = std::chrono::seconds(30);

  // Whether to connect again after a server has kicked this client (Client::OnKicked). Null: yes,
  // unless the same role or account has logged in elsewhere (code 4): two clients that both come
  // back would kick each other for ever.
  std::function<bool(const Zeze::Builtin::LinkdBase::BReportError& kick)> reconnect_after_kick =
      nullptr;
};

// Guarantees:
//   - Messages are handled, and calls complete, as Connection promises: in order, a call exactly
//     once and at once when its connection is lost. Nothing is sent again by itself.
//   - OnReady and OnLost alternate.
//   - Reliable notifies of a login are handled once, in the order in which servers sent them and
//     without a gap, over any number of connections, gateways and servers: from a login with
//     LoginOutcome::kFresh to the next such login.
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
  // Reliable notifies (Logins::SendReliable at the servers), whatever else comes. Those of types
  // without a handler are dropped. What a handler has returned from is confirmed to the server.
  template <OneWayProtocol P, typename Handler>
    requires std::is_invocable_v<Handler&, const typename P::Argument&>
  void OnReliable(Handler handler) {
    HandleReliable(
        P::kDescriptor,
        [handler = std::move(handler)](std::string_view payload) mutable -> Result<void> {
          ByteReader in(payload);
          typename P::Argument argument;
          argument.Decode(in);
          if (!in.ok()) return in.ToError(P::kDescriptor.full_name);
          handler(argument);
          return {};
        });
  }
  // Logged in, before anything of that login is handled. After kFresh the application fetches its
  // whole state.
  void OnLogin(std::function<void(LoginOutcome outcome)> callback);

  // What the gateway says about this client: kicked, no server, server busy, server lost.
  void OnReportError(
      std::function<void(const Zeze::Builtin::LinkdBase::BReportError& report)> callback);
  // Connected and authenticated.
  void OnReady(std::function<void()> callback);
  void OnLost(std::function<void(const Error& why)> callback);
  // A server has kicked this client, and it does not connect again until Reconnect is called. After
  // OnLost.
  void OnKicked(std::function<void(const Zeze::Builtin::LinkdBase::BReportError& kick)> callback);
  // An attempt that came to nothing; the next one follows.
  void OnAttemptFailed(std::function<void(const Error& why)> callback);

  // Begins to connect. Fails with kInvalidArgument if there is no gateway.
  Result<void> Start();
  // Closes the connection, makes no more, and returns when no callback runs any more. Not from
  // callbacks, nor on network threads.
  void Stop();

  bool ready() const { return connection() != nullptr; }
  // Blocks until it is. Fails with kUnavailable when patience ends, with the last failure of each
  // gateway in the message, and immediately if the client was kicked and stays away.
  Result<void> AwaitReady(std::chrono::nanoseconds patience);

  // Logs in on this connection and on every later one; there before the client is ready. A server
  // that is lost is replaced by another one meanwhile, on the same connection. `done`, unless null,
  // runs once: when this succeeds, or when a server refuses it, and then the client forgets it. It
  // does not run if the client is stopped before.
  // Another login than the present one begins with a new connection. From any thread, at any time.
  using LoginDone = std::function<void(const Result<LoginOutcome>& outcome)>;
  void LogIn(LoginAs as, LoginDone done = nullptr);
  void LogOut();
  bool logged_in() const;

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

  // Closes the present connection and connects again, not before `at_least`. Also after a kick.
  void Reconnect(std::chrono::nanoseconds at_least);

 private:
  class Impl;

  Service& service();
  void HandleReliable(const ProtocolDescriptor& protocol,
                      std::function<Result<void>(std::string_view payload)> handler);
  Error NotReady() const;

  const std::unique_ptr<Impl> impl_;
};

template <RpcProtocol P>
Authentication AuthenticateBy(std::function<typename P::Argument()> argument) {
  return AuthenticateBy<P>(std::function<typename P::Argument(const Connection&)>(
      [argument = std::move(argument)](const Connection&) { return argument(); }));
}

template <RpcProtocol P>
Authentication AuthenticateBy(
    std::function<typename P::Argument(const Connection& connection)> argument) {
  return [argument = std::move(argument)](const ConnectionPtr& connection,
                                          std::function<void(const Result<void>&)> done) {
    auto shared = std::make_shared<std::function<void(const Result<void>&)>>(std::move(done));
    const Result<void> sent =
        connection->Call<P>(argument(*connection), {}, [shared](const RpcReply<P>& reply) {
          if (reply.ok()) return (*shared)({});
          (*shared)(Error(ErrorCode::kUnavailable, "the gateway refuses this client, code " +
                                                       std::to_string(reply.result_code)));
        });
    if (!sent.ok()) (*shared)(sent);
  };
}

}  // namespace zeze
