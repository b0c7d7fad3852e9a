// WebSocketFrame: a frame of a WebSocket as a test wants it, also one that is forbidden.
//
//   client.Send(WebSocketFrame(WebSocketOpcode::kText, "hello", {.masked = true}));

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/net/internal/websocket_codec.h"

namespace zeze::testing {

struct WebSocketFrameOptions {
  bool last = true;
  bool masked = true;
  // What the header says, if not the truth.
  std::int64_t claimed_bytes = -1;
};

inline std::string WebSocketFrame(internal::WebSocketOpcode opcode, std::string_view payload,
                                  const WebSocketFrameOptions& options = {}) {
  const std::uint64_t length = options.claimed_bytes >= 0
                                   ? static_cast<std::uint64_t>(options.claimed_bytes)
                                   : payload.size();
  std::string frame;
  frame += static_cast<char>((options.last ? 0x80U : 0U) | static_cast<unsigned>(opcode));
  const unsigned mask_bit = options.masked ? 0x80U : 0U;
  const std::size_t length_bytes = length < 126 ? 0 : length < 65536 ? 2 : 8;
  frame += static_cast<char>(mask_bit | (length_bytes == 0   ? static_cast<unsigned>(length)
                                         : length_bytes == 2 ? 126U
                                                             : 127U));
  for (std::size_t i = length_bytes; i-- > 0;) frame += static_cast<char>(length >> (8 * i));
  constexpr std::array<char, 4> kKey = {'\x37', '\xfa', '\x21', '\x3d'};
  if (options.masked) frame.append(kKey.data(), kKey.size());
  for (std::size_t i = 0; i < payload.size(); ++i) {
    frame += options.masked ? static_cast<char>(payload[i] ^ kKey[i % kKey.size()]) : payload[i];
  }
  return frame;
}

}  // namespace zeze::testing
