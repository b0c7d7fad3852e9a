#include "zeze/config/setting.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/config/internal/setting_tables.h"

namespace zeze {

namespace {

using enum SettingKind;

Error WrongValue(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<void> CheckRange(const Setting& setting, std::int64_t value, std::string_view text) {
  if (value < setting.min) {
    return WrongValue(fmt::format("{} is too small, at least {}", text, setting.min));
  }
  if (value > setting.max) {
    return WrongValue(fmt::format("{} is too large, at most {}", text, setting.max));
  }
  return {};
}

template <typename T>
Result<void> Outcome(const Result<T>& parsed) {
  if (parsed.ok()) return {};
  return parsed.error();
}

}  // namespace

std::string_view ElementName(ElementKind kind) {
  constexpr std::array<std::string_view, 12> kNames = {
      "zeze",        "DatabaseConf",       "TableConf",
      "ServiceConf", "Acceptor",           "Connector",
      "Websocket",   "ServiceManagerConf", "GlobalCacheManagersConf",
      "host",        "Property",           "CustomizeConf"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::span<const Setting> SettingsOf(ElementKind kind) {
  switch (kind) {
    case ElementKind::kZeze:
      return internal::kZezeSettings;
    case ElementKind::kDatabase:
      return internal::kDatabaseSettings;
    case ElementKind::kTable:
      return internal::kTableSettings;
    case ElementKind::kService:
      return internal::kServiceSettings;
    case ElementKind::kAcceptor:
      return internal::kAcceptorSettings;
    case ElementKind::kConnector:
      return internal::kConnectorSettings;
    case ElementKind::kWebsocket:
      return internal::kWebsocketSettings;
    case ElementKind::kServiceManager:
      return internal::kServiceManagerSettings;
    case ElementKind::kGlobalCacheManagers:
      return {};
    case ElementKind::kHost:
      return internal::kHostSettings;
    case ElementKind::kProperty:
      return internal::kPropertySettings;
    case ElementKind::kCustomize:
      return internal::kCustomizeSettings;
  }
  return {};
}

const Setting* FindSetting(ElementKind kind, std::string_view name) {
  const std::span<const Setting> settings = SettingsOf(kind);
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [name](const Setting& setting) { return setting.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

Result<void> CheckSetting(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case kText:
    case kSecret:
      return {};
    case kBool:
      return Outcome(ParseBool(text));
    case kInteger:
      return Outcome(ParseInteger(text, setting.min, setting.max));
    case kNumber: {
      const Result<double> number = ParseNumber(text);
      if (!number.ok()) return number.error();
      if (number.value() < 0) return WrongValue(fmt::format("{} is negative", text));
      return {};
    }
    case kSize: {
      const Result<std::int64_t> size = ParseSize(text);
      if (!size.ok()) return size.error();
      return CheckRange(setting, size.value(), text);
    }
    case kDuration: {
      const Result<std::chrono::nanoseconds> duration = ParseDuration(text, setting.unit);
      if (!duration.ok()) return duration.error();
      if (setting.min != INT64_MIN && duration.value() < setting.min * setting.unit) {
        return WrongValue(fmt::format("{} is too short, at least {}", text,
                                      FormatDuration(setting.min * setting.unit)));
      }
      if (setting.max != INT64_MAX && duration.value() > setting.max * setting.unit) {
        return WrongValue(fmt::format("{} is too long, at most {}", text,
                                      FormatDuration(setting.max * setting.unit)));
      }
      return {};
    }
    case kChoice: {
      const std::vector<std::string_view> choices = Split(setting.choices, ' ');
      if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
      return WrongValue(fmt::format("\"{}\" is not one of {}", text, fmt::join(choices, ", ")));
    }
  }
  return {};
}

}  // namespace zeze
