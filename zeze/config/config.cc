#include "zeze/config/config.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "zeze/base/check.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/base/url.h"
#include "zeze/config/internal/sections.h"
#include "zeze/config/section.h"
#include "zeze/config/setting.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze {

namespace {

using internal::Sections;

std::size_t ToSize(std::int64_t value) {
  return static_cast<std::size_t>(std::max<std::int64_t>(value, 0));
}

// "1.2.3.4", missing parts are 0.
std::optional<std::uint64_t> ParseVersion(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '.');
  if (parts.empty() || parts.size() > 4) return std::nullopt;
  std::uint64_t version = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    std::int64_t part = 0;
    if (i < parts.size()) {
      const Result<std::int64_t> number = ParseInteger(parts[i], 0, 65535);
      if (!number.ok()) return std::nullopt;
      part = number.value();
    }
    version = version << 16 | static_cast<std::uint64_t>(part);
  }
  return version;
}

// "host", "host:port", "host_port", "[v6]:port".
std::optional<HostAndPort> ParseHost(std::string_view text, std::int64_t default_port) {
  HostAndPort host{.host = std::string(text), .port = static_cast<std::uint16_t>(default_port)};
  const std::size_t last = text.find_last_of(":_");
  if (last == std::string_view::npos || text.ends_with(']')) return host;
  const Result<std::int64_t> port = ParseInteger(text.substr(last + 1), 1, 65535);
  if (!port.ok()) {
    if (text[last] == '_') return host;  // A name with an underscore.
    return std::nullopt;
  }
  host.host = text.substr(0, last);
  host.port = static_cast<std::uint16_t>(port.value());
  return host;
}

// Turns sections into a Config and checks what spans several of them.
class Builder {
 public:
  Builder(Sections sections, std::shared_ptr<const xml::Document> document,
          xml::Diagnostics& diagnostics)
      : sections_(std::move(sections)), document_(std::move(document)), diagnostics_(diagnostics) {}

  Config Build() {
    BuildRoot();
    BuildDatabases();
    BuildTables();
    BuildServices();
    BuildOthers();
    NoteUnused();
    return std::move(config_);
  }

 private:
  void BuildRoot() {
    const ConfigSection& root = sections_.root;
    config_.server_id = static_cast<std::int32_t>(root.Integer("ServerId"));
    config_.no_database = root.Bool("NoDatabase") || config_.server_id < 0;
    if (const auto version = ParseVersion(root.Text("AppVersion"))) {
      config_.app_version = *version;
    } else {
      Error(root, "AppVersion", fmt::format("\"{}\" is not a version", root.Text("AppVersion")),
            "write up to four numbers below 65536, for example 1.0.2.0");
    }
    config_.worker_threads = ToSize(root.Integer("WorkerThreads"));
    config_.critical_threads = ToSize(root.Integer("CriticalThreads"));
    config_.scheduled_threads = ToSize(root.Integer("ScheduledThreads"));
    config_.worker_queue_length = ToSize(root.Size("WorkerQueueLength"));
    config_.one_by_one_lanes = ToSize(root.Integer("OneByOneLanes"));
    config_.checkpoint_period = root.Duration("CheckpointPeriod");
    config_.dirty_records_max = ToSize(root.Size("DirtyRecordsMax"));
    config_.dirty_bytes_max = ToSize(root.Size("DirtyBytesMax"));
    config_.procedure_attempts_max = static_cast<int>(root.Integer("ProcedureAttemptsMax"));
    config_.long_procedure_time = root.Duration("LongProcedureTime");
    config_.allow_schema_reuse_variable_id = root.Bool("AllowSchemasReuseVariableIdWithSameType");
    config_.log_level = root.Text("LogLevel");
    config_.log_file = root.Text("LogFile");
    BuildGlobalCacheManagers();
    CheckLiveness();
    CheckProviderLoad();
    CheckRemovalHours();
    config_.section = root;
  }

