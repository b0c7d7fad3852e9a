#include "zeze/config/config.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/captured_log.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ConfigTest : public ::testing::Test {
 protected:
  // Without the environment of whoever runs the tests.
  std::optional<Config> TryParse(std::string_view text) {
    if (!options_.environment) options_.environment.emplace();
    return Config::Parse(text, "zeze.xml", options_, diagnostics_);
  }

  Config Parse(std::string_view text) {
    std::optional<Config> config = TryParse(text);
    EXPECT_TRUE(config) << diagnostics_.Format();
    return config ? *config : Config();
  }

  // The parse fails, and the words are in what it says.
  void ExpectError(std::string_view text, std::string_view words) {
    diagnostics_ = xml::Diagnostics();
    EXPECT_FALSE(TryParse(text)) << text;
    EXPECT_THAT(diagnostics_.Format(), HasSubstr(std::string(words)));
  }

  std::string Said() const { return diagnostics_.Format(); }

  ConfigLoadOptions options_;
  xml::Diagnostics diagnostics_;
};

TEST_F(ConfigTest, EmptyFileMeansDefaultsWithAMemoryDatabase) {
  const Config config = Parse("<zeze/>");

  EXPECT_EQ(config.server_id, 0);
  EXPECT_EQ(config.checkpoint_period, seconds(60));
  EXPECT_EQ(config.worker_threads, 0u);
  EXPECT_EQ(config.one_by_one_lanes, 1024u);
  EXPECT_EQ(config.databases.at("").type, "Memory");
  EXPECT_EQ(config.Table("any").cache_capacity, 100'000u);
  EXPECT_FALSE(config.Table("any").durable_at_commit);
  EXPECT_TRUE(Said().empty()) << Said();
}

TEST_F(ConfigTest, ReadsWhatExists) {
  const Config config = Parse(R"(
      <zeze name="shop" ServerId="7" AppVersion="1.2.3.4" CheckpointPeriod="5000"
            WorkerThreads="64" CriticalThreads="3" ScheduledThreads="2" LongProcedureTime="30s"
            LogLevel="DEBUG" AllowSchemasReuseVariableIdWithSameType="false">
        comments are text between elements
        <DatabaseConf Name="" DatabaseType="RocksDB" DatabaseUrl="/data/shop"/>
        <DatabaseConf Name="cold" DatabaseType="RocksDB"/>
        <TableConf CacheCapacity="1000"/>
        <TableConf Name="Shop_Order_tOrder" CacheCapacity="2k" CacheFactor="1.5"
                   CheckpointWhenCommit="true" DatabaseName="cold"/>
        <ServiceConf Name="linkd" Backlog="100">
          <Acceptor Ip="" Port="10000"/>
          <Connector HostNameOrAddress="10.0.0.1:20000" IsAutoReconnect="true"/>
        </ServiceConf>
        <CustomizeConf Name="mine" Anything="goes"><inside/></CustomizeConf>
        <Property Key="a" Value="b"/>
      </zeze>)");

  EXPECT_EQ(config.server_id, 7);
  EXPECT_EQ(config.app_version, 0x0001000200030004u);
  EXPECT_EQ(config.checkpoint_period, seconds(5));
  EXPECT_EQ(config.worker_threads, 64u);
  EXPECT_EQ(config.critical_threads, 3u);
  EXPECT_EQ(config.scheduled_threads, 2u);
  EXPECT_EQ(config.long_procedure_time, seconds(30));
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_FALSE(config.allow_schema_reuse_variable_id);
  EXPECT_EQ(config.databases.at("").type, "RocksDB");
  EXPECT_EQ(config.databases.at("").url, "/data/shop");
  EXPECT_EQ(config.databases.at("cold").url, "");
  EXPECT_EQ(config.Table("Shop_Order_tOrder").cache_capacity, 3072u);
  EXPECT_TRUE(config.Table("Shop_Order_tOrder").durable_at_commit);
  EXPECT_EQ(config.Table("Shop_Order_tOrder").database_name, "cold");
  EXPECT_EQ(config.Table("another").cache_capacity, 5000u);
  EXPECT_EQ(config.Service("linkd").section.Integer("Backlog"), 100);
  EXPECT_EQ(config.Service("linkd").section.children.size(), 2u);
  EXPECT_EQ(config.Service("unknown").section.Integer("Backlog"), 4096);
  ASSERT_NE(config.Customize("mine"), nullptr);
  EXPECT_EQ(config.Customize("mine")->element->GetAttribute("Anything"), "goes");
  EXPECT_EQ(config.Customize("yours"), nullptr);
  EXPECT_EQ(config.properties.at("a"), "b");
  EXPECT_EQ(diagnostics_.warning_count(), 0u) << Said();
}

// Every attribute that files of the reference may have is known, and defaults are valid values.
TEST_F(ConfigTest, KnowsEverySettingAndItsDefaultIsRight) {
  for (int i = 0; i <= static_cast<int>(ElementKind::kCustomize); ++i) {
    const auto kind = static_cast<ElementKind>(i);
    std::set<std::string_view> names;
    for (const Setting& setting : SettingsOf(kind)) {
      EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
      if (setting.default_value.empty()) continue;
      const Result<void> checked = CheckSetting(setting, setting.default_value);
      EXPECT_TRUE(checked.ok()) << setting.name << ": " << checked.error().message();
    }
  }
}

TEST_F(ConfigTest, SettingsWithoutEffectAreListed) {
  const Config config =
      Parse(R"(<zeze History="ids" CheckpointFlushMode="MultiThread" NoDatabase="false"/>)");

  EXPECT_EQ(diagnostics_.warning_count(), 0u);
  EXPECT_THAT(
      Said(),
      AllOf(HasSubstr("note: History of <zeze> is accepted, but has no effect in this version"),
            HasSubstr("CheckpointFlushMode"), HasSubstr("NoDatabase")));
  EXPECT_THAT(config.Format(), ::testing::ContainsRegex("History +\"ids\" +.*, without effect"));
}

TEST_F(ConfigTest, UnknownAttributesAreWarnedAboutWithASuggestion) {
  Parse("<zeze>\n  <TableConf CacheCapacty='5'/>\n</zeze>");

  EXPECT_THAT(Said(), HasSubstr("zeze.xml:2:"));
  EXPECT_THAT(Said(), HasSubstr("unknown attribute 'CacheCapacty' of <TableConf>"));
  EXPECT_THAT(Said(), HasSubstr("did you mean 'CacheCapacity'?"));
}

TEST_F(ConfigTest, AttributeInTheWrongElementIsSentToTheRightOne) {
  Parse("<zeze CacheCapacity='5'/>");

  EXPECT_THAT(Said(), HasSubstr("it is an attribute of <TableConf>"));
}

TEST_F(ConfigTest, DeadAttributesAreExplained) {
  Parse("<zeze CheckpointModeTableFlushConcurrent='true'/>");

  EXPECT_THAT(Said(), HasSubstr("has no effect: no version has read it"));
}

TEST_F(ConfigTest, AWebsocketWithoutAPortIsExplained) {
  const Config config = Parse(
      "<zeze><ServiceConf Name='a'><Websocket Path='/a'/><Websocket Path='/b' Port='7'/>"
      "</ServiceConf></zeze>");

  EXPECT_EQ(config.Service("a").section.children.size(), 2U);
  EXPECT_THAT(Said(), HasSubstr("<Websocket> without Port has no effect"));
}

TEST_F(ConfigTest, WrongCaseIsAcceptedWithAWarning) {
  const Config config = Parse(
      "<zeze serverid='3' CheckpointMode='table'><databaseconf databaseType='rocksdb'/>"
      "<ServiceConf MaxConnections='9'/></zeze>");

  EXPECT_EQ(config.server_id, 3);
  EXPECT_EQ(config.databases.at("").type, "rocksdb");
  EXPECT_EQ(config.Service("").section.Integer("maxConnections"), 9);
  EXPECT_THAT(Said(), AllOf(HasSubstr("write 'ServerId'"), HasSubstr("write <DatabaseConf>"),
                            HasSubstr("write \"Table\""), HasSubstr("write 'maxConnections'")));
}

TEST_F(ConfigTest, TheSameAttributeInTwoCasesIsAnError) {
  ExpectError("<zeze ServerId='3' serverid='4'/>", "given twice, in different case");
}

TEST_F(ConfigTest, ReportsAllErrorsOfARun) {
  EXPECT_FALSE(TryParse(R"(<zeze ServerId="20000" CheckpointPeriod="soon" AppVersion="x">
      <DatabaseConf/>
      <TableConf CacheCapacity="many" DatabaseName="nowhere"/>
      <TableConf/>
      <Unheard/>
    </zeze>)"));

  EXPECT_THAT(Said(),
              AllOf(HasSubstr("20000 is outside the range from -2147483648 to 16383"),
                    HasSubstr("\"soon\" is not a duration"), HasSubstr("\"x\" is not a version"),
                    HasSubstr("<DatabaseConf> \"\" has no DatabaseType"),
                    HasSubstr("\"many\" is not a size"),
                    HasSubstr("there is no <DatabaseConf> with the name \"nowhere\""),
                    HasSubstr("second <TableConf> with the name \"\""),
                    HasSubstr("unknown element <Unheard> in <zeze>")));
}

TEST_F(ConfigTest, WrongLeasesAreErrors) {
  Parse("<zeze GlobalLease='500ms'/>");
  Parse("<zeze GlobalLease='10m'/>");
  ExpectError("<zeze GlobalLease='short'/>", "GlobalLease of <zeze>: ");
  ExpectError("<zeze GlobalLease='499'/>", "GlobalLease of <zeze>: 499 is too short");
  ExpectError("<zeze GlobalLease='11m'/>", "GlobalLease of <zeze>: 11m is too long");
}

TEST_F(ConfigTest, WrongLivenessSettingsAreErrors) {
  Parse("<zeze LivenessPeriod='5s'/>");
  Parse("<zeze LivenessPeriod='0' LivenessLimit='1'/>");
  ExpectError("<zeze LivenessPeriod='often'/>", "LivenessPeriod of <zeze>: ");
  ExpectError("<zeze LivenessPeriod='-1'/>", "LivenessPeriod of <zeze>: -1 is too short");
  ExpectError("<zeze LivenessLimit='0'/>", "LivenessLimit of <zeze>: 0 is too short");
  ExpectError("<zeze LivenessCheckpointLimit='0'/>", "LivenessCheckpointLimit of <zeze>: 0 is too");
  ExpectError("<zeze LivenessPeriod='6s'/>",
              "LivenessLimit of <zeze>: 10s is less than twice the LivenessPeriod of 6s");
  ExpectError("<zeze LivenessLimit='1999'/>",
              "LivenessLimit of <zeze>: 1s999ms is less than twice the LivenessPeriod of 1s");
}

TEST_F(ConfigTest, ElementsInTheWrongPlaceSayWhereTheyBelong) {
  ExpectError("<zeze><Acceptor Port='1'/></zeze>", "it belongs inside a <ServiceConf>");
  ExpectError("<zeze><TabelConf/></zeze>", "did you mean 'TableConf'?");
  ExpectError("<solution name='x'/>", "this is a schema: use \"zeze gen\"");
  ExpectError("<config/>", "the root element is <config>, not <zeze>");
  ExpectError("<zeze", "zeze.xml:1");
}

TEST_F(ConfigTest, DuplicatesNameBothPlaces) {
  ExpectError(
      "<zeze>\n<DatabaseConf DatabaseType='Memory'/>\n<DatabaseConf "
      "DatabaseType='Memory'/>\n</zeze>",
      "the first is at zeze.xml:2");
  ExpectError("<zeze><ServiceConf><Acceptor Port='5'/><Acceptor Port='5'/></ServiceConf></zeze>",
              "second <Acceptor :5>");
  ExpectError("<zeze><ServiceConf><Websocket Port='5'/><Websocket Port='5'/></ServiceConf></zeze>",
              "second <Websocket :5>");
  ExpectError("<zeze><CustomizeConf Name='a'/><CustomizeConf Name='a'/></zeze>",
              "second <CustomizeConf>");
}

TEST_F(ConfigTest, DatabaseMistakesAreErrors) {
  ExpectError("<zeze><DatabaseConf/></zeze>", "has no DatabaseType");
  ExpectError("<zeze><ServiceConf><Connector/></ServiceConf></zeze>", "where to connect to");
}

TEST_F(ConfigTest, ClusterMistakesAreErrors) {
  ExpectError("<zeze ProviderThreshold='5s' ProviderOverload='4s'/>",
              "5s is above the ProviderOverload of 4s");
  ExpectError("<zeze GlobalCacheManagerHostNameOrAddress='127.0.0.1'/>",
              "\"127.0.0.1\" has no port");
  ExpectError("<zeze GlobalCacheManagerHostNameOrAddress='a:1;global.xml'/>", "raft");
  ExpectError(
      "<zeze GlobalCacheManagerHostNameOrAddress='GlobalCacheManagersConf'>"
      "<GlobalCacheManagersConf><host name='a'/></GlobalCacheManagersConf></zeze>",
      "\"a\" has no port");
}

TEST_F(ConfigTest, HalfOfTheHoursOfRemovalIsWarnedAbout) {
  Parse("<zeze DelayRemoveHourEnd='5'/>");
  EXPECT_THAT(Said(), HasSubstr("DelayRemoveHourEnd has no effect without DelayRemoveHourStart"));
}

TEST_F(ConfigTest, SingleDatabaseMayHaveAName) {
  const Config config =
      Parse("<zeze><DatabaseConf Name='main' DatabaseType='RocksDB'/><TableConf Name='t'/></zeze>");

  EXPECT_EQ(config.databases.size(), 1u);
  EXPECT_EQ(config.Table("t").database_name, "main");
  ExpectError(
      "<zeze><DatabaseConf Name='a' DatabaseType='Memory'/><DatabaseConf Name='b' "
      "DatabaseType='Memory'/><TableConf Name='t'/></zeze>",
      "there is no <DatabaseConf> with the name \"\"");
}

// Which drivers there are is known to the program that opens it.
TEST_F(ConfigTest, EveryDatabaseTypeParses) {
  const Config config = Parse("<zeze><DatabaseConf DatabaseType='Oracle'/></zeze>");

  EXPECT_EQ(config.databases.at("").type, "Oracle");
}

TEST_F(ConfigTest, UnitsAreAcceptedAndPlainNumbersKeepTheirMeaning) {
  const Config config = Parse(
      "<zeze CheckpointPeriod='1.5m'><TableConf CacheCapacity='-1'/>"
      "<ServiceConf KeepCheckPeriod='8' KeepRecvTimeout='500ms' InputBufferMaxProtocolSize='64k'/>"
      "</zeze>");

  EXPECT_EQ(config.checkpoint_period, seconds(90));
  EXPECT_EQ(config.Table("t").cache_capacity, 0u);  // No limit.
  EXPECT_EQ(config.Service("").section.Duration("KeepCheckPeriod"), seconds(8));
  EXPECT_EQ(config.Service("").section.Duration("KeepRecvTimeout"), milliseconds(500));
  EXPECT_EQ(config.Service("").section.Size("InputBufferMaxProtocolSize"), 65536);
}

TEST_F(ConfigTest, NegativeServerIdMeansNoDatabase) {
  EXPECT_TRUE(Parse("<zeze ServerId='-1'/>").no_database);
}

TEST_F(ConfigTest, HostsMayBeWrittenWithColonOrUnderscore) {
  EXPECT_THAT(Parse("<zeze GlobalCacheManagerHostNameOrAddress='a_5002; b:5003 ;c;my_host;[::1]:9' "
                    "GlobalCacheManagerPort='7'/>")
                  .global_cache_managers,
              ElementsAre(HostAndPort{"a", 5002}, HostAndPort{"b", 5003}, HostAndPort{"c", 7},
                          HostAndPort{"my_host", 7}, HostAndPort{"[::1]", 9}));
  EXPECT_THAT(Parse("<zeze GlobalCacheManagerHostNameOrAddress='GlobalCacheManagersConf'>"
                    "<GlobalCacheManagersConf><host name='a:1'/></GlobalCacheManagersConf></zeze>")
                  .global_cache_managers,
              ElementsAre(HostAndPort{"a", 1}));
}

// Inheritance.

TEST_F(ConfigTest, NamedTableInheritsNothingUnlessItSaysSo) {
  const Config config = Parse(R"(<zeze>
      <TableConf CacheCapacity="10" CheckpointWhenCommit="true"/>
      <TableConf Name="alone"/>
      <TableConf Name="child" Inherit="true" CacheFactor="1"/>
      <TableConf Name="grandchild" Base="child" CheckpointWhenCommit="false"/>
    </zeze>)");

  EXPECT_EQ(config.Table("alone").cache_capacity, 100'000u);
  EXPECT_FALSE(config.Table("alone").durable_at_commit);
  EXPECT_EQ(config.Table("child").cache_capacity, 10u);
  EXPECT_TRUE(config.Table("child").durable_at_commit);
  EXPECT_EQ(config.Table("grandchild").cache_capacity, 10u);
  EXPECT_FALSE(config.Table("grandchild").durable_at_commit);
  EXPECT_THAT(config.Table("child").section.Find("CacheCapacity").source,
              HasSubstr("zeze.xml:2:18, via TableConf \"\""));
}

TEST_F(ConfigTest, WrongBasesAreErrors) {
  ExpectError("<zeze><ServiceConf Name='linkd'/><ServiceConf Name='b' Base='lnkd'/></zeze>",
              "did you mean 'linkd'?");
  ExpectError("<zeze><TableConf Name='a' Base='b'/><TableConf Name='b' Base='a'/></zeze>",
              "inherits from itself in a circle");
}

// Overrides.

TEST_F(ConfigTest, EnvironmentIsStrongerThanTheFileAndTheCommandLineThanBoth) {
  options_.environment = ConfigVariables{{"ZEZE_SERVERID", "5"},
                                         {"ZEZE_CHECKPOINTPERIOD", "1s"},
                                         {"ZEZE_DATABASE_DATABASETYPE", "RocksDB"},
                                         {"ZEZE_DATABASE_DATABASEURL", "/data"},
                                         {"ZEZE_LOG_LEVEL", "debug"},
                                         {"PATH", "/bin"}};
  options_.overrides = {"ServerId=6"};

  const Config config = Parse("<zeze ServerId='4' CheckpointPeriod='9'/>");

  EXPECT_EQ(config.server_id, 6);
  EXPECT_EQ(config.checkpoint_period, seconds(1));
  EXPECT_EQ(config.databases.at("").url, "/data");
  EXPECT_EQ(config.section.Find("ServerId").source, "--set ServerId");
  EXPECT_EQ(config.section.Find("CheckpointPeriod").source, "environment ZEZE_CHECKPOINTPERIOD");
  EXPECT_EQ(diagnostics_.warning_count(), 0u) << Said();
}

TEST_F(ConfigTest, TablesAndServicesCanBeOverriddenByName) {
  options_.environment = ConfigVariables{{"ZEZE_TABLE_SHOP_ORDER_TORDER_CACHECAPACITY", "7"},
                                         {"ZEZE_TABLE_CACHEFACTOR", "2"},
                                         {"ZEZE_SERVICE_MY_SERVICE_PORT", "10001"}};
  options_.overrides = {"table.Shop.Order.tNew.CheckpointWhenCommit=true",
                        "service.other.Backlog=5", "service.linkdservice.Backlog=6"};

  const Config config = Parse(R"(<zeze>
      <TableConf CacheCapacity="100"/>
      <TableConf Name="Shop.Order.tOrder" Inherit="true"/>
      <ServiceConf Name="My.Service"><Acceptor Port="1"/></ServiceConf>
      <ServiceConf Name="other"/>
    </zeze>)");

  EXPECT_EQ(config.Table("Shop.Order.tOrder").cache_capacity, 14u);
  // A table that only an override names keeps what the file says about all tables.
  EXPECT_EQ(config.Table("Shop.Order.tNew").cache_capacity, 200u);
  EXPECT_TRUE(config.Table("Shop.Order.tNew").durable_at_commit);
  EXPECT_EQ(config.Service("My.Service").section.children.at(0).Integer("Port"), 10001);
  EXPECT_EQ(config.Service("other").section.Integer("Backlog"), 5);
  // A service of zeze need not be in the file.
  EXPECT_EQ(config.Service("LinkdService").section.Integer("Backlog"), 6);
}

TEST_F(ConfigTest, OverridesOfServicesThatNobodyReadsAreTold) {
  options_.environment = ConfigVariables{{"ZEZE_SERVICE_NOPE_PORT", "5"},
                                         {"ZEZE_SERVICE_PROVIDERSERVICE_PORT", "6"},
                                         {"ZEZE_SERVICE_BACKLOG", "7"}};

  const Config config = Parse("<zeze/>");

  EXPECT_THAT(Said(), AllOf(HasSubstr("warning: the environment variable ZEZE_SERVICE_NOPE_PORT "
                                      "names no service and has no effect"),
                            Not(HasSubstr("PROVIDERSERVICE"))));
  EXPECT_EQ(config.services.size(), 2U);
  EXPECT_EQ(config.Service("ProviderService").section.children.at(0).Integer("Port"), 6);

  options_.environment = ConfigVariables{};
  options_.overrides = {"service.LinkdServce.Port=1"};
  ExpectError("<zeze/>", "--set service.LinkdServce.Port: there is no service \"LinkdServce\"");
  EXPECT_THAT(Said(), HasSubstr("did you mean 'LinkdService'?"));
}

TEST_F(ConfigTest, MisspeltNamesOfServicesAreWarnedAbout) {
  Parse(
      "<zeze><ServiceConf Name='LinkdServce'/><ServiceConf Name='providerservice'/>"
      "<ServiceConf Name='Game'/><ServiceConf Name='MyProviderService'/>"
      "<ServiceConf Name='Zeze.Services.ServiceManager.Agent'/>"
      "<CustomizeConf Name='Zeze.Linkdd'/><CustomizeConf Name='Arena'/></zeze>");

  EXPECT_THAT(Said(), AllOf(HasSubstr("reads a <ServiceConf> with the name \"LinkdServce\""),
                            HasSubstr("did you mean 'LinkdService'?"),
                            HasSubstr("did you mean 'ProviderService'?"),
                            HasSubstr("reads a <CustomizeConf> with the name \"Zeze.Linkdd\""),
                            HasSubstr("did you mean 'Zeze.Linkd'?")));
  EXPECT_EQ(diagnostics_.warning_count(), 3U) << Said();
}

TEST_F(ConfigTest, WrongOverridesAreTold) {
  options_.environment = ConfigVariables{{"ZEZE_SERVERDI", "5"}, {"ZEZE_SERVERID", "five"}};
  options_.overrides = {"ServrId=6", "ServerId", "table.CacheCapacty=5"};

  EXPECT_FALSE(TryParse("<zeze/>"));

  EXPECT_THAT(Said(),
              AllOf(HasSubstr("warning: the environment variable ZEZE_SERVERDI names no setting"),
                    HasSubstr("\"five\" is not a whole number (environment ZEZE_SERVERID)"),
                    HasSubstr("error: --set ServrId: there is no such setting"),
                    HasSubstr("did you mean 'ServerId'?"), HasSubstr("write NAME=VALUE"),
                    HasSubstr("did you mean 'CacheCapacity'?")));
}

TEST_F(ConfigTest, PortOfAServiceWithSeveralAcceptorsCannotBeOverridden) {
  options_.overrides = {"service.a.Port=1"};
  ExpectError(
      "<zeze><ServiceConf Name='a'><Acceptor Port='1'/><Acceptor Port='2'/></ServiceConf></zeze>",
      "has 2 acceptors");
}

TEST(ConfigArguments, TakesItsOptionsAndLeavesTheOthers) {
  std::vector<std::string> arguments = {"server",          "--set",       "ServerId=3", "--verbose",
                                        "--config=my.xml", "--no-config", "file"};

  const Result<ConfigArguments> taken = TakeConfigArguments(arguments);

  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken.value().file, "my.xml");
  EXPECT_TRUE(taken.value().options.allow_missing_file);
  EXPECT_THAT(taken.value().options.overrides, ElementsAre("ServerId=3"));
  EXPECT_THAT(arguments, ElementsAre("server", "--verbose", "file"));
  std::vector<std::string> incomplete = {"server", "--set"};
  EXPECT_FALSE(TakeConfigArguments(incomplete).ok());
}

// Names of tables.

class TableNames : public ConfigTest {
 protected:
  Config Resolve(std::string_view text) {
    Config config = Parse(text);
    constexpr std::string_view kTables[] = {"Shop_Order_tOrder", "Shop_Order_tBill",
                                            "Shop_Bag_tItem", "Shop_Mail_tItem"};
    config.ResolveTables(kTables, diagnostics_);
    return config;
  }
};

TEST_F(TableNames, MayBeStorageDottedOrShortNames) {
  const Config config = Resolve(R"(<zeze>
      <TableConf Name="Shop_Order_tOrder" CacheCapacity="1" CacheFactor="1"/>
      <TableConf Name="Shop.Bag.tItem" CacheCapacity="2" CacheFactor="1"/>
      <TableConf Name="tBill" CacheCapacity="3" CacheFactor="1"/>
      <TableConf Name="Mail.tItem" CacheCapacity="4" CacheFactor="1"/>
    </zeze>)");

  EXPECT_EQ(config.Table("Shop_Order_tOrder").cache_capacity, 1u);
  EXPECT_EQ(config.Table("Shop_Bag_tItem").cache_capacity, 2u);
  EXPECT_EQ(config.Table("Shop_Order_tBill").cache_capacity, 3u);
  EXPECT_EQ(config.Table("Shop_Mail_tItem").cache_capacity, 4u);
  EXPECT_TRUE(Said().empty()) << Said();
}

TEST_F(TableNames, AmbiguousNameIsAnError) {
  Resolve("<zeze><TableConf Name='tItem'/></zeze>");

  EXPECT_THAT(Said(), HasSubstr("error: <TableConf> \"tItem\" could mean each of Shop_Bag_tItem, "
                                "Shop_Mail_tItem"));
}

TEST_F(TableNames, NameOfNoTableIsAWarningWithASuggestion) {
  Resolve("<zeze>\n<TableConf Name='Shop_Order_tOder'/>\n<TableConf Name='tBil'/></zeze>");

  EXPECT_THAT(Said(), AllOf(HasSubstr("zeze.xml:2:"), HasSubstr("names no table"),
                            HasSubstr("did you mean 'Shop_Order_tOrder'?"),
                            HasSubstr("did you mean 'tBill'?")));
}

TEST_F(TableNames, TwoNamesForOneTableAreAnError) {
  Resolve("<zeze><TableConf Name='tOrder'/><TableConf Name='Shop.Order.tOrder'/></zeze>");

  EXPECT_THAT(Said(), HasSubstr("a second <TableConf> is about the table Shop_Order_tOrder"));
}

// Printing.

TEST_F(ConfigTest, FormatShowsValuesWithTheirSources) {
  options_.environment = ConfigVariables{{"ZEZE_SERVERID", "5"}};
  const Config config = Parse(
      "<zeze CheckpointPeriod='90000'>\n<DatabaseConf Name='sql' DatabaseType='MySql' "
      "DatabaseUrl='jdbc:mysql://a:secret@h/db?user=a&amp;password=secret&amp;x=1' "
      "Password='secret'/></zeze>");

  const std::string text = config.Format();

  EXPECT_THAT(text, ::testing::ContainsRegex("ServerId +5 +environment ZEZE_SERVERID"));
  EXPECT_THAT(text, ::testing::ContainsRegex("CheckpointPeriod +1m30s +zeze.xml:1"));
  EXPECT_THAT(text, ::testing::ContainsRegex("WorkerThreads +0 +default"));
  EXPECT_THAT(text, HasSubstr("mysql://a:***@h/db?user=a&password=***&x=1"));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(text, Not(HasSubstr("HotWorkingDir")));
  const std::string set_only = config.Format({.defaults = false});
  EXPECT_THAT(set_only, Not(HasSubstr("WorkerThreads")));
  EXPECT_THAT(set_only, HasSubstr("CheckpointPeriod"));
}

// Files.

class ConfigFileTest : public ::testing::Test {
 protected:
  ConfigFileTest() {
    directory_ =
        std::filesystem::path(::testing::TempDir()) / ("zeze_config_" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    options_.environment.emplace();
  }
  ~ConfigFileTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(std::string_view text) const {
    const std::string path = (directory_ / "zeze.xml").string();
    std::ofstream(path) << text;
    return path;
  }

  std::filesystem::path directory_;
  ConfigLoadOptions options_;
};

TEST_F(ConfigFileTest, MissingFileIsRefusedUnlessToldSo) {
  const std::string path = (directory_ / "no.xml").string();

  const Result<Config> refused = Config::Load(path, options_);
  options_.allow_missing_file = true;
  const Result<Config> accepted = Config::Load(path, options_);

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(refused.error().message(), HasSubstr("no.xml"));
  EXPECT_THAT(refused.error().message(), HasSubstr("--no-config"));
  ASSERT_TRUE(accepted.ok());
  EXPECT_EQ(accepted.value().file, "");
}

TEST_F(ConfigFileTest, WarningsGoToTheLogAndErrorsToTheCaller) {
  testing::CapturedLog log;

  const Result<Config> fine = Config::Load(Write("<zeze ServrId='1'/>"), options_);
  const Result<Config> wrong = Config::Load(Write("<zeze ServerId='x'/>"), options_);

  EXPECT_TRUE(fine.ok());
  EXPECT_THAT(log.lines(), Contains(AllOf(HasSubstr("warning: "), HasSubstr("'ServrId'"))));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(wrong.error().message(), HasSubstr("zeze.xml:1:"));
}

TEST_F(ConfigFileTest, LogSettingsAreApplied) {
  testing::CapturedLog log;  // Restores level and sink.
  const std::string log_file = (directory_ / "server.log").string();
  const Result<Config> config =
      Config::Load(Write("<zeze LogLevel='Error' LogFile='" + log_file + "'/>"), options_);
  ASSERT_TRUE(config.ok()) << config.error().message();

  ASSERT_TRUE(ApplyLogSettings(config.value()).ok());
  ZEZE_LOG_WARNING("unheard");
  ZEZE_LOG_ERROR("heard");

  std::ifstream in(log_file);
  std::string line;
  std::getline(in, line);
  EXPECT_THAT(line, HasSubstr("heard"));
  EXPECT_THAT(line, Not(HasSubstr("unheard")));
  EXPECT_FALSE(
      ApplyLogSettings(Config::Load(Write("<zeze LogFile='/proc/no/x'/>"), options_).value()).ok());
}

TEST_F(ConfigFileTest, FilesMayIncludeOthers) {
  std::ofstream(directory_ / "tables.xml") << "<TableConf CacheCapacity='1' CacheFactor='1'/>";

  const Result<Config> config =
      Config::Load(Write("<zeze xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include "
                         "href='tables.xml'/></zeze>"),
                   options_);

  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config.value().Table("t").cache_capacity, 1u);
}

}  // namespace
}  // namespace zeze
