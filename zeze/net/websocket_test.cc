// Tests of connections over WebSocket, on real sockets: with ourselves, and byte by byte.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/testing/process_resources.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/internal/websocket_upgrade.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/raw_websocket.h"
#include "zeze/net/testing/service_fixture.h"

namespace zeze {
namespace {

using internal::WebSocketOpcode;
using std::chrono::seconds;
using testing::CapturedLog;
using testing::Certificates;
using ::testing::Combine;
using testing::Counter;
using testing::Echo;
using testing::HandleEcho;
using ::testing::HasSubstr;
using testing::kPatience;
using testing::ManualClock;
using testing::MustConnect;
using testing::MustEcho;
using testing::MustListen;
using testing::Note;
using testing::RawClient;
using testing::RawWebSocket;
using ::testing::StartsWith;
using testing::TryConnect;
using ::testing::Values;
using testing::WebSocketFrame;

const AcceptorOptions kAccept{.websocket = WebSocketAcceptOptions{}};
const ConnectorOptions kConnect{.websocket = WebSocketConnectOptions{}};

std::string EchoFrame(const std::string& text, std::int64_t session_id = 1) {
  return RawClient::RequestFrame<Echo>(session_id, {text});
}

std::string TextOf(const std::optional<Frame>& frame) {
  if (!frame.has_value()) return "closed";
  testing::Text text;
  ByteReader in(frame->payload);
  text.Decode(in);
  return text.text;
}

class WebSocketOf : public ::testing::TestWithParam<std::tuple<bool, bool, bool>> {};

TEST_P(WebSocketOf, CarriesMessagesOfAllSizesBothWays) {
  const auto [with_tls, with_handshake, from_caller] = GetParam();
  AcceptorOptions accept{.websocket = WebSocketAcceptOptions{.path = "/game"}};
  ConnectorOptions connect{.websocket = WebSocketConnectOptions{.path = "/game?region=3"}};
  if (with_tls) {
    const Certificates& certificates = Certificates::Get();
    accept.tls = TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                                        .private_key_file = certificates.server_key})
                     .value();
    connect.tls = TlsContext::ForClient({.authorities_file = certificates.authority}).value();
    connect.tls_name = "zeze.test";
  }
  // A handshake is for other connections: here it neither happens nor encrypts.
  std::optional<HandshakeOptions> handshake;
  if (with_handshake) {
    handshake =
        HandshakeOptions{.encrypt = EncryptType::kAes, .compress_to_client = CompressType::kMppc};
  }
  IoThreads io({});
  Service server(io, {.name = "server", .handshake = handshake});
  HandleEcho(server);
  Service client(io, {.name = "client", .handshake = handshake, .send_from_caller = from_caller});
  client.Handle<Echo>([](Request<Echo> request) { (void)request.Answer({"client"}); });
  const ConnectionPtr connection = MustConnect(client, MustListen(server, accept), connect);
  ASSERT_NE(connection, nullptr);

  std::string noise;
  for (std::size_t i = 0; i < 300000; ++i) {
    noise += static_cast<char>(static_cast<unsigned>(i) * 2654435761U >> 13);
  }
  for (const std::string& text :
       {std::string(), std::string("hello"), std::string(110, 'a'), std::string(65520, 'b'), noise,
        std::string(1 << 20, 'c'), std::string("hello again")}) {
    EXPECT_TRUE(MustEcho(*connection, text) == text) << text.size();
  }
  EXPECT_EQ(MustEcho(*server.connections().front(), "x"), "client");
}

INSTANTIATE_TEST_SUITE_P(All, WebSocketOf,
                         Combine(Values(false, true), Values(false, true), Values(false, true)));

