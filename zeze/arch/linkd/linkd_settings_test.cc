#include "zeze/arch/linkd/linkd_settings.h"

#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/net/frame.h"
#include "zeze/net/protocol.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::arch {
namespace {

Result<LinkdSettings> Settings(const std::string& text) {
  xml::Diagnostics diagnostics;
  const std::optional<Config> config =
      Config::Parse(text, "zeze.xml", {.environment = ConfigVariables{}}, diagnostics);
  EXPECT_TRUE(config.has_value()) << diagnostics.Format();
  return LinkdSettingsFromConfig(*config);
}

TEST(LinkdSettings, NothingMeansWhatSuitsAGateway) {
  const Result<LinkdSettings> settings = Settings("<zeze/>");
  ASSERT_TRUE(settings.ok());
  const LinkdOptions& options = settings.value().options;
  EXPECT_EQ(64U << 10, options.clients.frame_bytes_max);
  EXPECT_EQ(100'000U, options.clients.connections_max);
  EXPECT_EQ(10000, options.client_acceptors.at(0).port);
  EXPECT_EQ(11000, options.provider_acceptors.at(0).port);
  EXPECT_FALSE(options.registry.has_value());
  EXPECT_EQ("Linkd", settings.value().audience);
  EXPECT_EQ(std::chrono::seconds(90), options.clients.keep_alive.answer_timeout);
  EXPECT_EQ(std::chrono::seconds(0), options.clients.keep_alive.receive_timeout)
      << "clients need not say anything";
}

TEST(LinkdSettings, ReadsServicesAndLimits) {
  const Result<LinkdSettings> settings = Settings(R"(
    <zeze>
      <ServiceConf Name="LinkdService" maxConnections="500" InputBufferMaxProtocolSize="32k">
        <Acceptor Ip="127.0.0.1" Port="20000"/>
      </ServiceConf>
      <ServiceConf Name="ProviderService"><Acceptor Ip="127.0.0.1" Port="21000"/></ServiceConf>
      <ServiceConf Name="Zeze.Services.ServiceManager.Agent">
        <Connector HostNameOrAddress="127.0.0.1" Port="5001"/>
      </ServiceConf>
      <CustomizeConf Name="Zeze.Linkd" ServiceName="Game.Linkd" SessionMessages="50/80"
          SessionBytes="64k/1m" AddressConnections="5" ExemptAddresses="127.0.0.1, ::1"
          AuthenticationTimeout="5s" StrictProviderRights="true" TokenKeys="keys.txt">
        <Protocol Module="100" Id="-5" Level="Sheddable" Bytes="2k" Rate="5/10"/>
      </CustomizeConf>
    </zeze>)");
  ASSERT_TRUE(settings.ok()) << settings.error().message();
  const LinkdOptions& options = settings.value().options;
  EXPECT_EQ("Game.Linkd", options.name);
  EXPECT_EQ("Game.Linkd", settings.value().audience);
  EXPECT_EQ("keys.txt", settings.value().token_keys);
  EXPECT_EQ(500U, options.clients.connections_max);
  EXPECT_EQ(32U << 10, options.clients.frame_bytes_max);
  EXPECT_EQ(20000, options.client_acceptors.at(0).port);
  EXPECT_TRUE(options.registry.has_value());
  EXPECT_TRUE(options.strict_provider_rights);
  EXPECT_EQ(50, options.limits.session_messages.per_second);
  EXPECT_EQ(80, options.limits.session_messages.burst);
  EXPECT_EQ(1 << 20, options.limits.session_bytes.burst);
  EXPECT_EQ(5U, options.limits.address.connections_max);
  EXPECT_EQ(2U, options.limits.address.exempt.size());
  EXPECT_EQ(std::chrono::seconds(5), options.limits.authentication_timeout);
  const ProtocolRule& rule = options.limits.protocols.at(ProtocolTypeId(100, -5));
  EXPECT_EQ(CriticalLevel::kSheddable, rule.level);
  EXPECT_EQ(2048U, rule.bytes_max);
  EXPECT_EQ(10, rule.rate.burst);
}

TEST(LinkdSettings, MistakesAreNamedWithTheirPlace) {
  const auto error = [](const std::string& attributes) {
    const Result<LinkdSettings> settings =
        Settings("<zeze>\n<CustomizeConf Name=\"Zeze.Linkd\" " + attributes + "/></zeze>");
    return settings.ok() ? std::string("fine") : settings.error().message();
  };
  EXPECT_NE(std::string::npos, error("SesionMessages=\"5/5\"").find("SessionMessages"));
  EXPECT_NE(std::string::npos, error("SessionMessages=\"fast\"").find("zeze.xml:2"));
  EXPECT_NE(std::string::npos, error("SlowTimeout=\"0\"").find("longer than nothing"));
}

}  // namespace
}  // namespace zeze::arch
