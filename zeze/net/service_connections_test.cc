// How connections of a service come and go: ports, limits, reconnects, and peers that fall silent.

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/testing/service_fixture.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CapturedLog;
using ::testing::Contains;
using testing::Counter;
using testing::Echo;
using testing::HandleEcho;
using ::testing::HasSubstr;
using testing::kPatience;
using testing::ManualClock;
using testing::MustConnect;
using testing::MustEcho;
using testing::MustListen;
using ::testing::Not;
using testing::RawClient;
using ::testing::StartsWith;

TEST(Service, SaysWhoHasThePort) {
  IoThreads io({});
  Service one(io, {.name = "one"});
  Service two(io, {.name = "two"});
  const NetAddress address = MustListen(one);

  Result<std::shared_ptr<Acceptor>> second =
      two.Listen({.ip = "127.0.0.1", .port = address.port()});

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), ErrorCode::kInUse);
  EXPECT_THAT(second.error().message(), HasSubstr("two cannot listen on " + address.ToString()));
  EXPECT_THAT(second.error().message(), HasSubstr("choose another port"));
  EXPECT_EQ(two.Listen({.ip = "nonsense"}).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(two.Listen({.ip = "203.0.113.7"}).error().code(), ErrorCode::kInvalidArgument);
}

TEST(Service, RefusesConnectionsBeyondItsLimit) {
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server", .connections_max = 2});
  HandleEcho(server);
  const NetAddress address = MustListen(server);
  RawClient first(address);
  RawClient second(address);
  for (RawClient* client : {&first, &second}) {
    ASSERT_TRUE(client->Send(client->RequestFrame<Echo>(1, {"x"})));
    ASSERT_TRUE(client->ReadFrame().has_value());
  }

  RawClient third(address);
  EXPECT_FALSE(third.ReadFrame().has_value());
  EXPECT_EQ(server.GetStatistics().refused, 1U);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("a connection is refused: there are 2 already")));
}

TEST(Service, ConnectsToAServerThatComesLater) {
  IoThreads io({.thread_count = 1});
  Service server(io, {.name = "server"});
  const std::shared_ptr<Acceptor> first = server.Listen({.ip = "127.0.0.1"}).value();
  const std::uint16_t port = first->address().port();
  first->Close();

  Service client(io, {.name = "client"});
  const std::shared_ptr<Connector> connector =
      client.Connect({.host = "127.0.0.1",
                      .port = port,
                      .first_delay = std::chrono::milliseconds(1),
                      .delay_max = std::chrono::milliseconds(10)});
  EXPECT_FALSE(connector->WaitReady(std::chrono::milliseconds(50)).ok()) << "nobody is there";
  ASSERT_TRUE(server.Listen({.ip = "127.0.0.1", .port = port}).ok());
  EXPECT_TRUE(connector->WaitReady(std::chrono::seconds(30)).ok());
}

// Without a handshake a connection is ready as soon as it is there.
TEST(Service, WaitsLongerEachTimeForAPeerThatClosesEveryConnection) {
  IoThreads io({.thread_count = 1});
  Service server(io, {.name = "server"});
  Counter opened;
  server.OnOpen([&](const ConnectionPtr& connection) {
    connection->Close("nobody is let in");
    opened.Add();
  });
  const NetAddress address = MustListen(server);
  Service client(io, {.name = "client"});
  const std::chrono::nanoseconds begin = SystemClock().Now();
  client.Connect({.host = address.IpText(),
                  .port = address.port(),
                  .first_delay = milliseconds(20),
                  .delay_max = seconds(60)});
  ASSERT_TRUE(opened.WaitFor(6));
  EXPECT_GE(SystemClock().Now() - begin, (20 + 40 + 80 + 160 + 320) * milliseconds(4) / 5);
}

TEST(Service, ReconnectsAfterTheAcceptorCameBack) {
  ManualClock clock;
  IoThreads io({});
  IoThreads client_io({.clock = &clock, .random = [] { return std::uint64_t{0}; }});
  Counter opened;
  Counter closed;
  Service client(client_io, {.name = "client"});
  client.OnOpen([&](const ConnectionPtr&) { opened.Add(); });
  client.OnClose([&](const ConnectionPtr&, const Error&) { closed.Add(); });
  auto server = std::make_unique<Service>(io, ServiceOptions{.name = "server"});
  HandleEcho(*server);
  const NetAddress address = MustListen(*server);
  const std::shared_ptr<Connector> connector =
      client.Connect({.host = address.IpText(), .port = address.port()});
  ASSERT_TRUE(opened.WaitFor(1));

  server->Stop();
  ASSERT_TRUE(closed.WaitFor(1));
  EXPECT_EQ(connector->connection(), nullptr);
  server = std::make_unique<Service>(io, ServiceOptions{.name = "server again"});
  HandleEcho(*server);
  MustListen(*server, {.port = address.port()});
  // As often as it takes: the attempts in between may have met no acceptor.
  while (connector->connection() == nullptr) clock.Advance(seconds(1));
  ASSERT_TRUE(opened.WaitFor(2));

  EXPECT_EQ(MustEcho(*connector->connection(), "again"), "again");
  connector->Stop();
  ASSERT_TRUE(closed.WaitFor(2));
  EXPECT_EQ(connector->WaitReady(seconds(0)).error().code(), ErrorCode::kUnavailable);
}

