#include "zeze/base/url.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/base/text.h"

namespace zeze {

namespace {

Error Bad(std::string_view text, std::initializer_list<UrlScheme> schemes) {
  std::string expected;
  for (const UrlScheme& scheme : schemes) {
    if (!expected.empty()) expected += " or ";
    expected += fmt::format("{}://host[:port][/path]", scheme.name);
  }
  return {ErrorCode::kInvalidArgument,
          fmt::format("\"{}\": expected {}", MaskPasswords(text), expected)};
}

// Where the password of user:password@host begins and ends, in the text after "://". Both are the
// same if there is none. A password may contain what should have been encoded, so what is not
// certainly a port counts as one.
std::pair<std::size_t, std::size_t> FindPassword(std::string_view rest) {
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r\n\"'<>"));
  const std::string_view before_query = word.substr(0, word.find('?'));
  std::size_t end = before_query.rfind('@');
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return {0, 0};
  if (end == std::string_view::npos) {
    const std::string_view port =
        word.substr(colon + 1, word.find_first_of("/?,", colon) - colon - 1);
    if (word.starts_with('[') || ParseInteger(port, 0, 65535).ok()) return {0, 0};
    end = word.rfind('@');
  }
  if (end == std::string_view::npos || end < colon) return {0, 0};
  return {colon + 1, end};
}

std::string MaskUserInfo(std::string_view text) {
  std::string masked;
  while (true) {
    const std::size_t scheme = text.find("://");
    if (scheme == std::string_view::npos) return masked.append(text);
    const auto [begin, end] = FindPassword(text.substr(scheme + 3));
    masked.append(text.substr(0, scheme + 3 + begin));
    if (begin != end) masked += "***";
    text.remove_prefix(scheme + 3 + end);
  }
}

}  // namespace

Result<Url> ParseUrl(std::string_view text, std::initializer_list<UrlScheme> schemes) {
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; })) {
    return Bad(text, schemes);
  }
  const std::size_t colon_of_scheme = text.find("://");
  if (colon_of_scheme == std::string_view::npos) return Bad(text, schemes);
  Url url{.scheme = ToLower(text.substr(0, colon_of_scheme)), .host = {}, .target = {}};
  for (const UrlScheme& scheme : schemes) {
    if (scheme.name == url.scheme) url.port = scheme.port;
  }
  if (url.port == 0) return Bad(text, schemes);

  std::string_view rest = text.substr(colon_of_scheme + 3);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, path);
  url.target = rest.substr(path);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");

  if (authority.find('@') != std::string_view::npos) return Bad(text, schemes);
  // [::1]:80 has colons in its host.
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    const Result<std::int64_t> port = ParseInteger(authority.substr(colon + 1), 1, 65535);
    if (!port.ok()) return Bad(text, schemes);
    url.port = static_cast<std::uint16_t>(port.value());
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']')) {
    authority = authority.substr(1, authority.size() - 2);
  }
  if (authority.empty()) return Bad(text, schemes);
  url.host = authority;
  return url;
}

std::string MaskPasswords(std::string_view given) {
  const std::string text = MaskUserInfo(given);
  const std::string lower = ToLower(text);
  std::size_t at = 0;
  std::string masked;
  while (true) {
    const std::size_t found = lower.find("password=", at);
    if (found == std::string::npos) return masked + text.substr(at);
    const std::size_t begin = found + 9;
    const std::size_t end = std::min(lower.find_first_of("&; ", begin), text.size());
    masked += text.substr(at, begin - at) + "***";
    at = end;
  }
}

}  // namespace zeze
