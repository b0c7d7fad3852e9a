// FromHex: bytes as documents write them.
//
//   FromHex("00000000 c3b41049 0c")

#pragma once

#include <string>
#include <string_view>

namespace zeze::testing {

// Spaces are skipped.
inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return bytes;
}

}  // namespace zeze::testing
