// Binary: a field of arbitrary bytes, told apart from text.
//
//   Binary token{"\x01\x02"};
//   token.bytes.push_back('\x03');

#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>

#include "zeze/base/hash.h"

namespace zeze {

// Ordered as unsigned bytes.
struct Binary {
  std::string bytes;

  auto operator<=>(const Binary&) const = default;
};

}  // namespace zeze

template <>
struct std::hash<zeze::Binary> {
  std::size_t operator()(const zeze::Binary& value) const noexcept {
    return static_cast<std::size_t>(zeze::HashBytes(value.bytes));
  }
};