  // One transaction is tried in a period: with less time than that for its success, a process would
  // hang again and again in between.
  void CheckLiveness() {
    const ConfigSection& root = sections_.root;
    const std::chrono::nanoseconds period = root.Duration("LivenessPeriod");
    const std::chrono::nanoseconds limit = root.Duration("LivenessLimit");
    if (limit / 2 >= period) return;
    Error(root, "LivenessLimit",
          fmt::format("{} is less than twice the LivenessPeriod of {}", FormatDuration(limit),
                      FormatDuration(period)),
          "give a longer LivenessLimit, or a shorter LivenessPeriod");
  }

  void CheckRemovalHours() {
    const ConfigSection& root = sections_.root;
    const bool start = root.IsSet("DelayRemoveHourStart");
    if (start == root.IsSet("DelayRemoveHourEnd")) return;
    diagnostics_.Warning(root.location(),
                         fmt::format("{} has no effect without {}",
                                     start ? "DelayRemoveHourStart" : "DelayRemoveHourEnd",
                                     start ? "DelayRemoveHourEnd" : "DelayRemoveHourStart"),
                         "set both");
  }

  void CheckProviderLoad() {
    const ConfigSection& root = sections_.root;
    const std::chrono::nanoseconds busy = root.Duration("ProviderThreshold");
    const std::chrono::nanoseconds overload = root.Duration("ProviderOverload");
    if (busy <= overload) return;
    Error(root, "ProviderThreshold",
          fmt::format("{} is above the ProviderOverload of {}, but a server is busy before it is "
                      "overloaded",
                      FormatDuration(busy), FormatDuration(overload)),
          "give a shorter ProviderThreshold, or a longer ProviderOverload");
  }

  void BuildGlobalCacheManagers() {
    const ConfigSection& root = sections_.root;
    const std::string& list = root.Text("GlobalCacheManagerHostNameOrAddress");
    const std::int64_t port = root.Integer("GlobalCacheManagerPort");
    const auto add = [&](std::string_view text, const ConfigSection& section,
                         std::string_view attribute) {
      if (text.ends_with(".xml")) {
        Error(section, attribute,
              fmt::format("\"{}\" is a configuration of raft, which is not in this version", text),
              "write host:port, for example 10.0.0.1:5002");
      } else if (std::optional<HostAndPort> host = ParseHost(text, port)) {
        if (host->port == 0) {
          Error(section, attribute, fmt::format("\"{}\" has no port", text),
                "write host:port, for example 10.0.0.1:5002, or set GlobalCacheManagerPort");
        }
        config_.global_cache_managers.push_back(*std::move(host));
      } else {
        Error(section, attribute, fmt::format("\"{}\" is not a host", text),
              "write host:port, for example 10.0.0.1:5002");
      }
    };
    if (list == "GlobalCacheManagersConf") {
      if (sections_.hosts.empty()) {
        Error(root, "GlobalCacheManagerHostNameOrAddress",
              "it refers to a <GlobalCacheManagersConf> with hosts, and there is none",
              "add <GlobalCacheManagersConf><host name=\"...\"/></GlobalCacheManagersConf>");
      }
      for (const ConfigSection& host : sections_.hosts) add(host.Text("name"), host, "name");
      return;
    }
    for (const std::string_view text : Split(list, ';')) {
      add(text, root, "GlobalCacheManagerHostNameOrAddress");
    }
  }

  void BuildDatabases() {
    for (const ConfigSection& section : sections_.databases) {
      if (!section.IsSet("DatabaseType")) {
        diagnostics_.Error(section.location(),
                           fmt::format("<DatabaseConf> \"{}\" has no DatabaseType", section.name()),
                           "add DatabaseType=\"RocksDB\" or another one");
      }
      DatabaseConfig database{.name = section.name(),
                              .type = section.Text("DatabaseType"),
                              .url = section.Text("DatabaseUrl"),
                              .section = section};
      config_.databases.emplace(database.name, std::move(database));
    }
    if (config_.databases.empty()) config_.databases.try_emplace("");
  }

