#include "zeze/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/result.h"

namespace zeze {

namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

Error Invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

// A number without sign as its whole part and the rest, so that whole numbers stay exact.
struct Decimal {
  std::int64_t whole = 0;
  double fraction = 0;
};

enum class Parsed { kOk, kNoNumber, kTooLarge };

// Takes digits, a point and more digits from the front of the text. Separators are allowed between
// digits if asked for.
Parsed TakeDecimal(std::string_view& text, bool separators, Decimal& decimal) {
  std::size_t i = 0;
  bool any = false;
  double scale = 1;
  bool after_point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (IsDigit(c)) {
      any = true;
      const int digit = c - '0';
      if (after_point) {
        scale /= 10;
        decimal.fraction += digit * scale;
      } else if (__builtin_mul_overflow(decimal.whole, 10, &decimal.whole) ||
                 __builtin_add_overflow(decimal.whole, digit, &decimal.whole)) {
        return Parsed::kTooLarge;
      }
    } else if (c == '.' && !after_point) {
      after_point = true;
    } else if (!separators || !any || (c != '_' && c != ',' && c != '\'' && !IsBlank(c))) {
      break;
    }
  }
  text.remove_prefix(i);
  return any ? Parsed::kOk : Parsed::kNoNumber;
}

bool TakeSign(std::string_view& text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  return negative;
}

// sum += decimal * factor; false if that does not fit.
bool AddScaled(const Decimal& decimal, std::int64_t factor, std::int64_t& sum) {
  std::int64_t whole = 0;
  if (__builtin_mul_overflow(decimal.whole, factor, &whole)) return false;
  const auto rest =
      static_cast<std::int64_t>(std::llround(decimal.fraction * static_cast<double>(factor)));
  return !__builtin_add_overflow(whole, rest, &whole) && !__builtin_add_overflow(sum, whole, &sum);
}

