// LinkdSettings: what a configuration file says about a gateway. See docs/linkd.md.
//
//   Result<LinkdSettings> settings = LinkdSettingsFromConfig(config);

#pragma once

#include <string>
#include <string_view>

#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"

namespace zeze::arch {

// The names of the ServiceConfs, and of the CustomizeConf.
inline constexpr std::string_view kClientServiceName = "LinkdService";
inline constexpr std::string_view kProviderServiceName = "ProviderService";
inline constexpr std::string_view kLinkdName = "Zeze.Linkd";

struct LinkdSettings {
  LinkdOptions options = {};
  std::string token_keys = {};  // A file of public keys, as that of operators.
  std::string audience = {};    // Empty: options.name.
  bool require_tls_binding = false;
};

// Defaults where they say nothing. Fails with kInvalidArgument, naming the place in the file.
Result<LinkdSettings> LinkdSettingsFromConfig(const Config& config);

}  // namespace zeze::arch
