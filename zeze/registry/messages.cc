#include "zeze/registry/messages.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

namespace zeze::registry {

namespace {

std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): up to `end`.
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return value;
}

// Group, number, text: the first difference decides.
std::tuple<int, std::int64_t, std::string_view> Rank(std::string_view identity) {
  if (identity.empty()) return {0, 0, identity};
  if (identity.front() == '#') return {1, 0, identity};
  if (identity.front() == '@') return {3, 0, identity};
  const std::optional<std::int64_t> number = Number(identity);
  if (!number.has_value()) return {4, 0, identity};
  return {2, *number, identity};
}

}  // namespace

bool IdentityLess::operator()(std::string_view left, std::string_view right) const {
  return Rank(left) < Rank(right);
}

bool IsValidIdentity(std::string_view identity) {
  if (identity.empty()) return false;
  return identity.front() == '@' || identity.front() == '#' || Number(identity).has_value();
}

Id128 operator+(const Id128& left, std::uint64_t right) {
  Id128 sum{.high = left.high, .low = left.low + right};
  if (sum.low < right) ++sum.high;
  return sum;
}

}  // namespace zeze::registry
