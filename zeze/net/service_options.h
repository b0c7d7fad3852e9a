// ServiceOptions: how the connections of a service behave, and what they may cost.
//
//   ServiceOptions options{.name = "Game", .handshake = HandshakeOptions{}, .executor = &pool};
//   Service service(io, options);

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "zeze/base/executor.h"
#include "zeze/net/handshake.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rsa.h"

namespace zeze {

class ConnectionState;

// Where something that arrives on a connection is handled.
enum class Dispatch : std::uint8_t {
  // On the connection's network thread, at once, in order. It must not wait, not even for a lock
  // that somebody holds for long. Arguments may refer to the received bytes.
  kInline,

  // On the executor, one after the other for each connection, in the order of arrival. Connections
  // do not wait for each other.
  kOrdered,

  // On the executor, in any order and in parallel.
  kParallel,
};

// The messages that open a connection: what a server recommends to its clients. Clients follow the
// server, but accept no weaker encryption than their own `encrypt` says.
struct HandshakeOptions {
  // kAes and kAesWithIp are equally strong; kRsaAes, which also authenticates the server, is
  // stronger.
  EncryptType encrypt = EncryptType::kNone;
  CompressType compress_to_client = CompressType::kNone;
  CompressType compress_to_server = CompressType::kNone;

  // With encrypt = kAesWithIp: the server's address as its clients see it, if it is not that of
  // the accepted socket (behind NAT).
  std::optional<NetAddress> secure_ip = std::nullopt;

  // For kRsaAes: the server's private key; the client's copy of the server's public one.
  std::shared_ptr<const RsaPrivateKey> server_private_key = nullptr;
  std::string server_key_hex = {};

  // Servers refuse clients that choose no encryption although `encrypt` asks for it; clients refuse
  // servers that offer a weaker one than `encrypt`.
  bool require_encryption = true;
};

// All zero: off. See keep_alive.h.
struct KeepAliveOptions {
  std::chrono::nanoseconds check_period{0};

  // Close when nothing was received for longer, though the peer need not have sent anything.
  std::chrono::nanoseconds receive_timeout{0};

  // Connections that this side opened: send a keep-alive when nothing was sent, or nothing
  // received, for longer. WebSockets that it accepted: a ping, which browsers answer by themselves.
  std::chrono::nanoseconds send_timeout{0};

  // Like receive_timeout, but only where this side sends keep-alives or pings, so that a peer which
  // is there has had something to answer.
  std::chrono::nanoseconds answer_timeout{0};
};

struct SocketOptions {
  bool no_delay = true;
  // The system asks the peer's machine for a sign of life after keep_alive_idle without one, then
  // every keep_alive_interval; kKeepAliveProbes without an answer end the connection. So half-open
  // connections are found, whatever the peer's program does.
  bool tcp_keep_alive = true;
  std::chrono::seconds keep_alive_idle{60};
  std::chrono::seconds keep_alive_interval{10};
  int send_buffer_bytes = 0;     // 0: the system's.
  int receive_buffer_bytes = 0;  // 0: the system's.
  // The connection ends when the peer's machine confirms nothing for so long, for example because
  // it has lost its power. 0: the system's, a quarter of an hour.
  std::chrono::milliseconds unconfirmed_max{0};
};

inline constexpr int kKeepAliveProbes = 3;

// For connections inside of a data centre.
inline constexpr std::chrono::seconds kUnconfirmedInside{30};

// Every limit has a defined behaviour, written beside it.
struct ServiceOptions {
  std::string name = "service";  // In log lines.

  // Absent: plain, the first byte of a connection is the first byte of a frame. WebSockets have no
  // handshake in either case.
  std::optional<HandshakeOptions> handshake = std::nullopt;

  KeepAliveOptions keep_alive = {};
  SocketOptions socket = {};

  // A frame that claims more closes its connection, before its body is stored.
  std::size_t frame_bytes_max = 2 << 20;

  // Queued output of a connection. A message that does not fit is refused (Send and Call fail with
  // kOverloaded) and the connection goes on; an answer that does not fit closes it, because its
  // peer would wait for nothing. Before that, at a half, a connection is no longer read from, until
  // its output has gone down to a quarter.
  std::size_t output_bytes_max = 2 << 20;

  // A connection is read from however much of its output waits. Of two sides that both stop reading
  // neither writes any more, so at least one of them has this; it has to do something else about
  // what it is asked while its output is full: see docs/architecture.md, "Who stops reading".
  bool read_always = false;

  // Its ports are for processes of the same cluster, which it believes. An acceptor without an
  // address listens on 127.0.0.1 (name an address, "@internal", "0.0.0.0" or "::" for more), and a
  // warning says when other machines can reach it and it has no TLS.
  bool inside = false;

  // A connection to which not one byte could be written for so long is closed. 0: never.
  std::chrono::nanoseconds write_stall_timeout = std::chrono::seconds(60);

  // Accepted connections beyond this are closed at once.
  std::size_t connections_max = 1024;

  // Asked for every accepted connection, on its network thread, before its TLS and handshake begin
  // (behind a proxy: when the client's address is known). What it returns becomes the state of the
  // connection and lives as long; null refuses, and the connection is closed without a word.
  std::function<std::shared_ptr<ConnectionState>(const NetAddress& peer)> admit = nullptr;

  // Accepted connections that are not ready yet (proxy header, TLS, upgrade, handshake). One more
  // closes the oldest of them: who is in earnest has ended its handshake long before, however many
  // are not.
  std::size_t handshakes_max = 256;

  // From connect or accept until the connection is ready; longer closes it.
  std::chrono::nanoseconds handshake_timeout = std::chrono::seconds(10);

  // Calls of a connection without an answer yet; more fail with kOverloaded. At most 1,048,576.
  std::size_t calls_max = 65536;

  // Of calls whose descriptor and options say nothing.
  std::chrono::nanoseconds call_timeout = std::chrono::seconds(5);

  // Where handlers, completions of calls, OnOpen and OnClose run unless they say otherwise.
  Dispatch dispatch = Dispatch::kInline;

  // Required for kOrdered and kParallel; outlives the service.
  Executor* executor = nullptr;

  // Of one connection: messages and their bytes that wait for the executor or run on it. Beyond
  // either the connection is no longer read from.
  std::size_t dispatched_messages_max = 4096;
  std::size_t dispatched_bytes_max = 4 << 20;

  // A request without a handler is answered with kNotImplemented; true: closes the connection.
  bool close_when_no_handler = false;

  // Write from the thread that sends, if nothing is queued, instead of waking the network thread:
  // saves a thread switch for each message, and costs a system call for each. For few messages that
  // somebody waits for.
  bool send_from_caller = false;
};

}  // namespace zeze
