// Strangers at a port for WebSockets: whatever they send, they are told what is wrong and closed,
// and memory stays bounded.

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/testing/process_resources.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/raw_websocket.h"
#include "zeze/net/testing/service_fixture.h"

namespace zeze {
namespace {

using internal::WebSocketOpcode;
using std::chrono::seconds;
using testing::CapturedLog;
using ::testing::Contains;
using testing::Counter;
using testing::Echo;
using ::testing::EndsWith;
using testing::HandleEcho;
using ::testing::HasSubstr;
using testing::ManualClock;
using testing::MemoryInUse;
using testing::MustListen;
using testing::RawClient;
using testing::RawWebSocket;
using ::testing::StartsWith;
using testing::WebSocketFrame;

std::string EchoFrame(const std::string& text) {
  return RawClient::RequestFrame<Echo>(1, {text});
}

class HostileWebSocket : public ::testing::Test {
 protected:
  HostileWebSocket() {
    HandleEcho(server_);
    server_.OnClose([this](const ConnectionPtr&, const Error&) { closed_.Add(); });
    address_ = MustListen(server_, {.websocket = WebSocketAcceptOptions{
                                        .path = "/", .allowed_origins = {"https://good.example"}}});
  }

  // Everything until the peer has closed.
  static std::string ReadAll(RawClient& client) {
    std::string all;
    while (true) {
      const std::string byte = client.ReadBytes(1);
      if (byte.empty()) return all;
      all += byte;
    }
  }
  void HonestStillWorks() {
    RawWebSocket honest(address_);
    ASSERT_TRUE(honest.SendBinary(EchoFrame("honest")));
    EXPECT_TRUE(honest.ReadOurs().has_value());
  }

  // Their time runs from then on.
  void AwaitAccepted(std::uint64_t count) {
    while (server_.GetStatistics().accepted < count) std::this_thread::yield();
    EndTurn();
  }

  // What the network thread has begun is done when this returns.
  void EndTurn() {
    WaitGroup done(1);
    io_.Post([&done] { done.Done(); });
    done.Wait();
  }

  CapturedLog log_;
  ManualClock clock_;
  IoThreads io_{{.clock = &clock_}};
  Counter closed_;
  Service server_{io_, {.name = "server", .frame_bytes_max = 64 << 10, .handshakes_max = 8}};
  NetAddress address_;
};

TEST_F(HostileWebSocket, RequestsThatAreNoneAreToldSo) {
  struct Case {
    std::string request;
    const char* status;
    const char* body;
  };
  const std::vector<Case> cases = {
      {RawWebSocket::Request("/other"), "404 Not Found", "no WebSocket at this path"},
      {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "426 Upgrade Required", "This port speaks WebSocket"},
      {"POST / HTTP/1.1\r\nHost: h\r\n\r\n", "405 Method Not Allowed", "begins with GET"},
      {RawWebSocket::Request("/", "Origin: https://evil.example\r\n"), "403 Forbidden", "origin"},
      {RawWebSocket::Request("/", "Content-Length: 5\r\n"), "400 Bad Request", "body"},
      {"\x16\x03\x01 nonsense\r\n\r\n", "400 Bad Request", "not HTTP"},
      {EchoFrame("\r\n\r\n"), "400 Bad Request", "not HTTP"},
      {"GET / HTTP/1.1\r\nCookie: " + std::string(9000, 'x'), "431 Request Header Fields Too Large",
       "8192 bytes"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.status);
    RawClient client(address_);
    ASSERT_TRUE(client.Send(one.request));
    const std::string answer = ReadAll(client);
    EXPECT_THAT(answer, StartsWith(std::string("HTTP/1.1 ") + one.status + "\r\n"));
    EXPECT_THAT(answer, HasSubstr(one.body));
  }
  EXPECT_EQ(server_.GetStatistics().upgrades_refused, cases.size());
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("refused with status 404: the path /other")));
  HonestStillWorks();
}

TEST_F(HostileWebSocket, FramesThatAreForbiddenCloseTheConnectionWithACode) {
  struct Case {
    std::string frame;
    unsigned code;
    const char* text;
  };
  const std::vector<Case> cases = {
      {WebSocketFrame(WebSocketOpcode::kBinary, EchoFrame("x"), {.masked = false}), 1002,
       "a client must mask"},
      {WebSocketFrame(WebSocketOpcode::kBinary, "", {.claimed_bytes = (64 << 10) + 13}), 1009,
       "at most 65548"},
      {WebSocketFrame(WebSocketOpcode::kBinary, "", {.claimed_bytes = INT64_MAX}), 1009, "claims"},
      {WebSocketFrame(WebSocketOpcode::kContinuation, "x"), 1002, "never began"},
      {WebSocketFrame(WebSocketOpcode::kPing, std::string(126, 'x')), 1002, "125 bytes"},
      {WebSocketFrame(static_cast<WebSocketOpcode>(11), ""), 1002, "unknown kind 11"},
      {WebSocketFrame(static_cast<WebSocketOpcode>(0x42), ""), 1002, "reserved bits"},
      // Right frames of a WebSocket, wrong ones of ours.
      {WebSocketFrame(WebSocketOpcode::kBinary, std::string(12, '\x7f')), 1002, ""},
      {WebSocketFrame(WebSocketOpcode::kBinary, std::string("\1\0\0\0\1\0\0\0\1\0\0\0\2", 13)),
       1002, ""},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    RawWebSocket client(address_);
    ASSERT_TRUE(client.Send(one.frame));
    const std::optional<RawWebSocket::Frame> close = client.Read();
    ASSERT_TRUE(close.has_value());
    EXPECT_EQ(close->close_code(), one.code);
    EXPECT_THAT(close->payload, HasSubstr(one.text));
    // What it still sends reaches nobody.
    client.SendBinary(EchoFrame("still there?"));
    EXPECT_FALSE(client.Read().has_value());
  }
  EXPECT_EQ(server_.GetStatistics().protocol_errors, cases.size());
  HonestStillWorks();
}