TEST(WebSocket, TakesAStreamHoweverItIsCutIntoMessages) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  RawWebSocket client(MustListen(server, kAccept));
  const std::string one = EchoFrame("one", 1);
  const std::string two = EchoFrame("two", 2);

  // Text.
  ASSERT_TRUE(client.Send(WebSocketFrame(WebSocketOpcode::kText, one)));
  EXPECT_EQ(TextOf(client.ReadOurs()), "one");
  // Two frames in one message.
  ASSERT_TRUE(client.SendBinary(one + two));
  EXPECT_EQ(TextOf(client.ReadOurs()), "one");
  EXPECT_EQ(TextOf(client.ReadOurs()), "two");
  // One and a half, then the rest.
  ASSERT_TRUE(client.SendBinary(one + two.substr(0, 5)));
  EXPECT_EQ(TextOf(client.ReadOurs()), "one");
  ASSERT_TRUE(client.SendBinary(two.substr(5)));
  EXPECT_EQ(TextOf(client.ReadOurs()), "two");
  // In fragments, with a ping between them, and byte by byte.
  const std::string fragments =
      WebSocketFrame(WebSocketOpcode::kBinary, one.substr(0, 3), {.last = false}) +
      WebSocketFrame(WebSocketOpcode::kContinuation, one.substr(3, 10), {.last = false}) +
      WebSocketFrame(WebSocketOpcode::kPing, "?") +
      WebSocketFrame(WebSocketOpcode::kContinuation, one.substr(13));
  for (const char byte : fragments) ASSERT_TRUE(client.Send(std::string(1, byte)));
  // In either order: it may all have come at once.
  std::vector<RawWebSocket::Frame> answers = {*client.Read(), *client.Read()};
  if (answers[0].opcode == WebSocketOpcode::kPong) std::swap(answers[0], answers[1]);
  EXPECT_TRUE(answers[0].payload.ends_with("one"));
  EXPECT_EQ(answers[1].opcode, WebSocketOpcode::kPong);
  EXPECT_EQ(answers[1].payload, "?");
}

TEST(WebSocket, TakesWhatComesTogetherWithTheRequest) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  const NetAddress address = MustListen(server, kAccept);
  RawClient client(address);
  ASSERT_TRUE(client.Send(RawWebSocket::Request() +
                          WebSocketFrame(WebSocketOpcode::kBinary, EchoFrame("early"))));
  const std::string head =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
  EXPECT_EQ(client.ReadBytes(head.size()), head);
  EXPECT_EQ(client.ReadBytes(2).substr(0, 1), "\x82");
}

TEST(WebSocket, OfOursHasOneBinaryMessageForEachFrame) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  server.Handle<Note>([&](const Message<Note>& note) {
    (void)note.connection->SendFrames(EchoFrame("a") + EchoFrame(std::string(70000, 'b')) +
                                      EchoFrame("c"));
  });
  RawWebSocket client(MustListen(server, kAccept));
  // Answered together, in one system call.
  ASSERT_TRUE(
      client.SendBinary(EchoFrame("x") + EchoFrame(std::string(70000, 'y')) + EchoFrame("z")));
  EXPECT_EQ(TextOf(client.ReadOurs()), "x");
  // In fragments that every peer takes.
  std::size_t bytes = 0;
  for (bool last = false; !last;) {
    const std::optional<RawWebSocket::Frame> fragment = client.Read();
    ASSERT_TRUE(fragment.has_value());
    EXPECT_EQ(fragment->opcode,
              bytes == 0 ? WebSocketOpcode::kBinary : WebSocketOpcode::kContinuation);
    EXPECT_LE(fragment->payload.size(), 65536U);
    EXPECT_FALSE(fragment->masked);
    bytes += fragment->payload.size();
    last = fragment->last;
  }
  EXPECT_GT(bytes, 70000U);
  EXPECT_EQ(TextOf(client.ReadOurs()), "z");

  ByteWriter note;
  EncodeFrame({.module_id = 7,
               .protocol_id = Note::kDescriptor.protocol_id,
               .payload = std::string_view("\0", 1)},
              note);
  ASSERT_TRUE(client.SendBinary(note.view()));
  for (const std::string& text : {std::string("a"), std::string(70000, 'b'), std::string("c")}) {
    EXPECT_TRUE(TextOf(client.ReadOurs()) == text);
  }
}