  void BuildTables() {
    for (const ConfigSection& section : sections_.tables) {
      TableConfig table = BuildTable(section);
      // With a single database there is no doubt which one is meant.
      if (table.database_name.empty() && config_.databases.size() == 1) {
        table.database_name = config_.databases.begin()->first;
      }
      if (!config_.databases.contains(table.database_name)) {
        std::vector<std::string_view> names;
        names.reserve(config_.databases.size());
        for (const auto& [name, database] : config_.databases) names.push_back(name);
        Error(section, "DatabaseName",
              fmt::format("there is no <DatabaseConf> with the name \"{}\"", table.database_name),
              xml::DidYouMean(table.database_name, names));
      }
      config_.tables.emplace(table.name, std::move(table));
    }
    if (!config_.tables.contains("")) {
      config_.tables.emplace("", BuildTable(ConfigSection(ElementKind::kTable)));
    }
  }

  TableConfig BuildTable(const ConfigSection& section) {
    TableConfig table{.name = section.name(),
                      .durable_at_commit = section.Bool("CheckpointWhenCommit"),
                      .database_name = section.Text("DatabaseName"),
                      .section = section};
    const std::int64_t capacity = section.Size("CacheCapacity");
    const double scaled = std::floor(static_cast<double>(capacity) * section.Number("CacheFactor"));
    constexpr double kLargest = 1e15;
    if (capacity < 0 || scaled >= kLargest) {
      table.cache_capacity = 0;
    } else {
      table.cache_capacity = static_cast<std::size_t>(std::max(scaled, 1.0));
    }
    return table;
  }

  void BuildServices() {
    for (const ConfigSection& section : sections_.services) {
      CheckThrottle(section);
      CheckEndpoints(section);
      config_.services.emplace(section.name(),
                               ServiceConfig{.name = section.name(), .section = section});
    }
    config_.services.try_emplace("");
  }

  void CheckThrottle(const ConfigSection& section) {
    if (!section.IsSet("TimeThrottle")) return;
    for (const std::string_view name :
         {"TimeThrottleSeconds", "TimeThrottleLimit", "TimeThrottleBandwidth"}) {
      if (section.IsSet(name)) continue;
      diagnostics_.Warning(section.location(),
                           fmt::format("TimeThrottle of <ServiceConf> \"{}\" has no effect: {} is "
                                       "missing",
                                       section.name(), name),
                           "TimeThrottle works only with all four of its attributes");
    }
  }

  void CheckEndpoints(const ConfigSection& section) {
    std::map<std::string, const ConfigSection*> seen;
    for (const ConfigSection& child : section.children) {
      std::string key;
      if (child.kind() == ElementKind::kAcceptor) {
        key = fmt::format("Acceptor {}:{}", child.Text("Ip"), child.Integer("Port"));
        if (child.Integer("Port") == 0) continue;  // Any port: never the same.
      } else if (child.kind() == ElementKind::kConnector) {
        key = "Connector " + ConnectorTarget(child);
      } else if (child.IsSet("Port")) {
        key = fmt::format("Websocket {}:{}", child.Text("Ip"), child.Integer("Port"));
        if (child.Integer("Port") == 0) continue;
      } else {
        key = "Websocket " + child.Text("Path");
        diagnostics_.Warning(child.location(),
                             "<Websocket> without Port has no effect: this version has no HTTP "
                             "server that it could be a part of",
                             "add Port, of its own");
      }
      const auto [first, is_new] = seen.emplace(std::move(key), &child);
      if (is_new) continue;
      diagnostics_.Error(child.location(),
                         fmt::format("there is a second <{}>; the first is at {}", first->first,
                                     first->second->location().ToString()),
                         "remove one");
    }
  }

  std::string ConnectorTarget(const ConfigSection& connector) {
    if (!connector.Text("Url").empty()) return MaskPasswords(connector.Text("Url"));
    const std::optional<HostAndPort> host =
        ParseHost(connector.Text("HostNameOrAddress"), connector.Integer("Port"));
    if (!host || host->host.empty() || host->port == 0) {
      diagnostics_.Error(connector.location(), "this <Connector> does not say where to connect to",
                         "add HostNameOrAddress and Port, or Url");
      return connector.location().ToString();
    }
    return fmt::format("{}:{}", host->host, host->port);
  }

