#include "zeze/arch/provider/provider_settings.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "zeze/arch/provider/module_binds.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/net/service_options.h"
#include "zeze/net/service_settings.h"

namespace zeze::arch {

namespace {

// What the file says, but never less room than many clients need.
Result<void> ReadService(const Config& config, std::string_view service_name,
                         ProviderOptions& options) {
  if (!config.services.contains(service_name)) return {};
  Result<ServiceSettings> settings =
      SettingsFromConfig(config, service_name, ServiceKind::kHandshake);
  if (!settings.ok()) return settings.error();
  const ServiceOptions defaults = DefaultLinkServiceOptions();
  ServiceOptions& service = settings.value().options;
  service.frame_bytes_max = std::max(service.frame_bytes_max, defaults.frame_bytes_max);
  service.output_bytes_max = std::max(service.output_bytes_max, defaults.output_bytes_max);
  service.calls_max = defaults.calls_max;
  if (service.keep_alive.check_period.count() == 0) service.keep_alive = defaults.keep_alive;
  options.link_service = std::move(service);
  if (!settings.value().connectors.empty()) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the ServiceConf \"{}\" has a <Connector>: servers find their gateways "
                    "through the service manager, remove it",
                    service_name));
  }
  return {};
}

}  // namespace

Result<ProviderOptions> ProviderOptionsFromConfig(const Config& config,
                                                  std::string_view service_name,
                                                  const std::string& binds_file) {
  ProviderOptions options;
  options.app_version = static_cast<std::int64_t>(config.app_version);
  options.overload_threshold = config.section.Duration("ProviderThreshold");
  options.overload = config.section.Duration("ProviderOverload");
  if (Result<void> service = ReadService(config, service_name, options); !service.ok()) {
    return service.error();
  }
  Result<ModuleBinds> binds = ModuleBinds::Load(binds_file);
  if (!binds.ok()) return binds.error();
  options.binds = std::move(binds).value();
  return options;
}

}  // namespace zeze::arch