// Longer units first, so that "ms" is not read as "m".
struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::array<Unit, 12> kDurationUnits = {{{"ns", 1},
                                                  {"us", 1'000},
                                                  {"ms", 1'000'000},
                                                  {"sec", 1'000'000'000},
                                                  {"s", 1'000'000'000},
                                                  {"min", 60'000'000'000},
                                                  {"m", 60'000'000'000},
                                                  {"hours", 3'600'000'000'000},
                                                  {"h", 3'600'000'000'000},
                                                  {"days", 86'400'000'000'000},
                                                  {"day", 86'400'000'000'000},
                                                  {"d", 86'400'000'000'000}}};

constexpr std::string_view kSizeSuffixes = "kmgtpe";

}  // namespace

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = Lower(c);
  return lower;
}

bool EqualsIgnoreCase(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](char a, char b) { return Lower(a) == Lower(b); });
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    const std::string_view part = Trim(text.substr(0, end));
    if (!part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

Result<std::int64_t> ParseInteger(std::string_view text, std::int64_t min, std::int64_t max) {
  std::string_view digits = Trim(text);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size()) {
    return Invalid(fmt::format("\"{}\" is not a whole number", text));
  }
  if (error == std::errc::result_out_of_range || value < min || value > max) {
    return Invalid(fmt::format("{} is outside the range from {} to {}", Trim(text), min, max));
  }
  return value;
}

Result<double> ParseNumber(std::string_view text) {
  std::string_view digits = Trim(text);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    return Invalid(fmt::format("\"{}\" is not a number", text));
  }
  return value;
}

Result<bool> ParseBool(std::string_view text) {
  const std::string_view word = Trim(text);
  for (const std::string_view yes : {"true", "1", "yes", "on"}) {
    if (EqualsIgnoreCase(word, yes)) return true;
  }
  for (const std::string_view no : {"false", "0", "no", "off"}) {
    if (EqualsIgnoreCase(word, no)) return false;
  }
  return Invalid(fmt::format("\"{}\" is neither true nor false", text));
}

Result<std::int64_t> ParseSize(std::string_view text) {
  std::string_view rest = Trim(text);
  if (EqualsIgnoreCase(rest, "max")) return INT64_MAX;
  const bool negative = TakeSign(rest);
  Decimal decimal;
  const Parsed parsed = TakeDecimal(rest, true, decimal);
  const auto too_large = [&] {
    return Invalid(fmt::format("\"{}\" is too large; write max for the largest size", text));
  };
  if (parsed == Parsed::kTooLarge) return too_large();
  std::int64_t factor = 1;
  if (!rest.empty()) {
    const std::size_t power = kSizeSuffixes.find(Lower(rest.front()));
    if (power != std::string_view::npos) {
      factor = std::int64_t{1} << (10 * (power + 1));
      rest.remove_prefix(1);
      if (rest.size() == 2 && Lower(rest.front()) == 'i') rest.remove_prefix(1);
    }
    if (EqualsIgnoreCase(rest, "b")) rest.remove_prefix(1);
  }
  if (parsed == Parsed::kNoNumber || !rest.empty()) {
    return Invalid(fmt::format(
        "\"{}\" is not a size; write a number with an optional suffix k, m, g, t, p or e, or max",
        text));
  }
  std::int64_t size = 0;
  if (!AddScaled(decimal, factor, size)) return too_large();
  return negative ? -size : size;
}

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text,
                                               std::chrono::nanoseconds unit) {
  std::string_view rest = Trim(text);
  const bool negative = TakeSign(rest);
  const auto no_duration = [&] {
    return Invalid(
        fmt::format("\"{}\" is not a duration; write a number with one of the units ns, "
                    "us, ms, s, m, h, d, for example 500ms or 1h30m",
                    text));
  };
  const auto too_large = [&] { return Invalid(fmt::format("\"{}\" is too long", text)); };
  if (rest.empty()) return no_duration();
  std::int64_t total = 0;
  bool first = true;
  while (!rest.empty()) {
    Decimal decimal;
    const Parsed parsed = TakeDecimal(rest, false, decimal);
    if (parsed == Parsed::kTooLarge) return too_large();
    if (parsed == Parsed::kNoNumber) return no_duration();
    std::int64_t factor = 0;
    rest = Trim(rest);
    if (rest.empty() && first) factor = unit.count();
    for (const Unit& candidate : kDurationUnits) {
      if (factor != 0 || rest.size() < candidate.name.size()) continue;
      if (!EqualsIgnoreCase(rest.substr(0, candidate.name.size()), candidate.name)) continue;
      factor = candidate.nanoseconds;
      rest = Trim(rest.substr(candidate.name.size()));
    }
    if (factor == 0) return no_duration();
    if (!AddScaled(decimal, factor, total)) return too_large();
    first = false;
  }
  return std::chrono::nanoseconds(negative ? -total : total);
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  constexpr std::array<Unit, 7> kParts = {{{"d", 86'400'000'000'000},
                                           {"h", 3'600'000'000'000},
                                           {"m", 60'000'000'000},
                                           {"s", 1'000'000'000},
                                           {"ms", 1'000'000},
                                           {"us", 1'000},
                                           {"ns", 1}}};
  std::int64_t left = duration.count();
  if (left == 0) return "0s";
  std::string text;
  if (left < 0) {
    text = "-";
    if (left == INT64_MIN) ++left;  // Nobody will miss the nanosecond.
    left = -left;
  }
  for (const Unit& part : kParts) {
    if (left < part.nanoseconds) continue;
    text += fmt::format("{}{}", left / part.nanoseconds, part.name);
    left %= part.nanoseconds;
  }
  return text;
}

std::string FormatSize(std::int64_t size) {
  if (size == INT64_MAX) return "max";
  std::int64_t value = size;
  std::size_t power = 0;
  while (value != 0 && value % 1024 == 0 && power < kSizeSuffixes.size()) {
    value /= 1024;
    ++power;
  }
  if (power == 0) return fmt::format("{}", value);
  return fmt::format("{}{}", value, kSizeSuffixes[power - 1]);
}

}  // namespace zeze
