#include "zeze/registry/service/registry_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/net/service_options.h"
#include "zeze/net/service_settings.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::registry {

namespace {

constexpr std::string_view kKeepAlivePeriod = "KeepAlivePeriod";
constexpr std::string_view kDbHome = "DbHome";
constexpr std::string_view kOfflineDelay = "OfflineNotifyDelay";
constexpr std::string_view kRecovery = "RecoveryTime";

// All that may stand there; the last two mean nothing here.
constexpr std::array<std::string_view, 7> kAttributes = {"Name",
                                                         kKeepAlivePeriod,
                                                         kDbHome,
                                                         kOfflineDelay,
                                                         kRecovery,
                                                         "RetryNotifyDelayWhenNotAllReady",
                                                         "ThreadingReleaseTimeout"};

Error Wrong(const xml::Element& element, std::string_view attribute, const std::string& what) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: {}: {}", element.LocationOf(attribute).ToString(), attribute, what)};
}

// Nothing is said: nothing is changed.
Result<void> ReadMilliseconds(const xml::Element& element, std::string_view attribute,
                              std::chrono::nanoseconds& value) {
  if (!element.HasAttribute(attribute)) return {};
  const std::string text = element.GetAttribute(attribute);
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  constexpr std::int64_t kYearMs = std::int64_t{365} * 24 * 3600 * 1000;
  if (error != std::errc() || parsed != end || number < -1 || number > kYearMs) {
    return Wrong(element, attribute, fmt::format("\"{}\" is no number of milliseconds", text));
  }
  value = std::chrono::milliseconds(std::max<std::int64_t>(number, 0));
  return {};
}

Result<void> ReadCustomize(const xml::Element& element, RegistrySettings& settings) {
  for (const xml::Attribute& attribute : element.attributes()) {
    if (std::find(kAttributes.begin(), kAttributes.end(), attribute.name) != kAttributes.end()) {
      continue;
    }
    const std::string suggestion =
        xml::DidYouMean(attribute.name, {kAttributes.begin(), kAttributes.end()});
    return Wrong(element, attribute.name, fmt::format("there is no such setting; {}", suggestion));
  }
  RegistryServiceOptions& service = settings.service;
  Result<void> read = ReadMilliseconds(element, kKeepAlivePeriod, service.keep_alive_period);
  if (read.ok()) read = ReadMilliseconds(element, kOfflineDelay, service.machine.offline.delay);
  if (read.ok()) read = ReadMilliseconds(element, kRecovery, service.machine.recovery);
  if (!read.ok()) return read;
  settings.db_home = element.GetAttribute(kDbHome, settings.db_home);
  return {};
}

}  // namespace

Result<RegistrySettings> RegistrySettingsFromConfig(const Config& config) {
  RegistrySettings settings;
  Result<ServiceSettings> service =
      SettingsFromConfig(config, kRegistryServiceName, ServiceKind::kHandshake);
  if (!service.ok()) return service.error();
  const ServiceOptions defaults = DefaultRegistryServiceOptions();
  settings.service.service = service.value().options;
  // A list must fit, whatever suits other services.
  settings.service.service.output_bytes_max =
      std::max(settings.service.service.output_bytes_max, defaults.output_bytes_max);
  if (!service.value().acceptors.empty()) {
    settings.service.acceptors = std::move(service).value().acceptors;
  }
  const CustomizeConfig* customize = config.Customize(kRegistryServiceName);
  if (customize == nullptr) return settings;
  if (Result<void> read = ReadCustomize(*customize->element, settings); !read.ok()) {
    return read.error();
  }
  return settings;
}

Result<std::optional<RegistryAgentOptions>> AgentOptionsFromConfig(const Config& config) {
  const std::string& kind = config.section.Text("ServiceManager");
  if (kind == "disable") return std::optional<RegistryAgentOptions>();
  if (!kind.empty()) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: ServiceManager=\"{}\" is not in this version: leave it out to use "
                    "`zeze service-manager`, or \"disable\"",
                    config.section.Find("ServiceManager").source, kind));
  }
  if (!config.services.contains(kRegistryAgentName)) return std::optional<RegistryAgentOptions>();
  Result<ServiceSettings> service =
      SettingsFromConfig(config, kRegistryAgentName, ServiceKind::kHandshake);
  if (!service.ok()) return service.error();
  if (service.value().connectors.size() != 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the ServiceConf \"{}\" needs one <Connector>, and has {}",
                             kRegistryAgentName, service.value().connectors.size()));
  }
  RegistryAgentOptions options;
  const ServiceOptions defaults = DefaultRegistryAgentServiceOptions();
  options.service = service.value().options;
  options.service.frame_bytes_max =
      std::max(options.service.frame_bytes_max, defaults.frame_bytes_max);
  options.service.output_bytes_max =
      std::max(options.service.output_bytes_max, defaults.output_bytes_max);
  options.connector = service.value().connectors.front();
  return std::optional<RegistryAgentOptions>(std::move(options));
}

}  // namespace zeze::registry