TEST(WebSocket, AnswersTheLastOfManyPings) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  RawWebSocket client(MustListen(server, kAccept));
  std::string pings;
  for (int i = 0; i < 10; ++i) pings += WebSocketFrame(WebSocketOpcode::kPing, std::to_string(i));
  ASSERT_TRUE(client.Send(pings));
  std::string last;
  while (last != "9") {
    const std::optional<RawWebSocket::Frame> pong = client.Read();
    ASSERT_TRUE(pong.has_value());
    EXPECT_EQ(pong->opcode, WebSocketOpcode::kPong);
    EXPECT_GT(pong->payload, last);
    last = pong->payload;
  }
  // A pong that nobody asked for is nothing.
  ASSERT_TRUE(client.Send(WebSocketFrame(WebSocketOpcode::kPong, "?")));
  ASSERT_TRUE(client.SendBinary(EchoFrame("on")));
  EXPECT_EQ(TextOf(client.ReadOurs()), "on");
}

TEST(WebSocket, ReturnsTheCloseOfItsPeer) {
  IoThreads io({});
  Counter closed;
  std::string why;
  std::atomic<int> notes = 0;
  Service server(io, {.name = "server"});
  server.Handle<Note>([&](const Message<Note>&) { ++notes; });
  server.OnClose([&](const ConnectionPtr&, const Error& reason) {
    why = reason.message();
    closed.Add();
  });
  const NetAddress address = MustListen(server, kAccept);
  ByteWriter note;
  EncodeFrame({.module_id = 7,
               .protocol_id = Note::kDescriptor.protocol_id,
               .payload = std::string_view("\0", 1)},
              note);
  {
    RawWebSocket client(address);
    // What was sent before the close is handled, what comes behind it is not.
    ASSERT_TRUE(client.Send(WebSocketFrame(WebSocketOpcode::kBinary, note.view()) +
                            WebSocketFrame(WebSocketOpcode::kClose,
                                           "\x0f\xa0"
                                           "bye") +
                            WebSocketFrame(WebSocketOpcode::kBinary, note.view())));
    EXPECT_EQ(client.Read()->close_code(), 4000U);
    EXPECT_FALSE(client.Read().has_value());
  }
  ASSERT_TRUE(closed.WaitFor(1));
  EXPECT_EQ(notes, 1);
  EXPECT_EQ(why, "the peer closed the connection (WebSocket code 4000)");
  {
    RawWebSocket without_code(address);
    ASSERT_TRUE(without_code.Send(WebSocketFrame(WebSocketOpcode::kClose, "")));
    const std::optional<RawWebSocket::Frame> answer = without_code.Read();
    EXPECT_EQ(answer->opcode, WebSocketOpcode::kClose);
    EXPECT_EQ(answer->payload, "");
  }
  ASSERT_TRUE(closed.WaitFor(2));
  EXPECT_EQ(server.GetStatistics().protocol_errors, 0U);
}

// The peer is slow to be handled: its close waits for its turn.
TEST(WebSocket, HandlesEverythingInFrontOfACloseThoughItMustWait) {
  ThreadPool pool({.thread_count = 1});
  IoThreads io({});
  Counter closed;
  std::atomic<int> handled = 0;
  Service server(io, {.name = "server",
                      .dispatch = Dispatch::kOrdered,
                      .executor = &pool,
                      .dispatched_messages_max = 2});
  server.Handle<Note>([&](const Message<Note>&) { ++handled; });
  server.OnClose([&](const ConnectionPtr&, const Error&) { closed.Add(); });
  RawWebSocket client(MustListen(server, kAccept));
  ByteWriter notes;
  for (int i = 0; i < 500; ++i) {
    EncodeFrame({.module_id = 7,
                 .protocol_id = Note::kDescriptor.protocol_id,
                 .payload = std::string_view("\0", 1)},
                notes);
  }
  ASSERT_TRUE(client.Send(WebSocketFrame(WebSocketOpcode::kBinary, notes.view()) +
                          WebSocketFrame(WebSocketOpcode::kClose, "\x03\xe8")));
  EXPECT_EQ(client.Read()->close_code(), 1000U);
  EXPECT_FALSE(client.Read().has_value());
  client.raw().Close();
  ASSERT_TRUE(closed.WaitFor(1));
  EXPECT_EQ(handled, 500);
}