  void BuildOthers() {
    for (const auto& [section, element] : sections_.customize) {
      config_.customize.emplace(
          section.name(),
          CustomizeConfig{.name = section.name(), .document = document_, .element = element});
    }
    for (const ConfigSection& property : sections_.properties) {
      config_.properties.insert_or_assign(property.Text("Key"), property.Text("Value"));
    }
  }

  // What is read so that the file loads, and nothing more.
  void NoteUnused() {
    NoteUnused(sections_.root);
    for (const auto* sections : {&sections_.databases, &sections_.tables, &sections_.services,
                                 &sections_.service_managers, &sections_.hosts}) {
      for (const ConfigSection& section : *sections) {
        NoteUnused(section);
        for (const ConfigSection& child : section.children) NoteUnused(child);
      }
    }
  }

  void NoteUnused(const ConfigSection& section) {
    for (const ConfigValue& value : section.values()) {
      if (value.setting->used || value.origin == ValueOrigin::kDefault) continue;
      if (value.source.find(", via ") != std::string::npos) continue;
      std::string name =
          fmt::format("{} of <{}>", value.setting->name, ElementName(section.kind()));
      diagnostics_.NoteOnce(section.location(),
                            fmt::format("{} is accepted, but has no effect in this version", name));
      if (std::find(config_.unused.begin(), config_.unused.end(), name) == config_.unused.end()) {
        config_.unused.push_back(std::move(name));
      }
    }
  }

  void Error(const ConfigSection& section, std::string_view attribute, std::string_view message,
             std::string suggestion) {
    const ConfigValue& value = section.Find(attribute);
    const bool elsewhere =
        value.origin == ValueOrigin::kEnvironment || value.origin == ValueOrigin::kCommandLine;
    diagnostics_.Error(section.location(),
                       fmt::format("{} of <{}>: {}{}", attribute, ElementName(section.kind()),
                                   message, elsewhere ? " (" + value.source + ")" : ""),
                       std::move(suggestion));
  }

  Sections sections_;
  std::shared_ptr<const xml::Document> document_;
  xml::Diagnostics& diagnostics_;
  Config config_;
};

std::optional<Config> Build(std::optional<xml::Document> document, const ConfigLoadOptions& options,
                            xml::Diagnostics& diagnostics) {
  Sections sections;
  std::shared_ptr<const xml::Document> kept;
  if (document) {
    kept = std::make_shared<const xml::Document>(*std::move(document));
    internal::ReadSections(kept->root(), sections, diagnostics);
  }
  internal::ApplyOverrides(options.environment ? *options.environment : ReadEnvironment(),
                           options.overrides, sections, diagnostics);
  internal::ApplyInheritance(sections, diagnostics);
  Config config = Builder(std::move(sections), std::move(kept), diagnostics).Build();
  if (diagnostics.has_errors()) return std::nullopt;
  return config;
}

Error NoSuchFile(const std::string& path) {
  return Error(ErrorCode::kNotFound,
               fmt::format("there is no configuration file {}; write one, for example\n"
                           "  <zeze ServerId=\"0\">\n"
                           "    <DatabaseConf DatabaseType=\"RocksDB\" DatabaseUrl=\"db\"/>\n"
                           "  </zeze>\n"
                           "or say that the defaults, with a database in memory, are meant "
                           "(--no-config, or ConfigLoadOptions::allow_missing_file)",
                           path));
}

std::optional<LogLevel> LevelOf(const Config& config) {
  if (config.log_level.empty()) return std::nullopt;
  return ParseLogLevel(config.log_level).value();
}

void LogWarnings(const xml::Diagnostics& diagnostics) {
  for (const xml::Diagnostic& diagnostic : diagnostics.all()) {
    if (diagnostic.severity == xml::Severity::kWarning) {
      ZEZE_LOG_WARNING("{}", diagnostic.ToString());
    } else if (diagnostic.severity == xml::Severity::kNote) {
      ZEZE_LOG_DEBUG("{}", diagnostic.ToString());
    }
  }
}

}  // namespace

