// RegistrySettings: what a configuration file says about the service manager and its agents.
//
//   Result<RegistrySettings> settings = RegistrySettingsFromConfig(config);
//   Result<std::optional<RegistryAgentOptions>> agent = AgentOptionsFromConfig(config);

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/config/known_names.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"

namespace zeze::registry {

// The names of the ServiceConfs, and of the CustomizeConf of the service manager.
inline constexpr std::string_view kRegistryServiceName = known_names::kRegistryService;
inline constexpr std::string_view kRegistryAgentName = known_names::kRegistryAgent;

struct RegistrySettings {
  RegistryServiceOptions service = {};
  std::string db_home = ".";  // DbHome: where the service manager keeps its directory.
};

// ServiceConf and CustomizeConf "Zeze.Services.ServiceManager"; defaults where they say nothing.
// Fails with kInvalidArgument, naming the place in the file.
Result<RegistrySettings> RegistrySettingsFromConfig(const Config& config);

// ServiceConf "Zeze.Services.ServiceManager.Agent". None: there is no such ServiceConf, or
// ServiceManager="disable". Fails with kInvalidArgument for ServiceManager="raft", which is not in
// this version, and if it has not exactly one connector.
Result<std::optional<RegistryAgentOptions>> AgentOptionsFromConfig(const Config& config);

}  // namespace zeze::registry
