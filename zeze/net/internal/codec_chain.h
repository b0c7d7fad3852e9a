// InputCodec, OutputCodec: what happens to the bytes of a connection between frames and socket.
//
//   output.Encode(frames, wire);                             // Compress, then encrypt.
//   Result<void> decoded = input.Decode(wire, bytes_max, frames);   // Decrypt, then decompress.

#pragma once

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

// One for the whole life of a direction: the state runs on from call to call.
class OutputCodec {
 public:
  // Without a key: not encrypted.
  OutputCodec(CompressType compress, const std::optional<AesKey>& key);

  // Appends what the peer needs to decode everything so far.
  void Encode(std::string_view plain, std::string& wire);

 private:
  std::variant<std::monostate, MppcEncoder, ZstdEncoder> compress_;
  std::optional<AesCfb> encrypt_;
};

class InputCodec {
 public:
  InputCodec(CompressType compress, const std::optional<AesKey>& key);

  // Appends what the bytes decode to; decrypts them in place. Fails with kCorrupt if that would be
  // more than bytes_max.
  Result<void> Decode(std::span<char> wire, std::size_t bytes_max, std::string& plain);

 private:
  std::optional<AesCfb> decrypt_;
  std::variant<std::monostate, MppcDecoder, ZstdDecoder> decompress_;
};

}  // namespace zeze::internal
