#include "tools/gen/code_writer.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "tools/gen/names.h"

namespace zeze::gen {
namespace {

constexpr std::size_t kColumnMax = 100;

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
  text = Trim(text);
  while (!text.empty()) {
    const std::size_t room = kColumnMax - indent.size() - 3;
    std::size_t length = std::min(text.find('\n'), text.size());
    if (length > room) {
      // At a blank if there is one; never inside a character of several bytes.
      const std::size_t blank = text.rfind(' ', room);
      length =
          blank == std::string_view::npos || blank == 0 ? std::min(text.find(' '), length) : blank;
    }
    std::string line(Trim(text.substr(0, length)));
    // A backslash at the end of a comment would swallow the next line.
    while (line.ends_with('\\')) line.pop_back();
    Line("{}// {}", indent, line);
    text = Trim(text.substr(length));
  }
}

}  // namespace zeze::gen
