// Json: a small reader for the vector file. Numbers are kept as text.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zeze::compatibility {

struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;                // Of a number or string.
  std::vector<Json> items;         // Of an array, or the values of an object.
  std::vector<std::string> names;  // Of the items of an object.

  Json& Add(std::string name, Json value);

  // Stops the test program if there is none: the file is ours.
  const Json& operator[](std::string_view name) const;
  bool Has(std::string_view name) const;
};

// Stops the test program on malformed text.
Json ParseJson(std::string_view text);

}  // namespace zeze::compatibility
