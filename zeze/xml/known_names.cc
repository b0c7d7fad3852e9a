#include "zeze/xml/known_names.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::xml {
namespace {

// "did you mean", or the whole list when it is short enough to be read.
std::string Suggest(std::string_view word, const std::vector<std::string>& known,
                    std::string_view what) {
  std::string suggestion = DidYouMean(word, {known.begin(), known.end()});
  if (!suggestion.empty()) return suggestion;
  if (known.empty()) return fmt::format("it has no {}", what);
  if (known.size() <= 12) return fmt::format("known {}: {}", what, fmt::join(known, ", "));
  return {};
}

}  // namespace

KnownNames& KnownNames::Add(KnownElement element) {
  std::string kind = element.kind;
  elements_.insert_or_assign(std::move(kind), std::move(element));
  return *this;
}

KnownNames& KnownNames::AddDead(std::string kind, std::string attribute, std::string explanation) {
  dead_.insert_or_assign({std::move(kind), std::move(attribute)}, std::move(explanation));
  return *this;
}

const KnownElement* KnownNames::Find(std::string_view kind) const {
  const auto found = elements_.find(kind);
  return found == elements_.end() ? nullptr : &found->second;
}

void KnownNames::Check(const Element& element, std::string_view kind,
                       Diagnostics& diagnostics) const {
  const KnownElement* known = Find(kind);
  if (known == nullptr || known->any_content) return;
  CheckAttributes(element, *known, diagnostics);
  CheckChildren(element, *known, diagnostics);
}

void KnownNames::CheckAttributes(const Element& element, const KnownElement& known,
                                 Diagnostics& diagnostics) const {
  for (const Attribute& attribute : element.attributes()) {
    const std::string& name = attribute.name;
    if (name == "xmlns" || name.find(':') != std::string::npos) continue;
    if (std::find(known.attributes.begin(), known.attributes.end(), name) !=
        known.attributes.end()) {
      continue;
    }
    auto dead = dead_.find({known.kind, name});
    if (dead == dead_.end()) dead = dead_.find({"*", name});
    if (dead != dead_.end()) {
      diagnostics.Warning(element.LocationOf(attribute),
                          fmt::format("attribute '{}' of <{}> has no effect: {}", name,
                                      element.name(), dead->second),
                          "remove it");
    } else {
      diagnostics.Warning(element.LocationOf(attribute),
                          fmt::format("unknown attribute '{}' of <{}>", name, element.name()),
                          Suggest(name, known.attributes, "attributes"));
    }
  }
}

void KnownNames::CheckChildren(const Element& element, const KnownElement& known,
                               Diagnostics& diagnostics) const {
  for (const Element* child : element.children()) {
    if (std::find(known.children.begin(), known.children.end(), child->name()) !=
        known.children.end()) {
      continue;
    }
    std::string message =
        fmt::format("unknown element <{}> in <{}>", child->name(), element.name());
    std::string suggestion = Suggest(child->name(), known.children, "child elements");
    if (known.unknown_child_is_error) {
      diagnostics.Error(child->location(), std::move(message), std::move(suggestion));
    } else {
      diagnostics.Warning(child->location(), std::move(message), std::move(suggestion));
    }
  }
}

}  // namespace zeze::xml
