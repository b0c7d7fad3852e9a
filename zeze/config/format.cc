// Config::Format: the effective configuration for people.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/text.h"
#include "zeze/base/url.h"
#include "zeze/config/config.h"
#include "zeze/config/section.h"
#include "zeze/config/setting.h"

namespace zeze {

namespace {

std::string Shown(const ConfigValue& value) {
  if (value.setting->kind == SettingKind::kSecret) return value.text.empty() ? "\"\"" : "***";
  std::string text = MaskPasswords(value.text);
  const bool plain = value.setting->kind != SettingKind::kText && !text.empty();
  if (value.setting->kind == SettingKind::kDuration && plain) {
    return FormatDuration(ParseDuration(text, value.setting->unit).value());
  }
  return plain ? text : "\"" + text + "\"";
}

class Formatter {
 public:
  explicit Formatter(const Config::FormatOptions& options) : options_(options) {}

  void Add(std::string title, const ConfigSection& section) {
    const std::string place = section.location().ToString();
    lines_.push_back({.title = std::move(title) + (place.empty() ? "" : "   (" + place + ")")});
    for (const ConfigValue& value : section.values()) {
      const bool is_default = value.origin == ValueOrigin::kDefault;
      if (value.setting->name == "Name") continue;
      if (is_default && (!options_.defaults || (!value.setting->used && !options_.unused)))
        continue;
      lines_.push_back({.name = std::string(value.setting->name),
                        .value = Shown(value),
                        .source = value.source + (value.setting->used ? "" : ", without effect"),
                        .help = std::string(value.setting->help)});
    }
  }

  std::string Text() const {
    std::size_t name_width = 0;
    std::size_t value_width = 0;
    for (const Line& line : lines_) {
      name_width = std::max(name_width, line.name.size());
      value_width = std::max(value_width, std::min<std::size_t>(line.value.size(), 32));
    }
    std::string text;
    for (const Line& line : lines_) {
      if (!line.title.empty()) {
        if (!text.empty()) text += '\n';
        text += line.title + '\n';
        continue;
      }
      text += fmt::format("  {:<{}}  {:<{}}  {}\n", line.name, name_width, line.value, value_width,
                          line.source);
      if (options_.explanations && !line.help.empty()) text += fmt::format("      {}\n", line.help);
    }
    return text;
  }

 private:
  struct Line {
    std::string title = {};
    std::string name = {};
    std::string value = {};
    std::string source = {};
    std::string help = {};
  };

  const Config::FormatOptions options_;
  std::vector<Line> lines_;
};

std::string Title(const ConfigSection& section) {
  const std::string name = section.name();
  return fmt::format("{} {}", ElementName(section.kind()),
                     name.empty() ? "(default)" : "\"" + name + "\"");
}

}  // namespace

std::string Config::Format(const FormatOptions& options) const {
  Formatter formatter(options);
  formatter.Add("zeze", section);
  for (const auto& [name, database] : databases) {
    formatter.Add(Title(database.section), database.section);
  }
  for (const auto& [name, table] : tables) {
    const std::string capacity = table.cache_capacity == 0
                                     ? "records without limit"
                                     : fmt::format("{} records", table.cache_capacity);
    formatter.Add(fmt::format("{}: keeps {} in memory", Title(table.section), capacity),
                  table.section);
  }
  for (const auto& [name, service] : services) {
    formatter.Add(Title(service.section), service.section);
    for (const ConfigSection& child : service.section.children) {
      formatter.Add(fmt::format("{} of service \"{}\"", ElementName(child.kind()), name), child);
    }
  }
  return formatter.Text();
}

}  // namespace zeze
