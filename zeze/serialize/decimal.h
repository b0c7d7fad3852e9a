// Decimal: a decimal number of any length, kept as the text that is stored.
//
//   Result<Decimal> price = Decimal::Parse("12.50");
//   record.price = price.value();

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "zeze/base/hash.h"
#include "zeze/base/result.h"

namespace zeze {

// The framework stores and compares decimals, it does not calculate with them. "1.0" and "1.00" are
// different values: the scale is part of a decimal.
struct Decimal {
  // Whether this is a number: optional sign, digits with at most one point, optional exponent of at
  // most 10 digits. 1, -0.5, .5, 1E+3 are; an empty text, 1,5, 0x10 and NaN are not.
  static bool IsValid(std::string_view text);

  // Fails with kInvalidArgument unless IsValid.
  static Result<Decimal> Parse(std::string_view text);

  // Always valid: assign only what IsValid accepts.
  std::string text = "0";

  bool operator==(const Decimal&) const = default;
};

}  // namespace zeze

template <>
struct std::hash<zeze::Decimal> {
  std::size_t operator()(const zeze::Decimal& value) const noexcept {
    return static_cast<std::size_t>(zeze::HashBytes(value.text));
  }
};
