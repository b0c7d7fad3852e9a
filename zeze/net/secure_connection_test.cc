// Tests of how connections open: handshake with all its options, TLS, proxy headers, time limits.

#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/hex.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/testing/service_fixture.h"
#include "zeze/net/zstd_stream.h"

namespace zeze {
namespace {

using std::chrono::seconds;
using ::testing::Combine;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Values;
using std::string_literals::operator""s;
using testing::CapturedLog;
using testing::Certificates;
using testing::Counter;
using testing::Echo;
using testing::FromHex;
using testing::HandleEcho;
using testing::kPatience;
using testing::ManualClock;
using testing::MustConnect;
using testing::MustEcho;
using testing::MustListen;
using testing::RawClient;
using testing::TryConnect;

std::shared_ptr<const RsaPrivateKey> ServerKey() {
  static const auto key =
      std::make_shared<const RsaPrivateKey>(std::move(RsaPrivateKey::Generate().value()));
  return key;
}

HandshakeOptions AllKeys(EncryptType encrypt, CompressType to_client, CompressType to_server) {
  return {.encrypt = encrypt,
          .compress_to_client = to_client,
          .compress_to_server = to_server,
          .server_private_key = ServerKey(),
          .server_key_hex = ServerKey()->ModulusHex()};
}

using Combination = std::tuple<EncryptType, CompressType, CompressType, bool>;

class HandshakeOf : public ::testing::TestWithParam<Combination> {};

TEST_P(HandshakeOf, CarriesMessagesOfAllSizesBothWays) {
  const auto [encrypt, to_client, to_server, from_caller] = GetParam();
  const HandshakeOptions handshake = AllKeys(encrypt, to_client, to_server);
  IoThreads io({});
  Service server(io, {.name = "server", .handshake = handshake});
  HandleEcho(server);
  Service client(io, {.name = "client", .handshake = handshake, .send_from_caller = from_caller});
  client.Handle<Echo>([](Request<Echo> request) { (void)request.Answer({"client"}); });
  const ConnectionPtr connection = MustConnect(client, MustListen(server));
  ASSERT_NE(connection, nullptr);

  std::string noise;
  for (int i = 0; i < 300000; ++i)
    noise += static_cast<char>(static_cast<unsigned>(i) * 2654435761U >> 13);
  for (const std::string& text : {""s, "hello"s, std::string(100000, 'a'), noise, "hello again"s}) {
    EXPECT_EQ(MustEcho(*connection, text), text);
  }
  EXPECT_EQ(MustEcho(*server.connections().front(), "x"), "client");
}

INSTANTIATE_TEST_SUITE_P(
    All, HandshakeOf,
    Combine(Values(EncryptType::kNone, EncryptType::kAesWithIp, EncryptType::kAes,
                   EncryptType::kRsaAes),
            Values(CompressType::kNone, CompressType::kMppc, CompressType::kZstd),
            Values(CompressType::kNone, CompressType::kMppc, CompressType::kZstd),
            Values(false, true)));

TEST(Handshake, HasTheBytesOfOtherImplementations) {
  IoThreads io({});
  Counter ready;
  Service server(io, {.name = "server", .handshake = HandshakeOptions{}});
  server.OnOpen([&](const ConnectionPtr&) { ready.Add(); });
  HandleEcho(server);
  const NetAddress address = MustListen(server);
  RawClient client(address);
  EXPECT_EQ(client.ReadBytes(23), FromHex("0000000058abb4870b0000000200030102030000020201"));
  // A keep-alive behind the end of the handshake is answered at once.
  ASSERT_TRUE(
      client.Send(FromHex("0000000026fc0671020000000200"
                          "00000000e04212f503000000010100")));
  EXPECT_EQ(client.ReadBytes(15), FromHex("00000000e04212f503000000000100"));

  // All types zero, though asked for: SHandshake-plain of the vectors.
  RawClient plain(address);
  EXPECT_EQ(plain.ReadBytes(23).size(), 23U);
  ASSERT_TRUE(plain.Send(FromHex("000000001f4dfade050000000200000000")));
  EXPECT_EQ(plain.ReadBytes(17), FromHex("00000000aad9d8d4050000000200000000"));

  // Compression asked for by the client alone: CHandshake-mppc of the vectors. Then everything is
  // compressed, the end of the handshake first (mppc/frame-CHandshakeDone).
  RawClient compressed(address);
  EXPECT_EQ(compressed.ReadBytes(23).size(), 23U);
  ASSERT_TRUE(compressed.Send(FromHex("000000001f4dfade050000000200000101")));
  EXPECT_EQ(compressed.ReadBytes(17), FromHex("00000000aad9d8d4050000000200010100"));
  ASSERT_TRUE(compressed.Send(FromHex("00f044d7c0671020000000200f")));
  ASSERT_TRUE(ready.WaitFor(2));
}

TEST(Handshake, OfAClientHasTheBytesOfOtherImplementations) {
  IoThreads io({});
  Service client(io, {.name = "client", .handshake = HandshakeOptions{}});
  RawClient server;
  const std::uint16_t port = server.Listen();
  const std::shared_ptr<Connector> connector = client.Connect({.host = "127.0.0.1", .port = port});
  server.Accept();
  ASSERT_TRUE(server.Send(FromHex("0000000058abb4870b0000000200030102030000020201")));
  EXPECT_EQ(server.ReadBytes(14), FromHex("0000000026fc0671020000000200"));
  EXPECT_TRUE(connector->WaitReady(kPatience).ok());
}

TEST(Handshake, AcceptsNoApplicationFrameBeforeItsEnd) {
  CapturedLog log;
  IoThreads io({});
  std::atomic<int> handled = 0;
  Service server(io, {.name = "server", .handshake = HandshakeOptions{}});
  server.Handle<Echo>([&](const Request<Echo>&) { ++handled; });
  RawClient client(MustListen(server));
  EXPECT_EQ(client.ReadBytes(23).size(), 23U);
  ASSERT_TRUE(client.Send(client.RequestFrame<Echo>(1, {"x"})));
  EXPECT_EQ(client.ReadBytes(1), "");
  EXPECT_EQ(handled, 0);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("before the end of the handshake")));
}