TEST(WebSocket, SaysGoodbyeItself) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.Handle<Echo>([](Request<Echo> request) {
    const ConnectionPtr connection = request.connection();
    const std::string how = request.argument().text;
    (void)request.Answer({how});
    how == "at once" ? connection->Close("test") : connection->CloseWhenSent("test");
  });
  const NetAddress address = MustListen(server, kAccept);

  RawWebSocket when_sent(address);
  ASSERT_TRUE(when_sent.SendBinary(EchoFrame("when sent")));
  EXPECT_EQ(TextOf(when_sent.ReadOurs()), "when sent");
  EXPECT_EQ(when_sent.Read()->close_code(), 1000U);
  ASSERT_TRUE(when_sent.Send(WebSocketFrame(WebSocketOpcode::kClose, "\x03\xe8")));
  EXPECT_FALSE(when_sent.Read().has_value());

  RawWebSocket stopped(address);
  ASSERT_TRUE(stopped.Send(WebSocketFrame(WebSocketOpcode::kPing, "")));
  EXPECT_EQ(stopped.Read()->opcode, WebSocketOpcode::kPong);
  server.Stop();
  EXPECT_EQ(stopped.Read()->close_code(), 1001U);
  EXPECT_FALSE(stopped.Read().has_value());
}

TEST(WebSocket, OfAClientIsWhatOtherServersExpect) {
  IoThreads io({});
  Service client(io, {.name = "client"});
  RawWebSocket server;
  const std::uint16_t port = server.Listen();
  const std::shared_ptr<Connector> connector = client.Connect(
      {.host = "127.0.0.1",
       .port = port,
       .websocket = WebSocketConnectOptions{.path = "/game", .origin = "https://game.example"}});
  const std::string request = server.AcceptAndReadHead();
  EXPECT_THAT(request,
              StartsWith("GET /game HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nOrigin: https://game.example\r\n"));
  const internal::UpgradeAnswer answer = internal::AnswerUpgrade(request, {.path = "/game"});
  ASSERT_EQ(answer.refused, "");
  // The first message may come with the answer.
  ASSERT_TRUE(
      server.Send(answer.text + WebSocketFrame(WebSocketOpcode::kPing, "?", {.masked = false})));
  const ConnectionPtr connection = connector->WaitReady(kPatience).value();
  std::optional<RawWebSocket::Frame> pong = server.Read();
  EXPECT_EQ(pong->opcode, WebSocketOpcode::kPong);
  EXPECT_EQ(pong->payload, "?");
  EXPECT_TRUE(pong->masked);

  ASSERT_TRUE(connection->Send<Note>({std::string(200000, 'n')}).ok());
  std::string received;
  for (bool last = false; !last;) {
    const std::optional<RawWebSocket::Frame> fragment = server.Read();
    EXPECT_TRUE(fragment->masked);
    EXPECT_LE(fragment->payload.size(), 65536U);
    received += fragment->payload;
    last = fragment->last;
  }
  EXPECT_TRUE(received.ends_with(std::string(200000, 'n')));

  connection->CloseWhenSent("test");
  EXPECT_EQ(server.Read()->close_code(), 1000U);
}

TEST(WebSocket, TellsAConnectorWhyItWasRefused) {
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server"});
  const NetAddress address =
      MustListen(server, {.websocket = WebSocketAcceptOptions{.path = "/game"}});
  Service client(io, {.name = "client"});
  const auto failure = [&](const WebSocketConnectOptions& options) {
    Result<ConnectionPtr> connection =
        TryConnect(client, address, {.reconnect = false, .websocket = options});
    return connection.ok() ? "connected" : connection.error().message();
  };
  EXPECT_THAT(failure({.path = "/other"}), HasSubstr("404 Not Found"));
  EXPECT_THAT(failure({.path = "other"}), HasSubstr("no path for a WebSocket"));
  EXPECT_EQ(failure({.path = "/game"}), "connected");

  // A server that speaks our frames without any upgrade, and one that says nonsense.
  RawWebSocket other;
  const std::uint16_t port = other.Listen();
  const std::shared_ptr<Connector> connector = client.Connect(
      {.host = "127.0.0.1", .port = port, .reconnect = false, .websocket = kConnect.websocket});
  EXPECT_THAT(other.AcceptAndReadHead(), StartsWith("GET / "));
  ASSERT_TRUE(
      other.Send("HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
                 "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"));
  EXPECT_THAT(connector->WaitReady(kPatience).error().message(),
              HasSubstr("not one to an upgrade"));
}

