// HttpHead: what stands in front of the body of an HTTP/1.1 request or answer.
//
//   Result<HttpHead> head = HttpHead::Parse("GET /game HTTP/1.1\r\nHost: example.org\r\n\r\n");
//   head.value().words[1] == "/game";
//   head.value().HasToken("Connection", "upgrade");

#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"

namespace zeze::internal {

// Views point into the text that was parsed.
struct HttpHead {
  struct Field {
    std::string_view name;
    std::string_view value;  // Without blanks around it.
  };

  // Of the first line, each perhaps empty: method, target and version of a request; version, code
  // and phrase of an answer. The last may have blanks.
  std::array<std::string_view, 3> words;
  std::vector<Field> fields;

  // With the empty line at its end. Strict, as what follows depends on it: lines end with CR LF,
  // fields are not folded, and there are no other control characters. Fails with kCorrupt.
  static Result<HttpHead> Parse(std::string_view text);

  // Names are the same in whatever case.
  bool Has(std::string_view name) const;

  // The value of the field; none if it is missing, or there twice.
  std::optional<std::string_view> Only(std::string_view name) const;

  // Whether one of the fields of this name lists the word, in whatever case.
  bool HasToken(std::string_view name, std::string_view token) const;
};

}  // namespace zeze::internal
