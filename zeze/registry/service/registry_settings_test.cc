#include "zeze/registry/service/registry_settings.h"

#include <chrono>
#include <optional>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::registry {
namespace {

using ::testing::HasSubstr;

Config Parse(std::string_view text) {
  xml::Diagnostics diagnostics;
  std::optional<Config> config = Config::Parse(
      text, "zeze.xml", {.environment = ConfigVariables(), .overrides = {}}, diagnostics);
  EXPECT_TRUE(config.has_value()) << diagnostics.Format();
  return config.value_or(Config());
}

TEST(RegistrySettingsTest, DefaultsWithoutASection) {
  const auto settings = RegistrySettingsFromConfig(Parse("<zeze/>"));
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(5001, settings.value().service.acceptors.front().port);
  EXPECT_TRUE(settings.value().service.service.handshake.has_value());
  EXPECT_EQ(".", settings.value().db_home);
}

TEST(RegistrySettingsTest, BothSectionsAreRead) {
  const auto settings = RegistrySettingsFromConfig(Parse(R"(
      <zeze>
        <CustomizeConf Name="Zeze.Services.ServiceManager" KeepAlivePeriod="-1" DbHome="/srv"
                       OfflineNotifyDelay="5000" RecoveryTime="2000" ThreadingReleaseTimeout="1"/>
        <ServiceConf Name="Zeze.Services.ServiceManager" InputBufferMaxProtocolSize="65536">
          <Acceptor Ip="127.0.0.1" Port="6001"/>
        </ServiceConf>
      </zeze>)"));
  ASSERT_TRUE(settings.ok()) << settings.error().message();
  const RegistryServiceOptions& service = settings.value().service;
  EXPECT_EQ(0, service.keep_alive_period.count());
  EXPECT_EQ(std::chrono::seconds(5), service.machine.offline.delay);
  EXPECT_EQ(std::chrono::seconds(2), service.machine.recovery);
  EXPECT_EQ("/srv", settings.value().db_home);
  EXPECT_EQ(6001, service.acceptors.front().port);
  EXPECT_EQ(65536U, service.service.frame_bytes_max);
}

TEST(RegistrySettingsTest, WrongSettingsAreNamedWithTheirPlace) {
  const auto number = RegistrySettingsFromConfig(Parse(
      "<zeze><CustomizeConf Name='Zeze.Services.ServiceManager' KeepAlivePeriod='soon'/></zeze>"));
  ASSERT_FALSE(number.ok());
  EXPECT_THAT(number.error().message(), HasSubstr("zeze.xml:1:"));
  EXPECT_THAT(number.error().message(), HasSubstr("\"soon\""));
  const auto name = RegistrySettingsFromConfig(Parse(
      "<zeze><CustomizeConf Name='Zeze.Services.ServiceManager' KeepAlivPeriod='1'/></zeze>"));
  ASSERT_FALSE(name.ok());
  EXPECT_THAT(name.error().message(), HasSubstr("'KeepAlivePeriod'"));
}

TEST(RegistrySettingsTest, AnAgentIsThereIfItsServiceIs) {
  EXPECT_FALSE(AgentOptionsFromConfig(Parse("<zeze/>")).value().has_value());
  constexpr std::string_view kService = R"(
      <ServiceConf Name="Zeze.Services.ServiceManager.Agent">
        <Connector HostNameOrAddress="10.0.0.1" Port="5001"/>
      </ServiceConf></zeze>)";
  const auto agent = AgentOptionsFromConfig(Parse("<zeze>" + std::string(kService)));
  ASSERT_TRUE(agent.ok());
  ASSERT_TRUE(agent.value().has_value());
  EXPECT_EQ("10.0.0.1", agent.value()->connector.host);
  EXPECT_EQ(5001, agent.value()->connector.port);
  EXPECT_FALSE(
      AgentOptionsFromConfig(Parse("<zeze ServiceManager='disable'>" + std::string(kService)))
          .value()
          .has_value());
  const auto raft =
      AgentOptionsFromConfig(Parse("<zeze ServiceManager='raft'>" + std::string(kService)));
  ASSERT_FALSE(raft.ok());
  EXPECT_THAT(raft.error().message(), HasSubstr("not in this version"));
  EXPECT_FALSE(AgentOptionsFromConfig(
                   Parse("<zeze><ServiceConf Name='Zeze.Services.ServiceManager.Agent'/></zeze>"))
                   .ok());
}

}  // namespace
}  // namespace zeze::registry
