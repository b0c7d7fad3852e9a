// Utf8: checks and repairs text that came from outside.
//
//   if (!IsUtf8(name)) name = RepairUtf8(name);

#pragma once

#include <string>
#include <string_view>

namespace zeze {

// Well-formed: no stray or missing continuation bytes, no over-long forms, no surrogates, nothing
// above U+10FFFF.
bool IsUtf8(std::string_view text);

// The text with U+FFFD in place of each malformed part. What counts as one part is what Java's
// decoder does, so that both see the same string: the longest start of a valid sequence, and an
// encoded surrogate (ED A0 80) as a whole.
std::string RepairUtf8(std::string_view text);

}  // namespace zeze
