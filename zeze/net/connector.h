// Connector: keeps one connection to an address open.
//
//   std::shared_ptr<Connector> connector = service.Connect({.host = "10.0.0.7", .port = 5004});
//   Result<ConnectionPtr> connection = connector->WaitReady(std::chrono::seconds(5));

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "zeze/base/result.h"
#include "zeze/net/rpc.h"
#include "zeze/net/tls.h"
#include "zeze/net/websocket_options.h"

namespace zeze {

struct ConnectorOptions {
  std::string host = {};  // Name or address.
  std::uint16_t port = 0;

  // After a failure or a lost connection: again after about first_delay, then twice as long each
  // time, up to delay_max; from the beginning after a connection with a peer that has spoken.
  bool reconnect = true;
  std::chrono::nanoseconds first_delay = std::chrono::seconds(1);
  std::chrono::nanoseconds delay_max = std::chrono::seconds(8);

  // Null: not encrypted, or by the handshake only. The certificate must be for tls_name; empty: for
  // host.
  TlsContextPtr tls = nullptr;
  std::string tls_name = {};

  // The connection is a WebSocket.
  std::optional<WebSocketConnectOptions> websocket = std::nullopt;

  // Called on the network thread whenever an attempt ends without a ready connection, with the
  // cause: a name that cannot be looked up, a refused connection, a certificate that is not trusted
  // or not for this name, a peer that is not a zeze service. Not called after Stop.
  std::function<void(const Error& why)> on_attempt_failed = nullptr;
};

// Thread-safe.
class Connector {
 public:
  virtual ~Connector() = default;

  // "host:port", for log lines.
  virtual const std::string& name() const = 0;

  // The connection if it is ready to send on, else null. A connection appears here before OnOpen
  // runs for it.
  virtual ConnectionPtr connection() const = 0;

  // Blocks until there is one. Fails with kUnavailable and the last failure's text when patience
  // ends, and at once when there will be none (stopped, or failed without reconnect). Not on
  // network threads.
  virtual Result<ConnectionPtr> WaitReady(std::chrono::nanoseconds patience) = 0;

  // What it is doing: "connecting to 10.0.0.7:5004". For messages about attempts that take too
  // long.
  virtual std::string progress() const = 0;

  // Closes the connection and makes no more.
  virtual void Stop() = 0;
};

}  // namespace zeze
