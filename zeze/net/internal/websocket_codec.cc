#include "zeze/net/internal/websocket_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/rand.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

namespace {

constexpr unsigned kLastBit = 0x80;
constexpr unsigned kMaskBit = 0x80;
constexpr unsigned kLength2 = 126;  // The length follows in two bytes.
constexpr unsigned kLength8 = 127;
constexpr std::size_t kMaskBytes = 4;

unsigned Byte(char byte) {
  return static_cast<unsigned char>(byte);
}

std::uint64_t BigEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = (value << 8) | Byte(byte);
  return value;
}

// Masking and its opposite, of bytes that begin with the one of the key at `at`. `to` may be `from`
// or before it: what is written never lies in front of what is still to be read.
void Mask(std::span<const char> from, const std::array<char, 4>& key, std::size_t at, char* to) {
  std::array<char, 8> pattern = {};
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = key[(at + i) % kMaskBytes];
  const auto words = std::bit_cast<std::uint64_t>(pattern);
  std::size_t i = 0;
  for (; i + sizeof(words) <= from.size(); i += sizeof(words)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from.data() + i, sizeof(word));
    word ^= words;
    std::memcpy(to + i, &word, sizeof(word));
  }
  for (; i < from.size(); ++i) {
    to[i] = static_cast<char>(Byte(from[i]) ^ Byte(pattern[i % pattern.size()]));
  }
}

bool MayBeSent(std::uint64_t close_code) {
  return (close_code >= 1000 && close_code <= 1003) || (close_code >= 1007 && close_code <= 1014) ||
         (close_code >= 3000 && close_code <= 4999);
}

}  // namespace

std::size_t WebSocketEncoder::HeadBytes(std::size_t payload_bytes) const {
  return (payload_bytes < kLength2 ? 2U : 4U) + (masks_ ? kMaskBytes : 0);
}

void WebSocketEncoder::Finish(WebSocketOpcode opcode, bool is_last, std::size_t payload_bytes,
                              char* frame) const {
  const unsigned mask_bit = masks_ ? kMaskBit : 0;
  *frame++ = static_cast<char>((is_last ? kLastBit : 0) | static_cast<unsigned>(opcode));
  if (payload_bytes < kLength2) {
    *frame++ = static_cast<char>(mask_bit | payload_bytes);
  } else {
    *frame++ = static_cast<char>(mask_bit | kLength2);
    *frame++ = static_cast<char>(payload_bytes >> 8);
    *frame++ = static_cast<char>(payload_bytes);
  }
  if (!masks_) return;
  std::array<unsigned char, kMaskBytes> random = {};
  ZEZE_CHECK(RAND_bytes(random.data(), static_cast<int>(random.size())) == 1);
  const auto key = std::bit_cast<std::array<char, kMaskBytes>>(random);
  std::memcpy(frame, key.data(), key.size());
  char* payload = frame + kMaskBytes;
  Mask({payload, payload_bytes}, key, 0, payload);
}

std::size_t WebSocketEncoder::Begin(ByteWriter& out) const {
  const std::size_t begin = out.size();
  out.Extend(HeadBytes(kWebSocketFragmentBytesMax));
  return begin;
}

void WebSocketEncoder::End(std::size_t begin, ByteWriter& out) const {
  constexpr std::size_t kMax = kWebSocketFragmentBytesMax;
  const std::size_t head = HeadBytes(kMax);
  ZEZE_CHECK(begin + head <= out.size());
  const std::size_t payload = out.size() - begin - head;
  const std::size_t before_last = payload == 0 ? 0 : (payload - 1) / kMax;
  const std::size_t last = payload - before_last * kMax;
  const std::size_t end = begin + before_last * (head + kMax) + HeadBytes(last) + last;
  if (end > out.size()) out.Extend(end - out.size());
  char* const base = out.Tail(begin).data();
  // From behind: each fragment goes where those behind it have been.
  for (std::size_t i = before_last + 1; i-- > 0;) {
    const bool is_last = i == before_last;
    const std::size_t bytes = is_last ? last : kMax;
    char* const frame = base + i * (head + kMax);
    const char* const written = base + head + i * kMax;
    if (char* const target = frame + HeadBytes(bytes); target != written) {
      std::memmove(target, written, bytes);
    }
    Finish(i == 0 ? WebSocketOpcode::kBinary : WebSocketOpcode::kContinuation, is_last, bytes,
           frame);
  }
  if (end < out.size()) out.Truncate(end);
}

