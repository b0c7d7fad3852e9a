#include "zeze/bean/compare.h"

#include <algorithm>
#include <string>

namespace zeze::internal {

bool IsNegativeDecimal(const std::string& text) {
  if (text.empty() || text[0] != '-') return false;
  // The exponent cannot make zero of a number: only the digits before it count.
  const std::string digits = text.substr(0, text.find_first_of("eE"));
  return std::any_of(digits.begin(), digits.end(), [](char c) { return c >= '1' && c <= '9'; });
}

}  // namespace zeze::internal
