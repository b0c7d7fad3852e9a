#include "zeze/bean/format.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <fmt/format.h>

#include "zeze/bean/any_bean.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"

namespace zeze::internal {

namespace {

template <typename T>
void AppendFloating(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

}  // namespace

void AppendText(std::string& out, bool value) {
  out += value ? "true" : "false";
}

void AppendText(std::string& out, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

void AppendText(std::string& out, float value) {
  AppendFloating(out, value);
}
void AppendText(std::string& out, double value) {
  AppendFloating(out, value);
}
void AppendText(std::string& out, const std::string& value) {
  AppendQuoted(out, value);
}
void AppendText(std::string& out, const Decimal& value) {
  AppendQuoted(out, value.text);
}

void AppendText(std::string& out, const Binary& value) {
  out += '"';
  for (const char byte : value.bytes) {
    fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(byte));
  }
  out += '"';
}

void AppendText(std::string& out, const AnyBean& value) {
  if (value.empty()) {
    out += "null";
    return;
  }
  out += fmt::format("{{\"type\":{},\"value\":", value.type_id());
  AppendText(out, Binary{std::string(value.bytes())});
  out += '}';
}

void AppendText(std::string& out, const Id128& value) {
  fmt::format_to(std::back_inserter(out), "\"{:016x}{:016x}\"", value.high, value.low);
}

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void AppendSeparator(std::string& out) {
  const char last = out.empty() ? '[' : out.back();
  if (last != '[' && last != '{' && last != ':') out += ',';
}

void AppendName(std::string& out, std::string_view name) {
  AppendSeparator(out);
  AppendQuoted(out, name);
  out += ':';
}

}  // namespace zeze::internal