TEST(Handshake, RefusesClientsThatWantNoEncryption) {
  CapturedLog log;
  IoThreads io({});
  Service server(
      io, {.name = "server",
           .handshake = AllKeys(EncryptType::kAes, CompressType::kNone, CompressType::kNone)});
  HandleEcho(server);
  const NetAddress address = MustListen(server);
  // At once to the end, and by a choice of type 0.
  for (const char* hex : {"0000000026fc0671020000000200",
                          "000000001f4dfade050000000200000000"
                          "0000000026fc0671020000000200"}) {
    RawClient client(address);
    ASSERT_TRUE(client.Send(FromHex(hex)));
    while (!client.ReadBytes(1).empty()) {
    }
  }
  EXPECT_THAT(log.lines(), Contains(HasSubstr("this server requires it")));
  EXPECT_EQ(server.GetStatistics().handshakes_failed, 2U);
}

// The greeting is neither encrypted nor signed: whoever is between the two can change it.
TEST(Handshake, AClientAcceptsNoWeakerEncryptionThanItIsConfiguredFor) {
  const auto connects = [](EncryptType server_offers, EncryptType client_requires) {
    IoThreads io({});
    Service server(io,
                   {.name = "server",
                    .handshake = AllKeys(server_offers, CompressType::kNone, CompressType::kZstd)});
    Service client(
        io, {.name = "client",
             .handshake = AllKeys(client_requires, CompressType::kNone, CompressType::kNone)});
    const Result<ConnectionPtr> connection =
        TryConnect(client, MustListen(server), {.reconnect = false});
    if (!connection.ok()) {
      EXPECT_THAT(connection.error().message(), HasSubstr("the server offers encryption type"));
    }
    return connection.ok();
  };
  EXPECT_FALSE(connects(EncryptType::kNone, EncryptType::kAes));
  EXPECT_FALSE(connects(EncryptType::kNone, EncryptType::kRsaAes));
  EXPECT_FALSE(connects(EncryptType::kAes, EncryptType::kRsaAes));
  EXPECT_TRUE(connects(EncryptType::kAesWithIp, EncryptType::kAes));
  EXPECT_TRUE(connects(EncryptType::kRsaAes, EncryptType::kAes));
  EXPECT_TRUE(connects(EncryptType::kAes, EncryptType::kNone));
}

TEST(Handshake, SaysWhatIsMissingForRsa) {
  IoThreads io({});
  Service server(
      io, {.name = "server",
           .handshake = AllKeys(EncryptType::kRsaAes, CompressType::kNone, CompressType::kNone)});
  Service client(io, {.name = "client", .handshake = HandshakeOptions{}});
  Result<ConnectionPtr> connection = TryConnect(client, MustListen(server), {.reconnect = false});
  ASSERT_FALSE(connection.ok());
  EXPECT_THAT(connection.error().message(), HasSubstr("set RsaPubKey"));
}

