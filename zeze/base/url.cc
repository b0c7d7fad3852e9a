#include "zeze/base/url.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

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
  return {ErrorCode::kInvalidArgument, fmt::format("\"{}\": expected {}", text, expected)};
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

}  // namespace zeze
