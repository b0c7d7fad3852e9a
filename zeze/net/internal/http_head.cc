#include "zeze/net/internal/http_head.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/base/text.h"

namespace zeze::internal {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

Error Corrupt(std::string_view what) {
  return {ErrorCode::kCorrupt, "this is not HTTP/1.1: " + std::string(what)};
}

// What names and methods are made of (RFC 9110, "token").
bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

}  // namespace

Result<HttpHead> HttpHead::Parse(std::string_view text) {
  HttpHead head;
  bool is_first = true;
  while (true) {
    const std::size_t end = text.find(kLineEnd);
    if (end == std::string_view::npos) return Corrupt("a line does not end with CR LF");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + kLineEnd.size());
    if (std::ranges::any_of(line, IsControl)) return Corrupt("a control character");
    if (is_first) {
      const std::size_t one = line.find(' ');
      if (one == std::string_view::npos) return Corrupt("the first line is one word");
      const std::string_view rest = line.substr(one + 1);
      const std::size_t two = std::min(rest.find(' '), rest.size());
      head.words = {line.substr(0, one), rest.substr(0, two),
                    rest.substr(std::min(two + 1, rest.size()))};
      is_first = false;
      continue;
    }
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return Corrupt("a line that is no field");
    }
    head.fields.push_back({.name = line.substr(0, colon), .value = Trim(line.substr(colon + 1))});
  }
  if (!text.empty()) return Corrupt("bytes behind the empty line");
  return head;
}

bool HttpHead::Has(std::string_view name) const {
  return std::ranges::any_of(
      fields, [name](const Field& field) { return EqualsIgnoreCase(field.name, name); });
}

std::optional<std::string_view> HttpHead::Only(std::string_view name) const {
  std::optional<std::string_view> value;
  for (const Field& field : fields) {
    if (!EqualsIgnoreCase(field.name, name)) continue;
    if (value.has_value()) return std::nullopt;
    value = field.value;
  }
  return value;
}

bool HttpHead::HasToken(std::string_view name, std::string_view token) const {
  for (const Field& field : fields) {
    if (!EqualsIgnoreCase(field.name, name)) continue;
    for (const std::string_view word : Split(field.value, ',')) {
      if (EqualsIgnoreCase(word, token)) return true;
    }
  }
  return false;
}

}  // namespace zeze::internal
