// Config: what zeze.xml says, checked, with defaults, and with the overrides of the environment and
// the command line applied. See docs/configuration.md.
//
//   Result<Config> config = Config::Load("zeze.xml");
//   if (!config.ok()) return Fail(config.error());   // All errors of the file, with their places.
//   config.value().server_id; config.value().Table("Shop_Order_tOrder").cache_capacity;

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/config/section.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze {

struct DatabaseConfig {
  std::string name = {};        // Empty: the default database.
  std::string type = "Memory";  // DatabaseType: the name of a driver.
  std::string url = {};         // RocksDB: a directory.
  ConfigSection section{ElementKind::kDatabase};
};

struct TableConfig {
  std::string name =
      {};  // As in the file, or as resolved by Config::ResolveTables. Empty: the default.

  // CacheCapacity times CacheFactor, in records, at least 1; 0: no limit.
  std::size_t cache_capacity = 100'000;
  bool durable_at_commit = false;  // CheckpointWhenCommit
  std::string database_name = {};  // Of a DatabaseConfig that exists.
  ConfigSection section{ElementKind::kTable};
};

struct ServiceConfig {
  std::string name = {};                         // Empty: for services without their own.
  ConfigSection section{ElementKind::kService};  // Its children: acceptors, connectors, websockets.
};

// For whoever knows the name: any attributes and content.
struct CustomizeConfig {
  std::string name = {};
  std::shared_ptr<const xml::Document> document = nullptr;  // Keeps the element alive.
  const xml::Element* element = nullptr;
};

struct HostAndPort {
  std::string host = {};
  std::uint16_t port = 0;
  bool operator==(const HostAndPort&) const = default;
};

// Names and values.
using ConfigVariables = std::map<std::string, std::string>;

// The variables of this process that begin with ZEZE_.
ConfigVariables ReadEnvironment();

struct ConfigLoadOptions {
  // A missing file is an error, so that a forgotten one does not silently mean a database in
  // memory. True: all defaults instead.
  bool allow_missing_file = false;

  // Absent: ReadEnvironment().
  std::optional<ConfigVariables> environment = std::nullopt;

  // "ServerId=3", "table.Shop_Order_tOrder.CacheCapacity=1m", "database.DatabaseUrl=/data",
  // "service.linkd.Port=10000": stronger than the environment, which is stronger than the file.
  std::vector<std::string> overrides = {};
};

// Takes what concerns the configuration out of a program's arguments, and leaves the others:
//   --config FILE   --set NAME=VALUE (any number)   --no-config (allow_missing_file)
// The first element (the program's name) is left alone.
struct ConfigArguments {
  std::string file = {};  // zeze.xml, or what ZEZE_CONFIG or --config says.
  ConfigLoadOptions options = {};
};
Result<ConfigArguments> TakeConfigArguments(std::vector<std::string>& arguments);

// A value: reading and copying it is all there is. Plain members, because it is plain data.
class Config {
 public:
  // Fails with kNotFound if there is no such file, else with kInvalidArgument and all errors in the
  // message. Warnings go to the log.
  static Result<Config> Load(const std::string& path, const ConfigLoadOptions& options = {});

  // For tools: everything found goes to diagnostics, nothing to the log. Nothing is returned if
  // there was an error.
  static std::optional<Config> Load(const std::string& path, const ConfigLoadOptions& options,
                                    xml::Diagnostics& diagnostics);

  // From text, with `name` in place of the file name.
  static std::optional<Config> Parse(std::string_view text, const std::string& name,
                                     const ConfigLoadOptions& options,
                                     xml::Diagnostics& diagnostics);

  // The table with this storage name, or what the default TableConf says.
  const TableConfig& Table(std::string_view storage_name) const;

  // The service of this name, or the default one.
  const ServiceConfig& Service(std::string_view name) const;

  const CustomizeConfig* Customize(std::string_view name) const;

  // Says which tables the TableConfs mean. Their names may be storage names (Shop_Order_tOrder),
  // dotted ones (Shop.Order.tOrder), or the end of one (tOrder, Order.tOrder) if only one table
  // ends so. Afterwards Table() knows them by their storage names. A name that fits several tables,
  // or two names for one, is an error; a name that fits none is a warning.
  void ResolveTables(std::span<const std::string_view> storage_names,
                     xml::Diagnostics& diagnostics);

  struct FormatOptions {
    bool defaults = true;       // Also values that nobody set.
    bool unused = false;        // Also settings without effect in this version, if nobody set them.
    bool explanations = false;  // What each setting does.
  };
  // Every section with its effective values and their sources, for people. Passwords are masked.
  std::string Format(const FormatOptions& options) const;
  std::string Format() const { return Format(FormatOptions()); }

  std::string file = {};  // Empty if there was none.

  std::int32_t server_id = 0;
  std::uint64_t app_version = 0;  // Four parts of 16 bits.
  bool no_database = false;

  std::size_t worker_threads = 0;    // 0: see docs/configuration.md.
  std::size_t critical_threads = 0;  // 0: see there.
  std::size_t scheduled_threads = 0;
  std::size_t worker_queue_length = 0;
  std::size_t one_by_one_lanes = 0;

  std::chrono::nanoseconds checkpoint_period{};  // 0: only on demand.
  std::size_t dirty_records_max = 0;
  std::size_t dirty_bytes_max = 0;
  int procedure_attempts_max = 0;
  std::chrono::nanoseconds long_procedure_time{};
  bool allow_schema_reuse_variable_id = true;

  std::string log_level;  // Empty: as it is.
  std::string log_file;   // Empty: standard error.

  // The shards of Global; none: no other process uses the database.
  std::vector<HostAndPort> global_cache_managers;

  std::map<std::string, DatabaseConfig, std::less<>> databases;  // At least one.
  std::map<std::string, TableConfig, std::less<>> tables;        // "" is always there.
  std::map<std::string, ServiceConfig, std::less<>> services;    // "" is always there.
  std::map<std::string, CustomizeConfig, std::less<>> customize;
  std::map<std::string, std::string, std::less<>> properties;

  // What somebody set although it has no effect in this version: "History of <zeze>".
  std::vector<std::string> unused;

  // The root element with all its attributes, also those without a member here.
  ConfigSection section{ElementKind::kZeze};
};

// Sets the log's level and file, if the configuration says anything about them. Fails with
// kUnavailable if the file cannot be opened; nothing is changed then.
Result<void> ApplyLogSettings(const Config& config);

}  // namespace zeze
