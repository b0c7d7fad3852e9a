#include "zeze/net/mppc.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "zeze/base/result.h"

namespace zeze {
namespace {

constexpr const char* kTooLarge = "the output is larger than the limit";

constexpr std::size_t kCopyLengthMin = 3;

// Offsets have three forms: a prefix, and the offset less the first one of the form.
constexpr std::size_t kMiddleOffsetMin = 64;
constexpr std::size_t kFarOffsetMin = 320;

// An offset of zero: decoders pass over it.
constexpr std::uint32_t kNoOperation = 0b1111'000000;
constexpr unsigned kNoOperationBits = 10;

// The longest run of ones in front of a length.
constexpr unsigned kLengthOnesMax = 11;

}  // namespace

MppcEncoder::MppcEncoder() : last_seen_(std::size_t{1} << kHashBits) {}

std::size_t MppcEncoder::Hash(std::size_t position) const {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return static_cast<std::uint8_t>(window_[position + i]);
  };
  const std::uint32_t key = byte(0) | (byte(1) << 8) | (byte(2) << 16);
  return (key * 0x9E3779B1U) >> (32 - kHashBits);
}

void MppcEncoder::Remember(std::size_t position) {
  if (position + kCopyLengthMin > window_.size()) return;
  last_seen_[Hash(position)] = static_cast<std::uint16_t>(position + 1);
}

// The offset of an earlier occurrence of the three bytes here, or 0.
std::size_t MppcEncoder::FindCopy(std::size_t position) const {
  if (position + kCopyLengthMin > window_.size()) return 0;
  const std::size_t seen = last_seen_[Hash(position)];
  if (seen == 0) return 0;
  const std::size_t offset = position - (seen - 1);
  if (offset > kMppcOffsetMax) return 0;
  const char* here = window_.data() + position;
  return std::memcmp(here, here - offset, kCopyLengthMin) == 0 ? offset : 0;
}

void MppcEncoder::SlideWindow() {
  const std::size_t dropped = window_.size() - kMppcOffsetMax;
  window_.erase(0, dropped);
  for (std::uint16_t& seen : last_seen_) {
    seen = static_cast<std::uint16_t>(seen > dropped ? seen - dropped : 0);
  }
}

void MppcEncoder::Write(std::string_view input, std::string& output) {
  dirty_ = dirty_ || !input.empty();
  while (!input.empty()) {
    if (window_.size() == kWindowBytes) SlideWindow();
    const std::size_t begin = window_.size();
    const std::size_t bytes = std::min(input.size(), kWindowBytes - begin);
    window_.append(input.substr(0, bytes));
    input.remove_prefix(bytes);
    EncodeFrom(begin, output);
  }
}

void MppcEncoder::EncodeFrom(std::size_t begin, std::string& output) {
  std::size_t position = begin;
  while (position < window_.size()) {
    const std::size_t offset = FindCopy(position);
    if (offset == 0) {
      Remember(position);
      PutLiteral(static_cast<std::uint8_t>(window_[position]), output);
      ++position;
      continue;
    }
    const std::size_t length_max = std::min(window_.size() - position, kMppcLengthMax);
    std::size_t length = kCopyLengthMin;
    while (length < length_max &&
           window_[position + length] == window_[position + length - offset]) {
      ++length;
    }
    PutCopy(offset, length, output);
    for (const std::size_t end = position + length; position < end; ++position) Remember(position);
  }
}

void MppcEncoder::PutBits(std::uint32_t bits, unsigned count, std::string& output) {
  pending_bits_ = (pending_bits_ << count) | bits;
  pending_count_ += count;
  while (pending_count_ >= 8) {
    pending_count_ -= 8;
    output.push_back(static_cast<char>(pending_bits_ >> pending_count_));
  }
}

