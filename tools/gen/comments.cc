#include "tools/gen/comments.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/gen/names.h"
#include "zeze/xml/document.h"

namespace zeze::gen {
namespace {

using xml::Element;
using xml::Node;
using xml::NodeKind;

// Without the comment marks that people write out of habit.
std::string_view Clean(std::string_view line) {
  line = Trim(line);
  while (line.starts_with('/') || line.starts_with('*')) line.remove_prefix(1);
  if (line.ends_with("*/")) line.remove_suffix(2);
  return Trim(line);
}

std::string FirstLine(std::string_view text) {
  return std::string(Clean(text.substr(0, text.find('\n'))));
}

std::string FirstLineWithText(std::string_view text) {
  while (!text.empty()) {
    std::string line = FirstLine(text);
    const std::size_t end = text.find('\n');
    if (!line.empty() || end == std::string_view::npos) return line;
    text.remove_prefix(end + 1);
  }
  return {};
}

std::string LastLine(std::string_view text) {
  text = Trim(text);
  const std::size_t end = text.rfind('\n');
  return std::string(Clean(end == std::string_view::npos ? text : text.substr(end + 1)));
}

std::string OneLine(std::string_view text) {
  std::string joined;
  while (!text.empty()) {
    const std::string line = FirstLine(text);
    if (!line.empty()) joined += (joined.empty() ? "" : " ") + line;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return joined;
}

const Node* Sibling(const Element& element, int step) {
  if (element.parent() == nullptr) return nullptr;
  const auto& nodes = element.parent()->nodes();
  const auto index = static_cast<std::ptrdiff_t>(element.index_in_parent()) + step;
  if (index < 0 || index >= static_cast<std::ptrdiff_t>(nodes.size())) return nullptr;
  return &nodes[static_cast<std::size_t>(index)];
}

// A comment in the line of an element belongs to that element, not to the next one.
bool StandsAlone(const Element& element, const Node& comment) {
  const Node* before = Sibling(element, -2);
  return before == nullptr || before->kind != NodeKind::kElement || before->line != comment.line;
}

}  // namespace

std::string CommentOf(const Element& element) {
  if (element.HasAttribute("comment")) return OneLine(element.GetAttribute("comment"));
  for (const Node& node : element.nodes()) {
    if (node.kind == NodeKind::kElement) break;
    if (node.kind == NodeKind::kText) return FirstLineWithText(node.text);
  }
  const Node* after = Sibling(element, 1);
  if (element.children().empty() && after != nullptr && after->kind == NodeKind::kText) {
    std::string line = FirstLine(after->text);
    if (!line.empty()) return line;
  }
  const Node* before = Sibling(element, -1);
  if (before == nullptr) return {};
  if (before->kind == NodeKind::kComment && StandsAlone(element, *before)) {
    return OneLine(before->text);
  }
  // The first line of that text may be the comment of what stands before it.
  if (before->kind == NodeKind::kText && before->text.find('\n') != std::string::npos) {
    return LastLine(before->text.substr(before->text.find('\n')));
  }
  return {};
}

std::string TrailingCommentOf(const Element& element) {
  for (const char* name : {"comment", "description"}) {
    if (element.HasAttribute(name)) return OneLine(element.GetAttribute(name));
  }
  if (const Node* after = Sibling(element, 1)) {
    if (after->kind == NodeKind::kText) return OneLine(after->text);
    if (after->kind == NodeKind::kComment && after->line == element.line()) {
      return OneLine(after->text);
    }
  }
  const Node* before = Sibling(element, -1);
  if (before != nullptr && before->kind == NodeKind::kComment && StandsAlone(element, *before)) {
    return OneLine(before->text);
  }
  return {};
}

}  // namespace zeze::gen
