// Frame: one message of a connection's byte stream: 12 bytes of header, then a body.
//
//   Frame request{.module_id = 11100, .protocol_id = kLogin, .family = FrameFamily::kRequest,
//                 .session_id = 1, .payload = argument};
//   EncodeFrame(request, out);
//
//   std::string_view stream = received;                     // Any number of frames, the last cut.
//   while (true) {
//     Result<std::optional<RawFrame>> raw = TakeFrame(stream, body_bytes_max);
//     if (!raw.ok()) return Close(raw.error());
//     if (!raw.value()) break;                              // More bytes are needed.
//     Result<Frame> frame = ParseFrame(*raw.value());
//     ...
//   }

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

// Sent as the low five bits of a body's first byte: append, never renumber.
enum class FrameFamily : std::uint8_t {
  kResponse = 0,
  kRequest = 1,
  kOneWay = 2,
  kRaftResponse = 3,
  kRaftRequest = 4,
};

std::string_view ToString(FrameFamily family);

inline constexpr std::size_t kFrameHeaderBytes = 12;

// A message with its envelope. Views point into the bytes that were parsed.
struct Frame {
  std::int32_t module_id = 0;
  std::int32_t protocol_id = 0;
  FrameFamily family = FrameFamily::kOneWay;
  std::int64_t result_code = 0;

  // Rpc only: chosen by the requester, returned unchanged.
  std::int64_t session_id = 0;

  // Raft rpc only.
  std::string_view client_id = {};
  std::int64_t request_id = 0;
  std::int64_t create_time = 0;

  // The encoded argument or result. After parsing everything up to the end of the body: peers of
  // later versions may append to it, and decoders ignore what they do not know.
  std::string_view payload = {};
};

// A frame whose body has not been looked at.
struct RawFrame {
  std::int32_t module_id = 0;
  std::int32_t protocol_id = 0;
  std::string_view body;
};

void EncodeFrame(const Frame& frame, ByteWriter& out);

// Removes the first frame from the stream. None while it is incomplete; the stream is then left
// alone. Fails with kCorrupt as soon as a header claims a body above the limit, before that body
// has arrived: a peer that does so must not make us store it.
Result<std::optional<RawFrame>> TakeFrame(std::string_view& stream, std::size_t body_bytes_max);

// Fails with kCorrupt on a family that does not exist and on a body that ends early.
Result<Frame> ParseFrame(const RawFrame& raw);

// Both at once, for the hot path: true if the stream begins with a whole frame within the limit
// that is a request, an answer or a one-way message; it is then removed. False leaves the stream
// alone, for TakeFrame and ParseFrame to say what is there. `frame` must be as it was made.
bool TakeUsualFrame(std::string_view& stream, std::size_t body_bytes_max, Frame& frame);

// Identifies a kind of message: the module in the high, the protocol in the low 32 bits.
constexpr std::int64_t ProtocolTypeId(std::int32_t module_id, std::int32_t protocol_id) {
  return static_cast<std::int64_t>(
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(module_id)) << 32) |
      static_cast<std::uint32_t>(protocol_id));
}

// A result code of a module's own: the module in the high, the code in the low 32 bits.
constexpr std::int64_t ModuleResultCode(std::int32_t module_id, std::int32_t code) {
  return ProtocolTypeId(module_id, code);
}
constexpr std::int32_t ModuleOfResultCode(std::int64_t result_code) {
  return static_cast<std::int32_t>(result_code >> 32);
}
constexpr std::int32_t CodeOfResultCode(std::int64_t result_code) {
  return static_cast<std::int32_t>(result_code);
}

}  // namespace zeze
