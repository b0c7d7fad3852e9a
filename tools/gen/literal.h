// Literals: the texts of `default` and `enum value`, read by type and written in the languages that
// are generated.
//
// Whole numbers may be expressions with + - * / % << >> & | ^ ~ and parentheses over decimal, hex
// (0x) and binary (0b) numbers with '_' between digits and an L behind, and over the constants of
// enums, so that files written with another language in mind keep their meaning.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tools/gen/model.h"

namespace zeze::gen {

// The value of a constant by its name, nothing if there is no such constant.
using ConstantLookup = std::function<std::optional<std::int64_t>(const std::string& name)>;

struct Literal {
  std::string cxx;    // Empty for the type's zero, or after an error.
  std::string error;  // Empty if all is well.
  std::optional<std::int64_t> integer;
  std::string typescript = {};  // As cxx.
};

Literal ParseLiteral(TypeKind kind, std::string_view text, const ConstantLookup& constants);

// Value of an expression over whole numbers; otherwise `error` says why not.
std::optional<std::int64_t> EvaluateInteger(std::string_view text, const ConstantLookup& constants,
                                            std::string& error);

// A C++ string literal, with what C++ would misread escaped.
std::string QuoteCxx(std::string_view text);
// A TypeScript string literal.
std::string QuoteTypeScript(std::string_view text);
// A C++ literal of a whole number of 64 bits.
std::string CxxInteger(std::int64_t value);

}  // namespace zeze::gen