ConfigVariables ReadEnvironment() {
  ConfigVariables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with("ZEZE_")) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Result<ConfigArguments> TakeConfigArguments(std::vector<std::string>& arguments) {
  ConfigArguments taken;
  const char* file = std::getenv("ZEZE_CONFIG");  // NOLINT(concurrency-mt-unsafe): at the start.
  taken.file = file != nullptr ? file : "zeze.xml";
  std::vector<std::string> others;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool wants_value = argument == "--config" || argument == "--set";
    if (i > 0 && wants_value && i + 1 == arguments.size()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{} needs a value, for example {}", argument,
                               argument == "--set" ? "--set ServerId=3" : "--config zeze.xml"));
    }
    const bool is_program_name = i == 0;
    if (!is_program_name && argument == "--config") {
      taken.file = arguments[++i];
    } else if (!is_program_name && argument == "--set") {
      taken.options.overrides.push_back(arguments[++i]);
    } else if (!is_program_name && argument.starts_with("--config=")) {
      taken.file = argument.substr(9);
    } else if (!is_program_name && argument.starts_with("--set=")) {
      taken.options.overrides.push_back(argument.substr(6));
    } else if (!is_program_name && argument == "--no-config") {
      taken.options.allow_missing_file = true;
    } else {
      others.push_back(argument);
    }
  }
  arguments = std::move(others);
  return taken;
}

std::optional<Config> Config::Load(const std::string& path, const ConfigLoadOptions& options,
                                   xml::Diagnostics& diagnostics) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    if (options.allow_missing_file) return Build(std::nullopt, options, diagnostics);
    diagnostics.Error({}, NoSuchFile(path).message());
    return std::nullopt;
  }
  std::optional<xml::Document> document = xml::Document::ParseFile(path, diagnostics);
  if (!document) return std::nullopt;
  std::optional<Config> config = Build(std::move(document), options, diagnostics);
  if (config) config->file = path;
  return config;
}

Result<Config> Config::Load(const std::string& path, const ConfigLoadOptions& options) {
  std::error_code code;
  if (!options.allow_missing_file && !std::filesystem::exists(path, code)) return NoSuchFile(path);
  xml::Diagnostics diagnostics;
  std::optional<Config> config = Load(path, options, diagnostics);
  LogWarnings(diagnostics);
  if (config && !config->unused.empty()) {
    ZEZE_LOG_WARNING("{}: these settings have no effect in this version: {}", path,
                     fmt::join(config->unused, ", "));
  }
  if (config) return *std::move(config);
  return Error(ErrorCode::kInvalidArgument, diagnostics.Format(xml::Severity::kError));
}

std::optional<Config> Config::Parse(std::string_view text, const std::string& name,
                                    const ConfigLoadOptions& options,
                                    xml::Diagnostics& diagnostics) {
  std::optional<xml::Document> document = xml::Document::ParseText(text, name, diagnostics);
  if (!document) return std::nullopt;
  std::optional<Config> config = Build(std::move(document), options, diagnostics);
  if (config) config->file = name;
  return config;
}

Result<void> ApplyLogSettings(const Config& config) {
  if (!config.log_file.empty()) {
    Result<std::shared_ptr<LogSink>> file = OpenLogFile(config.log_file);
    if (!file.ok()) return file.error();
    SetLogSink(std::move(file).value());
  }
  if (const std::optional<LogLevel> level = LevelOf(config)) SetLogLevel(*level);
  return {};
}

const TableConfig& Config::Table(std::string_view storage_name) const {
  const auto found = tables.find(storage_name);
  return found != tables.end() ? found->second : tables.find("")->second;
}

const ServiceConfig& Config::Service(std::string_view name) const {
  const auto found = services.find(name);
  return found != services.end() ? found->second : services.find("")->second;
}

const CustomizeConfig* Config::Customize(std::string_view name) const {
  const auto found = customize.find(name);
  return found != customize.end() ? &found->second : nullptr;
}

}  // namespace zeze
