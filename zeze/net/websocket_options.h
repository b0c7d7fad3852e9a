// WebSocketAcceptOptions, WebSocketConnectOptions: connections over WebSocket (RFC 6455), "ws", and
// with TLS "wss".
//
//   service.Listen({.port = 8080, .websocket = WebSocketAcceptOptions{.path = "/game"}});
//   client.Connect({.host = "game.example", .port = 443, .tls = tls,
//                   .websocket = WebSocketConnectOptions{.path = "/game"}});
//
// After the upgrade a connection is ready at once: without handshake, encryption and compression of
// our own, whatever the service's options say. Every message of ours is one binary message; what
// arrives is a stream of bytes, however it is cut into messages, text or binary.

#pragma once

#include <string>
#include <vector>

namespace zeze {

struct WebSocketAcceptOptions {
  // What clients must ask for, up to a '?'. Others get status 404.
  std::string path = "/";

  // The web pages whose scripts may connect, as "https://game.example" or with a port behind it.
  // Others get status 403. Empty: any. Clients that are no browsers send none, or any they like:
  // this protects people from foreign pages, not the server from its clients.
  std::vector<std::string> allowed_origins = {};
};

struct WebSocketConnectOptions {
  std::string path = "/";  // May have a query: "/game?region=3".

  // By which the server is known, if not by ConnectorOptions::host and port.
  std::string host = {};

  // For servers that ask for one, as "https://game.example".
  std::string origin = {};
};

}  // namespace zeze
