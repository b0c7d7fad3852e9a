// Linkd: the gateway between clients and the servers that handle their messages.
//
//   Linkd linkd(io, workers, {.authenticator = authenticator, .registry = registry});
//   if (Result<void> started = linkd.Start(); !started.ok()) return Fail(started.error());
//   ...
//   linkd.Stop();

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/arch/linkd/address_book.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/service.h"

namespace zeze::arch {

// Why something of a client, or a client, was refused; each is counted.
enum class Refusal : std::uint8_t {
  kConnections,         // At connections_max, of all addresses.
  kBanned,              // Connections of a banned address.
  kAddressConnections,  // Too many connections of one address.
  kAddressAttempts,     // Too often from one address.
  kRamp,                // Came too early after the start; was told when to come again.
  kRampSilent,          // The same, but too many to tell.
  kNoSessionId,         // No session ids could be got.
  kHandshakeTimeout,    // The handshake took too long,
  kHandshakeDisplaced,  // or was the slowest when there were too many.
  kUpgrade,             // Not what begins a WebSocket.
  kAuthTimeout,         // It did not authenticate itself in time.
  kUnauthenticated,     // Sent something else before.
  kUnauthenticatedBytes,
  kRepeatedAuth,  // Once is enough.
  kBadToken,      // Not a token.
  kForgedToken,   // The signature is wrong.
  kExpiredToken,
  kReplayedToken,
  kUnboundToken,     // Issued for another connection.
  kUnsuitableToken,  // Genuine, but for another audience or version, too long, or issued before
                     // this gateway started.
  kNotChecked,       // The authenticator could not tell.
  kTooManyTokens,    // No more of them can be remembered.
  kOversizeFrame,
  kOversizeProtocol,  // Larger than the rule of its protocol allows.
  kMalformed,         // Bytes that are no frames.
  kBadCompression,    // Cannot be decompressed,
  kCompressionBomb,   // or becomes too large.
  kSessionRate,
  kSessionBytes,
  kAccountRate,
  kAddressRate,
  kProtocolRate,
  kInFlight,          // Too many requests without an answer.
  kFlood,             // Went on in spite of limits, and was closed.
  kUnknownModule,     // Nobody offers it.
  kNoProvider,        // Nobody is there who does.
  kNotBound,          // A dynamic module, and no server has bound the client.
  kLostWithServer,    // Requests under way at a server whose connection ended.
  kBusy,              // The server is overloaded.
  kProviderFull,      // The server does not read what it gets.
  kSlowReader,        // Closed: it does not read what it gets.
  kShed,              // Messages to slow clients, of protocols that may be dropped.
  kBandwidth,         // Messages to clients, above the gateway's bandwidth.
  kProviderRights,    // A server wanted something of a client that is not its own.
  kBadProviderFrame,  // A server sent bytes to a client that are no frames.
  kModuleOfOthers,    // A server offered a module that belongs to another kind of server.
  kCount,
};
std::string_view ToString(Refusal refusal);

// Guarantees:
//   - Messages of one client for one server arrive there in their order, and those of one server
//     for one client in theirs. A body is not decoded, and copied once.
//   - All static modules of the server that was chosen for a client are bound to it: it stays there
//     until the server or the client leaves.
//   - Nothing of a client is forwarded before it has been authenticated.
//   - When a client has left, each server that it was bound to is told once.
//   - A session id is never used again.
//
// Thread-safe after Start.
class Linkd {
 public:
  // Both outlive the gateway. The executor runs what may wait: authentication, the agent's
  // callbacks.
  Linkd(IoThreads& io, Executor& workers, LinkdOptions options);
  ~Linkd();  // Calls Stop.
  Linkd(const Linkd&) = delete;
  Linkd& operator=(const Linkd&) = delete;

  // To add handlers before Start: messages of their types are not forwarded. Also those of clients
  // that are not authenticated come there.
  Service& clients();

  // Of an application's own authentication: from now on the client's messages are forwarded. Fails
  // with kConflict if it is authenticated already or closing.
  Result<void> Accept(Connection& client, const ClientIdentity& identity);

  // Listens, and registers with the service manager. Errors say what to do.
  Result<void> Start();

  // Closes all connections. Not from network threads.
  void Stop();

  // Of the first acceptors.
  NetAddress client_address() const;
  NetAddress provider_address() const;
  // In the order of LinkdOptions::client_acceptors.
  std::vector<NetAddress> client_addresses() const;

  struct Statistics {
    std::size_t sessions = 0;
    std::size_t providers = 0;
    std::uint64_t accepted = 0;  // Connections of clients.
    std::uint64_t authenticated = 0;
    std::uint64_t forwarded = 0;  // Messages of clients to servers.
    std::uint64_t delivered = 0;  // Messages of servers to clients.
    std::array<std::uint64_t, static_cast<std::size_t>(Refusal::kCount)> refused = {};

    std::uint64_t of(Refusal refusal) const { return refused[static_cast<std::size_t>(refusal)]; }
    // Those that are not 0, one in a line.
    std::string Format() const;
    // All of them, for Prometheus.
    std::string FormatMetrics() const;
  };
  Statistics GetStatistics() const;

  std::vector<AddressBook::Ban> Bans() const;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace zeze::arch
