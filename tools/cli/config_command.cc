#include "tools/cli/config_command.h"

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "tools/cli/program_config.h"
#include "zeze/admin/operator_list.h"
#include "zeze/app/application.h"
#include "zeze/arch/linkd/linkd_settings.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/config/config.h"
#include "zeze/config/setting.h"
#include "zeze/net/service_settings.h"
#include "zeze/registry/service/registry_settings.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::cli {

namespace {

constexpr int kInputIsWrong = 1;
constexpr int kCannotRead = 2;

struct Options {
  std::string named = {};  // Empty: see file.
  std::vector<std::string> overrides = {};
  bool no_environment = false;
  bool strict = false;
  bool quiet = false;
  std::vector<std::string> tables = {};
  bool set_only = false;
  bool all = false;
  bool explain = false;
  std::string name = {};

  std::string file() const {
    return no_environment && named.empty() ? "zeze.xml" : ConfigFile(named);
  }
};

void AddCommonOptions(CLI::App& command, const std::shared_ptr<Options>& options) {
  command.add_option("file", options->named,
                     "The configuration file (default: what ZEZE_CONFIG names, else zeze.xml)");
  command
      .add_option("--set", options->overrides,
                  "NAME=VALUE, stronger than the file and the environment (repeatable)")
      ->allow_extra_args(false);
  command
      .add_option("--table", options->tables,
                  "Storage name of a table of the application, to check the names of TableConfs "
                  "(repeatable)")
      ->allow_extra_args(false);
  command.add_flag("--no-environment", options->no_environment,
                   "Do not apply ZEZE_... variables of the environment");
  command.add_flag("--strict", options->strict, "Warnings are errors");
}

std::optional<Config> Load(const Options& options, xml::Diagnostics& diagnostics) {
  ConfigLoadOptions load;
  load.overrides = options.overrides;
  if (options.no_environment) load.environment.emplace();
  std::optional<Config> config = Config::Load(options.file(), load, diagnostics);
  if (config && !options.tables.empty()) {
    const std::vector<std::string_view> tables(options.tables.begin(), options.tables.end());
    config->ResolveTables(tables, diagnostics);
  }
  return config;
}

// What the programs that use the file would refuse at their start.
void CheckUse(const Config& config, xml::Diagnostics& diagnostics) {
  std::set<std::string> reported;  // Several programs read the same service.
  const auto report = [&](const auto& result) {
    if (result.ok() || !reported.insert(result.error().message()).second) return;
    diagnostics.Error({.file = config.file}, result.error().message());
  };
  const auto has = [&config](std::string_view name) { return config.services.contains(name); };
  report(OptionsFromConfig(config));
  for (const auto& [name, service] : config.services) {
    report(SettingsFromConfig(config, name, ServiceKind::kHandshake));
  }
  if (config.Customize(arch::kLinkdName) != nullptr || has(arch::kClientServiceName) ||
      has(arch::kProviderServiceName)) {
    const Result<arch::LinkdSettings> linkd = arch::LinkdSettingsFromConfig(config);
    report(linkd);
    if (linkd.ok() && !linkd.value().token_keys.empty()) {
      report(admin::LoadOperators(linkd.value().token_keys));
    }
  }
  if (config.Customize(registry::kRegistryServiceName) != nullptr ||
      has(registry::kRegistryServiceName)) {
    report(registry::RegistrySettingsFromConfig(config));
  }
}

int Check(const Options& options) {
  if (access(options.file().c_str(), R_OK) != 0) {
    std::cerr << fmt::format("zeze config: cannot read {}; name another file\n", options.file());
    return kCannotRead;
  }
  xml::Diagnostics diagnostics(options.strict);
  const std::optional<Config> config = Load(options, diagnostics);
  if (config) CheckUse(*config, diagnostics);
  std::cout << diagnostics.Format(options.quiet ? xml::Severity::kWarning : xml::Severity::kNote);
  if (diagnostics.has_errors()) return kInputIsWrong;
  if (!config->unused.empty()) {
    std::cout << fmt::format("{}: these settings have no effect in this version: {}\n",
                             options.file(), fmt::join(config->unused, ", "));
  }
  if (!options.quiet) {
    std::cout << options.file()
              << (diagnostics.warning_count() > 0 || !config->unused.empty()
                      ? " can be used; see the warnings\n"
                      : " is fine\n");
  }
  return 0;
}

int Print(const Options& options) {
  if (access(options.file().c_str(), R_OK) != 0) {
    std::cerr << fmt::format("zeze config: cannot read {}; name another file\n", options.file());
    return kCannotRead;
  }
  xml::Diagnostics diagnostics(options.strict);
  const std::optional<Config> config = Load(options, diagnostics);
  std::cerr << diagnostics.Format(xml::Severity::kWarning);
  if (!config || diagnostics.has_errors()) return kInputIsWrong;
  std::cout << config->Format(
      {.defaults = !options.set_only, .unused = options.all, .explanations = options.explain});
  return 0;
}

std::string_view KindName(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::kText:
    case SettingKind::kSecret:
      return "text";
    case SettingKind::kBool:
      return "true or false";
    case SettingKind::kInteger:
      return "whole number";
    case SettingKind::kNumber:
      return "number";
    case SettingKind::kSize:
      return "size: 20000, 64k, 1.5g, max";
    case SettingKind::kDuration:
      return setting.unit == std::chrono::seconds(1) ? "duration: 8s, 500ms; plain: seconds"
                                                     : "duration: 8s, 500ms; plain: milliseconds";
    case SettingKind::kChoice:
      return setting.choices;
  }
  return "";
}

