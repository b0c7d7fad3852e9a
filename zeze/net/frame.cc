#include "zeze/net/frame.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

constexpr std::uint32_t kFamilyMask = 0x1F;
constexpr std::uint32_t kHasResultCode = 0x20;

bool IsRpc(FrameFamily family) {
  return family != FrameFamily::kOneWay;
}

// Little-endian, whatever the machine.
std::int32_t LoadInt4(std::string_view stream, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, stream.data() + at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap32(value);
  return static_cast<std::int32_t>(value);
}

bool IsRaft(FrameFamily family) {
  return family == FrameFamily::kRaftRequest || family == FrameFamily::kRaftResponse;
}

}  // namespace

std::string_view ToString(FrameFamily family) {
  switch (family) {
    case FrameFamily::kResponse:
      return "response";
    case FrameFamily::kRequest:
      return "request";
    case FrameFamily::kOneWay:
      return "one-way";
    case FrameFamily::kRaftResponse:
      return "raft response";
    case FrameFamily::kRaftRequest:
      return "raft request";
  }
  return "unknown";
}

void EncodeFrame(const Frame& frame, ByteWriter& out) {
  out.Reserve(kFrameHeaderBytes + 64 + frame.client_id.size() + frame.payload.size());
  out.WriteInt4(frame.module_id);
  out.WriteInt4(frame.protocol_id);
  const std::size_t body = out.BeginSize4();
  const auto family = static_cast<std::uint32_t>(frame.family);
  out.WriteUint(frame.result_code == 0 ? family : family | kHasResultCode);
  if (frame.result_code != 0) out.WriteLong(frame.result_code);
  if (IsRpc(frame.family)) out.WriteLong(frame.session_id);
  if (IsRaft(frame.family)) {
    out.WriteBytes(frame.client_id);
    out.WriteLong(frame.request_id);
    out.WriteLong(frame.create_time);
  }
  out.WriteRaw(frame.payload);
  out.EndSize4(body);
}

Result<std::optional<RawFrame>> TakeFrame(std::string_view& stream, std::size_t body_bytes_max) {
  if (stream.size() < kFrameHeaderBytes) return std::optional<RawFrame>();
  RawFrame frame;
  frame.module_id = LoadInt4(stream, 0);
  frame.protocol_id = LoadInt4(stream, 4);
  const auto body_bytes = static_cast<std::uint32_t>(LoadInt4(stream, 8));
  if (body_bytes > body_bytes_max) [[unlikely]] {
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("a frame of module {} protocol {} claims a body of {} bytes; at most {} "
                    "are accepted",
                    frame.module_id, frame.protocol_id, body_bytes, body_bytes_max));
  }
  if (stream.size() - kFrameHeaderBytes < body_bytes) return std::optional<RawFrame>();
  frame.body = stream.substr(kFrameHeaderBytes, body_bytes);
  stream.remove_prefix(kFrameHeaderBytes + body_bytes);
  return std::optional<RawFrame>(frame);
}

Result<Frame> ParseFrame(const RawFrame& raw) {
  ByteReader in(raw.body);
  const std::uint32_t header = in.ReadUint();
  const std::uint32_t family = header & kFamilyMask;
  if (family > static_cast<std::uint32_t>(FrameFamily::kRaftRequest)) {
    in.Fail(fmt::format("{} is no family of messages", family));
  }
  Frame frame;
  frame.module_id = raw.module_id;
  frame.protocol_id = raw.protocol_id;
  frame.family = static_cast<FrameFamily>(family);
  if ((header & kHasResultCode) != 0) frame.result_code = in.ReadLong();
  if (IsRpc(frame.family)) frame.session_id = in.ReadLong();
  if (IsRaft(frame.family)) {
    frame.client_id = in.ReadBytes();
    frame.request_id = in.ReadLong();
    frame.create_time = in.ReadLong();
  }
  frame.payload = in.ReadRaw(in.remaining());
  if (in.ok()) return frame;
  return in.ToError(fmt::format("frame of module {} protocol {}", raw.module_id, raw.protocol_id));
}

bool TakeUsualFrame(std::string_view& stream, std::size_t body_bytes_max, Frame& frame) {
  if (stream.size() < kFrameHeaderBytes) return false;
  const std::size_t body_bytes = static_cast<std::uint32_t>(LoadInt4(stream, 8));
  if (body_bytes > body_bytes_max || stream.size() - kFrameHeaderBytes < body_bytes) return false;
  ByteReader in(stream.substr(kFrameHeaderBytes, body_bytes));
  const std::uint32_t header = in.ReadUint();
  const std::uint32_t family = header & kFamilyMask;
  if (family > static_cast<std::uint32_t>(FrameFamily::kOneWay)) return false;
  if ((header & kHasResultCode) != 0) frame.result_code = in.ReadLong();
  if (family != static_cast<std::uint32_t>(FrameFamily::kOneWay)) frame.session_id = in.ReadLong();
  if (!in.ok()) [[unlikely]] {
    return false;
  }
  frame.module_id = LoadInt4(stream, 0);
  frame.protocol_id = LoadInt4(stream, 4);
  frame.family = static_cast<FrameFamily>(family);
  frame.payload = in.ReadRaw(in.remaining());
  stream.remove_prefix(kFrameHeaderBytes + body_bytes);
  return true;
}

}  // namespace zeze
