#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "zeze/app/application.h"
#include "zeze/app/internal/check_options.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/config/section.h"
#include "zeze/net/tls.h"
#include "zeze/net/tls_settings.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_settings.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

namespace {

Result<void> SetStorage(const DatabaseConfig& database, ApplicationOptions& options) {
  const Result<StorageDriver> driver = FindStorageDriverByName(database.type);
  if (!driver.ok()) return driver.error();
  options.storage = {
      .url = driver.value().UrlOf(database.url),
      .user = database.section.Text("UserName"),
      .password = database.section.Text("Password"),
      .connections_max = static_cast<std::size_t>(database.section.Integer("MaxActive"))};
  const Result<void> checked = driver.value().check(options.storage);
  if (checked.ok()) return {};
  return Error(checked.error().code(),
               fmt::format("{}: DatabaseUrl: {}", database.section.Find("DatabaseUrl").source,
                           checked.error().message()));
}

Result<void> SetGlobalTls(const ConfigSection& section, ApplicationOptions& options) {
  const auto setting = [&section](std::string_view name) {
    return TlsSettings::One{.name = name, .value = section.Text(name)};
  };
  Result<std::optional<TlsOptions>> tls =
      ClientTlsOptions({.certificate = setting("GlobalTlsCertificateFile"),
                        .key = setting("GlobalTlsKeyFile"),
                        .authorities = setting("GlobalTlsAuthoritiesFile"),
                        .peer_name = setting("GlobalTlsName")});
  if (!tls.ok()) return tls.error();
  options.global_tls = std::move(tls).value();
  options.global_tls_name = section.Text("GlobalTlsName");
  if (!options.global_tls.has_value()) return {};
  const Result<TlsContextPtr> usable = TlsContext::ForClient(*options.global_tls);
  if (usable.ok()) return {};
  return Error(usable.error().code(), "GlobalTls...: " + usable.error().message());
}

}  // namespace

Result<ApplicationOptions> OptionsFromConfig(const Config& config) {
  ApplicationOptions options;
  // One home database: a transaction over two could be half saved by a crash between them.
  if (config.databases.size() > 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} databases are configured; all tables of a process live in one, "
                             "because only then is a checkpoint all or nothing: remove the others",
                             config.databases.size()));
  }
  for (const HostAndPort& one : config.global_cache_managers) {
    options.globals.push_back({.host = one.host, .port = one.port});
  }
  options.allow_unfenced_global = config.section.Bool("AllowUnfencedGlobal");
  if (Result<void> set = SetGlobalTls(config.section, options); !set.ok()) return set.error();
  if (Result<void> set = SetStorage(config.databases.begin()->second, options); !set.ok()) {
    return set.error();
  }
  options.server_id = config.server_id;
  if (Result<void> fits = internal::CheckApplicationOptions(options); !fits.ok())
    return fits.error();
  options.app_main_version = static_cast<std::int32_t>(config.app_version >> 48);
  options.worker_threads = config.worker_threads;
  options.critical_threads = config.critical_threads;
  options.scheduled_threads = config.scheduled_threads;
  if (config.worker_queue_length != 0) options.worker_queue_max = config.worker_queue_length;
  if (config.one_by_one_lanes != 0) options.lane_count = config.one_by_one_lanes;
  options.checkpoint_period = config.checkpoint_period;
  if (config.dirty_records_max != 0) options.dirty_records_max = config.dirty_records_max;
  if (config.dirty_bytes_max != 0) options.dirty_bytes_max = config.dirty_bytes_max;
  if (config.procedure_attempts_max != 0) options.attempts_max = config.procedure_attempts_max;
  if (config.long_procedure_time.count() != 0) options.long_procedure = config.long_procedure_time;
  options.lease = config.section.Duration("GlobalLease");
  options.stop_wait_max = config.section.Duration("StopWait");
  options.liveness = {.period = config.section.Duration("LivenessPeriod"),
                      .limit = config.section.Duration("LivenessLimit"),
                      .checkpoint_limit = config.section.Duration("LivenessCheckpointLimit")};
  options.reuse_variable_ids = config.allow_schema_reuse_variable_id;
  Result<std::optional<registry::RegistryAgentOptions>> registry =
      registry::AgentOptionsFromConfig(config);
  if (!registry.ok()) return registry.error();
  options.registry = std::move(registry).value();
  options.config = std::make_shared<Config>(config);
  return options;
}

}  // namespace zeze
