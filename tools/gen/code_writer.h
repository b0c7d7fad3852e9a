// CodeWriter: lines of generated code; of C++ with the right namespace around them.

#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace zeze::gen {

class CodeWriter {
 public:
  template <typename... Arguments>
  void Line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  void Blank() {
    if (!text_.ends_with("\n\n") && !text_.ends_with("{\n")) text_ += '\n';
  }
  // Opens the namespace of a dotted name, closing the open one if it is another; "" closes.
  void Namespace(const std::string& dotted);
  // A comment over as many lines as it needs; nothing for an empty text.
  void Comment(std::string_view indent, std::string_view text);
  // The same between /** and */, where editors for TypeScript look for it.
  void DocComment(std::string_view indent, std::string_view text);

  const std::string& text() const { return text_; }
  std::string Release() {
    Namespace("");
    return std::move(text_);
  }

 private:
  std::string text_;
  std::string namespace_;
};

}  // namespace zeze::gen
