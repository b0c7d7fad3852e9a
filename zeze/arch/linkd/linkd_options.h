// LinkdOptions: what a gateway serves, and what its clients may do. Every limit has a defined
// behaviour, written beside it.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeze/arch/linkd/accept_ramp.h"
#include "zeze/arch/linkd/address_book.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/arch/linkd/bandwidth_fuse.h"
#include "zeze/arch/linkd/token_bucket.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/protocol.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch {

// With the handshake, for many clients that nobody trusts.
ServiceOptions DefaultClientServiceOptions();
// With the handshake, and room for what goes to all clients of a server.
ServiceOptions DefaultProviderServiceOptions();

// What one protocol (module id above, protocol id below) may cost.
struct ProtocolRule {
  // To clients, when they read too slowly: kSheddable is dropped when a half of their output bound
  // waits, kNormal at three quarters, the others never: who has no room for them is closed.
  CriticalLevel level = CriticalLevel::kCritical;

  // From clients. A larger one closes its connection. 0: as frames at all.
  std::size_t bytes_max = 0;

  // From each session. Beyond it requests are answered busy, other messages are dropped.
  RateLimit rate = {};
};

struct LinkdLimits {
  // Of one session, and of all sessions of an account. Beyond them requests are answered busy,
  // other messages are dropped; who does not stop is closed, and its address gets a strike.
  RateLimit session_messages = {.per_second = 500, .burst = 1000};
  RateLimit session_bytes = {.per_second = 256 << 10, .burst = 1 << 20};
  RateLimit account_messages = {.per_second = 1000, .burst = 2000};
  RateLimit refused_messages = {.per_second = 100, .burst = 2000};

  // Requests of a session without an answer yet; more are answered busy.
  std::int32_t in_flight_max = 64;
  // When a session has so many for so long, without one answer, they are taken for lost.
  std::chrono::nanoseconds in_flight_lost = std::chrono::seconds(30);

  // From the accepted connection until it has authenticated itself; longer closes it.
  std::chrono::nanoseconds authentication_timeout = std::chrono::seconds(10);
  // Bytes of messages before that; more close it.
  std::size_t unauthenticated_bytes_max = 4096;

  // A client for whom more than a half of its output bound has waited for so long is closed.
  std::chrono::nanoseconds slow_timeout = std::chrono::seconds(10);

  AddressLimits address = {};
  RampOptions ramp = {};
  // Those who come too early are told when to come again, up to so many a second; the others are
  // closed without a word.
  RateLimit retry_hints = {.per_second = 2000, .burst = 2000};

  BandwidthOptions bandwidth = {};
  std::map<std::int64_t, ProtocolRule> protocols = {};
};

struct LinkdOptions {
  // Under which servers find the gateway.
  std::string name = "Linkd";

  ServiceOptions clients = DefaultClientServiceOptions();
  ServiceOptions providers = DefaultProviderServiceOptions();
  std::vector<AcceptorOptions> client_acceptors = {{.port = 10000}};
  // Without an address: 127.0.0.1. Whoever reaches it can offer modules.
  std::vector<AcceptorOptions> provider_acceptors = {{.port = 11000}};

  // What is registered, if it is not what the first acceptors are bound to: an address of every
  // interface, or behind NAT.
  std::string advertised_client_ip = {};
  std::string advertised_provider_ip = {};

  // Absent: no service manager; servers connect by themselves, and whoever is connected is chosen
  // from. on_load is the gateway's.
  std::optional<registry::RegistryAgentOptions> registry = std::nullopt;

  // Session ids: a file. Empty: from the service manager, if there is one, else they begin anew
  // with each start, which only a test can bear.
  std::string sid_file = {};
  std::uint32_t sid_block = 1'000'000;

  // Null: an application's own handlers on Linkd::clients() call Linkd::Accept.
  std::shared_ptr<Authenticator> authenticator = nullptr;

  // A server may send to, kick and change those clients only that are bound to it. Off: to all, as
  // servers of Zeze 1.6 do when they tell a user something from elsewhere.
  bool strict_provider_rights = false;

  LinkdLimits limits = {};
};

}  // namespace zeze::arch
