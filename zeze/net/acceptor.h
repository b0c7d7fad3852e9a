// Acceptor: a listening socket of a service.
//
//   Result<std::shared_ptr<Acceptor>> acceptor = service.Listen({.ip = "127.0.0.1", .port = 0});
//   ZEZE_LOG_INFO("listening on {}", acceptor.value()->address().ToString());

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "zeze/net/net_address.h"
#include "zeze/net/tls.h"
#include "zeze/net/websocket_options.h"

namespace zeze {

struct AcceptorOptions {
  // Empty: every address of the machine; 127.0.0.1 for services with ServiceOptions::inside.
  // "@internal", "@external": one of its private or public addresses. "0.0.0.0", "::": every one.
  std::string ip = {};

  std::uint16_t port = 0;  // 0: any; see Acceptor::address.
  int backlog = 4096;

  // Null: not encrypted, or by the handshake only.
  TlsContextPtr tls = nullptr;

  // A header of the PROXY protocol, version 1 or 2, comes first on every connection. Only where
  // nobody but the proxy can connect: whoever can, can claim any address.
  bool proxy_protocol = false;

  // Connections are WebSockets, and nothing else: other clients get an acceptor of their own.
  std::optional<WebSocketAcceptOptions> websocket = std::nullopt;
};

// Thread-safe.
class Acceptor {
 public:
  virtual ~Acceptor() = default;

  // Where it listens, with the port that the system chose.
  virtual const NetAddress& address() const = 0;

  // Accepts no more; accepted connections go on. The port is free when this returns, unless it was
  // called from a network thread: then soon.
  virtual void Close() = 0;
};

}  // namespace zeze
