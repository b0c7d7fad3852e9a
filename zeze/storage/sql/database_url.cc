#include "zeze/storage/sql/database_url.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/base/text.h"

namespace zeze {
namespace {

Error Malformed(std::string_view what) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("the address of the database is malformed: {}. Write it like "
                      "\"jdbc:postgresql://host:5432/database?user=name&password=secret\".",
                      what)};
}

// Cuts `text` at the separator and returns what stood before it; `rest` is what stood behind.
std::string_view CutAt(std::string_view text, char separator, std::string_view& rest) {
  const std::size_t at = text.find(separator);
  rest = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return text.substr(0, at);
}

std::string Decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const char* begin = text.data() + i + 1;
      if (std::from_chars(begin, begin + 2, value, 16).ptr == begin + 2) {
        decoded += static_cast<char>(value);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

Result<DatabaseHost> ParseHost(std::string_view text) {
  DatabaseHost host;
  const std::size_t colon = text.rfind(':');
  const bool bare_ipv6 = text.ends_with(']');
  if (colon == std::string_view::npos || bare_ipv6) {
    host.name = text;
  } else {
    host.name = text.substr(0, colon);
    const Result<std::int64_t> port = ParseInteger(text.substr(colon + 1), 1, 65535);
    // The text is not repeated: with a character that is not encoded it is part of the password.
    if (!port.ok()) return Malformed("the port of a host is not a number from 1 to 65535");
    host.port = static_cast<std::uint16_t>(port.value());
  }
  if (host.name.starts_with('[') && host.name.ends_with(']')) {
    host.name = host.name.substr(1, host.name.size() - 2);
  }
  if (host.name.empty()) return Malformed("a host is missing");
  return host;
}

}  // namespace

Result<DatabaseUrl> ParseDatabaseUrl(std::string_view text) {
  DatabaseUrl url;
  text = Trim(text);
  if (text.starts_with("jdbc:")) text.remove_prefix(5);
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return Malformed("it has no \"://\"");
  url.scheme = text.substr(0, scheme_end);
  std::string_view query;
  std::string_view path;
  std::string_view authority = CutAt(CutAt(text.substr(scheme_end + 3), '?', query), '/', path);
  url.database = Decode(path);

  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    std::string_view password;
    url.user = Decode(CutAt(authority.substr(0, at), ':', password));
    url.password = Decode(password);
    authority = authority.substr(at + 1);
  }
  for (std::string_view host : Split(authority, ',')) {
    Result<DatabaseHost> parsed = ParseHost(host);
    if (!parsed.ok()) return parsed.error();
    url.hosts.push_back(std::move(parsed).value());
  }
  if (url.hosts.empty()) return Malformed("it names no host");

  for (std::string_view parameter : Split(query, '&')) {
    std::string_view value;
    const std::string name = Decode(CutAt(parameter, '=', value));
    if (name == "user") {
      url.user = Decode(value);
    } else if (name == "password") {
      url.password = Decode(value);
    } else {
      url.parameters.insert_or_assign(name, Decode(value));
    }
  }
  return url;
}

}  // namespace zeze
