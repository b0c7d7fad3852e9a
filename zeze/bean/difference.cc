#include "zeze/bean/difference.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace zeze {

namespace {

void VisitBelow(const Change& change, std::vector<const Change*>& path,
                const std::function<void(std::span<const Change* const>)>& visit) {
  path.push_back(&change);
  if (change.children.empty()) visit(path);
  for (const Change& child : change.children) VisitBelow(child, path, visit);
  path.pop_back();
}

std::string PathText(std::span<const Change* const> path) {
  std::string text;
  for (const Change* change : path) {
    const std::string step = change->StepText();
    if (!text.empty() && !step.empty() && step[0] != '[') text += '.';
    text += step;
  }
  return text;
}

std::string ActionText(const Change& change) {
  switch (change.action) {
    case Change::Action::kReplaced:
      return change.old_value.ToString() + " -> " + change.new_value.ToString();
    case Change::Action::kAdded:
      return "added " + change.new_value.ToString();
    case Change::Action::kRemoved:
      return "removed " + change.old_value.ToString();
    case Change::Action::kCleared:
      return "cleared";
    case Change::Action::kEdited:
      break;
  }
  return "edited";
}

}  // namespace

const Change* Change::FindField(int id) const {
  for (const Change& child : children) {
    if (child.step == Step::kField && child.field_id == id) return &child;
  }
  return nullptr;
}

std::string Change::StepText() const {
  switch (step) {
    case Step::kField:
      return field_name;
    case Step::kBase:
      return "base";
    case Step::kUnknownFields:
      return "unknown fields";
    case Step::kListIndex:
      return "[" + std::to_string(index) + "]";
    case Step::kMapKey:
      return "[" + key.ToString() + "]";
    case Step::kSetElement:
    case Step::kRoot:
      break;
  }
  return "";
}

void VisitChanges(const Change& root,
                  const std::function<void(std::span<const Change* const> path)>& visit) {
  if (root.children.empty() && root.step == Change::Step::kRoot) return;
  std::vector<const Change*> path;
  VisitBelow(root, path, visit);
}

std::string FormatChanges(const Change& root) {
  std::string text;
  VisitChanges(root, [&text](std::span<const Change* const> path) {
    text += PathText(path) + ": " + ActionText(*path.back()) + "\n";
  });
  return text;
}

}  // namespace zeze
