#include "tools/gen/literal.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/model.h"
#include "tools/gen/names.h"

namespace zeze::gen {
namespace {

constexpr int kDepthMax = 64;

// Wraps around like the languages these texts come from.
std::int64_t Wrap(std::uint64_t bits) {
  return static_cast<std::int64_t>(bits);
}
std::uint64_t Bits(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

// Recursive descent, one function per level of precedence: | ^ & shift sum product unary.
class Expression {
 public:
  Expression(std::string_view text, const ConstantLookup& constants)
      : rest_(text), constants_(constants) {}

  std::optional<std::int64_t> Parse(std::string& error) {
    const std::int64_t value = Binary(0);
    SkipBlank();
    if (error_.empty() && !rest_.empty()) Fail(fmt::format("unexpected '{}'", rest_));
    error = error_;
    if (!error_.empty()) return std::nullopt;
    return value;
  }

 private:
  static constexpr std::string_view kOperators[][4] = {{"|"},        {"^"},      {"&"},
                                                       {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
  static constexpr int kLevels = 6;

  void Fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    rest_ = {};
  }
  void SkipBlank() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
      rest_.remove_prefix(1);
    }
  }

  std::int64_t Binary(int level) {
    if (level == kLevels) return Unary(0);
    std::int64_t value = Binary(level + 1);
    for (;;) {
      SkipBlank();
      std::string_view operation;
      for (std::string_view candidate : kOperators[level]) {
        if (!candidate.empty() && rest_.starts_with(candidate)) operation = candidate;
      }
      if (operation.empty()) return value;
      rest_.remove_prefix(operation.size());
      value = Apply(operation, value, Binary(level + 1));
    }
  }

  std::int64_t Apply(std::string_view operation, std::int64_t left, std::int64_t right) {
    if (operation == "|") return left | right;
    if (operation == "^") return left ^ right;
    if (operation == "&") return left & right;
    if (operation == "+") return Wrap(Bits(left) + Bits(right));
    if (operation == "-") return Wrap(Bits(left) - Bits(right));
    if (operation == "*") return Wrap(Bits(left) * Bits(right));
    if (operation == "<<" || operation == ">>") {
      if (right < 0 || right > 63) {
        Fail("a shift must be by 0 to 63");
        return 0;
      }
      return operation == "<<" ? Wrap(Bits(left) << Bits(right)) : left >> right;
    }
    if (right == 0 || (right == -1 && left == std::numeric_limits<std::int64_t>::min())) {
      Fail("division by zero or out of range");
      return 0;
    }
    return operation == "/" ? left / right : left % right;
  }

  std::int64_t Unary(int depth) {
    SkipBlank();
    if (depth > kDepthMax || ++depth_ > kDepthMax) {
      Fail("the expression is nested too deep");
      return 0;
    }
    std::int64_t value = 0;
    if (rest_.starts_with('-') || rest_.starts_with('~') || rest_.starts_with('+')) {
      const char sign = rest_.front();
      rest_.remove_prefix(1);
      value = Unary(depth + 1);
      if (sign == '-') value = Wrap(0 - Bits(value));
      if (sign == '~') value = ~value;
    } else if (rest_.starts_with('(')) {
      rest_.remove_prefix(1);
      value = Binary(0);
      SkipBlank();
      if (rest_.starts_with(')')) {
        rest_.remove_prefix(1);
      } else {
        Fail("')' is missing");
      }
    } else {
      value = Operand();
    }
    --depth_;
    return value;
  }

  std::int64_t Operand() {
    std::size_t length = 0;
    while (length < rest_.size()) {
      const auto c = static_cast<unsigned char>(rest_[length]);
      if (std::isalnum(c) == 0 && c != '_' && c != '.' && c < 0x80) break;
      ++length;
    }
    const std::string word(rest_.substr(0, length));
    if (word.empty()) {
      Fail(rest_.empty() ? "a number is missing" : fmt::format("unexpected '{}'", rest_));
      return 0;
    }
    rest_.remove_prefix(length);
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return Number(word);
    if (const auto constant = constants_(word)) return *constant;
    Fail(fmt::format("there is no constant '{}'", word));
    return 0;
  }

  std::int64_t Number(const std::string& word) {
    std::string digits;
    for (char c : word) {
      if (c != '_') digits += c;
    }
    if (digits.ends_with('L') || digits.ends_with('l')) digits.pop_back();
    int base = 10;
    std::string_view text = digits;
    if (text.starts_with("0x") || text.starts_with("0X")) base = 16;
    if (text.starts_with("0b") || text.starts_with("0B")) base = 2;
    if (base != 10) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (code != std::errc() || end != text.data() + text.size()) {
      Fail(fmt::format("'{}' is not a whole number of 64 bits", word));
    }
    // 2^63 is needed for the least number, which is written -9223372036854775808.
    if (base == 10 && value > std::uint64_t{1} << 63U) {
      Fail(fmt::format("'{}' does not fit 64 bits", word));
    }
    return Wrap(value);
  }

  std::string_view rest_;
  const ConstantLookup& constants_;
  std::string error_;
  int depth_ = 0;
};

Literal Fail(std::string error) {
  return {{}, std::move(error), std::nullopt};
}

Literal ParseInteger(TypeKind kind, std::string_view text, const ConstantLookup& constants) {
  std::string error;
  const std::optional<std::int64_t> value = EvaluateInteger(text, constants, error);
  if (!value) return Fail(std::move(error));
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto narrow = [&](int bits) {
    most = (std::int64_t{1} << (bits - 1)) - 1;
    least = -most - 1;
  };
  if (kind == TypeKind::kByte) narrow(8);
  if (kind == TypeKind::kShort) narrow(16);
  if (kind == TypeKind::kInt) narrow(32);
  if (*value < least || *value > most) {
    return Fail(fmt::format("{} is outside {} ({} to {})", *value, ToString(kind), least, most));
  }
  if (*value == 0) return {"", {}, value};
  return {CxxInteger(*value),
          {},
          value,
          fmt::format("{}{}", *value, kind == TypeKind::kLong ? "n" : "")};
}

std::optional<double> ParseReal(std::string_view text) {
  text = Trim(text);
  if (!text.empty() && std::string_view("fFdD").find(text.back()) != std::string_view::npos &&
      !text.starts_with("0x")) {
    text.remove_suffix(1);
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::string CxxReal(double value, bool single) {
  std::string text =
      single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return single ? text + "F" : text;
}

Literal ParseFloating(TypeKind kind, std::string_view text) {
  const std::optional<double> value = ParseReal(text);
  if (!value) return Fail(fmt::format("'{}' is not a number", text));
  const bool single = kind == TypeKind::kFloat;
  if (single && std::abs(*value) > static_cast<double>(std::numeric_limits<float>::max())) {
    return Fail(fmt::format("{} is outside float", text));
  }
  if (*value == 0) return {};
  // In TypeScript every number has 64 bits: what a float of this value holds, seen as such.
  const double held = single ? static_cast<double>(static_cast<float>(*value)) : *value;
  return {CxxReal(*value, single), {}, std::nullopt, fmt::format("{}", held)};
}

Literal ParseVector(TypeKind kind, std::string_view text, const ConstantLookup& constants) {
  const bool whole = kind == TypeKind::kVector2Int || kind == TypeKind::kVector3Int;
  std::size_t size = 4;
  if (kind == TypeKind::kVector2 || kind == TypeKind::kVector2Int) size = 2;
  if (kind == TypeKind::kVector3 || kind == TypeKind::kVector3Int) size = 3;
  constexpr std::string_view kNames[] = {"x", "y", "z", "w"};
  std::vector<std::string> parts;
  std::vector<std::string> members;
  bool zero = true;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view part = Trim(rest.substr(0, comma));
    rest = more ? rest.substr(comma + 1) : std::string_view();
    const Literal literal = whole ? ParseInteger(TypeKind::kInt, part, constants)
                                  : ParseFloating(TypeKind::kFloat, part);
    if (!literal.error.empty()) return literal;
    zero = zero && literal.cxx.empty();
    parts.push_back(literal.cxx.empty() ? (whole ? "0" : "0.0F") : literal.cxx);
    if (members.size() == size) continue;  // Too many, which is said below.
    members.push_back(fmt::format("{}: {}", kNames[members.size()],
                                  literal.cxx.empty() ? "0" : literal.typescript));
  }
  if (parts.size() != size) {
    return Fail(fmt::format("a {} has {} numbers, not {}", ToString(kind), size, parts.size()));
  }
  if (zero) return {};
  return {fmt::format("{{{}}}", fmt::join(parts, ", ")),
          {},
          std::nullopt,
          fmt::format("{{ {} }}", fmt::join(members, ", "))};
}

Literal ParseDecimal(std::string_view text) {
  // [sign] digits [. digits] [e [sign] digits]
  std::string_view rest = text;
  const auto digits = [&rest] {
    std::size_t count = 0;
    while (!rest.empty() && std::isdigit(static_cast<unsigned char>(rest.front())) != 0) {
      rest.remove_prefix(1);
      ++count;
    }
    return count;
  };
  const auto sign = [&rest] {
    if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  };
  sign();
  std::size_t count = digits();
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    count += digits();
  }
  bool good = count > 0;
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    sign();
    good = good && digits() > 0;
  }
  if (!good || !rest.empty()) return Fail(fmt::format("'{}' is not a decimal number", text));
  if (text == "0") return {};
  return {fmt::format("{{{}}}", QuoteCxx(text)), {}, std::nullopt, QuoteTypeScript(text)};
}

}  // namespace

