// Tests of the frames of a WebSocket: the examples of RFC 6455, all sizes, all cuts, all that is
// forbidden.

#include "zeze/net/internal/websocket_codec.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/hex.h"
#include "zeze/net/testing/websocket_frames.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {
namespace {

using testing::FromHex;
using ::testing::HasSubstr;
using testing::WebSocketFrame;
using std::string_literals::operator""s;

constexpr std::size_t kLimit = 1 << 20;

WebSocketDecoder OfServer() {
  return WebSocketDecoder({.expects_masks = true, .frame_bytes_max = kLimit});
}
WebSocketDecoder OfClient() {
  return WebSocketDecoder({.expects_masks = false, .frame_bytes_max = kLimit});
}

// What the frames carry, or why they are refused.
std::string Decode(WebSocketDecoder& decoder, std::string wire) {
  Result<std::span<char>> bytes = decoder.Decode(wire);
  if (!bytes.ok()) {
    EXPECT_EQ(bytes.error().code(), ErrorCode::kCorrupt);
    return bytes.error().message();
  }
  return {bytes.value().begin(), bytes.value().end()};
}

std::string Noise(std::size_t bytes) {
  std::mt19937 random(static_cast<std::uint32_t>(bytes));
  std::string noise(bytes, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  return noise;
}

// Both ways of writing a message.
std::string Encode(const WebSocketEncoder& encoder, std::string_view payload, bool in_place) {
  ByteWriter out;
  out.WriteRaw("x");
  if (in_place) {
    const std::size_t begin = encoder.Begin(out);
    out.WriteRaw(payload);
    encoder.End(begin, out);
  } else {
    encoder.Write(payload, out);
  }
  EXPECT_EQ(out.view().substr(0, 1), "x");
  return std::string(out.view().substr(1));
}

TEST(WebSocketDecoder, ReadsTheExamplesOfTheStandard) {
  WebSocketDecoder server = OfServer();
  WebSocketDecoder client = OfClient();
  EXPECT_EQ(Decode(client, FromHex("810548656c6c6f")), "Hello");
  EXPECT_EQ(Decode(server, FromHex("818537fa213d7f9f4d5158")), "Hello");
  EXPECT_EQ(Decode(client, FromHex("010348656c80026c6f")), "Hello");
  EXPECT_EQ(Decode(client, FromHex("890548656c6c6f")), "");
  EXPECT_EQ(client.TakePing(), "Hello");
  EXPECT_EQ(client.TakePing(), std::nullopt);
  EXPECT_EQ(Decode(server, FromHex("8a8537fa213d7f9f4d5158")), "");  // A pong.
  EXPECT_EQ(server.TakePing(), std::nullopt);
  EXPECT_EQ(Decode(client, FromHex("827e0100") + std::string(256, 'b')), std::string(256, 'b'));
  EXPECT_EQ(Decode(client, FromHex("827f0000000000010000") + std::string(65536, 'b')),
            std::string(65536, 'b'));
}

TEST(WebSocketEncoder, WritesMessagesOfAllSizes) {
  constexpr std::size_t kMax = kWebSocketFragmentBytesMax;
  for (const bool masks : {false, true}) {
    const WebSocketEncoder encoder(masks);
    for (const std::size_t size : std::vector<std::size_t>{
             0, 1, 2, 7, 8, 9, 124, 125, 126, 127, 1000, kMax - 1, kMax, kMax + 1, kMax + 125,
             kMax + 126, 2 * kMax, 2 * kMax + 1, 500000}) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE("size " + std::to_string(size));
        const std::string payload = Noise(size);
        const std::string wire = Encode(encoder, payload, in_place);
        WebSocketDecoder decoder = masks ? OfServer() : OfClient();
        EXPECT_TRUE(Decode(decoder, wire) == payload);
        const std::size_t fragments = std::max<std::size_t>(1, (size + kMax - 1) / kMax);
        const std::size_t last = size - (fragments - 1) * kMax;
        EXPECT_EQ(wire.size(),
                  size + (fragments - 1) * 4 + (last < 126 ? 2 : 4) + (masks ? 4 * fragments : 0));
      }
    }
  }
  EXPECT_EQ(Encode(WebSocketEncoder(false), "Hello", true), FromHex("820548656c6c6f"));
}

TEST(WebSocketEncoder, MakesOneMessageOfAllFragments) {
  const std::string wire = Encode(WebSocketEncoder(false), std::string(65536, 'a'), true);
  EXPECT_EQ(wire.substr(0, 4), FromHex("027effff"));  // Binary, and more to come.
  EXPECT_EQ(wire.substr(4 + 65535), FromHex("800161"));
}

TEST(WebSocketEncoder, TakesANewKeyForEveryFrame) {
  const WebSocketEncoder encoder(true);
  const std::string one = Encode(encoder, "Hello", true);
  const std::string two = Encode(encoder, "Hello", true);
  EXPECT_NE(one.substr(2, 4), two.substr(2, 4));
  EXPECT_EQ(one.substr(0, 2), FromHex("8285"));
}

TEST(WebSocketEncoder, CutsTheTextOfACloseToWhatFits) {
  ByteWriter out;
  WebSocketEncoder(false).WriteClose(WebSocketClose::kProtocolError, std::string(500, 'r'), out);
  EXPECT_EQ(out.size(), 2 + kWebSocketControlBytesMax);
  WebSocketDecoder decoder = OfClient();
  EXPECT_EQ(Decode(decoder, std::string(out.view())), "");
  EXPECT_TRUE(decoder.closed());
  EXPECT_EQ(decoder.close_code(), WebSocketClose::kProtocolError);
}