TEST(Handshake, EndsInTimeOrNotAtAll) {
  ManualClock clock;
  IoThreads io({.clock = &clock});
  Service server(io, {.name = "server",
                      .handshake = HandshakeOptions{},
                      .handshakes_max = 3,
                      .handshake_timeout = seconds(10)});
  const NetAddress address = MustListen(server);
  // Half-open connections are limited, too.
  std::vector<std::unique_ptr<RawClient>> half_open;
  for (int i = 0; i < 3; ++i) {
    half_open.push_back(std::make_unique<RawClient>(address));
    EXPECT_EQ(half_open.back()->ReadBytes(23).size(), 23U);
  }
  // One more is the end of the oldest.
  RawClient late(address);
  EXPECT_EQ(late.ReadBytes(23).size(), 23U);
  EXPECT_EQ(half_open[0]->ReadBytes(1), "");
  EXPECT_EQ(server.GetStatistics().refused, 0U);

  // A byte now and then does not help.
  clock.Advance(seconds(9));
  ASSERT_TRUE(half_open[1]->Send("\x01"));
  clock.Advance(seconds(1));
  for (const auto& client : half_open) EXPECT_EQ(client->ReadBytes(1), "");
  RawClient welcome(address);
  EXPECT_EQ(welcome.ReadBytes(23).size(), 23U);
}

TEST(Handshake, RefusesLongMessagesBeforeItKnowsThePeer) {
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server", .handshake = HandshakeOptions{}});
  RawClient client(MustListen(server));
  EXPECT_EQ(client.ReadBytes(23).size(), 23U);
  ASSERT_TRUE(client.Send("\0\0\0\0\x1f\x4d\xfa\xde\x01\x10\0\0"s));  // 4097 bytes.
  EXPECT_EQ(client.ReadBytes(1), "");
  EXPECT_THAT(log.lines(), Contains(HasSubstr("at most 4096")));
}

TEST(Compression, BoundsWhatAFewBytesCanBecome) {
  CapturedLog log;
  IoThreads io({});
  Service server(
      io, {.name = "server",
           .handshake = AllKeys(EncryptType::kNone, CompressType::kNone, CompressType::kZstd)});
  HandleEcho(server);
  RawClient client(MustListen(server));
  EXPECT_EQ(client.ReadBytes(23).size(), 23U);
  ASSERT_TRUE(client.Send(FromHex("000000001f4dfade050000000200000002")));
  EXPECT_EQ(client.ReadBytes(17).size(), 17U);
  // The end of the handshake, then 64 MiB of zeros in a few kilobytes.
  ZstdEncoder zstd;
  std::string bomb;
  zstd.Write(FromHex("0000000026fc0671020000000200"), bomb);
  zstd.Write(std::string(64 << 20, '\0'), bomb);
  zstd.Flush(bomb);
  client.Send(bomb);
  EXPECT_EQ(client.ReadBytes(1), "");
  EXPECT_EQ(server.GetStatistics().protocol_errors, 1U);
}

TEST(Tls, CarriesMessagesWithAndWithoutHandshake) {
  const Certificates& certificates = Certificates::Get();
  const TlsContextPtr server_tls =
      TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                             .private_key_file = certificates.server_key})
          .value();
  const TlsContextPtr client_tls =
      TlsContext::ForClient({.authorities_file = certificates.authority}).value();
  for (const bool with_handshake : {false, true}) {
    std::optional<HandshakeOptions> handshake;
    if (with_handshake) {
      handshake = AllKeys(EncryptType::kNone, CompressType::kZstd, CompressType::kMppc);
    }
    IoThreads io({});
    Service server(io, {.name = "server", .handshake = handshake});
    HandleEcho(server);
    Service client(io, {.name = "client", .handshake = handshake, .send_from_caller = true});
    const ConnectionPtr connection = MustConnect(client, MustListen(server, {.tls = server_tls}),
                                                 {.tls = client_tls, .tls_name = "zeze.test"});
    ASSERT_NE(connection, nullptr);
    EXPECT_EQ(MustEcho(*connection, "secret"), "secret");
    EXPECT_EQ(MustEcho(*connection, std::string(1 << 20, 'x')), std::string(1 << 20, 'x'));
  }
}

TEST(Tls, RefusesCertificatesOfTheWrongNameOrAuthority) {
  const Certificates& certificates = Certificates::Get();
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  const NetAddress address = MustListen(
      server, {.tls = TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                                             .private_key_file = certificates.server_key})
                          .value()});
  Service client(io, {.name = "client"});
  const auto failure = [&](const TlsOptions& options, const std::string& name) {
    Result<ConnectionPtr> connection = TryConnect(
        client, address,
        {.reconnect = false, .tls = TlsContext::ForClient(options).value(), .tls_name = name});
    return connection.ok() ? "connected" : connection.error().message();
  };
  EXPECT_THAT(failure({.authorities_file = certificates.authority}, "other.test"),
              HasSubstr("hostname mismatch"));
  EXPECT_THAT(failure({.authorities_file = certificates.other_authority}, "zeze.test"),
              HasSubstr("the peer's certificate is refused"));
  EXPECT_THAT(failure({.authorities_file = certificates.authority}, ""),  // By address.
              HasSubstr("connected"));
  EXPECT_EQ(failure({.insecure_skip_verify = true}, "other.test"), "connected");
}