std::optional<std::int64_t> EvaluateInteger(std::string_view text, const ConstantLookup& constants,
                                            std::string& error) {
  return Expression(text, constants).Parse(error);
}

Literal ParseLiteral(TypeKind kind, std::string_view text, const ConstantLookup& constants) {
  const std::string_view trimmed = Trim(text);
  if (IsInteger(kind)) return ParseInteger(kind, trimmed, constants);
  if (IsVector(kind)) return ParseVector(kind, trimmed, constants);
  switch (kind) {
    case TypeKind::kBool:
      if (trimmed == "true") return {"true", {}, 1, "true"};
      if (trimmed == "false") return {"", {}, 0};
      return Fail(fmt::format("'{}' is not a bool: write true or false", trimmed));
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return ParseFloating(kind, trimmed);
    case TypeKind::kString:
      if (text.empty()) return {};
      return {QuoteCxx(text), {}, std::nullopt, QuoteTypeScript(text)};
    case TypeKind::kDecimal:
      return ParseDecimal(trimmed);
    default:
      return Fail(fmt::format("a {} cannot have a default", ToString(kind)));
  }
}

std::string QuoteCxx(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '?') {
      quoted += "\\?";  // No trigraph can appear.
    } else if (u < 0x20 || u == 0x7F) {
      // Octal, as a hex escape would swallow digits that follow.
      quoted += fmt::format("\\{:03o}", u);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string QuoteTypeScript(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (u < 0x20 || u == 0x7F) {
      quoted += fmt::format("\\u{:04x}", u);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string CxxInteger(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807 - 1)";
  return std::to_string(value);
}

}  // namespace zeze::gen