void WebSocketEncoder::Write(std::string_view payload, ByteWriter& out) const {
  WebSocketOpcode opcode = WebSocketOpcode::kBinary;
  do {
    const std::string_view fragment = payload.substr(0, kWebSocketFragmentBytesMax);
    payload.remove_prefix(fragment.size());
    const std::size_t begin = out.size();
    out.Extend(HeadBytes(fragment.size()));
    out.WriteRaw(fragment);
    Finish(opcode, payload.empty(), fragment.size(), out.Tail(begin).data());
    opcode = WebSocketOpcode::kContinuation;
  } while (!payload.empty());
}

void WebSocketEncoder::WriteControl(WebSocketOpcode opcode, std::string_view payload,
                                    ByteWriter& out) const {
  ZEZE_CHECK(payload.size() <= kWebSocketControlBytesMax);
  const std::size_t begin = out.size();
  out.Extend(HeadBytes(payload.size()));
  out.WriteRaw(payload);
  Finish(opcode, true, payload.size(), out.Tail(begin).data());
}

void WebSocketEncoder::WriteClose(WebSocketClose code, std::string_view text,
                                  ByteWriter& out) const {
  if (code == WebSocketClose::kNone) return WriteControl(WebSocketOpcode::kClose, {}, out);
  const auto number = static_cast<unsigned>(code);
  std::string payload = {static_cast<char>(number >> 8), static_cast<char>(number)};
  payload += text.substr(0, kWebSocketControlBytesMax - payload.size());
  WriteControl(WebSocketOpcode::kClose, payload, out);
}

std::optional<std::string> WebSocketDecoder::TakePing() {
  if (!std::exchange(has_ping_, false)) return std::nullopt;
  return std::exchange(ping_, {});
}

Error WebSocketDecoder::Fail(WebSocketClose code, std::string what) {
  ended_ = true;
  failure_code_ = code;
  return {ErrorCode::kCorrupt, "WebSocket: " + std::move(what)};
}

bool WebSocketDecoder::IsControl() const {
  return opcode_ >= WebSocketOpcode::kClose;
}

// How many bytes the header has, as far as those that have come tell.
std::size_t WebSocketDecoder::HeadBytes() const {
  if (head_bytes_ < 2) return 2;
  const unsigned length = Byte(head_[1]) & ~kMaskBit;
  const std::size_t more = length == kLength2 ? 2 : length == kLength8 ? 8 : 0;
  return 2 + more + ((Byte(head_[1]) & kMaskBit) != 0 ? kMaskBytes : 0);
}

bool WebSocketDecoder::TakeHead(std::span<char>& wire) {
  while (true) {
    const std::size_t wanted = HeadBytes() - head_bytes_;
    if (wanted == 0) return true;
    const std::size_t count = std::min(wanted, wire.size());
    if (count == 0) return false;
    std::memcpy(head_.data() + head_bytes_, wire.data(), count);
    head_bytes_ = static_cast<std::uint8_t>(head_bytes_ + count);
    wire = wire.subspan(count);
  }
}

