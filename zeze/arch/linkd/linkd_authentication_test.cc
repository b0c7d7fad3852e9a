// Clients authenticate themselves at a gateway: what passes before, which tokens are refused, and
// which failures count against an address.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/arch/linkd/token_authenticator.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/tls.h"

namespace zeze::arch {
namespace {

using testing::Gateway;
using testing::TestClient;
using testing::TestOptions;
using testing::TestProvider;
using testing::Watched;

constexpr std::int32_t kShop = 100;

TEST(Linkd, UnauthenticatedClientsGetNothingThrough) {
  Gateway gateway;
  TestProvider provider(gateway, "1");
  provider.Offer({kShop});
  TestClient client(gateway);
  ASSERT_TRUE(client.EndHandshake());

  client.Request(kShop, 5, "hello");

  EXPECT_EQ("0 1", client.Report());
  EXPECT_FALSE(client.Receive().has_value()) << "closed";
  EXPECT_EQ(1U, gateway.refused(Refusal::kUnauthenticated));
  EXPECT_TRUE(provider.dispatched.value().empty());
}

TEST(Linkd, WrongTokensAreRefusedAndClosed) {
  Gateway gateway;
  for (const char* token : {"bad", "used"}) {
    TestClient client(gateway);
    ASSERT_TRUE(client.EndHandshake());
    EXPECT_EQ(-20, client.Authenticate(token));
    EXPECT_FALSE(client.Receive().has_value());
  }
  EXPECT_EQ(1U, gateway.refused(Refusal::kBadToken));
  EXPECT_EQ(1U, gateway.refused(Refusal::kReplayedToken));
}

// Sixty players behind one address, whose gateway has crashed: all of them show tokens that were
// issued before its start, were used, or have expired, and come back with new ones.
TEST(Linkd, HonestClientsWithTokensThatAreNotGoodAnyMoreAreNotBanned) {
  const admin::OperatorKey key = admin::OperatorKey::Generate().value();
  zeze::testing::ManualClock clock;
  LinkdOptions options = TestOptions();
  options.limits.address = {.connections_max = 0, .attempts = {}};
  const auto issued_before =
      SignToken(key, NewToken("alice", "Linkd", std::chrono::minutes(4), clock));
  clock.Advance(std::chrono::minutes(1));
  options.authenticator = std::make_shared<TokenAuthenticator>(
      TokenOptions{.public_keys = {key.public_key()}, .clock = &clock});
  Gateway gateway(options);
  const auto show = [&](const std::string& token) {
    TestClient client(gateway);
    return client.EndHandshake() ? client.Authenticate(token) : -1000;
  };
  const auto used = SignToken(key, NewToken("alice", "Linkd", std::chrono::minutes(1), clock));
  EXPECT_EQ(0, show(used));
  const auto other = SignToken(key, NewToken("alice", "Other", std::chrono::minutes(1), clock));
  const auto expired = SignToken(key, NewToken("alice", "Linkd", std::chrono::seconds(0), clock));

  for (int i = 0; i < 60; ++i) {
    for (const std::string& token : {issued_before, used, other, expired}) {
      ASSERT_EQ(-20, show(token));
    }
  }
  EXPECT_TRUE(gateway.linkd.Bans().empty());
  EXPECT_EQ(120U, gateway.refused(Refusal::kUnsuitableToken));
  EXPECT_EQ(60U, gateway.refused(Refusal::kReplayedToken));
  EXPECT_EQ(60U, gateway.refused(Refusal::kExpiredToken));
  EXPECT_EQ(0, show(SignToken(key, NewToken("alice", "Linkd", std::chrono::minutes(1), clock))));

  const admin::OperatorKey forger = admin::OperatorKey::Generate().value();
  const auto forged = SignToken(forger, NewToken("alice", "Linkd", std::chrono::minutes(1), clock));
  for (int i = 0; i < 60 && gateway.linkd.Bans().empty(); ++i) show(forged);
  EXPECT_EQ(1U, gateway.linkd.Bans().size()) << "forgers still are";
}

// An account service that is away is not the clients' fault.
TEST(Linkd, ClientsWhoseTokensCannotBeCheckedAreToldToComeAgain) {
  LinkdOptions options = TestOptions();
  options.limits.address = {.connections_max = 0, .attempts = {}};
  Gateway gateway(options);
  for (int i = 0; i < 60; ++i) {
    TestClient client(gateway);
    ASSERT_TRUE(client.EndHandshake());
    ASSERT_EQ(-19, client.Authenticate("unavailable"));
  }
  EXPECT_TRUE(gateway.linkd.Bans().empty());
  EXPECT_EQ(60U, gateway.refused(Refusal::kNotChecked));
}

TEST(Linkd, AnApplicationAuthenticatesInItsOwnWay) {
  LinkdOptions options = TestOptions();
  options.authenticator = nullptr;
  IoThreads io({});
  ThreadPool workers({.thread_count = 1});
  Linkd linkd(io, workers, options);
  using zeze::testing::Echo;
  linkd.clients().Handle<Echo>([&linkd](Request<Echo> request) {
    EXPECT_TRUE(linkd.Accept(*request.connection(), {.account = request.argument().text}).ok());
    EXPECT_FALSE(linkd.Accept(*request.connection(), {.account = "other"}).ok());
    (void)request.Answer({"welcome"});
  });
  ASSERT_TRUE(linkd.Start().ok());
  zeze::testing::RawClient raw(linkd.client_address());
  ASSERT_TRUE(raw.EndHandshake());

  raw.Send(zeze::testing::RawClient::RequestFrame<Echo>(1, {"alice"}));

  ASSERT_TRUE(raw.ReadFrame().has_value());
  EXPECT_EQ(1U, linkd.GetStatistics().authenticated);
  linkd.Stop();
}

// A thief who was quicker than its owner can do nothing with it either.
TEST(Linkd, ATokenCanBeBoundToItsTlsConnection) {
  const zeze::testing::Certificates& certificates = zeze::testing::Certificates::Get();
  const admin::OperatorKey key = admin::OperatorKey::Generate().value();
  LinkdOptions options = TestOptions();
  options.client_acceptors.front().tls =
      TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                             .private_key_file = certificates.server_key})
          .value();
  options.authenticator = std::make_shared<TokenAuthenticator>(
      TokenOptions{.public_keys = {key.public_key()}, .require_tls_binding = true});
  Gateway gateway(options);
  IoThreads io({});
  Service clients(io, {.name = "clients", .handshake = HandshakeOptions{}});
  Watched<std::map<std::int64_t, std::string>> bindings;
  clients.OnOpen([&](const ConnectionPtr& connection) {
    bindings.Change([&](auto& all) { all[connection->id()] = connection->TlsBinding(); });
  });
  const TlsContextPtr tls =
      TlsContext::ForClient({.authorities_file = certificates.authority}).value();
  const NetAddress to = gateway.linkd.client_address();
  const auto connect = [&] {
    return clients
        .Connect({.host = to.IpText(), .port = to.port(), .reconnect = false, .tls = tls})
        ->WaitReady(testing::kPatience)
        .value();
  };
  const ConnectionPtr thief = connect();
  const ConnectionPtr alice = connect();
  ASSERT_TRUE(bindings.Await([](const auto& all) { return all.size() == 2; }));
  const std::string of_alice = bindings.value().at(alice->id());
  EXPECT_EQ(32U, of_alice.size());
  EXPECT_NE(of_alice, bindings.value().at(thief->id()));

  auto token = NewToken("alice", "Linkd", std::chrono::minutes(1));
  token.tlsBinding.bytes = of_alice;
  Zeze::Builtin::LinkdAuth::BAuth auth;
  auth.token.bytes = SignToken(key, token);
  using Zeze::Builtin::LinkdAuth::Auth;
  EXPECT_EQ(-20, thief->CallAndWait<Auth>(auth).value().result_code);
  EXPECT_EQ(1U, gateway.refused(Refusal::kUnboundToken));
  EXPECT_EQ(0, alice->CallAndWait<Auth>(auth).value().result_code);
}

}  // namespace
}  // namespace zeze::arch
