// Fuzzes what a port for WebSockets meets before it knows its peer: requests, answers, frames. The
// first byte of the input chooses, the second one cuts.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/internal/websocket_codec.h"
#include "zeze/net/internal/websocket_upgrade.h"
#include "zeze/net/websocket_options.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {
namespace {

constexpr std::size_t kFrameBytesMax = 100000;

struct Decoded {
  std::string bytes = {};
  bool failed = false;
  bool closed = false;
};

Decoded DecodeInPieces(std::string_view wire, bool masked, std::size_t piece_bytes) {
  WebSocketDecoder decoder({.expects_masks = masked, .frame_bytes_max = kFrameBytesMax});
  Decoded decoded;
  while (!wire.empty() && !decoded.failed) {
    std::string piece(wire.substr(0, piece_bytes));
    wire.remove_prefix(piece.size());
    Result<std::span<char>> found = decoder.Decode(piece);
    decoded.failed = !found.ok();
    if (!found.ok()) continue;
    ZEZE_CHECK(found.value().size() <= piece.size());
    ZEZE_CHECK(found.value().empty() ||
               (found.value().data() >= piece.data() &&
                found.value().data() + found.value().size() <= piece.data() + piece.size()));
    decoded.bytes.append(found.value().begin(), found.value().end());
    if (const auto ping = decoder.TakePing()) ZEZE_CHECK(ping->size() <= kWebSocketControlBytesMax);
  }
  decoded.closed = decoder.closed();
  return decoded;
}

// However the bytes are cut, they mean the same.
void CheckDecoder(std::string_view wire, bool masked, std::size_t piece_bytes) {
  const Decoded whole = DecodeInPieces(wire, masked, wire.size() + 1);
  const Decoded pieces = DecodeInPieces(wire, masked, piece_bytes);
  ZEZE_CHECK(whole.failed == pieces.failed);
  ZEZE_CHECK(whole.closed == pieces.closed);
  ZEZE_CHECK(whole.failed || whole.bytes == pieces.bytes);
}

void CheckRoundTrip(std::string_view payload, bool masked, std::size_t piece_bytes) {
  const WebSocketEncoder encoder(masked);
  // Some input becomes long enough for several fragments.
  std::string longer(payload);
  if (longer.size() > 200) {
    while (longer.size() < 150000) longer += payload;
  }
  ByteWriter out;
  const std::size_t begin = encoder.Begin(out);
  out.WriteRaw(longer);
  encoder.End(begin, out);
  encoder.WriteControl(WebSocketOpcode::kPing, payload.substr(0, kWebSocketControlBytesMax), out);
  encoder.Write(longer, out);
  encoder.WriteClose(WebSocketClose::kTooBig, payload, out);
  const Decoded decoded = DecodeInPieces(out.view(), masked, 50 * piece_bytes);
  ZEZE_CHECK(!decoded.failed);
  ZEZE_CHECK(decoded.closed);
  ZEZE_CHECK(decoded.bytes == longer + longer);
}

void CheckHead(std::string_view bytes, std::size_t piece_bytes) {
  HttpHeadReader reader;
  while (!bytes.empty()) {
    std::string piece(bytes.substr(0, piece_bytes));
    std::span<char> left(piece);
    const Result<bool> complete = reader.Take(left);
    ZEZE_CHECK(reader.text().size() <= kHttpHeadBytesMax);
    if (!complete.ok()) return;
    bytes.remove_prefix(piece.size() - left.size());
    if (complete.value()) break;
  }
  const UpgradeAnswer answer =
      AnswerUpgrade(reader.text(), {.path = "/", .allowed_origins = {"https://a"}});
  ZEZE_CHECK(answer.text.starts_with(answer.refused.empty() ? "HTTP/1.1 101 " : "HTTP/1.1 4"));
  // The log stays one line.
  ZEZE_CHECK(std::ranges::none_of(answer.refused, [](char c) { return c == '\n' || c == '\r'; }));
  const Result<void> accepted = CheckUpgradeAnswer(reader.text(), "dGhlIHNhbXBsZSBub25jZQ==");
  ZEZE_CHECK(!accepted.ok() || !answer.refused.empty());
}

}  // namespace
}  // namespace zeze::internal

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t piece_bytes = 1 + data[1];
  switch (data[0] % 5) {
    case 0:
      zeze::internal::CheckDecoder(bytes, true, piece_bytes);
      break;
    case 1:
      zeze::internal::CheckDecoder(bytes, false, piece_bytes);
      break;
    case 2:
      zeze::internal::CheckRoundTrip(bytes, true, piece_bytes);
      break;
    case 3:
      zeze::internal::CheckRoundTrip(bytes, false, piece_bytes);
      break;
    default:
      zeze::internal::CheckHead(bytes, piece_bytes);
      break;
  }
  return 0;
}
