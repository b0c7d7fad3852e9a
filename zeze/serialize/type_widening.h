// CanWiden: whether stored values of one type may be read as another without losing anything.
//
//   CanWiden("int", "long")       true
//   CanWiden("long", "int")       false: large values would become others
//   CanWiden("decimal", "string") true; the reverse is false, since not every text is a number
//
// The one rule behind the schema check at start (bean/schema.h) and the lock file of the generator.

#pragma once

#include <string>
#include <string_view>

namespace zeze {

// Types are named as in the schema language, without parameters: "int", "list", "vector2". True if
// both are the same. A name that is not of a built-in type is only equal to itself.
bool CanWiden(std::string_view from, std::string_view to);

// The types that values of `from` may be read as, itself first: "int, long, double".
std::string WiderTypes(std::string_view from);

}  // namespace zeze