TEST(WebSocket, HasAPathThatCanBeAskedFor) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  Result<std::shared_ptr<Acceptor>> acceptor =
      server.Listen({.websocket = WebSocketAcceptOptions{.path = "game"}});
  ASSERT_FALSE(acceptor.ok());
  EXPECT_EQ(acceptor.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(acceptor.error().message(), HasSubstr("'game' is no path"));
}

TEST(WebSocket, ComesBehindAProxyHeader) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.Handle<Echo>([](Request<Echo> request) {
    (void)request.Answer({request.connection()->peer_address().ToString()});
  });
  RawClient client(
      MustListen(server, {.proxy_protocol = true, .websocket = WebSocketAcceptOptions{}}));
  ASSERT_TRUE(client.Send("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n" +
                          RawWebSocket::Request() +
                          WebSocketFrame(WebSocketOpcode::kBinary, EchoFrame("x"))));
  std::string received;
  while (received.find("192.0.2.1:56324") == std::string::npos) {
    const std::string byte = client.ReadBytes(1);
    ASSERT_FALSE(byte.empty());
    received += byte;
  }
}

TEST(WebSocket, IsKeptAliveByPings) {
  ManualClock clock;
  IoThreads io({.clock = &clock, .random = [] { return 0; }});
  const KeepAliveOptions keep_alive{
      .check_period = seconds(1), .receive_timeout = seconds(30), .send_timeout = seconds(10)};
  Counter closed;
  Service server(io, {.name = "server", .keep_alive = keep_alive});
  server.OnClose([&](const ConnectionPtr&, const Error&) { closed.Add(); });
  RawWebSocket client(MustListen(server, kAccept));
  for (int i = 0; i < 5; ++i) {
    clock.Advance(seconds(12));
    const std::optional<RawWebSocket::Frame> ping = client.Read();
    ASSERT_TRUE(ping.has_value());
    EXPECT_EQ(ping->opcode, WebSocketOpcode::kPing);
    // As browsers do. Its own ping shows when it has arrived.
    ASSERT_TRUE(client.Send(WebSocketFrame(WebSocketOpcode::kPong, ping->payload) +
                            WebSocketFrame(WebSocketOpcode::kPing, "")));
    ASSERT_EQ(client.Read()->opcode, WebSocketOpcode::kPong);
  }
  clock.Advance(seconds(32));
  ASSERT_TRUE(closed.WaitFor(1));
}

TEST(WebSocket, CostsLittleWhileItIsIdle) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the allocator is another one";
#endif
  testing::RaiseOpenFiles();
  constexpr std::size_t kConnections = 400;
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  const NetAddress address = MustListen(server, kAccept);
  std::vector<std::unique_ptr<RawWebSocket>> clients;
  const auto open = [&] {
    clients.push_back(std::make_unique<RawWebSocket>(address));
    ASSERT_TRUE(clients.back()->SendBinary(EchoFrame("hello")));
    EXPECT_EQ(TextOf(clients.back()->ReadOurs()), "hello");
  };
  for (int i = 0; i < 20; ++i) open();
  const std::size_t before = testing::MemoryInUse();
  for (std::size_t i = 0; i < kConnections; ++i) open();
  const std::size_t bytes = (testing::MemoryInUse() - before) / kConnections;
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_LT(bytes, 6000U) << "with its client";
}

}  // namespace
}  // namespace zeze
