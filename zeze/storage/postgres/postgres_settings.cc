#include "zeze/storage/postgres/postgres_settings.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <libpq-fe.h>

#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_url.h"

namespace zeze {
namespace {

std::set<std::string, std::less<>> KnownKeywords() {
  std::set<std::string, std::less<>> known;
  PQconninfoOption* defaults = PQconndefaults();
  for (PQconninfoOption* option = defaults; option != nullptr && option->keyword != nullptr;
       ++option) {
    known.insert(option->keyword);
  }
  PQconninfoFree(defaults);
  return known;
}

// The settings of a session that the database applies before the first statement. Keep-alive is set
// on its side too: a session whose client vanished must not hold locks for hours.
std::string SessionSettings(const PostgresOptions& options, const PostgresSession& session) {
  const auto network_seconds =
      std::max<std::int64_t>(1, options.network_timeout.count() / 1000 / 2);
  return fmt::format(
      "-c statement_timeout={} -c lock_timeout={} -c idle_in_transaction_session_timeout={} "
      "-c tcp_user_timeout={} -c tcp_keepalives_idle={} -c tcp_keepalives_interval=1 "
      "-c tcp_keepalives_count={} -c client_min_messages=warning "
      "-c default_transaction_isolation=read\\ committed",
      session.statement_timeout.count(), options.lock_timeout.count(),
      session.statement_timeout.count(), options.network_timeout.count(), network_seconds,
      network_seconds);
}

// Without sslmode libpq tries encryption and goes on without it: certificates would protect
// nothing.
Result<void> CheckTls(const DatabaseUrl& url) {
  const auto mode = url.parameters.find("sslmode");
  const std::string chosen = mode == url.parameters.end() ? "" : mode->second;
  if (chosen == "require" || chosen == "verify-ca" || chosen == "verify-full") return {};
  for (const char* file : {"sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir"}) {
    if (!url.parameters.contains(file)) continue;
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} is set in the address of the database, but the connection need not "
                    "be encrypted: add sslmode=verify-full (or verify-ca, require)",
                    file));
  }
  return {};
}

}  // namespace

Result<PostgresSettings> ConnectSettings(const PostgresOptions& options,
                                         const PostgresSession& session, std::size_t host) {
  Result<DatabaseUrl> parsed = ParseDatabaseUrl(options.url);
  if (!parsed.ok()) return parsed.error();
  const DatabaseUrl& url = parsed.value();
  if (url.scheme != "postgresql" && url.scheme != "postgres") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("'{}://' is no address of a PostgreSQL database", url.scheme));
  }
  if (Result<void> tls = CheckTls(url); !tls.ok()) return tls.error();
  const DatabaseHost& at = url.hosts[host % url.hosts.size()];
  const auto network_seconds =
      std::max<std::int64_t>(1, options.network_timeout.count() / 1000 / 2);
  PostgresSettings settings = {
      {"host", at.name},
      {"port", std::to_string(at.port == 0 ? 5432 : at.port)},
      {"dbname", url.database},
      {"user", options.user.empty() ? url.user : options.user},
      {"password", options.password.empty() ? url.password : options.password},
      {"application_name", session.application_name},
      {"client_encoding", "UTF8"},
      {"options", SessionSettings(options, session)},
      {"keepalives", "1"},
      {"keepalives_idle", std::to_string(network_seconds)},
      {"keepalives_interval", "1"},
      {"keepalives_count", std::to_string(network_seconds)},
      {"tcp_user_timeout", std::to_string(options.network_timeout.count())},
  };
  const std::set<std::string, std::less<>> known = KnownKeywords();
  for (const auto& [name, value] : url.parameters) {
    if (known.contains(name)) {
      settings.emplace_back(name, value);
    } else {
      ZEZE_LOG_WARNING_EVERY(std::chrono::hours(1),
                             "libpq has no parameter '{}' (in the address of the database)", name);
    }
  }
  return settings;
}

Result<void> CheckPostgresOptions(const PostgresOptions& options) {
  const Result<PostgresSettings> settings = ConnectSettings(options, {}, 0);
  if (!settings.ok()) return settings.error();
  return {};
}

}  // namespace zeze
