#include "tools/gen/code_writer.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gen/names.h"

namespace zeze::gen {
namespace {

constexpr std::size_t kColumnMax = 100;

// The text in lines of at most `room` columns, where its words allow it.
std::vector<std::string> WrapText(std::string_view text, std::size_t room) {
  std::vector<std::string> lines;
  text = Trim(text);
  while (!text.empty()) {
    std::size_t length = std::min(text.find('\n'), text.size());
    if (length > room) {
      // At a blank if there is one; never inside a character of several bytes.
      const std::size_t blank = text.rfind(' ', room);
      length =
          blank == std::string_view::npos || blank == 0 ? std::min(text.find(' '), length) : blank;
    }
    lines.emplace_back(Trim(text.substr(0, length)));
    text = Trim(text.substr(length));
  }
  return lines;
}

}  // namespace

void CodeWriter::Namespace(const std::string& dotted) {
  if (dotted == namespace_) return;
  if (!namespace_.empty()) {
    Blank();
    Line("}}  // namespace {}", CxxQualifiedName(namespace_).substr(2));
    Blank();
  }
  if (!dotted.empty()) {
    Line("namespace {} {{", CxxQualifiedName(dotted).substr(2));
    text_ += '\n';
  }
  namespace_ = dotted;
}

void CodeWriter::Comment(std::string_view indent, std::string_view text) {
  for (std::string line : WrapText(text, kColumnMax - indent.size() - 3)) {
    // A backslash at the end of a comment would swallow the next line.
    while (line.ends_with('\\')) line.pop_back();
    Line("{}// {}", indent, line);
  }
}

void CodeWriter::DocComment(std::string_view indent, std::string_view text) {
  std::string harmless(text);
  for (std::size_t at = 0; (at = harmless.find("*/", at)) != std::string::npos;) {
    harmless.replace(at, 2, "* /");
  }
  const std::vector<std::string> lines = WrapText(harmless, kColumnMax - indent.size() - 7);
  if (lines.empty()) return;
  if (lines.size() == 1) {
    Line("{}/** {} */", indent, lines.front());
    return;
  }
  Line("{}/**", indent);
  for (const std::string& line : lines) Line("{} * {}", indent, line);
  Line("{} */", indent);
}

}  // namespace zeze::gen
