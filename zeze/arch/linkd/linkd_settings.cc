#include "zeze/arch/linkd/linkd_settings.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/arch/linkd/token_bucket.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/config/config.h"
#include "zeze/config/section.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/frame.h"
#include "zeze/net/net_address.h"
#include "zeze/net/protocol.h"
#include "zeze/net/service_options.h"
#include "zeze/net/service_settings.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_settings.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::arch {

namespace {

using Reader = std::function<Result<void>(std::string_view text)>;
using Readers = std::map<std::string, Reader, std::less<>>;

Error Wrong(const xml::Element& element, std::string_view attribute, const std::string& what) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: {}: {}", element.LocationOf(attribute).ToString(), attribute, what)};
}

template <typename T, typename U>
Result<void> Store(const Result<T>& parsed, U& target) {
  if (!parsed.ok()) return parsed.error();
  target = static_cast<U>(parsed.value());
  return {};
}

Reader Name(std::string& target) {
  return [&target](std::string_view text) -> Result<void> {
    if (text.empty()) return Error(ErrorCode::kInvalidArgument, "it must not be empty");
    target = text;
    return {};
  };
}

Reader Text(std::string& target) {
  return [&target](std::string_view text) -> Result<void> {
    target = text;
    return {};
  };
}

Reader Flag(bool& target) {
  return [&target](std::string_view text) { return Store(ParseBool(text), target); };
}

template <typename T>
Reader Size(T& target) {
  return [&target](std::string_view text) -> Result<void> {
    const Result<std::int64_t> size = ParseSize(text);
    if (size.ok() && (size.value() < 0 || size.value() > INT32_MAX)) {
      return Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is out of range", text));
    }
    return Store(size, target);
  };
}

Reader Duration(std::chrono::nanoseconds& target) {
  return [&target](std::string_view text) -> Result<void> {
    const auto duration = ParseDuration(text, std::chrono::milliseconds(1));
    if (duration.ok() && duration.value().count() <= 0) {
      return Error(ErrorCode::kInvalidArgument, "it must be longer than nothing");
    }
    return Store(duration, target);
  };
}

// "100/200": a second, and at once; "0": no limit.
Reader Rate(RateLimit& target) {
  return [&target](std::string_view text) -> Result<void> {
    const std::vector<std::string_view> parts = Split(text, '/');
    const Error wrong(ErrorCode::kInvalidArgument,
                      fmt::format("\"{}\": expected a number a second and a number at once, such "
                                  "as \"100/200\", or \"0\" for no limit",
                                  text));
    if (parts.empty() || parts.size() > 2) return wrong;
    const Result<std::int64_t> rate = ParseSize(parts.front());
    const Result<std::int64_t> burst = ParseSize(parts.back());
    if (!rate.ok() || !burst.ok() || rate.value() < 0 || burst.value() < 0) return wrong;
    target = {.per_second = static_cast<double>(rate.value()),
              .burst = static_cast<double>(burst.value())};
    return {};
  };
}

Reader Addresses(std::set<std::string>& target) {
  return [&target](std::string_view text) -> Result<void> {
    target.clear();
    for (const std::string_view one : Split(text, ',')) {
      const Result<NetAddress> address = NetAddress::FromText(one, 0);
      if (!address.ok()) {
        return Error(ErrorCode::kInvalidArgument,
                     fmt::format("{}: expected single addresses, such as \"10.0.0.9, 10.0.0.10\"; "
                                 "networks and names are not understood",
                                 address.error().message()));
      }
      target.emplace(address.value().IpText());  // As the address of a client is written.
    }
    return {};
  };
}

Reader Level(CriticalLevel& target) {
  return [&target](std::string_view text) -> Result<void> {
    static const std::map<std::string_view, CriticalLevel> levels = {
        {"CriticalPlus", CriticalLevel::kCriticalPlus},
        {"Critical", CriticalLevel::kCritical},
        {"Normal", CriticalLevel::kNormal},
        {"Sheddable", CriticalLevel::kSheddable}};
    const auto found = levels.find(text);
    if (found == levels.end()) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("\"{}\": expected CriticalPlus, Critical, Normal or Sheddable", text));
    }
    target = found->second;
    return {};
  };
}

Result<void> Read(const xml::Element& element, const Readers& readers) {
  for (const xml::Attribute& attribute : element.attributes()) {
    const auto reader = readers.find(attribute.name);
    if (reader == readers.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, one] : readers) names.push_back(name);
      return Wrong(
          element, attribute.name,
          fmt::format("there is no such setting; {}", xml::DidYouMean(attribute.name, names)));
    }
    if (Result<void> read = reader->second(attribute.value); !read.ok()) {
      return Wrong(element, attribute.name, read.error().message());
    }
  }
  return {};
}

// <Protocol Module="100" Id="-5" Level="Sheddable" Bytes="2k" Rate="5/10"/>
Result<void> ReadProtocol(const xml::Element& element, LinkdLimits& limits) {
  std::int64_t module = 0;
  std::int64_t id = 0;
  ProtocolRule rule;
  const auto number = [](std::int64_t& target) -> Reader {
    return [&target](std::string_view text) {
      return Store(ParseInteger(text, INT32_MIN, UINT32_MAX), target);
    };
  };
  const Readers readers = {{"Module", number(module)},
                           {"Id", number(id)},
                           {"Level", Level(rule.level)},
                           {"Bytes", Size(rule.bytes_max)},
                           {"Rate", Rate(rule.rate)}};
  if (Result<void> read = Read(element, readers); !read.ok()) return read;
  if (!element.HasAttribute("Module") || !element.HasAttribute("Id")) {
    return Wrong(element, "Module", "a protocol has a Module and an Id");
  }
  limits
      .protocols[ProtocolTypeId(static_cast<std::int32_t>(module), static_cast<std::int32_t>(id))] =
      rule;
  return {};
}