void MppcEncoder::PutLiteral(std::uint8_t byte, std::string& output) {
  if (byte < 0x80) {
    PutBits(byte, 8, output);
  } else {
    PutBits(0b10'0000000U | (byte & 0x7FU), 9, output);
  }
}

void MppcEncoder::PutCopy(std::size_t offset, std::size_t length, std::string& output) {
  if (offset < kMiddleOffsetMin) {
    PutBits(0b1111'000000U | static_cast<std::uint32_t>(offset), 10, output);
  } else if (offset < kFarOffsetMin) {
    PutBits(0b1110'00000000U | static_cast<std::uint32_t>(offset - kMiddleOffsetMin), 12, output);
  } else {
    PutBits((0b110U << 13) | static_cast<std::uint32_t>(offset - kFarOffsetMin), 16, output);
  }
  if (length == kCopyLengthMin) {
    PutBits(0, 1, output);
    return;
  }
  // For 2^k to 2^(k+1) - 1: k - 1 ones, a zero, and the low k bits.
  const auto k = static_cast<unsigned>(std::bit_width(length)) - 1;
  const std::uint32_t ones = (1U << (k - 1)) - 1;
  PutBits((ones << (k + 1)) | (static_cast<std::uint32_t>(length) & ((1U << k) - 1)), 2 * k,
          output);
}

void MppcEncoder::Flush(std::string& output) {
  if (dirty_ && pending_count_ > 0) PutBits(kNoOperation, kNoOperationBits, output);
  dirty_ = false;
}

Result<void> MppcDecoder::Write(std::string_view input, std::size_t output_bytes_max,
                                std::string& output) {
  room_ = output_bytes_max;
  std::size_t next = 0;
  while (failure_ == nullptr) {
    // The longest token has 40 bits, so that whatever is left of one leaves room for more bytes.
    for (; bit_count_ <= 56 && next < input.size(); ++next) {
      bits_ = (bits_ << 8) | static_cast<std::uint8_t>(input[next]);
      bit_count_ += 8;
    }
    if (DecodeToken(output) == Step::kNeedBits && next == input.size()) return {};
  }
  return Error(failure_ == kTooLarge ? ErrorCode::kOverloaded : ErrorCode::kCorrupt,
               fmt::format("MPPC data: {}", failure_));
}

MppcDecoder::Step MppcDecoder::Fail(const char* reason) {
  failure_ = reason;
  return Step::kFailed;
}

MppcDecoder::Step MppcDecoder::PutLiteral(std::uint32_t byte, unsigned used, std::string& output) {
  if (room_ == 0) return Fail(kTooLarge);
  --room_;
  bit_count_ -= used;
  history_[produced_++ % kHistoryBytes] = static_cast<char>(byte);
  output.push_back(static_cast<char>(byte));
  return Step::kDone;
}

MppcDecoder::Step MppcDecoder::DecodeToken(std::string& output) {
  if (bit_count_ < 8) return Step::kNeedBits;
  if (Bits(0, 1) == 0) return PutLiteral(Bits(1, 7), 8, output);
  if (Bits(0, 2) == 0b10) {
    if (bit_count_ < 9) return Step::kNeedBits;
    return PutLiteral(0x80 | Bits(2, 7), 9, output);
  }
  if (Bits(0, 3) == 0b110) {
    if (bit_count_ < 16) return Step::kNeedBits;
    return DecodeCopy(16, kFarOffsetMin + Bits(3, 13), output);
  }
  if (Bits(0, 4) == 0b1110) {
    if (bit_count_ < 12) return Step::kNeedBits;
    return DecodeCopy(12, kMiddleOffsetMin + Bits(4, 8), output);
  }
  if (bit_count_ < 10) return Step::kNeedBits;
  const std::uint32_t offset = Bits(4, 6);
  if (offset != 0) return DecodeCopy(10, offset, output);
  bit_count_ -= kNoOperationBits;
  return Step::kDone;
}

MppcDecoder::Step MppcDecoder::DecodeCopy(unsigned used, std::size_t offset, std::string& output) {
  // 13 bits of a far offset can mean up to 8511.
  if (offset > kMppcOffsetMax || offset > produced_) {
    return Fail("a copy from before the beginning of the history");
  }
  unsigned ones = 0;
  while (used + ones < bit_count_ && Bits(used + ones, 1) == 1) {
    if (++ones > kLengthOnesMax) return Fail("a length with more than 11 ones");
  }
  const unsigned low_bits = ones == 0 ? 0 : ones + 1;
  const unsigned bits = used + ones + 1 + low_bits;
  if (bits > bit_count_) return Step::kNeedBits;
  const std::size_t length =
      ones == 0 ? kCopyLengthMin : (std::size_t{1} << low_bits) | Bits(used + ones + 1, low_bits);
  if (length > room_) return Fail(kTooLarge);
  room_ -= length;
  bit_count_ -= bits;
  for (std::size_t i = 0; i < length; ++i) {
    const char byte = history_[(produced_ - offset) % kHistoryBytes];
    history_[produced_++ % kHistoryBytes] = byte;
    output.push_back(byte);
  }
  return Step::kDone;
}

}  // namespace zeze
