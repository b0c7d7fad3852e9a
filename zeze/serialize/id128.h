// Id128: a 128-bit identifier, as table key or field.
//
//   Id128 id{.high = 1, .low = 42};
//   id.Encode(out);

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "zeze/base/hash.h"

namespace zeze {

class ByteReader;
class ByteWriter;

// Ordered as one unsigned 128-bit number. Encoded as a bean with one list of two integers, always
// in full, so that a zero id is no single byte 00 and never elided.
struct Id128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Id128&) const = default;

  void Encode(ByteWriter& out) const;

  // Reads a bean; fields other than the list are skipped. A failure is left in the reader.
  void Decode(ByteReader& in);
};

}  // namespace zeze

template <>
struct std::hash<zeze::Id128> {
  std::size_t operator()(const zeze::Id128& id) const noexcept {
    const std::uint64_t high = zeze::CombineHash(zeze::CombinedHashStart(), id.high);
    return static_cast<std::size_t>(zeze::HashInteger(high ^ id.low));
  }
};
