// Any bytes are a document or a list of diagnostics, never a crash, and places lie inside the text.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "zeze/xml/document.h"
#include "zeze/xml/known_names.h"

namespace {

std::size_t Visit(const zeze::xml::Element& element, const zeze::xml::KnownNames& names,
                  zeze::xml::Diagnostics& diagnostics) {
  names.Check(element, "solution", diagnostics);
  std::size_t count = element.attributes().size() + element.nodes().size();
  for (const zeze::xml::Element* child : element.children()) {
    if (child->parent() != &element || child->line() < 1) std::abort();
    count += Visit(*child, names, diagnostics);
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const zeze::xml::KnownNames names =
      zeze::xml::KnownNames().Add({.kind = "solution", .attributes = {"name"}, .children = {"a"}});
  zeze::xml::Diagnostics diagnostics;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document =
      zeze::xml::Document::ParseText(text, "no-such-folder/input.xml", diagnostics);
  if (document.has_value() == diagnostics.has_errors()) std::abort();
  if (document) Visit(document->root(), names, diagnostics);
  if (diagnostics.Format().empty() != diagnostics.all().empty()) std::abort();
  return 0;
}
