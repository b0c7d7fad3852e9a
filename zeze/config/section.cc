#include "zeze/config/section.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/config/setting.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze {

namespace {

// Attributes that existing files carry although no program has ever read them there.
struct DeadAttribute {
  ElementKind kind;
  std::string_view name;
  std::string_view why;
};
constexpr DeadAttribute kDeadAttributes[] = {
    {ElementKind::kZeze, "CheckpointModeTableFlushConcurrent", "no version has read it"},
    {ElementKind::kTable, "CacheNewLruHotPeriod", "it cannot be set in a file"},
    {ElementKind::kWebsocket, "Name", "no version has read it"},
};

std::vector<std::string_view> NamesOf(ElementKind kind) {
  std::vector<std::string_view> names;
  for (const Setting& setting : SettingsOf(kind)) names.push_back(setting.name);
  return names;
}

// What to write instead of an unknown attribute.
std::string Suggest(ElementKind kind, std::string_view name) {
  const std::vector<std::string_view> names = NamesOf(kind);
  std::string suggestion = xml::DidYouMean(name, names);
  if (!suggestion.empty()) return suggestion;
  for (const ElementKind other :
       {ElementKind::kZeze, ElementKind::kDatabase, ElementKind::kTable, ElementKind::kService,
        ElementKind::kAcceptor, ElementKind::kConnector}) {
    if (MatchSetting(other, name) == nullptr) continue;
    return fmt::format("it is an attribute of <{}>", ElementName(other));
  }
  if (names.size() <= 8) return fmt::format("known attributes: {}", fmt::join(names, ", "));
  return "it has no effect; remove it";
}

void ReportUnknown(ElementKind kind, const xml::Element& element, const xml::Attribute& attribute,
                   xml::Diagnostics& diagnostics) {
  for (const DeadAttribute& dead : kDeadAttributes) {
    if (dead.kind != kind || dead.name != attribute.name) continue;
    diagnostics.Warning(element.LocationOf(attribute),
                        fmt::format("attribute '{}' of <{}> has no effect: {}", attribute.name,
                                    element.name(), dead.why),
                        "remove it");
    return;
  }
  diagnostics.Warning(element.LocationOf(attribute),
                      fmt::format("unknown attribute '{}' of <{}>", attribute.name, element.name()),
                      Suggest(kind, attribute.name));
}

}  // namespace

const Setting* MatchSetting(ElementKind kind, std::string_view name) {
  if (const Setting* exact = FindSetting(kind, name)) return exact;
  for (const Setting& setting : SettingsOf(kind)) {
    if (EqualsIgnoreCase(setting.name, name)) return &setting;
  }
  return nullptr;
}

ConfigSection::ConfigSection(ElementKind kind, xml::Location location)
    : kind_(kind), location_(std::move(location)) {
  for (const Setting& setting : SettingsOf(kind)) {
    values_.push_back({.setting = &setting, .text = std::string(setting.default_value)});
  }
}

ConfigSection ConfigSection::Read(ElementKind kind, const xml::Element& element,
                                  xml::Diagnostics& diagnostics) {
  ConfigSection section(kind, element.location());
  for (const xml::Attribute& attribute : element.attributes()) {
    const std::string& name = attribute.name;
    if (name == "xmlns" || name.find(':') != std::string::npos) continue;
    const Setting* setting = MatchSetting(kind, name);
    const xml::Location location = element.LocationOf(attribute);
    if (setting == nullptr) {
      // Whoever reads a CustomizeConf knows its attributes.
      if (kind != ElementKind::kCustomize) ReportUnknown(kind, element, attribute, diagnostics);
      continue;
    }
    if (setting->name != name) {
      if (element.HasAttribute(setting->name)) {
        diagnostics.Error(location,
                          fmt::format("attribute '{}' of <{}> is given twice, in different case",
                                      name, element.name()),
                          fmt::format("keep '{}' and remove the other", setting->name));
        continue;
      }
      diagnostics.Warning(
          location, fmt::format("attribute '{}' of <{}> has the wrong case", name, element.name()),
          fmt::format("write '{}'", setting->name));
    }
    section.Set(*setting, attribute.value, ValueOrigin::kFile, location.ToString(), location,
                diagnostics);
  }
  return section;
}