TEST(Tls, AsksClientsForTheirCertificates) {
  const Certificates& certificates = Certificates::Get();
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  const NetAddress address = MustListen(
      server, {.tls = TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                                             .private_key_file = certificates.server_key,
                                             .authorities_file = certificates.authority,
                                             .require_client_certificate = true})
                          .value()});
  Service client(io, {.name = "client"});
  const ConnectionPtr known = MustConnect(
      client, address,
      {.tls = TlsContext::ForClient({.certificate_file = certificates.server_certificate,
                                     .private_key_file = certificates.server_key,
                                     .authorities_file = certificates.authority})
                  .value(),
       .tls_name = "zeze.test"});
  EXPECT_EQ(MustEcho(*known, "me"), "me");
  // TLS 1.3: the client believes to be ready before the server has refused it.
  Result<ConnectionPtr> unknown = TryConnect(
      client, address,
      {.reconnect = false,
       .tls = TlsContext::ForClient({.authorities_file = certificates.authority}).value(),
       .tls_name = "zeze.test"});
  if (unknown.ok()) {
    EXPECT_NE(MustEcho(*unknown.value(), "me"), "me");
  }
  EXPECT_THAT(log.lines(), Contains(HasSubstr("peer did not return a certificate")));
}

TEST(Tls, NamesFilesThatCannotBeUsed) {
  const Certificates& certificates = Certificates::Get();
  EXPECT_THAT(TlsContext::ForServer({}).error().message(), HasSubstr("needs a certificate file"));
  EXPECT_THAT(TlsContext::ForServer(
                  {.certificate_file = "no/such.pem", .private_key_file = certificates.server_key})
                  .error()
                  .message(),
              HasSubstr("'no/such.pem' cannot be used"));
  EXPECT_THAT(TlsContext::ForServer({.certificate_file = certificates.authority,
                                     .private_key_file = certificates.server_key})
                  .error()
                  .message(),
              HasSubstr("key"));
}

TEST(Tls, RefusesPlainPeers) {
  const Certificates& certificates = Certificates::Get();
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server"});
  RawClient client(MustListen(
      server, {.tls = TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                                             .private_key_file = certificates.server_key})
                          .value()}));
  ASSERT_TRUE(client.Send("GET / HTTP/1.0\r\n\r\n"));
  while (!client.ReadBytes(1).empty()) {
  }
  EXPECT_THAT(log.lines(), Contains(HasSubstr("TLS: the handshake failed")));
}

TEST(Proxy, TellsForWhomItConnectsInWhateverPieces) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.Handle<Echo>([](Request<Echo> request) {
    (void)request.Answer({request.connection()->peer_address().ToString()});
  });
  const NetAddress address = MustListen(server, {.proxy_protocol = true});
  const std::string binary =
      "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c"s + "\xc0\x00\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb"s;
  for (const std::string& header : {"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"s, binary}) {
    RawClient whole(address);
    ASSERT_TRUE(whole.Send(header + whole.RequestFrame<Echo>(1, {"x"})));
    EXPECT_EQ(whole.ReadFrame()->payload.substr(1), "192.0.2.1:56324");
    RawClient split(address);
    for (const char byte : header + split.RequestFrame<Echo>(1, {"x"})) {
      ASSERT_TRUE(split.Send(std::string(1, byte)));
    }
    EXPECT_EQ(split.ReadFrame()->payload.substr(1), "192.0.2.1:56324");
  }
  RawClient without(address);
  ASSERT_TRUE(without.Send(without.RequestFrame<Echo>(1, {"x"})));
  EXPECT_FALSE(without.ReadFrame().has_value());
}

TEST(Proxy, StandsBeforeTlsAndHandshake) {
  IoThreads io({});
  Service server(io, {.name = "server", .handshake = HandshakeOptions{}});
  HandleEcho(server);
  RawClient client(MustListen(server, {.proxy_protocol = true}));
  ASSERT_TRUE(client.Send("PROXY UNKNOWN\r\n"));
  EXPECT_EQ(client.ReadBytes(23).size(), 23U);
}

}  // namespace
}  // namespace zeze
