// IdFormat: how the number of an id and the server that gave it make one id.
//
//   IdFormat format(1);                 // Server 1.
//   format.IdOf(205);                   // 0x0180cd; as bytes 01 80 cd.
//
// An id is the server (left out if it is 0) and the number behind it, both as unsigned varints:
// ids of different servers differ, and none is longer than eight bytes. Read as an integer the
// first byte is the highest. The same as in Zeze 1.6.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace zeze {

class IdFormat {
 public:
  // The server is not negative.
  explicit IdFormat(std::int32_t server_id);

  // Of this server's numbers the last one whose id fits.
  std::uint64_t number_max() const { return number_max_; }

  // From 1 to number_max. Larger numbers have larger ids, compared without a sign: very large ones
  // are negative.
  std::int64_t IdOf(std::uint64_t number) const {
    const auto bytes = static_cast<std::size_t>(std::bit_width(number | 1) + 6) / 7;
    return std::bit_cast<std::int64_t>(server_at_[bytes] | kLengthMark[bytes] | number);
  }

  // The first number whose id is not below; number_max + 1 if there is none.
  std::uint64_t FirstNumberFrom(std::int64_t id) const;

 private:
  static constexpr std::size_t kBytesMax = 8;

  // What the first byte of a varint of so many bytes says about its length.
  static constexpr std::array<std::uint64_t, kBytesMax + 1> kLengthMark = [] {
    std::array<std::uint64_t, kBytesMax + 1> marks = {};
    for (std::size_t bytes = 2; bytes <= kBytesMax; ++bytes) {
      marks[bytes] = std::uint64_t{0xff00U >> (bytes - 1) & 0xff} << 8 * (bytes - 1);
    }
    return marks;
  }();

  // The server in front of a number of so many bytes.
  std::array<std::uint64_t, kBytesMax + 1> server_at_ = {};
  std::uint64_t number_max_;
};

// The bytes of an id, and how they are written in text: base64.
std::string IdBytes(std::int64_t id);
std::string IdText(std::int64_t id);

}  // namespace zeze
