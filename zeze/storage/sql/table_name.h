// SqlRelationName: under which name a table stands in an SQL database.
//
// Names that are plain SQL words stand there as the Java peer writes them: without quotes, so
// folded to lower case where the engine folds. All others (too long, blanks, other scripts) stand
// under a hash of the name. The exact name is the comment of the SQL table, in both cases.
//
//   SqlRelationName("demo_Game_tRole", kPostgresNames).value() == "demo_game_trole"
//   SqlRelationName("角色", kPostgresNames).value() == "zeze_table_22e496..."

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "zeze/base/result.h"

namespace zeze {

struct SqlNameRules {
  std::size_t bytes_max = 0;
  bool folds_case = false;
};

inline constexpr SqlNameRules kPostgresNames = {.bytes_max = 63, .folds_case = true};
inline constexpr SqlNameRules kMariaDbNames = {.bytes_max = 64, .folds_case = false};

// Errors: kInvalidArgument (the framework keeps the name for itself, or it is not UTF-8).
Result<std::string> SqlRelationName(std::string_view table, const SqlNameRules& rules);

// The name of the table that stands as `relation` with this comment: the comment if it is one that
// we wrote, else the relation's own name.
std::string SqlTableName(std::string_view relation, std::string_view comment,
                         const SqlNameRules& rules);

}  // namespace zeze
