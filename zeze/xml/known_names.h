// KnownNames: which attributes and child elements a kind of element may have, so that a typing
// error is told instead of being ignored.
//
//   static const KnownNames names = KnownNames()
//       .Add({.kind = "TableConf", .attributes = {"Name", "CacheCapacity"}})
//       .AddDead("zeze", "CheckpointModeTableFlushConcurrent", "no version has ever read it");
//   names.Check(element, diagnostics);
//   // warning: unknown attribute 'CacheCapacty' of <TableConf>
//   //   hint: did you mean 'CacheCapacity'?

#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::xml {

struct KnownElement {
  std::string kind = {};  // Usually the element's name; see Check.
  std::vector<std::string> attributes = {};
  std::vector<std::string> children = {};
  // An unknown child element is an error, or only a warning for elements whose readers have always
  // skipped what they do not know.
  bool unknown_child_is_error = true;
  bool any_content = false;  // Neither attributes nor children are checked.
};

class KnownNames {
 public:
  KnownNames& Add(KnownElement element);
  // An attribute that files carry although nobody reads it, with the reason; kind "*" = everywhere.
  KnownNames& AddDead(std::string kind, std::string attribute, std::string explanation);

  // Checks attributes and the names of child elements (not their insides). `kind` picks the entry
  // where one element name means different things in different places. Attributes with a prefix and
  // xmlns are never reported.
  void Check(const Element& element, std::string_view kind, Diagnostics& diagnostics) const;
  void Check(const Element& element, Diagnostics& diagnostics) const {
    Check(element, element.name(), diagnostics);
  }

  const KnownElement* Find(std::string_view kind) const;

 private:
  void CheckAttributes(const Element& element, const KnownElement& known,
                       Diagnostics& diagnostics) const;
  void CheckChildren(const Element& element, const KnownElement& known,
                     Diagnostics& diagnostics) const;

  std::map<std::string, KnownElement, std::less<>> elements_;
  std::map<std::pair<std::string, std::string>, std::string> dead_;
};

}  // namespace zeze::xml