std::string ConfigSection::name() const {
  for (const ConfigValue& value : values_) {
    if (value.setting->name == "Name") return value.text;
  }
  return {};
}

std::size_t ConfigSection::IndexOf(std::string_view name) const {
  const auto found = std::find_if(values_.begin(), values_.end(), [name](const ConfigValue& value) {
    return value.setting->name == name;
  });
  ZEZE_CHECK(found != values_.end());
  return static_cast<std::size_t>(found - values_.begin());
}

const ConfigValue& ConfigSection::Find(std::string_view name) const {
  return values_[IndexOf(name)];
}

bool ConfigSection::Bool(std::string_view name) const {
  return ParseBool(Text(name)).value();
}

std::int64_t ConfigSection::Integer(std::string_view name) const {
  return ParseInteger(Text(name)).value();
}

double ConfigSection::Number(std::string_view name) const {
  return ParseNumber(Text(name)).value();
}

std::int64_t ConfigSection::Size(std::string_view name) const {
  return ParseSize(Text(name)).value();
}

std::chrono::nanoseconds ConfigSection::Duration(std::string_view name) const {
  const ConfigValue& value = Find(name);
  return ParseDuration(value.text, value.setting->unit).value();
}

void ConfigSection::Set(const Setting& setting, std::string_view text, ValueOrigin origin,
                        std::string source, const xml::Location& location,
                        xml::Diagnostics& diagnostics) {
  // Written, but empty, where being absent has a meaning of its own: absent.
  if (Trim(text).empty() && setting.default_value.empty()) text = {};
  std::string accepted(text);
  const Result<void> checked =
      text.empty() && setting.default_value.empty() ? Result<void>() : CheckSetting(setting, text);
  const std::string where = origin == ValueOrigin::kFile ? "" : " (" + source + ")";
  if (!checked.ok()) {
    const std::vector<std::string_view> choices = Split(setting.choices, ' ');
    const auto meant = std::find_if(choices.begin(), choices.end(), [&](std::string_view choice) {
      return EqualsIgnoreCase(choice, Trim(text));
    });
    if (meant == choices.end()) {
      diagnostics.Error(location,
                        fmt::format("{} of <{}>: {}{}", setting.name, ElementName(kind_),
                                    checked.error().message(), where),
                        xml::DidYouMean(text, choices));
      return;
    }
    accepted = *meant;
    // Log levels are written in either case by everybody.
    if (Trim(text) != *meant && setting.name.find("LogLevel") == std::string_view::npos) {
      diagnostics.Warning(location,
                          fmt::format("{} of <{}>: \"{}\" has the wrong case{}", setting.name,
                                      ElementName(kind_), text, where),
                          fmt::format("write \"{}\"", *meant));
    }
  }
  ConfigValue& value = values_[IndexOf(setting.name)];
  value.text = std::move(accepted);
  value.origin = origin;
  value.source = std::move(source);
}

void ConfigSection::InheritFrom(const ConfigSection& base) {
  for (const ConfigValue& inherited : base.values_) {
    const std::string_view name = inherited.setting->name;
    if (name == "Name" || name == "Inherit" || name == "Base") continue;
    if (inherited.origin == ValueOrigin::kDefault || IsSet(name)) continue;
    ConfigValue& value = values_[IndexOf(name)];
    value = inherited;
    if (value.source.find(", via ") == std::string::npos) {
      value.source += fmt::format(", via {} \"{}\"", ElementName(kind_), base.name());
    }
  }
}

}  // namespace zeze
