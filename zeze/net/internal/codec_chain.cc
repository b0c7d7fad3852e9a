#include "zeze/net/internal/codec_chain.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "zeze/base/result.h"
#include "zeze/net/aes_cfb.h"
#include "zeze/net/handshake.h"
#include "zeze/net/mppc.h"
#include "zeze/net/zstd_stream.h"

namespace zeze::internal {

namespace {

// Sent without compression at the beginning of a connection, so that peers which hardly say
// anything cost no context: whoever connects to a gateway and is not let in gets less than this.
constexpr std::size_t kPlainBytes = 8 << 10;

}  // namespace

OutputCodec::OutputCodec(CompressType compress, const std::optional<AesKey>& key) {
  if (compress == CompressType::kMppc) compress_.emplace<MppcEncoder>();
  if (compress == CompressType::kZstd) compress_.emplace<ZstdEncoder>(kPlainBytes);
  if (key.has_value()) encrypt_.emplace(AesCfb::Mode::kEncrypt, *key);
}

void OutputCodec::Encode(std::string_view plain, std::string& wire) {
  const std::size_t begin = wire.size();
  if (auto* mppc = std::get_if<MppcEncoder>(&compress_)) {
    mppc->Write(plain, wire);
    mppc->Flush(wire);
  } else if (auto* zstd = std::get_if<ZstdEncoder>(&compress_)) {
    zstd->Write(plain, wire);
    zstd->Flush(wire);
  } else {
    wire.append(plain);
  }
  if (encrypt_.has_value()) encrypt_->Apply(std::span<char>(wire).subspan(begin));
}

InputCodec::InputCodec(CompressType compress, const std::optional<AesKey>& key) {
  if (key.has_value()) decrypt_.emplace(AesCfb::Mode::kDecrypt, *key);
  if (compress == CompressType::kMppc) decompress_.emplace<MppcDecoder>();
  if (compress == CompressType::kZstd) decompress_.emplace<ZstdDecoder>();
}

Result<void> InputCodec::Decode(std::span<char> wire, std::size_t bytes_max, std::string& plain) {
  if (decrypt_.has_value()) decrypt_->Apply(wire);
  const std::string_view bytes(wire.data(), wire.size());
  if (auto* mppc = std::get_if<MppcDecoder>(&decompress_)) {
    return mppc->Write(bytes, bytes_max, plain);
  }
  if (auto* zstd = std::get_if<ZstdDecoder>(&decompress_)) {
    return zstd->Write(bytes, bytes_max, plain);
  }
  plain.append(bytes);
  return {};
}

}  // namespace zeze::internal
