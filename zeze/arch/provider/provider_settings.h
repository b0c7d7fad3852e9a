// What a configuration file says about a server behind gateways.
//
//   Result<ProviderOptions> options = ProviderOptionsFromConfig(config, "Server");
//   Provider provider(application, io, agent, std::move(options).value());

#pragma once

#include <string>
#include <string_view>

#include "zeze/arch/provider/provider.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"

namespace zeze::arch {

inline constexpr std::string_view kModuleBindsFile = "provider.module.binds.xml";

// AppVersion, ProviderThreshold and ProviderOverload of <zeze>; the ServiceConf of this name for
// connections to gateways, whose addresses come from the service manager; and the module binds from
// the file, if it is there. The rest is as ProviderOptions has it. Fails with kInvalidArgument,
// naming the place in the file.
Result<ProviderOptions> ProviderOptionsFromConfig(
    const Config& config, std::string_view service_name,
    const std::string& binds_file = std::string(kModuleBindsFile));

}  // namespace zeze::arch
