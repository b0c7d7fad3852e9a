// ServiceSettings: what a configuration file says about a service.
//
//   Result<ServiceSettings> settings = SettingsFromConfig(config, "Game", ServiceKind::kHandshake);
//   Service service(io, settings.value().options);
//   for (const AcceptorOptions& acceptor : settings.value().acceptors) service.Listen(acceptor);

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connector.h"
#include "zeze/net/service_options.h"

namespace zeze {

// Which of the two a service speaks is part of its protocol, not of its configuration.
enum class ServiceKind : std::uint8_t { kPlain, kHandshake };

struct ServiceSettings {
  ServiceOptions options = {};
  std::vector<AcceptorOptions> acceptors = {};
  std::vector<ConnectorOptions> connectors = {};
};

// A service without a ServiceConf of its own gets the options of the one without a name, but not
// its limit of connections, acceptors and connectors. Fails with kInvalidArgument, naming the place
// in the file, if a key or a certificate cannot be loaded, or a connector has no address.
Result<ServiceSettings> SettingsFromConfig(const Config& config, std::string_view service_name,
                                           ServiceKind kind);

}  // namespace zeze
