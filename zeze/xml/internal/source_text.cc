#include "zeze/xml/internal/source_text.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/xml/diagnostics.h"

namespace zeze::xml {
namespace {

bool IsContinuation(unsigned char c) {
  return (c & 0xC0U) == 0x80U;
}

// Length of the UTF-8 sequence that starts at `offset`, 0 if there is none.
std::size_t SequenceLength(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t index) {
    return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
  };
  const auto first = byte(offset);
  std::size_t length = 0;
  unsigned least = 0x80;  // Of the second byte: keeps out over-long forms and surrogates.
  unsigned most = 0xBF;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) least = 0xA0;
    if (first == 0xED) most = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) least = 0x90;
    if (first == 0xF4) most = 0x8F;
  } else {
    return 0;
  }
  if (byte(offset + 1) < least || byte(offset + 1) > most) return 0;
  for (std::size_t index = 2; index < length; ++index) {
    if (!IsContinuation(static_cast<unsigned char>(byte(offset + index)))) return 0;
  }
  return length;
}

bool IsReference(std::string_view name) {
  if (name == "lt" || name == "gt" || name == "amp" || name == "quot" || name == "apos")
    return true;
  if (name.size() < 2 || name[0] != '#') return false;
  const bool hex = name[1] == 'x';
  const std::string_view digits = name.substr(hex ? 2 : 1);
  return !digits.empty() && digits.size() <= 8 &&
         std::all_of(digits.begin(), digits.end(), [hex](char c) {
           const auto u = static_cast<unsigned char>(c);
           return hex ? std::isxdigit(u) != 0 : std::isdigit(u) != 0;
         });
}

}  // namespace

SourceText::SourceText(std::string file, std::string_view text)
    : file_(std::make_shared<const std::string>(std::move(file))), text_(text) {
  line_starts_.push_back(0);
  for (std::size_t offset = 0; offset < text_.size(); ++offset) {
    if (text_[offset] == '\n') line_starts_.push_back(offset + 1);
  }
}

Location SourceText::At(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<std::size_t>(after - line_starts_.begin());
  return {*file_, static_cast<int>(line), static_cast<int>(offset - line_starts_[line - 1] + 1)};
}

std::size_t SourceText::FindForbiddenByte() const {
  for (std::size_t offset = 0; offset < text_.size();) {
    const auto c = static_cast<unsigned char>(text_[offset]);
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') return offset;
    const std::size_t length = SequenceLength(text_, offset);
    if (length == 0) return offset;
    offset += length;
  }
  return std::string::npos;
}

std::size_t SourceText::FindUnknownReference(std::size_t begin, char end) const {
  const std::size_t stop = std::min(text_.find(end, begin), text_.size());
  for (std::size_t at = text_.find('&', begin); at < stop; at = text_.find('&', at + 1)) {
    const std::size_t semicolon = text_.find(';', at);
    if (semicolon >= stop ||
        !IsReference(std::string_view(text_).substr(at + 1, semicolon - at - 1))) {
      return at;
    }
  }
  return std::string::npos;
}

std::string_view SourceText::NameAt(std::size_t tag) const {
  const std::size_t end = text_.find_first_of(" \t\r\n/>", tag + 1);
  return std::string_view(text_).substr(tag + 1, std::min(end, text_.size()) - tag - 1);
}

std::size_t SourceText::FindOpenElement(std::size_t offset) const {
  std::vector<std::size_t> open;
  const auto skip = [&](std::size_t at, std::string_view terminator) {
    const std::size_t found = text_.find(terminator, at);
    return found == std::string::npos ? text_.size() : found + terminator.size();
  };
  for (std::size_t at = text_.find('<'); at < offset; at = text_.find('<', at)) {
    const std::string_view rest = std::string_view(text_).substr(at);
    if (rest.starts_with("<!--")) {
      at = skip(at, "-->");
    } else if (rest.starts_with("<![CDATA[")) {
      at = skip(at, "]]>");
    } else if (rest.starts_with("<?") || rest.starts_with("<!")) {
      at = skip(at, ">");
    } else if (rest.starts_with("</")) {
      // The end tag at fault is the one that names another element than the open one.
      if (open.empty() || NameAt(at + 1) != NameAt(open.back())) break;
      open.pop_back();
      at = skip(at, ">");
    } else {
      std::size_t end = at + 1;
      char quote = 0;
      for (; end < text_.size() && (quote != 0 || text_[end] != '>'); ++end) {
        if (quote != 0) {
          if (text_[end] == quote) quote = 0;
        } else if (text_[end] == '"' || text_[end] == '\'') {
          quote = text_[end];
        }
      }
      if (end >= text_.size() || text_[end - 1] != '/') open.push_back(at);
      at = end;
    }
  }
  return open.empty() ? std::string::npos : open.back();
}

}  // namespace zeze::xml
