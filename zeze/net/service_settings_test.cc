// Tests of what a configuration file makes of a service.

#include "zeze/net/service_settings.h"

#include <chrono>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/config/config.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/xml/diagnostics.h"

namespace zeze {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using testing::Certificates;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Config MustParse(const std::string& services) {
  xml::Diagnostics diagnostics;
  std::optional<Config> config =
      Config::Parse("<zeze><DatabaseConf Name='' DatabaseType='Memory'/>" + services + "</zeze>",
                    "test.xml", {.environment = ConfigVariables()}, diagnostics);
  EXPECT_TRUE(config.has_value()) << diagnostics.Format();
  return *config;
}

TEST(ServiceSettings, TakesEveryAttribute) {
  const Config config = MustParse(R"(
    <ServiceConf Name="Game" NoDelay="false" SendBuffer="64k" ReceiveBuffer="32k" Backlog="7"
        InputBufferMaxProtocolSize="1m" OutputBufferMaxSize="3m" maxConnections="9"
        CloseWhenMissHandle="true" EncryptType="1" CompressS2c="2" CompressC2s="1"
        SecureIp="10.0.0.7" KeepCheckPeriod="5" KeepRecvTimeout="60" KeepSendTimeout="25"
        HaProxyKey="x">
      <Acceptor Ip="127.0.0.1" Port="5004"/>
      <Connector HostNameOrAddress="example.org" Port="80" IsAutoReconnect="true"
          MaxReconnectDelay="3"/>
      <Connector HostNameOrAddress="10.0.0.9:81"/>
    </ServiceConf>)");

  const ServiceSettings settings =
      SettingsFromConfig(config, "Game", ServiceKind::kHandshake).value();

  const ServiceOptions& options = settings.options;
  EXPECT_EQ(options.name, "Game");
  EXPECT_FALSE(options.socket.no_delay);
  EXPECT_EQ(options.socket.send_buffer_bytes, 64 << 10);
  EXPECT_EQ(options.socket.receive_buffer_bytes, 32 << 10);
  EXPECT_EQ(options.frame_bytes_max, 1U << 20);
  EXPECT_EQ(options.output_bytes_max, 3U << 20);
  EXPECT_EQ(options.connections_max, 9U);
  EXPECT_TRUE(options.close_when_no_handler);
  EXPECT_EQ(options.keep_alive.check_period, seconds(5));
  EXPECT_EQ(options.keep_alive.receive_timeout, seconds(60));
  EXPECT_EQ(options.keep_alive.send_timeout, seconds(25));
  ASSERT_TRUE(options.handshake.has_value());
  EXPECT_EQ(options.handshake->encrypt, EncryptType::kAesWithIp);
  EXPECT_EQ(options.handshake->compress_to_client, CompressType::kZstd);
  EXPECT_EQ(options.handshake->compress_to_server, CompressType::kMppc);
  EXPECT_EQ(options.handshake->secure_ip->IpText(), "10.0.0.7");
  ASSERT_EQ(settings.acceptors.size(), 1U);
  EXPECT_EQ(settings.acceptors[0].ip, "127.0.0.1");
  EXPECT_EQ(settings.acceptors[0].port, 5004);
  EXPECT_EQ(settings.acceptors[0].backlog, 7);
  EXPECT_TRUE(settings.acceptors[0].proxy_protocol);
  ASSERT_EQ(settings.connectors.size(), 2U);
  EXPECT_EQ(settings.connectors[0].host, "example.org");
  EXPECT_TRUE(settings.connectors[0].reconnect);
  EXPECT_EQ(settings.connectors[0].delay_max, seconds(3));
  EXPECT_EQ(settings.connectors[1].host, "10.0.0.9");
  EXPECT_EQ(settings.connectors[1].port, 81);
  EXPECT_FALSE(settings.connectors[1].reconnect);

  EXPECT_FALSE(SettingsFromConfig(config, "Game", ServiceKind::kPlain)
                   .value()
                   .options.handshake.has_value());
}

TEST(ServiceSettings, OfAServiceWithoutItsOwnAreThoseWithoutAName) {
  const Config config = MustParse(
      "<ServiceConf OutputBufferMaxSize='5m' maxConnections='3'><Acceptor "
      "Port='1'/></ServiceConf>");
  const ServiceSettings settings = SettingsFromConfig(config, "Any", ServiceKind::kPlain).value();
  EXPECT_EQ(settings.options.name, "Any");
  EXPECT_EQ(settings.options.output_bytes_max, 5U << 20);
  EXPECT_EQ(settings.options.connections_max, ServiceOptions().connections_max);
  EXPECT_TRUE(settings.acceptors.empty());
}

TEST(ServiceSettings, LoadCertificates) {
  const Certificates& files = Certificates::Get();
  const Config config =
      MustParse("<ServiceConf Name='S'><Acceptor Port='1' TlsCertificateFile='" +
                files.server_certificate + "' TlsKeyFile='" + files.server_key +
                "'/><Connector HostNameOrAddress='h' Port='2' TlsName='n' TlsAuthoritiesFile='" +
                files.authority + "'/></ServiceConf>");
  const ServiceSettings settings = SettingsFromConfig(config, "S", ServiceKind::kPlain).value();
  EXPECT_NE(settings.acceptors[0].tls, nullptr);
  EXPECT_NE(settings.connectors[0].tls, nullptr);
  EXPECT_EQ(settings.connectors[0].tls_name, "n");
}

TEST(ServiceSettings, IncompleteTlsIsRefusedAndTheMissingSettingIsNamed) {
  const Certificates& files = Certificates::Get();
  const auto failure = [](const std::string& element) {
    Result<ServiceSettings> settings = SettingsFromConfig(
        MustParse("<ServiceConf Name='S'>" + element + "</ServiceConf>"), "S", ServiceKind::kPlain);
    return settings.ok() ? "ok" : settings.error().message();
  };
  const std::string certificate = " TlsCertificateFile='" + files.server_certificate + "'";
  const std::string key = " TlsKeyFile='" + files.server_key + "'";
  const std::string clients = " TlsClientAuthoritiesFile='" + files.authority + "'";
  const std::string pair = certificate + key;
  const std::string pair_and_clients = pair + clients;
  for (const std::string element : {"<Acceptor Port='1'", "<Websocket Port='1'"}) {
    EXPECT_THAT(failure(element + clients + "/>"),
                AllOf(HasSubstr("test.xml:1:"),
                      HasSubstr("TlsClientAuthoritiesFile is set, but TlsCertificateFile is "
                                "missing")));
    EXPECT_THAT(failure(element + key + "/>"),
                HasSubstr("TlsKeyFile is set, but TlsCertificateFile is missing"));
    EXPECT_THAT(failure(element + certificate + "/>"),
                HasSubstr("TlsCertificateFile is set, but TlsKeyFile is missing"));
    EXPECT_EQ(failure(element + pair_and_clients + "/>"), "ok");
  }
  const std::string authorities = " TlsAuthoritiesFile='" + files.authority + "'";
  for (const std::string element :
       {"<Connector HostNameOrAddress='h' Port='2'", "<Connector Url='ws://h:2/'"}) {
    EXPECT_THAT(failure(element + " TlsName='n'/>"),
                HasSubstr("TlsName is set, but TlsAuthoritiesFile is missing"));
    EXPECT_THAT(failure(element + pair + "/>"),
                HasSubstr("TlsCertificateFile is set, but TlsAuthoritiesFile is missing"));
    EXPECT_THAT(failure(element + certificate + "/>"), HasSubstr("TlsKeyFile is missing"));
    EXPECT_THAT(failure(element + key + "/>"), HasSubstr("TlsCertificateFile is missing"));
  }
  EXPECT_THAT(failure("<Connector Url='wss://h:2/'" + key + "/>"),
              HasSubstr("TlsCertificateFile is missing"));
  EXPECT_EQ(failure("<Connector Url='wss://h:2/' TlsName='n'/>"), "ok");
  EXPECT_EQ(failure("<Connector HostNameOrAddress='h' Port='2' TlsName='n'" + authorities +
                    certificate + key + "/>"),
            "ok");
}

TEST(ServiceSettings, MakeWebSockets) {
  const Certificates& files = Certificates::Get();
  const Config config =
      MustParse(R"(
    <ServiceConf Name="Game" HaProxyKey="x">
      <Acceptor Port="5004"/>
      <Websocket Path="/game" Ip="127.0.0.1" Port="5005"
          AllowedOrigins="https://game.example, http://localhost:8080"/>
      <Websocket Port="5006" TlsCertificateFile=")" +
                files.server_certificate + R"(" TlsKeyFile=")" + files.server_key + R"("/>
      <Connector Url="ws://10.0.0.9:81/game?region=3" IsAutoReconnect="true"/>
      <Connector Url="wss://game.example/game" TlsAuthoritiesFile=")" +
                files.authority + R"("/>
      <Connector Url="wss://other.example"/>
    </ServiceConf>)");

  const ServiceSettings settings =
      SettingsFromConfig(config, "Game", ServiceKind::kHandshake).value();

  ASSERT_EQ(settings.acceptors.size(), 3U);
  EXPECT_FALSE(settings.acceptors[0].websocket.has_value());
  const AcceptorOptions& plain = settings.acceptors[1];
  EXPECT_EQ(plain.ip, "127.0.0.1");
  EXPECT_EQ(plain.port, 5005);
  EXPECT_TRUE(plain.proxy_protocol);
  EXPECT_EQ(plain.tls, nullptr);
  EXPECT_EQ(plain.websocket->path, "/game");
  EXPECT_THAT(plain.websocket->allowed_origins,
              ElementsAre("https://game.example", "http://localhost:8080"));
  EXPECT_EQ(settings.acceptors[2].websocket->path, "/");
  EXPECT_NE(settings.acceptors[2].tls, nullptr);

  ASSERT_EQ(settings.connectors.size(), 3U);
  EXPECT_EQ(settings.connectors[0].host, "10.0.0.9");
  EXPECT_EQ(settings.connectors[0].port, 81);
  EXPECT_TRUE(settings.connectors[0].reconnect);
  EXPECT_EQ(settings.connectors[0].websocket->path, "/game?region=3");
  EXPECT_EQ(settings.connectors[0].tls, nullptr);
  EXPECT_EQ(settings.connectors[1].port, 443);
  EXPECT_NE(settings.connectors[1].tls, nullptr);
  EXPECT_EQ(settings.connectors[2].websocket->path, "/");
  EXPECT_NE(settings.connectors[2].tls, nullptr);
}

TEST(ServiceSettings, NameTheFileAndThePlaceOfWhatIsWrong) {
  const auto failure = [](const std::string& service) {
    Result<ServiceSettings> settings =
        SettingsFromConfig(MustParse(service), "S", ServiceKind::kHandshake);
    return settings.ok() ? "ok" : settings.error().message();
  };
  EXPECT_THAT(failure("<ServiceConf Name='S' RsaPriKeyFile='no.der'/>"),
              HasSubstr("RsaPriKeyFile: 'no.der' cannot be read"));
  EXPECT_THAT(failure("<ServiceConf Name='S' RsaPubKey='xyz'/>"), HasSubstr("test.xml:1"));
  EXPECT_THAT(failure("<ServiceConf Name='S' SecureIp='here'/>"), HasSubstr("'here' is no IP"));
  const auto child = [&failure](const std::string& element) {
    return failure("<ServiceConf Name='S'>" + element + "</ServiceConf>");
  };
  EXPECT_THAT(child("<Connector Url='http://h/p'/>"),
              HasSubstr("expected ws://host[:port][/path] or wss://"));
  EXPECT_THAT(child("<Connector Url='ws://h/p' Port='5'/>"), HasSubstr("either a Url or a host"));
  EXPECT_THAT(child("<Connector Url='ws://h/p' TlsAuthoritiesFile='system'/>"),
              HasSubstr("write wss"));
  EXPECT_THAT(child("<Acceptor Ip='banana'/>"), HasSubstr("Ip: 'banana' is no IP address"));
  EXPECT_THAT(child("<Websocket Port='1' Ip='@here'/>"), HasSubstr("'@here' is no IP address"));
  EXPECT_THAT(child("<Websocket Port='1' Path='game'/>"), HasSubstr("'game' is no path"));
  EXPECT_THAT(child("<Websocket Port='1' AllowedOrigins='game.example'/>"),
              HasSubstr("'game.example' is no origin"));
  EXPECT_THAT(child("<Acceptor TlsCertificateFile='no.pem' TlsKeyFile='no.key'/>"),
              AllOf(HasSubstr("test.xml:1"), HasSubstr("TLS: the certificate file 'no.pem'")));
}

}  // namespace
}  // namespace zeze