Result<void> WebSocketDecoder::OnHead() {
  const std::string_view head(head_.data(), std::exchange(head_bytes_, std::uint8_t{0}));
  const unsigned first = Byte(head[0]);
  const unsigned second = Byte(head[1]);
  const bool is_last = (first & kLastBit) != 0;
  const bool is_masked = (second & kMaskBit) != 0;
  const unsigned length = second & ~kMaskBit;
  opcode_ = static_cast<WebSocketOpcode>(first & 0x0F);

  if ((first & 0x70) != 0) {
    return Fail(WebSocketClose::kProtocolError,
                "reserved bits are set, but no extension was agreed");
  }
  if (is_masked != options_.expects_masks) {
    return Fail(WebSocketClose::kProtocolError,
                is_masked ? "a server must not mask its frames" : "a client must mask its frames");
  }
  missing_ = length == kLength2   ? BigEndian(head.substr(2, 2))
             : length == kLength8 ? BigEndian(head.substr(2, 8))
                                  : length;
  if ((length == kLength2 && missing_ < kLength2) || (length == kLength8 && missing_ < 0x10000)) {
    return Fail(WebSocketClose::kProtocolError,
                fmt::format("the length {} is written in more bytes than it needs", missing_));
  }
  switch (opcode_) {
    case WebSocketOpcode::kText:
    case WebSocketOpcode::kBinary:
    case WebSocketOpcode::kContinuation:
      if (in_message_ != (opcode_ == WebSocketOpcode::kContinuation)) {
        return Fail(WebSocketClose::kProtocolError, in_message_
                                                        ? "a message begins inside another"
                                                        : "a message continues that never began");
      }
      if (missing_ > options_.frame_bytes_max) {
        return Fail(WebSocketClose::kTooBig, fmt::format("a frame claims {} bytes, at most {}",
                                                         missing_, options_.frame_bytes_max));
      }
      in_message_ = !is_last;
      break;
    case WebSocketOpcode::kClose:
    case WebSocketOpcode::kPing:
    case WebSocketOpcode::kPong:
      if (!is_last || missing_ > kWebSocketControlBytesMax) {
        return Fail(WebSocketClose::kProtocolError,
                    "a control frame is fragmented, or longer than 125 bytes");
      }
      break;
    default:
      return Fail(WebSocketClose::kProtocolError,
                  fmt::format("a frame of the unknown kind {}", first & 0x0F));
  }
  if (is_masked) std::memcpy(mask_.data(), head.data() + head.size() - kMaskBytes, kMaskBytes);
  mask_at_ = 0;
  return {};
}

Result<void> WebSocketDecoder::OnControl() {
  const std::string payload = std::exchange(control_, {});
  if (opcode_ == WebSocketOpcode::kPing) {
    ping_ = payload;
    has_ping_ = true;
  }
  if (opcode_ != WebSocketOpcode::kClose) return {};
  if (!payload.empty()) {
    const std::uint64_t code = BigEndian(payload.substr(0, 2));
    if (payload.size() == 1 || !MayBeSent(code)) {
      return Fail(WebSocketClose::kProtocolError, "a close with a code that does not exist");
    }
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): peers may send others.
    close_code_ = static_cast<WebSocketClose>(code);
  }
  closed_ = ended_ = true;
  return {};
}

Result<std::span<char>> WebSocketDecoder::Decode(std::span<char> wire) {
  // The first payload stays where it is, those behind it move up to it.
  std::span<char> found;
  while (!ended_) {
    if (!in_payload_) {
      if (!TakeHead(wire)) break;
      if (Result<void> known = OnHead(); !known.ok()) return known.error();
      in_payload_ = true;
    }
    const std::size_t count =
        static_cast<std::size_t>(std::min<std::uint64_t>(missing_, wire.size()));
    const std::span<char> part = wire.first(count);
    wire = wire.subspan(count);
    if (IsControl()) {
      const std::size_t before = control_.size();
      control_.resize(before + count);
      Mask(part, mask_, mask_at_, control_.data() + before);
    } else if (count > 0) {
      char* const target = found.empty() ? part.data() : found.data() + found.size();
      if (options_.expects_masks) {
        Mask(part, mask_, mask_at_, target);
      } else if (target != part.data()) {
        std::memmove(target, part.data(), count);
      }
      found = {found.empty() ? target : found.data(), found.size() + count};
    }
    mask_at_ = static_cast<std::uint8_t>((mask_at_ + count) % kMaskBytes);
    missing_ -= count;
    if (missing_ > 0) break;
    in_payload_ = false;
    if (!IsControl()) continue;
    if (Result<void> done = OnControl(); !done.ok()) return done.error();
  }
  return found;
}

}  // namespace zeze::internal