Result<void> ReadCustomize(const xml::Element& element, LinkdSettings& settings) {
  LinkdOptions& options = settings.options;
  LinkdLimits& limits = options.limits;
  std::string name;  // Of the CustomizeConf itself.
  const Readers readers = {
      {"Name", Text(name)},
      {"ServiceName", Name(options.name)},
      {"AdvertisedClientIp", Text(options.advertised_client_ip)},
      {"AdvertisedProviderIp", Text(options.advertised_provider_ip)},
      {"SidFile", Text(options.sid_file)},
      {"StrictProviderRights", Flag(options.strict_provider_rights)},
      {"TokenKeys", Text(settings.token_keys)},
      {"Audience", Text(settings.audience)},
      {"RequireTlsBinding", Flag(settings.require_tls_binding)},
      {"SessionMessages", Rate(limits.session_messages)},
      {"SessionBytes", Rate(limits.session_bytes)},
      {"AccountMessages", Rate(limits.account_messages)},
      {"RefusedMessages", Rate(limits.refused_messages)},
      {"InFlight", Size(limits.in_flight_max)},
      {"AuthenticationTimeout", Duration(limits.authentication_timeout)},
      {"UnauthenticatedBytes", Size(limits.unauthenticated_bytes_max)},
      {"SlowTimeout", Duration(limits.slow_timeout)},
      {"AddressConnections", Size(limits.address.connections_max)},
      {"AddressAttempts", Rate(limits.address.attempts)},
      {"AddressMessages", Rate(limits.address.messages)},
      {"AddressStrikes", Rate(limits.address.strikes)},
      {"Ban", Duration(limits.address.ban)},
      {"ExemptAddresses", Addresses(limits.address.exempt)},
      {"AcceptFirst", Size(limits.ramp.first)},
      {"AcceptLast", Size(limits.ramp.last)},
      {"AcceptRamp", Duration(limits.ramp.duration)},
      {"Bandwidth", Size(limits.bandwidth.bytes_per_second)},
  };
  if (Result<void> read = Read(element, readers); !read.ok()) return read;
  for (const xml::Element* child : element.children()) {
    if (child->name() != "Protocol") {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: <{}>: only <Protocol> may stand here",
                               child->location().ToString(), child->name()));
    }
    if (Result<void> read = ReadProtocol(*child, limits); !read.ok()) return read;
  }
  return {};
}

// What is accepted although no client could ever log in with it.
Result<void> CheckClients(const LinkdSettings& settings) {
  if (!settings.require_tls_binding) return {};
  for (const AcceptorOptions& acceptor : settings.options.client_acceptors) {
    if (acceptor.tls != nullptr) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("RequireTlsBinding of <CustomizeConf> \"{}\" refuses every client at "
                             "port {} of \"{}\", which has no TLS: set TlsCertificateFile and "
                             "TlsKeyFile there",
                             kLinkdName, acceptor.port, kClientServiceName));
  }
  return {};
}

// What the file says about a service; where it says nothing, what suits a gateway.
Result<void> ReadService(const Config& config, std::string_view name,
                         const ServiceOptions& defaults, ServiceOptions& options,
                         std::vector<AcceptorOptions>& acceptors) {
  Result<ServiceSettings> settings = SettingsFromConfig(config, name, ServiceKind::kHandshake);
  if (!settings.ok()) return settings.error();
  const ConfigSection& section = config.Service(name).section;
  options = settings.value().options;
  if (!section.IsSet("InputBufferMaxProtocolSize")) {
    options.frame_bytes_max = defaults.frame_bytes_max;
  }
  if (!section.IsSet("OutputBufferMaxSize")) options.output_bytes_max = defaults.output_bytes_max;
  if (!section.IsSet("maxConnections")) options.connections_max = defaults.connections_max;
  if (!section.IsSet("KeepCheckPeriod")) options.keep_alive = defaults.keep_alive;
  options.handshakes_max = defaults.handshakes_max;
  options.calls_max = defaults.calls_max;
  options.write_stall_timeout = defaults.write_stall_timeout;
  if (!settings.value().acceptors.empty()) acceptors = std::move(settings).value().acceptors;
  return {};
}

}  // namespace

Result<LinkdSettings> LinkdSettingsFromConfig(const Config& config) {
  LinkdSettings settings;
  LinkdOptions& options = settings.options;
  Result<void> read = ReadService(config, kClientServiceName, DefaultClientServiceOptions(),
                                  options.clients, options.client_acceptors);
  if (read.ok()) {
    read = ReadService(config, kProviderServiceName, DefaultProviderServiceOptions(),
                       options.providers, options.provider_acceptors);
  }
  if (!read.ok()) return read.error();
  Result<std::optional<registry::RegistryAgentOptions>> agent =
      registry::AgentOptionsFromConfig(config);
  if (!agent.ok()) return agent.error();
  options.registry = std::move(agent).value();
  if (const CustomizeConfig* customize = config.Customize(kLinkdName)) {
    if (read = ReadCustomize(*customize->element, settings); !read.ok()) return read.error();
  }
  if (read = CheckClients(settings); !read.ok()) return read.error();
  if (settings.audience.empty()) settings.audience = options.name;
  return settings;
}

}  // namespace zeze::arch
