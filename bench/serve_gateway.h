// A gateway and a server behind it, as processes of their own. See serve.h.

#pragma once

#include <cstdint>
#include <string_view>

namespace zeze::bench {

// Behind it stands the port for servers.
inline constexpr std::string_view kProviderPort = "servers on port ";

inline constexpr std::int32_t kGatewayModule = 100;

// Without limits; a token is the account's name.
int ServeLinkd(bool tls);

// Connects to a gateway and answers every request with its own payload.
int ServeProvider(std::uint16_t port);

}  // namespace zeze::bench
