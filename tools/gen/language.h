// The schema language as tables: which elements exist, where, with which attributes. One source for
// the check of unknown names, the notes about attributes without a meaning in C++, and the XSD.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeze/xml/known_names.h"

namespace zeze::gen {

enum class AttributeUse : unsigned char {
  kRead,     // Has an effect.
  kNoEffect  // Accepted because files for other languages carry it; noted once.
};

struct AttributeInfo {
  std::string_view name;
  std::string_view type;  // Of XSD, without prefix: string, boolean, int...
  bool required = false;
  AttributeUse use = AttributeUse::kRead;
  std::string_view about = {};
};

struct ElementInfo {
  std::string_view kind;  // Unique; "module ref" is a <module> inside a project.
  std::string_view name;
  std::vector<AttributeInfo> attributes;
  std::vector<std::string_view> children;  // Kinds.
  bool closed = true;                      // An unknown child is an error.
  std::string_view about = {};
};

const std::vector<ElementInfo>& Language();
const ElementInfo* FindElementInfo(std::string_view kind);
const xml::KnownNames& KnownSchemaNames();

}  // namespace zeze::gen
