// MppcEncoder, MppcDecoder: the compression (RFC 2118 tokens) that every peer understands.
//
//   MppcEncoder encoder;
//   encoder.Write(frame, compressed);
//   encoder.Flush(compressed);          // Everything written so far can now be decoded.
//
//   MppcDecoder decoder;
//   Result<void> decoded = decoder.Write(compressed, output_bytes_max, plain);
//
// One encoder and one decoder per direction, for the life of a connection: both remember the last
// 8 KiB, and a token may continue in the next call's bytes.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"

namespace zeze {

// How far back a copy may reach, and the longest copy.
inline constexpr std::size_t kMppcOffsetMax = 8191;
inline constexpr std::size_t kMppcLengthMax = 8191;

class MppcEncoder {
 public:
  MppcEncoder();

  // Appends what is complete to `output`; the last bits may wait for Flush.
  void Write(std::string_view input, std::string& output);

  // Appends the rest, padded by a token that means nothing. Nothing if nothing is pending.
  void Flush(std::string& output);

 private:
  static constexpr std::size_t kWindowBytes = 2 * (kMppcOffsetMax + 1);
  static constexpr unsigned kHashBits = 12;

  std::size_t Hash(std::size_t position) const;
  std::size_t FindCopy(std::size_t position) const;
  void Remember(std::size_t position);
  void SlideWindow();
  void EncodeFrom(std::size_t begin, std::string& output);
  void PutBits(std::uint32_t bits, unsigned count, std::string& output);
  void PutLiteral(std::uint8_t byte, std::string& output);
  void PutCopy(std::size_t offset, std::size_t length, std::string& output);

  // What was encoded, at most kWindowBytes; slides by half when it is full.
  std::string window_;

  // By the hash of three bytes: where in window_ they were seen last, plus 1; 0 if nowhere.
  std::vector<std::uint16_t> last_seen_;

  std::uint64_t pending_bits_ = 0;  // The low pending_count_ (below 8) bits are in no output yet.
  unsigned pending_count_ = 0;
  bool dirty_ = false;  // Something was written since the last Flush.
};

class MppcDecoder {
 public:
  // Appends what the input decodes to. Fails with kCorrupt on a copy from before the beginning and
  // on a length that no encoder writes; with kOverloaded when one call would produce more than
  // output_bytes_max: a few bytes can stand for many. A decoder that has failed stays so.
  Result<void> Write(std::string_view input, std::size_t output_bytes_max, std::string& output);

 private:
  static constexpr std::size_t kHistoryBytes = kMppcOffsetMax + 1;

  enum class Step { kDone, kNeedBits, kFailed };

  // The `count` bits behind the first `skip` undecoded ones; there must be as many.
  std::uint32_t Bits(unsigned skip, unsigned count) const {
    return static_cast<std::uint32_t>(bits_ >> (bit_count_ - skip - count)) & ((1U << count) - 1);
  }

  Step DecodeToken(std::string& output);
  Step DecodeCopy(unsigned used, std::size_t offset, std::string& output);
  Step PutLiteral(std::uint32_t byte, unsigned used, std::string& output);
  Step Fail(const char* reason);

  std::array<char, kHistoryBytes> history_ = {};  // A ring: byte n of the output at n modulo size.
  std::uint64_t produced_ = 0;                    // Bytes of output so far.
  std::uint64_t bits_ = 0;                        // The low bit_count_ bits are not yet decoded.
  unsigned bit_count_ = 0;
  std::size_t room_ = 0;  // What this call may still produce.
  const char* failure_ = nullptr;
};

}  // namespace zeze
