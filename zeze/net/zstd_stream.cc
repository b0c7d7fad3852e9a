#include "zeze/net/zstd_stream.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <zstd.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"

namespace zeze {
namespace {

constexpr int kLevel = 3;

// The window of level 3 has 21 bits; a peer with another level may use a little more.
constexpr int kWindowLogMax = 23;

constexpr std::size_t kPieceBytes = 16 * 1024;

}  // namespace

struct ZstdEncoder::Context {
  Context() : stream(ZSTD_createCCtx()) { ZEZE_CHECK(stream != nullptr); }
  ~Context() { ZSTD_freeCCtx(stream); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void Run(std::string_view input, ZSTD_EndDirective directive, std::string& output) const {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    char piece[kPieceBytes];
    std::size_t left = 0;
    do {
      ZSTD_outBuffer out{piece, sizeof(piece), 0};
      left = ZSTD_compressStream2(stream, &out, &in, directive);
      // Without a limit on memory an encoder cannot fail.
      ZEZE_CHECK(ZSTD_isError(left) == 0);
      output.append(piece, out.pos);
    } while (in.pos < in.size || (directive == ZSTD_e_flush && left > 0));
  }

  ZSTD_CCtx* stream;
  bool dirty = false;  // Something was written since the last Flush.
};

ZstdEncoder::ZstdEncoder() : context_(std::make_unique<Context>()) {
  ZSTD_CCtx_setParameter(context_->stream, ZSTD_c_compressionLevel, kLevel);
}
ZstdEncoder::~ZstdEncoder() = default;
ZstdEncoder::ZstdEncoder(ZstdEncoder&&) noexcept = default;
ZstdEncoder& ZstdEncoder::operator=(ZstdEncoder&&) noexcept = default;

void ZstdEncoder::Write(std::string_view input, std::string& output) {
  if (input.empty()) return;
  context_->dirty = true;
  context_->Run(input, ZSTD_e_continue, output);
}

void ZstdEncoder::Flush(std::string& output) {
  if (context_->dirty) context_->Run({}, ZSTD_e_flush, output);
  context_->dirty = false;
}

struct ZstdDecoder::Context {
  Context() : stream(ZSTD_createDCtx()) { ZEZE_CHECK(stream != nullptr); }
  ~Context() { ZSTD_freeDCtx(stream); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ZSTD_DCtx* stream;
  std::string failure;
  ErrorCode code = ErrorCode::kCorrupt;  // Of the failure.
};

ZstdDecoder::ZstdDecoder() : context_(std::make_unique<Context>()) {
  ZSTD_DCtx_setParameter(context_->stream, ZSTD_d_windowLogMax, kWindowLogMax);
}
ZstdDecoder::~ZstdDecoder() = default;
ZstdDecoder::ZstdDecoder(ZstdDecoder&&) noexcept = default;
ZstdDecoder& ZstdDecoder::operator=(ZstdDecoder&&) noexcept = default;

Result<void> ZstdDecoder::Write(std::string_view input, std::size_t output_bytes_max,
                                std::string& output) {
  ZSTD_inBuffer in{input.data(), input.size(), 0};
  char piece[kPieceBytes];
  std::size_t room = output_bytes_max;
  bool full = true;  // The last piece was filled, so that more may be waiting.
  while (context_->failure.empty() && (in.pos < in.size || full)) {
    ZSTD_outBuffer out{piece, sizeof(piece), 0};
    const std::size_t result = ZSTD_decompressStream(context_->stream, &out, &in);
    full = out.pos == out.size;
    if (ZSTD_isError(result) != 0) {
      context_->failure = ZSTD_getErrorName(result);
    } else if (out.pos > room) {
      context_->failure = "the output is larger than the limit";
      context_->code = ErrorCode::kOverloaded;
    } else {
      room -= out.pos;
      output.append(piece, out.pos);
    }
  }
  if (context_->failure.empty()) return {};
  return Error(context_->code, fmt::format("zstd data: {}", context_->failure));
}

}  // namespace zeze
