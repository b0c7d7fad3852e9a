// SourceText: the bytes of one XML file with what finding places and faults in them needs.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/xml/diagnostics.h"

namespace zeze::xml {

class SourceText {
 public:
  SourceText(std::string file, std::string_view text);

  const std::shared_ptr<const std::string>& file() const { return file_; }
  std::string_view text() const { return text_; }
  // Line and column of a byte; beyond the end means the end.
  Location At(std::size_t offset) const;

  // Offset of the first byte that is not UTF-8 or a control character that XML forbids; npos if the
  // text is clean.
  std::size_t FindForbiddenByte() const;
  // Offset of the first '&' in [begin, end) that does not start one of XML's own references; npos
  // if there is none. `end` is a character: the range stops before it, or at the end of the text.
  std::size_t FindUnknownReference(std::size_t begin, char end) const;
  // The start tag that is still open at `offset`, as the offset of its '<'; npos if none is.
  std::size_t FindOpenElement(std::size_t offset) const;
  std::string_view NameAt(std::size_t tag) const;

 private:
  std::shared_ptr<const std::string> file_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
};

}  // namespace zeze::xml
