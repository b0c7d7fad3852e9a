// ServiceDescriptor, ModuleDescriptor: what the schema says about the parts of a project; written
// by the generator. Protocols are described in zeze/net/protocol.h.

#pragma once

#include <cstdint>
#include <string_view>

#include "zeze/net/protocol.h"  // IWYU pragma: export

namespace zeze {

// A service of a project and a module of it, in start order; written by the generator.
struct ServiceDescriptor {
  std::string_view name = {};
  HandledBy handles = {};
};

struct ModuleDescriptor {
  std::int32_t id = 0;
  std::string_view full_name = {};
  std::string_view service = {};  // Empty: none, its protocols are not registered.
};

}  // namespace zeze
