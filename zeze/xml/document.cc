#include "zeze/xml/document.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "zeze/xml/diagnostics.h"
#include "zeze/xml/internal/source_text.h"

namespace zeze::xml {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kXIncludeNamespaces[] = {"http://www.w3.org/2001/XInclude",
                                                    "http://www.w3.org/2003/XInclude"};
constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

bool EqualsIgnoreCase(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

// Reads a regular file of bounded size; otherwise says why not.
std::optional<std::string> ReadFile(const std::string& path, std::size_t bytes_max,
                                    std::string& why) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) {
    why = "there is no such file";
    return std::nullopt;
  }
  if (!fs::is_regular_file(status)) {
    why = "it is not a file";
    return std::nullopt;
  }
  const auto size = fs::file_size(path, code);
  if (!code && size > bytes_max) {
    why = fmt::format("it has {} bytes, more than the limit of {}", size, bytes_max);
    return std::nullopt;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    why = "it cannot be opened for reading";
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

std::string Describe(pugi::xml_parse_status status) {
  switch (status) {
    case pugi::status_unrecognized_tag:
      return "this is not a tag: a '<' in text is written &lt;";
    case pugi::status_bad_pi:
      return "malformed <? ... ?>";
    case pugi::status_bad_comment:
      return "comment without its end -->";
    case pugi::status_bad_cdata:
      return "CDATA section without its end ]]>";
    case pugi::status_bad_doctype:
      return "malformed document type declaration";
    case pugi::status_bad_pcdata:
      return "malformed text";
    case pugi::status_bad_start_element:
      return "malformed start tag";
    case pugi::status_bad_attribute:
      return "malformed attribute: expected name=\"value\"";
    case pugi::status_bad_end_element:
      return "malformed end tag";
    case pugi::status_no_document_element:
      return "there is no element in this file";
    default:
      return "malformed XML";
  }
}

}  // namespace

Element::Element(std::shared_ptr<const std::string> file, int line, int column, std::string name)
    : file_(std::move(file)), line_(line), column_(column), name_(std::move(name)) {}

const Attribute* Element::FindAttribute(std::string_view name) const {
  for (const Attribute& attribute : attributes_) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

const Attribute* Element::FindAttributeIgnoreCase(std::string_view name) const {
  if (const Attribute* exact = FindAttribute(name)) return exact;
  const Attribute* found = nullptr;
  for (const Attribute& attribute : attributes_) {
    if (!EqualsIgnoreCase(attribute.name, name)) continue;
    if (found != nullptr) return nullptr;
    found = &attribute;
  }
  return found;
}

std::string Element::GetAttribute(std::string_view name, std::string_view otherwise) const {
  const Attribute* attribute = FindAttribute(name);
  return attribute == nullptr ? std::string(otherwise) : attribute->value;
}

Location Element::LocationOf(std::string_view attribute) const {
  const Attribute* found = FindAttribute(attribute);
  return found == nullptr ? location() : LocationOf(*found);
}

Location Element::LocationOf(const Attribute& attribute) const {
  return {*file_, attribute.line, attribute.column};
}

std::vector<const Element*> Element::children(std::string_view name) const {
  std::vector<const Element*> named;
  for (const Element* child : children_) {
    if (child->name() == name) named.push_back(child);
  }
  return named;
}

// Turns pugixml's tree of one file into ours, and does so for the files it includes.
class DocumentBuilder {
 public:
  DocumentBuilder(const ParseOptions& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {}

  std::optional<Document> Finish(std::unique_ptr<Element> root) {
    if (root == nullptr || diagnostics_.error_count() != errors_before_) return std::nullopt;
    Document document;
    document.root_ = std::move(root);
    document.files_ = std::move(files_);
    return document;
  }

  // Null after an error. `asked` is where the file was asked for, if anywhere.
  std::unique_ptr<Element> ReadFromFile(const std::string& path, const Location& asked) {
    std::string why;
    const std::optional<std::string> text = ReadFile(path, options_.bytes_max, why);
    if (!text) {
      Location place = asked.file.empty() ? Location{path, 0, 0} : asked;
      diagnostics_.Error(std::move(place), fmt::format("cannot read '{}': {}", path, why));
      return nullptr;
    }
    files_.push_back(path);
    return ReadFromText(*text, path);
  }

  std::unique_ptr<Element> ReadFromText(std::string_view text, const std::string& name) {
    if (text.size() > options_.bytes_max) {
      diagnostics_.Error(
          {name, 0, 0}, fmt::format("the text has {} bytes, more than the limit of {}", text.size(),
                                    options_.bytes_max));
      return nullptr;
    }
    if (text.starts_with("\xFE\xFF") || text.starts_with("\xFF\xFE")) {
      diagnostics_.Error({name, 1, 1}, "the file is UTF-16", "save it as UTF-8");
      return nullptr;
    }
    if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
    const SourceText source(name, text);
    if (const std::size_t bad = source.FindForbiddenByte(); bad != std::string::npos) {
      diagnostics_.Error(
          source.At(bad),
          fmt::format("byte 0x{:02X} is not UTF-8 text", static_cast<unsigned char>(text[bad])),
          "save the file as UTF-8");
      return nullptr;
    }
    // Parsed in place, so that the names of attributes point to where they stand.
    std::string buffer(text);
    pugi::xml_document parsed;
    const pugi::xml_parse_result result = parsed.load_buffer_inplace(
        buffer.data(), buffer.size(),
        pugi::parse_default | pugi::parse_comments | pugi::parse_declaration | pugi::parse_doctype,
        pugi::encoding_utf8);
    if (!result) {
      ReportMalformed(source, result);
      return nullptr;
    }
    const Input input{source, buffer};
    const pugi::xml_node root = CheckTop(input, parsed);
    return root ? Build(input, root, nullptr) : nullptr;
  }

 private:
  struct Input {
    const SourceText& source;
    const std::string& buffer;
  };

  void ReportMalformed(const SourceText& source, const pugi::xml_parse_result& result) {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0));
    const Location place = source.At(offset);
    if (result.status != pugi::status_end_element_mismatch) {
      diagnostics_.Error(place, Describe(result.status));
      return;
    }
    const std::size_t open = source.FindOpenElement(offset);
    if (open == std::string::npos) {
      diagnostics_.Error(place, "this end tag closes nothing");
      return;
    }
    diagnostics_.Error(place,
                       fmt::format("<{}> is not closed here: it was opened at line {}",
                                   source.NameAt(open), source.At(open).line),
                       fmt::format("add </{}>", source.NameAt(open)));
  }

  // What stands beside the root. Returns the root, or nothing after an error.
  pugi::xml_node CheckTop(const Input& input, const pugi::xml_document& parsed) {
    pugi::xml_node root;
    bool good = true;
    for (const pugi::xml_node node : parsed) {
      const Location place = At(input, node);
      if (node.type() == pugi::node_doctype) {
        diagnostics_.Error(place, "document type declarations are not accepted",
                           "remove <!DOCTYPE ...>");
        good = false;
      } else if (node.type() == pugi::node_declaration) {
        const std::string encoding = node.attribute("encoding").value();
        if (!encoding.empty() && !EqualsIgnoreCase(encoding, "utf-8") &&
            !EqualsIgnoreCase(encoding, "utf8") && !EqualsIgnoreCase(encoding, "us-ascii")) {
          diagnostics_.Error(place, fmt::format("encoding '{}' is not supported", encoding),
                             "save the file as UTF-8 and say encoding=\"utf-8\"");
          good = false;
        }
      } else if (node.type() == pugi::node_element) {
        if (root) {
          diagnostics_.Error(place, fmt::format("second root element <{}>", node.name()),
                             fmt::format("a file has one root; the first is <{}>", root.name()));
          good = false;
        } else {
          root = node;
        }
      }
    }
    return good ? root : pugi::xml_node();
  }

  static Location At(const Input& input, const pugi::xml_node& node) {
    std::ptrdiff_t offset = node.offset_debug();
    if (node.type() == pugi::node_element) --offset;  // To the '<'.
    return input.source.At(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)));
  }

  // Where a string of the parsed tree stands in the file; npos if it is none of the file's.
  static std::size_t OffsetOf(const Input& input, const char* text) {
    const auto begin = reinterpret_cast<std::uintptr_t>(input.buffer.data());
    const auto at = reinterpret_cast<std::uintptr_t>(text);
    return at >= begin && at < begin + input.buffer.size() ? at - begin : std::string::npos;
  }

  void CheckReferences(const Input& input, const char* text, char end) {
    const std::size_t offset = OffsetOf(input, text);
    if (offset == std::string::npos) return;
    const std::size_t bad = input.source.FindUnknownReference(offset, end);
    if (bad == std::string::npos) return;
    diagnostics_.Error(input.source.At(bad), "'&' does not start a reference that XML knows",
                       "write &amp; for a plain '&'");
  }

  std::unique_ptr<Element> Build(const Input& input, const pugi::xml_node& node,
                                 const Element* parent) {
    const Location place = At(input, node);
    if (depth_ >= options_.depth_max) {
      diagnostics_.Error(place,
                         fmt::format("elements are nested more than {} deep", options_.depth_max));
      return nullptr;
    }
    if (++element_count_ > options_.elements_max) {
      if (element_count_ == options_.elements_max + 1) {
        diagnostics_.Error(
            place, fmt::format("the document has more than {} elements", options_.elements_max));
      }
      return nullptr;
    }
    ++depth_;
    auto element = std::make_unique<Element>(input.source.file(), place.line, place.column,
                                             std::string(node.name()));
    element->parent_ = parent;
    AddAttributes(input, node, *element);
    AddNodes(input, node, *element);
    Finalize(*element);
    --depth_;
    return element;
  }

  void AddAttributes(const Input& input, const pugi::xml_node& node, Element& element) {
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const std::size_t offset = OffsetOf(input, attribute.name());
      Location place = element.location();
      if (offset != std::string::npos) place = input.source.At(offset);
      if (element.HasAttribute(attribute.name())) {
        diagnostics_.Error(place, fmt::format("attribute '{}' is given twice", attribute.name()),
                           "remove one of them");
        continue;
      }
      const std::size_t value = OffsetOf(input, attribute.value());
      if (value != std::string::npos && value > 0) {
        CheckReferences(input, attribute.value(), input.source.text()[value - 1]);
      }
      element.attributes_.push_back(
          {attribute.name(), attribute.value(), place.line, place.column});
    }
  }

  void AddNodes(const Input& input, const pugi::xml_node& node, Element& element) {
    for (const pugi::xml_node child : node) {
      const Location place = At(input, child);
      if (child.type() == pugi::node_element) {
        if (options_.includes && IsInclude(child)) {
          Include(input, child, element);
        } else if (auto built = Build(input, child, &element)) {
          element.nodes_.push_back(
              {NodeKind::kElement, {}, std::move(built), place.line, place.column});
        }
      } else if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata) {
        if (child.type() == pugi::node_pcdata) CheckReferences(input, child.value(), '<');
        element.nodes_.push_back({NodeKind::kText, child.value(), {}, place.line, place.column});
      } else if (child.type() == pugi::node_comment) {
        element.nodes_.push_back({NodeKind::kComment, child.value(), {}, place.line, place.column});
      } else if (child.type() == pugi::node_doctype) {
        diagnostics_.Error(place, "document type declarations are not accepted",
                           "remove <!DOCTYPE ...>");
      }
    }
  }

  static void Finalize(Element& element) {
    element.children_.clear();
    for (std::size_t index = 0; index < element.nodes_.size(); ++index) {
      Node& node = element.nodes_[index];
      if (node.kind != NodeKind::kElement) continue;
      node.element->parent_ = &element;
      node.element->index_in_parent_ = index;
      element.children_.push_back(node.element.get());
    }
  }

  // An element named include in the XInclude namespace. A prefix nobody declared counts if it is
  // the customary one: files that rely on a reader without namespaces exist.
  static bool IsInclude(const pugi::xml_node& node) {
    const std::string_view name = node.name();
    const std::size_t colon = name.find(':');
    const std::string_view local = colon == std::string_view::npos ? name : name.substr(colon + 1);
    if (local != "include") return false;
    const std::string declaration =
        colon == std::string_view::npos ? "xmlns" : "xmlns:" + std::string(name.substr(0, colon));
    for (pugi::xml_node at = node; at; at = at.parent()) {
      const pugi::xml_attribute bound = at.attribute(declaration.c_str());
      if (!bound) continue;
      return std::find(std::begin(kXIncludeNamespaces), std::end(kXIncludeNamespaces),
                       std::string_view(bound.value())) != std::end(kXIncludeNamespaces);
    }
    return name == "xi:include";
  }

  void Include(const Input& input, const pugi::xml_node& node, Element& into) {
    const Location place = At(input, node);
    const std::string href = node.attribute("href").value();
    const std::string parse = node.attribute("parse").value();
    if (href.empty() || node.attribute("xpointer") || href.find("://") != std::string::npos ||
        (!parse.empty() && parse != "xml")) {
      diagnostics_.Error(place, "only whole XML files can be included",
                         "write <xi:include href=\"relative/path.xml\"/>");
      return;
    }
    const fs::path folder = fs::path(*input.source.file()).parent_path();
    const std::string path = (folder / href).lexically_normal().string();
    std::error_code code;
    if (!fs::exists(path, code)) {
      IncludeFallback(input, node, into, path);
      return;
    }
    if (open_.size() >= options_.include_depth_max) {
      diagnostics_.Error(
          place, fmt::format("includes are nested more than {} deep", options_.include_depth_max));
      return;
    }
    const std::string identity = Identity(path);
    if (std::find(open_.begin(), open_.end(), identity) != open_.end() ||
        identity == Identity(*input.source.file())) {
      diagnostics_.Error(place, fmt::format("'{}' includes itself", path),
                         "break the circle of includes");
      return;
    }
    open_.push_back(identity);
    auto root = ReadFromFile(path, place);
    open_.pop_back();
    if (root == nullptr) return;
    root->parent_ = &into;
    into.nodes_.push_back({NodeKind::kElement, {}, std::move(root), place.line, place.column});
  }

  void IncludeFallback(const Input& input, const pugi::xml_node& node, Element& into,
                       const std::string& path) {
    for (const pugi::xml_node child : node.children()) {
      const std::string_view name = child.name();
      if (name == "fallback" || name.ends_with(":fallback")) {
        ++depth_;
        if (depth_ <= options_.depth_max) AddNodes(input, child, into);
        --depth_;
        return;
      }
    }
    diagnostics_.Error(At(input, node), fmt::format("included file '{}' does not exist", path),
                       "the path is relative to the file with the include");
  }

  static std::string Identity(const std::string& path) {
    std::error_code code;
    const fs::path canonical = fs::weakly_canonical(path, code);
    return code ? path : canonical.string();
  }

  const ParseOptions options_;
  Diagnostics& diagnostics_;
  const std::size_t errors_before_ = diagnostics_.error_count();
  std::vector<std::string> files_;
  std::vector<std::string> open_;  // Included files being read, outermost first.
  std::size_t depth_ = 0;
  std::size_t element_count_ = 0;
};

std::optional<Document> Document::ParseFile(const std::string& path, Diagnostics& diagnostics,
                                            const ParseOptions& options) {
  DocumentBuilder builder(options, diagnostics);
  return builder.Finish(builder.ReadFromFile(path, {}));
}

std::optional<Document> Document::ParseText(std::string_view text, const std::string& name,
                                            Diagnostics& diagnostics, const ParseOptions& options) {
  DocumentBuilder builder(options, diagnostics);
  return builder.Finish(builder.ReadFromText(text, name));
}

}  // namespace zeze::xml
