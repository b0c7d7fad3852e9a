// AttributeReader: the attributes of one element, converted and checked as they are read.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/gen/model.h"
#include "zeze/xml/document.h"

namespace zeze::gen {

class AttributeReader {
 public:
  // `kind` names the element's entry in language.h; unknown and meaningless attributes are reported
  // here, once for all.
  AttributeReader(const xml::Element& element, std::string_view kind, Diagnostics& diagnostics);

  // The attribute `name`, checked to be a name; "" after an error.
  std::string Name(bool reserved_words_allowed = false);
  std::string Text(std::string_view attribute, std::string_view otherwise = {}) const;
  // Reports an error if it is missing or empty.
  std::string RequiredText(std::string_view attribute);
  bool Bool(std::string_view attribute, bool otherwise = false);
  std::int64_t Int(std::string_view attribute, std::int64_t otherwise, std::int64_t least,
                   std::int64_t most);
  // Milliseconds; "5s", "500ms" and bare milliseconds are accepted.
  std::int64_t Milliseconds(std::string_view attribute, std::int64_t otherwise);
  Level TransactionLevel(std::string_view attribute, Level otherwise);
  HandleFlags Handle(std::string_view attribute);
  std::string Choice(std::string_view attribute, std::string_view otherwise,
                     const std::vector<std::string_view>& choices);

  bool Has(std::string_view attribute) const { return element_.HasAttribute(attribute); }
  Location At(std::string_view attribute) const { return element_.LocationOf(attribute); }
  const xml::Element& element() const { return element_; }
  // "<bean name="BItem">", to name the element in a message.
  std::string Describe() const;

 private:
  void NoteMeaningless(std::string_view kind);

  const xml::Element& element_;
  Diagnostics& diagnostics_;
};

// A whole number, decimal or 0x...; nothing else may stand in the text.
std::optional<std::int64_t> ParseInteger(std::string_view text);

}  // namespace zeze::gen
