// Url: the parts of an address such as wss://game.example:8443/play?region=3.
//
//   Result<Url> url = ParseUrl(text, {{"ws", 80}, {"wss", 443}});
//   Connect(url.value().host, url.value().port);

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "zeze/base/result.h"

namespace zeze {

struct Url {
  std::string scheme;      // In lower case.
  std::string host;        // A name or an address, without the brackets of IPv6.
  std::uint16_t port = 0;  // The scheme's, if the text names none.
  std::string target;      // Path and query; at least "/". A fragment ('#') is left out.
};

struct UrlScheme {
  std::string_view name;
  std::uint16_t port;
};

// Fails with kInvalidArgument, and says what was expected, for other schemes, user names, blanks
// and everything that is not printable ASCII.
Result<Url> ParseUrl(std::string_view text, std::initializer_list<UrlScheme> schemes);

// The text with *** in place of passwords: those of user:password@ before a host, and the values of
// password= parameters. For log lines, messages and whatever else people read.
std::string MaskPasswords(std::string_view text);

}  // namespace zeze
