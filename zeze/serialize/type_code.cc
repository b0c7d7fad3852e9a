#include "zeze/serialize/type_code.h"

#include <cstdint>
#include <string_view>

namespace zeze {

std::string_view ToString(TypeCode code) {
  static constexpr std::string_view kNames[kTypeCodeMax + 1] = {
      "INTEGER", "FLOAT",   "DOUBLE",     "BYTES",   "LIST",       "MAP",     "BEAN",
      "DYNAMIC", "VECTOR2", "VECTOR2INT", "VECTOR3", "VECTOR3INT", "VECTOR4",
  };
  const auto index = static_cast<std::uint8_t>(code);
  return index <= kTypeCodeMax ? kNames[index] : "unassigned";
}

}  // namespace zeze
