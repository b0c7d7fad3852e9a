#include "zeze/storage/sql/sql_dialect.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/table_name.h"

namespace zeze {

std::string SqlDialect::Quoted(std::string_view relation) const {
  return fmt::format("{0}{1}{0}", words_.quote, relation);
}

std::vector<std::string> SqlDialect::NameTable(const std::string& /*relation*/,
                                               std::string_view /*table*/) const {
  return {};
}

std::vector<std::string> SqlDialect::Scripts(std::vector<std::string> statements) const {
  return statements;
}

bool SqlDialect::DefinitionCollided(const SqlAnswer& answer) const {
  return answer.failure() == SqlFailure::kCollision;
}

SqlAnswer SqlDialect::ReadNameRules(SqlConnection& /*connection*/, SqlNameRules& rules) const {
  rules = words_.names;
  return {};
}

std::optional<std::string> SqlDialect::TakeEpochAlone(SqlConnection& /*connection*/,
                                                      std::int32_t /*server_id*/,
                                                      std::int64_t /*epoch*/) const {
  return std::nullopt;
}

SqlAnswer RunEach(SqlConnection& connection, std::span<const std::string> statements,
                  const std::vector<SqlParameter>& parameters) {
  SqlAnswer answer;
  for (const std::string& statement : statements) {
    answer = connection.Run(statement, parameters);
    if (!answer.ok()) return answer;
  }
  return answer;
}

SqlAnswer ForgetYields(SqlConnection& connection, std::int32_t server_id, std::int64_t epoch_max) {
  static const std::array<std::string, 2> statements = {
      "DELETE FROM zeze_wanted WHERE server_id = $1 AND epoch <= $2",
      "DELETE FROM zeze_yield WHERE server_id = $1 AND epoch <= $2"};
  return RunEach(connection, statements, {server_id, epoch_max});
}

}  // namespace zeze
