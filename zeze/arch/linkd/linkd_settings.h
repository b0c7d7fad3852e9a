// LinkdSettings: what a configuration file says about a gateway. See docs/linkd.md.
//
//   Result<LinkdSettings> settings = LinkdSettingsFromConfig(config);

#pragma once

#include <string>
#include <string_view>

#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/config/known_names.h"

namespace zeze::arch {

// The names of the ServiceConfs, and of the CustomizeConf.
inline constexpr std::string_view kClientServiceName = known_names::kLinkdService;
inline constexpr std::string_view kProviderServiceName = known_names::kProviderService;
inline constexpr std::string_view kLinkdName = known_names::kLinkd;

struct LinkdSettings {
  LinkdOptions options = {};
  std::string token_keys = {};  // A file of public keys, as that of operators.
  std::string audience = {};    // Empty: options.name.
  bool require_tls_binding = false;
};

// Defaults where they say nothing. Fails with kInvalidArgument, naming the place in the file.
Result<LinkdSettings> LinkdSettingsFromConfig(const Config& config);

}  // namespace zeze::arch
