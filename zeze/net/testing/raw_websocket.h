// RawWebSocket: a blocking WebSocket whose every frame is the test's.
//
//   RawWebSocket client(address);
//   client.Send(WebSocketFrame(WebSocketOpcode::kText, bytes));
//   std::optional<RawWebSocket::Frame> answer = client.Read();   // None: the peer has closed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "zeze/base/check.h"
#include "zeze/net/frame.h"
#include "zeze/net/internal/websocket_codec.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/testing/websocket_frames.h"

namespace zeze::testing {

class RawWebSocket {
 public:
  struct Frame {
    internal::WebSocketOpcode opcode = internal::WebSocketOpcode::kContinuation;
    bool last = false;
    bool masked = false;
    std::string payload = {};  // Unmasked.

    // Of a close, which has one.
    unsigned close_code() const {
      ZEZE_CHECK(opcode == internal::WebSocketOpcode::kClose);
      ZEZE_CHECK(payload.size() >= 2);
      return static_cast<unsigned>(static_cast<unsigned char>(payload[0])) << 8 |
             static_cast<unsigned char>(payload[1]);
    }
  };

  // Of RFC 6455, and therefore with a known answer.
  static std::string Request(std::string_view path = "/", std::string_view fields = {}) {
    return "GET " + std::string(path) +
           " HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" +
           std::string(fields) + "\r\n";
  }

  // Takes a connection that is there already; no upgrade.
  RawWebSocket() = default;
  explicit RawWebSocket(const NetAddress& address) : client_(std::in_place, address) {
    ZEZE_CHECK(Send(Request()));
    const std::string head = ReadHead();
    ZEZE_CHECK(head.starts_with("HTTP/1.1 101 "));
  }

  // Instead: a server for one client.
  std::uint16_t Listen() { return client_.emplace().Listen(); }
  std::string AcceptAndReadHead() {
    client_->Accept();
    return ReadHead();
  }

  RawClient& raw() { return *client_; }
  bool Send(std::string_view bytes) const { return client_->Send(bytes); }
  bool SendBinary(std::string_view payload) const {
    return Send(WebSocketFrame(internal::WebSocketOpcode::kBinary, payload));
  }

  // Up to the empty line, or all there is.
  std::string ReadHead() {
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
      const std::string byte = client_->ReadBytes(1);
      if (byte.empty()) break;
      head += byte;
    }
    return head;
  }

  std::optional<Frame> Read() {
    std::string head = client_->ReadBytes(2);
    if (head.size() < 2) return std::nullopt;
    const auto byte = [](char c) { return static_cast<unsigned>(static_cast<unsigned char>(c)); };
    Frame frame{.opcode = static_cast<internal::WebSocketOpcode>(byte(head[0]) & 0x0F),
                .last = (byte(head[0]) & 0x80) != 0,
                .masked = (byte(head[1]) & 0x80) != 0};
    std::size_t length = byte(head[1]) & 0x7F;
    if (length >= 126) {
      const std::string bytes = client_->ReadBytes(length == 126 ? 2 : 8);
      length = 0;
      for (const char c : bytes) length = length << 8 | byte(c);
    }
    const std::string key = frame.masked ? client_->ReadBytes(4) : "";
    frame.payload = client_->ReadBytes(length);
    if (frame.payload.size() < length) return std::nullopt;
    for (std::size_t i = 0; i < length && frame.masked; ++i) {
      frame.payload[i] = static_cast<char>(frame.payload[i] ^ key[i % 4]);
    }
    return frame;
  }

  // The body of the only frame of ours in the next message.
  std::optional<zeze::Frame> ReadOurs() {
    message_.clear();
    while (true) {
      std::optional<Frame> frame = Read();
      if (!frame.has_value() || frame->opcode >= internal::WebSocketOpcode::kClose) {
        return std::nullopt;
      }
      message_ += frame->payload;
      if (frame->last) break;
    }
    std::string_view stream = message_;
    const std::optional<RawFrame> raw = TakeFrame(stream, 64 << 20).value();
    ZEZE_CHECK(raw.has_value());
    ZEZE_CHECK(stream.empty());
    return ParseFrame(*raw).value();
  }

 private:
  std::optional<RawClient> client_;
  std::string message_;
};

}  // namespace zeze::testing
