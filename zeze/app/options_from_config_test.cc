// Every setting has an effect, or its lack of one is said.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/config/setting.h"
#include "zeze/xml/diagnostics.h"

namespace zeze {
namespace {

using ::testing::HasSubstr;

Config Parse(const std::string& zeze, const std::string& database,
             ConfigVariables environment = {}) {
  xml::Diagnostics diagnostics;
  ConfigLoadOptions options;
  options.environment = std::move(environment);
  std::optional<Config> config = Config::Parse(
      "<zeze " + zeze + "><DatabaseConf " + database + "/></zeze>", "z.xml", options, diagnostics);
  EXPECT_TRUE(config) << diagnostics.Format();
  return config ? *config : Config();
}

constexpr const char* kPostgres = "DatabaseType='PostgreSQL' DatabaseUrl='postgresql://db/game'";

// Everything that OptionsFromConfig says, as text; or its error.
std::string Effect(const Config& config) {
  const Result<ApplicationOptions> made = OptionsFromConfig(config);
  if (!made.ok()) return made.error().message();
  const ApplicationOptions& o = made.value();
  std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", o.server_id,
      o.app_main_version, o.storage.url, o.storage.user, o.storage.password,
      o.storage.connections_max, o.allow_unfenced_global, o.lease.count(), o.worker_threads,
      o.critical_threads, o.scheduled_threads, o.worker_queue_max, o.lane_count,
      o.checkpoint_period.count(), o.long_procedure.count(), o.attempts_max, o.dirty_records_max,
      o.liveness.period.count(), o.liveness.limit.count(), o.liveness.checkpoint_limit.count(),
      o.reuse_variable_ids, o.dirty_bytes_max, o.stop_wait_max.count());
  for (const auto& global : o.globals) text += fmt::format(" {}:{}", global.host, global.port);
  if (o.global_tls) {
    text +=
        fmt::format(" {} {} {} {}", o.global_tls->certificate_file, o.global_tls->private_key_file,
                    o.global_tls->authorities_file, o.global_tls_name);
  }
  return text;
}

// A value that differs from the default, and what else must be said with it.
std::string OtherValue(const Setting& setting) {
  static const std::map<std::string_view, std::string> special = {
      {"AppVersion", "2.0.0.0"},
      {"GlobalCacheManagerHostNameOrAddress", "a:1"},
      {"GlobalCacheManagerPort", "7"},
      {"LivenessLimit", "20s"},
      {"LivenessPeriod", "2s"},
      {"GlobalLease", "7s"},
      {"AllowSchemasReuseVariableIdWithSameType", "false"},
      {"DatabaseUrl", "postgresql://db/other"},
      {"DatabaseType", "MySql"}};
  if (const auto at = special.find(setting.name); at != special.end()) return at->second;
  switch (setting.kind) {
    case SettingKind::kBool:
      return setting.default_value == "true" ? "false" : "true";
    case SettingKind::kInteger:
    case SettingKind::kSize:
      return std::to_string(std::max<std::int64_t>(4321, setting.min + 1));
    case SettingKind::kDuration:
      return "4321s";
    case SettingKind::kChoice:
      return std::string(setting.choices.substr(0, setting.choices.find(' ')));
    default:
      return "other";
  }
}

// Read elsewhere; each has a test of its own there.
const std::set<std::string_view> kReadElsewhere = {"LogLevel",
                                                   "LogFile",         // ApplyLogSettings
                                                   "CheckpointMode",  // One choice is left.
                                                   "ServiceManager",  // AgentOptionsFromConfig
                                                   "OnlineLogoutDelay",
                                                   "ProviderThreshold",
                                                   "ProviderOverload",  // arch
                                                   "DelayRemoveHourStart",
                                                   "DelayRemoveHourEnd",
                                                   "DelayRemoveDays",
                                                   "Name"};

void ExpectEffects(ElementKind kind) {
  for (const Setting& setting : SettingsOf(kind)) {
    if (kReadElsewhere.contains(setting.name)) continue;
    const std::string attribute = fmt::format("{}='{}'", setting.name, OtherValue(setting));
    // What the setting needs to have an effect.
    std::string zeze =
        setting.name.starts_with("GlobalTls") && setting.name != "GlobalTlsAuthoritiesFile"
            ? "GlobalTlsAuthoritiesFile='system'"
            : "";
    if (setting.name == "GlobalCacheManagerPort") {
      zeze = "GlobalCacheManagerHostNameOrAddress='a'";
    }
    std::string database = kPostgres;
    if (setting.name == "DatabaseType" || setting.name == "DatabaseUrl") {
      database = setting.name == "DatabaseType" ? "DatabaseUrl='postgresql://db/game'"
                                                : "DatabaseType='PostgreSQL'";
    }
    const bool in_zeze = kind == ElementKind::kZeze;
    const Config before = Parse(setting.name == "GlobalCacheManagerPort" ? "" : zeze,
                                in_zeze || database != kPostgres ? kPostgres : database);
    const Config after = Parse(in_zeze ? fmt::format("{} {}", zeze, attribute) : zeze,
                               in_zeze ? database : fmt::format("{} {}", database, attribute));
    const bool said = !after.unused.empty();
    EXPECT_EQ(said, !setting.used) << setting.name;
    if (setting.used) {
      EXPECT_NE(Effect(before), Effect(after)) << setting.name;
    }
  }
}

TEST(OptionsFromConfigTest, EverySettingOfTheProcessHasAnEffectOrItIsSaid) {
  ExpectEffects(ElementKind::kZeze);
}

TEST(OptionsFromConfigTest, EverySettingOfTheDatabaseHasAnEffectOrItIsSaid) {
  ExpectEffects(ElementKind::kDatabase);
}

TEST(OptionsFromConfigTest, TakesThePasswordFromTheEnvironment) {
  const Config config = Parse("", std::string(kPostgres) + " UserName='shop'",
                              {{"ZEZE_DATABASE_PASSWORD", "secret"}});
  const ApplicationOptions options = OptionsFromConfig(config).value();
  EXPECT_EQ(options.storage.user, "shop");
  EXPECT_EQ(options.storage.password, "secret");
  EXPECT_EQ(options.storage.connections_max, 8U);
}

TEST(OptionsFromConfigTest, RefusesIncompleteTlsOfGlobal) {
  const auto failure = [](const std::string& zeze) {
    const Result<ApplicationOptions> made = OptionsFromConfig(Parse(zeze, kPostgres));
    return made.ok() ? "ok" : made.error().message();
  };
  EXPECT_THAT(failure("GlobalTlsName='global'"),
              HasSubstr("GlobalTlsName is set, but GlobalTlsAuthoritiesFile is missing"));
  EXPECT_THAT(failure("GlobalTlsCertificateFile='a.pem' GlobalTlsKeyFile='a.key'"),
              HasSubstr("GlobalTlsCertificateFile is set, but GlobalTlsAuthoritiesFile is"));
  EXPECT_THAT(failure("GlobalTlsAuthoritiesFile='system' GlobalTlsKeyFile='a.key'"),
              HasSubstr("GlobalTlsKeyFile is set, but GlobalTlsCertificateFile is missing"));
  EXPECT_THAT(failure("GlobalTlsAuthoritiesFile='not-there.pem'"), HasSubstr("not-there.pem"));
  EXPECT_EQ(failure("GlobalTlsAuthoritiesFile='system' GlobalTlsName='global'"), "ok");
  EXPECT_FALSE(Application::Open("test", {.global_tls_name = "global"}).ok());
}

TEST(OptionsFromConfigTest, RefusesDatabasesThatItCannotOpen) {
  const Result<ApplicationOptions> refused =
      OptionsFromConfig(Parse("", "DatabaseType='MongoDB' DatabaseUrl='x'"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(),
              HasSubstr("DatabaseType MongoDB is not built into this program"));
}

std::string Failure(const std::string& zeze, const std::string& database) {
  const Result<ApplicationOptions> made = OptionsFromConfig(Parse(zeze, database));
  return made.ok() ? "ok" : made.error().message();
}

TEST(OptionsFromConfigTest, RefusesAddressesOfDatabasesThatCannotBeMeant) {
  for (const std::string type : {"PostgreSQL", "MySql"}) {
    const std::string own = type == "MySql" ? "mysql" : "postgresql";
    const std::string other = type == "MySql" ? "postgresql" : "mysql";
    const auto failure = [&type](const std::string& url) {
      return Failure("", fmt::format("DatabaseType='{}' DatabaseUrl='{}'", type, url));
    };
    for (const std::string& url :
         {"jdbc:" + other + "://h/g", std::string(), std::string("garbage"), own + "://h:99999/g",
          own + "://h:port/g", own + ":///g"}) {
      EXPECT_THAT(failure(url), HasSubstr("z.xml:1:")) << url;
      EXPECT_THAT(failure(url), HasSubstr("DatabaseUrl: ")) << url;
    }
    EXPECT_EQ(failure("jdbc:" + own + "://u:p@h:1234/g"), "ok");
  }
}

// Certificates that would protect nothing, because the connection need not be encrypted.
TEST(OptionsFromConfigTest, RefusesIncompleteTlsOfDatabases) {
  const auto failure = [](const std::string& type, const std::string& url) {
    return Failure("", fmt::format("DatabaseType='{}' DatabaseUrl='{}'", type, url));
  };
  EXPECT_THAT(failure("PostgreSQL", "postgresql://h/g?sslrootcert=ca.pem"),
              HasSubstr("sslrootcert is set in the address of the database"));
  EXPECT_EQ(failure("PostgreSQL", "postgresql://h/g?sslmode=verify-full&amp;sslrootcert=ca.pem"),
            "ok");
  EXPECT_THAT(failure("MySql", "mysql://h/g?serverSslCert=ca.pem"),
              HasSubstr("add sslMode=verify-full"));
  EXPECT_THAT(failure("MySql", "mysql://h/g?useSSL=true"), HasSubstr("add sslMode=verify-full"));
  EXPECT_EQ(failure("MySql", "mysql://h/g?useSSL=false&amp;serverTimezone=UTC"), "ok");
  EXPECT_EQ(failure("MySql", "mysql://h/g?sslMode=verify-full&amp;serverSslCert=ca.pem"), "ok");
}

TEST(OptionsFromConfigTest, RefusesADatabaseOfOneProcessWithAGlobal) {
  const std::string global = "GlobalCacheManagerHostNameOrAddress='127.0.0.1:5002'";
  EXPECT_THAT(Failure(global, "DatabaseType='RocksDB'"),
              HasSubstr("a RocksDB database belongs to one process, but a Global is configured"));
  EXPECT_THAT(Failure(global, "DatabaseType='Memory'"),
              HasSubstr("a Memory database belongs to one process, but a Global is configured"));
  EXPECT_EQ(Failure(global, kPostgres), "ok");
  const auto opened = Application::Open(
      "test", {.storage = {.url = "memory:"}, .globals = {{.host = "127.0.0.1"}}});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ErrorCode::kInvalidArgument);
}

TEST(OptionsFromConfigTest, ANegativeServerIdHasNoDatabase) {
  EXPECT_THAT(Failure("ServerId='-1'", kPostgres),
              HasSubstr("ServerId is -1: a negative one is for processes without a database"));
  EXPECT_THAT(Failure("ServerId='-1'", "DatabaseType='RocksDB'"), HasSubstr("ServerId is -1"));
  EXPECT_EQ(Failure("ServerId='-1'", "DatabaseType='Memory'"), "ok");
  EXPECT_FALSE(Application::Open("test", {.server_id = -1}).ok());
}

}  // namespace
}  // namespace zeze