TEST_F(HostileWebSocket, WhoTakesTooLongForItsRequestIsClosed) {
  RawClient slow(address_);
  AwaitAccepted(1);
  const std::string request = RawWebSocket::Request();
  for (std::size_t i = 0; i < 9; ++i) {
    ASSERT_TRUE(slow.Send(request.substr(i, 1)));
    clock_.Advance(seconds(1));
  }
  clock_.Advance(seconds(1));
  EXPECT_EQ(slow.ReadBytes(1), "");
  EXPECT_EQ(server_.GetStatistics().handshakes_failed, 1U);

  // Half requests do not keep honest ones out.
  std::vector<std::unique_ptr<RawClient>> half;
  for (int i = 0; i < 20; ++i) {
    half.push_back(std::make_unique<RawClient>(address_));
    ASSERT_TRUE(half.back()->Send(request.substr(0, 20)));
  }
  HonestStillWorks();
}

TEST_F(HostileWebSocket, WhoIsToldToGoHasLittleTime) {
  RawWebSocket stubborn(address_);
  ASSERT_TRUE(stubborn.Send(WebSocketFrame(WebSocketOpcode::kContinuation, "x")));
  EXPECT_EQ(stubborn.Read()->close_code(), 1002U);
  EXPECT_FALSE(stubborn.Read().has_value());  // The end of what we send, not of the connection.
  for (int i = 0; i < 100; ++i) stubborn.SendBinary(std::string(1000, 'x'));
  EndTurn();  // Its time runs from the end of what we send.
  clock_.Advance(seconds(10));
  ASSERT_TRUE(closed_.WaitFor(1));
}

TEST_F(HostileWebSocket, MessagesThatNeverEndCostNothing) {
  const std::size_t before = MemoryInUse();
  RawWebSocket client(address_);
  ASSERT_TRUE(client.Send(WebSocketFrame(WebSocketOpcode::kText, "", {.last = false})));
  std::string empty;
  for (int i = 0; i < 10000; ++i) {
    empty += WebSocketFrame(WebSocketOpcode::kContinuation, "", {.last = false});
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client.Send(empty));
  // It is still the stream that it was.
  const std::string note = EchoFrame(std::string(60000, 'e'));
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(client.Send(WebSocketFrame(WebSocketOpcode::kContinuation, note, {.last = false})));
    ASSERT_TRUE(client.ReadOurs().has_value());
  }
  EXPECT_LT(MemoryInUse(), before + (std::size_t{16} << 20));
}

TEST_F(HostileWebSocket, PingsWithoutEndCostNothing) {
  const std::size_t before = MemoryInUse();
  RawWebSocket client(address_);
  std::string pings;
  while (pings.size() < 1 << 20)
    pings += WebSocketFrame(WebSocketOpcode::kPing, std::string(125, 'p'));
  // It never reads. Pongs are fewer than pings, so all of them fit, or the server stops reading.
  for (int i = 0; i < 64 && client.raw().TrySend(pings); ++i) {
  }
  HonestStillWorks();
  EXPECT_LT(MemoryInUse(), before + (std::size_t{32} << 20));
}

TEST_F(HostileWebSocket, NoiseAndMutatedFramesCloseTheirConnectionOnly) {
  std::mt19937 random(11);  // NOLINT: the same every time.
  const std::vector<std::string> valid = {
      WebSocketFrame(WebSocketOpcode::kBinary, EchoFrame("a")),
      WebSocketFrame(WebSocketOpcode::kText, EchoFrame(std::string(300, 'b')), {.last = false}) +
          WebSocketFrame(WebSocketOpcode::kPing, "p") +
          WebSocketFrame(WebSocketOpcode::kContinuation, EchoFrame("c")),
      WebSocketFrame(WebSocketOpcode::kClose, "\x03\xe8")};
  for (int round = 0; round < 400; ++round) {
    std::string bytes = valid[random() % valid.size()];
    for (std::size_t i = random() % 6; i > 0; --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(1 + random() % bytes.size());
    if (round % 2 == 0) {
      RawWebSocket stranger(address_);
      stranger.Send(bytes);
    } else {
      std::string request = RawWebSocket::Request();
      request[random() % request.size()] = static_cast<char>(random());
      RawClient stranger(address_);
      stranger.Send(request + bytes);
    }
    if (round % 50 == 0) HonestStillWorks();
  }
  HonestStillWorks();
}

}  // namespace
}  // namespace zeze
