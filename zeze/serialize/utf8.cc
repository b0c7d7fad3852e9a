#include "zeze/serialize/utf8.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zeze {
namespace {

struct Sequence {
  std::size_t bytes;  // At least 1.
  bool well_formed;
};

// What the second byte of a sequence may be, which excludes over-long forms and numbers above
// U+10FFFF. Surrogates are let through: they are well-shaped and rejected as a whole.
bool IsSecondByte(std::uint8_t first, std::uint8_t second) {
  if (first == 0xE0) return second >= 0xA0 && second <= 0xBF;
  if (first == 0xF0) return second >= 0x90 && second <= 0xBF;
  if (first == 0xF4) return second >= 0x80 && second <= 0x8F;
  return second >= 0x80 && second <= 0xBF;
}

std::size_t SequenceBytes(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

// The sequence at the start of a text that is not empty, or the longest start of one.
Sequence NextSequence(std::string_view text) {
  const auto first = static_cast<std::uint8_t>(text[0]);
  const std::size_t bytes = SequenceBytes(first);
  if (bytes <= 1) return {1, bytes == 1};
  for (std::size_t i = 1; i < bytes; ++i) {
    if (i == text.size()) return {i, false};
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const bool fits = i == 1 ? IsSecondByte(first, byte) : (byte & 0xC0) == 0x80;
    if (!fits) return {i, false};
  }
  const bool is_surrogate = first == 0xED && static_cast<std::uint8_t>(text[1]) >= 0xA0;
  return {bytes, !is_surrogate};
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const Sequence sequence = NextSequence(text);
    if (!sequence.well_formed) return false;
    text.remove_prefix(sequence.bytes);
  }
  return true;
}

std::string RepairUtf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const Sequence sequence = NextSequence(text);
    repaired.append(sequence.well_formed ? text.substr(0, sequence.bytes) : "\xEF\xBF\xBD");
    text.remove_prefix(sequence.bytes);
  }
  return repaired;
}

}  // namespace zeze
