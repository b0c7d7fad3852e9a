// WebSocketEncoder, WebSocketDecoder: the frames of a WebSocket (RFC 6455), without its socket.
//
//   const std::size_t begin = encoder.Begin(out);
//   EncodeFrame(frame, out);
//   encoder.End(begin, out);                                   // One message.
//
//   Result<std::span<char>> bytes = decoder.Decode(received);  // In place.
//   if (std::optional<std::string> ping = decoder.TakePing()) ...
//   if (decoder.closed()) ...
//
// A connection is a stream of bytes to both of them: where messages begin and end means nothing to
// the receiver, and what they carry is neither text nor compressed.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

// Sent: the low four bits of a frame's first byte.
enum class WebSocketOpcode : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

// Sent: why a connection ends. Others exist.
enum class WebSocketClose : std::uint16_t {
  kNormal = 1000,
  kGoingAway = 1001,
  kProtocolError = 1002,
  kNone = 1005,  // The peer gave no code. Never sent.
  kTooBig = 1009,
};

// Peers refuse a frame of more than 64 KiB; and as long as a length fits into two bytes the header
// of what is written in place has its final size. A longer message is sent in fragments.
inline constexpr std::size_t kWebSocketFragmentBytesMax = 65535;

// Pings, pongs and closes carry no more.
inline constexpr std::size_t kWebSocketControlBytesMax = 125;

class WebSocketEncoder {
 public:
  // Clients mask what they send, servers do not. The key of every frame is new and cannot be
  // guessed.
  explicit WebSocketEncoder(bool masks) : masks_(masks) {}

  // A binary message, written to `out` between the two calls. Up to the size of a fragment its
  // bytes stay where they are, unless they are so few that it does not matter.
  std::size_t Begin(ByteWriter& out) const;
  void End(std::size_t begin, ByteWriter& out) const;

  // A binary message that exists already: copied once.
  void Write(std::string_view payload, ByteWriter& out) const;

  // A ping or a pong. At most kWebSocketControlBytesMax.
  void WriteControl(WebSocketOpcode opcode, std::string_view payload, ByteWriter& out) const;

  // As much of the text as fits. kNone: without a code.
  void WriteClose(WebSocketClose code, std::string_view text, ByteWriter& out) const;

 private:
  std::size_t HeadBytes(std::size_t payload_bytes) const;
  // `frame` has room for the header, then the payload, which is masked.
  void Finish(WebSocketOpcode opcode, bool is_last, std::size_t payload_bytes, char* frame) const;

  bool masks_;
};

class WebSocketDecoder {
 public:
  struct Options {
    bool expects_masks = true;  // From clients; servers send none.
    std::size_t frame_bytes_max = 2 << 20;
  };

  explicit WebSocketDecoder(const Options& options) : options_(options) {}

  // What the data frames in these bytes carry, one behind the other: a part of `wire`, which is
  // changed in place. Frames may be cut anywhere. Fails with kCorrupt if the peer does not keep to
  // the protocol, or as soon as a header claims more than the limit; failure_code is then what to
  // tell it. What comes behind that, or behind a close, is passed over. Nothing of a data frame is
  // kept.
  Result<std::span<char>> Decode(std::span<char> wire);

  WebSocketClose failure_code() const { return failure_code_; }

  // What the last ping carried that was not taken yet: the one to answer, whatever came before it.
  std::optional<std::string> TakePing();

  // The peer has sent a close, with this code.
  bool closed() const { return closed_; }
  WebSocketClose close_code() const { return close_code_; }

 private:
  static constexpr std::size_t kHeadBytesMax = 14;

  // Takes from the front of `wire`. False while the header is incomplete.
  bool TakeHead(std::span<char>& wire);
  std::size_t HeadBytes() const;
  Result<void> OnHead();
  Result<void> OnControl();
  Error Fail(WebSocketClose code, std::string what);
  bool IsControl() const;

  const Options options_;
  std::array<char, kHeadBytesMax> head_ = {};
  std::uint8_t head_bytes_ = 0;  // That have come.
  bool in_payload_ = false;
  bool in_message_ = false;  // The last data frame was not the last of its message.
  bool ended_ = false;       // By a failure or a close.
  bool closed_ = false;
  bool has_ping_ = false;
  WebSocketOpcode opcode_ = WebSocketOpcode::kContinuation;
  std::uint8_t mask_at_ = 0;  // Which byte of the key is next.
  std::array<char, 4> mask_ = {};
  WebSocketClose close_code_ = WebSocketClose::kNone;
  WebSocketClose failure_code_ = WebSocketClose::kProtocolError;
  std::uint64_t missing_ = 0;  // Of the payload.
  std::string control_;        // Of a control frame, as far as it has come.
  std::string ping_;
};

}  // namespace zeze::internal
