#include "tests/compatibility/json.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/base/check.h"

namespace zeze::compatibility {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json ParseDocument() {
    Json value = ParseValue();
    SkipSpace();
    ZEZE_CHECK(text_.empty());
    return value;
  }

 private:
  void SkipSpace() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_[0])) != 0) Next();
  }

  char Next() {
    ZEZE_CHECK(!text_.empty());
    const char c = text_[0];
    text_.remove_prefix(1);
    return c;
  }

  bool Take(std::string_view token) {
    SkipSpace();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  Json ParseValue() {
    Json value;
    if (Take("{")) {
      value.kind = Json::Kind::kObject;
      if (Take("}")) return value;
      do {
        std::string name = ParseString();
        ZEZE_CHECK(Take(":"));
        value.Add(std::move(name), ParseValue());
      } while (Take(","));
      ZEZE_CHECK(Take("}"));
    } else if (Take("[")) {
      value.kind = Json::Kind::kArray;
      if (Take("]")) return value;
      do {
        value.items.push_back(ParseValue());
      } while (Take(","));
      ZEZE_CHECK(Take("]"));
    } else if (Take("true")) {
      value.kind = Json::Kind::kBool;
      value.boolean = true;
    } else if (Take("false")) {
      value.kind = Json::Kind::kBool;
    } else if (!Take("null")) {
      if (text_.starts_with('"')) {
        value.kind = Json::Kind::kString;
        value.text = ParseString();
      } else {
        value.kind = Json::Kind::kNumber;
        while (!text_.empty() && std::string_view("+-.eE0123456789").find(text_[0]) != text_.npos) {
          value.text.push_back(Next());
        }
        ZEZE_CHECK(!value.text.empty());
      }
    }
    return value;
  }

  std::uint32_t ParseUnit() {
    ZEZE_CHECK(text_.size() >= 4);
    std::uint32_t unit = 0;
    const char* const first = text_.data();
    const auto end = std::from_chars(first, first + 4, unit, 16).ptr;
    ZEZE_CHECK(end == first + 4);
    text_.remove_prefix(4);
    return unit;
  }

  static void AppendUtf8(std::uint32_t point, std::string& text) {
    const auto put = [&text](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    if (point < 0x80) return put(point);
    if (point < 0x800) {
      put(0xC0 | (point >> 6));
    } else if (point < 0x10000) {
      put(0xE0 | (point >> 12));
      put(0x80 | ((point >> 6) & 0x3F));
    } else {
      put(0xF0 | (point >> 18));
      put(0x80 | ((point >> 12) & 0x3F));
      put(0x80 | ((point >> 6) & 0x3F));
    }
    put(0x80 | (point & 0x3F));
  }

  std::string ParseString() {
    ZEZE_CHECK(Take("\""));
    std::string text;
    for (char c = Next(); c != '"'; c = Next()) {
      if (c != '\\') {
        text.push_back(c);
        continue;
      }
      const char escape = Next();
      if (escape == 'u') {
        std::uint32_t point = ParseUnit();
        if (point >= 0xD800 && point < 0xDC00 && text_.starts_with("\\u")) {
          text_.remove_prefix(2);
          point = 0x10000 + ((point - 0xD800) << 10) + (ParseUnit() - 0xDC00);
        }
        AppendUtf8(point, text);
      } else {
        const std::string_view names = "bfnrt";
        const std::size_t index = names.find(escape);
        text.push_back(index == names.npos ? escape : "\b\f\n\r\t"[index]);
      }
    }
    return text;
  }

  std::string_view text_;
};

}  // namespace

Json& Json::Add(std::string name, Json value) {
  names.push_back(std::move(name));
  return items.emplace_back(std::move(value));
}

const Json& Json::operator[](std::string_view name) const {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return items[i];
  }
  ZEZE_CHECK(false && "no such member");
  return *this;
}

bool Json::Has(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Json ParseJson(std::string_view text) {
  return Parser(text).ParseDocument();
}

}  // namespace zeze::compatibility
