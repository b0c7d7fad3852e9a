#include "zeze/storage/sql/sql_connection.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/storage/sql/database_copy.h"

namespace zeze {

Error SqlError(ErrorCode code, std::string_view what, std::string_view message) {
  return {code, fmt::format("cannot {}: {}", what, message)};
}

std::int64_t ParseSqlNumber(std::string_view digits) {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  ZEZE_CHECK(parsed.ec == std::errc());
  return number;
}

std::optional<HomeRow> HomeIn(const SqlAnswer& answer) {
  if (answer.row_count() == 0) return std::nullopt;
  return HomeRow{.home = answer.text(0, 0),
                 .number = answer.number(0, 1),
                 .frozen = answer.number(0, 2),
                 .marker = answer.text(0, 3)};
}

}  // namespace zeze
