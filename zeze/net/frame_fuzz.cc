// Fuzzes what a connection meets before it knows its peer: frames, handshake arguments, compressed
// streams. The first byte of the input chooses.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/mppc.h"
#include "zeze/net/zstd_stream.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

constexpr std::size_t kOutputMax = 1 << 18;

void CheckFrames(std::string_view stream) {
  while (true) {
    std::string_view same = stream;
    Frame usual;
    const bool is_usual = TakeUsualFrame(same, 1 << 16, usual);
    Result<std::optional<RawFrame>> raw = TakeFrame(stream, 1 << 16);
    if (!raw.ok() || !raw.value().has_value()) {
      ZEZE_CHECK(!is_usual);
      return;
    }
    Result<Frame> frame = ParseFrame(*raw.value());
    ZEZE_CHECK(is_usual == (frame.ok() && frame.value().family <= FrameFamily::kOneWay));
    if (is_usual) {
      ZEZE_CHECK(same.size() == stream.size());
      ZEZE_CHECK(usual.session_id == frame.value().session_id);
      ZEZE_CHECK(usual.result_code == frame.value().result_code);
      ZEZE_CHECK(usual.payload == frame.value().payload);
    }
    if (!frame.ok()) continue;
    // Our own encoding of it means the same.
    ByteWriter out;
    EncodeFrame(frame.value(), out);
    std::string_view own = out.view();
    Result<std::optional<RawFrame>> again = TakeFrame(own, kEncodedBytesMax);
    ZEZE_CHECK(again.ok() && again.value().has_value() && own.empty());
    Result<Frame> copy = ParseFrame(*again.value());
    ZEZE_CHECK(copy.ok());
    ZEZE_CHECK(copy.value().family == frame.value().family);
    ZEZE_CHECK(copy.value().result_code == frame.value().result_code);
    ZEZE_CHECK(copy.value().session_id == frame.value().session_id);
    ZEZE_CHECK(copy.value().client_id == frame.value().client_id);
    ZEZE_CHECK(copy.value().payload == frame.value().payload);
  }
}

template <typename Argument>
void CheckArgument(std::string_view bytes) {
  ByteReader in(bytes);
  Argument argument;
  argument.Decode(in);
  if (!in.ok()) return;
  ByteWriter out;
  argument.Encode(out);
  ByteReader again(out.view());
  Argument copy;
  copy.Decode(again);
  ZEZE_CHECK(again.ok());
  ZEZE_CHECK(copy == argument);
}

template <typename Decoder>
void CheckDecoder(std::string_view bytes) {
  Decoder decoder;
  std::string plain;
  // In two pieces, so that a token is cut somewhere.
  const std::size_t half = bytes.size() / 2;
  const bool first = decoder.Write(bytes.substr(0, half), kOutputMax, plain).ok();
  const bool second = decoder.Write(bytes.substr(half), kOutputMax, plain).ok();
  ZEZE_CHECK(first || !second);
  ZEZE_CHECK(plain.size() <= 2 * kOutputMax);
}

void CheckMppcRoundTrip(std::string_view bytes) {
  MppcEncoder encoder;
  MppcDecoder decoder;
  std::string encoded, plain;
  encoder.Write(bytes.substr(0, bytes.size() / 3), encoded);
  encoder.Flush(encoded);
  encoder.Write(bytes.substr(bytes.size() / 3), encoded);
  encoder.Flush(encoded);
  ZEZE_CHECK(decoder.Write(encoded, bytes.size(), plain).ok());
  ZEZE_CHECK(plain == bytes);
}

}  // namespace
}  // namespace zeze

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      zeze::CheckFrames(bytes);
      break;
    case 1:
      zeze::CheckArgument<zeze::ServerHello>(bytes);
      break;
    case 2:
      zeze::CheckArgument<zeze::ClientChoice>(bytes);
      break;
    case 3:
      zeze::CheckArgument<zeze::ServerChoice>(bytes);
      break;
    case 4:
      zeze::CheckDecoder<zeze::MppcDecoder>(bytes);
      break;
    case 5:
      zeze::CheckDecoder<zeze::ZstdDecoder>(bytes);
      break;
    default:
      zeze::CheckMppcRoundTrip(bytes);
      break;
  }
  return 0;
}
