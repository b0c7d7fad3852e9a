#include "zeze/serialize/decimal.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/serialize/utf8.h"

namespace zeze {
namespace {

constexpr std::size_t kExponentDigitsMax = 10;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

void SkipSign(std::string_view& text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
}

// Removes the leading digits and says how many there were.
std::size_t SkipDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

}  // namespace

bool Decimal::IsValid(std::string_view text) {
  SkipSign(text);
  std::size_t digits = SkipDigits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    digits += SkipDigits(text);
  }
  if (digits == 0) return false;
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  SkipSign(text);
  const std::size_t exponent_digits = SkipDigits(text);
  return exponent_digits > 0 && exponent_digits <= kExponentDigitsMax && text.empty();
}

Result<Decimal> Decimal::Parse(std::string_view text) {
  if (IsValid(text)) return Decimal{std::string(text)};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("\"{}\" is no decimal number; write it like -12.50 or 1E+3",
                           RepairUtf8(text.substr(0, 100))));
}

}  // namespace zeze
