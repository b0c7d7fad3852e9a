#include "zeze/net/zstd_stream.h"

#include <algorithm>
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

// What a connection remembers of its output. Level 3 alone would take 2 MiB and tables of 800 KB,
// for each connection; messages of one connection repeat what came shortly before.
constexpr int kWindowLog = 16;
constexpr int kTableLog = 13;

// A peer may use more.
constexpr int kWindowLogMax = 23;

constexpr std::size_t kPieceBytes = 16 * 1024;

// From RFC 8878: the header of a frame whose content size is unknown, and the largest block.
constexpr char kFrameHeader[] = {'\x28', '\xb5', '\x2f', '\xfd', 0, (kWindowLog - 10) << 3};
constexpr std::size_t kBlockBytesMax = std::size_t{1} << kWindowLog;

}  // namespace

struct ZstdEncoder::Context {
  // `has_header`: the stream has one, and what the context writes as its header is left out.
  explicit Context(bool has_header)
      : stream(ZSTD_createCCtx()), skip(has_header ? sizeof(kFrameHeader) : 0) {
    ZEZE_CHECK(stream != nullptr);
    ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(stream, ZSTD_c_windowLog, kWindowLog);
    ZSTD_CCtx_setParameter(stream, ZSTD_c_hashLog, kTableLog);
    ZSTD_CCtx_setParameter(stream, ZSTD_c_chainLog, kTableLog);
  }
  ~Context() { ZSTD_freeCCtx(stream); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void Run(std::string_view input, ZSTD_EndDirective directive, std::string& output) {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    char piece[kPieceBytes];
    std::size_t left = 0;
    do {
      ZSTD_outBuffer out{piece, sizeof(piece), 0};
      left = ZSTD_compressStream2(stream, &out, &in, directive);
      // Without a limit on memory an encoder cannot fail.
      ZEZE_CHECK(ZSTD_isError(left) == 0);
      Append({piece, out.pos}, output);
    } while (in.pos < in.size || (directive == ZSTD_e_flush && left > 0));
  }

  void Append(std::string_view bytes, std::string& output) {
    while (skip > 0 && !bytes.empty()) {
      ZEZE_CHECK(bytes.front() == kFrameHeader[sizeof(kFrameHeader) - skip]);
      bytes.remove_prefix(1);
      --skip;
    }
    output.append(bytes);
  }

  ZSTD_CCtx* stream;
  std::size_t skip;
  bool dirty = false;  // Something was written since the last Flush.
};

ZstdEncoder::ZstdEncoder(std::size_t plain_bytes) : plain_left_(plain_bytes) {}
ZstdEncoder::~ZstdEncoder() = default;
ZstdEncoder::ZstdEncoder(ZstdEncoder&&) noexcept = default;
ZstdEncoder& ZstdEncoder::operator=(ZstdEncoder&&) noexcept = default;

std::string_view ZstdEncoder::WritePlain(std::string_view input, std::string& output) {
  while (!input.empty() && plain_left_ > 0) {
    if (!begun_) output.append(kFrameHeader, sizeof(kFrameHeader));
    begun_ = true;
    const std::size_t size = std::min({input.size(), plain_left_, kBlockBytesMax});
    // Its size, then two bits: raw; then one: not the last block. Three bytes, little-endian.
    const std::size_t header = size << 3;
    for (int shift = 0; shift < 24; shift += 8) {
      output.push_back(static_cast<char>((header >> shift) & 0xff));
    }
    output.append(input.substr(0, size));
    input.remove_prefix(size);
    plain_left_ -= size;
  }
  return input;
}

void ZstdEncoder::Write(std::string_view input, std::string& output) {
  input = WritePlain(input, output);
  if (input.empty()) return;
  if (context_ == nullptr) context_ = std::make_unique<Context>(begun_);
  context_->dirty = true;
  context_->Run(input, ZSTD_e_continue, output);
}

void ZstdEncoder::Flush(std::string& output) {
  if (context_ == nullptr) return;
  if (context_->dirty) context_->Run({}, ZSTD_e_flush, output);
  context_->dirty = false;
}

struct ZstdDecoder::Context {
  Context() : stream(ZSTD_createDCtx()) {
    ZEZE_CHECK(stream != nullptr);
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, kWindowLogMax);
  }
  ~Context() { ZSTD_freeDCtx(stream); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ZSTD_DCtx* stream;
  std::string failure;
  ErrorCode code = ErrorCode::kCorrupt;  // Of the failure.
};

ZstdDecoder::ZstdDecoder() = default;
ZstdDecoder::~ZstdDecoder() = default;
ZstdDecoder::ZstdDecoder(ZstdDecoder&&) noexcept = default;
ZstdDecoder& ZstdDecoder::operator=(ZstdDecoder&&) noexcept = default;

Result<void> ZstdDecoder::Write(std::string_view input, std::size_t output_bytes_max,
                                std::string& output) {
  if (context_ == nullptr) context_ = std::make_unique<Context>();
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