// Returns how many settings were printed.
int PrintSettings(ElementKind kind, std::string_view name) {
  int count = 0;
  for (const Setting& setting : SettingsOf(kind)) {
    if (!name.empty() && !EqualsIgnoreCase(setting.name, name) &&
        !EqualsIgnoreCase(ElementName(kind), name)) {
      continue;
    }
    if (count++ == 0) std::cout << fmt::format("<{}>\n", ElementName(kind));
    std::cout << fmt::format("  {}{}\n      {}; default \"{}\"\n", setting.name,
                             setting.used ? "" : "   (accepted, without effect)", KindName(setting),
                             setting.default_value);
    if (!setting.help.empty()) std::cout << "      " << setting.help << '\n';
  }
  return count;
}

int Explain(const Options& options) {
  int count = 0;
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(ElementKind::kCustomize); ++i) {
    const auto kind = static_cast<ElementKind>(i);
    count += PrintSettings(kind, options.name);
    names.push_back(ElementName(kind));
    for (const Setting& setting : SettingsOf(kind)) names.push_back(setting.name);
  }
  if (count > 0) return 0;
  const std::string suggestion = xml::DidYouMean(options.name, names);
  std::cerr << fmt::format("zeze config explain: there is no setting or element \"{}\"{}{}\n",
                           options.name, suggestion.empty() ? "" : "; ", suggestion);
  return kInputIsWrong;
}

}  // namespace

void AddConfigCommand(CLI::App& app, int& exit_code) {
  CLI::App* config =
      app.add_subcommand("config", "Check and explain configuration files (zeze.xml)");
  config->require_subcommand(1);
  config->footer(
      "Examples:\n"
      "  zeze config check zeze.xml\n"
      "  zeze config print zeze.xml --set ServerId=3\n"
      "  zeze config explain CheckpointPeriod");

  const auto options = std::make_shared<Options>();
  CLI::App* check = config->add_subcommand("check", "Report everything that is wrong in a file");
  AddCommonOptions(*check, options);
  check->add_flag("-q,--quiet", options->quiet, "No notes, and nothing if all is fine");
  check->footer(
      "Examples:\n"
      "  zeze config check                           zeze.xml in this directory\n"
      "  zeze config check my.xml --strict           warnings are errors\n"
      "  zeze config check my.xml --table Shop_Order_tOrder --table Shop_Bag_tItem\n"
      "Exit code: 0 fine, 1 something is wrong, 2 the file cannot be read.");
  check->callback([options, &exit_code] { exit_code = Check(*options); });

  CLI::App* print =
      config->add_subcommand("print", "Print the effective values and where each comes from");
  AddCommonOptions(*print, options);
  print->add_flag("--set-only", options->set_only, "Only what differs from the defaults");
  print->add_flag("--all", options->all, "Also settings that this version does not use");
  print->add_flag("--explain", options->explain, "With what each setting does");
  print->footer(
      "Examples:\n"
      "  zeze config print zeze.xml\n"
      "  ZEZE_SERVERID=3 zeze config print zeze.xml --set-only\n"
      "Passwords are not shown.\n"
      "Exit code: 0 fine, 1 something is wrong, 2 the file cannot be read.");
  print->callback([options, &exit_code] { exit_code = Print(*options); });

  CLI::App* explain = config->add_subcommand("explain", "Say what settings there are");
  explain->add_option("name", options->name, "An attribute or element; all of them by default");
  explain->footer(
      "Examples:\n"
      "  zeze config explain\n"
      "  zeze config explain TableConf\n"
      "  zeze config explain CheckpointPeriod");
  explain->callback([options, &exit_code] { exit_code = Explain(*options); });
}

}  // namespace zeze::cli
