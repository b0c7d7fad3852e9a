// Document: an XML file as a tree whose every part knows its file, line and column.
//
//   Diagnostics diagnostics;
//   std::optional<Document> document = Document::ParseFile("zeze.xml", diagnostics);
//   if (!document) { std::cerr << diagnostics.Format(); return 1; }
//   for (const Element* table : document->root().children("TableConf")) {
//     std::string name = table->GetAttribute("Name");
//   }
//
// The reader takes input from anybody: it bounds size, depth and number of elements, refuses
// document type declarations (and with them every entity trick), text that is not UTF-8, and
// references to entities that XML itself does not define. XInclude (xi:include) is expanded with
// paths relative to the including file; circles are refused.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/xml/diagnostics.h"

namespace zeze::xml {

class Element;

struct Attribute {
  std::string name;
  std::string value;  // References resolved, white space normalised as XML prescribes.
  int line = 0;
  int column = 0;
};

enum class NodeKind : std::uint8_t { kElement, kText, kComment };

// One thing inside an element. Text keeps its white space; CDATA is text.
struct Node {
  NodeKind kind = NodeKind::kText;
  std::string text;                  // Of kText and kComment.
  std::unique_ptr<Element> element;  // Of kElement.
  int line = 0;
  int column = 0;
};

class Element {
 public:
  Element(std::shared_ptr<const std::string> file, int line, int column, std::string name);
  Element(const Element&) = delete;
  Element& operator=(const Element&) = delete;

  const std::string& name() const { return name_; }
  Location location() const { return {*file_, line_, column_}; }
  const std::string& file() const { return *file_; }
  int line() const { return line_; }

  // In document order; names are unique (a repeated one is refused while parsing).
  const std::vector<Attribute>& attributes() const { return attributes_; }
  const Attribute* FindAttribute(std::string_view name) const;
  // For readers that forgive case: exact match first, else the only one that differs in case.
  const Attribute* FindAttributeIgnoreCase(std::string_view name) const;
  bool HasAttribute(std::string_view name) const { return FindAttribute(name) != nullptr; }
  // The value, or `otherwise` if there is no such attribute.
  std::string GetAttribute(std::string_view name, std::string_view otherwise = {}) const;
  // The place of an attribute, or of the element if it has no such attribute.
  Location LocationOf(std::string_view attribute) const;
  Location LocationOf(const Attribute& attribute) const;

  // Elements only, in document order.
  const std::vector<const Element*>& children() const { return children_; }
  std::vector<const Element*> children(std::string_view name) const;
  // Elements, text and comments, in document order.
  const std::vector<Node>& nodes() const { return nodes_; }

  // The element around this one, null for the root; nodes()[index_in_parent()] of it is this one.
  const Element* parent() const { return parent_; }
  std::size_t index_in_parent() const { return index_in_parent_; }

 private:
  friend class DocumentBuilder;

  std::shared_ptr<const std::string> file_;
  int line_;
  int column_;
  std::string name_;
  std::vector<Attribute> attributes_;
  std::vector<Node> nodes_;
  std::vector<const Element*> children_;
  const Element* parent_ = nullptr;
  std::size_t index_in_parent_ = 0;
};

// Limits on what is accepted, far above what people write by hand.
struct ParseOptions {
  std::size_t bytes_max = std::size_t{32} << 20;  // Of one file.
  std::size_t depth_max = 64;                     // Elements inside elements.
  std::size_t elements_max = 1'000'000;           // Of the whole document, includes expanded.
  std::size_t include_depth_max = 16;
  bool includes = true;  // false: xi:include stays an ordinary element.
};

class Document {
 public:
  // Nothing is returned if an error was recorded; a document that is returned is complete.
  static std::optional<Document> ParseFile(const std::string& path, Diagnostics& diagnostics,
                                           const ParseOptions& options = {});
  // `name` stands for the file in diagnostics; includes are relative to its folder.
  static std::optional<Document> ParseText(std::string_view text, const std::string& name,
                                           Diagnostics& diagnostics,
                                           const ParseOptions& options = {});

  const Element& root() const { return *root_; }
  // Every file that was read, in order, as opened: what a build depends on.
  const std::vector<std::string>& files() const { return files_; }

 private:
  friend class DocumentBuilder;

  Document() = default;

  std::unique_ptr<Element> root_;
  std::vector<std::string> files_;
};

}  // namespace zeze::xml
