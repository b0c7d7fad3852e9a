#include "zeze/serialize/type_widening.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace zeze {
namespace {

struct Widening {
  std::string_view from;
  std::string_view to;  // Each name between commas.
};

// Only what keeps every value: an int fits a double but not a float, and a long fits neither. Bytes
// are not always UTF-8, so binary does not become string. A set does not become a list nor the
// reverse: a list may repeat an element.
constexpr Widening kWidenings[] = {
    {"bool", "byte, short, int, long, float, double"},
    {"byte", "short, int, long, float, double"},
    {"short", "int, long, float, double"},
    {"int", "long, double"},
    {"float", "double"},
    {"string", "binary"},
    {"decimal", "string, binary"},
    {"vector2", "vector3, vector4, quaternion"},
    {"vector3", "vector4, quaternion"},
    {"vector4", "quaternion"},
    {"quaternion", "vector4"},
    {"vector2int", "vector3int"},
    {"map", "sortedmap"},
    {"sortedmap", "map"},
};

std::string_view Wider(std::string_view from) {
  for (const Widening& widening : kWidenings) {
    if (widening.from == from) return widening.to;
  }
  return "";
}

}  // namespace

bool CanWiden(std::string_view from, std::string_view to) {
  if (from == to) return true;
  std::string_view rest = Wider(from);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(", ");
    if (rest.substr(0, comma) == to) return true;
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 2);
  }
  return false;
}

std::string WiderTypes(std::string_view from) {
  std::string types(from);
  if (const std::string_view wider = Wider(from); !wider.empty()) types.append(", ").append(wider);
  return types;
}

}  // namespace zeze
