// TableDescriptor: what the schema says about a table; written by the generator.
//
//   inline constexpr zeze::TableDescriptor kRoles{.id = 7, .name = "Shop_Game_tRole"};
//   zeze::Table<std::int64_t, BRole> roles{kRoles};

#pragma once

#include <cstdint>
#include <string_view>

namespace zeze {

// All views must outlive the table: literals in generated code.
struct TableDescriptor {
  // Part of every global lock key and of the stored schema; unique in an application.
  std::int32_t id = 0;
  // Name in the storage, module path joined by '_'.
  std::string_view name = {};
  // Dotted name in the schema, for messages.
  std::string_view full_name = {};
  // Never written to the storage, never evicted, lost at a stop.
  bool memory = false;
  // Raised by an incompatible change: the stored table is set aside and a new one begins.
  std::int32_t version = 0;
  // Left out of the stored schema: no compatibility check at start.
  bool no_schema = false;
  std::string_view auto_key = {};
  std::string_view suffix = {};
};

}  // namespace zeze
