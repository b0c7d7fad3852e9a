// ZstdEncoder, ZstdDecoder: compression of a connection by one endless zstd stream per direction.
//
//   ZstdEncoder encoder;
//   encoder.Write(frame, compressed);
//   encoder.Flush(compressed);          // Everything written so far can now be decoded.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/base/result.h"

namespace zeze {

class ZstdEncoder {
 public:
  // Level 3 with a window of 64 KiB, no dictionary, no checksum, no content size. The first
  // plain_bytes are not compressed, only framed: until they are used up an encoder has no context,
  // which takes 100 KB and later up to 530 KB.
  explicit ZstdEncoder(std::size_t plain_bytes = 0);
  ~ZstdEncoder();
  ZstdEncoder(ZstdEncoder&&) noexcept;
  ZstdEncoder& operator=(ZstdEncoder&&) noexcept;

  void Write(std::string_view input, std::string& output);
  void Flush(std::string& output);

 private:
  struct Context;

  // Without a context. Returns the rest of the input, for which there is no room.
  std::string_view WritePlain(std::string_view input, std::string& output);

  std::size_t plain_left_;
  bool begun_ = false;                // The header of the stream has been written.
  std::unique_ptr<Context> context_;  // Made when there is something to compress.
};

class ZstdDecoder {
 public:
  // Takes memory when the first bytes come.
  ZstdDecoder();
  ~ZstdDecoder();
  ZstdDecoder(ZstdDecoder&&) noexcept;
  ZstdDecoder& operator=(ZstdDecoder&&) noexcept;

  // Appends what the input decodes to. Fails with kCorrupt on data that is no zstd stream and on a
  // window above 8 MiB; with kOverloaded when one call would produce more than output_bytes_max. A
  // decoder that has failed stays so.
  Result<void> Write(std::string_view input, std::size_t output_bytes_max, std::string& output);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace zeze