TEST(WebSocketDecoder, JoinsMessagesInWhateverPiecesTheyCome) {
  constexpr std::uint32_t kSeed = 20261201;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    const bool masked = round % 2 == 0;
    std::string wire;
    std::string expected;
    std::string last_ping;
    bool in_message = false;
    for (std::size_t i = 1 + random() % 8; i > 0; --i) {
      const std::string payload = Noise(random() % (random() % 4 == 0 ? 70000 : 200));
      const bool is_last = random() % 2 == 0;
      const WebSocketOpcode opcode = in_message          ? WebSocketOpcode::kContinuation
                                     : random() % 2 == 0 ? WebSocketOpcode::kText
                                                         : WebSocketOpcode::kBinary;
      wire += WebSocketFrame(opcode, payload, {.last = is_last, .masked = masked});
      expected += payload;
      in_message = !is_last;
      if (random() % 3 != 0) continue;
      last_ping = Noise(random() % 126);  // Control frames come between fragments, too.
      wire += WebSocketFrame(WebSocketOpcode::kPing, last_ping, {.masked = masked});
    }
    WebSocketDecoder decoder = masked ? OfServer() : OfClient();
    std::string decoded;
    std::string ping;
    for (std::size_t at = 0; at < wire.size();) {
      std::string piece = wire.substr(at, 1 + random() % (random() % 2 == 0 ? 5 : 5000));
      at += piece.size();
      decoded += Decode(decoder, piece);
      ping = decoder.TakePing().value_or(ping);
    }
    ASSERT_TRUE(decoded == expected) << "round " << round;
    EXPECT_TRUE(ping == last_ping);
  }
}

TEST(WebSocketDecoder, LeavesWhatAServerSentWhereItIs) {
  std::string wire = WebSocketFrame(WebSocketOpcode::kBinary, "where it is", {.masked = false});
  WebSocketDecoder decoder = OfClient();
  const std::span<char> found = decoder.Decode(wire).value();
  EXPECT_EQ(found.data(), wire.data() + 2);
}

TEST(WebSocketDecoder, RefusesWhatTheStandardForbids) {
  struct Case {
    std::string wire;
    const char* why;
    WebSocketClose code = WebSocketClose::kProtocolError;
  };
  const std::vector<Case> cases = {
      {FromHex("c18000000000"), "reserved bits"},
      {FromHex("a18000000000"), "reserved bits"},
      {FromHex("918000000000"), "reserved bits"},
      {FromHex("8100"), "a client must mask"},
      {FromHex("838000000000"), "unknown kind 3"},
      {FromHex("8f8000000000"), "unknown kind 15"},
      {FromHex("808000000000"), "continues that never began"},
      {FromHex("018000000000818000000000"), "begins inside another"},
      {FromHex("098000000000"), "control frame is fragmented"},
      {FromHex("89fe007e00000000"), "longer than 125 bytes"},
      {FromHex("82fe007d00000000"), "more bytes than it needs"},
      {FromHex("82ff000000000000ffff00000000"), "more bytes than it needs"},
      {FromHex("82ff000000000010000100000000"), "claims 1048577 bytes", WebSocketClose::kTooBig},
      {FromHex("82ffffffffffffffffff00000000"), "claims 18446744073709551615 bytes",
       WebSocketClose::kTooBig},
      {FromHex("888100000000") + "x", "code that does not exist"},
      {FromHex("88820000000003ed"), "code that does not exist"},  // 1005 is never sent.
      {FromHex("88820000000003e7"), "code that does not exist"},
      {FromHex("88820000000003ee"), "code that does not exist"},
      {FromHex("8882000000001388"), "code that does not exist"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.why);
    WebSocketDecoder decoder = OfServer();
    EXPECT_THAT(Decode(decoder, one.wire), HasSubstr(one.why));
    EXPECT_EQ(decoder.failure_code(), one.code);
    // It stays so.
    EXPECT_EQ(Decode(decoder, FromHex("818537fa213d7f9f4d5158")), "");
    EXPECT_FALSE(decoder.closed());
  }
  WebSocketDecoder client = OfClient();
  EXPECT_THAT(Decode(client, FromHex("818537fa213d7f9f4d5158")), HasSubstr("server must not mask"));
}

TEST(WebSocketDecoder, PassesOverWhatComesBehindAClose) {
  WebSocketDecoder decoder = OfClient();
  EXPECT_EQ(Decode(decoder, FromHex("820161") + FromHex("880203e8") + FromHex("820162")), "a");
  EXPECT_TRUE(decoder.closed());
  EXPECT_EQ(decoder.close_code(), WebSocketClose::kNormal);
  EXPECT_EQ(Decode(decoder, FromHex("820163")), "");

  WebSocketDecoder without_code = OfClient();
  EXPECT_EQ(Decode(without_code, FromHex("8800")), "");
  EXPECT_TRUE(without_code.closed());
  EXPECT_EQ(without_code.close_code(), WebSocketClose::kNone);
}

TEST(WebSocketDecoder, TakesBytesThatAreNoText) {
  WebSocketDecoder decoder = OfClient();
  EXPECT_EQ(Decode(decoder, FromHex("8103ff00c0")), "\xff\0\xc0"s);
}

TEST(WebSocketDecoder, IsSmall) {
  // One for each connection.
  EXPECT_LE(sizeof(WebSocketDecoder), 160U);
}

}  // namespace
}  // namespace zeze::internal