TEST(Service, SaysWhyItCannotConnect) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  const NetAddress address = MustListen(server);
  server.Stop();
  Service client(io, {.name = "client"});

  Result<ConnectionPtr> connection =
      client.Connect({.host = "127.0.0.1", .port = address.port(), .reconnect = false})
          ->WaitReady(kPatience);
  ASSERT_FALSE(connection.ok());
  EXPECT_THAT(connection.error().message(), HasSubstr("Connection refused"));
  connection = client.Connect({.host = "no-such-host.invalid", .port = 1, .reconnect = false})
                   ->WaitReady(kPatience);
  ASSERT_FALSE(connection.ok());
  EXPECT_THAT(connection.error().message(), HasSubstr("no-such-host.invalid cannot be looked up"));
}

TEST(Service, SendsKeepAlivesAndGivesUpSilentPeers) {
  ManualClock clock;
  IoThreads io({});
  IoThreads client_io({.clock = &clock});
  Counter closed;
  Service server(io, {.name = "server"});
  Service client(client_io, {.name = "client",
                             .keep_alive = {.check_period = seconds(1),
                                            .receive_timeout = seconds(10),
                                            .send_timeout = seconds(3)}});
  client.OnClose([&](const ConnectionPtr&, const Error&) { closed.Add(); });
  const ConnectionPtr connection = MustConnect(client, MustListen(server), {.reconnect = false});

  // The server answers keep-alives, so an hour of silence is no reason to close. Each round trip
  // needs real time, so each step waits for the network thread to have handled the last one.
  for (int i = 0; i < 60; ++i) {
    clock.Advance(seconds(2));
    WaitGroup handled(1);
    client_io.PostAfter(milliseconds(0), Task([&] { handled.Done(); }));
    handled.Wait();
  }
  RawClient silent_server;
  Result<ConnectionPtr> silent =
      client.Connect({.host = "127.0.0.1", .port = silent_server.Listen(), .reconnect = false})
          ->WaitReady(kPatience);
  ASSERT_TRUE(silent.ok());
  while (silent.value()->IsOpen()) clock.Advance(seconds(1));
  ASSERT_TRUE(closed.WaitFor(1));
}

// A peer whose machine or network has gone says nothing more; without traffic only the system's
// probes find out.
TEST(Service, TheSystemWatchesForPeersThatHaveGone) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  Service client(io, {.name = "client"});
  const NetAddress address = MustListen(server);
  const ConnectionPtr connection = MustConnect(client, address);
  EXPECT_EQ(MustEcho(*connection, "x"), "x");

  // Both ends of the connection: the timer in "02:when" is that of keep-alive, "when" in 1/100 s.
  const std::string port = fmt::format(":{:04X}", address.port());
  const auto watched = [&] {
    std::ifstream table("/proc/net/tcp");
    int count = 0;
    for (std::string line; std::getline(table, line);) {
      std::istringstream in(line);
      std::string number, local, remote, state, queues, timer;
      in >> number >> local >> remote >> state >> queues >> timer;
      if (state != "01" || (!local.ends_with(port) && !remote.ends_with(port))) continue;
      if (timer.starts_with("02:") && std::stol(timer.substr(3), nullptr, 16) <= 60 * 100) ++count;
    }
    return count;
  };
  // A moment after the last bytes, which have timers of their own.
  const auto deadline = SystemClock().Now() + kPatience;
  while (watched() < 2 && SystemClock().Now() < deadline) {
    SystemClock().SleepFor(milliseconds(10));
  }
  EXPECT_EQ(2, watched());
}

TEST(Service, PortsForTheClusterListenOnLoopbackUnlessToldOtherwise) {
  IoThreads io({});
  const CapturedLog log;
  Service server(io, {.name = "inner", .inside = true});
  const NetAddress loopback = server.Listen({}).value()->address();
  EXPECT_EQ(loopback.IpText(), "127.0.0.1");
  EXPECT_THAT(log.lines(), Not(Contains(StartsWith("warning: "))));

  const NetAddress open = server.Listen({.ip = "0.0.0.0"}).value()->address();
  EXPECT_EQ(open.IpText(), "0.0.0.0");
  EXPECT_THAT(log.lines(),
              Contains(StartsWith("warning: inner: other machines can reach 0.0.0.0:")));

  Service outer(io, {.name = "outer"});
  EXPECT_TRUE(outer.Listen({}).value()->address().IsAny());
}

TEST(Service, HoldsAThousandIdleConnections) {
  IoThreads io({});
  Service server(io, {.name = "server", .connections_max = 2000, .handshakes_max = 2000});
  HandleEcho(server);
  const NetAddress address = MustListen(server);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 1000; ++i) clients.push_back(std::make_unique<RawClient>(address));
  for (const auto& client : clients) {
    ASSERT_TRUE(client->Send(client->RequestFrame<Echo>(1, {"x"})));
    ASSERT_TRUE(client->ReadFrame().has_value());
  }
  EXPECT_EQ(server.connection_count(), 1000U);
}

}  // namespace
}  // namespace zeze
