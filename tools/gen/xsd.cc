#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tools/gen/language.h"
#include "tools/gen/reports.h"

namespace zeze::gen {
namespace {

std::string TypeName(std::string_view kind) {
  std::string name(kind);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name + "-type";
}

std::string Escape(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string FormatXsd() {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
      "<!-- The schema language of zeze. Written by: zeze gen --xsd FILE -->\n"
      "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">\n"
      "  <xs:element name=\"solution\" type=\"solution-type\"/>\n";
  for (const ElementInfo& info : Language()) {
    text += fmt::format("  <xs:complexType name=\"{}\" mixed=\"true\">\n", TypeName(info.kind));
    if (!info.about.empty()) {
      text += fmt::format(
          "    <xs:annotation><xs:documentation>{}</xs:documentation></xs:annotation>\n",
          Escape(info.about));
    }
    if (!info.children.empty()) {
      text += "    <xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">\n";
      // One name may stand for several kinds; XSD knows only one type for it in one place.
      std::map<std::string_view, std::string_view> by_name;
      for (std::string_view kind : info.children) {
        by_name.try_emplace(FindElementInfo(kind)->name, kind);
      }
      for (const auto& [name, kind] : by_name) {
        text += fmt::format("      <xs:element name=\"{}\" type=\"{}\"/>\n", name, TypeName(kind));
      }
      text += "    </xs:choice>\n";
    }
    for (const AttributeInfo& attribute : info.attributes) {
      text += fmt::format("    <xs:attribute name=\"{}\" type=\"xs:{}\"{}>\n", attribute.name,
                          attribute.type, attribute.required ? " use=\"required\"" : "");
      text += fmt::format(
          "      <xs:annotation><xs:documentation>{}{}</xs:documentation></xs:annotation>\n",
          attribute.use == AttributeUse::kNoEffect ? "No effect in C++: " : "",
          Escape(attribute.about));
      text += "    </xs:attribute>\n";
    }
    text += "  </xs:complexType>\n";
  }
  return text + "</xs:schema>\n";
}

}  // namespace zeze::gen
